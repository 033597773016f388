"""Where the images of a training step come from: device memory, or files that worker processes decode."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from repro.image.augment import CentredView, ShiftedView, View
from repro.image.data import ImageSet
from repro.image.files import Files
from repro.image.stream import Streamed


class Batches(Protocol):
    """Pictures for a number of views.

    Attributes:
        views: what is left to do with the pictures of each view.
    """

    views: Sequence[View | CentredView | ShiftedView]

    def batches(self, order: Tensor, *, batch: int, seed: Sequence[int]) -> Iterator[list[Tensor]]:
        """Pictures of consecutive parts of `order`, of `batch` indices each, the last may be smaller.

        Args:
            order: (m,) indices of images, on the CPU.
            batch: indices per part, at least 1.
            seed: of whatever random choices come before `views`.

        Yields:
            For every view the pictures (n, 3, H, W) uint8 of a part, on the device.
        """


class Resident:
    """Images that live in device memory; nothing is done to them before the views.

    Args:
        images: (n, 3, H, W) uint8.
        views: see `Batches`.
        device: where the images go, once.
    """

    def __init__(
        self, images: Tensor, views: Sequence[View | CentredView | ShiftedView], device: torch.device
    ) -> None:
        self.images, self.views = images.to(device), list(views)

    def batches(self, order: Tensor, *, batch: int, seed: Sequence[int]) -> Iterator[list[Tensor]]:
        """See `Batches`; `seed` is not used."""
        for index in order.split(batch):
            yield [self.images[index.to(self.images.device, non_blocking=True)]] * len(self.views)


def batches_of(data: ImageSet, views: Sequence[View | CentredView | ShiftedView], device: torch.device) -> Batches:
    """Batches of a data set, resident unless its images stay in files."""
    kind = Streamed if isinstance(data.images, Files) else Resident
    return kind(data.images, views, device)


def on_device(data: ImageSet, device: torch.device) -> ImageSet:
    """The data set with its images on the device, unless they stay in files."""
    return data if isinstance(data.images, Files) else dataclasses.replace(data, images=data.images.to(device))
