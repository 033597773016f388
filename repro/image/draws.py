"""Random parameters of views, for a whole batch at once: every function draws from a generator, on its device."""

import math

import torch
from torch import Tensor

from repro.image.operations import HUE


def draw_boxes(
    heights: Tensor,
    widths: Tensor,
    *,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    generator: torch.Generator,
) -> Tensor:
    """Crops of random area and aspect ratio, anywhere in images of the given sizes.

    Of ten candidates, whose area is uniform and whose ratio log-uniform, the first that fits into the image; else the
    largest central crop whose ratio is allowed.

    Args:
        heights, widths: (N,) pixels of the images, on the device of the generator.
        scale: least and largest share of the image's area.
        ratio: least and largest width over height.
        generator: on the device of the sizes.

    Returns:
        (N, 4) int64: top, left, height, width.

    Source: Szegedy et al. 2015 as torchvision's `RandomResizedCrop` has it.
    """
    attempts, count = 10, len(heights)
    sides = torch.stack([heights, widths])                                                  # (2, N)
    area = heights * widths * _uniform(attempts, count, bounds=scale, generator=generator)  # (attempts, N)
    logarithms = (math.log(ratio[0]), math.log(ratio[1]))
    log_ratio = _uniform(attempts, count, bounds=logarithms, generator=generator)
    boxes = (area.unsqueeze(1) * torch.stack([-log_ratio, log_ratio], dim=1).exp()).sqrt().round()
    fits = ((boxes >= 1) & (boxes <= sides)).all(1)                                         # (attempts, N)
    central = torch.minimum(sides, torch.stack([widths / ratio[0], heights * ratio[1]]).round())
    boxes = torch.cat([boxes, central.unsqueeze(0)])                                        # (attempts + 1, 2, N)
    first = torch.cat([fits, torch.ones_like(fits[:1])]).byte().argmax(0)                   # (N,)
    box = boxes.gather(0, first.expand(1, 2, count)).squeeze(0)
    room = sides - box
    place = _uniform(2, count, bounds=(0, 1), generator=generator)
    corner = torch.where(first < attempts, place * (room + 1), room / 2).floor()
    return torch.cat([corner, box]).T.long()


def draw_shifts(count: int, padding: int, generator: torch.Generator) -> Tensor:
    """(count, 2) int64: how far a crop lies below and to the right of its image, uniform in -padding to padding."""
    return torch.randint(-padding, padding + 1, (count, 2), generator=generator, device=generator.device)


def draw_chosen(count: int, probability: float, generator: torch.Generator) -> Tensor:
    """(count,) bool: True with the given probability."""
    return _uniform(count, bounds=(0, 1), generator=generator) < probability


def draw_factors(
    count: int, probability: float, strength: tuple[float, float, float, float], generator: torch.Generator
) -> Tensor:
    """Factors of colour jitter, uniform within the strength of each operation; neutral for samples not chosen.

    Returns:
        (count, 4): brightness, contrast and saturation around 1, shift of hue in turns around 0.
    """
    changes = [_uniform(count, bounds=(-change, change), generator=generator) for change in strength]
    chosen = draw_chosen(count, probability, generator)
    factors = torch.stack(changes, dim=1) * chosen.unsqueeze(1)
    factors[:, :HUE] += 1
    return factors


def draw_order(count: int, generator: torch.Generator) -> Tensor:
    """(count, 4) int64: the operations of colour jitter in an order uniform over all 24."""
    return _uniform(count, 4, bounds=(0, 1), generator=generator).argsort(1)


def draw_sigma(count: int, probability: float, sigma: tuple[float, float], generator: torch.Generator) -> Tensor:
    """(count,) standard deviations of a blur, uniform between the two given; 0 for samples not chosen."""
    return _uniform(count, bounds=sigma, generator=generator) * draw_chosen(count, probability, generator)


def _uniform(*shape: int, bounds: tuple[float, float], generator: torch.Generator) -> Tensor:
    """float32 of the given shape, uniform between the bounds, on the generator's device."""
    least, largest = bounds
    return least + (largest - least) * torch.rand(shape, generator=generator, device=generator.device)
