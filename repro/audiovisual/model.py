"""Encoders of video, sound and pictures, the layer on top of them, and the crossing of that layer in momentum encoders.

An encoder turns a batch of one modality into pooled features. Two of them make the towers of cross-modal contrast. With
the extra layer, the momentum encoder of one modality takes its last layer from the query encoder of the other.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from repro.audiovisual import MODALITIES
from repro.audiovisual.trunks import CONVOLUTIONS, TRUNKS
from repro.contrast.momentum import dealt, groups_here
from repro.recipe import choose

WIDTHS = 32  # a width is a multiple of this, so that every layer has a whole number of channels


class Encoder(nn.Module):
    """A randomly initialised trunk that turns a batch of one modality into pooled features.

    Args:
        trunk: one of `TRUNKS`; the functions of these names in `trunks` describe them.
        width: C, size of the features, a multiple of 32; the layers before the last are in proportion (the papers' 512
            gives the 64, 128, 256 and 512 channels of a ResNet-18).
        channels: of the inputs: colours of a video or picture, mel bands of sound. By default 3 colours of video, 80
            bands, 1 colour of a picture.
        groups: of ghost batch normalisation, to which samples i mod groups belong while the encoder trains, all
            processes together; 1 is plain batch normalisation.

    Raises:
        ValueError: if the trunk is another one, or width, channels or groups are not such numbers.
    """

    def __init__(self, trunk: str, width: int, *, channels: int | None = None, groups: int = 1) -> None:
        super().__init__()
        kind = TRUNKS[choose("trunk", trunk, TRUNKS)]
        self.name, self.width, self.groups, self.axes = trunk, width, groups, kind.axes
        self.channels = kind.channels if channels is None else channels
        if width < WIDTHS or width % WIDTHS:
            raise ValueError(f"width={width} should be a multiple of {WIDTHS} (the papers' 512)")
        if self.channels < 1:
            raise ValueError(f"channels={channels} should be at least 1")
        self.layers = kind.make(width, self.channels, groups)

    @property
    def last_layer(self) -> nn.Module:
        """The last layer with weights: of `small_image` linear, of the other trunks a convolution."""
        return [layer for layer in self.layers.modules() if isinstance(layer, (nn.Linear, *CONVOLUTIONS.values()))][-1]

    def forward(self, inputs: Tensor) -> Tensor:
        """Pooled features (N, C), in the precision they are computed in.

        Args:
            inputs: (N, channels, F, H, W) clips, (N, channels, T) sounds or (N, channels, H, W) pictures, as the trunk
                takes them, normalised, of any length and size, in any memory format; N is a multiple of the groups
                while the encoder trains.

        Raises:
            TypeError: if the inputs are integers.
            ValueError: if they have another shape, or N is not such a multiple.
        """
        shape = tuple(inputs.shape)
        if len(shape) != 2 + len(self.axes) or shape[1] != self.channels or 0 in shape[2:]:
            expected = f"(N, {self.channels}, {', '.join(self.axes)})"
            raise ValueError(
                f"inputs of trunk={self.name!r} have shape {shape}; it should be {expected} with no empty axis but N"
            )
        if not inputs.is_floating_point():
            raise TypeError(f"inputs have the type {inputs.dtype}; convert them to float32 and normalise them first")
        if not self.training:
            return self.layers(inputs)
        return self._in_order(self.layers(dealt(inputs, groups_here(self.groups, len(inputs)))))

    def with_last_inputs(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """What `forward` returns, and the pooled inputs (N, e) of the last layer, without gradient."""
        seen: list[Tensor] = []
        handle = self.last_layer.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
        try:
            features = self(inputs)
        finally:
            handle.remove()
        last_inputs = pooled_inputs(self.last_layer, seen[0])
        return features, self._in_order(last_inputs) if self.training else last_inputs

    def _in_order(self, rows: Tensor) -> Tensor:
        """Rows (N, ...) that lie group after group, in the order of the batch."""
        return dealt(rows, len(rows) // groups_here(self.groups, len(rows)))


def pooled_inputs(layer: nn.Module, maps: Tensor) -> Tensor:
    """What a layer's output averaged over all positions is linear in: its inputs (N, e), averaged over them.

    Args:
        layer: linear, or a convolution without bias whose kernel has k elements.
        maps: (N, e) of a linear layer; (N, C, ...) of a convolution.

    Returns:
        (N, e), at least float32; of a convolution e = C k, in the order of its weights, and h with W h the mean of what
        it makes of the maps.
    """
    maps = maps.to(torch.promote_types(maps.dtype, torch.float32))
    if isinstance(layer, nn.Linear):
        return maps
    maps = pad(maps, [size for size in reversed(layer.padding) for _ in range(2)])
    for axis, (size, stride) in enumerate(zip(layer.kernel_size, layer.stride, strict=True), start=2):
        maps = maps.unfold(axis, size, stride)
    return maps.mean(tuple(range(2, 2 + len(layer.kernel_size)))).flatten(1)


class Towers(nn.Module):
    """The encoders of the two modalities and the layer that makes their features comparable.

    Args:
        video: encoder of the first modality.
        audio: encoder of the second.
        embedding: d, size of the embeddings (512 is assumed: the paper gives none).
        extra_layer: whether a fully connected layer follows each encoder. Without it the features are the embeddings,
            and d is their width.

    Attributes:
        trunks: the encoders by modality.
        heads: the extra layers by modality, Linear(C, d), or Identity without them.

    Raises:
        ValueError: if the two embeddings could not be compared: without the extra layer, because the widths differ.

    Source: CM-ACC; Table 1 has rows with and without the extra layer.
    """

    def __init__(self, video: Encoder, audio: Encoder, embedding: int = 512, extra_layer: bool = True) -> None:
        super().__init__()
        encoders = dict(zip(MODALITIES, (video, audio), strict=True))
        if not extra_layer:
            _same_widths(video, audio, "without the extra layer the features of both are compared")
        self.trunks = nn.ModuleDict(encoders)
        self.heads = nn.ModuleDict(
            {
                modality: nn.Linear(encoder.width, embedding) if extra_layer else nn.Identity()
                for modality, encoder in encoders.items()
            }
        )

    def forward(self, modality: str, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (N, d), not normalised, and the inputs (N, e) of the last layer, theta_last of the paper.

        Both are at least float32, whatever precision the encoder computes in. On the inputs the gradient embedding of
        the selection of negatives rests. The extra layer is exact: embedding = W h + b for every row h of its inputs,
        which are the features. Without it theta_last is the last layer of the encoder, in front of normalisation,
        nonlinearity and pooling. A pooled convolution is linear in its pooled inputs, so that these are h, and the
        gradient k (sum_j r_j h_j)' keeps the form of the paper's Eq. 5. What stands behind the layer lets the gradient
        pass as it is, with the shift of the normalisation for a bias (assumed): taken along, every channel would have
        sums over the batch of its own, and distances would cost as many times more as there are channels.

        Args:
            modality: "video" or "audio".
            inputs: as an `Encoder` takes them.

        Raises:
            TypeError: if the inputs are integers.
            ValueError: if the modality is another one, or the inputs do not fit its encoder.
        """
        choose("modality", modality, MODALITIES)
        trunk, head = self.trunks[modality], self.heads[modality]
        extra_layer = isinstance(head, nn.Linear)
        features, hidden = (trunk(inputs), None) if extra_layer else trunk.with_last_inputs(inputs)
        with torch.autocast(features.device.type, enabled=False):
            features = features.to(torch.promote_types(features.dtype, torch.float32))
            return head(features), features if extra_layer else hidden


def crossed(towers: Towers) -> Towers:
    """The same encoders with their extra layers exchanged: what the crossed momentum encoder copies and follows.

    The result shares all parameters with `towers`; nothing is copied, and it may be made anew for every update:

        keys = MomentumEncoder(crossed(towers), momentum)       copies: FC(h_a) = FC(f_v), FC(h_v) = FC(f_a)
        keys.update(crossed(towers))                            h_v <- f_v, h_a <- f_a, FC(h_a) <- FC(f_v), ...

    where f are the query encoders, h the key encoders and <- is their exponential moving average. Without the extra
    layer nothing is exchanged, and `keys` is the plain momentum encoder. So is MomentumEncoder(towers, momentum), for
    contrast within each modality.

    Raises:
        ValueError: if the encoders differ in width: neither could take the layer of the other.

    Source: CM-ACC, momentum update of the extra layer.
    """
    video, audio = (towers.trunks[modality] for modality in MODALITIES)
    _same_widths(video, audio, "each takes the extra layer of the other")
    exchanged = Towers(video, audio, extra_layer=False)
    exchanged.heads = nn.ModuleDict(dict(zip(MODALITIES, reversed(towers.heads.values()), strict=True)))
    return exchanged


def _same_widths(video: Encoder, audio: Encoder, why: str) -> None:
    """Raise ValueError, with the reason, if the widths differ."""
    if video.width != audio.width:
        raise ValueError(
            f"the encoders have the widths {video.width} and {audio.width}, but {why}; choose one width for both"
        )
