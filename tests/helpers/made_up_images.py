"""Small made-up image sets and a tiny trunk, on which a training step takes milliseconds."""

import torch
from torch import nn

from repro.contrast.momentum import GhostBatchNorm
from repro.image import model
from repro.image.data import ImageSet

FEATURES = 12  # of the tiny trunk


def made_up(train=20, test=9, unlabeled=0, size=10, seed=0):
    """Noise around a colour of each of three classes; the parts lie mixed, and unlabeled images have the label -1."""
    draws = torch.Generator().manual_seed(seed)
    part = torch.tensor([0] * train + [1] * test + [2] * unlabeled)
    part = part[torch.randperm(len(part), generator=draws)]
    labels = torch.randint(3, (len(part),), generator=draws)
    colours = torch.tensor([[200, 60, 60], [60, 200, 60], [60, 60, 200]])[labels]
    images = colours[:, :, None, None] + 50 * torch.randn(len(part), 3, size, size, generator=draws)
    return ImageSet(
        name="digits", images=images.clamp(0, 255).byte(), labels=labels.where(part < 2, -1),
        pretrain=part == (2 if unlabeled else 0), train=part == 0, test=part == 1,
        classes=("red", "green", "blue"), digest="made up",
    )


def tiny_trunk(normalisation):
    """Two convolutions; `normalisation` makes the layer for a number of channels.

    Smooth: where an image is black, all pixels would cross the kink of a ReLU together when one rounds differently.
    """
    first = [nn.Conv2d(3, 8, 3, stride=2, bias=False), normalisation(8), nn.SiLU()]
    second = [nn.Conv2d(8, FEATURES, 3, padding=1, bias=False), normalisation(FEATURES), nn.SiLU()]
    return nn.Sequential(*first, *second, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def use_tiny_trunk(patch):
    """Let "resnet18" stand for the tiny trunk until `patch`, a `pytest.MonkeyPatch`, is undone."""
    patch.setitem(model.TRUNKS, "resnet18", FEATURES)
    patch.setattr(model, "trunk", lambda name, small, groups=1: tiny_trunk(lambda n: GhostBatchNorm(n, groups)))
