"""Augmentation of a whole batch on its device: clips are cropped, flipped, greyed and normalised, drawings warped."""

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

MEAN, DEVIATION = 0.45, 0.225  # of pixels in [0, 1]; usual for Kinetics, the paper names none
FLIP = 0.5  # probability; assumed, the paper names the augmentation alone
LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
TURN, SHIFT = 0.2, 0.15       # largest change of an entry of the affine map; of the shift, in halves of a side; assumed


def at_random(view: Tensor, size: int, greyscale: float, *, generator: torch.Generator) -> Tensor:
    """A view as networks take it; of clips (n, 3, F, H, W) uint8 a random (n, 3, F, size, size) float32.

    Args:
        view: clips; sounds and pictures change their memory format alone.
        size: side of the crop, in pixels; uniform among its places.
        greyscale: probability, 0 to 1.
        generator: draws 4 n numbers for clips, on its own device.

    Source: CM-ACC, Sec. 4.
    """
    if view.ndim == 5:
        chance = torch.rand(4, len(view), generator=generator, device=generator.device).to(view.device)
        rows, columns = ((chance[axis] * (view.shape[3 + axis] - size + 1)).long() for axis in (0, 1))
        view = cropped(view, rows, columns, chance[2] < FLIP, chance[3] < greyscale, size)
    return channels_last(view)


def centred(view: Tensor, size: int) -> Tensor:
    """As `at_random` without randomness: of clips the crop in the middle."""
    if view.ndim == 5:
        top, left = ((side - size) // 2 for side in view.shape[3:])
        view = (view[..., top : top + size, left : left + size].float() / 255 - MEAN) / DEVIATION
    return channels_last(view)


def cropped(clips: Tensor, rows: Tensor, columns: Tensor, flip: Tensor, grey: Tensor, size: int) -> Tensor:
    """Clips as `at_random` makes them, by first row and column of each (n,), and whether to flip and grey it (n,)."""
    count, channels, frames, _, width = clips.shape
    side = torch.arange(size, device=clips.device)
    rows = rows.unsqueeze(1) + side                                                                       # (n, size)
    columns = columns.unsqueeze(1) + torch.where(flip.unsqueeze(1), side.flip(0), side)
    rows = rows.view(count, 1, 1, size, 1).expand(-1, channels, frames, -1, width)
    columns = columns.view(count, 1, 1, 1, size).expand(-1, channels, frames, size, -1)
    parts = clips.gather(3, rows).gather(4, columns).float() / 255
    red, green, blue = (share * colour for share, colour in zip(LUMA, parts.split(1, dim=1), strict=True))
    return (torch.where(grey.view(-1, 1, 1, 1, 1), red + green + blue, parts) - MEAN) / DEVIATION


def warped(pictures: Tensor, *, generator: torch.Generator) -> Tensor:
    """Pictures (n >= 1, H, W) float32, each changed by a small random affine map of its own, zero beyond their edges.

    `TURN` and `SHIFT` turn, shear and scale by up to some 11 degrees and 20 percent. The generator, on any device,
    draws 6 n uniform numbers.
    """
    chance = torch.rand(len(pictures), 2, 3, dtype=torch.float32, generator=generator, device=generator.device)
    turned, shifted = (2 * chance - 1).to(pictures.device, non_blocking=True).split((2, 1), dim=2)
    identity = torch.eye(2, dtype=pictures.dtype, device=pictures.device)
    maps = torch.cat([identity + TURN * turned, SHIFT * shifted], dim=2)
    places = affine_grid(maps, [len(pictures), 1, *pictures.shape[1:]], align_corners=False)
    return grid_sample(pictures.unsqueeze(1), places, align_corners=False).squeeze(1)


def channels_last(rows: Tensor) -> Tensor:
    """Pictures (n, C, H, W) and clips (n, C, F, H, W) in the memory format that convolutions are fast in."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return rows.contiguous(memory_format=formats.get(rows.ndim, torch.contiguous_format))
