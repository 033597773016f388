"""Clips of pictures and sound, laid end to end; random and evenly spread windows of them."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from repro.audiovisual import MODALITIES
from repro.data.manifest import check_labels
from repro.run.device import fits

PARTS = ("pretrain", "train", "test")


@dataclass(frozen=True, eq=False)
class Clips:
    """A set of clips whose pictures and sound run side by side, 10 frames per second.

    `frames` and `mel` lie end to end, the first item's, then the second's, and so on; they may be mapped from a file
    (`numpy.load(path, mmap_mode="c")`), of which a window reads what it needs. Everything else stays on the CPU.

    ValueError if a label has no class, or an item is for training and for test.
    """

    name: str                     # of the data set; what is not the official distribution says so
    digest: str                   # hex sha256 of what a training can depend on
    classes: tuple[str, ...]
    labels: Tensor                # (n,) int64, or -1 where there is none: what probes and fine-tuning predict
    categories: Tensor            # (n,) int64, the finest ground truth
    pretrain: Tensor              # (n,) bool, as `train` and `test`
    train: Tensor
    test: Tensor
    frames: Tensor                # (sum of frames, H, W, 3) uint8; red, green, blue
    first_frame: Tensor           # (n + 1,) int64: item i has the frames from first_frame[i] up to first_frame[i + 1]
    mel: Tensor                   # (sum of rows, bands) float32, log-mel; those beyond a whole frame are not used
    first_row: Tensor             # (n + 1,) int64, as `first_frame`, of `mel`; no rows: the item has no sound
    rows_per_frame: int
    window: int                   # frames of a view; an item that has fewer repeats from its start
    streamed: bool = False        # for a device without room for the set: views are made in memory pinned for copying

    def __post_init__(self) -> None:
        check_labels(self.name, self.labels, len(self.classes), self.train, self.test, least=-1)

    @property
    def sizes(self) -> tuple[int]:
        """The number of classes, of which a clip has one."""
        return (len(self.classes),)

    def has(self, modality: str) -> Tensor:
        """(n,) bool: which items have pictures ("video") or sound ("audio")."""
        return self._lengths((modality,), torch.arange(len(self.labels))) > 0

    def view(self, modality: str, index: Tensor, generator: torch.Generator) -> Tensor:
        """A window of each item of `index` (m,) int64, all of which have the modality, its start uniform.

        (m, 3, window, H, W) uint8, or (m, bands, window * rows_per_frame) float32, where the set is. Index and
        generator, which draws m numbers, are on the CPU.
        """
        return self._at_random((modality,), index, generator)[0]

    def pair(self, index: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The same window of pictures and sound, as `view` gives them; of the time that an item has both."""
        return self._at_random(MODALITIES, index, generator)

    def twins(self, modality: str, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Two windows of each item, drawn independently, as `view` gives them."""
        return self.view(modality, index, generator), self.view(modality, index, generator)

    def centred(self, modality: str, index: Tensor, windows: int = 1) -> Tensor:
        """(m, windows, ...) as of `view`: one window in the middle, or several, from the first to the last, evenly."""
        lengths = self._lengths((modality,), index)
        latest = (lengths - self.window).clamp(min=0)[:, None]
        starts = latest // 2 if windows == 1 else latest * torch.arange(windows) // (windows - 1)
        repeated = (column.repeat_interleave(windows) for column in (index, lengths))
        return self._windows(modality, *repeated, starts.flatten()).unflatten(0, (len(index), windows))

    def to(self, device: torch.device | str) -> Self:
        """The same set for training on `device`: pictures and sound go there if they fit, else views are streamed."""
        device = torch.device(device)
        if not fits(sum(part.nbytes for part in (self.frames, self.mel) if part.device.type != device.type), device):
            return dataclasses.replace(self, streamed=True)
        return dataclasses.replace(self, frames=self.frames.to(device), mel=self.mel.to(device), streamed=False)

    def _lengths(self, modalities: tuple[str, ...], index: Tensor) -> Tensor:
        """(m,) whole frames for which the items of `index` (m,) have all modalities."""
        lengths = {
            "video": self.first_frame[index + 1] - self.first_frame[index],
            "audio": (self.first_row[index + 1] - self.first_row[index]) // self.rows_per_frame,
        }
        return functools.reduce(torch.minimum, [lengths[modality] for modality in modalities])

    def _at_random(self, modalities: tuple[str, ...], index: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The same random window of all modalities."""
        lengths = self._lengths(modalities, index)
        possible = (lengths - self.window).clamp(min=0) + 1
        starts = (torch.rand(len(lengths), dtype=torch.float64, generator=generator) * possible).long()
        return tuple(self._windows(modality, index, lengths, starts) for modality in modalities)

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
