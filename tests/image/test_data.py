"""Image sets from made-up files in the official layouts, from users' copies, and from the real partial copies."""

import hashlib
import io
import os
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torchvision import datasets

from repro import manifest
from repro.image import data, readers

REAL = manifest.data_root()
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return tmp_path


def pixels(count, size=4):
    return RNG.integers(0, 256, (count, size, size, 3), dtype=np.uint8)


def png(image):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()


def md5(contents):
    return hashlib.md5(contents).hexdigest()


def declared(monkeypatch, name, **expected):
    """The manifest of a data set with other counts."""
    original, load = manifest.load_manifest(name), manifest.load_manifest
    split, = original.splits.values()
    changed = manifest.Manifest(**{
        **{field: getattr(original, field) for field in ("name", "title", "access", "source", "licence", "files")},
        "splits": {"standard": manifest.Split(train=split.train, test=split.test, expect=expected)},
    })
    monkeypatch.setattr(manifest, "load_manifest", lambda asked: changed if asked == name else load(asked))


@pytest.fixture
def cifar(folders, monkeypatch):
    """CIFAR-10 of 15 + 2 images as an archive of pickles, with torchvision's checksums made to fit."""
    images, labels = pixels(17, 32), RNG.integers(0, 10, 17).tolist()
    files = {
        f"data_batch_{number + 1}": (slice(3 * number, 3 * number + 3)) for number in range(5)
    } | {"test_batch": slice(15, 17)}
    contents = {
        name: pickle.dumps({"data": images[part].transpose(0, 3, 1, 2).reshape(-1, 3072), "labels": labels[part]})
        for name, part in files.items()
    }
    contents["batches.meta"] = pickle.dumps({"label_names": list(data.CLASSES["cifar10"])})
    lists = [[name, md5(contents[name])] for name in files]
    monkeypatch.setattr(datasets.CIFAR10, "train_list", lists[:5])
    monkeypatch.setattr(datasets.CIFAR10, "test_list", lists[5:])
    monkeypatch.setattr(datasets.CIFAR10, "meta",
                        {"filename": "batches.meta", "key": "label_names", "md5": md5(contents["batches.meta"])})
    declared(monkeypatch, "cifar10", train=15, test=2)
    path = folders / "data" / "cifar10" / "cifar-10-python.tar.gz"
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path, images, labels


def same_as(found, images, labels):
    assert found.images.dtype == torch.uint8 and found.labels.dtype == torch.int64
    np.testing.assert_array_equal(found.images.permute(0, 2, 3, 1).numpy(), images)
    assert found.labels.tolist() == list(labels)


def test_digits_are_scikit_learns():
    found, expected = data.load("digits"), load_digits()
    np.testing.assert_array_equal(found.images[:, 0], np.round(expected.images * 255 / 16))
    assert (found.images == found.images[:, :1]).all() and found.images.max() == 255
    assert found.labels.tolist() == expected.target.tolist()
    assert (found.pretrain.sum(), found.train.sum(), found.test.sum()) == (1347, 1347, 450)
    assert not (found.train & found.test).any() and data.load("digits").digest == found.digest


@pytest.mark.parametrize("unpacked", [False, True])
def test_cifar_from_its_archive_or_folder(cifar, unpacked):
    path, images, labels = cifar
    if unpacked:
        with tarfile.open(path) as archive:
            archive.extractall(path.parent, filter="data")
        path.unlink()
    before = sorted(path.parent.rglob("*"))
    for _ in range(2):  # read, then from what was prepared
        found = data.load("cifar10")
        same_as(found, images, labels)
        assert found.train.tolist() == found.pretrain.tolist() == [True] * 15 + [False] * 2
        assert found.test.tolist() == [False] * 15 + [True] * 2
        assert found.classes == data.CLASSES["cifar10"] and found.name == "cifar10"
    assert sorted(path.parent.rglob("*")) == before  # nothing is written beside the data


def test_damaged_prepared_arrays_are_made_again(cifar, folders):
    digest = data.load("cifar10").digest
    prepared, = (folders / "runs" / "prepared").glob("cifar10-*.npz")
    prepared.write_bytes(prepared.read_bytes()[:-100])
    assert data.load("cifar10").digest == digest


def test_another_distribution_than_the_official_one_is_refused(cifar, monkeypatch):
    path, _, _ = cifar
    contents = path.read_bytes()
    path.write_bytes(contents[: len(contents) // 2])
    with pytest.raises(ValueError, match="truncated or damaged"):
        data.load("cifar10")
    path.write_bytes(contents)
    declared(monkeypatch, "cifar10", train=50000, test=10000)
    with pytest.raises(ValueError, match=r"'train': 15.*'train': 50000.*repro data import cifar10"):
        data.load("cifar10")
    monkeypatch.setattr(datasets.CIFAR10, "test_list", [["test_batch", "0" * 32]])
    with pytest.raises(ValueError, match="not the official distribution"):
        data.load("cifar10")


def test_missing_data_says_what_to_do():
    with pytest.raises(FileNotFoundError, match=r"cifar-10-python.tar.gz.*repro data download cifar10"):
        data.load("cifar10")
    with pytest.raises(FileNotFoundError, match="repro data import cifar10 FILE"):
        data.load("cifar10", subset=True)
    with pytest.raises(ValueError, match="did you mean 'cifar10'"):
        data.load("cifar1")


def test_stl10_pre_trains_on_its_unlabeled_images(folders, monkeypatch):
    folder = folders / "data" / "stl10" / "stl10_binary"
    folder.mkdir(parents=True)
    images, lists = {}, {"train_list": [], "test_list": []}
    for part, count in (("train", 3), ("test", 2), ("unlabeled", 4)):
        images[part] = RNG.integers(0, 256, (count, 3, 96, 96), dtype=np.uint8)
        columns = images[part].transpose(0, 1, 3, 2)  # the files go down a column first
        files = {f"{part}_X.bin": columns.tobytes()}
        files |= {} if part == "unlabeled" else {f"{part}_y.bin": (np.arange(count, dtype=np.uint8) + 1).tobytes()}
        for name, content in files.items():
            (folder / name).write_bytes(content)
            lists["test_list" if part == "test" else "train_list"].append([name, md5(content)])
    (folder / "class_names.txt").write_text("\n".join(data.CLASSES["stl10"]))
    for name, values in lists.items():
        monkeypatch.setattr(datasets.STL10, name, values)
    declared(monkeypatch, "stl10", train=3, test=2, unlabeled=4)
    found = data.load("stl10")
    np.testing.assert_array_equal(found.images, np.concatenate([images[part] for part in readers.PARTS]))
    assert found.labels.tolist() == [0, 1, 2, 0, 1, -1, -1, -1, -1]
    assert found.pretrain.tolist() == [False] * 5 + [True] * 4
    assert (found.train.sum(), found.test.sum()) == (3, 2)


def tiny_files():
    """Tiny-ImageNet of two classes: three training, two validation and one test image."""
    train, val = pixels(3, 8), pixels(2, 8)
    files = {
        "train/n02/images/n02_0.JPEG": png(train[1]), "train/n01/images/n01_0.JPEG": png(train[0]),
        "train/n02/images/n02_1.JPEG": png(train[2]), "train/n01/n01_boxes.txt": b"n01_0.JPEG\t0\t0\t1\t1\n",
        "val/images/val_0.JPEG": png(val[1]), "val/images/val_1.JPEG": png(val[0]),
        "val/val_annotations.txt": b"val_0.JPEG\tn02\t0\t0\t1\t1\nval_1.JPEG\tn01\t0\t0\t1\t1\n",
        "test/images/test_0.JPEG": png(pixels(1, 8)[0]), "wnids.txt": b"n02\nn01\n",
    }
    return {f"tiny-imagenet-200/{name}": content for name, content in files.items()}, np.concatenate([train, val])


def zipped(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_tiny_imagenet_official_or_a_part_of_it(folders, monkeypatch):
    files, images = tiny_files()
    path = zipped(folders / "data" / "tiny_imagenet" / "tiny-imagenet-200.zip", files)
    with pytest.raises(ValueError, match="'train': 3"):
        data.load("tiny_imagenet")
    part = data.take_in("tiny_imagenet", path)
    declared(monkeypatch, "tiny_imagenet", train=3, test=2)
    whole = data.load("tiny_imagenet")
    for found in (part, whole):
        same_as(found, images, [0, 1, 1, 0, 1])
        assert found.test.tolist() == [False] * 3 + [True] * 2 and found.classes == ("n01", "n02")
    assert (part.name, whole.name) == ("tiny_imagenet (subset)", "tiny_imagenet")
    assert part.digest == whole.digest


def test_a_validation_image_without_a_class_is_named(folders):
    files, _ = tiny_files()
    files["tiny-imagenet-200/val/images/val_7.JPEG"] = files["tiny-imagenet-200/val/images/val_0.JPEG"]
    with pytest.raises(ValueError, match=r"val_7.JPEG is not in val/val_annotations.txt"):
        data.take_in("tiny_imagenet", zipped(folders / "part.zip", files))


def arrays(**changes):
    usual = {"x_train": pixels(5), "y_train": np.arange(5), "x_test": pixels(2), "y_test": np.array([9, 0])}
    return {name: value for name, value in (usual | changes).items() if value is not None}


def saved(path, values):
    np.savez(path, **values)
    return path


def test_a_copy_as_arrays(folders):
    values = arrays(more=np.zeros(3))
    found = data.take_in("cifar10", saved(folders / "mine.npz", values))
    same_as(found, np.concatenate([values["x_train"], values["x_test"]]), [0, 1, 2, 3, 4, 9, 0])
    assert found.name == "cifar10 (subset)" and found.classes == data.CLASSES["cifar10"]
    assert data.load("cifar10", subset=True).digest == found.digest
    assert data.describe(found) == (
        "cifar10 (subset): 7 images of 4 x 4, 10 classes; 5 for pretrain, 5 for train, 2 for test"
    )
    grey = data.take_in("cifar10", saved(folders / "grey.npz", arrays(x_train=values["x_train"][..., 0],
                                                                     x_test=values["x_test"][..., 0])))
    np.testing.assert_array_equal(grey.images[:5, 2], values["x_train"][..., 0])
    assert data.load("cifar10", subset=True).digest == grey.digest != found.digest  # the last one counts


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"y_test": None}, "lacks y_test"),
        ({"x_train": pixels(5).astype(float)}, "images are float64"),
        ({"x_train": pixels(5)[..., :2]}, r"images are uint8 \(5, 4, 4, 2\)"),
        ({"y_train": np.arange(4)}, r"5 images have labels int64 \(4,\)"),
        ({"y_train": np.arange(5.0)}, "labels float64"),
        ({"y_test": np.array([0, 10])}, "labels run from 0 to 10, expected 0 to 9"),
        ({"y_test": np.array([0, -1])}, "labels run from -1"),
        ({"x_test": pixels(2, 5)}, r"x_train holds \(3, 4, 4\), x_test \(3, 5, 5\)"),
        ({"x_train": np.array([{}] * 5)}, "Object arrays cannot be loaded"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arrays_of_another_form_are_refused_and_lose_nothing(folders, changes, message):
    kept = data.take_in("cifar10", saved(folders / "good.npz", arrays()))
    with pytest.raises(ValueError, match=message):
        data.take_in("cifar10", saved(folders / "bad.npz", arrays(**changes)))
    assert data.load("cifar10", subset=True).digest == kept.digest


@pytest.mark.parametrize("form", ["folder", "zip", "tar.xz"])
@pytest.mark.parametrize("outer", ["", "copy/"])
def test_a_copy_in_class_folders(folders, form, outer):
    images = pixels(4)
    names = ("train/cat/1.png", "train/dog/0.png", "train/dog/1.png", "val/cat/0.png")
    files = {f"{outer}{name}": png(image) for name, image in zip(names, images, strict=True)}
    files |= {f"{outer}train/cat/._1.png": b"", f"{outer}notes.txt": b"mine"}
    path = folders / f"mine.{form}"
    if form == "folder":
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    elif form == "zip":
        zipped(path, files)
    else:
        with tarfile.open(path, "w:xz") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    found = data.take_in("cifar10", path)
    same_as(found, images, [3, 5, 5, 3])
    assert found.test.tolist() == [False, False, False, True]
    folders_alone = data.take_in("cifar100", path)  # whose class names are not known beforehand
    assert folders_alone.classes == ("cat", "dog") and folders_alone.labels.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    "files, message",
    [
        ({"train/cut/0.png": png(pixels(1)[0])}, "did you mean 'cat'"),
        ({"train/cat/0.png": png(pixels(1)[0]), "train/dog/0.png": png(pixels(1, 5)[0])}, "sizes should agree"),
        ({"train/cat/0.png": png(pixels(1)[0])[:40]}, "train/cat/0.png cannot be read as a picture"),
        ({"train/0.png": png(pixels(1)[0])}, "does not lie in train/<class>/"),
        ({"train/cat/0.txt": b""}, "holds no image"),
    ],
    ids=["class", "size", "cut", "place", "none"],
)
def test_class_folders_of_another_form_are_refused(folders, files, message):
    with pytest.raises(ValueError, match=message):
        data.take_in("cifar10", zipped(folders / "bad.zip", files))


def test_files_that_are_nothing_of_the_kind(folders):
    for name in ("noise.npz", "noise.zip"):
        (folders / name).write_bytes(os.urandom(200))
        with pytest.raises(ValueError, match=name):
            data.take_in("cifar10", folders / name)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        data.take_in("cifar10", folders / "nothing.npz")
    with pytest.raises(ValueError, match="dataset='digits'"):
        data.take_in("digits", folders / "noise.npz")


@pytest.mark.parametrize(
    "name, file, counts, classes",
    [
        ("cifar10", "cifar10/cifar10_lossless_subset.npz", (5170, 1017), 10),
        ("cifar100", "cifar100/cifar100_lossless_subset.npz", (486, 916), 100),
        ("tiny_imagenet", "tiny_imagenet/tiny_imagenet_subset20.zip", (2000, 1000), 20),
    ],
)
def test_real_partial_copies(name, file, counts, classes):
    path = Path(REAL) / file
    if not path.exists():
        pytest.skip(f"needs {file}")
    found = data.take_in(name, path)
    assert (found.train.sum(), found.test.sum()) == counts and len(found.classes) == classes
    assert found.images.float().mean().item() == pytest.approx(120, abs=15)
