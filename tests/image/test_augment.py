"""Views of images: the operations one after the other, randomness of each sample's own, and what is refused."""

import math

import pytest
import torch
from slow_operations import CIFAR10, IMAGENET, RATIO, assert_near, blurred, cropped, each, generator, jittered, pictures
from torch._subclasses import FakeTensorMode
from torchvision.models import ResNet18_Weights
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from repro.image.augment import CentredView, ShiftedView, View, normalisation, probe, strong, weak
from repro.image.operations import as_float, normalise, shifted_crop


def test_images_are_normalised_by_the_published_constants():
    """SCE's released configurations; ImageNet's are those that torchvision's weights come with."""
    assert normalisation("cifar10") == ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
    assert normalisation("cifar100") == ((0.5071, 0.4865, 0.4409), (0.2009, 0.1984, 0.2023))
    assert normalisation("stl10") == ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616))
    usual = ResNet18_Weights.IMAGENET1K_V1.transforms()
    assert normalisation("imagenet") == normalisation("imagenet100") == (tuple(usual.mean), tuple(usual.std))


@pytest.mark.parametrize(
    "view", [strong(32, CIFAR10), weak(32, CIFAR10), probe(20, IMAGENET), View(48, IMAGENET, blur=1.0, greyscale=1.0)]
)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_a_view_is_the_operations_of_torchvision_one_after_the_other(view, dtype):
    images = pictures(32, 40, 36)
    draws = view.draw(32, 40, 36, generator(3))

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
    images = pictures(16)
    draws = ShiftedView(CIFAR10).draw(16, 32, 32, generator(5))
    expected = normalise(shifted_crop(as_float(images), *draws), CIFAR10)
    assert torch.equal(ShiftedView(CIFAR10)(images, generator=generator(5)), expected)
    still = ShiftedView(CIFAR10, padding=0, flip=0)(images, generator=generator())
    assert torch.equal(still, normalise(as_float(images), CIFAR10))


@pytest.mark.parametrize(("height", "width"), [(300, 401), (500, 333), (224, 224), (40, 30)])
@pytest.mark.parametrize("square", [False, True])
def test_a_centred_view_is_that_of_torchvision(height, width, square):
    images = pictures(2, height, width)
    resized = v2.Resize((256, 256) if square else 256)
    reference = v2.Compose([
        v2.ToDtype(torch.float32, scale=True), resized, v2.CenterCrop(224), v2.Normalize(*IMAGENET)
    ])
    assert_near(CentredView(224, IMAGENET, resize=256, square=square)(images), reference(images), 1e-5)


def test_a_centred_view_of_small_images_normalises_alone():
    images = pictures()
    assert torch.equal(CentredView(32, CIFAR10, resize=32)(images), normalise(as_float(images), CIFAR10))


@pytest.mark.parametrize("view", [strong(32, CIFAR10), ShiftedView(CIFAR10)])
def test_mixed_precision_around_a_view_changes_nothing(view):
    images = pictures()
    expected = view(images, generator=generator())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(view(images, generator=generator()), expected)


def test_nothing_waits_for_the_device():
    draws = generator()
    with FakeTensorMode():  # raises where a value is read or a shape depends on one
        images = torch.empty(4, 3, 40, 36, dtype=torch.uint8)
        assert strong(32, CIFAR10)(images, generator=draws).shape == (4, 3, 32, 32)
        assert ShiftedView(CIFAR10)(images, generator=draws).shape == (4, 3, 40, 36)
        assert CentredView(24, CIFAR10, resize=32)(images).shape == (4, 3, 24, 24)
        with pytest.raises(torch._subclasses.fake_tensor.DataDependentOutputException):
            images.max().item()


@pytest.mark.parametrize("shape", [(1, 3, 32, 32), (2, 3, 1, 1), (1, 3, 1, 50), (3, 3, 5, 2)])
@pytest.mark.parametrize("size", [1, 2, 33])
def test_few_or_tiny_images(shape, size):
    images = torch.randint(0, 256, shape, generator=generator(), dtype=torch.uint8)
    view = strong(size, CIFAR10)(images, generator=generator())
    assert view.shape == (shape[0], 3, size, size)
    assert view.isfinite().all()
    assert ShiftedView(CIFAR10)(images, generator=generator()).shape == shape


@pytest.mark.parametrize("shape", [(3, 32, 32), (2, 1, 32, 32), (2, 32, 32, 3), (0, 3, 32, 32), (2, 3, 0, 32)])
def test_images_of_other_shapes_raise(shape):
    for view in (strong(32, CIFAR10), ShiftedView(CIFAR10)):
        with pytest.raises(ValueError, match=rf"images have shape \({shape[0]}, .*should be \(N, 3, H, W\)"):
            view(torch.zeros(shape), generator=generator())
    with pytest.raises(ValueError, match=r"images have shape"):
        CentredView(32, CIFAR10, resize=32)(torch.zeros(shape))


@pytest.mark.parametrize("images", [torch.full((2, 3, 8, 8), 255.0), torch.full((2, 3, 8, 8), -0.1),
                                    torch.full((2, 3, 8, 8), math.nan)], ids=["255", "-0.1", "nan"])
def test_floating_point_outside_of_its_range_raises(images):
    with pytest.raises(ValueError, match=r"images run from .*; give floating point in \[0, 1\], or uint8"):
        CentredView(8, CIFAR10, resize=8)(images)


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
