"""Convolutions that leave out what meets only padding."""

from torch import Tensor, nn
from torch.nn.functional import conv2d


class TrimmedConv2d(nn.Conv2d):
    """`torch.nn.Conv2d` without those taps of its kernel that meet padding at every place of the map.

    The result is the same: such taps multiply zeros only, and their gradient is zero. The last stage of a ResNet with
    the stem for large images sees an image of 32 pixels as a map of 1 x 1, where eight of nine taps go.

    Not for other padding than zeros, nor for dilation.
    """

    def forward(self, images: Tensor) -> Tensor:
        """Maps (N, out, H', W') of images (N, in, H, W)."""
        sizes = zip(images.shape[-2:], self.kernel_size, self.stride, self.padding, strict=True)
        (rows, row_padding), (columns, column_padding) = (trimmed(*axis) for axis in sizes)
        padding = (row_padding, column_padding)
        return conv2d(images, self.weight[:, :, rows, columns], self.bias, self.stride, padding, groups=self.groups)


def trimmed(size: int, kernel: int, stride: int, padding: int) -> tuple[slice, int]:
    """The taps of a kernel that meet one of `size` pixels at some place, and the padding they still need.

    Tap t of place j meets pixel j stride + t - padding. All taps stay where fewer would need other padding on the left
    than on the right.
    """
    places = _places(size, kernel, stride, padding)
    first, last = max(0, padding - (places - 1) * stride), min(kernel - 1, size - 1 + padding)
    if places < 1 or last < first or _places(size, last - first + 1, stride, padding - first) != places:
        return slice(None), padding
    return slice(first, last + 1), padding - first


def _places(size: int, kernel: int, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def trim(network: nn.Module) -> None:
    """Make every convolution of a network a `TrimmedConv2d`."""
    for module in network.modules():
        if type(module) is nn.Conv2d:
            module.__class__ = TrimmedConv2d  # the weights and all else stay
