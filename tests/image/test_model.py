"""Trunks against torchvision's own networks, their convolutions against torch's, and a head by its equation."""

import itertools

import pytest
import torch
import torchvision
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from repro.image.model import TRUNKS, TrimmedConv2d, projection_head, trunk


def torchvisions(name, small):
    """torchvision's network with the parts SCE's supplement changes."""
    network = getattr(torchvision.models, name)()
    if small:
        network.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        network.maxpool = nn.Identity()
    network.fc = nn.Identity()
    return network


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("name", "small"), [("resnet18", True), ("resnet18", False), ("resnet50", True)])
def test_features_are_those_of_torchvisions_network(name, small, training):
    torch.manual_seed(0)
    own, expected = trunk(name, small).double().train(training), torchvisions(name, small).double().train(training)
    expected.load_state_dict(own.state_dict())
    batch = torch.randn(2, 3, *[8 if small else 32] * 2, dtype=torch.float64)
    features = own(batch)
    assert features.shape == (2, TRUNKS[name])
    torch.testing.assert_close(features, expected(batch))
    for statistic, other in zip(own.buffers(), expected.buffers(), strict=True):
        torch.testing.assert_close(statistic, other)


def test_the_projector_of_sce_by_its_equation():
    torch.manual_seed(0)
    head, features = projection_head("sce", 6, 4).double(), torch.randn(10, 6, dtype=torch.float64)
    hidden = features @ head[0].weight.T
    hidden = ((hidden - hidden.mean(0)) / (hidden.var(0, correction=0) + 1e-5).sqrt()).clamp(min=0)
    torch.testing.assert_close(head(features), hidden @ head[3].weight.T + head[3].bias)


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
    counts = []
    for network in (torchvisions("resnet18", False), trunk("resnet18", False)):
        with FlopCounterMode(display=False) as counter:
            network.eval()(torch.zeros(1, 3, 32, 32))
        counts.append(counter.get_total_flops() // 2)  # a product and a sum
    assert counts[0] - counts[1] == 256 * 512 * 5 + 3 * 512 * 512 * 8
