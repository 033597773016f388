"""Where the images of a training step come from: device memory, or files that worker processes decode.

Of pictures too many for memory, a worker does for each what changes its size, on 256 levels as the papers' code does,
while the device trains and does the rest of the view for a whole batch. On the same box the picture is within one level
of `operations.resized_crop`, which does not round in between.
"""

import dataclasses
import multiprocessing
import os
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from repro.data.parallel import end_with_parent
from repro.image.augment import AnyView, CentredView, View, draw_boxes
from repro.image.data import ImageSet
from repro.image.readers import Files
from repro.run.device import cores


class Resident:
    """Images (n, 3, H, W) uint8 that live in device memory; all is left to the views."""

    def __init__(self, images: Tensor, views: Sequence[AnyView], device: torch.device) -> None:
        self.images, self.views = images.to(device), list(views)

    def batches(self, order: Tensor, *, batch: int, seed: Sequence[int]) -> Iterator[list[Tensor]]:
        """See `Streamed`; `seed` is not used."""
        for index in order.split(batch):
            yield [self.images[index.to(self.images.device, non_blocking=True)]] * len(self.views)


class Streamed(Dataset):
    """Images decoded, cropped and resized by worker processes while the device trains.

    A script that uses it starts its work below `if __name__ == "__main__":`, as the workers import the script again.

    Args:
        files: the images.
        views: what each image is wanted in; no `ShiftedView`.
        device: to train on.
        workers: processes, at least 1; None takes one for each core that this process may use, shared with the other
            processes that `torchrun` has started on this machine.

    Attributes:
        views: what is left to do on the device to the batches, in the order of `views`: the same views less the crop,
            which of a batch made here is the identity.
    """

    def __init__(
        self, files: Files, views: Sequence[View | CentredView], device: torch.device, *, workers: int | None = None
    ) -> None:
        self.views = [_left_to_do(view) for view in views]
        self._files, self._whole_views, self._device = files, tuple(views), device
        self._workers = workers or max(1, cores() // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))

    def batches(self, order: Tensor, *, batch: int, seed: Sequence[int]) -> Iterator[list[Tensor]]:
        """The images at the places in `order`, cut to the size of each view.

        Args:
            order: (m,) int64 places in the files.
            batch: images at a time, at least 1; the last may be fewer.
            seed: whole numbers of at least 0, such as the run's seed and the epoch. An image's crop depends on it, its
                place and the number of the view alone, not on workers nor on where an interrupted run goes on.

        Yields:
            Of each batch one uint8 tensor (batch, 3, size, size) of every view, on the device.

        Raises:
            ValueError: if a file is gone or damaged; the message names it.
        """
        if not len(order):
            return
        parts = [(tuple(seed), part.tolist()) for part in order.split(batch)]
        # Workers start from a process that has imported this module and runs no threads: a fork of this one, in which
        # torch may run threads, could wait for ever for a lock that one of them held.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        loader = DataLoader(
            self,
            batch_size=None,  # one item of the data set is a batch already
            sampler=parts,
            num_workers=min(self._workers, len(parts)),
            multiprocessing_context=context,
            worker_init_fn=end_with_parent,  # torch finds out of a killed parent in forked workers alone
            pin_memory=self._device.type == "cuda",
            generator=torch.Generator(),  # else it draws from the global one, which training may use
        )
        for views in loader:
            if isinstance(views, ValueError):
                raise views
            yield [view.to(self._device, non_blocking=True) for view in views]

    def __getitem__(self, part: tuple[tuple[int, ...], list[int]]) -> list[Tensor] | ValueError:
        """In a worker, of a seed and places: one uint8 tensor (places, 3, size, size) per view, or what is wrong."""
        seed, places = part
        cut = [torch.empty(len(places), 3, view.size, view.size, dtype=torch.uint8) for view in self._whole_views]
        for row, place in enumerate(places):
            try:
                picture = self._files.read(place)
            except ValueError as error:  # raised here, torch would wrap its message in a traceback and keep the workers
                return error
            for number, view in enumerate(self._whole_views):
                mixed, = np.random.SeedSequence((*seed, place, number)).generate_state(1)
                generator = torch.Generator().manual_seed(int(mixed))
                small = cropped(picture, view, generator) if isinstance(view, View) else centred(picture, view)
                cut[number][row] = torch.from_numpy(np.array(small)).permute(2, 0, 1)
        return cut


def cropped(picture: Image.Image, view: View, generator: torch.Generator) -> Image.Image:
    """A random crop as the view draws it, resized by antialiased bilinear interpolation to its size."""
    given = {"scale": view.scale, "ratio": view.ratio, "generator": generator}
    (top, left, height, width), = draw_boxes(1, picture.height, picture.width, **given).tolist()
    # Cut out first: resizing a box of the whole picture would mix in the pixels around it.
    crop = picture.crop((left, top, left + width, top + height))
    return crop.resize((view.size, view.size), Image.Resampling.BILINEAR)


def centred(picture: Image.Image, view: CentredView) -> Image.Image:
    """The picture with its shorter side resized as the view says, then its centre."""
    sides = view.sides(*picture.size)
    left, top = (round((side - view.size) / 2) for side in sides)
    resized = picture.resize(sides, Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + view.size, top + view.size))


def _left_to_do(view: View | CentredView) -> View | CentredView:
    """The view for pictures that are its crop already."""
    whole = {"scale": (1, 1), "ratio": (1, 1)} if isinstance(view, View) else {"resize": view.size}
    return dataclasses.replace(view, **whole)


def batches_of(data: ImageSet, views: Sequence[AnyView], device: torch.device) -> Resident | Streamed:
    """Batches of a data set, resident unless its images stay in files."""
    return (Streamed if isinstance(data.images, Files) else Resident)(data.images, views, device)
