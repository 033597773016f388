"""Image data sets: official distributions, or a user's own copies that `repro data import` has taken in."""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torchvision import datasets

from repro import manifest, npz
from repro.image import archives, imagenet, readers
from repro.image.files import Files
from repro.image.readers import PARTS, Form, Pictures
from repro.labels import check_labels
from repro.recipe import choose
from repro.run.parallel import made_once
from repro.run.store import alone, write_atomically

FORMS = {
    "cifar10": Form(side=32, classes=10, images=60_000),
    "cifar100": Form(side=32, classes=100, images=60_000),
    "stl10": Form(side=96, classes=10, images=13_000),
    "tiny_imagenet": Form(side=64, classes=200, images=110_000),
}
READERS: dict[str, Callable[[Path], Pictures]] = {
    "cifar10": functools.partial(readers.cifar, kind=datasets.CIFAR10),
    "cifar100": functools.partial(readers.cifar, kind=datasets.CIFAR100),
    "stl10": readers.stl10,
    "tiny_imagenet": functools.partial(readers.tiny_imagenet, form=FORMS["tiny_imagenet"]),
}
LEFT_IN_FILES = ("imagenet", "imagenet100")
DATASETS = ("digits", *READERS, *LEFT_IN_FILES)
CLASSES = {                   # of copies; those of other sets are the folders found, or the numbers
    "cifar10": ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    "stl10": ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"),
}
STORED = ("images", "labels", "part", "classes", "digest")


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images ready for training.

    Attributes:
        name: the data set's name; what is not the official distribution says so: "cifar10 (my_copy.npz)", the file
            that was taken in, or "imagenet (subset)".
        images: (n, 3, H, W) uint8, red, green, blue. Of ImageNet, whose images have various sizes and are too many for
            memory, the `Files` to read them from.
        labels: (n,) int64 in 0..len(classes) - 1, or -1 where there is none.
        pretrain: (n,) bool, for self-supervised training: the unlabeled images if there are any, else `train`.
        train, test: (n,) bool, of the linear probe.
        classes: names of the classes.
        digest: hex sha256 of images, labels and parts; of ImageNet of the classes, and of the files' paths and sizes.

    Raises:
        ValueError: if a label has no class, or parts overlap.
    """

    name: str
    images: Tensor | Files
    labels: Tensor
    pretrain: Tensor
    train: Tensor
    test: Tensor
    classes: tuple[str, ...]
    digest: str

    def __post_init__(self) -> None:
        check_labels(self.name, self.labels, len(self.classes), self.train, self.test, least=-1)


def load(name: str, root: str | Path | None = None, *, subset: bool = False) -> ImageSet:
    """Load an image data set.

    Args:
        name: `digits` (part of scikit-learn), `cifar10`, `cifar100`, `stl10`, `tiny_imagenet`, `imagenet` or
            `imagenet100`; the last two lie in the same class folders, `imagenet/train/<wnid>/` and
            `imagenet/val/<wnid>/`, which are listed once.
        root: folder of real data; REPRO_DATA by default.
        subset: take the copy that `repro data import NAME FILE` has taken in, instead of the official distribution,
            whose name is then NAME (FILE). Of `imagenet` and `imagenet100`, accept fewer classes or images where the
            official ones would lie.

    Raises:
        ValueError: if the name is unknown, the files are not the official distribution, or a copy is damaged.
        FileNotFoundError: if the files are missing, saying where they come from and go to.
    """
    declared = manifest.load_manifest(choose("dataset", name, DATASETS))
    manifest.check_subset(name, subset)
    if name == "digits":
        pictures = readers.digits()
        return _image_set(name, pictures, _digest(pictures))
    root = manifest.data_root() if root is None else Path(root)
    if name in LEFT_IN_FILES:
        return _left_in_files(declared, root, subset)
    if subset:
        copy = manifest.copy_of(name)
        if copy is None:
            raise FileNotFoundError(f"no copy of {name!r} has been taken in; run `repro data import {name} FILE`")
        try:
            found = _read(copy)
        except npz.DAMAGED as error:
            raise ValueError(f"{copy} is damaged ({error}); run `repro data import {name} FILE` again") from error
        return _image_set(f"{name} ({copy.stem})", *found)
    path, = manifest.require(declared, root)
    return _image_set(name, *_prepared(declared, path))


def take_in(name: str, path: Path) -> ImageSet:
    """Take in a user's own copy of a data set, kept in REPRO_RUNS until another one is taken in.

    Args:
        name: of the data set, not `digits`, nor `imagenet` or `imagenet100`, whose copies stay where they are.
        path: an `.npz` with x_train, y_train, x_test and y_test; or a folder, zip or tar archive of class folders,
            `train/<class>/*.png` and `test/<class>/*.png` (JPEG too); or, of Tiny-ImageNet, its own layout. Classes
            may be missing; class_names in an `.npz` are those of the whole data set.

    Raises:
        ValueError: if the name is unknown, the file has none of these forms, or its pictures or classes are those of
            another data set or too many, naming what is wrong.
        FileNotFoundError: if there is no such file.
    """
    if name in LEFT_IN_FILES:
        places = " and ".join(f"{manifest.data_root() / 'imagenet' / place}" for place in imagenet.PLACES)
        raise ValueError(f"{name} is not taken in: its pictures stay in class folders in {places}; put yours there, "
                         f"and pass --subset (subset=True) if they are a part of {name}")
    choose("dataset", name, READERS)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if path.is_file() and path.suffix != ".npz" and not archives.recognised(path):
        raise ValueError(f"{path} is no .npz, zip or tar archive, or truncated; give an .npz of x_train, y_train, "
                         "x_test and y_test, or class folders, train/CLASS/*.png and test/CLASS/*.png, as a folder, "
                         "zip or tar archive")
    classes = CLASSES.get(name)
    if path.suffix == ".npz":
        pictures = readers.numpy_file(path, FORMS[name], classes)
    elif name == "tiny_imagenet":
        pictures = readers.tiny_imagenet(path, FORMS[name])
    else:
        pictures = readers.class_folders(path, FORMS[name], classes)
    _check_copy(name, path, pictures)
    copy = manifest.imported(name) / f"{path.name}.npz"
    copy.parent.mkdir(parents=True, exist_ok=True)
    with alone(copy.parent.with_suffix(".lock")):
        write_atomically(copy, lambda temporary: _write(temporary, (pictures, _digest(pictures))))
        for other in copy.parent.iterdir():  # another copy, or what a kill has left of one
            if other != copy:
                other.unlink()
        return load(name, subset=True)


def _check_copy(name: str, path: Path, pictures: Pictures) -> None:
    """Raise unless the pictures have the classes of the data set, and some are to train and some to test."""
    number = FORMS[name].classes
    advice = f"take it in as the data set it is a copy of ({', '.join(READERS)}), or bring it into the form of {name}"
    given, known = readers.class_names(path) if path.suffix == ".npz" else (), CLASSES.get(name)
    names = given or pictures.classes
    if known:
        fits = names == known
    else:
        another = any(set(names) <= set(classes) for classes in CLASSES.values())
        fits = len(names) == number if given else len(names) <= number and not another
    if not fits:
        expected = f"the {number} of {name}{': ' + ', '.join(known) if known else ''}"
        raise ValueError(f"{path} has {len(names)} classes, {names[0]} to {names[-1]}, expected {expected}; {advice}")
    for place in (PARTS.index("train"), PARTS.index("test")):
        if not (pictures.part == place).any():
            raise ValueError(f"{path} holds no image for {PARTS[place]}; add some")


def describe(data: ImageSet) -> str:
    """Counts in one line."""
    size = "various sizes" if isinstance(data.images, Files) else "{} x {}".format(*data.images.shape[2:])
    counts = {part: int(getattr(data, part).sum()) for part in ("pretrain", "train", "test")}
    parts = ", ".join(f"{count} for {part}" for part, count in counts.items())
    return f"{data.name}: {len(data.images)} images of {size}, {len(data.classes)} classes; {parts}"


def _left_in_files(declared: manifest.Manifest, root: Path, subset: bool) -> ImageSet:
    """ImageNet in its class folders, checked unless it is a subset, from its listing if that was made before."""
    folder = manifest.require(declared, root)[0].parent
    classes = imagenet.imagenet100_classes() if declared.name == "imagenet100" else None
    folders = imagenet.class_folders(folder, classes)
    pictures, digest = _listing(declared.name, folder, folders)
    if not subset:
        imagenet.check_counts(declared, folder, pictures)
    return _image_set(f"{declared.name} (subset)" if subset else declared.name, pictures, digest, folder)


def _listing(name: str, root: Path, folders: list[Path]) -> tuple[Pictures, str]:
    """What the class folders hold; listed anew when a file came or went, which changes the time of its folder."""
    times = "".join(f"{folder} {folder.stat().st_mtime_ns}\n" for folder in folders)
    version = hashlib.sha256(times.encode()).hexdigest()[:16]
    kept = manifest.prepared_root() / f"{name}-{version}.npz"
    return made_once(kept, _read, lambda: imagenet.listing(root, folders), _write, npz.DAMAGED)


def _prepared(declared: manifest.Manifest, path: Path) -> tuple[Pictures, str]:
    """The official distribution, checked, from its prepared arrays if they were made before."""
    found = path.stat()
    version = hashlib.sha256(f"{path} {found.st_size} {found.st_mtime_ns}".encode()).hexdigest()[:16]
    prepared = manifest.prepared_root() / f"{declared.name}-{version}.npz"
    return made_once(prepared, _read, lambda: _official(declared, path), _write, npz.DAMAGED)


def _official(declared: manifest.Manifest, path: Path) -> tuple[Pictures, str]:
    """The official distribution and its digest.

    Raises:
        ValueError: if it has other numbers of images than declared.
    """
    pictures = READERS[declared.name](path)
    expected, = (split.expect for split in declared.splits.values())
    counts = {name: int((pictures.part == PARTS.index(name)).sum()) for name in expected}
    if counts != expected:
        raise ValueError(f"{path} has {counts} images, the official distribution {expected}; fetch it again, or take "
                         f"a part of it in with `repro data import {declared.name} FILE`")
    return pictures, _digest(pictures)


def _write(path: Path, made: tuple[Pictures, str]) -> None:
    """Fill a file with pictures and their digest."""
    pictures, digest = made
    values = (pictures.images, pictures.labels, pictures.part, np.array(pictures.classes), np.array(digest))
    npz.write(path, dict(zip(STORED, values, strict=True)))


def _read(path: Path) -> tuple[Pictures, str]:
    stored = npz.read(path)
    images, labels, part, classes, digest = (stored[name] for name in STORED)
    return Pictures(images, labels, part, tuple(map(str, classes))), str(digest)


def _image_set(name: str, pictures: Pictures, digest: str, folder: Path | None = None) -> ImageSet:
    """The set of these pictures, whose images are files below `folder` if there is one."""
    train, test, unlabeled = (torch.from_numpy(pictures.part == place) for place in range(len(PARTS)))
    images = Files(folder, pictures.images) if folder else torch.from_numpy(pictures.images)
    labels = torch.from_numpy(pictures.labels)
    pretrain = unlabeled if unlabeled.any() else train
    return ImageSet(name, images, labels, pretrain, train, test, pictures.classes, digest)


def _digest(pictures: Pictures) -> str:
    digest = hashlib.sha256(f"{pictures.images.shape} {pictures.classes}".encode())
    for array in (pictures.images, pictures.labels, pictures.part):
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()
