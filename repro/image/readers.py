"""Image data sets in their official layouts, and copies people have of them, as arrays or as lists of files."""

import contextlib
import hashlib
import io
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from torchvision import datasets
from tqdm.auto import tqdm

from repro import manifest
from repro.image.files import read_rgb
from repro.recipe import choose

PARTS = ("train", "test", "unlabeled")
PICTURES = (".jpg", ".jpeg", ".png")
PLACES = ("train", "val")     # folders of ImageNet, for the first two parts
LARGEST = 2**33               # bytes that an archive may unpack to, all files together; STL-10 has 3.1e9
DAMAGED = (*manifest.CORRUPT, tarfile.TarError, OSError, ValueError, KeyError)


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
    with _unpacked(path) as root:
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
    with _unpacked(path) as root:
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
    members = dict(contents(path))
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
    with _npz(path) as file:
        missing = [name for name in wanted if name not in file.files]
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)}, has {', '.join(file.files)}")
        images, labels, more, further = found = [file[name] for name in wanted]
        if not all(isinstance(array, np.ndarray) for array in found):
            raise ValueError(f"{', '.join(wanted)} are not all arrays")
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
    with _npz(path) as file:
        return tuple(map(str, file["class_names"].ravel())) if "class_names" in file.files else ()


@contextlib.contextmanager
def _npz(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """An `.npz` as NumPy opens it, which reads an array when it is asked for."""
    try:
        with np.load(path, allow_pickle=False) as file:
            room = _Room()
            for member in file.zip.infolist():
                room.take(member.file_size)
            yield file
    except Exception as error:  # NumPy raises many kinds for what it cannot read
        raise ValueError(f"{path} is not an .npz of images and labels: {error}") from error


def class_folders(path: Path, classes: Sequence[str] | None) -> Pictures:
    """Images in class folders, `train/<class>/` and `test/<class>/` (or `val/`), from a folder, zip or tar archive.

    Args:
        path: of the folder or archive.
        classes: of the data set, in the order of the labels; None takes the folders, sorted.

    Raises:
        ValueError: if the archive is damaged, a folder is no class, or an image has another size or cannot be read.
    """
    rows = []
    for name, data in contents(path):
        place = PurePosixPath(name)
        if place.suffix.lower() not in PICTURES:
            continue
        if len(place.parts) != 3 or place.parts[0] not in ("train", "test", "val"):
            raise ValueError(f"{path}: {name} does not lie in train/<class>/, test/<class>/ or val/<class>/")
        rows.append((place.parts[0] != "train", place.parts[1], name, data))
    if not rows:
        raise ValueError(f"{path} holds no image ({', '.join(PICTURES)}) in train/<class>/ or test/<class>/")
    return _labelled(path, sorted(rows, key=lambda row: row[:3]), classes)


def imagenet_folders(root: Path, classes: Sequence[str] | None) -> list[Path]:
    """The folders `train/<class>`, then `val/<class>`, that there are of the given classes, or of all, sorted."""
    folders = []
    for place in PLACES:
        present = {path.name for path in (root / place).iterdir() if path.is_dir() and not path.name.startswith(".")}
        folders += [root / place / name for name in classes or sorted(present) if name in present]
    return folders


def imagenet(root: Path, folders: Sequence[Path]) -> tuple[Pictures, str]:
    """The list of the pictures in class folders of ImageNet, and a digest of it. No picture is read.

    Args:
        root: of `train` and `val`.
        folders: as `imagenet_folders` gives them; those without a picture are passed over.

    Returns:
        Pictures by part, class and name, with their paths for images; and the hex sha256 over the classes in the order
        of the labels and over the sorted paths with their sizes.

    Raises:
        ValueError: if `train` and `val` do not have the same classes, or no picture.
    """
    with ThreadPoolExecutor() as pool:  # a disk or its server answers many questions at once
        found = list(tqdm(pool.map(_listed, folders), total=len(folders), desc=f"listing {root}", unit="folder"))
    filled = [folder for folder, (names, _) in zip(folders, found, strict=True) if len(names)]
    train, val = ([folder.name for folder in filled if folder.parent == root / place] for place in PLACES)
    if train != val or not train:
        odd = ", ".join(sorted(set(train) ^ set(val))[:3]) or "none"
        raise ValueError(
            f"{root} has pictures of {len(train)} classes in train/<class>/ and of {len(val)} in val/<class>/; both "
            f"need the same ones, at least one; in one alone: {odd}; put every picture into the folder of its class"
        )
    names, sizes = map(np.concatenate, zip(*found, strict=True))
    counts = [len(names) for names, _ in found if len(names)]
    labels = np.repeat(np.tile(np.arange(len(train)), len(PLACES)), counts)
    part = np.repeat(np.repeat(np.arange(len(PLACES)), len(train)), counts)
    return Pictures(names, labels, part, tuple(train)), _listing_digest(names, sizes, train)


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """(name, contents) of the files in a folder, zip or tar archive; a folder that holds all others is left out.

    Raises:
        ValueError: if the archive is damaged.
    """
    try:
        files = list(_files(path))
    except (*DAMAGED, RuntimeError) as error:  # RuntimeError: it is encrypted
        raise ValueError(f"{path} is truncated or damaged ({error}); fetch it again") from error
    visible = [(name, data) for name, data in files
               if not any(part == "__MACOSX" or part.startswith("._") for part in name.split("/"))]
    tops = {name.split("/", 1)[0] for name, _ in visible}
    outer = f"{tops.pop()}/" if len(tops) == 1 and not tops & {"train", "test", "val"} else ""
    for name, data in visible:
        yield name.removeprefix(outer), data


class _Room:
    """What an archive may still unpack to; no member unpacks to more than it says."""

    def __init__(self) -> None:
        self.left = LARGEST

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise ValueError(f"it unpacks to more than {LARGEST:,} bytes")

    def checked(self, member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
        """A filter of `tarfile` that lets no member leave the folder either."""
        self.take(member.size)
        return tarfile.data_filter(member, folder)


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    room = _Room()
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield file.relative_to(path).as_posix(), file.read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.filename.endswith("/"):  # `is_dir` fails where a name is empty
                    room.take(info.file_size)
                    yield info.filename, manifest.read_member(archive, info)
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                room.take(member.size)
                if member.isfile():
                    yield member.name.removeprefix("./"), archive.extractfile(member).read()


def _listed(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Paths (n,) bytes, from two folders above on, and sizes (n,) of the pictures in a folder, sorted by name."""
    with os.scandir(folder) as entries:
        found = sorted((entry.name, entry.stat().st_size) for entry in entries
                       if entry.name.lower().endswith(PICTURES) and not entry.name.startswith("."))
    names = [os.fsencode(f"{folder.parent.name}/{folder.name}/{name}") for name, _ in found]
    return np.array(names, dtype="S"), np.array([size for _, size in found], dtype="<i8")


def _listing_digest(names: np.ndarray, sizes: np.ndarray, classes: Sequence[str]) -> str:
    order = names.argsort()
    digest = hashlib.sha256(f"{names.dtype} {tuple(classes)}".encode())
    digest.update(names[order])
    digest.update(sizes[order])
    return digest.hexdigest()


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


@contextlib.contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """The folder in which torchvision finds what `path`, an archive or the folder it unpacks to, holds."""
    if path.is_dir():
        yield path.parent
        return
    with tempfile.TemporaryDirectory(prefix="repro-") as folder:
        try:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter=_Room().checked)
        except DAMAGED as error:
            raise ValueError(f"{path} is truncated or damaged ({error}); fetch it again") from error
        yield Path(folder)


def _official(path: Path, read: Callable) -> datasets.VisionDataset:
    """What torchvision reads, its complaint about missing or other files turned into ours."""
    try:
        return read()
    except RuntimeError as error:
        raise ValueError(f"{path} is not the official distribution, or damaged; fetch it again") from error
