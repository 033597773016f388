"""The published code's choice against a slow transcription."""

import itertools
import math

import numpy as np
import pytest
import torch
from candidates import arguments, chosen, drawing
from torch.nn.functional import cross_entropy


def slow_released(candidates, queries, n_select, seed, temperature=1.0):
    """The rows of every cluster nearest to its mean, several if equally near; only the uniforms are shared."""
    features = candidates.clone().requires_grad_()
    loss = cross_entropy(queries @ features.T / temperature, torch.arange(len(queries)))
    (gradients,) = torch.autograd.grad(loss, features)
    rows = [row.numpy() for row in gradients]
    uniforms = torch.rand(n_select, generator=drawing(seed), dtype=torch.float64).tolist()
    seeds = [int(uniforms[0] * len(rows))]
    for uniform in uniforms[1:]:
        weights = [min(np.linalg.norm(row - rows[other]) for other in seeds) for row in rows]
        if sum(weights) == 0:
            weights = [float(n not in seeds) for n in range(len(rows))]
        sums = list(itertools.accumulate(weights))
        seeds.append(next(n for n, total in enumerate(sums) if total > uniform * sums[-1]))
    centres, owner = [rows[n] for n in seeds], None
    while True:
        distances = [[math.inf if c is None else np.linalg.norm(row - c) for c in centres] for row in rows]
        before, owner = owner, [min(range(len(centres)), key=line.__getitem__) for line in distances]
        if before == owner:
            break
        members = [[row for row, own in zip(rows, owner, strict=True) if own == c] for c in range(len(centres))]
        centres = [np.mean(own, axis=0) if own else None for own in members]
    nearest = []
    for c in range(len(centres)):
        own = {n: distances[n][c] for n in range(len(rows)) if owner[n] == c}
        if own:
            nearest.append({n for n, distance in own.items() if distance <= min(own.values()) + 1e-12})
    return nearest


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_released_equals_a_slow_transcription(temperature):
    tensors = arguments(40, 6, 4, 3)
    for seed in range(8):
        expected = slow_released(*tensors[:2], 7, seed, temperature)
        assert len(expected) == 7
        rows = chosen("released", tensors, n_select=7, seed=seed, temperature=temperature)
        assert all(row in nearest for row, nearest in zip(rows, expected, strict=True))
        feature = chosen("feature", tensors, n_select=7, seed=seed)
        assert not all(row in nearest for row, nearest in zip(feature, expected, strict=True))


def test_released_fills_up_when_clusters_are_lost():
    """Only 4 different points for 7 clusters: the published code returns 4 rows."""
    candidates, queries, inputs = arguments(4, 3, 4, 3)
    candidates = candidates[[0, 1, 2, *[3] * 17]]
    for seed in range(5):
        expected = slow_released(candidates, queries, 7, seed)
        assert len(expected) == 4
        rows = chosen("released", (candidates, queries, inputs), n_select=7, seed=seed)
        assert all(row in nearest for row, nearest in zip(rows[:4], expected, strict=True))


def test_released_asks_for_the_batch_in_front():
    with pytest.raises(ValueError, match="for each of the 5 queries, but there are 4 candidates; put the batch"):
        chosen("released", arguments(4, 5, 3, 2), n_select=2)
