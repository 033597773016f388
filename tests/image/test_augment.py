"""Views of images: their operations and random parameters against torchvision's, and what is refused."""

import itertools
import math

import pytest
import torch
from scipy import stats
from torchvision.models import ResNet18_Weights
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from repro.image.augment import CentredView, ShiftedView, View, draw_boxes, normalisation, probe, strong, weak
from repro.image.operations import (
    BRIGHTNESS,
    CONTRAST,
    HUE,
    SATURATION,
    Normalisation,
    as_float,
    normalise,
    shift_hue,
)

CIFAR10, IMAGENET = normalisation("cifar10"), normalisation("imagenet")
RATIO = (3 / 4, 4 / 3)
ADJUST = {
    BRIGHTNESS: functional.adjust_brightness,
    CONTRAST: functional.adjust_contrast,
    SATURATION: functional.adjust_saturation,
    HUE: functional.adjust_hue,
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def pictures(count=8, height=32, width=32, seed=0):
    """Noise of several contrasts, (count, 3, height, width) uint8, one picture of pure colours, and one grey."""
    draws = generator(seed)
    contrast = torch.rand(count, 1, 1, 1, generator=draws)
    noise = torch.rand(count, 3, height, width, generator=draws)
    images = (255 * (noise * contrast + (1 - contrast) * torch.rand(count, 3, 1, 1, generator=draws))).byte()
    images[0] = 255 * (images[0] > images[0].float().mean())
    images[-1] = images[-1, :1]
    return images


def each(operation, images, *parameters):
    """The operation of torchvision on every sample with its own parameters."""
    return torch.stack([operation(image, *own) for image, *own in zip(images, *parameters, strict=True)])


def assert_near(found, expected, tolerance):
    """No element differs by more than the tolerance."""
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def cropped(image, box, flip, size):
    crop = functional.resized_crop(image, *box.tolist(), size=[size, size], antialias=True)
    return functional.horizontal_flip(crop) if flip else crop


def jittered(image, factors, order):
    for operation in order.tolist():
        image = ADJUST[operation](image, factors[operation].item())
    return image


def blurred(image, sigma):
    kernel = [min(23, 2 * side - 1) for side in (image.shape[2], image.shape[1])]
    return functional.gaussian_blur(image, kernel, [sigma.item()] * 2) if sigma > 0 else image


# ---------------------------------------------------------------------------------------------- operations


@pytest.mark.parametrize("sides", [(6, 9), (1, 1)])
def test_a_shifted_view_is_a_crop_of_the_padded_image(sides):
    images = pictures(400, *sides)
    draws = ShiftedView(CIFAR10).draw(400, *sides, generator(5))

    def reference(image, box, flip):
        top, left, *lengths = box.tolist()
        crop = functional.crop(functional.pad(image, 4), 4 + top, 4 + left, *lengths)
        return functional.horizontal_flip(crop) if flip else crop

    expected = normalise(each(reference, as_float(images), *draws), CIFAR10)
    assert torch.equal(ShiftedView(CIFAR10)(images, generator=generator(5)), expected)


def test_hue_of_almost_grey_pixels_is_finite_and_stays_almost_grey():
    grey = torch.tensor([0.0, 1e-30, 0.3, 1.0])[:, None, None, None].repeat(1, 3, 1, 4)
    grey[:, :, 0, 1:] += torch.tensor([1e-12, 6e-8, -6e-8]) * torch.tensor([[1.0], [0.0], [2.0]])
    assert_near(shift_hue(grey, torch.tensor([0.5, -0.1, 0.3, 0.1])), grey, 1e-6)


# ---------------------------------------------------------------------------------------------- views


def test_images_are_normalised_by_the_published_constants():
    """SCE's released configurations; ImageNet's are those that torchvision's weights come with."""
    assert normalisation("cifar10") == ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
    assert normalisation("cifar100") == ((0.5071, 0.4865, 0.4409), (0.2009, 0.1984, 0.2023))
    assert normalisation("stl10") == ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616))
    usual = ResNet18_Weights.IMAGENET1K_V1.transforms()
    assert normalisation("imagenet") == normalisation("imagenet100") == (tuple(usual.mean), tuple(usual.std))


PLAIN, WHOLE = Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), {"scale": (1.0, 1.0), "ratio": (1.0, 1.0)}


@pytest.mark.parametrize(("view", "height", "width", "tolerance"), [
    *((View(size, PLAIN, scale=(0.02, 1.0)), height, width, 1e-6)
      for size, height, width in ((32, 32, 32), (32, 12, 40), (224, 375, 500), (1, 9, 7))),
    (View(16, PLAIN, **WHOLE, jitter=1.0), 16, 16, 2e-6),
    (View(16, PLAIN, **WHOLE, jitter=1.0, strength=(1.0, 1.0, 1.0, 0.5)), 16, 16, 5e-6),
    *((View(size, PLAIN, **WHOLE, blur=1.0), size, size, 2e-6) for size in (224, 32, 8, 1)),  # of 23 taps or fewer
    (strong(32, CIFAR10), 40, 36, 2e-5), (View(48, IMAGENET, blur=1.0, greyscale=1.0), 40, 36, 2e-5),
])
def test_a_view_is_the_operations_of_torchvision_one_after_the_other(view, height, width, tolerance):
    """Of crops also the whole picture, a corner and a line of it; colours in every order; of blurs also none."""
    images = pictures(24, height, width)
    draws = view.draw(24, height, width, generator(3))
    draws.boxes[:3] = torch.tensor([[0, 0, height, width], [height - 1, width - 1, 1, 1], [height // 2, 0, 1, width]])
    draws.order[:] = torch.tensor(list(itertools.permutations(range(4))))
    draws.sigma[:3] *= torch.tensor([0.0, 1e-4, 1.0])

    def reference(image, box, flip, factors, order, grey, sigma):
        image = functional.to_dtype(image, torch.float32, scale=True)
        image = jittered(cropped(image, box, flip, view.size), factors, order)
        image = blurred(functional.rgb_to_grayscale(image, 3) if grey else image, sigma)
        return functional.normalize(image, *map(list, view.normalisation))

    made, expected = view.apply(images, draws), each(reference, images, *draws)
    assert made.dtype == torch.float32
    assert_near(made, expected, tolerance)
    assert torch.equal(view.apply(as_float(images), draws), made)


def test_views_of_the_papers():
    """The supplement of SCE; for the probe that of JCL and torchvision's default."""
    for view in (strong(32, CIFAR10), weak(32, CIFAR10)):
        assert (view.size, view.normalisation, view.scale, view.ratio, view.flip) == (32, CIFAR10, (0.2, 1), RATIO, 0.5)
    chances = [(view.jitter, view.greyscale, view.blur) for view in (weak(32, CIFAR10), strong(32, CIFAR10))]
    assert chances == [(0, 0, 0), (0.8, 0.2, 0.5)]
    assert (strong(32, CIFAR10).strength, strong(32, CIFAR10).sigma) == ((0.4, 0.4, 0.4, 0.1), (0.1, 2.0))
    assert probe(224, IMAGENET) == View(224, IMAGENET, scale=(0.08, 1.0))


@pytest.mark.parametrize(("height", "width"), [(300, 401), (224, 224), (40, 30)])
@pytest.mark.parametrize("square", [False, True])
def test_a_centred_view_is_that_of_torchvision(height, width, square):
    images = pictures(2, height, width)
    resized = v2.Resize((256, 256) if square else 256)
    steps = [v2.ToDtype(torch.float32, scale=True), resized, v2.CenterCrop(224), v2.Normalize(*IMAGENET)]
    assert_near(CentredView(224, IMAGENET, resize=256, square=square)(images), v2.Compose(steps)(images), 1e-5)
    alike = CentredView(height, CIFAR10, resize=height)(images[..., :height])  # of its own size
    assert height > width or torch.equal(alike, normalise(as_float(images[..., :height]), CIFAR10))


@pytest.mark.parametrize("view", [strong(32, CIFAR10), ShiftedView(CIFAR10)])
def test_mixed_precision_around_a_view_changes_nothing(view):
    images = pictures()
    expected = view(images, generator=generator())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(view(images, generator=generator()), expected)


@pytest.mark.parametrize("value", [255.0, -0.1, math.nan, 1, True])
def test_what_is_neither_uint8_nor_in_its_range_is_refused(value):
    with pytest.raises(ValueError, match=r"images are torch\..* from .*; give floating point in \[0, 1\], or uint8"):
        CentredView(8, CIFAR10, resize=8)(torch.full((2, 3, 8, 8), value))


# ---------------------------------------------------------------------------------------------- random parameters


def assert_alike(ours, theirs):
    """The columns of (n, k) are samples of the same distributions, by Kolmogorov-Smirnov tests.

    These are conservative for whole numbers.
    """
    assert stats.ks_2samp(ours.numpy(), theirs.numpy()).pvalue.min() > 1e-3


def with_relations(top, left, height, width):
    """The sides of boxes and what joins them, (n, 8)."""
    relations = [height * width, width / height, top + height, left - 2 * top]
    return torch.stack([top, left, height, width, *relations], dim=1)


@pytest.mark.parametrize(
    ("height", "width", "scale"), [(32, 32, (0.2, 1.0)), (375, 500, (0.08, 1.0)), (30, 90, (0.1, 0.7))]
)
def test_boxes_are_distributed_as_those_of_torchvision(height, width, scale):
    torch.manual_seed(0)
    transform, image = v2.RandomResizedCrop(8, scale), torch.empty(3, height, width, device="meta")
    boxes = [transform.make_params([image]) for _ in range(2000)]
    theirs = torch.tensor([[box[side] for side in ("top", "left", "height", "width")] for box in boxes])
    ours = draw_boxes(20_000, height, width, scale=scale, ratio=RATIO, generator=generator(1))
    top, left, *lengths = ours.T
    assert min(top.min(), left.min()) >= 0 and (top + lengths[0] <= height).all() and (left + lengths[1] <= width).all()
    assert_alike(*(with_relations(*boxes.T) for boxes in (ours, theirs)))


@pytest.mark.parametrize(("height", "width"), [(8, 64), (64, 8), (1, 30)])
def test_boxes_that_never_fit_become_the_central_one_of_torchvision(height, width):
    params = v2.RandomResizedCrop(8, (0.9, 1.0)).make_params([torch.empty(3, height, width, device="meta")])
    expected = torch.tensor([params[side] for side in ("top", "left", "height", "width")])
    boxes = draw_boxes(50, height, width, scale=(0.9, 1.0), ratio=RATIO, generator=generator())
    assert torch.equal(boxes, expected.expand(50, 4))


def drawn(count, seed=0, **changes):
    """The parameters of a view of so many images."""
    return View(32, CIFAR10, **changes).draw(count, 32, 32, generator(seed))


def test_shifts_orders_and_sigmas_are_uniform():
    boxes, flipped = ShiftedView(CIFAR10).draw(20_000, 32, 32, generator())
    shifts = boxes[:, :2] + 4
    assert stats.binomtest(int(flipped.sum()), 20_000, 0.5).pvalue > 1e-3
    assert stats.chisquare(torch.bincount(9 * shifts[:, 0] + shifts[:, 1], minlength=81)).pvalue > 1e-3
    draws = drawn(24_000, blur=1.0)
    assert torch.equal(draws.order.sort(1).values, torch.arange(4).expand(24_000, 4))
    _, counts = draws.order.unique(dim=0, return_counts=True)
    assert len(counts) == 24 and stats.chisquare(counts).pvalue > 1e-3
    assert stats.kstest(draws.sigma, stats.uniform(0.1, 1.9).cdf).pvalue > 1e-3


def test_factors_are_distributed_as_those_of_torchvision():
    torch.manual_seed(0)
    names = ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")
    transform = v2.ColorJitter(0.4, 0.3, 0.2, 0.1)
    params = [transform.make_params([]) for _ in range(2000)]
    theirs = torch.tensor([[factors[name] for name in names] for factors in params])
    ours = drawn(20_000, 1, jitter=1.0, strength=(0.4, 0.3, 0.2, 0.1)).factors
    assert_alike(ours, theirs)
    assert (torch.corrcoef(ours.T) - torch.eye(4)).abs().max() < 5 / math.sqrt(20_000)


def test_operations_are_chosen_independently_by_their_probabilities():
    draws = drawn(40_000, flip=0.5, jitter=0.8, greyscale=0.2, blur=0.5)
    neutral = draws.factors == torch.tensor([1.0, 1.0, 1.0, 0.0])
    assert (neutral.all(1) == neutral.any(1)).float().mean() > 0.999
    applied = torch.stack([draws.flipped, ~neutral.all(1), draws.grey, draws.sigma > 0], dim=1)
    counts = torch.bincount((applied * torch.tensor([8, 4, 2, 1])).sum(1), minlength=16)
    expected = [
        40_000 * math.prod(p if with_it else 1 - p for p, with_it in zip((0.5, 0.8, 0.2, 0.5), cell, strict=True))
        for cell in itertools.product((0, 1), repeat=4)
    ]
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    for probability in (0.0, 1.0):
        draws = drawn(10_000, flip=probability, greyscale=probability)
        assert draws.flipped.float().mean() == draws.grey.float().mean() == probability
