"""Encoders of video, sound and pictures, the layer on top of them, and the crossing of that layer in momentum encoders.

Trunks are the paper's residual networks, of which torchvision's have one width, plain batch normalisation and other
stems, and small ones for bundled data.
"""

import contextlib
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad, relu

from repro.audiovisual import MODALITIES
from repro.contrast.momentum import GhostBatchNorm, dealt

REGIONS = 3  # parts of a picture that "small_image" tells apart along each axis
KAIMING = partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")  # as ResNets start
Size = int | tuple[int, ...]  # of all axes, or of each


def r3d18(width: int, channels: int, groups: int) -> nn.Sequential:
    """3D-ResNet-18: clips (N, channels, F, H, W) to features (N, width); 33.2 million parameters at width 512.

    Differs from torchvision's network of this name by the stem, 7x7x7 with max-pooling.

    Source: Hara et al. 2018; CM-ACC, released code.
    """
    stem = _layers(3, groups, 7, channels, width // 8, (1, 2, 2))
    return _residual([*stem, nn.MaxPool3d(3, stride=2, padding=1)], 3, width, groups)


def r2plus1d18(width: int, channels: int, groups: int) -> nn.Sequential:
    """R(2+1)D-18: as `r3d18`, but no max-pooling, and every convolution in space, then in time: see `_factorised`.

    Torchvision's network of this name has fewer channels in the middle of a stage's second convolution.

    Source: Tran et al. 2018; CM-ACC, Table 4.
    """
    middle = 45
    in_space = _layers(3, groups, (1, 7, 7), channels, middle, (1, 2, 2))
    in_time = _layers(3, groups, (3, 1, 1), middle, width // 8)
    return _residual([*in_space, *in_time], 3, width, groups, wide=partial(_factorised, groups))


def audio18(width: int, channels: int, groups: int) -> nn.Sequential:
    """ResNet-18 with one-dimensional kernels: log-mel sound (N, bands, T) to features (N, width).

    Of the released code it has batch normalisation of every band before it and the Xavier-normal start, on which the
    paper is silent; the code's stages without stride, leaky ReLU and biases are no ResNet-18's.

    Source: CM-ACC; its released code in an early state.
    """
    stem = [GhostBatchNorm(channels, groups), *_layers(1, groups, 7, channels, width // 8, 2)]
    pool = nn.MaxPool1d(3, stride=2, padding=1)
    return _residual([*stem, pool], 1, width, groups, draw=nn.init.xavier_normal_)


def small_video(width: int, channels: int, groups: int) -> nn.Sequential:
    """Four convolutions over what moves in small clips (N, channels, F, H, W), the first in space alone."""
    widths = (width // 16, width // 8, width // 4, width)
    return _initialised(Moving(), *_halving(3, groups, (1, 5, 5), (1, 2, 2), channels, widths), Mean())


def small_audio(width: int, channels: int, groups: int) -> nn.Sequential:
    """Four convolutions for short sounds (N, bands, T); every band is normalised first."""
    widths = (width // 4, width // 2, width // 2, width)
    return _initialised(GhostBatchNorm(channels, groups), *_halving(1, groups, 5, 2, channels, widths), Mean())


def small_image(width: int, channels: int, groups: int) -> nn.Sequential:
    """Four convolutions and a layer that reads where things are, for pictures (N, channels, H, W) of characters.

    A position of the last map sees 33 pixels; 3 x 3 means of them keep up to nine characters apart for a linear probe.
    """
    widths = (width // 32, width // 16, width // 8, width // 4)
    read = nn.Linear(REGIONS**2 * widths[-1], width, bias=False)
    return _initialised(
        *_halving(2, groups, 5, 2, channels, widths), nn.AdaptiveAvgPool2d(REGIONS), nn.Flatten(),
        read, GhostBatchNorm(width, groups), nn.ReLU(inplace=True),
    )


TRUNKS: dict[str, tuple[Callable[[int, int, int], nn.Sequential], int]] = {  # and their usual channels
    "r3d18": (r3d18, 3), "r2plus1d18": (r2plus1d18, 3), "audio18": (audio18, 80),
    "small_video": (small_video, 3), "small_audio": (small_audio, 80), "small_image": (small_image, 1),
}


class Convolution:
    """What `CONVOLUTIONS` add to torch's layers: they avoid a fault of its convolutions on the CPU (seen with 2.15).

    In bfloat16 the gradient of the weight is memory that nobody wrote to, of a strided kernel on a map of one position,
    and with AVX-512 also of clips of two frames, or of frames of one position. So clips are convolved in float32; and
    as a map of one position meets the middle of the kernel alone, that convolution is a matrix product.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (N, C, [F,] H, W) to maps (N, channels, [F',] H', W')."""
        exact = maps.ndim == 5 and maps.device.type == "cpu"
        with torch.autocast("cpu", enabled=False) if exact else contextlib.nullcontext():
            maps = maps.to(self.weight.dtype) if exact else maps
            if max(maps.shape[2:]) > 1:
                return super().forward(maps)
            middle = self.weight.flatten(2)[:, :, self.weight[0, 0].numel() // 2]
            return linear(maps.flatten(1), middle).view(len(maps), -1, *maps.shape[2:])


CONVOLUTIONS = {  # by the number of axes
    axes: type(kind.__name__, (Convolution, kind), {})
    for axes, kind in {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}.items()
}


class Block(nn.Module):
    """Two convolutions `wide` beside a shortcut, which has one where channels or resolution change."""

    def __init__(
        self, wide: Callable[..., nn.Module], axes: int, groups: int, inputs: int, outputs: int, stride: int
    ) -> None:
        super().__init__()
        normalised = partial(GhostBatchNorm, outputs, groups)
        self.conv1, self.bn1 = wide(inputs, outputs, stride), normalised()
        self.conv2, self.bn2 = wide(outputs, outputs, 1), normalised()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(_convolution(axes, 1, inputs, outputs, stride), normalised())

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (N, inputs, [F,] H, W) to maps (N, outputs, [F',] H', W'), at least 0."""
        inner = relu(self.bn1(self.conv1(maps)), inplace=True)
        return relu(self.bn2(self.conv2(inner)) + self.shortcut(maps), inplace=True)


class Moving(nn.Module):
    """Takes from clips their mean frame, which says nothing about a motion."""

    def forward(self, clips: Tensor) -> Tensor:
        return clips - clips.mean(2, keepdim=True)


class Mean(nn.Module):
    """The mean over all positions, (N, C) of maps (N, C, ...)."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.flatten(2).mean(2)


def _convolution(axes: int, kernel: Size, inputs: int, outputs: int, stride: Size = 1) -> nn.Module:
    """Without a bias, which the normalisation after it takes away; an axis of length n has ceil(n / stride) after."""
    padding = kernel // 2 if isinstance(kernel, int) else tuple(size // 2 for size in kernel)
    return CONVOLUTIONS[axes](inputs, outputs, kernel, stride, padding, bias=False)


def _layers(axes: int, groups: int, kernel: Size, inputs: int, outputs: int, stride: Size = 1) -> list[nn.Module]:
    """A convolution with normalisation and ReLU."""
    convolution = _convolution(axes, kernel, inputs, outputs, stride)
    return [convolution, GhostBatchNorm(outputs, groups), nn.ReLU(inplace=True)]


def _factorised(groups: int, inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """A convolution in space and one in time, with about as many parameters as the 3x3x3 convolution they replace."""
    middle = 27 * inputs * outputs // (9 * inputs + 3 * outputs)
    in_space = _layers(3, groups, (1, 3, 3), inputs, middle, (1, stride, stride))
    return nn.Sequential(*in_space, _convolution(3, (3, 1, 1), middle, outputs, (stride, 1, 1)))


def _residual(
    stem: list[nn.Module], axes: int, width: int, groups: int, *, wide: Callable[..., nn.Module] | None = None,
    draw: Callable[[Tensor], Tensor] = KAIMING,
) -> nn.Sequential:
    """A ResNet-18: four stages of two blocks each, width / 8 channels in, width out, strides 1, 2, 2, 2."""
    widths = (width // 8, width // 8, width // 4, width // 2, width)
    block = partial(Block, wide or partial(_convolution, axes, 3), axes, groups)
    stages = [
        nn.Sequential(block(inputs, outputs, stride), block(outputs, outputs, 1))
        for (inputs, outputs), stride in zip(pairwise(widths), (1, 2, 2, 2), strict=True)
    ]
    return _initialised(nn.Sequential(*stem), *stages, Mean(), draw=draw)


def _halving(
    axes: int, groups: int, kernel: Size, stride: Size, channels: int, widths: tuple[int, ...]
) -> list[nn.Sequential]:
    """Convolutions to `widths` channels; those after the first have kernel 3 and stride 2."""
    first = _layers(axes, groups, kernel, channels, widths[0], stride)
    later = [_layers(axes, groups, 3, inputs, outputs, 2) for inputs, outputs in pairwise(widths)]
    return [nn.Sequential(*layers) for layers in (first, *later)]


def _initialised(*parts: nn.Module, draw: Callable[[Tensor], Tensor] = KAIMING) -> nn.Sequential:
    """A network with its convolutions drawn anew."""
    network = nn.Sequential(*parts)
    for part in network.modules():
        if isinstance(part, Convolution):
            draw(part.weight)
    return network


class Encoder(nn.Module):
    """A randomly initialised trunk that turns a batch of one modality into pooled features.

    Args:
        trunk: one of `TRUNKS`; the functions of these names describe them.
        width: C, size of the features, a multiple of 32, to which other layers are in proportion (the papers' 512).
        channels: of the inputs: colours of a video or picture, mel bands of sound; by default the usual ones.
        groups: of ghost batch normalisation, to which samples i mod groups belong in training; 1 is the plain one.
    """

    def __init__(self, trunk: str, width: int, *, channels: int | None = None, groups: int = 1) -> None:
        super().__init__()
        make, usual = TRUNKS[trunk]
        self.name, self.width, self.groups, self.channels = trunk, width, groups, channels or usual
        self.layers = make(width, self.channels, groups)

    @property
    def last_layer(self) -> nn.Module:
        """The last layer with weights: of `small_image` linear, of the other trunks a convolution."""
        return [layer for layer in self.layers.modules() if isinstance(layer, (nn.Linear, Convolution))][-1]

    def forward(self, inputs: Tensor) -> Tensor:
        """Pooled features (N, C), in the precision they are computed in, of inputs as the trunk takes them.

        Raises:
            ValueError: if the encoder trains and N is no multiple of the groups.
        """
        if not self.training:
            return self.layers(inputs)
        return self._in_order(self.layers(dealt(inputs, self.groups)))

    def with_last_inputs(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """What `forward` returns, and the inputs (N, e) of the last layer averaged over positions, without gradient."""
        seen: list[Tensor] = []
        handle = self.last_layer.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
        try:
            features = self(inputs)
        finally:
            handle.remove()
        last_inputs = _pooled_inputs(self.last_layer, seen[0])
        return features, self._in_order(last_inputs) if self.training else last_inputs

    def _in_order(self, rows: Tensor) -> Tensor:
        """Rows (N, ...) that lie group after group, in the order of the batch."""
        return dealt(rows, len(rows) // self.groups)


def _pooled_inputs(layer: nn.Module, maps: Tensor) -> Tensor:
    """What a layer's output averaged over all positions is linear in: its inputs, averaged likewise, (N, e)."""
    maps = maps.to(torch.promote_types(maps.dtype, torch.float32))
    if isinstance(layer, nn.Linear):
        return maps
    maps = pad(maps, [size for size in reversed(layer.padding) for _ in range(2)])
    for axis, (size, stride) in enumerate(zip(layer.kernel_size, layer.stride, strict=True), start=2):
        maps = maps.unfold(axis, size, stride)
    return maps.mean(tuple(range(2, 2 + len(layer.kernel_size)))).flatten(1)


class Towers(nn.Module):
    """The encoders of the two modalities, `trunks`, and the layers that make their features comparable, `heads`.

    Args:
        video, audio: encoders of the first and the second modality.
        embedding: d, size of the embeddings.
        extra_layer: whether a fully connected layer follows each encoder; else d is the width of the features.

    Source: CM-ACC; Table 1 has rows with and without the extra layer.
    """

    def __init__(self, video: Encoder, audio: Encoder, embedding: int = 512, extra_layer: bool = True) -> None:
        super().__init__()
        layers = [nn.Linear(trunk.width, embedding) if extra_layer else nn.Identity() for trunk in (video, audio)]
        self.trunks = nn.ModuleDict({"video": video, "audio": audio})
        self.heads = nn.ModuleDict(dict(zip(MODALITIES, layers, strict=True)))

    def forward(self, modality: str, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (N, d), not normalised, and the inputs (N, e) of the last layer, theta_last of the paper.

        Both are at least float32. On the inputs h rests the gradient embedding by which negatives are selected: with
        the extra layer embedding = W h + b. Without it theta_last is the last layer of the encoder. A pooled
        convolution is linear in its pooled inputs, so that the gradient k (sum_j r_j h_j)' keeps the form of Eq. 5. It
        is assumed to pass unchanged through normalisation, nonlinearity and pooling; else distances would cost as many
        times more as there are channels.
        """
        trunk, head = self.trunks[modality], self.heads[modality]
        extra_layer = isinstance(head, nn.Linear)
        features, hidden = (trunk(inputs), None) if extra_layer else trunk.with_last_inputs(inputs)
        with torch.autocast(features.device.type, enabled=False):
            features = features.to(torch.promote_types(features.dtype, torch.float32))
            return head(features), features if extra_layer else hidden


def crossed(towers: Towers) -> Towers:
    """The same encoders, parameters shared, with their extra layers exchanged: what the momentum encoder follows.

    With f the encoders of queries, h those of keys and <- their exponential moving average: h_v <- f_v, h_a <- f_a,
    FC(h_a) <- FC(f_v), FC(h_v) <- FC(f_a).

    Source: CM-ACC, momentum update of the extra layer.
    """
    exchanged = Towers(*towers.trunks.values(), extra_layer=False)
    exchanged.heads = nn.ModuleDict(dict(zip(MODALITIES, reversed(towers.heads.values()), strict=True)))
    return exchanged
