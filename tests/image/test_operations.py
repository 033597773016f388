"""What views do to images, sample by sample, against torchvision's v2 operations."""

import itertools

import pytest
import torch
from slow_operations import (
    IMAGENET,
    RATIO,
    assert_near,
    blurred,
    cropped,
    each,
    generator,
    jittered,
    pictures,
    sides,
)
from torchvision.transforms.v2 import functional

from repro.image.augment import View, draw_boxes
from repro.image.operations import (
    as_float,
    colour_jitter,
    gaussian_blur,
    greyscale,
    resized_crop,
    shift_hue,
    shifted_crop,
)

ORDERS = torch.tensor(list(itertools.permutations(range(4))))


@pytest.mark.parametrize(
    ("height", "width", "size"), [(32, 32, 32), (12, 40, 32), (96, 96, 96), (200, 150, 32), (375, 500, 224), (9, 7, 1)]
)
def test_resized_crop_is_that_of_torchvision(height, width, size):
    images = as_float(pictures(8, height, width))
    boxes = draw_boxes(*sides(8, height, width), scale=(0.02, 1.0), ratio=RATIO, generator=generator(1))
    boxes[0] = torch.tensor([0, 0, height, width])
    boxes[1] = torch.tensor([height - 1, width - 1, 1, 1])
    boxes[2] = torch.tensor([height // 2, 0, 1, width])
    flipped = torch.arange(8) % 2 == 1
    expected = each(cropped, images, boxes, flipped, [size] * 8)
    assert_near(resized_crop(images, boxes, flipped, size), expected, 1e-6)


def test_shifted_crop_is_a_crop_of_the_padded_image():
    images = as_float(pictures(81, 6, 9))
    shifts = torch.cartesian_prod(torch.arange(-4, 5), torch.arange(-4, 5))
    flipped = torch.rand(81, generator=generator()) < 0.5

    def reference(image, shift, flip):
        down, right = shift.tolist()
        crop = functional.crop(functional.pad(image, 4), 4 + down, 4 + right, 6, 9)
        return functional.horizontal_flip(crop) if flip else crop

    assert torch.equal(shifted_crop(images, shifts, flipped), each(reference, images, shifts, flipped))


@pytest.mark.parametrize(
    ("strength", "tolerance"), [((0.4, 0.4, 0.4, 0.1), 2e-6), ((1.0, 1.0, 1.0, 0.5), 5e-6)]
)
def test_colour_jitter_is_that_of_torchvision_in_every_order(strength, tolerance):
    images = as_float(pictures(96, 16, 16))
    order = ORDERS.repeat(4, 1)
    factors = View(16, IMAGENET, jitter=1.0, strength=strength).draw(96, 16, 16, generator(1)).factors
    assert_near(colour_jitter(images, factors, order), each(jittered, images, factors, order), tolerance)


def test_hue_is_that_of_torchvision_for_every_colour():
    level = torch.linspace(0, 1, 9)
    colours = torch.cartesian_prod(level, level, level).T.reshape(1, 3, 27, 27).repeat(41, 1, 1, 1)
    shift = torch.linspace(-0.5, 0.5, 41)
    expected = each(lambda image, turns: functional.adjust_hue(image, turns.item()), colours, shift)
    assert_near(shift_hue(colours, shift), expected, 2e-6)


def test_hue_of_almost_grey_pixels_is_finite_and_stays_almost_grey():
    grey = torch.tensor([0.0, 1e-30, 0.3, 1.0])[:, None, None, None].repeat(1, 3, 1, 4)
    grey[:, :, 0, 1:] += torch.tensor([1e-12, 6e-8, -6e-8]) * torch.tensor([[1.0], [0.0], [2.0]])
    assert_near(shift_hue(grey, torch.tensor([0.5, -0.1, 0.3, 0.1])), grey, 1e-6)


def test_greyscale_is_that_of_torchvision():
    images = as_float(pictures(6))
    chosen = torch.tensor([True, False, True, True, False, True])
    expected = torch.where(chosen[:, None, None, None], functional.rgb_to_grayscale(images, 3), images)
    assert torch.equal(greyscale(images, chosen), expected)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (224, 224), (40, 12), (8, 8), (3, 2), (1, 1)])
def test_blur_is_that_of_torchvision_with_a_kernel_of_23_or_the_largest_that_fits(height, width):
    sigma = torch.tensor([0.1, 2.0, 0.0, 1e-4, 0.5, 1.0])
    images = as_float(pictures(6, height, width))
    assert_near(gaussian_blur(images, sigma), each(blurred, images, sigma), 2e-6)
