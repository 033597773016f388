"""Views of images against torchvision's v2 operations, sample by sample, and draws against torchvision's transforms."""

import itertools
import math

import pytest
import torch
from PIL import Image, ImageFilter
from scipy import stats
from torch._subclasses import FakeTensorMode
from torchvision.models import ResNet18_Weights
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from repro.image.augment import (
    BRIGHTNESS,
    CONTRAST,
    HUE,
    IMAGENET,
    NORMALISATION,
    SATURATION,
    CentredView,
    Draws,
    ShiftedView,
    View,
    as_float,
    colour_jitter,
    draw_boxes,
    draw_chosen,
    draw_factors,
    draw_order,
    draw_shifts,
    draw_sigma,
    gaussian_blur,
    greyscale,
    normalise,
    probe,
    resized_crop,
    shift_hue,
    shifted_crop,
    strong,
    weak,
)

CIFAR10 = NORMALISATION["cifar10"]
RATIO = (3 / 4, 4 / 3)
ORDERS = torch.tensor(list(itertools.permutations(range(4))))
ADJUST = {
    BRIGHTNESS: functional.adjust_brightness,
    CONTRAST: functional.adjust_contrast,
    SATURATION: functional.adjust_saturation,
    HUE: functional.adjust_hue,
}


def test_images_are_normalised_by_the_published_constants():
    """SCE's released configurations; ImageNet's are those that torchvision's weights come with."""
    assert NORMALISATION["cifar10"] == ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
    assert NORMALISATION["cifar100"] == ((0.5071, 0.4865, 0.4409), (0.2009, 0.1984, 0.2023))
    assert NORMALISATION["stl10"] == ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616))
    usual = ResNet18_Weights.IMAGENET1K_V1.transforms()
    assert NORMALISATION["imagenet"] == NORMALISATION["imagenet100"] == (tuple(usual.mean), tuple(usual.std))


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


def sides(count, height, width):
    return torch.full((count,), height), torch.full((count,), width)


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


def test_resized_crop_by_hand():
    image = torch.tensor([[0.0, 0.5, 1.0, 0.25]]).expand(1, 3, 2, 4)
    box = torch.tensor([[0, 1, 2, 2]])  # the columns 0.5 and 1
    enlarged = resized_crop(image, box, torch.tensor([False]), 4)
    assert_near(enlarged, torch.tensor([0.5, 0.625, 0.875, 1.0]).expand(1, 3, 4, 4), 1e-7)
    mirrored = resized_crop(image, box, torch.tensor([True]), 4)
    assert_near(mirrored, torch.tensor([1.0, 0.875, 0.625, 0.5]).expand(1, 3, 4, 4), 1e-7)


def test_a_crop_of_everything_is_the_image():
    images = as_float(pictures(5))
    boxes, upright = torch.tensor([0, 0, 32, 32]).expand(5, 4), torch.zeros(5, dtype=torch.bool)
    assert torch.equal(resized_crop(images, boxes, upright, 32), images)
    assert torch.equal(resized_crop(images, boxes, ~upright, 32), images.flip(3))


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
    factors = draw_factors(96, 1.0, strength, generator(1))
    assert_near(colour_jitter(images, factors, order), each(jittered, images, factors, order), tolerance)


@pytest.mark.parametrize("operation", list(ADJUST))
@pytest.mark.parametrize("end", [0, 1])
def test_each_colour_operation_at_the_ends_of_its_range(operation, end):
    images = as_float(pictures(24, 16, 16))
    factors = torch.tensor([1.0, 1.0, 1.0, 0.0]).repeat(24, 1)
    factors[:, operation] = (-0.5, 0.5)[end] if operation == HUE else (0.0, 2.0)[end]
    changed = colour_jitter(images, factors, ORDERS)
    assert_near(changed, each(lambda image: ADJUST[operation](image, factors[0, operation].item()), images), 2e-6)
    assert not torch.allclose(changed, images, atol=1e-2)


def test_hue_is_that_of_torchvision_for_every_colour():
    level = torch.linspace(0, 1, 9)
    colours = torch.cartesian_prod(level, level, level).T.reshape(1, 3, 27, 27).repeat(41, 1, 1, 1)
    shift = torch.linspace(-0.5, 0.5, 41)
    expected = each(lambda image, turns: functional.adjust_hue(image, turns.item()), colours, shift)
    assert_near(shift_hue(colours, shift), expected, 2e-6)


def test_hue_turns_red_into_green_into_blue_by_thirds():
    red, green, blue = torch.eye(3)[:, :, None, None].unbind(0)
    third = torch.tensor([1 / 3])
    for colour, following in ((red, green), (green, blue), (blue, red)):
        assert_near(shift_hue(colour[None], third), following[None], 1e-6)
        assert_near(shift_hue(following[None], -third), colour[None], 1e-6)


def test_hue_of_almost_grey_pixels_is_finite_and_stays_almost_grey():
    grey = torch.tensor([0.0, 1e-30, 0.3, 1.0])[:, None, None, None].repeat(1, 3, 1, 4)
    grey[:, :, 0, 1:] += torch.tensor([1e-12, 6e-8, -6e-8]) * torch.tensor([[1.0], [0.0], [2.0]])
    assert_near(shift_hue(grey, torch.tensor([0.5, -0.1, 0.3, 0.1])), grey, 1e-6)


def test_neutral_parameters_leave_images_as_they_are():
    images = as_float(pictures(24))
    neutral = torch.tensor([1.0, 1.0, 1.0, 0.0]).repeat(24, 1)
    assert_near(colour_jitter(images, neutral, ORDERS), images, 1e-6)
    assert torch.equal(greyscale(images, torch.zeros(24, dtype=torch.bool)), images)
    assert torch.equal(gaussian_blur(images, torch.zeros(24)), images)


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


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_blur_is_about_that_of_pil_away_from_the_border(sigma):
    image = pictures(1, 64, 64)
    expected = Image.fromarray(image[0].permute(1, 2, 0).numpy()).filter(ImageFilter.GaussianBlur(sigma))
    difference = gaussian_blur(as_float(image), torch.tensor([sigma])) - functional.to_dtype(
        functional.pil_to_tensor(expected), torch.float32, scale=True
    )
    assert difference[:, :, 12:-12, 12:-12].square().mean().sqrt() < 2.5 / 255


def test_normalisation_is_that_of_torchvision():
    images = as_float(pictures())
    for each_of in NORMALISATION.values():
        assert torch.equal(normalise(images, each_of), functional.normalize(images, *map(list, each_of)))
    released = ResNet18_Weights.DEFAULT.transforms()
    assert (released.mean, released.std) == tuple(map(list, IMAGENET))


@pytest.mark.parametrize(
    "view", [strong(32, CIFAR10), weak(32, CIFAR10), probe(20, IMAGENET), View(48, IMAGENET, blur=1.0, greyscale=1.0)]
)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_a_view_is_the_operations_of_torchvision_one_after_the_other(view, dtype):
    images = pictures(32, 40, 36)
    draws = view.draw(*sides(32, 40, 36), generator(3))

    def reference(image, box, flip, factors, order, grey, sigma):
        image = functional.to_dtype(image, torch.float32, scale=True)
        image = cropped(image, box, flip, view.size)
        image = jittered(image, factors, order)
        image = blurred(functional.rgb_to_grayscale(image, 3) if grey else image, sigma)
        return functional.normalize(image, *map(list, view.normalisation))

    found = view(images if dtype == torch.uint8 else as_float(images), generator=generator(3))
    assert found.dtype == torch.float32
    assert_near(found, each(reference, images, *draws), 2e-5)


def test_views_of_the_recipes():
    for view in (strong(32, CIFAR10), weak(32, CIFAR10)):
        assert (view.size, view.normalisation, view.scale, view.ratio, view.flip) == (32, CIFAR10, (0.2, 1), RATIO, 0.5)
    assert (weak(32, CIFAR10).jitter, weak(32, CIFAR10).greyscale, weak(32, CIFAR10).blur) == (0, 0, 0)
    assert (strong(32, CIFAR10).jitter, strong(32, CIFAR10).greyscale, strong(32, CIFAR10).blur) == (0.8, 0.2, 0.5)
    assert (strong(32, CIFAR10).strength, strong(32, CIFAR10).sigma) == ((0.4, 0.4, 0.4, 0.1), (0.1, 2.0))
    assert probe(224, IMAGENET) == View(224, IMAGENET, scale=(0.08, 1.0))


def test_a_shifted_view_is_a_shifted_crop_normalised():
    images, draws = pictures(16), generator(5)
    shifts, flipped = draw_shifts(16, 4, draws), draw_chosen(16, 0.5, draws)
    expected = normalise(shifted_crop(as_float(images), shifts, flipped), CIFAR10)
    assert torch.equal(ShiftedView(CIFAR10)(images, generator=generator(5)), expected)
    still = ShiftedView(CIFAR10, padding=0, flip=0)(images, generator=generator())
    assert torch.equal(still, normalise(as_float(images), CIFAR10))


@pytest.mark.parametrize(("height", "width"), [(300, 401), (500, 333), (224, 224), (40, 30)])
def test_a_centred_view_is_that_of_torchvision(height, width):
    images = pictures(2, height, width)
    reference = v2.Compose([
        v2.ToDtype(torch.float32, scale=True), v2.Resize(256), v2.CenterCrop(224), v2.Normalize(*IMAGENET)
    ])
    assert_near(CentredView(224, IMAGENET, resize=256)(images), reference(images), 1e-5)


def test_a_centred_view_of_small_images_normalises_alone():
    images = pictures()
    assert torch.equal(CentredView(32, CIFAR10, resize=32)(images), normalise(as_float(images), CIFAR10))


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


def test_shifts_are_uniform():
    shifts = draw_shifts(20_000, 4, generator()) + 4
    assert stats.chisquare(torch.bincount(9 * shifts[:, 0] + shifts[:, 1], minlength=81)).pvalue > 1e-3


def test_factors_are_distributed_as_those_of_torchvision():
    torch.manual_seed(0)
    names = ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")
    transform = v2.ColorJitter(0.4, 0.3, 0.2, 0.1)
    drawn = [transform.make_params([]) for _ in range(2000)]
    theirs = torch.tensor([[each_of[name] for name in names] for each_of in drawn])
    ours = draw_factors(20_000, 1.0, (0.4, 0.3, 0.2, 0.1), generator(1))
    for first, second in zip(ours.T, theirs.T, strict=True):
        agree(first, second)
    assert (torch.corrcoef(ours.T) - torch.eye(4)).abs().max() < 5 / math.sqrt(20_000)


def test_factors_are_neutral_for_a_fifth_of_the_samples():
    factors = draw_factors(20_000, 0.8, (0.4, 0.4, 0.4, 0.1), generator())
    neutral = (factors == torch.tensor([1.0, 1.0, 1.0, 0.0])).all(1)
    assert stats.binomtest(neutral.sum().item(), 20_000, 0.2).pvalue > 1e-3
    assert (factors[~neutral] != torch.tensor([1.0, 1.0, 1.0, 0.0])).float().mean() > 0.999


def test_orders_are_uniform_over_all_permutations():
    orders = draw_order(24_000, generator())
    assert torch.equal(orders.sort(1).values, torch.arange(4).expand(24_000, 4))
    _, counts = orders.unique(dim=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


def test_sigma_is_uniform_for_half_of_the_samples():
    sigma = draw_sigma(20_000, 0.5, (0.1, 2.0), generator())
    assert stats.binomtest((sigma > 0).sum().item(), 20_000, 0.5).pvalue > 1e-3
    assert stats.kstest(sigma[sigma > 0], stats.uniform(0.1, 1.9).cdf).pvalue > 1e-3


@pytest.mark.parametrize(("probability", "chosen"), [(0.0, 0), (1.0, 10_000)])
def test_probabilities_zero_and_one(probability, chosen):
    assert draw_chosen(10_000, probability, generator()).sum() == chosen


def test_operations_of_a_view_are_chosen_independently():
    draws = strong(32, CIFAR10).draw(*sides(40_000, 32, 32), generator())
    chosen = torch.stack([draws.flipped, draws.factors[:, BRIGHTNESS] != 1, draws.grey, draws.sigma > 0], dim=1)
    found = torch.bincount((chosen * torch.tensor([8, 4, 2, 1])).sum(1), minlength=16)
    expected = [
        40_000 * math.prod(p if each_of else 1 - p for p, each_of in zip((0.5, 0.8, 0.2, 0.5), cell, strict=True))
        for cell in itertools.product((0, 1), repeat=4)
    ]
    assert stats.chisquare(found, expected).pvalue > 1e-3


def test_neighbouring_samples_are_drawn_independently():
    draws = strong(32, CIFAR10).draw(*sides(10_000, 32, 32), generator())
    for parameter in (draws.boxes[:, 0], draws.boxes[:, 3], draws.flipped, draws.factors[:, HUE], draws.order[:, 0]):
        pair = torch.stack([parameter[:-1], parameter[1:]]).float()
        assert torch.corrcoef(pair)[0, 1].abs() < 5 / math.sqrt(10_000)


def test_samples_of_a_batch_have_randomness_of_their_own():
    views = strong(32, CIFAR10)(pictures(1).repeat(16, 1, 1, 1), generator=generator())
    for first, second in itertools.combinations(views, 2):
        assert not torch.allclose(first, second, atol=1e-2)


def test_a_sample_does_not_depend_on_the_others_of_its_batch():
    images, view = pictures(12), strong(32, CIFAR10)
    draws = view.draw(*sides(12, 32, 32), generator())
    together = view.apply(images, draws)
    for index in range(12):
        alone = view.apply(images[index : index + 1], Draws(*(each_of[index : index + 1] for each_of in draws)))
        assert_near(alone[0], together[index], 1e-5)


def test_two_views_differ_and_equal_generators_repeat_them():
    images, view, draws = pictures(), strong(32, CIFAR10), generator()
    before = torch.get_rng_state()
    first, second = (view(images, generator=draws) for _ in range(2))
    assert not torch.equal(first, second)
    assert torch.equal(view(images, generator=generator()), first)
    assert torch.equal(torch.get_rng_state(), before)  # the global generator is left alone


def test_images_are_left_alone_in_any_layout():
    images = as_float(pictures())
    before = images.clone()
    plain, last = (
        strong(32, CIFAR10)(layout, generator=generator())
        for layout in (images, images.to(memory_format=torch.channels_last))
    )
    assert torch.equal(images, before)
    assert_near(plain, last, 1e-5)
    assert plain.is_contiguous()
    assert last.is_contiguous()


@pytest.mark.parametrize("view", [strong(32, CIFAR10), ShiftedView(CIFAR10)])
def test_mixed_precision_around_a_view_changes_nothing(view):
    images = pictures()
    expected = view(images, generator=generator())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(view(images, generator=generator()), expected)


def test_views_carry_no_gradient():
    images = as_float(pictures(2)).requires_grad_()
    for view in (strong(32, CIFAR10), ShiftedView(CIFAR10)):
        assert not view(images, generator=generator()).requires_grad
    assert not CentredView(32, CIFAR10, resize=32)(images).requires_grad


def test_nothing_waits_for_the_device():
    draws = generator()
    with FakeTensorMode():  # raises where a value is read or a shape depends on one
        images = torch.empty(4, 3, 40, 36, dtype=torch.uint8)
        assert strong(32, CIFAR10)(images, generator=draws).shape == (4, 3, 32, 32)
        assert ShiftedView(CIFAR10)(images, generator=draws).shape == (4, 3, 40, 36)
        assert CentredView(24, CIFAR10, resize=32)(images).shape == (4, 3, 24, 24)
        with pytest.raises(torch._subclasses.fake_tensor.DataDependentOutputException):
            images.max().item()


def test_a_view_stays_on_the_device_of_its_images():
    draws = strong(32, CIFAR10).draw(*sides(4, 40, 36), generator())
    with FakeTensorMode() as mode:  # raises where tensors of two devices meet
        on_cuda = Draws(*(mode.from_tensor(each_of).to("cuda") for each_of in draws))
        images = torch.empty(4, 3, 40, 36, dtype=torch.uint8, device="cuda")
        assert strong(32, CIFAR10).apply(images, on_cuda).device.type == "cuda"
        assert CentredView(24, CIFAR10, resize=32)(images).device.type == "cuda"


@pytest.mark.parametrize("shape", [(1, 3, 32, 32), (2, 3, 1, 1), (1, 3, 1, 50), (3, 3, 5, 2)])
@pytest.mark.parametrize("size", [1, 2, 33])
def test_few_or_tiny_images(shape, size):
    images = torch.randint(0, 256, shape, generator=generator(), dtype=torch.uint8)
    view = strong(size, CIFAR10)(images, generator=generator())
    assert view.shape == (shape[0], 3, size, size)
    assert view.isfinite().all()
    assert ShiftedView(CIFAR10)(images, generator=generator()).shape == shape


@pytest.mark.parametrize("level", [0.0, 0.2, 1.0])
def test_a_constant_image_stays_constant(level):
    views = strong(16, IMAGENET)(torch.full((64, 3, 20, 20), level), generator=generator())
    assert_near(views, views[:, :, :1, :1].expand_as(views), 2e-5)


def test_no_view_leaves_the_range_of_an_image():
    view = View(32, CIFAR10, jitter=1.0, strength=(1.0, 1.0, 1.0, 0.5), greyscale=0.2, blur=0.5, sigma=(0.01, 50.0))
    views = view(pictures(64), generator=generator())
    mean, std = (torch.tensor(each_of)[:, None, None] for each_of in CIFAR10)
    assert (views * std + mean).min() > -1e-5
    assert (views * std + mean).max() < 1 + 1e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_floating_point_becomes_float32(dtype):
    images = as_float(pictures()).to(dtype)
    view = strong(32, CIFAR10)(images, generator=generator())
    assert torch.equal(view, strong(32, CIFAR10)(images.float(), generator=generator()))


@pytest.mark.parametrize("shape", [(3, 32, 32), (2, 1, 32, 32), (2, 32, 32, 3), (0, 3, 32, 32), (2, 3, 0, 32)])
def test_images_of_other_shapes_raise(shape):
    for view in (strong(32, CIFAR10), ShiftedView(CIFAR10)):
        with pytest.raises(ValueError, match=rf"images have shape \({shape[0]}, .*should be \(N, 3, H, W\)"):
            view(torch.zeros(shape), generator=generator())
    with pytest.raises(ValueError, match=r"images have shape"):
        CentredView(32, CIFAR10, resize=32)(torch.zeros(shape))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.int8])
def test_images_of_other_types_raise(dtype):
    for view in (strong(32, CIFAR10), ShiftedView(CIFAR10)):
        with pytest.raises(TypeError, match=rf"images are {dtype}; give uint8"):
            view(torch.zeros(2, 3, 8, 8, dtype=dtype), generator=generator())


def test_a_generator_of_another_device_raises():
    for view in (strong(32, CIFAR10), ShiftedView(CIFAR10)):
        with pytest.raises(ValueError, match=r"generator is on cpu and the images on meta; make it with"):
            view(torch.zeros(2, 3, 8, 8, device="meta"), generator=generator())


@pytest.mark.parametrize(
    "change",
    [
        {"size": 0}, {"scale": (0.0, 1.0)}, {"scale": (0.5, 0.2)}, {"scale": (0.5, 1.5)}, {"ratio": (1.2, 2.0)},
        {"ratio": (0.0, 1.0)}, {"flip": 1.5}, {"jitter": -0.1}, {"greyscale": 2}, {"blur": math.nan},
        {"strength": (0.4, 0.4, 0.4, 0.6)}, {"strength": (1.1, 0.4, 0.4, 0.1)}, {"sigma": (0.0, 2.0)},
        {"sigma": (2.0, 0.1)},
    ],
)
def test_impossible_views_raise(change):
    (name,) = change
    with pytest.raises(ValueError, match=rf"^{name}="):
        View(**{"size": 32, "normalisation": CIFAR10} | change)


def test_other_impossible_views_raise():
    with pytest.raises(ValueError, match="padding=-1 should be at least 0"):
        ShiftedView(CIFAR10, padding=-1)
    with pytest.raises(ValueError, match=r"flip=1\.1 should be a probability"):
        ShiftedView(CIFAR10, flip=1.1)
    with pytest.raises(ValueError, match="resize=200 should be at least size=224"):
        CentredView(224, IMAGENET, resize=200)
    with pytest.raises(ValueError, match="size=0"):
        CentredView(0, IMAGENET, resize=256)
