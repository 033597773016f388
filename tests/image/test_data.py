"""Image sets from made-up files in the official layouts: arrays of small images, and ImageNet left in its files."""

import contextlib
import dataclasses
import hashlib
import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import Timeout
from image_files import RNG, declared, pixels, png, same_as, zipped
from packed import write_folder, write_tar
from PIL import Image
from sklearn.datasets import load_digits
from torchvision import datasets

from repro.data import manifest
from repro.data.disk import acquire
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
    files = {f"data_batch_{number + 1}": slice(3 * number, 3 * number + 3) for number in range(5)}
    contents = {
        name: pickle.dumps({"data": images[part].transpose(0, 3, 1, 2).reshape(-1, 3072), "labels": labels[part]})
        for name, part in (files | {"test_batch": slice(15, 17)}).items()
    }
    lists = [[name, md5(content)] for name, content in contents.items()]
    contents["batches.meta"] = pickle.dumps({"label_names": list(DATASETS["cifar10"].images.names)})
    contents["readme.html"] = b""
    meta = {"filename": "batches.meta", "key": "label_names", "md5": md5(contents["batches.meta"])}
    for name, value in {"train_list": lists[:5], "test_list": lists[5:], "meta": meta}.items():
        monkeypatch.setattr(datasets.CIFAR10, name, value)
    declared(monkeypatch, "cifar10", train=15, test=2)
    path = folders / "data" / "cifar10" / "cifar-10-python.tar.gz"
    return write_tar(path, contents, "cifar-10-batches-py"), images, labels


@pytest.fixture
def mine(folders, monkeypatch):
    """Declares the data set `mine`, which is one file of that name, and what it expects; returns where that lies."""
    def declare(name, **expected):
        like = dataclasses.replace(DATASETS["cifar10"], name="mine", files=(Archive(name=name),))
        monkeypatch.setitem(DATASETS, "mine", like)
        declared(monkeypatch, "mine", **expected)
        return folders / "data" / name

    return declare


def pngs(names, images):
    return {f"{name}.png": png(image) for name, image in zip(names, images, strict=True)}


def test_digits_are_scikit_learns():
    digits, expected = data.load("digits"), load_digits()
    np.testing.assert_array_equal(digits.images[:, 0], np.round(expected.images * 255 / 16))
    assert (digits.images == digits.images[:, :1]).all() and digits.images.max() == 255
    assert digits.labels.tolist() == expected.target.tolist()
    assert (digits.pretrain.sum(), digits.train.sum(), digits.test.sum()) == (1347, 1347, 450)
    with pytest.raises(ValueError, match="subset=True is not for digits, which is bundled and whole"):
        data.load("digits", subset=True)


@pytest.mark.parametrize("unpacked", [False, True])
def test_cifar_from_its_archive_or_folder(cifar, unpacked, folders):
    path, images, labels = cifar
    if unpacked:
        with tarfile.open(path) as archive:
            archive.extractall(path.parent, filter="data")
        path.unlink()
    before = sorted(path.parent.rglob("*"))
    for _ in range(3):  # read, then from what was prepared, which is damaged since
        found = data.load("cifar10")
        same_as(found, images, labels)
        assert found.train.tolist() == found.pretrain.tolist() == [True] * 15 + [False] * 2
        assert torch.equal(found.test, ~found.train)
        assert found.classes == DATASETS["cifar10"].images.names and found.name == "cifar10"
        prepared, = (folders / "runs" / "prepared").glob("cifar10-*.npz")
        prepared.write_bytes(prepared.read_bytes()[: -100 if _ else None])
    assert sorted(path.parent.rglob("*")) == before  # nothing is written beside the data


def test_another_distribution_than_the_official_one_is_refused(cifar, monkeypatch):
    declared(monkeypatch, "cifar10", train=15, test=2, classes=11)
    with pytest.raises(ValueError, match=r"classes 10; expected .*classes 11; complete it"):
        data.load("cifar10")
    declared(monkeypatch, "cifar10", train=50000, test=10000)
    with pytest.raises(ValueError, match=r"train 15, test 2; expected train 50,000, .*repro data import cifar10"):
        data.load("cifar10")
    monkeypatch.setattr(datasets.CIFAR10, "test_list", [["test_batch", "0" * 32]])
    with pytest.raises(ValueError, match="not the official distribution"):
        data.load("cifar10")


def test_stl10_pre_trains_on_its_unlabeled_images(folders, monkeypatch):
    images, files = {}, {"class_names.txt": "\n".join(DATASETS["stl10"].images.names).encode()}
    for part, count in (("train", 3), ("test", 2), ("unlabeled", 4)):
        images[part] = RNG.integers(0, 256, (count, 3, 96, 96), dtype=np.uint8)
        files[f"{part}_X.bin"] = images[part].transpose(0, 1, 3, 2).tobytes()  # down a column first
        if part != "unlabeled":
            files[f"{part}_y.bin"] = (np.arange(count, dtype=np.uint8) + 1).tobytes()
    write_folder(folders / "data" / "stl10" / "stl10_binary", files)
    sums = [[name, md5(content)] for name, content in files.items() if name.endswith(".bin")]
    monkeypatch.setattr(datasets.STL10, "test_list", [row for row in sums if row[0].startswith("test")])
    monkeypatch.setattr(datasets.STL10, "train_list", [row for row in sums if not row[0].startswith("test")])
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
    with pytest.raises(ValueError, match="train 3, test 2, classes 2; expected train 100,000"):
        data.load("tiny_imagenet")
    part = data.take_in("tiny_imagenet", path)
    declared(monkeypatch, "tiny_imagenet", images={"classes": 2}, train=3, test=2)
    whole = data.load("tiny_imagenet")
    for found in (part, whole):
        same_as(found, images, [0, 1, 1, 0, 1])
        assert found.test.tolist() == [False] * 3 + [True] * 2 and found.classes == ("n01", "n02")
    assert (part.name, whole.name) == ("tiny_imagenet (tiny-imagenet-200.zip)", "tiny_imagenet")
    assert part.digest == whole.digest
    files["tiny-imagenet-200/val/images/val_7.JPEG"] = files["tiny-imagenet-200/val/images/val_0.JPEG"]
    declared(monkeypatch, "tiny_imagenet", train=9, test=9)
    with pytest.raises(ValueError, match=r"val_7.JPEG is not in val/val_annotations.txt"):
        data.take_in("tiny_imagenet", zipped(folders / "part.zip", files))


def test_a_data_set_of_another_name_is_its_manifest(mine, monkeypatch):
    """Its official files are in a form that has a reader, which needs no more."""
    images, kind = pixels(5, 32), {"classes": ("cat", "dog"), "reader": "numpy_file"}
    path = mine("mine/mine.npz", images=kind, train=3, test=2, classes=2)
    path.parent.mkdir(parents=True)
    np.savez(path, x_train=images[:3], y_train=[0, 1, 1], x_test=images[3:], y_test=[0, 1])
    found = data.load("mine")
    same_as(found, images, [0, 1, 1, 0, 1])
    assert found.classes == ("cat", "dog") and found.test.tolist() == [False] * 3 + [True] * 2
    declared(monkeypatch, "mine", train=9, test=2)
    with pytest.raises(ValueError, match="holds other numbers of images than mine: train 3, test 2; expected train 9"):
        data.load("mine")  # what was prepared by another manifest does not count
    declared(monkeypatch, "mine", images={"reader": "numpy_fil"})
    with pytest.raises(ValueError, match=r"did you mean 'numpy_file'. .*mine.yaml: reader='numpy_fil' is not one of"):
        data.load("mine")


UNSPLIT = {"classes": 2, "reader": "unsplit_class_folders", "test_every": 2}


@pytest.mark.parametrize("zipped_up", [False, True])
def test_class_folders_without_parts_are_split_by_the_names_of_their_files(mine, zipped_up):
    """Of three cats and two dogs every second, by name, is for test: cat/1 and dog/b."""
    path = mine("mine.zip" if zipped_up else "mine", images=UNSPLIT, train=3, test=2)
    images = pixels(5, 32)
    files = pngs(("cat/0", "cat/1", "cat/2", "dog/a", "dog/b"), images)
    if zipped_up:
        zipped(path, {f"pets/{name}": content for name, content in files.items()})
    else:
        write_folder(path, dict(reversed(files.items())))
    found = data.load("mine")
    same_as(found, images, [0, 0, 0, 1, 1])
    assert found.classes == ("cat", "dog") and found.test.tolist() == [False, True, False, False, True]


@pytest.mark.parametrize(("names", "every", "message"), [
    ("cat/0 cat/1 dog/0 loose", 2, r"loose.png does not lie in a folder <class>/"),
    ("cat/0 cat/1 cat/2 dog/0", 3, r"1 of 2 classes .* for test, the first is 'dog' \(test_every=3\); add some"),
    ("cat/images/0 cat/images/1", 2, r"mine: train 1, test 1, classes 1; expected train 1, test 1, classes 2; comp"),
    ("cat/images/0 dog/images/0", 2, r"dog/images/0.png does not lie in cat/<class>/ as those before it; put the p"),
])
def test_class_folders_that_cannot_be_split_are_refused(mine, names, every, message):
    """CLASS/images/*.png would be a class `images`; that of one class alone tells by the number of classes."""
    count = len(names.split())
    folder = mine("mine", images=UNSPLIT | {"test_every": every}, train=count - count // every, test=count // every)
    write_folder(folder, pngs(names.split(), pixels(count, 32)))
    with pytest.raises(ValueError, match=message):
        data.load("mine")


@pytest.mark.parametrize("images", [
    {"reader": "class_folders", "test_every": 5}, {"reader": "unsplit_class_folders"},
    *({"reader": "unsplit_class_folders", "test_every": every} for every in (0, 1)),
])
def test_a_split_by_names_is_declared_where_there_is_no_other(images):
    with pytest.raises(ValueError, match=r"the reader unsplit_class_folders and test_every|greater than or equal to 2"):
        dataclasses.replace(DATASETS["cifar10"].images, **images)


def test_pictures_that_change_in_a_folder_are_read_again(mine):
    """Also behind links."""
    folder = mine("mine", images={"classes": ("cat", "dog"), "reader": "class_folders"}, train=2, test=2)
    images, names = pixels(4, 32), ("train/cat/0", "train/dog/0", "test/cat/0", "test/dog/0")
    write_folder(folder.with_name("elsewhere"), pngs(names, images))
    folder.mkdir()
    for part in ("train", "test"):
        (folder / part).symlink_to(Path("..") / "elsewhere" / part)
    same_as(data.load("mine"), images, [0, 1, 0, 1])
    images[1] = 255 - images[1]
    (folder / "train" / "dog" / "0.png").write_bytes(png(images[1]))
    (folder / "train" / "dog" / ".#0.png").symlink_to("nowhere")  # of an editor
    same_as(data.load("mine"), images, [0, 1, 0, 1])
    for name in names[:2]:
        (folder / f"{name}.png").unlink()
    with pytest.raises(ValueError, match="mine: 2 of 2 classes have no picture for train, the first is"):
        data.load("mine")


# ---------------------------------------------------------------------------------------------- ImageNet


def jpeg(width, height, mode="RGB"):
    stream = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)).convert(mode).save(stream, "JPEG")
    return stream.getvalue()


LISTED = DATASETS["imagenet100"].images.names[:3]  # not in the order of their names
IMAGES = {
    f"train/{LISTED[0]}/b.JPEG": jpeg(9, 7), f"train/{LISTED[0]}/a.JPEG": jpeg(4, 5, "L"),
    f"train/{LISTED[1]}/a.JPEG": jpeg(3, 8, "CMYK"), f"train/{LISTED[2]}/c.jpg": jpeg(6, 6),
    "train/n00000000/o.JPEG": jpeg(5, 5), "val/n00000000/o.JPEG": jpeg(5, 5),
    **{f"val/{wnid}/val_{place}.JPEG": jpeg(5, 6) for place, wnid in enumerate(LISTED)},
}
OTHERS = {"train/.DS_Store": b"", "train/n00000000/._o.JPEG": b"", f"val/{LISTED[1]}/notes.txt": b"mine",
          "val/.hidden/x.JPEG": b"", "train/list.txt": b"mine"}


@pytest.fixture
def imagenet(folders):
    """ImageNet of four classes, three of them among the hundred; returns its folder."""
    return write_folder(folders / "data" / "imagenet", IMAGES | OTHERS)


def listed(found):
    """(path, class, for training) of every image."""
    names = [name.decode() for name in found.images.names]
    return list(zip(names, [found.classes[label] for label in found.labels], found.train.tolist(), strict=True))


def test_a_part_of_imagenet_stays_in_its_files_whose_order_on_the_disk_does_not_matter(imagenet, monkeypatch):
    @contextlib.contextmanager
    def backwards(folder, scandir=os.scandir):
        with scandir(folder) as entries:
            yield sorted(entries, key=lambda entry: entry.name, reverse=True)

    before = sorted(imagenet.rglob("*"))
    monkeypatch.setattr(readers.os, "scandir", backwards)
    found = data.load("imagenet", subset=True)
    assert listed(found) == [(name, name.split("/")[1], name.startswith("train")) for name in sorted(IMAGES)]
    assert found.classes == tuple(sorted((*LISTED, "n00000000"))) and found.labels.dtype == torch.int64
    hundred = data.load("imagenet100", subset=True)  # in the printed order
    assert hundred.classes == LISTED and hundred.name == "imagenet100 (subset)"
    assert hundred.labels[hundred.train].tolist() == [0, 0, 1, 2] and hundred.labels[hundred.test].tolist() == [0, 1, 2]
    assert torch.equal(found.pretrain, found.train) and torch.equal(found.test, ~found.train)
    assert data.describe(found) == (
        "imagenet (subset): 9 images of various sizes, 4 classes; 5 for pretrain, 5 for train, 4 for test"
    )
    for place, name in enumerate(sorted(IMAGES)):
        np.testing.assert_array_equal(found.images.read(place), Image.open(imagenet / name).convert("RGB"))
    assert sorted(imagenet.rglob("*")) == before


def test_imagenet_is_listed_once_until_a_folder_changes(imagenet, folders, monkeypatch):
    for name in ("imagenet100", "imagenet"):
        first = data.load(name, subset=True)
        with monkeypatch.context() as patched:
            patched.delattr("repro.image.readers.listing")
            again = data.load(name, subset=True)
        assert listed(again) == listed(first) and again.digest == first.digest
    kept, = (folders / "runs" / "prepared").glob("imagenet-*.npz")
    kept.write_bytes(kept.read_bytes()[:-100])
    assert data.load("imagenet", subset=True).digest == first.digest
    new = imagenet / "train" / LISTED[0] / "new.JPEG"
    new.write_bytes(jpeg(4, 4))
    more = data.load("imagenet", subset=True)
    renamed = new.rename(new.with_name("renamed.JPEG"))
    digests = {first.digest, more.digest, data.load("imagenet", subset=True).digest}
    renamed.unlink()
    new.write_bytes(b"another size")
    digests.add(data.load("imagenet", subset=True).digest)
    assert len(more.images) == 10 and len(digests) == 4
    for part in ("train", "val"):
        write_folder(imagenet / part / "n00000001", {"x.png": png(pixels(1)[0])})
    last = data.load("imagenet", subset=True)
    assert last.classes[1] == "n00000001"
    (folders / "elsewhere").mkdir()
    imagenet.rename(folders / "elsewhere" / "imagenet")
    assert data.load("imagenet", folders / "elsewhere", subset=True).digest == last.digest


def test_imagenet_is_checked_against_ilsvrc(imagenet, monkeypatch):
    with pytest.raises(ValueError, match=r"train 5, test 4, classes 4, least 1; .*1,281,167.*732; .*subset=True"):
        data.load("imagenet")
    with pytest.raises(ValueError, match=r"test 3, classes 3, least 1; expected test 5,000, .*least 732; .*image-net"):
        data.load("imagenet100")
    declared(monkeypatch, "imagenet", train=5, test=4, classes=4, least=1, most=2)
    assert data.load("imagenet").name == "imagenet"
    for bounds, message in (({"least": 2, "most": 2}, "least 1; exp.*least 2;"), ({"most": 1}, "most 2; exp.*most 1;")):
        declared(monkeypatch, "imagenet", train=5, test=4, classes=4, **bounds)
        with pytest.raises(ValueError, match=message):
            data.load("imagenet")


def test_a_class_must_have_pictures_in_both_parts(imagenet):
    for part in ("train", "val"):
        (imagenet / part / "n00000009").mkdir()  # empty in both: no class
    assert len(data.load("imagenet", subset=True).classes) == 4
    (imagenet / "val" / LISTED[0] / "val_0.JPEG").unlink()
    for name, count in (("imagenet", 4), ("imagenet100", 3)):
        with pytest.raises(ValueError, match=rf"{count} classes in train.* {count - 1} in val.*alone: {LISTED[0]}"):
            data.load(name, subset=True)
    for path in imagenet.glob("val/*/*.JPEG"):
        path.rename(imagenet / "val" / path.name)
    with pytest.raises(ValueError, match=r"4 classes in train/<class>/ and of 0 in val/.*the folder of its class"):
        data.load("imagenet", subset=True)


def test_what_images_are_normalised_by_tells_data_apart(monkeypatch):
    """But for the values that runs were trained with before it did, whose digests are of the pictures alone."""
    pictures = readers.Pictures(pixels(1, 32), np.zeros(1, int), np.zeros(1, int), ("a",), "ab")
    assert [data.digest_of(name, pictures) for name in DATASETS] == ["ab"] * len(DATASETS)
    digest, digits = data.load("digits").digest, DATASETS["digits"]
    for changed in ({"mean": (0.1, 0.5, 0.9)}, {"deviation": (0.5, 0.5, 0.4)}):
        images = dataclasses.replace(digits.images, **changed)
        monkeypatch.setitem(DATASETS, "digits", dataclasses.replace(digits, images=images))
        assert data.load("digits").digest != digest


def test_one_archive_is_taken_in_by_one_command_at_a_time(folders, monkeypatch):
    """Both would read the folder that it is unpacked to, and who is done first removes it."""
    names = [f"{part}/{name}/0" for part in ("train", "test") for name in DATASETS["cifar10"].images.names]
    path = zipped(folders / "mine.zip", pngs(names, pixels(20, 32)))
    read, held = readers.class_folders, []

    def while_held(*arguments):
        with pytest.raises(Timeout):
            acquire(manifest.imported("cifar10").with_suffix(".lock"))
        held.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(readers, "class_folders", while_held)
    assert len(data.take_in("cifar10", path).images) == 20 and held
