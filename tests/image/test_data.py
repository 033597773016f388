"""Image sets from made-up files in the official layouts, from users' copies, and from the real partial copies."""

import hashlib
import io
import os
import pickle
import shutil
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
from repro.image.imagenet import imagenet100_classes
from tests.campaigns import mutations

REAL = manifest.data_root()
RNG = np.random.default_rng(0)
pytestmark = pytest.mark.usefixtures("folders")


def pixels(count, size=32):
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
    train, val = pixels(3, 64), pixels(2, 64)
    files = {
        "train/n02/images/n02_0.JPEG": png(train[1]), "train/n01/images/n01_0.JPEG": png(train[0]),
        "train/n02/images/n02_1.JPEG": png(train[2]), "train/n01/n01_boxes.txt": b"n01_0.JPEG\t0\t0\t1\t1\n",
        "val/images/val_0.JPEG": png(val[1]), "val/images/val_1.JPEG": png(val[0]),
        "val/val_annotations.txt": b"val_0.JPEG\tn02\t0\t0\t1\t1\nval_1.JPEG\tn01\t0\t0\t1\t1\n",
        "test/images/test_0.JPEG": png(pixels(1, 64)[0]), "wnids.txt": b"n02\nn01\n",
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
    assert (part.name, whole.name) == ("tiny_imagenet (tiny-imagenet-200.zip)", "tiny_imagenet")
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
    assert found.name == "cifar10 (mine.npz)" and found.classes == data.CLASSES["cifar10"]
    assert data.load("cifar10", subset=True).digest == found.digest
    assert data.describe(found) == (
        "cifar10 (mine.npz): 7 images of 32 x 32, 10 classes; 5 for pretrain, 5 for train, 2 for test"
    )
    grey = data.take_in("cifar10", saved(folders / "grey.npz", arrays(x_train=values["x_train"][..., 0],
                                                                     x_test=values["x_test"][..., 0])))
    np.testing.assert_array_equal(grey.images[:5, 2], values["x_train"][..., 0])
    kept = data.load("cifar10", subset=True)  # the last one counts, and only that is kept
    assert kept.digest == grey.digest != found.digest and kept.name == "cifar10 (grey.npz)"
    assert [path.name for path in (folders / "runs" / "prepared").rglob("*.npz")] == ["grey.npz.npz"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"y_test": None}, "lacks y_test"),
        ({"x_train": pixels(5).astype(float)}, "images are float64"),
        ({"x_train": pixels(5)[..., :2]}, r"images are uint8 \(5, 32, 32, 2\)"),
        ({"y_train": np.arange(4)}, r"5 images have labels int64 \(4,\)"),
        ({"y_train": np.arange(5.0)}, "labels float64"),
        ({"y_test": np.array([0, 10])}, "labels run from 0 to 10, expected 0 to 9"),
        ({"y_test": np.array([0, -1])}, "labels run from -1"),
        ({"x_test": pixels(2, 5)}, r"bad\.npz has 5 x 5 pixels, expected 32 x 32"),
        ({"x_train": np.array([{}] * 5)}, "Object arrays cannot be loaded"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arrays_of_another_form_are_refused_and_lose_nothing(folders, changes, message):
    kept = data.take_in("cifar10", saved(folders / "good.npz", arrays()))
    with pytest.raises(ValueError, match=message):
        data.take_in("cifar10", saved(folders / "bad.npz", arrays(**changes)))
    assert data.load("cifar10", subset=True).digest == kept.digest


@pytest.mark.parametrize("name", ["cifar100", "tiny_imagenet"])
def test_labels_of_classes_that_have_numbers_are_in_range_too(folders, name):
    side, most, _ = data.FORMS[name]
    images = {"x_train": pixels(5, side), "x_test": pixels(2, side)}
    found = data.take_in(name, saved(folders / "mine.npz", arrays(y_train=np.array([0, 1, 2, 3, most - 1]), **images)))
    assert len(found.classes) == most  # most of them without an image
    for label in (most, 2**62, -1):
        with pytest.raises(ValueError, match=rf"worse\.npz: labels run from .*, expected 0 to {most - 1}"):
            data.take_in(name, saved(folders / "worse.npz", arrays(y_train=np.array([0, 1, 2, 3, label]), **images)))


@pytest.mark.parametrize("part", ["train", "test"])
def test_a_copy_without_images_for_a_part_is_refused(folders, part):
    empty = {f"x_{part}": pixels(0), f"y_{part}": np.zeros(0, np.int64)}
    with pytest.raises(ValueError, match=rf"mine\.npz holds no image for {part}; add some"):
        data.take_in("cifar10", saved(folders / "mine.npz", arrays(**empty)))
    picture = png(pixels(1)[0])
    with zipfile.ZipFile(folders / "mine.zip", "w") as archive:
        archive.writestr(f"{'test' if part == 'train' else 'train'}/cat/1.png", picture)
    with pytest.raises(ValueError, match=rf"mine\.zip holds no image for {part}; add some"):
        data.take_in("cifar10", folders / "mine.zip")


def npy(header, values=b""):
    """A file of NumPy with a description of its own."""
    described = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(described).to_bytes(2, "little") + described + values


HUGE = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 4, 4, 3)}"


@pytest.mark.parametrize("contents", [
    b"no array", npy("{'descr'"), npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), npy(HUGE % 2**40),
    npy(HUGE % 2**70), npy(HUGE % -1), npy("["), npy(HUGE % 5, bytes(3)),
], ids=["text", "cut", "object", "huge", "larger", "negative", "bracket", "short"])
def test_arrays_that_numpy_cannot_read_are_refused_by_name(folders, contents):
    members = {name: contents if name == "x_train" else None for name in ("x_train", "y_train", "x_test", "y_test")}
    path = saved(folders / "mine.npz", arrays())
    with zipfile.ZipFile(path) as archive:
        members = {name: value or archive.read(f"{name}.npy") for name, value in members.items()}
    path.write_bytes(mutations.zipped([(f"{name}.npy", value) for name, value in members.items()]))
    with pytest.raises(ValueError, match=r"mine\.npz is not an \.npz of images and labels: ."):
        data.take_in("cifar10", path)


def test_a_fault_of_the_program_is_not_blamed_on_the_file(folders, monkeypatch):
    monkeypatch.setattr(np, "load", lambda file: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        data.take_in("cifar10", saved(folders / "mine.npz", arrays()))


def test_arrays_that_unpack_to_too_much_are_refused(folders, monkeypatch):
    monkeypatch.setitem(data.FORMS, "cifar10", data.FORMS["cifar10"]._replace(images=51))
    for count, message in ((100, r"mine\.npz is not an \.npz .*: x_train, .* unpack to 3\d\d,\d+ bytes, at most 222,"),
                           (50, r"mine\.npz holds more images than the 51 of the data set; leave some out")):
        mine = arrays(x_train=pixels(count), y_train=np.zeros(count, int))
        with pytest.raises(ValueError, match=message):
            data.take_in("cifar10", saved(folders / "mine.npz", mine))
    mine = arrays(x_train=pixels(49), y_train=np.zeros(49, int))
    assert len(data.take_in("cifar10", saved(folders / "mine.npz", mine)).images) == 51


@pytest.mark.parametrize("form", ["folder", "zip", "tar.xz"])
def test_more_images_than_the_data_set_has_are_refused(folders, monkeypatch, form):
    pictures = [png(image) for image in pixels(4)]
    files = {f"{part}/cat/{number}.png": each for part in ("train", "test") for number, each in enumerate(pictures)}
    path = packed(folders / f"mine.{form}", files)
    monkeypatch.setitem(data.FORMS, "cifar10", data.FORMS["cifar10"]._replace(images=8))
    assert len(data.take_in("cifar10", path).images) == 8
    monkeypatch.setitem(data.FORMS, "cifar10", data.FORMS["cifar10"]._replace(images=7))
    with pytest.raises(ValueError, match=rf"mine\.{form} holds more images than the 7 of the data set; leave some out"):
        data.take_in("cifar10", path)


@pytest.mark.parametrize("name", data.FORMS)
def test_a_copy_may_have_as_many_images_as_the_data_set(name):
    split, = manifest.load_manifest(name).splits.values()
    assert data.FORMS[name].images == split.expect["train"] + split.expect["test"]


@pytest.mark.parametrize("damage", [lambda content: content[:-30], lambda content: b"", lambda content: b"x" * 99,
                                    lambda content: content.replace(b"labels", b"lapels")])
def test_a_copy_that_was_damaged_since_is_named_with_the_command_that_mends_it(folders, damage):
    original = saved(folders / "mine.npz", arrays())
    before = data.take_in("cifar10", original).digest
    kept, = (folders / "runs" / "prepared" / "cifar10-imported").iterdir()
    kept.write_bytes(damage(kept.read_bytes()))
    with pytest.raises(ValueError, match=rf"{kept} is damaged .*; run `repro data import cifar10 FILE` again"):
        data.load("cifar10", subset=True)
    assert data.take_in("cifar10", original).digest == before


@pytest.mark.parametrize("form", ["folder", "zip", "tar.xz"])
@pytest.mark.parametrize("outer", ["", "copy/"])
def test_a_copy_in_class_folders(folders, form, outer):
    images = pixels(4)
    names = ("train/{0}/1.png", "train/{1}/0.png", "train/{1}/1.png", "val/{0}/0.png")
    for name, classes, labels in (
        ("cifar10", ("cat", "dog"), [3, 5, 5, 3]),
        ("cifar100", ("apple", "bear"), [0, 1, 1, 0]),  # whose class names are not known beforehand
    ):
        files = {outer + name.format(*classes): png(image) for name, image in zip(names, images, strict=True)}
        files |= {f"{outer}train/{classes[0]}/._1.png": b"", f"{outer}notes.txt": b"mine"}
        found = data.take_in(name, packed(folders / f"{name}.{form}", files))
        same_as(found, images, labels)
        assert found.test.tolist() == [False, False, False, True]
        assert found.classes == (data.CLASSES["cifar10"] if name == "cifar10" else classes)


def packed(path, files):
    """Files as a folder, zip or tar archive, whichever the suffix says."""
    form = path.suffix
    if form == ".folder":
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    elif form == ".zip":
        zipped(path, files)
    else:
        with tarfile.open(path, "w:xz") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


NUMBERED = [f"class {number}" for number in range(100)]


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("cifar100", {"class_names": data.CLASSES["cifar10"]}, "10 classes, airplane to truck, .*the 100 of cifar100"),
        ("cifar10", {"class_names": NUMBERED}, "100 classes, class 0 to class 99, .*the 10 of cifar10: airplane, auto"),
        ("cifar100", {"y_test": np.array([0, 100])}, "labels run from 0 to 100, expected 0 to 99"),
        ("cifar100", {"class_names": np.array([{}])}, "Object arrays"),
        ("stl10", {}, r"mine\.npz has 32 x 32 pixels, expected 96 x 96; take it in as the data set it is a copy of"),
        ("stl10", {"x_train": pixels(5, 96), "x_test": pixels(2, 96), "class_names": data.CLASSES["cifar10"]},
         "airplane to truck, expected the 10 of stl10"),
        ("tiny_imagenet", {}, "expected 64 x 64"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arrays_of_another_data_set_are_refused(folders, name, changes, message):
    with pytest.raises(ValueError, match=message):
        data.take_in(name, saved(folders / "mine.npz", arrays(**changes)))
    assert not list((folders / "runs").rglob("*.npz"))


def test_class_names_of_the_whole_data_set_are_accepted(folders):
    path = saved(folders / "mine.npz", arrays(class_names=NUMBERED))
    assert data.take_in("cifar100", path).labels.tolist() == [0, 1, 2, 3, 4, 9, 0]
    path = saved(folders / "mine.npz", arrays(class_names=data.CLASSES["cifar10"]))
    assert data.take_in("cifar10", path).classes == data.CLASSES["cifar10"]


@pytest.mark.parametrize(
    "classes, size, message",
    [
        (["cat", "dog"], (32, 32), "2 classes, cat to dog, expected the 100 of cifar100"),
        ([f"{number:03}" for number in range(101)], (32, 32), "101 classes, 000 to 100"),
        (["apple", "bear"], (200, 300), "200 x 300 pixels, expected 32 x 32"),
    ],
    ids=["cifar10", "many", "size"],
)
def test_class_folders_of_another_data_set_are_refused(folders, classes, size, message):
    picture = png(np.zeros((*size, 3), dtype=np.uint8))
    path = zipped(folders / "mine.zip", {f"train/{name}/0.png": picture for name in classes})
    with pytest.raises(ValueError, match=message):
        data.take_in("cifar100", path)


@pytest.mark.parametrize(
    "files, message",
    [
        ({"train/cut/0.png": png(pixels(1)[0])}, "did you mean 'cat'"),
        ({"train/cat/0.png": png(pixels(1)[0]), "train/dog/0.png": png(pixels(1, 5)[0])},
         r"bad\.zip: train/dog/0\.png has 5 x 5 pixels, expected 32 x 32"),
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
    (folders / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"notes\.txt is no \.npz, zip or tar archive.*x_train, .*train/CLASS/\*\.png"):
        data.take_in("cifar10", folders / "notes.txt")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        data.take_in("cifar10", folders / "nothing.npz")
    with pytest.raises(ValueError, match="dataset='digits'"):
        data.take_in("digits", folders / "noise.npz")


@pytest.mark.parametrize("name", data.LEFT_IN_FILES)
def test_imagenet_is_not_taken_in(folders, name):
    with pytest.raises(ValueError, match=rf"{name} is not taken in: .*imagenet.train and .*imagenet.val; .*--subset"):
        data.take_in(name, folders)


def jpeg(width, height, mode="RGB"):
    stream = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)).convert(mode).save(stream, "JPEG")
    return stream.getvalue()


LISTED = imagenet100_classes()[:3]  # not in the order of their names
IMAGENET = {
    f"train/{LISTED[0]}/b.JPEG": jpeg(9, 7), f"train/{LISTED[0]}/a.JPEG": jpeg(4, 5, "L"),
    f"train/{LISTED[1]}/a.JPEG": jpeg(3, 8, "CMYK"), f"train/{LISTED[2]}/c.jpg": jpeg(6, 6),
    "train/n00000000/o.JPEG": jpeg(5, 5), "val/n00000000/o.JPEG": jpeg(5, 5),
    **{f"val/{wnid}/val_{place}.JPEG": jpeg(5, 6) for place, wnid in enumerate(LISTED)},
    "train/.DS_Store": b"", "train/n00000000/._o.JPEG": b"", f"val/{LISTED[1]}/notes.txt": b"mine",
    "val/.hidden/x.JPEG": b"", "train/list.txt": b"mine",
}


@pytest.fixture
def imagenet(folders):
    """ImageNet of four classes, three of them among the hundred; returns its folder."""
    root = folders / "data" / "imagenet"
    for name, content in IMAGENET.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def listed(found):
    """(path, class, for training) of every image."""
    names = [name.decode() for name in found.images.names]
    return list(zip(names, [found.classes[label] for label in found.labels], found.train.tolist(), strict=True))


def test_a_part_of_imagenet_stays_in_its_files(imagenet):
    before = sorted(imagenet.rglob("*"))
    found = data.load("imagenet", subset=True)
    names = [name for name in IMAGENET if name.count("/") == 2 and not Path(name).name.startswith(".")]
    pictures = sorted(name for name in names if name.lower().endswith(("jpeg", "jpg")) and ".hidden" not in name)
    assert listed(found) == [(name, name.split("/")[1], name.startswith("train")) for name in pictures]
    assert found.classes == tuple(sorted((*LISTED, "n00000000"))) and found.name == "imagenet (subset)"
    assert found.labels.dtype == torch.int64
    assert torch.equal(found.pretrain, found.train) and torch.equal(found.test, ~found.train)
    assert data.describe(found) == (
        "imagenet (subset): 9 images of various sizes, 4 classes; 5 for pretrain, 5 for train, 4 for test"
    )
    for place, name in enumerate(pictures):
        expected = Image.open(imagenet / name).convert("RGB")
        np.testing.assert_array_equal(found.images.read(place), expected)
    assert sorted(imagenet.rglob("*")) == before and len(found.images) == len(pictures)


def test_imagenet100_takes_its_classes_in_the_printed_order(imagenet):
    found = data.load("imagenet100", subset=True)
    assert found.classes == LISTED and found.name == "imagenet100 (subset)"
    assert found.labels[found.train].tolist() == [0, 0, 1, 2] and found.labels[found.test].tolist() == [0, 1, 2]
    assert all(name.split("/")[1] == wnid for name, wnid, _ in listed(found))
    assert len(set(imagenet100_classes())) == 100


def test_imagenet_is_listed_once(imagenet, folders, monkeypatch):
    for name in ("imagenet100", "imagenet"):
        first = data.load(name, subset=True)
        with monkeypatch.context() as patched:
            patched.delattr("repro.image.imagenet.listing")
            again = data.load(name, subset=True)
        assert listed(again) == listed(first) and again.digest == first.digest
    kept, = (folders / "runs" / "prepared").glob("imagenet-*.npz")
    kept.write_bytes(kept.read_bytes()[:-100])
    assert data.load("imagenet", subset=True).digest == first.digest


def test_a_listing_follows_the_folders(imagenet):
    digests = {data.load("imagenet", subset=True).digest}
    added = imagenet / "train" / LISTED[0] / "new.JPEG"
    added.write_bytes(jpeg(4, 4))
    found = data.load("imagenet", subset=True)
    assert len(found.images) == 10
    digests.add(found.digest)
    added.unlink()
    assert data.load("imagenet", subset=True).digest in digests
    for part in ("train", "val"):
        (imagenet / part / "n00000001").mkdir()
        (imagenet / part / "n00000001" / "x.png").write_bytes(png(pixels(1)[0]))
    found = data.load("imagenet", subset=True)
    assert found.classes[1] == "n00000001" and found.digest not in digests


def test_the_digest_is_that_of_classes_paths_and_sizes(imagenet, folders):
    digest = data.load("imagenet", subset=True).digest
    moved = folders / "elsewhere" / "imagenet"
    moved.parent.mkdir()
    imagenet.rename(moved)
    assert data.load("imagenet", moved.parent, subset=True).digest == digest
    path = moved / "train" / LISTED[0] / "a.JPEG"
    path.rename(path.with_name("aa.JPEG"))
    assert data.load("imagenet", moved.parent, subset=True).digest != digest
    path.with_name("aa.JPEG").rename(path)
    assert data.load("imagenet", moved.parent, subset=True).digest == digest
    path.unlink()
    path.write_bytes(b"another size")
    assert data.load("imagenet", moved.parent, subset=True).digest != digest


def test_imagenet_is_checked_against_ilsvrc(imagenet, monkeypatch):
    with pytest.raises(ValueError, match=r"'train': 5, 'test': 4, 'classes': 4.*1281167.*50000.*1000.*subset=True"):
        data.load("imagenet")
    with pytest.raises(ValueError, match=r"'test': 3, 'classes': 3.*1 to 2 training.*5000.*732 to 1300.*image-net.org"):
        data.load("imagenet100")
    declared(monkeypatch, "imagenet", train=5, test=4, classes=4)
    declared(monkeypatch, "imagenet100", test=3, classes=3)
    for bounds, fits in (((1, 2), True), ((2, 2), False), ((1, 1), False)):
        monkeypatch.setattr("repro.image.imagenet.PER_CLASS", bounds)
        for name in ("imagenet", "imagenet100"):
            if fits:
                assert data.load(name).name == name
            else:
                with pytest.raises(ValueError, match="1 to 2 training images of a class"):
                    data.load(name)


def test_a_class_must_have_pictures_in_both_parts(imagenet):
    for part in ("train", "val"):
        (imagenet / part / "n00000009").mkdir()  # empty in both: no class
    assert len(data.load("imagenet", subset=True).classes) == 4
    lonely = imagenet / "val" / LISTED[0] / "val_0.JPEG"
    lonely.unlink()
    for name, count in (("imagenet", 4), ("imagenet100", 3)):
        with pytest.raises(ValueError, match=rf"{count} classes in train.* {count - 1} in val.*alone: {LISTED[0]}"):
            data.load(name, subset=True)


def test_pictures_outside_class_folders_are_no_classes(imagenet):
    for path in imagenet.glob("val/*/*.JPEG"):
        path.rename(imagenet / "val" / path.name)
    with pytest.raises(ValueError, match=r"4 classes in train/<class>/ and of 0 in val/.*the folder of its class"):
        data.load("imagenet", subset=True)
    shutil.rmtree(imagenet / "train")
    (imagenet / "train").mkdir()
    with pytest.raises(ValueError, match=r"of 0 classes in train/<class>/ and of 0"):
        data.load("imagenet", subset=True)


@pytest.mark.parametrize("name", ["imagenet", "imagenet100"])
def test_missing_imagenet_says_where_it_goes(imagenet, name):
    shutil.rmtree(imagenet / "val")
    with pytest.raises(FileNotFoundError, match=r"lacks \S*imagenet.val; .*https://image-net.org/download.php"):
        data.load(name, subset=True)
    shutil.rmtree(imagenet)
    with pytest.raises(FileNotFoundError, match=r"lacks \S*imagenet.train; "):
        data.load(name)


def test_a_damaged_picture_of_imagenet_is_named(imagenet):
    path = imagenet / "train" / LISTED[2] / "c.jpg"
    path.write_bytes(path.read_bytes()[:-300])
    found = data.load("imagenet100", subset=True)
    with pytest.raises(ValueError, match=r"n\d+.c\.jpg cannot be read as a picture (?i:.*truncated).*fetch it"):
        found.images.read(3)


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
