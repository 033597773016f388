"""Image data sets in their official layouts, and copies people have of them, as arrays."""

import io
import tokenize
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from torchvision import datasets
from tqdm.auto import tqdm

from repro import npz
from repro.image import archives
from repro.image.files import read_rgb
from repro.recipe import choose

PARTS = ("train", "test", "unlabeled")
PICTURES = (".jpg", ".jpeg", ".png")
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


def digits() -> Pictures:
    """Handwritten digits of 8 x 8 pixels; the last 450 of 1,797 are for test.

    Source: the test half of the UCI set `optdigits` (Alpaydin and Kaynak 1998), as scikit-learn contains it.
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    grey = (found.images * (255 / 16)).round().astype(np.uint8)
    images = np.repeat(grey[:, None], 3, axis=1)
    part = np.zeros(len(images), dtype=np.int64)
    part[-450:] = PARTS.index("test")
    return Pictures(images, found.target.astype(np.int64), part, tuple(map(str, found.target_names)))


def cifar(path: Path, kind: type[datasets.CIFAR10]) -> Pictures:
    """CIFAR-10 or CIFAR-100 from the archive of Python pickles or the folder it unpacks to; checksums are checked.

    Args:
        path: `cifar-10-python.tar.gz` or `cifar-10-batches-py`, or those of CIFAR-100.
        kind: `torchvision.datasets.CIFAR10` or `CIFAR100`.

    Raises:
        ValueError: if a file is missing or not the official one.
    """
    with archives.unpacked(path) as root:
        halves = [_official(path, lambda train=train: kind(root, train=train)) for train in (True, False)]
    images = np.concatenate([half.data for half in halves]).transpose(0, 3, 1, 2)
    labels = np.concatenate([half.targets for half in halves])
    part = np.repeat([0, 1], [len(half.data) for half in halves])
    return Pictures(np.ascontiguousarray(images), labels.astype(np.int64), part, tuple(halves[0].classes))


def stl10(path: Path) -> Pictures:
    """STL-10 from its archive of binary files or the folder it unpacks to; checksums are checked.

    Raises:
        ValueError: if a file is missing or not the official one.
    """
    with archives.unpacked(path) as root:
        parts = [_official(path, lambda split=split: datasets.STL10(root, split=split)) for split in PARTS]
    part = np.repeat([0, 1, 2], [len(each.data) for each in parts])
    labels = np.concatenate([each.labels for each in parts]).astype(np.int64)
    return Pictures(np.concatenate([each.data for each in parts]), labels, part, tuple(parts[0].classes))


def tiny_imagenet(path: Path) -> Pictures:
    """Tiny-ImageNet from its archive or folder: `train/<class>/images/`, `val/images/` and `val/val_annotations.txt`.

    The validation images are for test; classes are WordNet ids, sorted.

    Raises:
        ValueError: if the archive is damaged, or an image has no class or another size.
    """
    members = dict(archives.contents(path))
    lines = members.get("val/val_annotations.txt", b"").decode().splitlines()
    validation = {name: wnid for name, wnid, *_ in map(str.split, lines)}
    rows = []
    for name, data in members.items():
        place = PurePosixPath(name)
        if place.suffix.lower() not in PICTURES or place.parts[0] == "test":  # whose classes were never published
            continue
        wnid = place.parts[1] if place.parts[0] == "train" else validation.get(place.name)
        if wnid is None:
            raise ValueError(f"{path}: {name} is not in val/val_annotations.txt; fetch the archive again")
        rows.append((place.parts[0] != "train", wnid, name, data))
    return _labelled(path, sorted(rows, key=lambda row: row[:3]), classes=None)


def numpy_file(path: Path, classes: Sequence[str] | int) -> Pictures:
    """Images and labels from an `.npz`: x_train, y_train, x_test and y_test; other arrays in it are not looked at.

    Args:
        path: x_... are uint8 (n, H, W, 3) or (n, H, W), y_... whole numbers (n,).
        classes: of the data set, in the order of the labels; or how many there are at most, which are then numbers.

    Raises:
        ValueError: if the file is damaged, an array is missing or has another form, or a label has no class.
    """
    wanted = ("x_train", "y_train", "x_test", "y_test")
    arrays = _npz(path, wanted)
    missing = [name for name in wanted if name not in arrays]
    if missing:
        raise _no_npz(path, f"it lacks {', '.join(missing)}, has {', '.join(arrays)}")
    images, labels, more, further = (arrays[name] for name in wanted)
    parts = [(_channels_first(path, images), labels), (_channels_first(path, more), further)]
    for pictures, numbers in parts:
        if numbers.shape != (len(pictures),) or not np.issubdtype(numbers.dtype, np.integer):
            raise ValueError(f"{path}: {len(pictures)} images have labels {numbers.dtype} {numbers.shape}")
    labels = np.concatenate([numbers for _, numbers in parts]).astype(np.int64)
    most = classes if isinstance(classes, int) else len(classes)
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= most:
        raise ValueError(f"{path}: labels run from {labels.min()} to {labels.max()}, expected 0 to {most - 1}")
    names = tuple(map(str, range(labels.max(initial=0) + 1))) if isinstance(classes, int) else tuple(classes)
    if parts[0][0].shape[1:] != parts[1][0].shape[1:]:
        raise ValueError(f"{path}: x_train holds {parts[0][0].shape[1:]}, x_test {parts[1][0].shape[1:]}")
    part = np.repeat([0, 1], [len(pictures) for pictures, _ in parts])
    return Pictures(np.concatenate([pictures for pictures, _ in parts]), labels, part, names)


def class_names(path: Path) -> tuple[str, ...]:
    """What an `.npz` calls the classes of the whole data set, in `class_names`; nothing if it has no such array.

    Raises:
        ValueError: as `numpy_file`.
    """
    names = _npz(path, ("class_names",)).get("class_names")
    return () if names is None else tuple(map(str, names.ravel()))


def _npz(path: Path, wanted: Sequence[str]) -> dict[str, np.ndarray | None]:
    """Those of the wanted arrays that an `.npz` has, by name, and None for every other one.

    Raises:
        ValueError: if the file is damaged, unpacks to too much, or something wanted is no array.
    """
    try:
        with open(path, "rb") as opened, np.load(opened) as file:
            room = archives.Room()
            for member in file.zip.infolist():
                room.take(member.file_size)
            found = {name: file[name] if name in wanted else None for name in file.files}
    except UNREADABLE as error:
        raise _no_npz(path, error) from error
    odd = [name for name in wanted if not isinstance(found.get(name), np.ndarray | None)]
    if odd:
        raise _no_npz(path, f"{', '.join(odd)} should be arrays")
    return found


def _no_npz(path: Path, why: object) -> ValueError:
    return ValueError(f"{path} is not an .npz of images and labels: {why}")


def class_folders(path: Path, classes: Sequence[str] | None) -> Pictures:
    """Images in class folders, `train/<class>/` and `test/<class>/` (or `val/`), from a folder, zip or tar archive.

    Args:
        path: of the folder or archive.
        classes: of the data set, in the order of the labels; None takes the folders, sorted.

    Raises:
        ValueError: if the archive is damaged, a folder is no class, or an image has another size or cannot be read.
    """
    rows = []
    for name, data in archives.contents(path):
        place = PurePosixPath(name)
        if place.suffix.lower() not in PICTURES:
            continue
        if len(place.parts) != 3 or place.parts[0] not in ("train", "test", "val"):
            raise ValueError(f"{path}: {name} does not lie in train/<class>/, test/<class>/ or val/<class>/")
        rows.append((place.parts[0] != "train", place.parts[1], name, data))
    if not rows:
        raise ValueError(f"{path} holds no image ({', '.join(PICTURES)}) in train/<class>/ or test/<class>/")
    return _labelled(path, sorted(rows, key=lambda row: row[:3]), classes)


def _labelled(path: Path, rows: list[tuple[bool, str, str, bytes]], classes: Sequence[str] | None) -> Pictures:
    """Pictures from rows of (for test, class, name, contents)."""
    names = tuple(classes) if classes else tuple(sorted({wnid for _, wnid, _, _ in rows}))
    places = {name: place for place, name in enumerate(names)}
    for _, wnid, name, _ in rows:
        if wnid not in places:
            choose(f"{path}: class of {name}", wnid, names)
    images = _decoded([(f"{path}: {name}", data) for _, _, name, data in rows])
    labels = np.array([places[wnid] for _, wnid, _, _ in rows], dtype=np.int64)
    return Pictures(images, labels, np.array([int(test) for test, *_ in rows]), names)


def _decoded(files: list[tuple[str, bytes]]) -> np.ndarray:
    """(n, 3, H, W) uint8 from (name, contents) of pictures of one size, decoded by several threads."""
    with ThreadPoolExecutor() as pool:
        found = list(tqdm(pool.map(_picture, files), total=len(files), desc="decoding", unit="image"))
    for (name, _), image in zip(files, found, strict=True):
        if image.shape != found[0].shape:
            raise ValueError(f"{name} has shape {image.shape}, the first one {found[0].shape}; sizes should agree")
    return np.stack(found)


def _picture(file: tuple[str, bytes]) -> np.ndarray:
    name, data = file
    return np.asarray(read_rgb(io.BytesIO(data), name)).transpose(2, 0, 1)


def _channels_first(path: Path, images: np.ndarray) -> np.ndarray:
    """(n, 3, H, W) from (n, H, W, 3) or (n, H, W)."""
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        found = f"{images.dtype} {images.shape}"
        raise ValueError(f"{path}: images are {found}, expected uint8 (n, height, width, 3) or (n, height, width)")
    if images.ndim == 3:
        return np.repeat(images[:, None], 3, axis=1)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def _official(path: Path, read: Callable) -> datasets.VisionDataset:
    """What torchvision reads, its complaint about missing or other files turned into ours."""
    try:
        return read()
    except RuntimeError as error:
        raise ValueError(f"{path} is not the official distribution, or damaged; fetch it again") from error
