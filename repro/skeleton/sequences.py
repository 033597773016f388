"""Sequences of unequal length, laid end to end on a device; batches of them are padded when they are asked for."""

from collections.abc import Iterator

import torch
from torch import Tensor


class Sequences:
    """A set of sequences without padding.

    Args:
        frames: (sum of lengths, D), the frames of the first sequence, then those of the second, and so on. May be
            mapped from a file: on the CPU nothing is copied.
        lengths: (n,) int64 on the CPU, at least 1 each.
        device: where the frames stay and batches are made.
    """

    def __init__(self, frames: Tensor, lengths: Tensor, device: torch.device | str = "cpu") -> None:
        self.frames = frames.to(device)
        self.lengths = lengths  # on the CPU: a batch's longest sequence is known without waiting for the device
        self.places = torch.stack([lengths.cumsum(0) - lengths, lengths]).to(device)  # first row and length of each

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The sequences of `index` (N,), on the CPU, padded with zeros to the longest.

        Index arithmetic on the device, which is not waited for.

        Returns:
            Sequences (N, T, D) and their lengths (N,) on the device, and the same lengths on the CPU.
        """
        cpu_lengths = self.lengths[index]
        on_device = index.to(self.places.device, non_blocking=True)
        return *self.padded(on_device, int(cpu_lengths.max())), cpu_lengths

    def padded(self, index: Tensor, frames: int) -> tuple[Tensor, Tensor]:
        """The sequences of `index` (N,), on the device, padded with zeros to `frames`, and their lengths (N,)."""
        starts, lengths = self.places[:, index]
        time = torch.arange(frames, device=starts.device)
        inside = time < lengths[:, None]
        rows = torch.where(inside, starts[:, None] + time, 0)
        return self.frames[rows].masked_fill_(~inside[:, :, None], 0), lengths

    def of_similar_length(self, index: Tensor, frames: int) -> Iterator[Tensor]:
        """Parts of `index` (m,), from the longest sequences to the shortest, of at most `frames` frames when padded."""
        rest = index[self.lengths[index].argsort(descending=True, stable=True)]
        while len(rest):
            count = max(1, frames // int(self.lengths[rest[0]]))
            yield rest[:count]
            rest = rest[count:]
