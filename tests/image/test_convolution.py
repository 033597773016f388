"""Convolutions without the taps that meet only padding, against torch's own."""

import itertools

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from repro.image.model import TrimmedConv2d, trunk


def both(convolution, images):
    """Result, and gradients of weight, bias and images, of the trimmed convolution and of torch's on equal weights."""
    plain = nn.Conv2d.forward
    found = []
    for forward in (TrimmedConv2d.forward, plain):
        leaf = images.clone().requires_grad_()
        convolution.zero_grad()
        result = forward(convolution, leaf)
        (result * torch.arange(result.numel(), dtype=result.dtype).reshape(result.shape).sin()).sum().backward()
        found.append([result, leaf.grad, *(each.grad.clone() for each in convolution.parameters())])
    return zip(*found, strict=True)


SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2), (5, 4)]


@pytest.mark.parametrize("height, width", SIZES)
def test_results_and_gradients_are_those_of_the_whole_kernel(height, width):
    torch.manual_seed(0)
    images = torch.randn(2, 3, height, width, dtype=torch.float64)
    tried = 0
    for kernel, stride, padding in itertools.product((1, 2, 3, 5, 7), (1, 2, 3), (0, 1, 2, 3)):
        if min(height, width) + 2 * padding < kernel:
            continue
        convolution = TrimmedConv2d(3, 4, kernel, stride=stride, padding=padding).double()
        for ours, whole in both(convolution, images):
            torch.testing.assert_close(ours, whole)
        tried += 1
    assert tried > 20


def test_kernel_image_and_padding_that_differ_by_axis():
    torch.manual_seed(0)
    convolution = TrimmedConv2d(4, 6, (3, 5), stride=(2, 1), padding=(1, 2), groups=2).double()
    for ours, whole in both(convolution, torch.randn(3, 4, 1, 2, dtype=torch.float64)):
        torch.testing.assert_close(ours, whole)


@pytest.mark.parametrize(
    "changes", [{"padding": "same"}, {"padding_mode": "circular", "padding": 1}, {"dilation": 2, "padding": 2}]
)
def test_other_convolutions_are_computed_whole(changes):
    torch.manual_seed(0)
    convolution = TrimmedConv2d(2, 2, 3, **changes)
    images = torch.randn(1, 2, 4, 4)
    assert torch.equal(convolution(images), nn.Conv2d.forward(convolution, images))


def test_products_left_out_of_a_resnet_at_32_pixels():
    """Of the last stage's four convolutions with 3 x 3 taps one keeps four of nine, at 2 x 2, and three keep one."""
    network, image = trunk("resnet18", small=False).eval(), torch.zeros(1, 3, 32, 32)
    counts = []
    for kind in (TrimmedConv2d, nn.Conv2d):
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                module.__class__ = kind
        with FlopCounterMode(display=False) as counter:
            network(image)
        counts.append(counter.get_total_flops() // 2)  # a product and a sum
    trimmed_products, whole_products = counts
    assert whole_products - trimmed_products == 256 * 512 * 5 + 3 * 512 * 512 * 8
