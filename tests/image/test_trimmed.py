"""Trimmed convolutions against torch's own."""

import itertools

import pytest
import torch
import torchvision
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from repro.image.trimmed import TrimmedConv2d, trim


def assert_trimmed_is_whole(convolution, images):
    """Result, and gradients of weight, bias and images, are those of torch's convolution on equal weights."""
    outcomes = []
    for forward in (TrimmedConv2d.forward, nn.Conv2d.forward):
        leaf = images.clone().requires_grad_()
        convolution.zero_grad()
        result = forward(convolution, leaf)
        (result * torch.arange(result.numel(), dtype=result.dtype).reshape(result.shape).sin()).sum().backward()
        outcomes.append([result, leaf.grad, *(weight.grad.clone() for weight in convolution.parameters())])
    torch.testing.assert_close(*outcomes)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 3), (2, 1), (3, 2), (5, 4)])
def test_results_and_gradients_are_those_of_the_whole_kernel(height, width):
    torch.manual_seed(0)
    maps = torch.randn(2, 3, height, width, dtype=torch.float64)
    for kernel, stride, padding in itertools.product((1, 2, 3, 5, 7), (1, 2, 3), (0, 1, 2, 3)):
        if min(height, width) + 2 * padding >= kernel:
            assert_trimmed_is_whole(TrimmedConv2d(3, 4, kernel, stride=stride, padding=padding).double(), maps)
    by_axis = TrimmedConv2d(4, 6, (3, 5), stride=(2, 1), padding=(1, 2), groups=2).double()
    assert_trimmed_is_whole(by_axis, torch.randn(3, 4, height, width, dtype=torch.float64))


def test_products_left_out_of_a_resnet_at_32_pixels():
    """Of the last stage's four convolutions with 3 x 3 taps one keeps four of nine, at 2 x 2, and three keep one."""
    network, counts = torchvision.models.resnet18().eval(), []
    for change in (nn.Identity(), trim):
        change(network)
        with FlopCounterMode(display=False) as counter:
            network(torch.zeros(1, 3, 32, 32))
        counts.append(counter.get_total_flops() // 2)  # a product and a sum
    assert counts[0] - counts[1] == 256 * 512 * 5 + 3 * 512 * 512 * 8
