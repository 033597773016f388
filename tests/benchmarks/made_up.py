"""Sequences to measure time on, which nothing is learned from."""

import torch
from torch import Tensor

from repro.skeleton.data import SkeletonSet


def made_up(lengths: Tensor, features: int) -> SkeletonSet:
    """Smooth sequences of these lengths (n,), all for training."""
    draws = torch.Generator().manual_seed(0)
    frames = torch.randn(int(lengths.sum()), features, generator=draws).cumsum(0).sin()
    ones, every = torch.ones_like(lengths), torch.ones(len(lengths), dtype=torch.bool)
    return SkeletonSet(
        name="made-up", frames=frames, lengths=lengths, labels=ones, train=every, test=~every, views=ones,
        subjects=ones, actions=("a", "b"), bones=((0, 1),), digest="made up",
    )
