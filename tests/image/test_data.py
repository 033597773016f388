"""Image sets from made-up files in the official layouts."""

import dataclasses
import hashlib
import io
import pickle
import tarfile

import numpy as np
import pytest
from image_files import RNG, declared, pixels, png, same_as, zipped
from sklearn.datasets import load_digits
from torchvision import datasets

from repro.data.manifest import Archive
from repro.image import DATASETS, data, readers
from repro.image.readers import PARTS

pytestmark = pytest.mark.usefixtures("folders")


def md5(contents):
    return hashlib.md5(contents).hexdigest()


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
    contents["batches.meta"] = pickle.dumps({"label_names": list(DATASETS["cifar10"].images.names)})
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


def test_of_embedded_images_there_is_no_part():
    with pytest.raises(ValueError, match="subset=True is not for digits, which is embedded and whole; leave --subset"):
        data.load("digits", subset=True)


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
        assert found.classes == DATASETS["cifar10"].images.names and found.name == "cifar10"
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
    with pytest.raises(ValueError, match=r"train 15, test 2; expected train 50,000, .*repro data import cifar10"):
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
    (folder / "class_names.txt").write_text("\n".join(DATASETS["stl10"].images.names))
    for name, values in lists.items():
        monkeypatch.setattr(datasets.STL10, name, values)
    declared(monkeypatch, "stl10", train=3, test=2, unlabeled=4)
    found = data.load("stl10")
    np.testing.assert_array_equal(found.images, np.concatenate([images[part] for part in PARTS]))
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


def test_tiny_imagenet_official_or_a_part_of_it(folders, monkeypatch):
    files, images = tiny_files()
    path = zipped(folders / "data" / "tiny_imagenet" / "tiny-imagenet-200.zip", files)
    with pytest.raises(ValueError, match="train 3, test 2; expected train 100,000"):
        data.load("tiny_imagenet")
    part = data.take_in("tiny_imagenet", path)
    declared(monkeypatch, "tiny_imagenet", train=3, test=2)
    whole = data.load("tiny_imagenet")
    for found in (part, whole):
        same_as(found, images, [0, 1, 1, 0, 1])
        assert found.test.tolist() == [False] * 3 + [True] * 2 and found.classes == ("n01", "n02")
    assert (part.name, whole.name) == ("tiny_imagenet (tiny-imagenet-200.zip)", "tiny_imagenet")
    assert part.digest == whole.digest


@pytest.mark.parametrize("reader", ["class_folders", "numpy_file"])
def test_a_data_set_of_another_name_is_its_manifest(folders, monkeypatch, reader):
    """Its official files are in a form that has a reader, which needs no more."""
    images = pixels(5, 32)
    if reader == "class_folders":
        names = ("train/cat/0", "train/dog/0", "train/dog/1", "test/cat/0", "test/dog/0")
        files = {f"{name}.png": png(image) for name, image in zip(names, images, strict=True)}
        path = zipped(folders / "data" / "mine" / "mine.zip", files)
    else:
        path = folders / "data" / "mine" / "mine.npz"
        path.parent.mkdir(parents=True)
        np.savez(path, x_train=images[:3], y_train=[0, 1, 1], x_test=images[3:], y_test=[0, 1])
    like = dataclasses.replace(DATASETS["cifar10"], name="mine", files=(Archive(name=f"mine/{path.name}"),))
    monkeypatch.setitem(DATASETS, "mine", like)
    declared(monkeypatch, "mine", images={"classes": ("cat", "dog"), "reader": reader}, train=3, test=2, classes=2)
    found = data.load("mine")
    same_as(found, images, [0, 1, 1, 0, 1])
    assert found.classes == ("cat", "dog") and found.test.tolist() == [False] * 3 + [True] * 2
    declared(monkeypatch, "mine", images={"reader": "numpy_fil"})
    path.touch()
    with pytest.raises(ValueError, match=r"data_manifests/mine.yaml: reader='numpy_fil' is not one of: .*'numpy_file'"):
        data.load("mine")


def test_classes_are_counted_where_they_are_expected(cifar, monkeypatch):
    declared(monkeypatch, "cifar10", train=15, test=2, classes=11)
    with pytest.raises(ValueError, match=r"classes 10; expected .*classes 11; complete it"):
        data.load("cifar10")


def test_every_declared_reader_is_there_and_of_use():
    used = {manifest.images.reader for manifest in DATASETS.values()} - {None}
    assert {*readers.READERS} == used | {"class_folders", "numpy_file"}  # also those of copies


def test_a_validation_image_without_a_class_is_named(folders):
    files, _ = tiny_files()
    files["tiny-imagenet-200/val/images/val_7.JPEG"] = files["tiny-imagenet-200/val/images/val_0.JPEG"]
    with pytest.raises(ValueError, match=r"val_7.JPEG is not in val/val_annotations.txt"):
        data.take_in("tiny_imagenet", zipped(folders / "part.zip", files))
