"""Spatial-MultiOmniglot and its small sister of digits: pairs of grids whose mutual information is known.

    x: in every cell of a grid one character of the cell's alphabet, drawn uniformly, in one of its drawings
    y: in every cell the successor of that character, (place + 1) modulo the alphabet's size, in a drawing of its own

A grid of n characters has floor(sqrt(n)) rows and as few columns as hold them; 5 and 7 characters leave the last cell
empty. x and y share the characters and nothing else: I(x; y) is the sum of the logarithms of the alphabets' sizes.

Source: CM-ACC, Fig. 3a; Ozair et al. 2019.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from repro import manifest, npz
from repro.audiovisual import MODALITIES
from repro.audiovisual.drawings import PARTS, Drawings, digits, omniglot
from repro.recipe import choose, parse_number

DATASETS = ("multidigits", "multiomniglot")
MOST = 9                      # characters of a grid
LOTS = {"train": "train", "validation": "validation", "test": "train", "held_out": "held_out"}   # of pairs, of drawings
SEED = 2021                   # of the pairs, which are the same ones in every training
ROUNDS = 2_000                # attempts at test pairs that equal no training pair


@dataclasses.dataclass(frozen=True, eq=False)
class Characters:
    """Pairs of grids, composed from their drawings whenever they are asked for.

    The pairs fall into four lots. New pairs of drawings known from training are `test`; `held_out` is a second test,
    whose drawings nothing else shows, as is `validation`, to choose settings by.

    Attributes:
        name: the data set's name.
        alphabets: for every cell the names of its characters, in the order of the labels.
        drawings: (D, cell, cell) uint8, bright strokes on 0; those of one character and part follow one another.
        first, count: (D,) int64, where the drawings of the same character and part begin, and how many there are.
        pairs: (2, n, cells) int64, the drawings in the cells of x and of y.
        labels: (n, cells) int64, the characters of x; those of y are (labels + 1) modulo the alphabets' sizes.
        train, validation, test, held_out: (n,) bool, the lots.
        digest: hex sha256 of alphabets, drawings, pairs and lots.

    Labels and lots stay on the CPU, the other tensors are on the device of the set.
    """

    name: str
    alphabets: tuple[tuple[str, ...], ...]
    drawings: Tensor
    first: Tensor
    count: Tensor
    pairs: Tensor
    labels: Tensor
    train: Tensor
    validation: Tensor
    test: Tensor
    held_out: Tensor
    digest: str
    streamed = False  # drawings fit everywhere

    @property
    def sizes(self) -> tuple[int, ...]:
        """Characters of the alphabet of every cell: the numbers of classes of `labels`."""
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
        """(n,) bool, all True: every item has both grids.

        Raises:
            ValueError: if there is no such modality.
        """
        choose("modality", modality, MODALITIES)
        return torch.ones(len(self.labels), dtype=torch.bool)

    def view(self, modality: str, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One grid of each item, as drawn for its pair; nothing about it is random.

        Args:
            modality: "video" for x, "audio" for y.
            index: (m,) int64 on the CPU.
            generator: not used.

        Returns:
            (m, 1, rows * cell, columns * cell) float32 in [0, 1], on the device of the set.

        Raises:
            ValueError: if there is no such modality.
        """
        return self._compose(self._drawn(modality, index))

    def pair(self, index: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """x and y of each item, as `view` gives them."""
        x, y = (self.view(modality, index) for modality in MODALITIES)
        return x, y

    def twins(self, modality: str, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Two grids of each item: the one of its pair, and the same characters in other drawings of the same part.

        Every cell's other drawing is drawn uniformly, and independently of the other cells.

        Args:
            modality: "video" for x, "audio" for y.
            index: (m,) int64 on the CPU.
            generator: on any device.

        Returns:
            Each as `view` gives it.

        Raises:
            ValueError: if there is no such modality.
        """
        drawn = self._drawn(modality, index)
        first, count = self.first[drawn], self.count[drawn]
        random = torch.randint(2**62, drawn.shape, generator=generator, device=generator.device)
        steps = 1 + random.to(drawn.device, non_blocking=True) % (count - 1)
        return self._compose(drawn), self._compose(first + (drawn - first + steps) % count)

    def centred(self, modality: str, index: Tensor, windows: int = 1) -> Tensor:
        """The grid of each item, (m, windows, 1, height, width); a grid has no time, so every window is the same."""
        return self.view(modality, index).unsqueeze(1).expand(-1, windows, -1, -1, -1)

    def to(self, device: torch.device | str) -> "Characters":
        """The same set on a device."""
        moved = {name: getattr(self, name).to(device) for name in ("drawings", "first", "count", "pairs")}
        return dataclasses.replace(self, **moved)

    def _drawn(self, modality: str, index: Tensor) -> Tensor:
        """(m, cells), the drawings of items."""
        pairs = self.pairs[MODALITIES.index(choose("modality", modality, MODALITIES))]
        return pairs[index.to(pairs.device, non_blocking=True)]

    def _compose(self, drawn: Tensor) -> Tensor:
        """(m, 1, rows * cell, columns * cell) of the drawings (m, cells)."""
        rows, columns = grid(len(self.alphabets))
        size = self.drawings.shape[-1]
        sheets = self.drawings.new_zeros(len(drawn), rows * columns, size, size)
        sheets[:, :len(self.alphabets)] = self.drawings[drawn]
        sheets = sheets.view(-1, rows, columns, size, size).transpose(2, 3)
        return sheets.reshape(-1, 1, rows * size, columns * size).float().div_(255)


def load(
    name: str, root: str | Path | None = None, *, characters: int = MOST, pairs: int = 50_000, test_pairs: int = 10_000
) -> Characters:
    """Load pairs of grids.

    The drawings of a character are split: of 20, in the order of the source, 16 for training, 2 for validation, 2 held
    out. Omniglot's 20 drawings are by 20 people, and within an alphabet the number stands for the person (it explains
    about a third of the variance of height and of ink), so that held-out drawings are by people nobody trained on.

    Pairs are drawn uniformly and may repeat, which they do for one character: Omniglot's has 55 * 16 * 16 = 14,080
    different training pairs, and only 55 * 2 * 2 = 220 held-out ones. No pair of `test` is among the training pairs.

    Args:
        name: `multidigits` (part of scikit-learn; every cell has the alphabet of ten digits, cells of 8 x 8 pixels) or
            `multiomniglot` (the first alphabets of the manifest, one for each cell, cells of 32 x 32 pixels).
        root: folder of real data; REPRO_DATA by default.
        characters: of a grid, 1 to 9.
        pairs: for training; 50,000 is printed.
        test_pairs: of each of `validation`, `test` and `held_out`.

    Raises:
        ValueError: if an option is not among those allowed, the files are not the official distribution, or there are
            so many training pairs that hardly a new one is left to test.
        FileNotFoundError: if the files are missing, saying where they come from and go to.
    """
    declared = manifest.load_manifest(choose("dataset", name, DATASETS))
    choose("characters", characters, range(1, MOST + 1))
    pairs, test_pairs = parse_number("pairs", pairs, least=1), parse_number("test_pairs", test_pairs, least=1)
    if name == "multidigits":
        return _set(name, digits(declared), [0] * characters, pairs, test_pairs)
    drawings = omniglot(declared, manifest.data_root() if root is None else Path(root))
    return _set(name, drawings.first(characters), list(range(characters)), pairs, test_pairs)


def grid(cells: int) -> tuple[int, int]:
    """Rows and columns of a grid: (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (2, 3), (2, 4), (2, 4), (3, 3) from 1 to 9.

    The fewest pixels that are not a long strip; a grid of one size for all would make one character cost as nine.
    """
    rows = math.isqrt(cells)
    return rows, math.ceil(cells / rows)


def mutual_information(sizes: Iterable[int]) -> float:
    """I(x; y) in nats of grids whose cells have alphabets of these sizes: the sum of their logarithms."""
    return sum(map(math.log, sizes))


def _set(name: str, drawings: Drawings, cells: list[int], pairs: int, test_pairs: int) -> Characters:
    """The set whose cells have these alphabets of the drawings."""
    draws = {
        lot: functools.partial(_draw, drawings, cells, PARTS.index(part), np.random.Generator(np.random.PCG64(seed)))
        for (lot, part), seed in zip(LOTS.items(), np.random.SeedSequence(SEED).spawn(len(LOTS)), strict=True)
    }
    lots = {lot: draw(pairs if lot == "train" else test_pairs) for lot, draw in draws.items()}
    _renew(*lots["test"], draws["test"], seen=set(_keys(lots["train"][1])))
    labels = np.concatenate([labels for labels, _ in lots.values()])
    drawn = np.concatenate([drawn for _, drawn in lots.values()], axis=1)
    lot = np.repeat(list(lots), [len(labels) for labels, _ in lots.values()])
    count = drawings.counts.ravel()
    columns = {"first": count.cumsum() - count, "count": count}
    arrays = {column: np.repeat(values, count) for column, values in columns.items()}
    arrays |= {"drawings": drawings.images, "pairs": drawn, "labels": labels} | {each: lot == each for each in lots}
    alphabets = tuple(drawings.alphabets[cell] for cell in cells)
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    return Characters(name, alphabets, **tensors, digest=npz.digest(dict(sorted(arrays.items())), f"{alphabets}"))


def _draw(
    drawings: Drawings, cells: list[int], part: int, rng: np.random.Generator, amount: int
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (amount, cells) and drawings (2, amount, cells) of pairs of drawings of one part."""
    sizes, ends = np.array(drawings.sizes)[cells], np.cumsum(drawings.sizes)[cells]
    labels = rng.integers(sizes, size=(amount, len(cells)))
    characters = ends - sizes + np.stack([labels, (labels + 1) % sizes])     # of x and of y
    first = drawings.counts.cumsum().reshape(drawings.counts.shape) - drawings.counts
    return labels, first[characters, part] + rng.integers(drawings.counts[characters, part])


def _renew(
    labels: np.ndarray, drawn: np.ndarray, draw: Callable[[int], tuple[np.ndarray, np.ndarray]], seen: set[bytes]
) -> None:
    """Replace the pairs that are among those seen by newly drawn ones.

    Raises:
        ValueError: if hardly any pair is left that was not seen.
    """
    again = np.arange(len(labels))
    for _ in range(ROUNDS):
        again = again[[key in seen for key in _keys(drawn[:, again])]]
        if not len(again):
            return
        labels[again], drawn[:, again] = draw(len(again))
    raise ValueError(f"hardly a pair is left to test that is not among the {len(seen):,} different training pairs; "
                     "choose fewer pairs or more characters")


def _keys(drawn: np.ndarray) -> list[bytes]:
    """What tells pairs of drawings (2, n, cells) apart."""
    return [pair.tobytes() for pair in drawn.transpose(1, 0, 2)]
