"""Image data sets in their official layouts, and copies people have of them, as arrays."""

import functools
import io
import itertools
import tokenize
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from repro.data import archives, npz
from repro.data.manifest import Manifest
from repro.image import DATASETS
from repro.image.files import PARTS, PICTURES, Pictures, read_rgb
from repro.recipe import choose

AT_ONCE = 64                  # files of pictures that are held at a time
SLACK = 2**26                 # bytes that other arrays than images and labels may take in an `.npz`
UNREADABLE = (                # what NumPy raises for a description of an array that is odd, or of no array; or warns of
    *npz.DAMAGED, SyntaxError, tokenize.TokenError, TypeError, RuntimeError, OverflowError, MemoryError, Warning,
)


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
    listed = next(_files(path, lambda place: place.as_posix() == "val/val_annotations.txt"), (None, b""))[1]
    validation = {name: wnid for name, wnid, *_ in map(str.split, listed.decode().splitlines())}
    rows = []
    for place, image in _decoded(path, declared, lambda place: place.parts[0] != "test"):  # without published classes
        wnid = place.parts[1] if place.parts[0] == "train" else validation.get(place.name)
        if wnid is None:
            raise ValueError(f"{path}: {place} is not in val/val_annotations.txt; fetch the archive again")
        rows.append((place.parts[0] != "train", wnid, f"{place}", image))
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
    wanted, most = ("x_train", "y_train", "x_test", "y_test"), _most(declared)
    arrays = _npz(path, (*wanted, "class_names"), most * (3 * declared.images.size**2 + 8) + SLACK)
    missing = [name for name in wanted if name not in arrays]
    if missing:
        raise _no_npz(path, f"it lacks {', '.join(missing)}")
    if "class_names" in arrays:
        names = arrays["class_names"].ravel()
        if len(names) != declared.images.count:
            raise _other_classes(path, names, declared)
        check_classes(path, tuple(map(str, names)), declared)
    parts = [(arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in ("train", "test")]
    for images, labels in parts:
        if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
            shape = f"{images.dtype} {images.shape}"
            raise ValueError(f"{path}: images are {shape}, expected uint8 (n, height, width, 3) or (n, height, width)")
        _check_size(f"{path}", images.shape[1:3], declared)
        if labels.shape != (len(images),) or not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(f"{path}: {len(images)} images have labels {labels.dtype} {labels.shape}")
    part = np.repeat([0, 1], [len(images) for images, _ in parts])
    if len(part) > most:
        raise _too_many(path, declared)
    labels = np.concatenate([labels for _, labels in parts]).astype(np.int64)
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= declared.images.count:
        raise ValueError(f"{path}: labels run from {labels.min()} to {labels.max()}, expected 0 to "
                         f"{declared.images.count - 1}")
    names = declared.images.names or tuple(map(str, range(labels.max(initial=0) + 1)))
    return Pictures(np.concatenate([_channels_first(images) for images, _ in parts]), labels, part, names)


def _npz(path: Path, wanted: tuple[str, ...], most: int) -> dict[str, np.ndarray]:
    """Those of the wanted arrays that an `.npz` has, by name.

    Raises:
        ValueError: if the file is damaged, announces more than `most` bytes, or what is wanted is no array.
    """
    try:
        with open(path, "rb") as opened, np.load(opened) as file:
            announced = sum(member.file_size for member in file.zip.infolist())
            if announced > most:
                raise ValueError(f"it unpacks to {announced:,} bytes, at most {most:,} are read")
            arrays = {name: file[name] for name in wanted if name in file.files}
    except UNREADABLE as error:
        raise _no_npz(path, error) from error
    odd = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if odd:
        raise _no_npz(path, f"{', '.join(odd)} should be arrays")
    return arrays


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
    for place, image in _decoded(path, declared, lambda place: True):
        if len(place.parts) != 3:
            raise ValueError(f"{path}: {place} does not lie in train/<class>/, test/<class>/ or val/<class>/")
        rows.append((place.parts[0] != "train", place.parts[1], f"{place}", image))
    return _labelled(path, rows, declared)


def check_classes(path: Path, names: tuple[str, ...], declared: Manifest) -> None:
    """Raise ValueError unless classes may be those of a data set; of numbered ones some may be missing."""
    known = declared.images.names
    others = [other.images.names for other in DATASETS.values() if other.images.size]
    another = not known and any(set(names) <= set(other) for other in others)
    if another or len(names) > declared.images.count or (known and names != known):
        raise _other_classes(path, names, declared)


def _other_classes(path: Path, names: Sequence[str], declared: Manifest) -> ValueError:
    shown = f", {names[0]} to {names[-1]}" if len(names) else ""
    known = f": {', '.join(declared.images.names)}" if declared.images.names else ""
    return ValueError(f"{path} has {len(names):,} classes{shown}, expected the {declared.images.count} of "
                      f"{declared.name}{known}; take it in as the data set it is a copy of, or bring it into the form "
                      f"of {declared.name}")


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


def _files(path: Path, wanted: Callable[[PurePosixPath], bool]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """(place, contents) of the files in a folder or archive whose places, from `train`, `test` or `val` on, are wanted.

    Pictures that lie in none of these are refused.
    """
    def placed(name: str) -> PurePosixPath | None:
        parts = PurePosixPath(name).parts
        start = next((number for number, part in enumerate(parts) if part in ("train", "test", "val")), None)
        if start is None and PurePosixPath(name).suffix.lower() in PICTURES:
            raise ValueError(f"{path}: {name} does not lie in train/<class>/, test/<class>/ or val/<class>/")
        return None if start is None else PurePosixPath(*parts[start:])

    for name, data in archives.contents(path, lambda name: (place := placed(name)) is not None and wanted(place)):
        yield placed(name), data


def _decoded(
    path: Path, declared: Manifest, wanted: Callable[[PurePosixPath], bool]
) -> list[tuple[PurePosixPath, np.ndarray]]:
    """Place and (3, H, W) uint8 of the pictures in a folder or archive, decoded a few at a time by several threads."""
    decoded, files = [], _files(path, lambda place: place.suffix.lower() in PICTURES and wanted(place))
    with ThreadPoolExecutor() as pool, tqdm(desc="decoding", unit="image") as progress:
        while few := list(itertools.islice(files, AT_ONCE)):
            decoded += pool.map(functools.partial(_picture, path, declared), few)
            progress.update(len(few))
            if len(decoded) > _most(declared):
                raise _too_many(path, declared)
    if not decoded:
        raise ValueError(f"{path} holds no image ({', '.join(PICTURES)}) in train/<class>/ or test/<class>/")
    return decoded


def _picture(path: Path, declared: Manifest, file: tuple[PurePosixPath, bytes]) -> tuple[PurePosixPath, np.ndarray]:
    place, data = file
    image = np.asarray(read_rgb(io.BytesIO(data), f"{path}: {place}"))
    _check_size(f"{path}: {place}", image.shape[:2], declared)
    return place, image.transpose(2, 0, 1)


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
