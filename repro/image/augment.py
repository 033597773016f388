"""Views of images, for a whole batch at once on its device, with randomness of each sample's own; those of a recipe.

A view draws its parameters and applies `operations` with them to all images. A parameter has a neutral value that
leaves its sample as it is (factor 1, shift 0, sigma 0), so that an operation with a probability is applied to the whole
batch: shapes depend on no draw, and nothing waits for the device.

Source: SCE supplement, implementation details; JCL supplement, ablation settings; Chen et al. 2020 (MoCo v2).
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from repro.image import DATASETS, operations
from repro.image.operations import HUE, Normalisation, as_float, normalise, resized_crop
from repro.image.recipe import MOCO, SCE, VIEWS, ImageRecipe, contrasts, trains
from repro.recipe import Rows


class Draws(NamedTuple):
    """The random parameters of a `View` of N images, on the generator's device."""

    boxes: Tensor    # (N, 4) int64: top, left, height, width of the crop in pixels
    flipped: Tensor  # (N,) bool
    factors: Tensor  # (N, 4): brightness, contrast, saturation, shift of hue in turns; neutral at 1, 1, 1, 0
    order: Tensor    # (N, 4) int64: the four operations of colour jitter, the first to be applied first
    grey: Tensor     # (N,) bool
    sigma: Tensor    # (N,) of the blur in pixels; neutral at 0


class Shifts(NamedTuple):
    """The random parameters of a `ShiftedView`, as `Draws` has them, but that a part of a box may lie outside."""

    boxes: Tensor
    flipped: Tensor


class RandomView:
    """A view that draws parameters for every image, `draw`, and then applies them to all, `apply`."""

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """An independent view of every image (N, 3, H, W), uint8 or in [0, 1], with a generator on their device."""
        return self.apply(images, self.draw(len(images), *images.shape[2:], generator))


@dataclasses.dataclass(frozen=True)
class View(RandomView):
    """Random resized crop and flip, then colour jitter, greyscale and blur by their probabilities, then normalisation.

    `strong`, `weak` and `probe` make the papers' three. `strength` is the largest change of brightness, contrast and
    saturation, factors around 1, and of hue in turns, at most 0.5.
    """

    size: int                                    # pixels of a side of the view
    normalisation: Normalisation
    scale: tuple[float, float] = (0.2, 1.0)      # least and largest share of the image's area that a crop has
    ratio: tuple[float, float] = (3 / 4, 4 / 3)  # least and largest width over height of a crop, around 1
    flip: float = 0.5                            # probability in [0, 1], like `jitter`, `greyscale` and `blur`
    jitter: float = 0.0
    strength: tuple[float, float, float, float] = (0.4, 0.4, 0.4, 0.1)
    greyscale: float = 0.0
    blur: float = 0.0
    sigma: tuple[float, float] = (0.1, 2.0)      # least and largest standard deviation of the blur, pixels of the view
    source: str = dataclasses.field(default="assumed", compare=False)  # of the values above

    def draw(self, count: int, height: int, width: int, generator: torch.Generator) -> Draws:
        """Parameters of one view of each of `count` images of height x width pixels."""
        boxes = draw_boxes(count, height, width, scale=self.scale, ratio=self.ratio, generator=generator)
        flipped = _with_chance(count, self.flip, generator)
        changes = [_uniform(count, bounds=(-change, change), generator=generator) for change in self.strength]
        factors = torch.stack(changes, dim=1) * _with_chance(count, self.jitter, generator).unsqueeze(1)
        factors[:, :HUE] += 1
        order = _uniform(count, 4, bounds=(0, 1), generator=generator).argsort(1)
        grey = _with_chance(count, self.greyscale, generator)
        sigma = _uniform(count, bounds=self.sigma, generator=generator) * _with_chance(count, self.blur, generator)
        return Draws(boxes, flipped, factors, order, grey, sigma)

    @torch.no_grad()
    def apply(self, images: Tensor, draws: Draws) -> Tensor:
        """The view of images (N, 3, H, W) that the draws describe: (N, 3, size, size) float32, normalised."""
        view = resized_crop(as_float(images), draws.boxes, draws.flipped, (self.size, self.size))
        if self.jitter > 0:
            view = operations.colour_jitter(view, draws.factors, draws.order)
        if self.greyscale > 0:
            view = operations.greyscale(view, draws.grey)
        if self.blur > 0:
            view = operations.gaussian_blur(view, draws.sigma)
        return normalise(view, self.normalisation)


# Of a size and a normalisation: SCE's strong view, which is also that of MoCo v2 and JCL (at 224 pixels), and its weak
# one. The probe on ImageNet trains on the last (JCL's supplement names no crop), others on a `ShiftedView`.
strong = functools.partial(View, jitter=0.8, greyscale=0.2, blur=0.5,
                           source=f"{SCE}, its strong view; also that of {MOCO}")
weak = functools.partial(View, source=f"{SCE}, its weak view")
probe = functools.partial(View, scale=(0.08, 1.0), source=f"{MOCO}, whose scale is torchvision's default")


@dataclasses.dataclass(frozen=True)
class ShiftedView(RandomView):
    """Random crop of the image padded with black, and flip: what SCE's linear evaluation trains on but on ImageNet.

    Its supplement, section D, pads small images (CIFAR) by 4 pixels and medium ones (STL10, Tiny-ImageNet) by none.
    """

    normalisation: Normalisation
    padding: int = 4    # pixels on every side; with 0 the crop is the whole image
    flip: float = 0.5   # probability in [0, 1]
    source: str = f"{SCE}, section D"

    def draw(self, count: int, height: int, width: int, generator: torch.Generator) -> Shifts:
        """Parameters of one view of each of `count` images of height x width pixels."""
        far, device = (-self.padding, self.padding + 1), generator.device
        corner = torch.randint(*far, (count, 2), generator=generator, device=device)
        sides = [torch.full((count, 1), side, device=device) for side in (height, width)]
        return Shifts(torch.cat([corner, *sides], dim=1), _with_chance(count, self.flip, generator))

    @torch.no_grad()
    def apply(self, images: Tensor, draws: Shifts) -> Tensor:
        """The view of images (N, 3, H, W) that the draws describe: of this shape, float32, normalised."""
        return normalise(resized_crop(as_float(images), *draws, images.shape[2:]), self.normalisation)


@dataclasses.dataclass(frozen=True)
class CentredView:
    """Resizing, then a central crop: what linear evaluation tests on, without randomness.

    On ImageNet 256 pixels are cropped to 224: SCE's supplement, section D, resizes to 256 x 256, the released codes
    keep the proportions. An image of the size itself stays as it is.

    Raises:
        ValueError: if the sizes are not 1 <= size <= resize.
    """

    size: int             # pixels of a side of the view
    normalisation: Normalisation
    resize: int           # pixels of the shorter side before the crop
    square: bool = False  # whether the longer side gets as many, whatever becomes of the proportions

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.resize:
            raise ValueError(f"size={self.size}, resize={self.resize} should be 1 <= size <= resize, such as 224, 256")

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """The view of every image (N, 3, H, W), uint8 or in [0, 1]: (N, 3, size, size) float32, normalised.

        Raises:
            ValueError: if images are of another type, or of floating point and not all in [0, 1].
        """
        if images.dtype != torch.uint8 and not (images.is_floating_point() and 0 <= images.min() <= images.max() <= 1):
            raise ValueError(f"images are {images.dtype} from {images.min():g} to {images.max():g}; give floating point"
                             " in [0, 1], or uint8 (0 to 255)")
        sides = self.sides(*images.shape[2:])
        resized = interpolate(as_float(images), sides, mode="bilinear", antialias=True)
        top, left = (round((side - self.size) / 2) for side in sides)
        return normalise(resized[:, :, top : top + self.size, left : left + self.size], self.normalisation)

    def sides(self, *sides: int) -> list[int]:
        """What the sides of an image, in pixels, are resized to."""
        return [self.resize if self.square else self.resize * side // min(sides) for side in sides]


AnyView = View | ShiftedView | CentredView


def draw_boxes(
    count: int, height: int, width: int, *, scale: tuple[float, float], ratio: tuple[float, float],
    generator: torch.Generator,
) -> Tensor:
    """Crops of random area and aspect ratio, anywhere in `count` images of height x width pixels.

    Of ten candidates, whose area is uniform and whose ratio log-uniform, the first that fits into the image; else the
    largest central crop whose ratio is allowed.

    Args:
        scale: least and largest share of the image's area.
        ratio: least and largest width over height.

    Returns:
        (count, 4) int64 on the generator's device: top, left, height, width.

    Source: Szegedy et al. 2015 as torchvision's `RandomResizedCrop` has it.
    """
    attempts = 10
    heights, widths = (torch.full((count,), side, device=generator.device) for side in (height, width))
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


def normalisation(dataset: str) -> Normalisation:
    """What views of a data set are normalised by, as its manifest declares."""
    images = DATASETS[dataset].images
    return Normalisation(images.mean, images.deviation)


def training_views(recipe: ImageRecipe) -> dict[str, View]:
    """What training sees, by the fields that name them: the query's view and, unless it is supervised, a key's."""
    names = ("query_view", "key_view") if contrasts(recipe) else ("query_view",)
    return {name: VIEWS[getattr(recipe, name)](recipe.size, normalisation(recipe.dataset)) for name in names}


def probe_view(recipe: ImageRecipe) -> AnyView:
    """What the linear probe is trained on."""
    if recipe.probe_view == "shifted":
        return ShiftedView(normalisation(recipe.dataset), recipe.probe_padding)
    if recipe.probe_view == "crop":
        return probe(recipe.size, normalisation(recipe.dataset))
    return centred_view(recipe)


def centred_view(recipe: ImageRecipe) -> CentredView:
    """The view without randomness, which features are evaluated on."""
    return CentredView(recipe.size, normalisation(recipe.dataset), recipe.resize, recipe.square)


def described(recipe: ImageRecipe) -> Rows:
    """(parameter, value, source) of the views, as far as no field of the recipe has it."""
    views = {} if not trains(recipe) else training_views(recipe)
    if recipe.probe_view != "centred":
        views |= {"probe_view": probe_view(recipe)}
    rows = []
    for name, view in views.items():
        unused = {"size", "normalisation", "padding", "source"}
        unused |= {own for own, chance in (("strength", "jitter"), ("sigma", "blur")) if not getattr(view, chance, 0)}
        rows += [(f"{name}.{field.name}", getattr(view, field.name), view.source)
                 for field in dataclasses.fields(view) if field.name not in unused]
    source = DATASETS[recipe.dataset].images.source
    parts = normalisation(recipe.dataset)._asdict().items()
    return rows + [(f"normalisation.{part}", value, source) for part, value in parts]


def _with_chance(count: int, probability: float, generator: torch.Generator) -> Tensor:
    """(count,) bool: True with the given probability."""
    return _uniform(count, bounds=(0, 1), generator=generator) < probability


def _uniform(*shape: int, bounds: tuple[float, float], generator: torch.Generator) -> Tensor:
    """float32 of the given shape, uniform between the bounds, on the generator's device."""
    least, largest = bounds
    return least + (largest - least) * torch.rand(shape, generator=generator, device=generator.device)
