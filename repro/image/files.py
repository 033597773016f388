"""Pictures that stay in their files until they are asked for, and class folders of them, as ImageNet has them."""

import hashlib
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image
from tqdm.auto import tqdm

PARTS = ("train", "test", "unlabeled")
PLACES = ("train", "val")     # class folders, for the first two parts
PICTURES = (".jpg", ".jpeg", ".png")
KINDS = ("JPEG", "PNG")       # told by the first bytes; no other decoder is tried
ABSURD = (Image.DecompressionBombError, Image.DecompressionBombWarning)
warnings.simplefilter("error", Image.DecompressionBombWarning)  # from 89 million pixels on, not only twice as many


@dataclass(frozen=True, eq=False)
class Files:
    """Pictures of any size in the files below a folder.

    Attributes:
        root: the folder.
        names: (n,) bytes, the files' paths below it, in one array because objects for a million of them are large.
    """

    root: Path
    names: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def read(self, index: int) -> Image.Image:
        """The picture at a place in 0..n - 1, as red, green and blue.

        Raises:
            ValueError: if the file is gone, truncated or no picture; the message names it.
        """
        path = self.root / os.fsdecode(self.names[index])
        return read_rgb(path, f"{path}")


def read_rgb(file: Path | BinaryIO, name: str) -> Image.Image:
    """A picture as red, green and blue, whatever colours it is stored in.

    Raises:
        ValueError: if it is truncated, damaged or no JPEG or PNG file, calling it `name`.
    """
    try:
        with Image.open(file, formats=KINDS) as image:
            if image.format != "PNG":
                return image.convert("RGB")
            image.verify()    # by its checksums, which decoding passes over
        if not isinstance(file, Path):
            file.seek(0)
        with Image.open(file, formats=KINDS) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, *ABSURD) as error:
        raise ValueError(f"{name} cannot be read as a picture ({error}); fetch it again or leave it out") from error


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


def class_folders(root: Path, classes: Sequence[str]) -> list[Path]:
    """The folders `train/<class>`, then `val/<class>`, that there are of the classes; of none given, all, sorted."""
    folders = []
    for place in PLACES:
        present = {path.name for path in (root / place).iterdir() if path.is_dir() and not path.name.startswith(".")}
        folders += [root / place / name for name in classes or sorted(present) if name in present]
    return folders


def listing(root: Path, folders: Sequence[Path]) -> tuple[Pictures, str]:
    """The list of the pictures in class folders, and a digest of it. No picture is read.

    Args:
        root: of `train` and `val`.
        folders: as `class_folders` gives them; those without a picture are passed over.

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
