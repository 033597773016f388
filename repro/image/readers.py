"""Image data sets in their official layouts, and copies people have of them, as arrays."""

import functools
import io
import itertools
import tokenize
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from repro.data import npz
from repro.data.manifest import Manifest
from repro.image import archives
from repro.image.files import read_rgb, size
from repro.recipe import choose

PARTS = ("train", "test", "unlabeled")
PICTURES = (".jpg", ".jpeg", ".png")
AT_ONCE = 64                  # files of pictures that are held at a time
LARGEST_NAMES = 2**20         # bytes that the array of the classes' names may take
MOST_NAMES = 1000
HEADERS = 2**16               # bytes that the descriptions of the arrays take at most
UNREADABLE = (                # what NumPy raises for a description of an array that is odd, or of no array; or warns of
    *npz.DAMAGED, SyntaxError, tokenize.TokenError, TypeError, RuntimeError, OverflowError, MemoryError, Warning,
)


@dataclass(frozen=True)
class Pictures:
    """Images of one size, or the files of images of any size.

    Attributes:
        images: (n, 3, H, W) uint8, red, green, blue; or (n,) bytes, paths below the data set's folder.
        labels: (n,) int64, the class from 0; -1 where there is none.
        part: (n,) int64, place in `PARTS`.
        classes: their names, in the order of the labels.
    """

    images: np.ndarray
    labels: np.ndarray
    part: np.ndarray
    classes: tuple[str, ...]


READERS: dict[str, Callable[[Path, Manifest], Pictures]] = {}


def reader(read: Callable[[Path, Manifest], Pictures]) -> Callable[[Path, Manifest], Pictures]:
    """Decorates a function that manifests may name as their reader.

    It takes the path of the official distribution, the archive or the folder it unpacks to, and the manifest. Pictures
    of a data set, or of a copy of a part of it, are no others than declared and no more of them.
    """
    READERS[read.__name__] = read
    return read


@reader
def digits(path: Path, declared: Manifest) -> Pictures:
    """Handwritten digits of 8 x 8 pixels, from no file; the last 450 of 1,797 are for test.

    Source: the test half of the UCI set `optdigits` (Alpaydin and Kaynak 1998), as scikit-learn contains it.
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    grey = (found.images * (255 / 16)).round().astype(np.uint8)
    images = np.repeat(grey[:, None], 3, axis=1)
    part = np.zeros(len(images), dtype=np.int64)
    part[-450:] = PARTS.index("test")
    return Pictures(images, found.target.astype(np.int64), part, tuple(map(str, found.target_names)))


@reader
def cifar10(path: Path, declared: Manifest) -> Pictures:
    """CIFAR-10 from its archive of Python pickles or the folder it unpacks to; checksums are checked.

    Raises:
        ValueError: if a file is missing or not the official one.
    """
    return _cifar(path, "CIFAR10")


@reader
def cifar100(path: Path, declared: Manifest) -> Pictures:
    """CIFAR-100, likewise."""
    return _cifar(path, "CIFAR100")


def _cifar(path: Path, name: str) -> Pictures:
    from torchvision import datasets  # late: it takes as long to import as torch

    kind = getattr(datasets, name)
    with archives.unpacked(path) as root:
        halves = [_official(path, lambda train=train: kind(root, train=train)) for train in (True, False)]
    images = np.concatenate([half.data for half in halves]).transpose(0, 3, 1, 2)
    labels = np.concatenate([half.targets for half in halves])
    part = np.repeat([0, 1], [len(half.data) for half in halves])
    return Pictures(np.ascontiguousarray(images), labels.astype(np.int64), part, tuple(halves[0].classes))


@reader
def stl10(path: Path, declared: Manifest) -> Pictures:
    """STL-10 from its archive of binary files or the folder it unpacks to; checksums are checked.

    Raises:
        ValueError: if a file is missing or not the official one.
    """
    from torchvision import datasets

    with archives.unpacked(path) as root:
        parts = [_official(path, lambda split=split: datasets.STL10(root, split=split)) for split in PARTS]
    part = np.repeat([0, 1, 2], [len(each.data) for each in parts])
    labels = np.concatenate([each.labels for each in parts]).astype(np.int64)
    return Pictures(np.concatenate([each.data for each in parts]), labels, part, tuple(parts[0].classes))


@reader
def tiny_imagenet(path: Path, declared: Manifest) -> Pictures:
    """Tiny-ImageNet from its archive or folder: `train/<class>/images/`, `val/images/` and `val/val_annotations.txt`.

    The validation images are for test; classes are WordNet ids, sorted.

    Raises:
        ValueError: if the archive is damaged, an image has no class or another size, or there are too many.
    """
    members = dict(archives.contents(path, lambda name: name == "val/val_annotations.txt"))
    lines = members.get("val/val_annotations.txt", b"").decode().splitlines()
    validation = {name: wnid for name, wnid, *_ in map(str.split, lines)}
    rows = []

    def labelled(name: str) -> bool:
        return _is_picture(name) and PurePosixPath(name).parts[0] != "test"  # whose classes were never published

    for name, image in _decoded(path, declared, labelled):
        place = PurePosixPath(name)
        wnid = place.parts[1] if place.parts[0] == "train" else validation.get(place.name)
        if wnid is None:
            raise ValueError(f"{path}: {name} is not in val/val_annotations.txt; fetch the archive again")
        rows.append((place.parts[0] != "train", wnid, name, image))
    return _labelled(path, rows, declared)


@reader
def numpy_file(path: Path, declared: Manifest) -> Pictures:
    """Images and labels from an `.npz`: x_train, y_train, x_test and y_test; other arrays in it are not looked at.

    Args:
        path: x_... are uint8 (n, H, W, 3) or (n, H, W), y_... whole numbers (n,).
        declared: classes of which no names are declared are called by their numbers.

    Raises:
        ValueError: if the file is damaged, an array is missing or has another form, there are too many images, or a
            label has no class.
    """
    wanted = ("x_train", "y_train", "x_test", "y_test")
    most, classes = _most(declared), declared.images.count
    arrays = _npz(path, wanted, most * (3 * declared.images.size**2 + 8) + HEADERS)
    missing = [name for name in wanted if name not in arrays]
    if missing:
        raise _no_npz(path, f"it lacks {', '.join(missing)}, has {', '.join(arrays)}")
    images, labels, more, further = (arrays[name] for name in wanted)
    for pictures in (images, more):
        _check_images(path, pictures, declared)
    if len(images) + len(more) > most:
        raise _too_many(path, declared)
    parts = [(_channels_first(images), labels), (_channels_first(more), further)]
    for pictures, numbers in parts:
        if numbers.shape != (len(pictures),) or not np.issubdtype(numbers.dtype, np.integer):
            raise ValueError(f"{path}: {len(pictures)} images have labels {numbers.dtype} {numbers.shape}")
    labels = np.concatenate([numbers for _, numbers in parts]).astype(np.int64)
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= classes:
        raise ValueError(f"{path}: labels run from {labels.min()} to {labels.max()}, expected 0 to {classes - 1}")
    names = declared.images.names or tuple(map(str, range(labels.max(initial=0) + 1)))
    part = np.repeat([0, 1], [len(pictures) for pictures, _ in parts])
    return Pictures(np.concatenate([pictures for pictures, _ in parts]), labels, part, names)


def class_names(path: Path) -> tuple[str, ...]:
    """What an `.npz` calls the classes of the whole data set, in `class_names`; nothing if it has no such array.

    Raises:
        ValueError: as `numpy_file`.
    """
    names = _npz(path, ("class_names",), LARGEST_NAMES).get("class_names")
    if names is not None and names.size > MOST_NAMES:
        raise _no_npz(path, f"class_names has {names.size:,} names, at most {MOST_NAMES:,} are read")
    return () if names is None else tuple(map(str, names.ravel()))


def _npz(path: Path, wanted: Sequence[str], most: int) -> dict[str, np.ndarray | None]:
    """Those of the wanted arrays that an `.npz` has, by name, and None for every other one.

    Raises:
        ValueError: if the file is damaged, what is wanted announces more than `most` bytes, or is no array.
    """
    try:
        with open(path, "rb") as opened, np.load(opened) as file:
            announced = sum(member.file_size for member in file.zip.infolist()
                            if member.filename.removesuffix(".npy") in wanted)
            if announced > most:
                raise ValueError(f"{', '.join(wanted)} unpack to {announced:,} bytes, at most {most:,} are read")
            found = {name: file[name] if name in wanted else None for name in file.files}
    except UNREADABLE as error:
        raise _no_npz(path, error) from error
    odd = [name for name in wanted if not isinstance(found.get(name), np.ndarray | None)]
    if odd:
        raise _no_npz(path, f"{', '.join(odd)} should be arrays")
    return found


def _no_npz(path: Path, why: object) -> ValueError:
    return ValueError(f"{path} is not an .npz of images and labels: {why}")


@reader
def class_folders(path: Path, declared: Manifest) -> Pictures:
    """Images in class folders, `train/<class>/` and `test/<class>/` (or `val/`), from a folder, zip or tar archive.

    Args:
        path: of the folder or archive.
        declared: classes of which no names are declared are the folders, sorted.

    Raises:
        ValueError: if the archive is damaged, a folder is no class, an image has another size or cannot be read, or
            there are too many.
    """
    rows = []
    for name, image in _decoded(path, declared, _is_picture):
        place = PurePosixPath(name)
        if len(place.parts) != 3 or place.parts[0] not in ("train", "test", "val"):
            raise ValueError(f"{path}: {name} does not lie in train/<class>/, test/<class>/ or val/<class>/")
        rows.append((place.parts[0] != "train", place.parts[1], name, image))
    return _labelled(path, rows, declared)


def _labelled(path: Path, rows: list[tuple[bool, str, str, np.ndarray]], declared: Manifest) -> Pictures:
    """Pictures from rows of (for test, class, name, image), sorted; classes without declared names are the rows'."""
    rows = sorted(rows, key=lambda row: row[:3])
    names = declared.images.names or tuple(sorted({wnid for _, wnid, _, _ in rows}))
    places = {name: place for place, name in enumerate(names)}
    for _, wnid, name, _ in rows:
        if wnid not in places:
            choose(f"{path}: class of {name}", wnid, names)
    labels = np.array([places[wnid] for _, wnid, _, _ in rows], dtype=np.int64)
    return Pictures(np.stack([image for *_, image in rows]), labels, np.array([int(test) for test, *_ in rows]), names)


def _is_picture(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in PICTURES


def _decoded(path: Path, declared: Manifest, wanted: Callable[[str], bool]) -> list[tuple[str, np.ndarray]]:
    """Name and (3, H, W) uint8 of the pictures in a folder or archive, decoded a few at a time by several threads."""
    found, files = [], archives.contents(path, wanted)
    with ThreadPoolExecutor() as pool, tqdm(desc="decoding", unit="image") as progress:
        while few := list(itertools.islice(files, AT_ONCE)):
            found += pool.map(functools.partial(_picture, path, declared), few)
            progress.update(len(few))
            if len(found) > _most(declared):
                raise _too_many(path, declared)
    if not found:
        raise ValueError(f"{path} holds no image ({', '.join(PICTURES)}) in train/<class>/ or test/<class>/")
    return found


def _picture(path: Path, declared: Manifest, file: tuple[str, bytes]) -> tuple[str, np.ndarray]:
    name, data = file
    called, stream = f"{path}: {name}", io.BytesIO(data)
    _check_size(called, size(stream, called), declared)
    stream.seek(0)
    return name, np.asarray(read_rgb(stream, called)).transpose(2, 0, 1)


def _check_images(path: Path, images: np.ndarray, declared: Manifest) -> None:
    """Raise unless they are uint8 (n, H, W, 3) or (n, H, W) of the right size."""
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        found = f"{images.dtype} {images.shape}"
        raise ValueError(f"{path}: images are {found}, expected uint8 (n, height, width, 3) or (n, height, width)")
    _check_size(f"{path}", images.shape[1:3], declared)


def _check_size(name: str, found: tuple[int, ...], declared: Manifest) -> None:
    side = declared.images.size
    if found != (side, side):
        expected = f"{side} x {side}; take it in as the data set it is a copy of, or scale its pictures"
        raise ValueError(f"{name} has {found[0]} x {found[1]} pixels, expected {expected}")


def _most(declared: Manifest) -> int:
    """How many images of a data set have labels."""
    return declared.expect["train"] + declared.expect["test"]


def _too_many(path: Path, declared: Manifest) -> ValueError:
    return ValueError(f"{path} holds more images than the {_most(declared):,} of the data set; leave some out")


def _channels_first(images: np.ndarray) -> np.ndarray:
    """(n, 3, H, W) from (n, H, W, 3) or (n, H, W)."""
    if images.ndim == 3:
        return np.repeat(images[:, None], 3, axis=1)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def _official(path: Path, read: Callable) -> Any:
    """What torchvision reads, its complaint about missing or other files turned into ours."""
    try:
        return read()
    except RuntimeError as error:
        raise ValueError(f"{path} is not the official distribution, or damaged; fetch it again") from error
