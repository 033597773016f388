"""Users' copies of image sets, as arrays and in class folders, and the real partial copies."""

import os
import pickle
import tracemalloc
import zipfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from image_files import declared, pixels, png, same_as, zipped
from packed import write_folder, write_tar
from PIL import ExifTags, Image
from torchvision import datasets

from repro.data import manifest
from repro.image import DATASETS, data, readers

REAL = manifest.data_root()
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
pytestmark = pytest.mark.usefixtures("folders")


def arrays(**changes):
    usual = {"x_train": pixels(5), "y_train": np.arange(5), "x_test": pixels(2), "y_test": np.array([9, 0])}
    return {name: value for name, value in (usual | changes).items() if value is not None}


def saved(path, values):
    """An `.npz`, in which bytes stand for an array as they are."""
    np.savez(path, **{name: value for name, value in values.items() if type(value) is not bytes})
    with zipfile.ZipFile(path, "a") as archive:
        for name, value in values.items():
            if type(value) is bytes:
                archive.writestr(f"{name}.npy", value)
    return path


def npy_of(header, values=b""):
    """A file of NumPy with a description of its own; of numbers, that of as many pictures."""
    if isinstance(header, int):
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({header}, 4, 4, 3)}}"
    described = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(described).to_bytes(2, "little") + described + values


def packed(path, files):
    """Files as a folder, zip or tar archive, whichever the suffix says."""
    if not path.suffix:
        return write_folder(path, files)
    return zipped(path, files) if path.suffix == ".zip" else write_tar(path, files, "", "w:xz")


def test_cifar100_has_its_fine_labels_in_its_folder_or_the_one_around_it(folders, monkeypatch):
    images, files = pixels(2), {"meta": pickle.dumps({"fine_label_names": ["apple", "bear"] * 50})}
    for number, part in enumerate(("train", "test")):
        data_of = images[number].transpose(2, 0, 1).reshape(1, -1)
        files[part] = pickle.dumps({"data": data_of, "fine_labels": [number], "coarse_labels": [9]})
        monkeypatch.setattr(datasets.CIFAR100, f"{part}_list", [[part, None]])  # no checksum: made-up files have others
    monkeypatch.setattr(datasets.CIFAR100, "meta", datasets.CIFAR100.meta | {"md5": None})
    for place in (write_folder(folders / "cifar-100-python", files), folders):
        found = readers.READERS["cifar100"](place, DATASETS["cifar100"])
        np.testing.assert_array_equal(found.images.transpose(0, 2, 3, 1), images)
        assert found.labels.tolist() == found.part.tolist() == [0, 1]


def test_a_copy_as_arrays(folders):
    values = arrays(more=np.zeros(3))
    found = data.take_in("cifar10", saved(folders / "mine.npz", values))
    same_as(found, np.concatenate([values["x_train"], values["x_test"]]), [0, 1, 2, 3, 4, 9, 0])
    assert found.classes == CIFAR10 and data.load("cifar10", subset=True).digest == found.digest
    grey = data.take_in("cifar10", saved(folders / "grey.npz", arrays(x_train=values["x_train"][..., 0],
                                                                     x_test=values["x_test"][..., 0])))
    np.testing.assert_array_equal(grey.images[:5, 2], values["x_train"][..., 0])
    kept = data.load("cifar10", subset=True)  # the last one counts, and only that is kept
    assert kept.digest == grey.digest != found.digest and kept.name == "cifar10 (grey.npz)"
    assert [path.name for path in (folders / "runs" / "prepared").rglob("*.npz")] == ["grey.npz.npz"]


@pytest.mark.parametrize(("name", "side", "last"), [
    ("cifar100", 32, 99), ("cifar100", 32, 0), ("tiny_imagenet", 64, 199),
])
def test_classes_that_have_numbers_may_have_no_image(folders, name, side, last):
    labels = {"y_train": np.array([0, 0, 0, 0, last]), "y_test": np.zeros(2, int)}
    images = {"x_train": pixels(5, side), "x_test": pixels(2, side)}
    found = data.take_in(name, saved(folders / "mine.npz", arrays(**labels, **images)))
    assert len(found.classes) == last + 1


def test_more_images_than_the_data_set_has_and_arrays_that_unpack_to_more_are_refused(folders, monkeypatch):
    declared(monkeypatch, "cifar10", train=50, test=1)
    monkeypatch.setattr(readers, "SLACK", 2**16)
    for count, message in ((100, r"mine\.npz is not an \.npz .*: it unpacks to 3\d\d,\d+ bytes, at most 222,"),
                           (50, r"mine\.\S+ holds more images than the 51 of the data set; leave some"), (49, None)):
        names = [*(f"train/cat/{number}.png" for number in range(count)), "test/cat/0.png", "test/cat/1.png"]
        copies = [saved(folders / "mine.npz", arrays(x_train=pixels(count), y_train=np.zeros(count, int))),
                  zipped(folders / "mine.zip", dict.fromkeys(names, png(pixels(1)[0])))]
        for path in copies[: 1 if count == 100 else 2]:
            with pytest.raises(ValueError, match=message) if message else nullcontext():
                assert len(data.take_in("cifar10", path).images) == 51


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


@pytest.mark.parametrize(("form", "outer"), [("folder", ""), ("zip", "copy/"), ("tar.xz", "")])
def test_a_copy_in_class_folders(folders, form, outer):
    """In the order of classes and not of paths: as text, cat-dog/0 stands before cat/0."""
    images = pixels(5)
    names = ("train/{0}/1.png", "train/{1}/0.png", "train/{1}/1.png", "val/{0}/0.png", "val/{1}/0.png")
    for name, classes, labels in (
        ("cifar10", ("cat", "dog"), [3, 5, 5, 3, 5]),
        ("cifar100", ("cat", "cat-dog"), [0, 1, 1, 0, 1]),  # whose class names are not known beforehand
    ):
        files = {outer + name.format(*classes): png(image) for name, image in zip(names, images, strict=True)}
        files |= {f"{outer}train/{classes[0]}/._1.png": b"", f"{outer}notes.txt": b"mine"}
        in_another_order = dict(reversed(files.items()))
        found = data.take_in(name, packed(folders / f"{name}.{form}".removesuffix(".folder"), in_another_order))
        same_as(found, images, labels)
        assert found.test.tolist() == [False, False, False, True, True]
        assert found.classes == (CIFAR10 if name == "cifar10" else classes)


def test_pictures_that_are_not_read_are_counted_and_test_goes_before_val(folders, capsys):
    images = pixels(3)
    places = dict(zip(("train/cat/0.png", "test/cat/0.png", "val/cat/0.png"), map(png, images), strict=True))
    others = ("train/cat/1.bmp", "train/cat/1.TIF", "test/cat/1.webp", "val/cat/1.webp", "test/cat/notes.txt")
    path = write_folder(folders / "mine", places | dict.fromkeys(others, b"mine"))
    same_as(data.take_in("cifar10", path), images[:2], [3, 3])
    assert capsys.readouterr().err.splitlines() == [
        f"{path}: left out 1 .bmp, 1 .tif, 2 .webp, as JPEG and PNG alone are read; save them as PNG",
        f"{path}: for test are the 1 pictures of test/; left out are the 1 of val/ beside it",
    ]


PICTURE = png(pixels(1)[0])
TURNED = Image.Exif()
TURNED[ExifTags.Base.Orientation] = 6
ANIMATION = png(pixels(1)[0], save_all=True, append_images=[Image.new("RGB", (32, 32))])
WRONG_SUM = PICTURE[:-13] + bytes([PICTURE[-13] ^ 1]) + PICTURE[-12:]  # of the pixels, which alone are decoded
NO_ARRAYS = r"bad\.npz is not an \.npz of images and labels: ."
UNREAD = r"bad\.zip-.*/train/cat/0\.png cannot be read as a picture"
REFUSED = [  # a data set, what arrays or files there are in place of a sound copy's, and what is said
    ("cifar10", {"y_test": None}, f"{NO_ARRAYS}*y_test"),
    ("cifar10", {"x_train": pixels(5).astype(float)}, "images are float64"),
    ("cifar10", {"x_train": pixels(5)[..., :2]}, r"images are uint8 \(5, 32, 32, 2\)"),
    ("cifar10", {"y_train": np.arange(4)}, r"5 images have labels int64 \(4,\)"),
    ("cifar10", {"y_train": np.arange(5.0)}, "labels float64"),
    ("cifar10", {"y_test": np.array([0, 10])}, "labels run from 0 to 10, expected 0 to 9"),
    ("cifar10", {"y_test": np.array([0, -1])}, "labels run from -1"),
    ("cifar10", {"y_test": np.array([0, 2**64 - 1], np.uint64)}, "labels run from 0 to 18446744073709551615"),
    ("cifar10", {"x_test": pixels(2, 5)}, r"bad\.npz has 5 x 5 pixels, expected 32 x 32"),
    *(("cifar10", {"x_train": npy_of(*given)}, NO_ARRAYS) for given in (["{'descr'"], [2**40], [2**70], [5, bytes(3)])),
    ("cifar10", {"x_test": pixels(0), "y_test": np.zeros(0, int)}, r"bad\.npz holds no image for test; add some"),
    ("cifar10", {"x_train": pixels(0), "y_train": np.zeros(0, int)}, "holds no image for train; add some"),
    ("cifar100", {"y_test": np.array([0, 100])}, "labels run from 0 to 100, expected 0 to 99"),
    ("cifar100", {"y_test": np.array([0, 2**62])}, "labels run from 0 to .*, expected 0 to 99"),
    ("stl10", {}, r"bad\.npz has 32 x 32 pixels, expected 96 x 96; take it in as the data set it is a copy of"),
    ("digits", {}, "dataset='digits' is not one of: cifar10"),
    ("cifar10", {"train/cut/0.png": PICTURE}, "did you mean 'cat'"),
    ("cifar10", {"train/dog/0.png": png(pixels(1, 5)[0]), "test/dog/0.png": PICTURE},
     r"bad\.zip-.*/train/dog/0\.png has 5 x 5 pixels, expected 32 x 32"),
    *(("cifar10", {"train/cat/0.png": unsound, "test/cat/0.png": PICTURE}, message) for unsound, message in (
        (PICTURE[:40], UNREAD), (WRONG_SUM, UNREAD), (ANIMATION, UNREAD + r" \(it is an animation"),
        *((png(pixels(1)[0], kind, exif=TURNED), UNREAD + r" \(it is to be turned, orientation 6 of its EXIF")
          for kind in ("JPEG", "PNG")))),
    ("cifar10", {"train/0.png": PICTURE}, "does not lie in train/<class>/"),
    ("cifar10", {"cat/0.png": PICTURE}, "does not lie in train/<class>/"),
    ("cifar10", {"train/cat/0.txt": b""}, "holds no image"),
    *(("cifar10", {**dict.fromkeys(["train/cat/0.png", "test/cat/0.png"], PICTURE), f"{part}/dog/0.png": PICTURE},
       f"1 of 2 classes have no picture for {other}, the first is 'dog'; add some, or leave the class out")
      for part, other in (("train", "test"), ("test", "train"))),
    ("cifar100", {f"train/{number:03}/0.png": PICTURE for number in range(101)}, "101 classes, 000 to 100"),
]


@pytest.mark.parametrize(("name", "content", "message"), REFUSED, ids=lambda value: value if type(value) is str else "")
def test_what_is_no_copy_of_a_data_set_is_refused_and_loses_nothing(folders, name, content, message):
    before = data.take_in("cifar10", saved(folders / "good.npz", arrays()))
    as_files = any("/" in part for part in content)
    path = zipped(folders / "bad.zip", content) if as_files else saved(folders / "bad.npz", arrays(**content))
    with pytest.raises(ValueError, match=message):
        data.take_in(name, path)
    assert data.load("cifar10", subset=True).digest == before.digest


def test_grey_of_sixteen_bits_is_scaled(folders):
    grey = np.arange(2**16, dtype=np.uint16).reshape(256, 256)
    (folders / "x.png").write_bytes(png(grey))
    found = np.asarray(readers.read_rgb(folders / "x.png"))
    expected = [value // 256 for value in range(2**16)]
    assert found.shape == (256, 256, 3) and all(found[..., band].ravel().tolist() == expected for band in range(3))


def test_a_picture_of_another_size_is_not_decoded(folders):
    large = png(np.zeros((6000, 6000), bool))  # 5 KB, of which decoding makes 108 MB
    path = zipped(folders / "bad.zip", {f"{part}/cat/{number}.png": large
                                        for part in ("train", "test") for number in range(20)})
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"has 6000 x 6000 pixels, expected 32 x 32"):
        data.take_in("cifar10", path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**25


def test_what_is_no_file_is_not_opened(folders):
    (folders / "data" / "cifar10").mkdir(parents=True)
    for name in ("pipe.npz", "x.png", "data/cifar10/cifar-10-python.tar.gz"):
        os.mkfifo(folders / name)
    (folders / "zero.zip").symlink_to("/dev/zero")
    for name in ("pipe.npz", "zero.zip"):
        with pytest.raises(ValueError, match=rf"{name} is no regular file"):
            data.take_in("cifar10", folders / name)
    with pytest.raises(FileNotFoundError, match=r"lacks .*cifar-10-python\.tar\.gz"):
        data.load("cifar10")
    with pytest.raises(ValueError, match=r"x\.png cannot be read as a picture \(is no regular file"):
        readers.Files(folders, np.array([b"x.png"])).read(0)


NO_TITLE = "would stand in the titles of tables and figures; rename it to letters"


@pytest.mark.parametrize(("name", "error", "message"), [
    ("noise.npz", ValueError, r"noise\.npz is not an \.npz of images and labels: it is no zip archive"),
    ("notes.zip", ValueError, r"notes\.zip is no \.npz, zip or tar archive.*x_train, .*train/CLASS/\*\.png"),
    ("nothing.npz", FileNotFoundError, "does not exist"),
    *((name, ValueError, NO_TITLE) for name in ("a b.npz", "é.npz", os.fsdecode(b"\xff.npz"))),
], ids=ascii)
def test_files_that_are_nothing_of_the_kind_or_have_a_name_that_no_title_could_hold(folders, name, error, message):
    if message == NO_TITLE:
        saved(folders / "sound.npz", arrays()).rename(folders / name)
    elif error is ValueError:
        (folders / name).write_bytes(os.urandom(200))
    with pytest.raises(error, match=message):
        data.take_in("cifar10", folders / name)


@pytest.mark.parametrize(("name", "file", "counts", "digest"), [
    ("cifar10", "cifar10/cifar10_lossless_subset.npz", (5170, 1017), "5071ec9ee434a113"),
    ("cifar100", "cifar100/cifar100_lossless_subset.npz", (486, 916), "4578a0e47029528f"),
    ("tiny_imagenet", "tiny_imagenet/tiny_imagenet_subset20.zip", (2000, 1000), "2354eda482f29138"),
])
def test_real_partial_copies_are_those_of_the_committed_runs(name, file, counts, digest):
    path = Path(REAL) / file
    if not path.exists():
        pytest.skip(f"needs {file}")
    found = data.take_in(name, path)
    assert (found.train.sum(), found.test.sum()) == counts and found.digest.startswith(digest)
