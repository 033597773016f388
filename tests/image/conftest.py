"""Fixtures that several files of this folder ask for by name."""

import pytest


@pytest.fixture
def network(request, monkeypatch):
    """What makes the trunk with plain normalisation: a tiny one, unless a test asks for a ResNet-18."""
    import made_up_images
    import torchvision
    from torch import nn

    kind = getattr(request, "param", "tiny")
    if kind == "tiny":
        made_up_images.use_tiny_trunk(monkeypatch)
        return lambda: made_up_images.tiny_trunk(nn.BatchNorm2d)

    def resnet18():
        trunk = torchvision.models.resnet18()
        trunk.fc = nn.Identity()
        if kind == "small stem":
            trunk.conv1, trunk.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        return trunk

    return resnet18


@pytest.fixture(scope="module")
def tiny_trunk():
    """All networks of a file have the tiny trunk."""
    from made_up_images import use_tiny_trunk

    with pytest.MonkeyPatch.context() as patch:
        use_tiny_trunk(patch)
        yield
