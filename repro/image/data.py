"""Image data sets: official distributions, or a user's own copies that `repro data import` has taken in."""

import dataclasses
import hashlib
import math
import re
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from repro.data import disk, files, manifest, npz
from repro.data.disk import alone, write_atomically
from repro.data.prepared import made_once
from repro.image import DATASETS, readers
from repro.image.readers import PARTS, Files, Pictures
from repro.image.recipe import ImageRecipe
from repro.recipe import choose
from repro.run import code

COPIED = tuple(               # data sets that copies are taken in of; others come whole, or stay in their files
    name for name, declared in DATASETS.items() if declared.images.size and declared.access != "bundled"
)
OF_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BEFORE = {                    # means and deviations whose digests are of the pictures alone: ids of runs stay
    "digits": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2009, 0.1984, 0.2023)),
    "stl10": ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)),
    **dict.fromkeys(("tiny_imagenet", "imagenet", "imagenet100"), OF_IMAGENET),
}


@dataclasses.dataclass(frozen=True, eq=False)
class ImageSet:
    """Images ready for training; raises ValueError if a label has no class, or parts overlap.

    What is not the official distribution says so in its name: "cifar10 (my_copy.npz)", the file that was taken in, or
    "imagenet (subset)".
    """

    name: str
    images: Tensor | Files    # (n, 3, H, W) uint8, red, green, blue; of ImageNet, too many for memory, in their files
    labels: Tensor            # (n,) int64 in 0..len(classes) - 1, or -1 where there is none
    pretrain: Tensor          # (n,) bool, for self-supervised training: unlabeled images if there are any, else `train`
    train: Tensor             # (n,) bool, of the linear probe
    test: Tensor              # (n,) bool
    classes: tuple[str, ...]  # their names
    digest: str               # hex sha256, see `digest_of`

    def __post_init__(self) -> None:
        manifest.check_labels(self.name, self.labels, len(self.classes), self.train, self.test, least=-1)


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
    if declared.access == "bundled":
        return _image_set(name, _official(declared, root))
    if declared.images.size is None:
        return _left_in_files(declared, root, subset)
    if not subset:
        path, = files.require(declared, root)
        there = [file for file in files.listed(path) if file.is_file()] if path.is_dir() else [path]
        made_of = "".join(f"{file} {file.stat().st_mtime_ns} {file.stat().st_size}\n" for file in there)
        return _image_set(name, _made_once(declared, made_of, lambda: _official(declared, path)))
    copy = manifest.copy_of(name)
    if copy is None:
        raise FileNotFoundError(f"no copy of {name!r} has been taken in; run `repro data import {name} FILE`")
    try:
        return _image_set(f"{name} ({copy.stem})", _stored(npz.read(copy)))
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{copy} is damaged ({error}); run `repro data import {name} FILE` again") from error


load_once = manifest.read_once(load, maxsize=2)


def data_of(recipe: ImageRecipe) -> ImageSet:
    """The data set of a recipe; read once per process while its files stay the same."""
    return load_once(recipe.dataset, manifest.data_root(), subset=recipe.subset)


def take_in(name: str, path: Path) -> ImageSet:
    """Take in a user's own copy of a data set, kept in REPRO_RUNS until another one is taken in.

    Args:
        name: of the data set, one of `COPIED`; copies of those of various sizes stay where they are.
        path: what `readers.numpy_file` or `readers.class_folders` reads, or a part of the official distribution in its
            own layout. Classes may be missing.

    Raises:
        ValueError: if the name is unknown, the file has none of these forms or a name that cannot stand in titles, its
            pictures have another size, or there are too many pictures or classes.
        FileNotFoundError: if there is no such file.
    """
    choose("dataset", name, COPIED)
    declared = DATASETS[name]
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path} {disk.IRREGULAR}; give an .npz, a folder, a zip or tar archive")
    if not re.fullmatch(r"\w[\w.-]*", path.name, re.ASCII):
        raise ValueError(f"{path.name!r} would stand in the titles of tables and figures; rename it to letters from A "
                         "to Z, digits and _ . -, a letter or digit first")
    copy = manifest.imported(name) / f"{path.name}.npz"
    with alone(copy.parent.with_suffix(".lock")):  # also while an archive is unpacked, to a folder of its name
        if path.suffix == ".npz":
            pictures = readers.numpy_file(path, declared)
        elif path.is_dir() or zipfile.is_zipfile(path) or tarfile.is_tarfile(path):
            own = declared.images.reader in ("tiny_imagenet", "unsplit_class_folders")
            pictures = _read(readers.READERS[declared.images.reader] if own else readers.class_folders, path, declared)
        else:
            raise ValueError(f"{path} is no .npz, zip or tar archive, or truncated; give an .npz of x_train, y_train, "
                             "x_test and y_test, or class folders, train/CLASS/*.png and test/CLASS/*.png, as a "
                             "folder, zip or tar archive")
        for place, part in enumerate(PARTS[:2]):
            if not (pictures.part == place).any():
                raise ValueError(f"{path} holds no image for {part}; add some")
        write_atomically(copy, lambda temporary: npz.write(temporary, vars(_hashed(pictures))))
        for other in copy.parent.iterdir():  # another copy, or what a kill has left of one
            if other != copy:
                other.unlink()
        return load(name, subset=True)


def describe(data: ImageSet) -> str:
    """Counts in one line."""
    size = "various sizes" if isinstance(data.images, Files) else "{} x {}".format(*data.images.shape[2:])
    parts = ", ".join(f"{int(getattr(data, part).sum())} for {part}" for part in ("pretrain", "train", "test"))
    return f"{data.name}: {len(data.images)} images of {size}, {len(data.classes)} classes; {parts}"


def _left_in_files(declared: manifest.Manifest, root: Path, subset: bool) -> ImageSet:
    """Class folders of pictures, checked unless it is a subset, from their listing if that was made before.

    They are listed anew when a file came or went, which changes the time of its folder.
    """
    places = files.require(declared, root)
    folder, folders = places[0].parent, [path for place in places for path in sorted(place.iterdir()) if path.is_dir()]
    times = "".join(f"{path} {path.stat().st_mtime_ns}\n" for path in folders)
    pictures = _made_once(declared, times, lambda: readers.listing(folder, declared.images.names))
    if not subset:
        _check_official(declared, folder, pictures, "accept it with subset=True")
    return _image_set(f"{declared.name} (subset)" if subset else declared.name, pictures, folder)


def _made_once(declared: manifest.Manifest, made_of: str, make: Callable[[], Pictures]) -> Pictures:
    """Pictures, made once of what a text says; again where the manifest or a reader has changed."""
    made_of = f"{declared}\n{made_of}{code.of_files('data/files.py', 'image/data.py', 'image/readers.py')}"
    return _stored(made_once(declared.name, made_of, lambda: vars(make())))


def _official(declared: manifest.Manifest, path: Path) -> Pictures:
    """The official distribution; raises ValueError if it has other numbers of images than declared."""
    reader = choose(f"data_manifests/{declared.name}.yaml: reader", declared.images.reader, readers.READERS)
    pictures = _read(readers.READERS[reader], path, declared, *declared.files)
    _check_official(declared, path, pictures, f"take a part of it in with `repro data import {declared.name} FILE`")
    return _hashed(pictures)


def _read(read: readers.Reader, path: Path, declared: manifest.Manifest, *packed: manifest.Archive) -> Pictures:
    """What a reader makes of a folder, an `.npz`, or another archive, which is unpacked for as long as it is read."""
    if not path.is_file() or path.suffix == ".npz":
        return read(path, declared)
    try:
        return read(files.folder(path, *packed), declared)
    finally:
        files.forget(path)


def _check_official(declared: manifest.Manifest, path: Path, pictures: Pictures, otherwise: str) -> None:
    """Raise ValueError unless the counts are as declared; "least" and "most" bound training images of a class.

    There are as many classes as the manifest has, also where nothing is expected of them.
    """
    counts = dict(zip(PARTS, np.bincount(pictures.part, minlength=len(PARTS)).tolist(), strict=True))
    sizes = np.bincount(pictures.labels[pictures.part == PARTS.index("train")], minlength=1)
    counts |= {"classes": len(pictures.classes), "least": int(sizes.min()), "most": int(sizes.max())}
    expected = dict(declared.expect)
    if counts["classes"] != declared.images.count:
        expected.setdefault("classes", declared.images.count)
    if counts["least"] >= expected.get("least", 0):
        expected.pop("least", None)
    if counts["most"] <= expected.get("most", math.inf):
        expected.pop("most", None)
    manifest.check_counts(f"{path} holds other numbers of images than {declared.name}", counts, expected,
                          f"complete it from {declared.source}, or {otherwise}")


def _hashed(pictures: Pictures) -> Pictures:
    digest = hashlib.sha256(f"{pictures.images.shape} {pictures.classes}".encode())
    for array in (pictures.images, pictures.labels, pictures.part):
        digest.update(np.ascontiguousarray(array))
    return dataclasses.replace(pictures, digest=digest.hexdigest())


def _stored(arrays: Mapping[str, Any]) -> Pictures:
    images, labels, part, classes, digest = (arrays[field.name] for field in dataclasses.fields(Pictures))
    return Pictures(images, labels, part, tuple(map(str, classes)), str(digest))


def _image_set(name: str, pictures: Pictures, folder: Path | None = None) -> ImageSet:
    """The set of these pictures, whose images are files below `folder` if there is one."""
    train, test, unlabeled = (torch.from_numpy(pictures.part == place) for place in range(len(PARTS)))
    images = Files(folder, pictures.images) if folder else torch.from_numpy(pictures.images)
    pretrain = unlabeled if unlabeled.any() else train
    labels = torch.from_numpy(pictures.labels)
    digest = digest_of(manifest.plain(name), pictures)
    return ImageSet(name, images, labels, pretrain, train, test, pictures.classes, digest)


def digest_of(name: str, pictures: Pictures) -> str:
    """Of images, labels, parts and what they are normalised by, unless that is as in `BEFORE`.

    Of ImageNet it is of classes, paths and sizes in place of images.
    """
    normalised = DATASETS[name].images.mean, DATASETS[name].images.deviation
    if normalised == BEFORE.get(name):
        return pictures.digest
    return hashlib.sha256(f"{pictures.digest} {normalised}".encode()).hexdigest()
