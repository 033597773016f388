"""Sequences of unequal length, laid end to end on a device; batches of them are padded when they are asked for."""

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

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """The sequences of `index` (N,), on the CPU: (N, T, D) padded with zeros to the longest, and lengths (N,).

        Index arithmetic on the device, which is not waited for.
        """
        longest = int(self.lengths[index].max())
        starts, lengths = self.places[:, index.to(self.places.device, non_blocking=True)]
        time = torch.arange(longest, device=starts.device)
        inside = time < lengths[:, None]
        rows = torch.where(inside, starts[:, None] + time, 0)
        return self.frames[rows].masked_fill_(~inside[:, :, None], 0), lengths
