"""Learners of small made-up images, and what their steps give."""

import torch
from made_up_images import made_up
from torch import nn

from repro.image.augment import normalisation
from repro.image.pretrain import Pretrainer
from repro.image.recipe import METHODS, paper

CPU = torch.device("cpu")
DIGITS = normalisation("digits")
TINY = {"size": 8, "resize": 10, "batch": 8, "epochs": 3, "dictionary": 20, "projection": 6, "momentum": 0.9,
        "warmup": 0, "learning_rate": 0.05, "precision": "float32", "channels_last": False, "groups": 1}
TRAINED = [name for name, method in METHODS.items() if method.loss]


def tiny(method="moco", **changes):
    return paper("digits", method, **TINY | changes)


def learner(method="moco", *, data=None, seed=3, **changes):
    return Pretrainer(tiny(method, **changes), data or made_up(), seed, CPU)


def trace(fast, steps):
    """The terms of so many steps."""
    return torch.stack([fast.step() for _ in range(steps)])


def by_name(fast, values):
    return dict(zip(fast.terms, values.tolist(), strict=True))


def modules_of(fast):
    """The parts that are modules, by name."""
    return {name: part for name in fast.parts if isinstance(part := getattr(fast, name), nn.Module)}


def in_float64(fast, patch):
    """The learner, in float64 from its views on, for as long as `patch`, a `pytest.MonkeyPatch`, holds."""
    narrowed = torch.Tensor.float
    patch.setattr(torch.Tensor, "float", lambda tensor: tensor if tensor.dtype == torch.float64 else narrowed(tensor))
    for module in modules_of(fast).values():
        module.double()
    for model in (fast.model, *([fast.keys.twin] if "keys" in fast.parts else [])):
        model.trunk.register_forward_pre_hook(lambda _, images: images[0].double())
    return fast
