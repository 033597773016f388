"""The trunks of encoders: residual networks of the paper, and small ones for embedded data, from layers of our own."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, relu

from repro.contrast.momentum import GhostBatchNorm1d, GhostBatchNorm2d, GhostBatchNorm3d

NORMALISATIONS = {1: GhostBatchNorm1d, 2: GhostBatchNorm2d, 3: GhostBatchNorm3d}
REGIONS = 3  # parts of a picture that "small_image" tells apart along each axis


def r3d18(width: int, channels: int, groups: int) -> nn.Sequential:
    """3D-ResNet-18: clips (N, channels, F, H, W) to features (N, width); 33.2 million parameters at width 512.

    Convolutions start Kaiming-normal (fan-out); where a stage begins, the shortcut is a 1x1x1 convolution ("type B").
    Differs from torchvision's network of this name by the stem, 7x7x7 with max-pooling.

    Source: Hara et al. 2018; CM-ACC, released code.
    """
    layers, first = _plain(3, groups), width // 8
    stem = nn.Sequential(
        _convolution(3, channels, first, 7, (1, 2, 2)), layers.normalised(first), nn.ReLU(inplace=True),
        nn.MaxPool3d(3, stride=2, padding=1),
    )
    return _initialised(nn.Sequential(stem, *_residual_stages(width, layers), Mean()))


def r2plus1d18(width: int, channels: int, groups: int) -> nn.Sequential:
    """R(2+1)D-18: clips (N, channels, F, H, W) to features (N, width); every convolution in space, then in time.

    No max-pooling; otherwise as `r3d18`, with as many parameters (33.2 million at width 512): see `_factorised`.
    Torchvision's network of this name has 31.3 million, because there the first channels of a stage, which are fewer,
    determine the channels in the middle of a block's second convolution too.

    Source: Tran et al. 2018; CM-ACC, Table 4.
    """
    layers, first, middle = _plain(3, groups), width // 8, 45
    layers = layers._replace(wide=partial(_factorised, layers.normalised))
    stem = nn.Sequential(
        _convolution(3, channels, middle, (1, 7, 7), (1, 2, 2)), layers.normalised(middle), nn.ReLU(inplace=True),
        _convolution(3, middle, first, (3, 1, 1)), layers.normalised(first), nn.ReLU(inplace=True),
    )
    return _initialised(nn.Sequential(stem, *_residual_stages(width, layers), Mean()))


def audio18(width: int, channels: int, groups: int) -> nn.Sequential:
    """ResNet-18 with one-dimensional kernels: log-mel sound (N, bands, T) to features (N, width).

    The bands are the channels of the first convolution. Batch normalisation of every band before it and the
    Xavier-normal start, on which the paper is silent, are those of an early state of the released code. Its stages
    without stride, its leaky ReLU, and its biases, which batch normalisation takes away again, are no ResNet-18's and
    left out.

    Source: CM-ACC; its released code in an early state.
    """
    layers, first = _plain(1, groups), width // 8
    stem = nn.Sequential(
        layers.normalised(channels), _convolution(1, channels, first, 7, 2), layers.normalised(first),
        nn.ReLU(inplace=True), nn.MaxPool1d(3, stride=2, padding=1),
    )
    return _initialised(nn.Sequential(stem, *_residual_stages(width, layers), Mean()), nn.init.xavier_normal_)


def small_video(width: int, channels: int, groups: int) -> nn.Sequential:
    """Four convolutions over what moves in small clips (N, channels, F, H, W), 1.9 million multiplications for 8 frames
    of 24 pixels at width 128: the first in space alone, the others also in time, half the resolution after each."""
    widths = (width // 16, width // 8, width // 4, width)
    stages = _convolutions(3, channels, widths, (1, 5, 5), (1, 2, 2), groups)
    return _initialised(nn.Sequential(Moving(), *stages, Mean()))


def small_audio(width: int, channels: int, groups: int) -> nn.Sequential:
    """Four convolutions for short sounds (N, bands, T), 0.5 million multiplications for 64 rows of 32 bands at width
    128; every band is normalised first, and each convolution halves the resolution."""
    widths = (width // 4, width // 2, width // 2, width)
    stages = _convolutions(1, channels, widths, 5, 2, groups)
    return _initialised(nn.Sequential(GhostBatchNorm1d(channels, groups), *stages, Mean()))


def small_image(width: int, channels: int, groups: int) -> nn.Sequential:
    """Four convolutions and a layer that reads where things are, for pictures (N, channels, H, W) of characters.

    Each convolution halves the resolution; one position of the last map sees 33 pixels, a character. The map is
    averaged not over the whole picture but within each of 3 x 3 regions, of which the last layer makes the features:
    up to nine characters in rows and columns remain apart, for a linear probe to name the one in each cell. At width
    512 it costs about a million multiplications for every character of 32 pixels.
    """
    widths = (width // 32, width // 16, width // 8, width // 4)
    read = nn.Linear(REGIONS**2 * widths[-1], width, bias=False)
    return _initialised(
        nn.Sequential(
            *_convolutions(2, channels, widths, 5, 2, groups), nn.AdaptiveAvgPool2d(REGIONS), nn.Flatten(),
            read, GhostBatchNorm1d(width, groups), nn.ReLU(inplace=True),
        )
    )


class Trunk(NamedTuple):
    """How an encoder's layers are made, and what they take."""

    make: Callable[[int, int, int], nn.Sequential]  # of width, channels and groups
    channels: int
    axes: tuple[str, ...]


TRUNKS = {
    "r3d18": Trunk(r3d18, 3, ("F", "H", "W")),
    "r2plus1d18": Trunk(r2plus1d18, 3, ("F", "H", "W")),
    "audio18": Trunk(audio18, 80, ("T",)),
    "small_video": Trunk(small_video, 3, ("F", "H", "W")),
    "small_audio": Trunk(small_audio, 80, ("T",)),
    "small_image": Trunk(small_image, 1, ("H", "W")),
}


class Layers(NamedTuple):
    """What the residual blocks of one network are made of."""

    wide: Callable[[int, int, int], nn.Module]  # of inputs, outputs and stride, with kernel 3
    narrow: Callable[[int, int, int], nn.Module]  # the same with kernel 1
    normalised: Callable[[int], nn.Module]


class Block(nn.Module):
    """Two convolutions with kernel 3 beside a shortcut, convolved only where channels or resolution change.

    Source: He et al. 2016.
    """

    def __init__(self, layers: Layers, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = layers.wide(inputs, outputs, stride), layers.normalised(outputs)
        self.conv2, self.bn2 = layers.wide(outputs, outputs, 1), layers.normalised(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(layers.narrow(inputs, outputs, stride), layers.normalised(outputs))

    def forward(self, maps: Tensor) -> Tensor:
        inner = relu(self.bn1(self.conv1(maps)), inplace=True)
        return relu(self.bn2(self.conv2(inner)) + self.shortcut(maps), inplace=True)


class Convolution:
    """What `Convolution1d`, `Convolution2d` and `Convolution3d` add to torch's layers of these numbers.

    A map of a single position meets the middle of the kernel alone, whatever the stride: that is a matrix product. It
    also avoids a fault of the CPU's convolutions, whose gradient of such a weight, strided and in bfloat16, is memory
    that nobody wrote to (seen with torch 2.15).
    """

    def forward(self, maps: Tensor) -> Tensor:
        if max(maps.shape[2:]) > 1:
            return super().forward(maps)
        middle = self.weight.flatten(2)[:, :, self.weight[0, 0].numel() // 2]
        return linear(maps.flatten(1), middle).view(len(maps), -1, *maps.shape[2:])


class Convolution1d(Convolution, nn.Conv1d):
    """`Convolution` of series (N, C, T)."""


class Convolution2d(Convolution, nn.Conv2d):
    """`Convolution` of pictures (N, C, H, W)."""


class Convolution3d(Convolution, nn.Conv3d):
    """`Convolution` of clips (N, C, F, H, W), on a CPU in float32.

    The same fault meets clips of two frames, and frames of a single position, on processors with AVX-512.
    """

    def forward(self, maps: Tensor) -> Tensor:
        if maps.device.type != "cpu":
            return super().forward(maps)
        with torch.autocast("cpu", enabled=False):
            return super().forward(maps.float() if maps.dtype == torch.bfloat16 else maps)


CONVOLUTIONS = {1: Convolution1d, 2: Convolution2d, 3: Convolution3d}  # by the number of axes


class Moving(nn.Module):
    """Clips (N, C, F, H, W) less their mean frame: without what stands still, which says nothing about a motion."""

    def forward(self, clips: Tensor) -> Tensor:
        return clips - clips.mean(2, keepdim=True)


class Mean(nn.Module):
    """Maps (N, C, ...) to their means over all positions, (N, C)."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.flatten(2).mean(2)


def _convolution(
    axes: int, inputs: int, outputs: int, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] = 1
) -> nn.Module:
    """Without a bias, which the normalisation after it takes away; an axis of length n has ceil(n / stride) after."""
    padding = kernel // 2 if isinstance(kernel, int) else tuple(size // 2 for size in kernel)
    return CONVOLUTIONS[axes](inputs, outputs, kernel, stride, padding, bias=False)


def _factorised(normalised: Callable[[int], nn.Module], inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """A convolution in space and one in time, with about the parameters of the 3x3x3 convolution they replace.

    Source: Tran et al. 2018, section 3.5, for the channels in the middle.
    """
    middle = 27 * inputs * outputs // (9 * inputs + 3 * outputs)
    return nn.Sequential(
        _convolution(3, inputs, middle, (1, 3, 3), (1, stride, stride)), normalised(middle), nn.ReLU(inplace=True),
        _convolution(3, middle, outputs, (3, 1, 1), (stride, 1, 1)),
    )


def _plain(axes: int, groups: int) -> Layers:
    """Layers of so many axes with ghost batch normalisation."""
    return Layers(
        wide=lambda inputs, outputs, stride: _convolution(axes, inputs, outputs, 3, stride),
        narrow=lambda inputs, outputs, stride: _convolution(axes, inputs, outputs, 1, stride),
        normalised=partial(NORMALISATIONS[axes], groups=groups),
    )


def _residual_stages(width: int, layers: Layers) -> list[nn.Sequential]:
    """The four stages of a ResNet-18, two blocks each: width / 8 channels in, width out, strides 1, 2, 2, 2."""
    widths = (width // 8, width // 8, width // 4, width // 2, width)
    return [
        nn.Sequential(Block(layers, inputs, outputs, stride), Block(layers, outputs, outputs, 1))
        for inputs, outputs, stride in zip(widths, widths[1:], (1, 2, 2, 2), strict=False)
    ]


def _convolutions(
    axes: int,
    channels: int,
    widths: tuple[int, ...],
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...],
    groups: int,
) -> list[nn.Sequential]:
    """Convolutions to `widths` channels, each with normalisation and ReLU; the later have kernel 3 and stride 2."""
    later, normalised = len(widths) - 1, NORMALISATIONS[axes]
    shapes = zip((channels, *widths), widths, (kernel, *[3] * later), (stride, *[2] * later), strict=False)
    return [
        nn.Sequential(_convolution(axes, *shape), normalised(shape[1], groups), nn.ReLU(inplace=True))
        for shape in shapes
    ]


def _kaiming(weight: Tensor) -> Tensor:
    """Normal with the spread that keeps the gradient's size from layer to layer (fan-out), as ResNets start."""
    return nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")


def _initialised(network: nn.Sequential, draw: Callable[[Tensor], Tensor] = _kaiming) -> nn.Sequential:
    """The network with its convolutions drawn anew."""
    for part in network.modules():
        if isinstance(part, tuple(CONVOLUTIONS.values())):
            draw(part.weight)
    return network
