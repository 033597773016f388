"""Smooth made-up sequences, and a small learner of them."""

import torch

from repro.skeleton.data import SkeletonSet
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import SkeletonRecipe

FRAMES, FEATURES, SAMPLES = 12, 6, 21
TINY = {"units": 7, "projection": 5, "dictionary": 11, "sequence_dictionary": 9, "batch": 4, "td_crop": 8,
        "momentum": 0.9, "epochs": 3, "learning_rate": 0.01, "precision": "float32"}
CPU = torch.device("cpu")


def made_up(samples=SAMPLES, frames=FRAMES, seed=0, shortest=1):
    """Smooth random sequences of `shortest` to `frames` frames; every sixth belongs to the test split."""
    draws = torch.Generator().manual_seed(seed)
    sequences = torch.randn(samples, frames, FEATURES, generator=draws).cumsum(1) / 3
    lengths = torch.randint(shortest, frames + 1, (samples,), generator=draws)
    lengths[:3] = torch.tensor([frames, shortest, frames - 1])[:samples]
    test = torch.arange(samples) % 6 == 5
    frames = torch.cat([sequence[:length] for sequence, length in zip(sequences, lengths, strict=True)])
    return SkeletonSet(
        name="made-up", frames=frames, lengths=lengths, labels=torch.arange(samples) % 3, train=~test, test=test,
        views=torch.ones(samples, dtype=torch.int64), subjects=torch.ones(samples, dtype=torch.int64),
        actions=("a", "b", "c"), bones=((0, 1),), digest="made up",
    )


def tiny(objectives, **changes):
    return SkeletonRecipe(objectives=objectives, **(TINY | changes))


def learner(objectives, seed=0, data=None, **changes):
    return Pretrainer(tiny(objectives, **changes), data or made_up(), seed, CPU)
