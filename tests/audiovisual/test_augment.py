"""Augmentation of clips against torchvision and of drawings against slow loops, and the distribution of draws."""

import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates
from stand_in import Orders
from torchvision.transforms import v2

from repro.audiovisual import augment


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def clips(count=4, frames=3, height=7, width=9):
    return torch.randint(256, (count, 3, frames, height, width), generator=seeded(), dtype=torch.uint8)


def slow_clip(clip, row, column, flip, grey, size):
    """One clip (3, F, H, W) by torchvision, frame by frame."""
    frames = []
    for frame in clip.unbind(1):
        frame = v2.functional.crop(frame, row, column, size, size).double() / 255
        frame = v2.functional.horizontal_flip(frame) if flip else frame
        frames.append(v2.functional.rgb_to_grayscale(frame, 3) if grey else frame)
    return (torch.stack(frames, dim=1) - 0.45) / 0.225


def test_each_clip_is_cropped_flipped_and_greyed_by_its_own_parameters_or_in_the_middle():
    rows, columns = torch.tensor([0, 2, 1, 2]), torch.tensor([4, 0, 3, 1])
    flip, grey = torch.tensor([False, True, False, True]), torch.tensor([False, False, True, True])
    made = augment.cropped(clips(), rows, columns, flip, grey, 5)
    parameters = zip(clips(), rows.tolist(), columns.tolist(), flip.tolist(), grey.tolist(), strict=True)
    expected = torch.stack([slow_clip(*own, 5) for own in parameters])
    torch.testing.assert_close(made.double(), expected, atol=2e-3, rtol=0)  # torchvision's luma has four digits
    expected = torch.stack([slow_clip(clip, 1, 2, False, False, 5) for clip in clips()])
    torch.testing.assert_close(augment.centred(clips(), 5).double(), expected, atol=1e-5, rtol=0)


def test_crops_are_uniform_and_so_many_flipped_and_grey():
    """Pixels that tell where they come from: red their row, green their column."""
    pixels = torch.zeros(3, 1, 7, 9, dtype=torch.uint8)
    pixels[0, 0], pixels[1, 0] = 10 * torch.arange(7)[:, None], 10 * torch.arange(9)
    views = augment.at_random(pixels.expand(30_000, -1, -1, -1, -1), 5, 0.2, generator=seeded(1))
    red, green, blue = ((views * 0.225 + 0.45) * 255 / 10).unbind(1)
    grey = (red == blue).flatten(1).all(1)
    assert grey.float().mean().item() == pytest.approx(0.2, abs=0.01)
    corners = red[~grey, 0, 0, 0].round().long(), green[~grey, 0, 0].amin(1).round().long()
    for places, expected in zip(corners, (3, 5), strict=True):
        counts = places.bincount() / len(places)
        assert len(counts) == expected and (counts - 1 / expected).abs().max() < 0.013  # four standard deviations
    flipped = green[~grey, 0, 0, 0] > green[~grey, 0, 0, 4]
    assert flipped.float().mean().item() == pytest.approx(0.5, abs=0.013)


def slowly_warped(picture, entries):
    """Every pixel is what lies where the map takes its middle, between the four pixels around, zero beyond the edge."""
    sides = [[side] for side in picture.shape]
    down, across = (2 * np.indices(picture.shape).reshape(2, -1) + 1) / sides - 1
    taken = entries.numpy() @ [across, down, np.ones(across.size)]
    places = ((taken[::-1] + 1) * sides - 1) / 2
    return map_coordinates(picture.numpy(), places, order=1, mode="grid-constant").reshape(picture.shape)


@pytest.mark.parametrize("shape", [(8, 8), (5, 7)])
def test_drawings_are_warped_by_small_affine_maps(shape):
    pictures, chance = torch.rand(6, *shape, generator=seeded()), torch.rand(6, 2, 3, generator=seeded(1))
    largest, identity = torch.tensor([0.2, 0.2, 0.15]), torch.tensor([[1.0, 0, 0], [0, 1, 0]])
    for picture, drawn, warped in zip(pictures, chance, augment.warped(pictures, generator=seeded(1)), strict=True):
        expected = slowly_warped(picture, identity + largest * (2 * drawn - 1))
        np.testing.assert_allclose(warped, expected, rtol=1e-4, atol=1e-5)
    with Orders():  # raises where a value is read or a tensor made of numbers, for which a device would be waited for
        augment.warped(pictures, generator=seeded())
