"""ResNet trunks and projection heads for images."""

import functools

from torch import Tensor, nn
from torch.nn.functional import conv2d, normalize

from repro.contrast.momentum import GhostBatchNorm, dealt
from repro.image import HEADS, TRUNKS
from repro.recipe import choose


def trunk(name: str, small: bool, groups: int = 1) -> nn.Module:
    """A randomly initialised ResNet without its classifier: normalised images (N, 3, H, W) to pooled features (N, C).

    Args:
        name: "resnet18" (C = 512) or "resnet50" (C = 2048).
        small: for images of 32 to 96 pixels: the first convolution is 3x3 with stride 1 and no max-pooling follows
            (11.17 million parameters for ResNet-18).
        groups: of ghost batch normalisation, in consecutive parts of the batch; 1 is plain batch normalisation.

    Source: He et al. 2016; SCE supplement for the small stem, of all its data sets but ImageNet.
    """
    import torchvision  # which takes as long to import as torch, and whoever only reads results needs it not

    choose("trunk", name, TRUNKS)
    network = getattr(torchvision.models, name)(norm_layer=functools.partial(GhostBatchNorm, groups=groups))
    if small:
        network.conv1 = nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
        nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")  # as the other convolutions
        network.maxpool = nn.Identity()
    network.fc = nn.Identity()
    for module in network.modules():
        if type(module) is nn.Conv2d:
            module.__class__ = TrimmedConv2d  # the weights and all else stay
    return network


class TrimmedConv2d(nn.Conv2d):
    """`torch.nn.Conv2d` without those taps of its kernel that meet padding alone, where it has one place on the map.

    The result is the same: such taps multiply zeros only, and their gradient is zero. The last stage of a ResNet with
    the stem for large images sees an image of 32 pixels as a map of 1 x 1, where eight of nine taps go.

    Not for other padding than zeros, nor for dilation.
    """

    def forward(self, images: Tensor) -> Tensor:
        """Maps (N, out, H', W') of images (N, in, H, W)."""
        sizes = zip(images.shape[-2:], self.kernel_size, self.stride, self.padding, strict=True)
        taps, paddings = zip(*(_taps(*axis) for axis in sizes), strict=True)
        weight = self.weight[:, :, *taps]
        return conv2d(images, weight, self.bias, self.stride, paddings, groups=self.groups)


def _taps(size: int, kernel: int, stride: int, padding: int) -> tuple[slice, int]:
    """The taps of a kernel that meet one of `size` pixels, and the padding they still need; all, of several places.

    At a single place tap t meets pixel t - padding.
    """
    single = 0 <= size + 2 * padding - kernel < stride
    return (slice(padding, padding + size), 0) if single and padding < kernel else (slice(None), padding)


def projection_head(name: str, features: int, projection: int) -> nn.Sequential:
    """The two layers that follow the trunk in pre-training: (N, features) to (N, projection).

    "moco_v2", also JCL's, has as many hidden units as features; "sce" too, with batch normalisation over the whole
    batch even where the trunk has ghost groups.

    Source: Chen et al. 2020 (MoCo v2); SCE supplement, for ResNet-18, and its released code, whose head is not split.
    """
    if choose("head", name, HEADS) == "sce":
        first = [nn.Linear(features, features, bias=False), nn.BatchNorm1d(features)]
    else:
        first = [nn.Linear(features, features)]
    return nn.Sequential(*first, nn.ReLU(), nn.Linear(features, projection))


class ImageModel(nn.Module):
    """Trunk and projection head; the momentum encoder is a twin of the whole.

    Args:
        name, small: of `trunk`.
        head, projection: of `projection_head`; d is 128 of MoCo v2 and JCL, 256 of SCE (128 in its released code).
        groups: of the trunk's ghost batch normalisation, to which samples i mod groups belong while it trains; in a
            file of weights it is plain.
        unit: whether `forward` gives embeddings of unit length, or as the head leaves them.
    """

    def __init__(
        self, name: str, small: bool, head: str, projection: int, groups: int = 1, unit: bool = True
    ) -> None:
        super().__init__()
        self.architecture = {"name": name, "small": small, "head": head, "projection": projection}
        self.groups, self.unit = groups, unit
        self.trunk = trunk(name, small, groups)
        self.head = projection_head(head, TRUNKS[name], projection)

    def features(self, images: Tensor) -> Tensor:
        """Pooled features (N, C), in the precision they are computed in, of normalised images (N, 3, H, W).

        Raises ValueError if N is no multiple of the groups while the trunk trains.
        """
        if not self.trunk.training:
            return self.trunk(images)
        return dealt(self.trunk(dealt(images, self.groups)), len(images) // self.groups)

    def embed(self, features: Tensor) -> Tensor:
        """Embeddings (N, d) of unit length in float32, from pooled features (N, C)."""
        return normalize(self.head(features).float(), dim=1)

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings (N, d) in float32, of unit length unless `unit` is False, from images as in `features`."""
        features = self.features(images)
        return self.embed(features) if self.unit else self.head(features).float()
