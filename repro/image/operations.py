"""What views do to images (N, 3, H, W) in [0, 1], for a whole batch at once, with parameters for every sample.

On every sample an operation equals torchvision's v2 operation in float32 with the same parameters. No pixel differs by
more than 1e-6 after a crop, 2e-6 after colour jitter of the papers' strength, a change of hue or a blur, 0 after
greyscale, shift and normalisation, and 2e-5 after a whole view, which divides by the standard deviation. Nothing is
rounded to 256 levels between operations, as it is where they work on uint8.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)  # columns of the factors of colour jitter, and names in its order
KERNEL_SIZE = 23


class Normalisation(NamedTuple):
    """Mean and standard deviation of red, green and blue in [0, 1]."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


def as_float(images: Tensor) -> Tensor:
    """Images as float32 in [0, 1], of uint8 or of floating point in [0, 1]."""
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def resized_crop(images: Tensor, boxes: Tensor, flipped: Tensor, sides: Sequence[int]) -> Tensor:
    """The boxes of images (N, C, H, W), resized by antialiased bilinear interpolation: (N, C, *sides).

    Args:
        boxes: (N, 4) top, left, height, width in pixels. Black is what of a box lies outside the image; at its edge the
            image is not mixed with it, but cut off.
        flipped: (N,) bool: mirrored left to right.
        sides: height and width of what the boxes become.
    """
    top, left, height, width = boxes.unbind(1)
    upright = torch.zeros_like(flipped)
    rows = _interpolation(top, height, images.shape[2], _places(sides[0], upright))
    columns = _interpolation(left, width, images.shape[3], _places(sides[1], flipped))
    return _separable(images, rows, columns)


def colour_jitter(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Brightness, contrast, saturation and hue of images (N, 3, H, W) changed, in each sample's own order.

    Brightness, contrast and saturation all blend the image with a reference: black, its mean grey, its grey. Hence
    three blends before the change of hue, and three after it, hold every order; of the six, a sample's own three
    have its factors, the others the neutral one.

    Args:
        factors: (N, 4) as `augment.Draws` has them.
        order: (N, 4) permutations of `BRIGHTNESS, CONTRAST, SATURATION, HUE`.
    """
    step = torch.arange(4, device=order.device)
    before = step < (order == HUE).byte().argmax(1, keepdim=True)
    factor = factors.gather(1, order)
    images = _blends(images, order[:, :3], torch.where(before, factor, 1)[:, :3])
    images = shift_hue(images, factors[:, HUE])
    return _blends(images, order[:, 1:], torch.where(before | (order == HUE), 1, factor)[:, 1:])


def shift_hue(images: Tensor, shift: Tensor) -> Tensor:
    """Hue of images (N, 3, H, W) turned by `shift` (N,) turns, positive from red towards green.

    On the circle of hues, red, green and blue stand a third of a turn apart. A channel is at its largest up to a sixth
    of a turn from its place, at its smallest from two sixths on, and linear in between. So for every colour

        distance from red = 1/6 + (green + blue - red - least) / (6 (largest - least)),

    on the side of green or blue, whichever is larger; and after the turn the same rule gives the channels back.
    """
    red, green, blue = images.unbind(1)
    least = images.amin(1)
    chroma = images.amax(1) - least
    distance = (1 + (green + blue - red - least) / chroma.clamp(min=1e-8)) / 6  # grey may have any hue
    hue = torch.copysign(distance, green - blue) + shift[:, None, None]
    away = hue.unsqueeze(1) - (torch.arange(3, device=images.device) / 3)[:, None, None]
    away = away.sub_(away.round()).abs_()
    return away.mul_(-6).add_(2).clamp_(0, 1).mul_(chroma.unsqueeze(1)).add_(least.unsqueeze(1))


def greyscale(images: Tensor, marked: Tensor) -> Tensor:
    """Images (N, 3, H, W), those of them that are `marked` (N,) with the luminance in every channel."""
    return torch.lerp(images, _luminance(images), marked.float()[:, None, None, None])


def gaussian_blur(images: Tensor, sigma: Tensor) -> Tensor:
    """Images (N, C, H, W) under a Gaussian of standard deviation `sigma` (N,) in pixels, reflected at the borders.

    The kernel has 23 pixels a side, as is usual for MoCo v2 at 224 pixels, for images of any size from 12 pixels on:
    it reaches 5.5 times the papers' largest sigma of 2. Smaller images take what reflection allows, 2 size - 1. The
    papers use the blur of PIL, boxes in its place: on noise the two differ, root mean square over sigmas from 0.1 to 2,
    by 5.5 levels of 255 at 32 pixels and 4.5 at 224; most at sigmas from 0.2 to 0.4, by 6 to 12.
    """
    rows, columns = (_blur(sigma, side) for side in images.shape[2:])
    return _separable(images, rows, columns)


def normalise(images: Tensor, normalisation: Normalisation) -> Tensor:
    """Images (N, 3, H, W) less the mean of each channel, divided by its standard deviation."""
    channels = zip(images.unbind(1), *normalisation, strict=True)
    return torch.stack([(channel - mean) / std for channel, mean, std in channels], dim=1)


def _separable(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Every channel of (N, C, H, W) times (N, h, H) from the left and (N, w, W) transposed from the right.

    Rows come first in memory in between, so that the channels of a sample share its matrices without a copy of them.
    """
    count, channels, _, width = images.shape
    with torch.autocast(images.device.type, enabled=False):  # images keep their precision in mixed-precision training
        lines = rows @ images.transpose(1, 2).flatten(2)                                    # (N, h, C W)
        lines = lines.reshape(count, -1, width) @ columns.transpose(1, 2)                   # (N, h C, w)
    return lines.unflatten(1, (-1, channels)).transpose(1, 2).contiguous()


def _places(size: int, reverse: Tensor) -> Tensor:
    """(N, size) numbers 0 to size - 1, from the last to the first where `reverse` (N,) says so."""
    place = torch.arange(size, device=reverse.device)
    return torch.where(reverse.unsqueeze(1), size - 1 - place, place)


def _interpolation(start: Tensor, length: Tensor, extent: int, places: Tensor) -> Tensor:
    """Matrices (N, size, extent) of antialiased bilinear interpolation of `length` pixels from `start` on, both (N,).

    Row i computes the output pixel `places[:, i]` (N, size). It weighs the pixels around its centre by a triangle that
    falls to 0 at a distance of one pixel, or, where the image shrinks, of one output pixel.
    """
    pixel = torch.arange(extent, device=start.device) - start.unsqueeze(1)                  # (N, extent)
    inside = (pixel >= 0) & (pixel < length.unsqueeze(1))
    scale = length.unsqueeze(1) / places.shape[1]
    centre = (places + 0.5) * scale                                                         # (N, size)
    distance = ((pixel + 0.5).unsqueeze(1) - centre.unsqueeze(2)).abs_() / scale.clamp(min=1).unsqueeze(2)
    weights = (1 - distance).clamp_(min=0) * inside.unsqueeze(1)
    return weights / weights.sum(2, keepdim=True).clamp_(min=1e-8)  # 0 where no pixel of the image is near


def _blur(sigma: Tensor, extent: int) -> Tensor:
    """Matrices (N, extent, extent) of convolution with a Gaussian of `sigma` (N,), reflected at the borders."""
    reach = min(KERNEL_SIZE // 2, extent - 1)
    tap = torch.arange(-reach, reach + 1, device=sigma.device)
    # A sigma of 0 gives all the weight to the centre.
    weights = (-((tap / sigma.clamp(min=1e-3).unsqueeze(1)) ** 2) / 2).softmax(1)           # (N, taps)
    pixel = torch.arange(extent, device=sigma.device)
    source = (pixel.unsqueeze(1) + tap).abs()                                               # (extent, taps)
    source = torch.minimum(source, 2 * (extent - 1) - source)
    landed = source.unsqueeze(2) == pixel                                                   # (extent, taps, extent)
    with torch.autocast(sigma.device.type, enabled=False):
        return torch.einsum("nt,itj->nij", weights, landed.float())


def _blends(images: Tensor, operations: Tensor, factors: Tensor) -> Tensor:
    """Steps of brightness, contrast or saturation: operations (N, steps) by factors (N, steps), clamped to [0, 1]."""
    for operation, factor in zip(operations.unbind(1), factors.unbind(1), strict=True):
        operation, factor = operation[:, None, None, None], factor[:, None, None, None]
        grey = _luminance(images)
        mean = grey.mean((2, 3), keepdim=True)
        reference = torch.addcmul((operation == CONTRAST) * mean, operation == SATURATION, grey)
        images = torch.lerp(reference, images, factor).clamp_(0, 1)
    return images


def _luminance(images: Tensor) -> Tensor:
    """(N, 3, H, W) -> (N, 1, H, W), by the weights of ITU-R 601-2 as torchvision rounds them."""
    red, green, blue = images.split(1, dim=1)
    return (0.2989 * red).add_(green, alpha=0.587).add_(blue, alpha=0.114)
