"""Pairs of video and sound: embedded clips, grids of characters, and folders of real recordings."""

from pathlib import Path
from typing import Protocol, Self

import torch
from torch import Tensor

from repro.audiovisual import synthetic
from repro.audiovisual.characters import DATASETS as CHARACTERS
from repro.audiovisual.characters import load as load_characters
from repro.recipe import choose

RECORDINGS = ("kinetics700", "kinetics_sound", "audioset", "ucf101", "hmdb51", "esc50")
DATASETS = ("synthetic", *CHARACTERS, *RECORDINGS)


class Pairs(Protocol):
    """Items with two modalities, "video" and "audio".

    Attributes:
        name: the data set's name; what is not the official distribution says so, "ucf101 (subset)".
        digest: hex sha256 of all that a training can depend on.
        classes: names of the classes.
        labels: (n,) int64, or (n, cells) of grids of characters; -1 where there is none.
        categories: (n,) int64, the finest ground truth, which the coverage of selected negatives counts.
        pretrain, train, test: (n,) bool.
    """

    name: str
    digest: str
    classes: tuple[str, ...]
    labels: Tensor
    categories: Tensor
    pretrain: Tensor
    train: Tensor
    test: Tensor

    def has(self, modality: str) -> Tensor:
        """Which items have the modality, (n,) bool."""

    def view(self, modality: str, index: Tensor, generator: torch.Generator) -> Tensor:
        """One random view of each item of `index`, (m,) int64 on the CPU; items may repeat."""

    def pair(self, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Views of both modalities, aligned in time."""

    def twins(self, modality: str, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Two random views of one modality of each item."""

    def centred(self, modality: str, index: Tensor, windows: int = 1) -> Tensor:
        """Views without randomness, spread evenly over each item: (m, windows, ...)."""

    def to(self, device: torch.device) -> Self:
        """The same set, its views made on the device where it fits there."""


def load(
    name: str,
    root: str | Path | None = None,
    *,
    window: int = 16,
    split: int = 1,
    subset: bool = False,
    redundancy: float = 0.0,
    characters: int = 1,
    pairs: int = 50_000,
) -> Pairs:
    """Load a data set.

    Args:
        name: one of `DATASETS`.
        root: folder of real data; REPRO_DATA by default.
        window: frames of a view, of clips and recordings.
        split: official split or fold of recordings, which says what is trained with and tested on.
        subset: of recordings, accept that some of the distribution are not there.
        redundancy: of the embedded clips, see `synthetic.load`.
        characters, pairs: of grids of characters, see `characters.load`.

    Raises:
        ValueError: if the name is unknown, an option is not among those allowed, or the files are damaged.
        FileNotFoundError: if the files are missing, saying where they come from and go to.
    """
    choose("dataset", name, DATASETS)
    if name in CHARACTERS:
        return load_characters(name, root, characters=characters, pairs=pairs)
    if name == "synthetic":
        return synthetic.load(redundancy, window)
    raise NotImplementedError(name)
