"""Trunks against torchvision's own networks, and a head by its equation."""

import pytest
import torch
import torchvision
from torch import nn

from repro.image.model import TRUNKS, projection_head, trunk


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
