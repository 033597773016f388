"""ImageNet, whole or a part, listed and left in its files."""

import dataclasses
import io
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import RNG, declared, pixels, png
from PIL import Image

from repro.data.manifest import Archive
from repro.image import DATASETS, data

pytestmark = pytest.mark.usefixtures("folders")


def jpeg(width, height, mode="RGB"):
    stream = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)).convert(mode).save(stream, "JPEG")
    return stream.getvalue()


LISTED = DATASETS["imagenet100"].images.names[:3]  # not in the order of their names
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


def test_imagenet_is_listed_once(imagenet, folders, monkeypatch):
    for name in ("imagenet100", "imagenet"):
        first = data.load(name, subset=True)
        with monkeypatch.context() as patched:
            patched.delattr("repro.image.readers.listing")
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
    with pytest.raises(ValueError, match=r"train 5, test 4, classes 4, least 1; .*1,281,167.*732; .*subset=True"):
        data.load("imagenet")
    with pytest.raises(ValueError, match=r"test 3, classes 3, least 1; expected test 5,000, .*least 732; .*image-net"):
        data.load("imagenet100")
    for bounds, fits in (({"least": 1, "most": 2}, True), ({"least": 2, "most": 2}, False),
                         ({"least": 1, "most": 1}, False), ({"most": 3}, True), ({}, True)):
        declared(monkeypatch, "imagenet", train=5, test=4, classes=4, **bounds)
        declared(monkeypatch, "imagenet100", test=3, classes=3, **bounds)
        for name in ("imagenet", "imagenet100"):
            if fits:
                assert data.load(name).name == name
            else:
                with pytest.raises(ValueError, match=r"least 1; expected .*least 2;|most 2; expected .*most 1;"):
                    data.load(name)


def test_another_data_set_in_class_folders_is_its_manifest(imagenet, monkeypatch):
    imagenet.rename(imagenet.with_name("pictures"))
    folders = tuple(Archive(name=f"pictures/{part}") for part in ("train", "val"))
    like = dataclasses.replace(DATASETS["imagenet"], name="mine", files=folders)
    monkeypatch.setitem(DATASETS, "mine", like)
    declared(monkeypatch, "mine", images={"classes": LISTED[1::-1]}, train=3, test=2)
    found = data.load("mine")
    assert found.classes == LISTED[1::-1] and found.labels[found.train].tolist() == [0, 1, 1]
    assert found.images.read(0).size == (3, 8)
    with pytest.raises(ValueError, match=r"mine is not taken in: .*pictures.train and .*pictures.val; "):
        data.take_in("mine", imagenet)


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
