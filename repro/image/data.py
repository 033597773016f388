"""Image data sets: official distributions, or a user's own copies that `repro data import` has taken in."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from repro.data import manifest, npz
from repro.data.disk import alone, write_atomically
from repro.data.labels import check_labels
from repro.image import DATASETS, archives, imagenet, readers
from repro.image.files import Files
from repro.image.readers import PARTS, READERS, Pictures
from repro.recipe import choose
from repro.run.parallel import made_once

COPIED = tuple(               # data sets that copies are taken in of; others come whole, or stay in their files
    name for name, declared in DATASETS.items() if declared.images.size and declared.access != "embedded"
)
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
        name: one of `repro.image.DATASETS`. Of those of various sizes, as `imagenet`, the class folders are listed
            once, and pictures read when they are needed.
        root: folder of real data; REPRO_DATA by default.
        subset: take the copy that `repro data import NAME FILE` has taken in, instead of the official distribution,
            whose name is then NAME (FILE). Of those of various sizes, accept fewer classes or images where the
            official ones would lie.

    Raises:
        ValueError: if the name is unknown, the files are not the official distribution, or a copy is damaged.
        FileNotFoundError: if the files are missing, saying where they come from and go to.
    """
    declared = DATASETS[choose("dataset", name, DATASETS)]
    manifest.check_subset(name, subset)
    root = manifest.data_root() if root is None else Path(root)
    if declared.access == "embedded":
        return _image_set(name, *_official(declared, root))
    if declared.images.size is None:
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
        name: of the data set, one of `COPIED`; copies of those of various sizes stay where they are.
        path: an `.npz` with x_train, y_train, x_test and y_test; or a folder, zip or tar archive of class folders,
            `train/<class>/*.png` and `test/<class>/*.png` (JPEG too); or, of Tiny-ImageNet, its own layout. Classes
            may be missing; class_names in an `.npz` are those of the whole data set.

    Raises:
        ValueError: if the name is unknown, the file has none of these forms, or its pictures or classes are those of
            another data set or too many, naming what is wrong.
        FileNotFoundError: if there is no such file.
    """
    declared = DATASETS.get(name)
    if declared and declared.images.size is None:
        places = " and ".join(f"{manifest.data_root() / folder.name}" for folder in declared.files)
        raise ValueError(f"{name} is not taken in: its pictures stay in class folders in {places}; put yours there, "
                         f"and pass --subset (subset=True) if they are a part of {name}")
    choose("dataset", name, COPIED)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if path.is_file() and path.suffix != ".npz" and not archives.recognised(path):
        raise ValueError(f"{path} is no .npz, zip or tar archive, or truncated; give an .npz of x_train, y_train, "
                         "x_test and y_test, or class folders, train/CLASS/*.png and test/CLASS/*.png, as a folder, "
                         "zip or tar archive")
    if path.suffix == ".npz":
        pictures = readers.numpy_file(path, declared)
    elif declared.images.reader == "tiny_imagenet":
        pictures = readers.tiny_imagenet(path, declared)
    else:
        pictures = readers.class_folders(path, declared)
    _check_copy(declared, path, pictures)
    copy = manifest.imported(name) / f"{path.name}.npz"
    copy.parent.mkdir(parents=True, exist_ok=True)
    with alone(copy.parent.with_suffix(".lock")):
        write_atomically(copy, lambda temporary: _write(temporary, (pictures, _digest(pictures))))
        for other in copy.parent.iterdir():  # another copy, or what a kill has left of one
            if other != copy:
                other.unlink()
        return load(name, subset=True)


def _check_copy(declared: manifest.Manifest, path: Path, pictures: Pictures) -> None:
    """Raise unless the pictures have the classes of the data set, and some are to train and some to test."""
    name, number, known = declared.name, declared.images.count, declared.images.names
    advice = f"take it in as the data set it is a copy of ({', '.join(COPIED)}), or bring it into the form of {name}"
    given = readers.class_names(path) if path.suffix == ".npz" else ()
    names = given or pictures.classes
    if known:
        fits = names == known
    else:
        another = any(set(names) <= set(DATASETS[other].images.names) for other in COPIED)
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
    """Class folders of pictures, checked unless it is a subset, from their listing if that was made before."""
    folder = manifest.require(declared, root)[0].parent
    folders = imagenet.class_folders(folder, declared.images.names)
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
    read = READERS[choose(f"data_manifests/{declared.name}.yaml: reader", declared.images.reader, READERS)]
    pictures = read(path, declared)
    counts = {name: int((pictures.part == place).sum()) for place, name in enumerate(PARTS)}
    counts |= {"classes": len(pictures.classes)}
    found = {name: counts.get(name) for name in declared.expect}
    if found != declared.expect:
        raise ValueError(f"{path} has {found} images, the official distribution {declared.expect}; fetch it again, or "
                         f"take a part of it in with `repro data import {declared.name} FILE`")
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
