"""Views of images, for a whole batch at once on its device, with randomness of each sample's own.

Functions `draw_...` draw parameters per sample from a generator; the others apply them to images (N, 3, H, W) in
[0, 1]. A parameter has a neutral value that leaves its sample as it is (factor 1, shift 0, sigma 0), so that an
operation with a probability is applied to the whole batch: shapes depend on no draw, and nothing waits for the device.

On every sample an operation equals torchvision's v2 operation in float32 with the same parameters. No pixel differs by
more than 1e-6 after a crop, 2e-6 after colour jitter of the papers' strength, a change of hue or a blur, 0 after
greyscale, shift and normalisation, and 2e-5 after a whole view, which divides by the standard deviation. Nothing is
rounded to 256 levels between operations, as it is where they work on uint8.

Source: SCE supplement, implementation details; JCL supplement, ablation settings; Chen et al. 2020 (MoCo v2).
"""

import dataclasses
import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import interpolate

BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)  # columns of the factors of colour jitter, and names in its order
KERNEL_SIZE = 23


class Normalisation(NamedTuple):
    """Mean and standard deviation of red, green and blue in [0, 1]."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
NORMALISATION = {  # by data set; released SCE code, and torchvision's for ImageNet; assumed for the last two
    "cifar10": Normalisation((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": Normalisation((0.5071, 0.4865, 0.4409), (0.2009, 0.1984, 0.2023)),
    "stl10": Normalisation((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)),
    "imagenet100": IMAGENET,
    "imagenet": IMAGENET,
    "tiny_imagenet": IMAGENET,
    "digits": Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}


class Draws(NamedTuple):
    """The random parameters of a view of N images, on the generator's device."""

    boxes: Tensor    # (N, 4) int64: top, left, height, width of the crop in pixels
    flipped: Tensor  # (N,) bool
    factors: Tensor  # (N, 4): brightness, contrast, saturation, shift of hue in turns; neutral at 1, 1, 1, 0
    order: Tensor    # (N, 4) int64: the four operations of colour jitter, the first to be applied first
    grey: Tensor     # (N,) bool
    sigma: Tensor    # (N,) of the blur in pixels; neutral at 0


class Shifts(NamedTuple):
    """The random parameters of a shifted view of N images, on the generator's device."""

    shifts: Tensor   # (N, 2) int64: down and right, in pixels
    flipped: Tensor  # (N,) bool


@dataclasses.dataclass(frozen=True)
class View:
    """Random resized crop and flip, then colour jitter, greyscale and blur by their probabilities, then normalisation.

    `strong` and `weak` make the papers' two.

    Attributes:
        size: pixels of a side of the view.
        normalisation: mean and standard deviation to normalise by.
        scale: least and largest share of the image's area that a crop has.
        ratio: least and largest width over height of a crop, around 1.
        flip, jitter, greyscale, blur: probabilities in [0, 1].
        strength: largest change of brightness, contrast and saturation as factors around 1, and of hue in turns.
        sigma: least and largest standard deviation of the blur, in pixels of the view.

    Raises:
        ValueError: if an attribute is outside its range.
    """

    size: int
    normalisation: Normalisation
    scale: tuple[float, float] = (0.2, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    jitter: float = 0.0
    strength: tuple[float, float, float, float] = (0.4, 0.4, 0.4, 0.1)
    greyscale: float = 0.0
    blur: float = 0.0
    sigma: tuple[float, float] = (0.1, 2.0)

    def __post_init__(self) -> None:
        _check_size(self.size)
        _check_probabilities(flip=self.flip, jitter=self.jitter, greyscale=self.greyscale, blur=self.blur)
        if not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise ValueError(f"scale={self.scale} should be two shares of the area, 0 < least <= largest <= 1")
        if not 0 < self.ratio[0] <= 1 <= self.ratio[1] < math.inf:
            raise ValueError(f"ratio={self.ratio} should be two ratios around 1, such as (3 / 4, 4 / 3)")
        if not (all(0 <= change <= 1 for change in self.strength[:HUE]) and 0 <= self.strength[HUE] <= 0.5):
            raise ValueError(f"strength={self.strength} should be three changes of 0 to 1 and one of hue, 0 to 0.5")
        if not 0 < self.sigma[0] <= self.sigma[1] < math.inf:
            raise ValueError(f"sigma={self.sigma} should be two widths in pixels, 0 < least <= largest")

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """An independent view of every image.

        Args:
            images: (N, 3, H, W), uint8 or floating point in [0, 1].
            generator: on the device of the images.

        Returns:
            (N, 3, size, size) float32, normalised.

        Raises:
            TypeError: if the images are neither uint8 nor floating point.
            ValueError: if the images have another shape, or the generator is on another device.
        """
        _check_images(images, generator)
        heights, widths = (torch.full((len(images),), side, device=images.device) for side in images.shape[2:])
        return self.apply(images, self.draw(heights, widths, generator))

    def draw(self, heights: Tensor, widths: Tensor, generator: torch.Generator) -> Draws:
        """Parameters of one view of each of N images, of sizes (N,) of their own in pixels."""
        count = len(heights)
        return Draws(
            boxes=draw_boxes(heights, widths, scale=self.scale, ratio=self.ratio, generator=generator),
            flipped=draw_chosen(count, self.flip, generator),
            factors=draw_factors(count, self.jitter, self.strength, generator),
            order=draw_order(count, generator),
            grey=draw_chosen(count, self.greyscale, generator),
            sigma=draw_sigma(count, self.blur, self.sigma, generator),
        )

    @torch.no_grad()
    def apply(self, images: Tensor, draws: Draws) -> Tensor:
        """The view of images (N, 3, H, W) that the draws describe: (N, 3, size, size) float32, normalised."""
        view = resized_crop(as_float(images), draws.boxes, draws.flipped, self.size)
        if self.jitter > 0:
            view = colour_jitter(view, draws.factors, draws.order)
        if self.greyscale > 0:
            view = greyscale(view, draws.grey)
        if self.blur > 0:
            view = gaussian_blur(view, draws.sigma)
        return normalise(view, self.normalisation)


def strong(size: int, normalisation: Normalisation) -> View:
    """SCE's strong view, which is also the view of MoCo v2 and JCL (at 224 pixels)."""
    return View(size, normalisation, jitter=0.8, greyscale=0.2, blur=0.5)


def weak(size: int, normalisation: Normalisation) -> View:
    """SCE's weak view: the random resized crop and the flip of the strong one alone."""
    return View(size, normalisation)


def probe(size: int, normalisation: Normalisation) -> View:
    """What linear evaluation on ImageNet trains on (JCL, at 224 pixels): a crop of 8 % of the area or more, and flip.

    Small images take a `ShiftedView`. The share is torchvision's default, as in the released code of MoCo v2.
    """
    return View(size, normalisation, scale=(0.08, 1.0))


@dataclasses.dataclass(frozen=True)
class ShiftedView:
    """Random crop of the image padded with black, and flip: what linear evaluation on small images trains on (SCE).

    Attributes:
        normalisation: mean and standard deviation to normalise by.
        padding: pixels on every side, at least 0.
        flip: probability in [0, 1].

    Raises:
        ValueError: if an attribute is outside its range.
    """

    normalisation: Normalisation
    padding: int = 4
    flip: float = 0.5

    def __post_init__(self) -> None:
        _check_probabilities(flip=self.flip)
        if self.padding < 0:
            raise ValueError(f"padding={self.padding} should be at least 0 pixels")

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """An independent view of every image, of its own size: (N, 3, H, W) float32, normalised. See `View`."""
        _check_images(images, generator)
        heights, widths = (torch.full((len(images),), side, device=images.device) for side in images.shape[2:])
        return self.apply(images, self.draw(heights, widths, generator))

    def draw(self, heights: Tensor, widths: Tensor, generator: torch.Generator) -> Shifts:
        """Parameters of one view of each of N images, whose sizes (N,) do not matter."""
        count = len(heights)
        return Shifts(draw_shifts(count, self.padding, generator), draw_chosen(count, self.flip, generator))

    @torch.no_grad()
    def apply(self, images: Tensor, draws: Shifts) -> Tensor:
        """The view of images (N, 3, H, W) that the draws describe: (N, 3, H, W) float32, normalised."""
        return normalise(shifted_crop(as_float(images), draws.shifts, draws.flipped), self.normalisation)


@dataclasses.dataclass(frozen=True)
class CentredView:
    """Resizing of the shorter side, then a central crop: what linear evaluation tests on, without randomness.

    Attributes:
        size: pixels of a side of the view.
        normalisation: mean and standard deviation to normalise by.
        resize: pixels of the shorter side before the crop, at least `size` (JCL 256 for 224; SCE on small images the
            size itself, at which an image of that size stays as it is).

    Raises:
        ValueError: if an attribute is outside its range.
    """

    size: int
    normalisation: Normalisation
    resize: int

    def __post_init__(self) -> None:
        _check_size(self.size)
        if self.resize < self.size:
            raise ValueError(f"resize={self.resize} should be at least size={self.size}; the papers use 256 for 224")

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """The view of every image (N, 3, H, W): (N, 3, size, size) float32, normalised. See `View`."""
        _check_images(images)
        sides = [self.resize * side // min(images.shape[2:]) for side in images.shape[2:]]
        resized = interpolate(as_float(images), sides, mode="bilinear", antialias=True)
        top, left = (round((side - self.size) / 2) for side in sides)
        return normalise(resized[:, :, top : top + self.size, left : left + self.size], self.normalisation)


def draw_boxes(
    heights: Tensor,
    widths: Tensor,
    *,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    generator: torch.Generator,
) -> Tensor:
    """Crops of random area and aspect ratio, anywhere in images of the given sizes.

    Of ten candidates, whose area is uniform and whose ratio log-uniform, the first that fits into the image; else the
    largest central crop whose ratio is allowed.

    Args:
        heights, widths: (N,) pixels of the images, on the device of the generator.
        scale: least and largest share of the image's area.
        ratio: least and largest width over height.
        generator: on the device of the sizes.

    Returns:
        (N, 4) int64: top, left, height, width.

    Source: Szegedy et al. 2015 as torchvision's `RandomResizedCrop` has it.
    """
    attempts, count = 10, len(heights)
    sides = torch.stack([heights, widths])                                                  # (2, N)
    area = heights * widths * _uniform(attempts, count, bounds=scale, generator=generator)  # (attempts, N)
    logarithms = (math.log(ratio[0]), math.log(ratio[1]))
    log_ratio = _uniform(attempts, count, bounds=logarithms, generator=generator)
    boxes = (area.unsqueeze(1) * torch.stack([-log_ratio, log_ratio], dim=1).exp()).sqrt().round()
    fits = ((boxes >= 1) & (boxes <= sides)).all(1)                                         # (attempts, N)
    central = torch.minimum(sides, torch.stack([widths / ratio[0], heights * ratio[1]]).round())
    boxes = torch.cat([boxes, central.unsqueeze(0)])                                        # (attempts + 1, 2, N)
    first = torch.cat([fits, torch.ones_like(fits[:1])]).byte().argmax(0)                   # (N,)
    box = boxes.gather(0, first.expand(1, 2, count)).squeeze(0)
    room = sides - box
    place = _uniform(2, count, bounds=(0, 1), generator=generator)
    corner = torch.where(first < attempts, place * (room + 1), room / 2).floor()
    return torch.cat([corner, box]).T.long()


def draw_shifts(count: int, padding: int, generator: torch.Generator) -> Tensor:
    """(count, 2) int64: how far a crop lies below and to the right of its image, uniform in -padding to padding."""
    return torch.randint(-padding, padding + 1, (count, 2), generator=generator, device=generator.device)


def draw_chosen(count: int, probability: float, generator: torch.Generator) -> Tensor:
    """(count,) bool: True with the given probability."""
    return _uniform(count, bounds=(0, 1), generator=generator) < probability


def draw_factors(
    count: int, probability: float, strength: tuple[float, float, float, float], generator: torch.Generator
) -> Tensor:
    """Factors of colour jitter, uniform within the strength of each operation; neutral for samples not chosen.

    Returns:
        (count, 4): brightness, contrast and saturation around 1, shift of hue in turns around 0.
    """
    changes = [_uniform(count, bounds=(-change, change), generator=generator) for change in strength]
    chosen = draw_chosen(count, probability, generator)
    factors = torch.stack(changes, dim=1) * chosen.unsqueeze(1)
    factors[:, :HUE] += 1
    return factors


def draw_order(count: int, generator: torch.Generator) -> Tensor:
    """(count, 4) int64: the operations of colour jitter in an order uniform over all 24."""
    return _uniform(count, 4, bounds=(0, 1), generator=generator).argsort(1)


def draw_sigma(count: int, probability: float, sigma: tuple[float, float], generator: torch.Generator) -> Tensor:
    """(count,) standard deviations of a blur, uniform between the two given; 0 for samples not chosen."""
    return _uniform(count, bounds=sigma, generator=generator) * draw_chosen(count, probability, generator)


def as_float(images: Tensor) -> Tensor:
    """Images as float32 in [0, 1], of uint8 or of floating point in [0, 1]."""
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def resized_crop(images: Tensor, boxes: Tensor, flipped: Tensor, size: int) -> Tensor:
    """The boxes of images (N, C, H, W), resized by antialiased bilinear interpolation: (N, C, size, size).

    Args:
        boxes: (N, 4) top, left, height, width in pixels, inside the image.
        flipped: (N,) bool: mirrored left to right.
    """
    top, left, height, width = boxes.unbind(1)
    upright = torch.zeros_like(flipped)
    rows = _interpolation(top, height, images.shape[2], _places(size, upright))
    columns = _interpolation(left, width, images.shape[3], _places(size, flipped))
    return _separable(images, rows, columns)


def shifted_crop(images: Tensor, shifts: Tensor, flipped: Tensor) -> Tensor:
    """Images (N, C, H, W) moved up and left by `shifts` (N, 2) pixels, black where nothing is left, then mirrored."""
    height, width = images.shape[2:]
    rows = _places(height, torch.zeros_like(flipped)) + shifts[:, :1]                       # (N, H) pixels shown
    columns = _places(width, flipped) + shifts[:, 1:]                                       # (N, W)
    return _separable(images, _selection(rows, height), _selection(columns, width))


def colour_jitter(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Brightness, contrast, saturation and hue of images (N, 3, H, W) changed, in each sample's own order.

    Brightness, contrast and saturation all blend the image with a reference: black, its mean grey, its grey. Hence
    three blends before the change of hue, and three after it, hold every order; of the six, a sample's own three
    have its factors, the others the neutral one.

    Args:
        factors: (N, 4) as `draw_factors` gives them.
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


def greyscale(images: Tensor, chosen: Tensor) -> Tensor:
    """Images (N, 3, H, W), those marked in `chosen` (N,) with the luminance in every channel."""
    return torch.lerp(images, _luminance(images), chosen.float()[:, None, None, None])


def gaussian_blur(images: Tensor, sigma: Tensor) -> Tensor:
    """Images (N, C, H, W) under a Gaussian of standard deviation `sigma` (N,) in pixels, reflected at the borders.

    The kernel has 23 pixels a side, as is usual for MoCo v2 at 224 pixels, for images of any size from 12 pixels on:
    it reaches 5.5 times the papers' largest sigma of 2 and holds the Gaussian whole, as the blur of PIL does that the
    papers use. (Inside an image of noise the two differ by one level of 255, root mean square. SimCLR's rule, a tenth
    of the image, gives 3 pixels at 32, and at a sigma of 2 a difference of 19 levels.) Smaller images take the largest
    kernel that reflection allows, 2 size - 1. The size of the kernel costs no time: rows and columns are multiplied by
    one matrix per sample, borders included.
    """
    rows, columns = (_blur(sigma, side) for side in images.shape[2:])
    return _separable(images, rows, columns)


def normalise(images: Tensor, normalisation: Normalisation) -> Tensor:
    """Images (N, 3, H, W) less the mean of each channel, divided by its standard deviation."""
    channels = zip(images.unbind(1), *normalisation, strict=True)
    return torch.stack([(channel - mean) / std for channel, mean, std in channels], dim=1)


def _uniform(*shape: int, bounds: tuple[float, float], generator: torch.Generator) -> Tensor:
    """float32 of the given shape, uniform between the bounds, on the generator's device."""
    least, largest = bounds
    return least + (largest - least) * torch.rand(shape, generator=generator, device=generator.device)


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
    return weights / weights.sum(2, keepdim=True)


def _selection(pixels: Tensor, extent: int) -> Tensor:
    """Matrices (N, size, extent) that take the given pixels (N, size), or nothing where they lie outside."""
    return (pixels.unsqueeze(2) == torch.arange(extent, device=pixels.device)).float()


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


def _check_images(images: Tensor, generator: torch.Generator | None = None) -> None:
    """Raise unless the images are (N, 3, H, W) of uint8 or floating point, and the generator on their device."""
    if images.ndim != 4 or images.shape[1] != 3 or images.numel() == 0:
        raise ValueError(f"images have shape {tuple(images.shape)}; they should be (N, 3, H, W), all sizes >= 1")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise TypeError(f"images are {images.dtype}; give uint8 (0 to 255) or floating point in [0, 1]")
    if generator is not None and generator.device.type != images.device.type:
        raise ValueError(
            f"the generator is on {generator.device} and the images on {images.device}; "
            "make it with torch.Generator(images.device)"
        )


def _check_size(size: int) -> None:
    if size < 1:
        raise ValueError(f"size={size} should be at least 1 pixel")


def _check_probabilities(**probabilities: float) -> None:
    for name, value in probabilities.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name}={value} should be a probability, 0 to 1")
