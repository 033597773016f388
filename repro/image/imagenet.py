"""Class folders of pictures, as ImageNet has them: they are listed, not read, and counted."""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from repro.data.manifest import Manifest
from repro.image.readers import PARTS, PICTURES, Pictures

PLACES = ("train", "val")     # folders, for the first two parts


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


def check_counts(declared: Manifest, folder: Path, pictures: Pictures) -> None:
    """Raise ValueError unless the counts are as declared, also the least and most of a class for training."""
    train = np.bincount(pictures.labels[pictures.part == PARTS.index("train")])
    found = {"train": int(train.sum()), "test": int((pictures.part == PARTS.index("test")).sum())}
    found |= {"classes": len(pictures.classes), "least": int(train.min()), "most": int(train.max())}
    exact = {name: count for name, count in declared.expect.items() if name not in ("least", "most")}
    least, most = declared.expect.get("least", found["least"]), declared.expect.get("most", found["most"])
    if any(found.get(name) != count for name, count in exact.items()) or found["least"] < least or found["most"] > most:
        raise ValueError(
            f"{folder} has {found} (least and most training images of a class); {declared.name} has "
            f"{dict(declared.expect)}; complete it from {declared.source}, or accept it with subset=True"
        )


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
