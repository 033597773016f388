"""Pictures to change, and torchvision's operations on one of them at a time."""

import torch
from torchvision.transforms.v2 import functional

from repro.image.augment import normalisation
from repro.image.operations import BRIGHTNESS, CONTRAST, HUE, SATURATION

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


def sides(count, height, width):
    return torch.full((count,), height), torch.full((count,), width)
