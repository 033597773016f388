"""Spatial-MultiOmniglot and its small sister of digits: pairs of grids whose mutual information is known.

    x: in every cell of a grid one character of the cell's alphabet, drawn uniformly, in one of its drawings
    y: in every cell the successor of that character, (place + 1) modulo the alphabet's size, in a drawing of its own

x and y share the characters and nothing else: I(x; y) is the sum of the logarithms of the alphabets' sizes. In the
printed set every cell has an alphabet of its own, and pairs are drawn uniformly.

Source: CM-ACC, Fig. 3a; Ozair et al. 2019.
"""

import dataclasses
import functools
import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from pandas import DataFrame
from PIL import Image
from torch import Tensor

from repro.audiovisual import CHARACTERS, FREQUENCIES, MODALITIES, VIEWS, augment
from repro.data import files, manifest, npz
from repro.data.prepared import made_once
from repro.recipe import choose
from repro.run import code

PARTS = ("train", "validation", "held_out")        # of the drawings of a character
LOTS = {"train": "train", "validation": "validation", "test": "train", "held_out": "held_out"}   # of pairs, of drawings
SHARES = (16, 18, 20)         # ends of the parts, of 20 drawings
CELL = 32                     # pixels of a side that Omniglot's drawings of 105 are averaged to
NAME = re.compile(r"([^/]+)/(character\d+)/\d+_(\d+)\.png")
ORDER = ["alphabet", "character", "part", "name"]   # of drawings
SEED = 2021                   # of the pairs, which are the same ones in every training
ROUNDS = 2_000                # attempts at test pairs that equal no training pair
Draw = Callable[..., tuple[np.ndarray, np.ndarray]]   # of so many pairs: labels and drawings


class Drawings(NamedTuple):
    """Drawings of the characters of several alphabets."""

    images: np.ndarray           # (D, cell, cell) uint8, bright strokes on 0, ordered by character and part
    counts: np.ndarray           # (characters, 3) int64, drawings of each character in each of `PARTS`
    names: np.ndarray            # (characters,) text, alphabet by alphabet
    sizes: np.ndarray            # characters of each alphabet


def digits() -> Drawings:
    """The 1,797 digits of scikit-learn, 8 x 8 pixels; in their order 16 of 20 are for training, 2 for validation.

    Source: the test half of the UCI set `optdigits` (Alpaydin and Kaynak 1998).
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.images * (255 / 16)).round().astype(np.uint8)[np.argsort(digits.target, kind="stable")]
    ends = np.bincount(digits.target)[:, None] * SHARES // SHARES[-1]        # (10, 3)
    counts = np.diff(ends, axis=1, prepend=0)
    return Drawings(images, counts, digits.target_names.astype(str), np.array([len(ends)]))


def omniglot(root: Path) -> Drawings:
    """Omniglot's drawings of the alphabets in its manifest, from prepared arrays if they were made before.

    Raises:
        FileNotFoundError: if the archive is missing, saying where it comes from and goes to.
        ValueError: if it is damaged or not what the manifest declares.
    """
    declared = manifest.load_manifest("multiomniglot")
    files.require(declared, root)
    split, = declared.splits.values()

    def make() -> dict[str, np.ndarray]:
        return _of_members(files.verified_members(declared, root), split)._asdict()

    made_by = code.of_files("audiovisual/characters.py")
    return Drawings(**made_once(declared.name, f"{declared.files[0].digest} {split} {made_by}", make))


def _of_members(members: list[tuple[str, bytes]], split: manifest.Split) -> Drawings:
    """The drawings of the alphabets that a split names in order, files `<alphabet>/characterNN/NNNN_<drawing>.png`."""
    alphabets = split.train["alphabet"]
    parts = dict.fromkeys(split.train["drawing"], 0) | dict.fromkeys(split.test["drawing"], 2)  # else for validation
    rows = []
    for name, contents in members:
        matched = NAME.fullmatch(name)
        if matched and matched[1] in alphabets:
            alphabet, character, drawing = matched.groups()
            part = parts.get(int(drawing), 1)
            rows.append((alphabets.index(alphabet), f"{alphabet}/{character}", part, name, contents))
    rows = DataFrame(rows, columns=[*ORDER, "contents"]).sort_values(ORDER)
    counts = rows.groupby(ORDER[:3]).size().unstack(fill_value=0)
    strokes = (~np.asarray(Image.open(io.BytesIO(file)).convert("1")) for file in rows.contents)  # black on white
    return Drawings(
        np.array([area_average(picture, CELL) for picture in strokes]), counts.to_numpy(),
        counts.index.get_level_values("character").to_numpy(str), counts.groupby("alphabet").size().to_numpy(),
    )


def area_average(picture: np.ndarray, side: int) -> np.ndarray:
    """A picture of 0 and 1 in `side` x `side` pixels, each 255 times the mean over the rectangle that it covers.

    A pixel on a border counts in both rectangles by its shares. Sums of whole numbers are the same on every machine.
    """
    down, across = (_shares(length, side) for length in picture.shape)
    return np.rint(255 * (down @ picture @ across.T) / picture.size).astype(np.uint8)


@functools.cache
def _shares(length: int, side: int) -> np.ndarray:
    """(side, length) whole numbers: how many of a pixel's `side` parts are in each of `side` equal stretches."""
    return np.repeat(np.eye(length), side, axis=0).reshape(side, length, length).sum(1)


@dataclasses.dataclass(frozen=True, eq=False)
class Characters:
    """Pairs of grids, composed from their drawings whenever they are asked for.

    They fall into four lots: `test` are new pairs of drawings known from training; `held_out`, a second test, and
    `validation`, to choose settings by, show drawings of their own. Labels and lots stay on the CPU.
    """

    name: str                                  # of the data set
    alphabets: tuple[tuple[str, ...], ...]     # for every cell the names of its characters, in the order of the labels
    drawings: Tensor                           # (D, cell, cell) uint8, bright strokes on 0, by character and part
    first: Tensor                              # (D,) int64, where drawings of the same character and part begin
    count: Tensor                              # (D,) int64, how many of these there are
    pairs: Tensor                              # (2, n, cells) int64, the drawings in the cells of x and of y
    labels: Tensor                             # (n, cells) int64, the characters of x; y has their successors
    train: Tensor                              # (n,) bool, as the other lots
    validation: Tensor
    test: Tensor
    held_out: Tensor
    digest: str                                # hex sha256 of alphabets, drawings, pairs and lots
    redrawn: bool = False                      # views show drawings of the same part that are drawn anew every time
    other_view: str = "affine"                 # what the second of two `twins` is
    augmented: bool = False                    # views but `centred` are changed by `augment.warped`, cell by cell
    streamed = False                           # drawings fit everywhere

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of classes of `labels`, of each cell."""
        return tuple(map(len, self.alphabets))

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the categories."""
        return self.alphabets[0]

    @property
    def categories(self) -> Tensor:
        """(n,) int64, the character in the first cell of x: whole grids hardly ever repeat, so none would be common."""
        return self.labels[:, 0]

    @property
    def pretrain(self) -> Tensor:
        """(n,) bool, the pairs for self-supervised training: those of `train`."""
        return self.train

    def has(self, modality: str) -> Tensor:
        """(n,) bool, all True: every item has both grids."""
        return torch.ones(len(self.labels), dtype=torch.bool)

    def view(self, modality: str, index: Tensor, generator: torch.Generator) -> Tensor:
        """A grid of each item of `index` (m,), on the CPU: x as "video" or y as "audio", as drawn for its pair or anew.

        (m, 1, rows * cell, columns * cell) float32 in [0, 1], on the device of the set; the generator is on any.
        """
        return self._shown(self._drawn(modality, index, generator), generator if self.augmented else None)

    def pair(self, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """x and y of each item, as `view` gives them."""
        return self.view("video", index, generator), self.view("audio", index, generator)

    def twins(self, modality: str, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Two grids of each item, the first as `view` gives it. The second has, as `other_view` says,

        - "affine": the same drawings, every cell changed by `augment.warped`; or
        - "characters": the same characters in other drawings of the same part, which are labels in disguise.
        """
        drawn = self._drawn(modality, index, generator)
        changes = generator if self.augmented else None
        if self.other_view == "affine":
            return self._shown(drawn, changes), self._shown(drawn, generator)
        first, count = self.first[drawn], self.count[drawn]
        steps = 1 + _numbers(drawn, generator) % (count - 1)
        other = first + (drawn - first + steps) % count
        return self._shown(drawn, changes), self._shown(other, changes)

    def centred(self, modality: str, index: Tensor, windows: int = 1) -> Tensor:
        """(m, windows, ...) as of `view`, the grid as drawn for its pair; all windows are the same."""
        shown = self._shown(self._drawn(modality, index))
        return shown.unsqueeze(1).expand(-1, windows, -1, -1, -1)

    def to(self, device: torch.device | str) -> "Characters":
        """The same set on a device."""
        moved = {name: getattr(self, name).to(device) for name in ("drawings", "first", "count", "pairs")}
        return dataclasses.replace(self, **moved)

    def _drawn(self, modality: str, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """(m, cells), the drawings of the pairs of items, or of their views."""
        pairs = self.pairs[MODALITIES.index(modality)]
        drawn = pairs[index.to(pairs.device, non_blocking=True)]
        if generator is None or not self.redrawn:
            return drawn
        return self.first[drawn] + _numbers(drawn, generator) % self.count[drawn]

    def _shown(self, drawn: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Grids (m, 1, rows * cell, columns * cell) of the drawings (m, cells), which a generator warps."""
        cells = self.drawings[drawn].float().div_(255)
        if generator:
            cells = augment.warped(cells.flatten(0, 1), generator=generator).view_as(cells)
        rows, columns = grid(cells.shape[1])
        size = cells.shape[-1]
        sheets = cells.new_zeros(len(cells), rows * columns, size, size)
        sheets[:, :cells.shape[1]] = cells
        return sheets.view(-1, rows, columns, size, size).transpose(2, 3).reshape(-1, 1, rows * size, columns * size)


def _numbers(like: Tensor, generator: torch.Generator) -> Tensor:
    """Random whole numbers, so large that what they leave when divided is as good as uniform."""
    numbers = torch.randint(2**62, like.shape, generator=generator, device=generator.device)
    return numbers.to(like.device, non_blocking=True)


def grid(cells: int) -> tuple[int, int]:
    """Rows and columns of a grid: the fewest pixels that are no long strip; of 5 and 7 the last cell is empty."""
    rows = math.isqrt(cells)
    return rows, math.ceil(cells / rows)


def load(
    name: str, root: str | Path | None = None, *, characters: int = 9, pairs: int = 50_000, categories: int = 0,
    distinct: int = 0, frequency: str = "balanced", redrawn: bool = False, view: str = "affine",
    augmented: bool = False, test_pairs: int = 10_000,
) -> Characters:
    """Load pairs of grids, drawn uniformly; none of `test` is a training pair (unless these are redrawn).

    Of 20 drawings of a character, in the order of the source, 16 are for training, 2 for validation, 2 held out. Those
    of Omniglot are by 20 people, numbered alike within an alphabet: held-out ones are by people unseen in training.

    Args:
        name: `multidigits` (part of scikit-learn; every cell has the alphabet of ten digits, cells of 8 x 8 pixels) or
            `multiomniglot` (the first alphabets of the manifest, one for each cell, cells of 32 x 32 pixels).
        root: folder of real data; REPRO_DATA by default.
        characters: of a grid, 1 to 9.
        pairs, test_pairs: for training; of each of `validation`, `test` and `held_out`.
        categories: n > 0: every cell has one alphabet, the first n characters of all; 0: each cell has its own.
        distinct: d > 0: training pairs repeat d that show different characters, each at least once; 0: each is drawn.
        frequency: of these, else of the characters of every cell in training: "balanced", or "zipf", in proportion to
            1 / rank, over ranks drawn once.
        redrawn, view, augmented: which views training sees, see `Characters` (`view` is its `other_view`).

    Raises:
        ValueError: if an option is not among those allowed, the files are not the official distribution, or there are
            so many training pairs that hardly a new one is left to test.
        FileNotFoundError: if the files are missing, saying where they come from and go to.
    """
    choose("frequency", frequency, FREQUENCIES)
    choose("view", view, VIEWS)
    if choose("dataset", name, CHARACTERS) == "multidigits":
        drawings = digits()
    else:
        drawings = omniglot(manifest.data_root() if root is None else Path(root))
    starts, sizes = _alphabets(drawings, characters, categories)
    names = drawings.names.tolist()
    alphabets = tuple(tuple(names[start:start + size]) for start, size in zip(starts, sizes, strict=True))
    counts = drawings.counts[:(starts + sizes).max()]
    *seeds, ranks = map(np.random.default_rng, np.random.SeedSequence(SEED).spawn(len(LOTS) + 1))
    draws = {lot: functools.partial(_draw, counts, starts, sizes, PARTS.index(part), rng)
             for (lot, part), rng in zip(LOTS.items(), seeds, strict=True)}
    drawn = {"train": _training(draws["train"], sizes, pairs, distinct, frequency == "zipf", ranks)}
    drawn |= {lot: draw(test_pairs) for lot, draw in draws.items() if lot != "train"}
    _renew(*drawn["test"], draws["test"], seen=_keys(drawn["train"][1]))
    lot = np.repeat(list(LOTS), [len(labels) for labels, _ in drawn.values()])
    count = counts.ravel()
    arrays = {
        "drawings": drawings.images[:count.sum()],
        "first": np.repeat(count.cumsum() - count, count),
        "count": np.repeat(count, count),
        "pairs": np.concatenate([places for _, places in drawn.values()], axis=1),
        "labels": np.concatenate([labels for labels, _ in drawn.values()]),
        **{part: lot == part for part in LOTS},
    }
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    digest = npz.digest(dict(sorted(arrays.items())), f"{alphabets}")
    return Characters(name, alphabets, **tensors, digest=digest, redrawn=redrawn, other_view=view, augmented=augmented)


def _alphabets(drawings: Drawings, cells: int, categories: int) -> tuple[np.ndarray, np.ndarray]:
    """Of every cell the first character of its alphabet and the alphabet's size, (cells,) each."""
    if categories > len(drawings.names):
        raise ValueError(f"categories={categories} should be at most {len(drawings.names)}, the characters there are")
    sizes = np.array([categories]) if categories else drawings.sizes
    if len(sizes) == 1:  # which every cell has
        sizes = sizes.repeat(cells)
        return np.zeros_like(sizes), sizes
    return (sizes.cumsum() - sizes)[:cells], sizes[:cells]


def _draw(
    counts: np.ndarray, starts: np.ndarray, sizes: np.ndarray, part: int, rng: np.random.Generator, amount: int,
    shares: list[np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (amount, cells) and drawings (2, amount, cells) of pairs; characters have equal shares, or these."""
    if shares is None:
        labels = rng.integers(sizes, size=(amount, len(sizes)))
    else:
        labels = np.stack([rng.choice(len(share), amount, p=share) for share in shares], axis=1)
    characters = starts + np.stack([labels, (labels + 1) % sizes])           # of x and of y
    first = counts.cumsum().reshape(counts.shape) - counts
    return labels, first[characters, part] + rng.integers(counts[characters, part])


def _training(
    draw: Draw, sizes: np.ndarray, amount: int, distinct: int, zipf: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and drawings of training pairs as the options of `load` say, of what draws them on their own."""
    if not distinct:
        return draw(amount, shares=[_zipf(size, rng) for size in sizes]) if zipf else draw(amount)
    grids = math.prod(sizes.tolist())
    if distinct > min(grids, amount):
        raise ValueError(f"distinct={distinct} should be at most {min(grids, amount)}, of {amount} training pairs and "
                         f"{grids} grids that show other characters")
    labels, drawn = draw(distinct)
    while len(first := np.unique(labels, axis=0, return_index=True)[1]) < distinct:
        more_labels, more_drawn = draw(distinct)
        labels, drawn = np.concatenate([labels, more_labels]), np.concatenate([drawn, more_drawn], axis=1)
    different, shares = np.sort(first)[:distinct], _zipf(distinct, rng) if zipf else None
    places = rng.permutation(np.concatenate([np.arange(distinct), rng.choice(distinct, amount - distinct, p=shares)]))
    return labels[different[places]], drawn[:, different[places]]


def _zipf(amount: int, rng: np.random.Generator) -> np.ndarray:
    """(amount,) probabilities in proportion to 1 / rank, over ranks that are drawn."""
    weights = 1 / (1 + rng.permutation(amount))
    return weights / weights.sum()


def _renew(labels: np.ndarray, drawn: np.ndarray, draw: Draw, seen: list[bytes]) -> None:
    """Replace the pairs that are among those seen, in place, by newly drawn ones."""
    known, again = set(seen), np.arange(len(labels))
    for _ in range(ROUNDS):
        again = again[[key in known for key in _keys(drawn[:, again])]]
        if not len(again):
            return
        labels[again], drawn[:, again] = draw(len(again))
    raise ValueError(f"hardly a pair is left to test that is not among the {len(known):,} different training pairs; "
                     "choose fewer pairs or more characters")


def _keys(drawn: np.ndarray) -> list[bytes]:
    return [pair.tobytes() for pair in drawn.transpose(1, 0, 2)]
