"""Random parameters of views against those of torchvision's transforms."""

import itertools
import math

import pytest
import torch
from scipy import stats
from slow_operations import CIFAR10, RATIO, generator, sides
from torchvision.transforms import v2

from repro.image.augment import ShiftedView, View, draw_boxes


def agree(ours, theirs):
    """Two samples of one distribution, by the Kolmogorov-Smirnov test (conservative for whole numbers)."""
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-3


@pytest.mark.parametrize(
    ("height", "width", "scale"),
    [(32, 32, (0.2, 1.0)), (375, 500, (0.08, 1.0)), (30, 90, (0.1, 0.7)), (96, 96, (0.9, 1.0))],
)
def test_boxes_are_distributed_as_those_of_torchvision(height, width, scale):
    torch.manual_seed(0)
    transform, image = v2.RandomResizedCrop(8, scale), torch.empty(3, height, width, device="meta")
    drawn = [transform.make_params([image]) for _ in range(2000)]
    theirs = torch.tensor([[each_of[side] for side in ("top", "left", "height", "width")] for each_of in drawn])
    ours = draw_boxes(*sides(20_000, height, width), scale=scale, ratio=RATIO, generator=generator(1))
    for first, second in zip(ours.T, theirs.T, strict=True):
        agree(first, second)
    for function in (
        lambda top, left, height, width: height * width,
        lambda top, left, height, width: width / height,
        lambda top, left, height, width: top + height,
        lambda top, left, height, width: left - 2 * top,
    ):
        agree(function(*ours.T), function(*theirs.T))


def test_boxes_are_uniform_in_area_and_in_the_logarithm_of_the_ratio():
    # A quarter of the image at most: every candidate fits, and the first one is taken.
    size = 2000
    boxes = draw_boxes(*sides(5000, size, size), scale=(0.05, 0.25), ratio=(0.5, 2.0), generator=generator())
    top, left, height, width = boxes.double().T
    assert stats.kstest(height * width / size**2, stats.uniform(0.05, 0.2).cdf).pvalue > 1e-3
    assert stats.kstest((width / height).log2(), stats.uniform(-1, 2).cdf).pvalue > 1e-3
    assert stats.kstest(top / (size - height), stats.uniform.cdf).pvalue > 1e-3
    assert stats.kstest(left / (size - width), stats.uniform.cdf).pvalue > 1e-3
    parts = torch.stack([height * width, width / height, top / (size - height), left / (size - width)])
    assert (torch.corrcoef(parts) - torch.eye(4)).abs().max() < 5 / math.sqrt(5000)


@pytest.mark.parametrize(("height", "width"), [(8, 64), (64, 8), (7, 100), (1, 30), (30, 1)])
def test_boxes_that_never_fit_become_the_central_one_of_torchvision(height, width):
    params = v2.RandomResizedCrop(8, (0.9, 1.0)).make_params([torch.empty(3, height, width, device="meta")])
    expected = torch.tensor([params["top"], params["left"], params["height"], params["width"]])
    boxes = draw_boxes(*sides(50, height, width), scale=(0.9, 1.0), ratio=RATIO, generator=generator())
    assert torch.equal(boxes, expected.expand(50, 4))


def test_a_box_of_the_whole_area_is_the_whole_image():
    boxes = draw_boxes(*sides(200, 50, 50), scale=(1.0, 1.0), ratio=(1.0, 1.0), generator=generator())
    assert torch.equal(boxes, torch.tensor([0, 0, 50, 50]).expand(200, 4))


def test_boxes_of_images_of_different_sizes():
    heights, widths = (torch.randint(1, 600, (5000,), generator=generator(seed)) for seed in (1, 2))
    boxes = draw_boxes(heights, widths, scale=(0.08, 1.0), ratio=RATIO, generator=generator(3))
    top, left, height, width = boxes.T
    assert (torch.minimum(top, left) >= 0).all()
    assert (torch.minimum(height, width) >= 1).all()
    assert (top + height <= heights).all()
    assert (left + width <= widths).all()
    assert boxes.dtype == torch.int64

    large, small = sides(3000, 300, 400), sides(3000, 40, 60)
    mixed = [torch.stack(pair, dim=1).flatten() for pair in zip(large, small, strict=True)]
    both = draw_boxes(*mixed, scale=(0.2, 1.0), ratio=RATIO, generator=generator(4))
    for found, own in ((both[::2], large), (both[1::2], small)):
        alone = draw_boxes(*own, scale=(0.2, 1.0), ratio=RATIO, generator=generator(5))
        for first, second in zip(found.T, alone.T, strict=True):
            agree(first, second)


def drawn(count, seed=0, **changes):
    """The parameters of a view of so many images."""
    return View(32, CIFAR10, **changes).draw(count, 32, 32, generator(seed))


def test_shifts_are_uniform():
    shifts = ShiftedView(CIFAR10).draw(20_000, 32, 32, generator()).shifts + 4
    assert stats.chisquare(torch.bincount(9 * shifts[:, 0] + shifts[:, 1], minlength=81)).pvalue > 1e-3


def test_factors_are_distributed_as_those_of_torchvision():
    torch.manual_seed(0)
    names = ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")
    transform = v2.ColorJitter(0.4, 0.3, 0.2, 0.1)
    made = [transform.make_params([]) for _ in range(2000)]
    theirs = torch.tensor([[each_of[name] for name in names] for each_of in made])
    ours = drawn(20_000, 1, jitter=1.0, strength=(0.4, 0.3, 0.2, 0.1)).factors
    for first, second in zip(ours.T, theirs.T, strict=True):
        agree(first, second)
    assert (torch.corrcoef(ours.T) - torch.eye(4)).abs().max() < 5 / math.sqrt(20_000)


def test_operations_are_chosen_independently_by_their_probabilities():
    draws = drawn(40_000, flip=0.5, jitter=0.8, greyscale=0.2, blur=0.5)
    neutral = draws.factors == torch.tensor([1.0, 1.0, 1.0, 0.0])
    assert (neutral.all(1) == neutral.any(1)).float().mean() > 0.999
    chosen = torch.stack([draws.flipped, ~neutral.all(1), draws.grey, draws.sigma > 0], dim=1)
    found = torch.bincount((chosen * torch.tensor([8, 4, 2, 1])).sum(1), minlength=16)
    expected = [
        40_000 * math.prod(p if each_of else 1 - p for p, each_of in zip((0.5, 0.8, 0.2, 0.5), cell, strict=True))
        for cell in itertools.product((0, 1), repeat=4)
    ]
    assert stats.chisquare(found, expected).pvalue > 1e-3


def test_orders_are_uniform_over_all_permutations():
    orders = drawn(24_000).order
    assert torch.equal(orders.sort(1).values, torch.arange(4).expand(24_000, 4))
    _, counts = orders.unique(dim=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


def test_sigma_is_uniform():
    sigma = drawn(20_000, blur=1.0).sigma
    assert stats.kstest(sigma, stats.uniform(0.1, 1.9).cdf).pvalue > 1e-3


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_probabilities_zero_and_one(probability):
    draws = drawn(10_000, flip=probability, greyscale=probability)
    assert draws.flipped.float().mean() == draws.grey.float().mean() == probability
