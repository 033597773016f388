"""Image data sets in their official layouts, and copies people have of them: as arrays, or as files left in folders."""

import dataclasses
import hashlib
import io
import mimetypes
import os
import struct
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError
from tqdm import tqdm

from repro.data import files
from repro.data.disk import read_file
from repro.data.manifest import Manifest
from repro.recipe import choose

PARTS = ("train", "test", "unlabeled")
PLACES = ("train", "val")     # class folders, for the first two parts
PICTURES = (".jpg", ".jpeg", ".png")
FOLDERS = "train/<class>/, test/<class>/ or val/<class>/"
KINDS = ("JPEG", "PNG")       # told by the first bytes; no other decoder is tried
SLACK = 2**26                 # bytes that other arrays than images and labels may take in an `.npz`
# What Pillow raises for a file that holds no picture, too large a one, or no sound EXIF.
UNDECODABLE = (OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError, Warning)
warnings.simplefilter("error", Image.DecompressionBombWarning)  # from 89 million pixels on, not only twice as many


@dataclasses.dataclass(frozen=True)
class Pictures:
    """Images of one size, or the files of images of any size."""

    images: np.ndarray        # (n, 3, H, W) uint8, red, green, blue; or (n,) bytes, paths below the data set's folder
    labels: np.ndarray        # (n,) int64, the class from 0; -1 where there is none
    part: np.ndarray          # (n,) int64, place in `PARTS`
    classes: tuple[str, ...]  # their names, in the order of the labels
    digest: str = ""          # hex sha256, once `repro.image.data` has computed it


@dataclasses.dataclass(frozen=True, eq=False)
class Files:
    """Pictures of any size in the files below a folder."""

    root: Path
    names: np.ndarray         # (n,) bytes, the files' paths below it: objects for a million of them would be large

    def __len__(self) -> int:
        return len(self.names)

    def read(self, index: int) -> Image.Image:
        """The picture at a place in 0..n - 1, as red, green and blue; raises as `read_rgb`."""
        return read_rgb(self.root / os.fsdecode(self.names[index]))


# Of the folder of the official distribution, unpacked, or the `.npz` that it is, and the manifest; raises ValueError if
# files are missing, damaged or no such distribution. Manifests name one of `READERS`.
Reader = Callable[[Path, Manifest], Pictures]
Row = tuple[int, str, Path]  # of a picture: place in `PARTS`, class, path below the data set's folder


def digits(path: Path, declared: Manifest) -> Pictures:
    """Handwritten digits of 8 x 8 pixels, from no file; the last 450 of 1,797 are for test.

    Source: the test half of the UCI set `optdigits` (Alpaydin and Kaynak 1998), as scikit-learn contains it.
    """
    from sklearn.datasets import load_digits

    bundled = load_digits()
    grey = (bundled.images * (255 / 16)).round().astype(np.uint8)
    part = np.zeros(len(grey), dtype=np.int64)
    part[-450:] = PARTS.index("test")
    return Pictures(_coloured(grey), bundled.target.astype(np.int64), part, tuple(map(str, bundled.target_names)))


def of_torchvision(name: str, splits: Sequence[Any], labels: str, path: Path, declared: Manifest) -> Pictures:
    """What torchvision's class `name` reads of its files, whose checksums it checks.

    Args:
        splits: its arguments for `PARTS`.
        labels: its attribute of that name.
        path, declared: as of any reader.
    """
    from torchvision import datasets  # late: it takes as long to import as torch

    kind = getattr(datasets, name)
    try:
        root = path if (path / kind.base_folder).is_dir() else path.parent
        parts = [kind(root, split) for split in splits]
    except RuntimeError as error:
        raise ValueError(f"{path} is not the official distribution, or damaged; fetch it again") from error
    images = np.concatenate([part.data for part in parts])
    return Pictures(
        images if images.shape[1] == 3 else _coloured(images),
        np.concatenate([getattr(part, labels) for part in parts]).astype(np.int64),
        np.repeat(np.arange(len(parts)), [len(part.data) for part in parts]),
        tuple(parts[0].classes),
    )


def tiny_imagenet(path: Path, declared: Manifest) -> Pictures:
    """Tiny-ImageNet: `train/<class>/images/`, `val/images/` and `val/val_annotations.txt`.

    The validation images are for test; classes are WordNet ids, sorted. Raises ValueError as `class_folders`.
    """
    lists = [file for file in files.listed(path) if file.match("val/val_annotations.txt")]
    lines = b"".join(map(read_file, lists)).decode().splitlines()
    validation = {name: wnid for name, wnid, *_ in map(str.split, lines)}
    rows = []
    for picture in _pictures(path):
        place, *below = _from_part(path, picture)
        if place == "train":
            rows.append((0, below[0], picture))
        if place == "val":  # the classes of `test` are not published
            if picture.name not in validation:
                raise ValueError(f"{path}: {picture} is not in val/val_annotations.txt; fetch the archive again")
            rows.append((1, validation[picture.name], picture))
    return _decoded(path, declared, _in_order(rows))


def class_folders(path: Path, declared: Manifest) -> Pictures:
    """Images in class folders, `train/<class>/` and `test/<class>/`, or `val/<class>/` where there is no test.

    Classes of which no names are declared are the folders, sorted. ValueError too if a folder is no class, an image has
    another size, or there are more images or classes than declared.
    """
    rows = []
    for picture in _pictures(path):
        place, *below = _from_part(path, picture)
        if len(below) != 2:
            raise ValueError(f"{path}: {picture} does not lie in {FOLDERS}")
        rows.append((place, below[0], picture))
    places = Counter(place for place, *_ in rows)
    if places["test"] and places["val"]:
        tqdm.write(f"{path}: for test are the {places['test']:,} pictures of test/; left out are the "
                   f"{places['val']:,} of val/ beside it", file=sys.stderr)
        rows = [row for row in rows if row[0] != "val"]
    return _decoded(path, declared, _in_order((int(place != "train"), *below) for place, *below in rows))


def unsplit_class_folders(path: Path, declared: Manifest) -> Pictures:
    """Images in class folders alone, `<class>/*.png`, split as `test_every` of the manifest says.

    Classes and errors are as of `class_folders`; the folders of all classes lie side by side. A part of the files is
    split otherwise than the whole.
    """
    listed = _pictures(path)
    for picture in listed:
        if not picture.parent.name:
            raise ValueError(f"{path}: {picture} does not lie in a folder <class>/")
        if (beside := listed[0].parent.parent) != picture.parent.parent:
            raise ValueError(f"{path}: {picture} does not lie in {beside / '<class>'}/ as those before it; put the "
                             "pictures of a class into one folder, and all these folders side by side")
    rows, counts = [], Counter()
    for _, kind, picture in _in_order((0, picture.parent.name, picture) for picture in listed):
        counts[kind] += 1
        rows.append((int(counts[kind] % declared.images.test_every == 0), kind, picture))
    return _decoded(path, declared, rows)


def numpy_file(path: Path, declared: Manifest) -> Pictures:
    """Images and labels from an `.npz`: x_train, y_train, x_test and y_test; other arrays in it are not looked at.

    Images are uint8 (n, H, W, 3) or (n, H, W), labels whole numbers (n,). Classes of which no names are declared are
    called by their numbers.

    ValueError too if an array has another form, a label has no class, or there are more images than declared.
    """
    side, count = declared.images.size, declared.images.count
    most = _most(declared) * (3 * side**2 + 8) + SLACK
    try:
        if not zipfile.is_zipfile(path):  # of which NumPy says that it may be unpickled
            raise ValueError("it is no zip archive")
        with open(path, "rb") as opened, np.load(opened) as file:
            announced = sum(member.file_size for member in file.zip.infolist())
            if announced > most:
                raise ValueError(f"it unpacks to {announced:,} bytes, at most {most:,} are read")
            parts = [(np.asarray(file[f"x_{part}"]), np.asarray(file[f"y_{part}"])) for part in PARTS[:2]]
    except Exception as error:  # NumPy raises many kinds where a file holds no array, or one of another kind
        raise ValueError(f"{path} is not an .npz of images and labels: {error}; write it anew with x_train, y_train, "
                         "x_test and y_test") from error
    for images, labels in parts:
        if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
            shape = f"{images.dtype} {images.shape}"
            raise ValueError(f"{path}: images are {shape}, expected uint8 (n, height, width, 3) or (n, height, width)")
        if images.shape[1:3] != (side, side):
            raise ValueError(f"{path} {_other_size(*images.shape[1:3], side)}")
        if labels.shape != (len(images),) or not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(f"{path}: {len(images)} images have labels {labels.dtype} {labels.shape}")
        if labels.min(initial=0) < 0 or labels.max(initial=0) >= count:
            raise ValueError(f"{path}: labels run from {labels.min()} to {labels.max()}, expected 0 to {count - 1}")
    part = np.repeat([0, 1], [len(images) for images, _ in parts])
    _check_count(path, len(part), declared)
    labels = np.concatenate([labels for _, labels in parts]).astype(np.int64)
    classes = declared.images.names or tuple(map(str, range(labels.max(initial=0) + 1)))
    return Pictures(np.concatenate([_coloured(images) for images, _ in parts]), labels, part, classes)


READERS: dict[str, Reader] = {
    "digits": digits,
    "cifar10": partial(of_torchvision, "CIFAR10", (True, False), "targets"),    # of its Python pickles
    "cifar100": partial(of_torchvision, "CIFAR100", (True, False), "targets"),  # likewise
    "stl10": partial(of_torchvision, "STL10", PARTS, "labels"),                 # of its binary files
    **{read.__name__: read for read in (tiny_imagenet, class_folders, unsplit_class_folders, numpy_file)},
}


def read_rgb(path: Path, side: int | None = None) -> Image.Image:
    """A JPEG or PNG file as red, green and blue of 8 bits, whatever colours and depth it is stored in.

    Args:
        path: of the file.
        side: of a copy, its height and width in pixels, which are looked at before it is decoded; it must not be turned
            by its EXIF. None for any, read as it is stored: no loader of the papers' code turns pictures.

    Raises:
        ValueError: if it is gone, truncated, damaged, no such file, an animation, has other sides, or is to be turned.
    """
    try:
        contents = io.BytesIO(read_file(path))
        with Image.open(contents, formats=KINDS) as image:
            height, width = image.height, image.width
            if image.format == "PNG" and image.is_animated:  # a JPEG file may hold previews
                raise ValueError("it is an animation")
            image.verify()  # a PNG file by its checksums, which decoding passes over
        if side in (None, height) and side in (None, width):
            with Image.open(contents, formats=KINDS) as image:
                if side and (turned := image.getexif().get(ExifTags.Base.Orientation)) not in (None, 0, 1):
                    raise ValueError(f"it is to be turned, orientation {turned} of its EXIF: save it as it is seen")
                if image.mode.startswith("I"):  # grey of 16 bits, which converting would clip: its upper 8
                    return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
                return image.convert("RGB")
    except UNDECODABLE as error:
        reason = f"it is no {' or '.join(KINDS)}" if isinstance(error, UnidentifiedImageError) else error
        raise ValueError(f"{path} cannot be read as a picture ({reason}); fetch it again or leave it out") from error
    raise ValueError(f"{path} {_other_size(height, width, side)}")


def listing(root: Path, classes: Sequence[str]) -> Pictures:
    """The list of the pictures in class folders, by part, class and name, with their paths for images. None is read.

    The digest is over the classes in the order of the labels and over the sorted paths with their sizes.

    Args:
        root: of `train` and `val`.
        classes: the folders there that count, if they have a picture; of none given, all, sorted.

    Raises:
        ValueError: if `train` and `val` do not have the same classes, or no picture.
    """
    folders = [folder for place in PLACES
               for folder in ([root / place / name for name in classes] or sorted((root / place).iterdir()))
               if folder.is_dir() and not folder.name.startswith(".")]
    rows, kinds, names = [], {place: [] for place in PLACES}, []
    with ThreadPoolExecutor() as pool:  # a disk or its server answers many questions at once
        listed = tqdm(pool.map(_listed, folders), f"listing {root}", len(folders), unit="folder", disable=None)
        for folder, (pictures, all_names) in zip(folders, listed, strict=True):
            names += all_names
            if pictures:
                own, part = kinds[folder.parent.name], PLACES.index(folder.parent.name)
                rows += [(*picture, len(own), part) for picture in pictures]
                own.append(folder.name)
    _tell_skipped(root, names)
    train, val = kinds.values()
    if train != val or not train:
        odd = ", ".join(sorted(set(train) ^ set(val))[:3]) or "none"
        raise ValueError(
            f"{root} has pictures of {len(train)} classes in train/<class>/ and of {len(val)} in val/<class>/; both "
            f"need the same ones, at least one; in one alone: {odd}; put every picture into the folder of its class"
        )
    names, sizes, labels, part = map(np.array, zip(*rows, strict=True))
    order, digest = names.argsort(), hashlib.sha256(f"{names.dtype} {tuple(train)}".encode())
    digest.update(names[order])
    digest.update(sizes[order])
    return Pictures(names, labels, part, tuple(train), digest.hexdigest())


def _listed(folder: Path) -> tuple[list[tuple[bytes, int]], list[str]]:
    """(path from two folders above on, size) of the pictures in a folder, sorted; and the names of all its files."""
    with os.scandir(folder) as entries:
        shown = [entry for entry in entries if not entry.name.startswith(".")]
    return sorted((os.fsencode(f"{folder.parent.name}/{folder.name}/{entry.name}"), entry.stat().st_size)
                  for entry in shown if entry.name.lower().endswith(PICTURES)), [entry.name for entry in shown]


def _pictures(path: Path) -> list[Path]:
    """The pictures in a folder, however deep, by their paths below it."""
    listed = [file.relative_to(path) for file in files.listed(path)]
    _tell_skipped(path, (file.name for file in listed))
    return [file for file in listed if file.name.lower().endswith(PICTURES)]


def _tell_skipped(path: Path, names: Iterable[str]) -> None:
    """Say how many pictures among some files are of kinds that are not read."""
    kinds = Counter(os.path.splitext(name.lower())[1] for name in names)
    skipped = [f"{kinds[kind]:,} {kind}" for kind in sorted(kinds) if kind not in PICTURES
               and (mimetypes.guess_type(f"x{kind}", strict=False)[0] or "").startswith("image/")]
    if skipped:
        tqdm.write(f"{path}: left out {', '.join(skipped)}, as {' and '.join(KINDS)} alone are read; save them as PNG",
                   file=sys.stderr)


def _from_part(path: Path, picture: Path) -> tuple[str, ...]:
    """The parts of a picture's path from `train`, `test` or `val` on; raises ValueError if it lies in none of these."""
    for number, part in enumerate(picture.parts):
        if part in ("train", "test", "val"):
            return picture.parts[number:]
    raise ValueError(f"{path}: {picture} does not lie in {FOLDERS}")


def _in_order(rows: Iterable[Row]) -> list[Row]:
    """By part, class and name."""
    return sorted(rows, key=lambda row: (*row[:2], row[2].as_posix()))


def _decoded(path: Path, declared: Manifest, rows: Sequence[Row]) -> Pictures:
    """Pictures in the order of their rows; classes without declared names are theirs.

    ValueError if a class has none for training, or none for test.
    """
    if not rows:
        raise ValueError(f"{path} holds no image ({', '.join(PICTURES)}) in class folders")
    _check_count(path, len(rows), declared)
    part, kinds, pictures = zip(*rows, strict=True)
    names, side = declared.images.names or tuple(sorted(set(kinds))), declared.images.size
    if len(names) > declared.images.count:
        raise ValueError(f"{path} has {len(names):,} classes, {names[0]} to {names[-1]}, expected the "
                         f"{declared.images.count} of {declared.name}; take it in as the data set it is a copy of")
    for name in sorted({*kinds} - {*names}):
        choose(f"{path}: class", name, names)
    for place, lacking in enumerate(PARTS[:2]):
        if bare := sorted({*kinds} - {kind for part_of, kind, _ in rows if part_of == place}):
            every = f" (test_every={declared.images.test_every})" if declared.images.test_every else ""
            raise ValueError(f"{path}: {len(bare):,} of {len({*kinds}):,} classes have no picture for {lacking}, the "
                             f"first is {bare[0]!r}{every}; add some, or leave the class out")

    def decoded(picture: Path) -> np.ndarray:
        return np.asarray(read_rgb(path / picture, side))

    with ThreadPoolExecutor() as pool:
        images = list(tqdm(pool.map(decoded, pictures), "decoding", len(pictures), unit="image", disable=None))
    labels = np.array([names.index(name) for name in kinds], dtype=np.int64)
    return Pictures(_coloured(np.stack(images)), labels, np.array(part), names)


def _other_size(height: int, width: int, side: int) -> str:
    return (f"has {height} x {width} pixels, expected {side} x {side}; take it in as the data set it is a copy of, or "
            "scale its pictures")


def _most(declared: Manifest) -> int:
    """How many images of a data set have labels."""
    return declared.expect["train"] + declared.expect["test"]


def _check_count(path: Path, count: int, declared: Manifest) -> None:
    if count > _most(declared):
        raise ValueError(f"{path} holds more images than the {_most(declared):,} of the data set; leave some out")


def _coloured(images: np.ndarray) -> np.ndarray:
    """(n, 3, H, W) from (n, H, W, 3) or grey (n, H, W)."""
    if images.ndim == 3:
        return np.repeat(images[:, None], 3, axis=1)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
