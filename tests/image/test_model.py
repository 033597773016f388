"""Trunks against torchvision's own networks, heads and embeddings by their equations."""

import copy

import pytest
import torch
import torchvision
from torch import nn

from repro.image.model import TRUNKS, ImageModel, projection_head, trunk


def images(count=6, size=8, **options):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0), **options)


# ---------------------------------------------------------------------------------------------- networks


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
    batch = images(2, 32 if not small else 8).double()
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


def test_sample_i_trains_in_group_i_mod_groups():
    torch.manual_seed(0)
    ghost = ImageModel("resnet18", True, "sce", 16, groups=3).double()
    plain = ImageModel("resnet18", True, "sce", 16).double()
    plain.load_state_dict(ghost.state_dict())
    batch, running = images(12, dtype=torch.float64), []
    apart = torch.empty(12, 512, dtype=torch.float64)
    for group in range(3):
        alone = copy.deepcopy(plain)
        apart[group::3] = alone.features(batch[group::3])
        running.append(alone.trunk.layer4[1].bn2.running_var)
    torch.testing.assert_close(ghost.features(batch), apart)
    torch.testing.assert_close(ghost.trunk.layer4[1].bn2.running_var, torch.stack(running).mean(0))
    whole = copy.deepcopy(ghost).embed(apart)  # the projector sees the whole batch
    torch.testing.assert_close(whole, plain.embed(apart))
