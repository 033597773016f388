"""Augmentation for a whole batch at once on its device: of clips a random crop, flip, greyscale and normalisation; of
drawings of characters a small affine map."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

MEAN, DEVIATION = 0.45, 0.225  # of pixels in [0, 1]; usual for Kinetics, the paper names none
FLIP = 0.5  # probability; assumed, the paper names the augmentation alone
LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
TURN, SHIFT = 0.2, 0.15       # largest change of an entry of the affine map; of the shift, in halves of a side; assumed


class Draws(NamedTuple):
    """What is random in a batch of clips: first row and column of the crop (n,), and whether to flip or grey, (n,)."""

    rows: Tensor
    columns: Tensor
    flip: Tensor
    grey: Tensor


def at_random(view: Tensor, size: int, greyscale: float, *, generator: torch.Generator) -> Tensor:
    """A view as networks take it; clips (n, 3, F, H, W) uint8 are cropped, flipped, greyed and normalised."""
    if view.ndim == 5:
        draws = draw(len(view), *view.shape[3:], size, greyscale, generator=generator)
        view = apply(view, draws, size)
    return channels_last(view)


def centred(view: Tensor, size: int) -> Tensor:
    """The same without randomness: of clips the crop in the middle."""
    if view.ndim == 5:
        never = torch.zeros(len(view), dtype=torch.bool, device=view.device)
        rows, columns = (torch.full_like(never, (side - size) // 2, dtype=torch.int64) for side in view.shape[3:])
        view = apply(view, Draws(rows, columns, never, never), size)
    return channels_last(view)


def draw(
    count: int, height: int, width: int, size: int, greyscale: float, *, generator: torch.Generator
) -> Draws:
    """Parameters of `count` clips, on the generator's device.

    Args:
        height, width: of the frames, in pixels, each at least `size`.
        size: side of the crop, in pixels.
        greyscale: probability, 0 to 1.

    Source: CM-ACC, Sec. 4; the probability of a flip is assumed.
    """
    chance = torch.rand(4, count, generator=generator, device=generator.device)
    rows = (chance[0] * (height - size + 1)).long()
    columns = (chance[1] * (width - size + 1)).long()
    return Draws(rows, columns, chance[2] < FLIP, chance[3] < greyscale)


def apply(clips: Tensor, draws: Draws, size: int) -> Tensor:
    """Crop, flip, grey and normalise.

    Args:
        clips: (n, 3, F, H, W) uint8; one set of parameters for all frames of a clip.
        draws: see `draw`.
        size: side of the crop, in pixels.

    Returns:
        (n, 3, F, size, size) float32.

    Raises:
        ValueError: if the frames are smaller than the crop.
    """
    count, channels, frames, height, width = clips.shape
    if min(height, width) < size:
        raise ValueError(f"size={size} exceeds the frames of {height} x {width} pixels; lower it")
    side = torch.arange(size, device=clips.device)
    rows = draws.rows.unsqueeze(1) + side                                              # (n, size)
    columns = draws.columns.unsqueeze(1) + torch.where(draws.flip.unsqueeze(1), side.flip(0), side)
    rows = rows.view(count, 1, 1, size, 1).expand(-1, channels, frames, -1, width)
    columns = columns.view(count, 1, 1, 1, size).expand(-1, channels, frames, size, -1)
    cropped = clips.gather(3, rows).gather(4, columns).float() / 255
    red, green, blue = (share * colour for share, colour in zip(LUMA, cropped.split(1, dim=1), strict=True))
    return (torch.where(draws.grey.view(-1, 1, 1, 1, 1), red + green + blue, cropped) - MEAN) / DEVIATION


def warped(pictures: Tensor, *, generator: torch.Generator) -> Tensor:
    """Pictures, each changed by a small random affine map of its own, zero beyond their edges.

    To the identity's four entries independent uniform numbers of up to 0.2 are added, which turn, shear and scale by up
    to some 11 degrees and 20 percent; the shift is up to 15 percent of half a side along each axis.

    Args:
        pictures: (n, H, W) float32.
        generator: on any device; draws 6 n numbers.

    Returns:
        (n, H, W), interpolated between the four pixels around every place.
    """
    if not len(pictures):
        return pictures
    chance = torch.rand(len(pictures), 2, 3, dtype=torch.float32, generator=generator, device=generator.device)
    identity, largest = pictures.new_tensor([[[1, 0, 0], [0, 1, 0]], [[TURN, TURN, SHIFT], [TURN, TURN, SHIFT]]])
    maps = identity + largest * (2 * chance - 1).to(pictures.device, non_blocking=True)
    places = affine_grid(maps, [len(pictures), 1, *pictures.shape[1:]], align_corners=False)
    return grid_sample(pictures.unsqueeze(1), places, align_corners=False).squeeze(1)


def channels_last(rows: Tensor) -> Tensor:
    """Pictures (n, C, H, W) and clips (n, C, F, H, W) in the memory format that convolutions are fast in."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return rows.contiguous(memory_format=formats.get(rows.ndim, torch.contiguous_format))
