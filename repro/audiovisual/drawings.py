"""Drawings of characters: scikit-learn's digits, and the alphabets of Omniglot, read once and kept."""

import functools
import hashlib
import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from repro.data import manifest
from repro.data.prepared import made_once

PARTS = ("train", "validation", "held_out")        # of the drawings of a character
SHARES = (16, 18, 20)         # ends of the parts, of 20 drawings
CELL = 32                     # pixels of a side that Omniglot's drawings of 105 are averaged to
NAME = re.compile(r"([^/]+)/(character\d+)/\d+_(\d+)\.png")
STORED = ("images", "counts", "names", "sizes")


@dataclass(frozen=True)
class Drawings:
    """Drawings of the characters of several alphabets.

    Attributes:
        images: (D, cell, cell) uint8, bright strokes on 0, ordered by character and part.
        counts: (characters, 3) int64, drawings of each character in each of `PARTS`.
        names: of the characters, alphabet by alphabet.
        sizes: characters of each alphabet.
    """

    images: np.ndarray
    counts: np.ndarray
    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def alphabets(self) -> tuple[tuple[str, ...], ...]:
        """Names of the characters of each alphabet."""
        ends = np.cumsum(self.sizes).tolist()
        return tuple(self.names[end - size:end] for size, end in zip(self.sizes, ends, strict=True))

    def first(self, alphabets: int) -> "Drawings":
        """Those of the first alphabets alone."""
        sizes = self.sizes[:alphabets]
        counts = self.counts[:sum(sizes)]
        return Drawings(self.images[:counts.sum()], counts, self.names[:sum(sizes)], sizes)

    def merged(self, characters: int) -> "Drawings":
        """Those of the first characters alone, which are one alphabet.

        Raises:
            ValueError: if there are not so many.
        """
        if characters > len(self.names):
            raise ValueError(f"categories={characters} should be at most {len(self.names)}, the characters there are")
        counts = self.counts[:characters]
        return Drawings(self.images[:counts.sum()], counts, self.names[:characters], (characters,))


def digits(declared: manifest.Manifest) -> Drawings:
    """The 1,797 digits of scikit-learn, 8 x 8 pixels.

    Of the drawings of each digit, in their order, 16 of 20 are for training, 2 for validation and 2 held out.

    Raises:
        ValueError: if their numbers are not those of the manifest.

    Source: the test half of the UCI set `optdigits` (Alpaydin and Kaynak 1998).
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    images = (found.images * (255 / 16)).round().astype(np.uint8)
    ends = np.bincount(found.target)[:, None] * SHARES // SHARES[-1]        # (10, 3)
    names = tuple(map(str, found.target_names))
    images = images[np.argsort(found.target, kind="stable")]
    return _checked(Drawings(images, np.diff(ends, axis=1, prepend=0), names, (len(names),)), declared, declared.source)


def omniglot(declared: manifest.Manifest, root: Path) -> Drawings:
    """Omniglot's drawings of the alphabets in a manifest, from prepared arrays if they were made before.

    The prepared file is named after what it is made from, as the manifest declares it, and that is verified when it is
    made.

    Raises:
        FileNotFoundError: if the archive is missing, saying where it comes from and goes to.
        ValueError: if it is damaged or not what the manifest declares.
    """
    source, = manifest.require(declared, root)
    split, = declared.splits.values()
    version = hashlib.sha256(f"{declared.files[0].digest} {split} {CELL}".encode()).hexdigest()[:16]
    path = manifest.prepared_root() / f"{declared.name}-{version}.npz"

    def make() -> dict[str, np.ndarray]:
        members = manifest.verified_members(declared, root)
        drawings = _checked(parse_omniglot(members, split, f"{source}"), declared, f"{source}")
        return {name: np.array(getattr(drawings, name)) for name in STORED}

    stored = made_once(path, make)
    images, counts, names, sizes = (stored[name] for name in STORED)
    return Drawings(images, counts, tuple(names.tolist()), tuple(sizes.tolist()))


def parse_omniglot(members: list[tuple[str, bytes]], split: manifest.Split, where: str) -> Drawings:
    """Read the drawings of a split's alphabets, `<alphabet>/characterNN/NNNN_<drawing>.png`, black strokes on white.

    Args:
        members: (name, contents) pairs.
        split: its `train` names the alphabets in order, `train` and `test` the numbers of the drawings for training and
            held out; the others are for validation.
        where: the archive or folder they come from, for messages.

    Raises:
        ValueError: naming the file that is not named so, or is no picture.
    """
    alphabets = split.train["alphabet"]
    rows = []
    for name, contents in members:
        if name.partition("/")[0] not in alphabets:
            continue
        matched = NAME.fullmatch(name)
        if not matched:
            raise ValueError(f"{where}: {name} is not named like Tifinagh/character01/0910_01.png; "
                             "move foreign files out of the folder")
        alphabet, character, number = matched.groups()
        rows.append((alphabets.index(alphabet), f"{alphabet}/{character}", _part(int(number), split), name, contents))
    rows.sort(key=lambda row: row[:4])
    images = np.array([_shrunk(contents, f"{where}: {name}") for *_, name, contents in rows], dtype=np.uint8)
    names = tuple(dict.fromkeys(name for _, name, *_ in rows))
    tally = Counter((name, part) for _, name, part, *_ in rows)
    counts = [[tally[name, part] for part in range(len(PARTS))] for name in names]
    sizes = Counter(name.partition("/")[0] for name in names)
    return Drawings(images.reshape(-1, CELL, CELL), np.array(counts, dtype=np.int64).reshape(-1, len(PARTS)), names,
                    tuple(sizes[alphabet] for alphabet in alphabets))


def area_average(picture: np.ndarray, side: int) -> np.ndarray:
    """A picture of 0 and 1 in `side` x `side` pixels, each the mean over the rectangle that it covers.

    A pixel on the border of two rectangles counts in both, by the share of it that lies in each, so that no stroke is
    missed and none is given more weight than another. All sums are of whole numbers: every machine gives the same.

    Args:
        picture: (height, width) bool, of less than 2**24 pixels.

    Returns:
        (side, side) uint8, the mean times 255, rounded.
    """
    down, across = (_overlaps(length, side) for length in picture.shape)
    sums = down @ picture.astype(np.float32) @ across.T
    return np.rint(255 * sums.astype(np.float64) / picture.size).astype(np.uint8)


@functools.lru_cache
def _overlaps(length: int, side: int) -> np.ndarray:
    """(side, length) float32, what each pixel shares with each of `side` equal intervals, in parts of 1 / side."""
    starts, pixels = np.arange(side)[:, None] * length, np.arange(length) * side
    shared = np.minimum(starts + length, pixels + side) - np.maximum(starts, pixels)
    return shared.clip(min=0).astype(np.float32)


def _shrunk(contents: bytes, name: str) -> np.ndarray:
    """(CELL, CELL) uint8, white strokes on black, of a PNG file of black strokes on white."""
    try:
        with Image.open(io.BytesIO(contents)) as image:
            return area_average(~np.asarray(image.convert("1")), CELL)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ValueError(f"{name} cannot be read as a picture ({error}); fetch the archive again") from error


def _part(number: int, split: manifest.Split) -> int:
    """The place in PARTS of a drawing's number."""
    if number in split.train["drawing"]:
        return PARTS.index("train")
    return PARTS.index("held_out" if number in split.test["drawing"] else "validation")


def _checked(drawings: Drawings, declared: manifest.Manifest, where: str) -> Drawings:
    """The drawings, if their numbers are those of the manifest, and every part of a character has two for twins."""
    (split,), counts = declared.splits.values(), drawings.counts
    found = dict(zip(("train", "validation", "test"), counts.sum(axis=0).tolist(), strict=True))
    found |= {"classes": len(counts)}
    if found != dict(split.expect):
        raise ValueError(f"{where} has {found} drawings and characters, data_manifests/{declared.name}.yaml declares "
                         f"{dict(split.expect)}; fetch it again")
    if counts.min() < 2:
        character, part = np.argwhere(counts < 2)[0]
        raise ValueError(f"{where} has {counts[character, part]} drawings of {drawings.names[character]} for "
                         f"{PARTS[part]}, at least 2 are needed; declare other parts in "
                         f"data_manifests/{declared.name}.yaml")
    return drawings
