"""Clips of pictures and sound, laid end to end; random and evenly spread windows of them."""

import dataclasses
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from repro.audiovisual import MODALITIES
from repro.data.manifest import check_labels
from repro.recipe import choose
from repro.run.device import fits

PARTS = ("pretrain", "train", "test")


@dataclass(frozen=True, eq=False)
class Clips:
    """A set of clips whose pictures and sound run side by side, 10 frames per second.

    `frames` and `mel` lie end to end, the first item's, then the second's, and so on; they may be mapped from a file
    (`numpy.load(path, mmap_mode="c")`), of which a window reads what it needs. Everything else stays on the CPU.

    Attributes:
        name: the data set's name; what is not the official distribution says so.
        digest: hex sha256 of what a training can depend on.
        classes: names of the classes.
        labels: (n,) int64 in 0..len(classes) - 1, or -1 where there is none: what probes and fine-tuning predict.
        categories: (n,) int64, the finest ground truth.
        pretrain, train, test: (n,) bool.
        frames: (sum of frames, H, W, 3) uint8; red, green, blue.
        first_frame: (n + 1,) int64, from 0 and never falling: item i has the frames from first_frame[i] up to, not
            including, first_frame[i + 1]. None of them: the item has no pictures.
        mel: (sum of rows, bands) float32, log-mel; row j of an item is the sound at j / rows_per_frame frames.
        first_row: (n + 1,) int64, as `first_frame`, of `mel`. Rows beyond an item's last whole frame are not used.
        rows_per_frame: mel rows per frame of video.
        window: frames of a view; an item that has fewer repeats from its start.
        streamed: whether views are for a device that has no room for the set. Where there is CUDA they are then made in
            pinned memory, from which a copy does not hold up the host.

    Raises:
        ValueError: if shapes or types are not as above, a label has no class, parts overlap, or an item has sound
            shorter than a frame.
    """

    name: str
    digest: str
    classes: tuple[str, ...]
    labels: Tensor
    categories: Tensor
    pretrain: Tensor
    train: Tensor
    test: Tensor
    frames: Tensor
    first_frame: Tensor
    mel: Tensor
    first_row: Tensor
    rows_per_frame: int
    window: int
    streamed: bool = False

    def __post_init__(self) -> None:
        items = len(self.labels)
        expected = {name: (torch.int64, (items,)) for name in ("labels", "categories")}
        expected |= {name: (torch.bool, (items,)) for name in PARTS}
        expected |= {name: (torch.int64, (items + 1,)) for name in ("first_frame", "first_row")}
        expected["frames"] = (torch.uint8, (len(self.frames), *self.frames.shape[1:3], 3))
        expected["mel"] = (torch.float32, (len(self.mel), self.mel.shape[-1]))
        for name, (dtype, shape) in expected.items():
            found = getattr(self, name)
            if found.dtype != dtype or found.shape != shape:
                raise ValueError(f"{self.name}: {name} is {found.dtype} of shape {tuple(found.shape)}; with {items} "
                                 f"labels it should be {dtype} of shape {shape}")
        check_labels(self.name, self.labels, len(self.classes), self.train, self.test, least=-1)
        for name in ("rows_per_frame", "window"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{self.name}: {name}={value!r} should be a whole number of at least 1")
        for name, rows in (("first_frame", self.frames), ("first_row", self.mel)):
            offsets = getattr(self, name)
            if offsets[0] != 0 or offsets[-1] != len(rows) or (offsets.diff() < 0).any():
                raise ValueError(f"{self.name}: {name} runs from {int(offsets[0])} to {int(offsets[-1])}; it should "
                                 f"never fall and run from 0 to the {len(rows)} rows that are there")
        short = (self.first_row.diff() > 0) & (self.first_row.diff() < self.rows_per_frame)
        if short.any():
            item = int(short.nonzero()[0])
            raise ValueError(f"{self.name}: item {item} has {int(self.first_row.diff()[item])} rows of sound, a frame "
                             f"takes {self.rows_per_frame}; leave it without sound")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def sizes(self) -> tuple[int]:
        """The number of classes, of which a clip has one."""
        return (len(self.classes),)

    def has(self, modality: str) -> Tensor:
        """(n,) bool: which items have pictures ("video") or sound ("audio")."""
        return self._lengths(modality, torch.arange(len(self))) > 0

    def view(self, modality: str, index: Tensor, generator: torch.Generator) -> Tensor:
        """A window of each item, its start uniform among those possible.

        Args:
            modality: "video" or "audio".
            index: (m,) int64 on the CPU; an item may be there several times, each with a window of its own.
            generator: of the CPU; draws m numbers.

        Returns:
            Where the set is: (m, 3, window, H, W) uint8, or (m, bands, window * rows_per_frame) float32.

        Raises:
            ValueError: if an item lacks the modality, named; if `modality` or the type of `index` is another.
            IndexError: if there is no such item.
        """
        lengths = self._lengths_of((modality,), index)
        return self._windows(modality, index, lengths, self._random_starts(lengths, generator))

    def pair(self, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The same window of pictures and sound, as `view` gives them; of the time that an item has both."""
        lengths = self._lengths_of(MODALITIES, index)
        starts = self._random_starts(lengths, generator)
        video, audio = (self._windows(modality, index, lengths, starts) for modality in MODALITIES)
        return video, audio

    def twins(self, modality: str, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Two windows of each item, drawn independently, as `view` gives them."""
        return self.view(modality, index, generator), self.view(modality, index, generator)

    def centred(self, modality: str, index: Tensor, windows: int = 1) -> Tensor:
        """Windows without randomness: one in the middle, or several evenly spread from the first to the last.

        Returns:
            (m, windows, ...) with the remaining axes of `view`.

        Raises:
            ValueError, IndexError: as `view`, and if `windows` is not a whole number of at least 1.
        """
        if type(windows) is not int or windows < 1:
            raise ValueError(f"windows={windows!r} should be a whole number of at least 1")
        lengths = self._lengths_of((modality,), index)
        latest = (lengths - self.window).clamp(min=0)[:, None]
        starts = latest // 2 if windows == 1 else latest * torch.arange(windows) // (windows - 1)
        repeated = (each.repeat_interleave(windows) for each in (index, lengths))
        return self._windows(modality, *repeated, starts.flatten()).unflatten(0, (len(index), windows))

    def to(self, device: torch.device | str) -> Self:
        """The same set for training on `device`: pictures and sound go there if they fit, else views are streamed."""
        device = torch.device(device)
        if not fits(sum(part.nbytes for part in (self.frames, self.mel) if part.device.type != device.type), device):
            return dataclasses.replace(self, streamed=True)
        return dataclasses.replace(self, frames=self.frames.to(device), mel=self.mel.to(device), streamed=False)

    def _lengths(self, modality: str, index: Tensor) -> Tensor:
        """(m,) whole frames of pictures or sound of the items of `index` (m,)."""
        if choose("modality", modality, MODALITIES) == "video":
            return self.first_frame[index + 1] - self.first_frame[index]
        return (self.first_row[index + 1] - self.first_row[index]) // self.rows_per_frame

    def _lengths_of(self, modalities: tuple[str, ...], index: Tensor) -> Tensor:
        """(m,) frames for which the items of `index` have all of the modalities, at least 1 each."""
        if index.dtype != torch.int64 or index.ndim != 1 or index.device.type != "cpu":
            raise ValueError(f"index is {index.dtype} of shape {tuple(index.shape)} on {index.device}; it should be "
                             "torch.int64 of shape (m,) on the CPU")
        outside = index[(index < 0) | (index >= len(self))]
        if len(outside):
            raise IndexError(f"{self.name} has items 0 to {len(self) - 1}, not {int(outside[0])}")
        each = [self._lengths(modality, index) for modality in modalities]
        for modality, lengths in zip(modalities, each, strict=True):
            if not lengths.all():
                item = int(index[lengths == 0][0])
                raise ValueError(f"{self.name}: item {item} has no {modality}; choose among has({modality!r})")
        return torch.stack(each).amin(0)

    def _random_starts(self, lengths: Tensor, generator: torch.Generator) -> Tensor:
        """(m,) first frames of windows, uniform among those possible."""
        possible = (lengths - self.window).clamp(min=0) + 1
        drawn = torch.rand(len(lengths), dtype=torch.float64, generator=generator)
        return (drawn * possible).long()

    def _windows(self, modality: str, index: Tensor, lengths: Tensor, starts: Tensor) -> Tensor:
        """The window from frame `starts` (m,) of each item, which is taken to repeat after `lengths` (m,) frames."""
        places = (starts[:, None] + torch.arange(self.window)) % lengths[:, None]
        if modality == "video":
            rows = self.first_frame[index, None] + places
            return self._gather(self.frames, rows).permute(0, 4, 1, 2, 3)
        steps = places[:, :, None] * self.rows_per_frame + torch.arange(self.rows_per_frame)
        return self._gather(self.mel, self.first_row[index, None] + steps.flatten(1)).transpose(1, 2)

    def _gather(self, values: Tensor, rows: Tensor) -> Tensor:
        """`values[rows]`, which on the CPU copies whole rows: several times as fast as indexing."""
        flat, out = rows.flatten().to(values.device, non_blocking=True), None
        if self.streamed and torch.cuda.is_available():
            out = torch.empty(len(flat), *values.shape[1:], dtype=values.dtype, pin_memory=True)
        return torch.index_select(values, 0, flat, out=out).unflatten(0, rows.shape)
