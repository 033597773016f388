"""ResNet trunks and projection heads for images, and their weights in files for use elsewhere."""

import contextlib
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from repro.contrast.momentum import GhostBatchNorm2d, WholeBatchNorm1d, dealt, groups_here
from repro.data.disk import write_atomically
from repro.image import HEADS, TRUNKS
from repro.image.augment import CentredView
from repro.image.convolution import TrimmedConv2d
from repro.image.operations import Normalisation
from repro.recipe import choose


def trunk(name: str, small: bool, groups: int = 1) -> nn.Module:
    """A randomly initialised ResNet without its classifier: normalised images (N, 3, H, W) to pooled features (N, C).

    Args:
        name: "resnet18" (C = 512) or "resnet50" (C = 2048).
        small: for images of 32 to 96 pixels: the first convolution is 3x3 with stride 1 and no max-pooling follows
            (11.17 million parameters for ResNet-18).
        groups: of ghost batch normalisation, in consecutive parts of the batch; 1 is plain batch normalisation.

    Raises:
        ValueError: if the name is another one or `groups` is not positive.

    Source: He et al. 2016; SCE supplement for the small stem, of all its data sets but ImageNet.
    """
    import torchvision  # which takes as long to import as torch, and whoever only reads results needs it not

    choose("trunk", name, TRUNKS)
    network = getattr(torchvision.models, name)(norm_layer=functools.partial(GhostBatchNorm2d, groups=groups))
    if small:
        network.conv1 = nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
        nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")  # as the other convolutions
        network.maxpool = nn.Identity()
    network.fc = nn.Identity()
    for module in network.modules():
        if type(module) is nn.Conv2d:
            module.__class__ = TrimmedConv2d  # torchvision lets nobody choose the class of its convolutions
    return network


def projection_head(name: str, features: int, projection: int) -> nn.Sequential:
    """The two layers that follow the trunk in pre-training: (N, features) to (N, projection).

    "moco_v2", also JCL's, has as many hidden units as features; "sce" too, with batch normalisation, in all processes
    over the whole batch even where the trunk has ghost groups.

    Raises:
        ValueError: if the name is another one.

    Source: Chen et al. 2020 (MoCo v2); SCE supplement, for ResNet-18.
    """
    choose("head", name, HEADS)
    if name == "sce":
        first = [nn.Linear(features, features, bias=False), WholeBatchNorm1d(features)]
    else:
        first = [nn.Linear(features, features)]
    return nn.Sequential(*first, nn.ReLU(), nn.Linear(features, projection))


class ImageModel(nn.Module):
    """Trunk and projection head; the momentum encoder is a twin of the whole.

    Args:
        name: of the trunk, "resnet18" or "resnet50".
        small: whether the trunk has the stem for small images.
        head: "moco_v2" or "sce", see `projection_head`.
        projection: d, size of the embedding (MoCo v2 and JCL 128; SCE 256, its released configuration 128; ReSSL 512).
        groups: of the trunk's ghost batch normalisation, to which samples i mod groups belong while it trains, all
            processes together.

    Raises:
        ValueError: if a name is not among these or `groups` is not positive.
    """

    def __init__(self, name: str, small: bool, head: str, projection: int, groups: int = 1) -> None:
        super().__init__()
        self.architecture = {"name": name, "small": small, "head": head, "projection": projection}
        self.groups = groups
        self.trunk = trunk(name, small, groups)
        self.head = projection_head(head, TRUNKS[name], projection)

    def features(self, images: Tensor) -> Tensor:
        """Pooled features (N, C), in the precision they are computed in.

        Args:
            images: (N, 3, H, W) normalised, in any memory format; N is a multiple of the groups while the trunk trains.

        Raises:
            TypeError: if the images are integers.
            ValueError: if they have another shape, or N is not such a multiple.
        """
        if images.ndim != 4 or images.shape[1] != 3:
            raise ValueError(f"images have shape {tuple(images.shape)}; it should be (N, 3, H, W)")
        if not images.is_floating_point():
            raise TypeError(f"images have the type {images.dtype}; convert them to float32 and normalise them first")
        if not self.trunk.training:
            return self.trunk(images)
        groups = groups_here(self.groups, len(images))
        return dealt(self.trunk(dealt(images, groups)), len(images) // groups)

    def embed(self, features: Tensor) -> Tensor:
        """Embeddings (N, d) of unit length in float32, from pooled features (N, C)."""
        return normalize(self.head(features).float(), dim=1)

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings (N, d) of unit length in float32, from images as in `features`."""
        return self.embed(self.features(images))


def save(path: Path, model: ImageModel, recipe: dict[str, Any], view: CentredView) -> None:
    """Write the model's weights as safetensors, atomically.

    The metadata holds three JSON texts: "architecture", the arguments that make the same model; "recipe"; and "view",
    how images become what the model takes: resize and size (pixels of the shorter side, and of the central crop),
    square (whether the longer side is resized to as many), mean and std (of red, green and blue in [0, 1]).

    Raises:
        TypeError: if the recipe cannot be written as JSON.
        OSError: if the disk is full or the folder cannot be written.
    """
    from safetensors import torch as safetensors

    seen = {"resize": view.resize, "size": view.size, "square": view.square} | view.normalisation._asdict()
    metadata = {"architecture": model.architecture, "recipe": recipe, "view": seen}
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    texts = {name: json.dumps(value) for name, value in metadata.items()}
    write_atomically(Path(path), lambda temporary: temporary.write_bytes(safetensors.save(weights, texts)))


def load(path: Path) -> ImageModel:
    """The model of a file written by `save`, on the CPU in evaluation mode.

    Its batch normalisation is plain: ghost groups belong to the recipe's training.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not in the safetensors format, not a whole model as `save` writes it, or not finite.
    """
    with _opened(Path(path)) as file:
        architecture = _described(path, file, "architecture")
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, the file is no mapping
    try:
        with torch.device("meta"):  # neither memory nor random numbers for weights that are replaced
            model = ImageModel(**architecture)
    except (TypeError, ValueError, RuntimeError) as error:  # the last of negative sizes
        raise ValueError(f"{path} describes a model that cannot be made ({error}); export it again") from error
    expected = {name: weight.shape for name, weight in model.state_dict().items()}
    found = {name: weight.shape for name, weight in weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise ValueError(
                f"{path} does not hold the weights of {architecture}: {name} has "
                f"{_size(found.get(name))} in the file and {_size(expected.get(name))} in the model; export it again"
            )
        if not weights[name].isfinite().all():
            raise ValueError(f"{path} is damaged: {name} is not finite; export it again")
    model.load_state_dict(weights, assign=True)
    return model.eval()


def load_view(path: Path) -> CentredView:
    """What makes the input of the model of a file written by `save` from images, (N, 3, H, W) uint8 or in [0, 1].

    Raises:
        FileNotFoundError, ValueError: as `load`.
    """
    with _opened(Path(path)) as file:
        seen = _described(path, file, "view")
    try:
        size, resize, mean, std = (seen[name] for name in ("size", "resize", "mean", "std"))
        colours = torch.tensor([mean, std], dtype=torch.float64)
        if colours.shape != (2, 3) or not colours.isfinite().all() or not (colours[1] > 0).all():
            raise ValueError(f"mean={mean}, std={std} should be three finite numbers each, std above 0")
        if not type(size) is type(resize) is int:
            raise ValueError(f"size={size}, resize={resize} should be whole numbers of pixels")
        square = choose("square", seen.get("square", False), (True, False))  # files of before have none
        return CentredView(size, Normalisation(tuple(mean), tuple(std)), resize, square)
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{path} describes a view that cannot be made ({error}); export it again") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A file as safetensors opens it."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; write one with `repro results weights KEY`")
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except SafetensorError as error:
        raise ValueError(f"{path} is not a sound safetensors file ({error}); export it again") from error


def _described(path: Path, file: Any, name: str) -> Any:
    """One of the JSON texts in the metadata of an opened file."""
    try:
        return json.loads((file.metadata() or {})[name])
    except (KeyError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} does not say which model it holds, or of which images: it has no {name!r}; files of "
            "`repro results weights KEY` do, in their metadata"
        ) from error


def _size(shape: torch.Size | None) -> str:
    return "no place" if shape is None else f"the shape {tuple(shape)}"
