"""Draws of k-means++ against the chances of every sequence; the published code's choice against a transcription."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch
from candidates import arguments, drawing, rows_of, slow_distances
from scipy.stats import chisquare
from torch.nn.functional import cross_entropy

from repro.contrast.active import draw, kmeans_plusplus, seeds


def chances(distances, length):
    """Probability of every sequence of `length` distinct rows under k-means++, from squared distances (P, P)."""
    expected = {}
    for rows in itertools.permutations(range(len(distances)), length):
        expected[rows] = 1 / len(distances)
        for turn in range(1, length):
            nearest = distances[list(rows[:turn])].double().min(0).values
            expected[rows] *= (nearest[rows[turn]] / nearest.sum()).item()
    return expected


def significance(counts, expected):
    """p value that the draws counted by row sequence follow the expected chances; the rare ones count as one."""
    cells = np.array([(counts[rows], counts.total() * chance) for rows, chance in expected.items()])
    rare = cells[:, 1] < 10
    assert rare.mean() < 0.5
    return chisquare(*np.vstack([cells[~rare], cells[rare].sum(0)] if rare.any() else cells).T).pvalue


def test_draws_of_points_follow_the_squared_distance():
    """First, second and third row together; draws in proportion to the distance, or uniform, are told apart."""
    points, generator = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.3], [-1.6, 0.4], [0.8, 1.5]]), drawing(1)
    counts = Counter(tuple(kmeans_plusplus(points, n_select=3, generator=generator).tolist()) for _ in range(1500))
    distances = slow_distances(points)
    assert significance(counts, chances(distances, 3)) > 0.01
    assert significance(counts, chances(distances.sqrt(), 3)) < 1e-6
    assert significance(counts, chances(1 - torch.eye(5), 3)) < 1e-6


@pytest.mark.parametrize("uniform", [0.0, 0.3, 1 - 2.0**-53])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_draw_never_lands_on_a_weight_of_zero(dtype, uniform):
    """Whatever the uniform is, at the ends of a pool of the paper's size too."""
    weights = torch.rand(38_400, generator=drawing(0), dtype=dtype) * 1e-3
    weights[:100] = weights[-100:] = 0
    weights[torch.rand(38_400, generator=drawing(1)) < 0.5] = 0
    free = torch.ones_like(weights, dtype=torch.bool)
    row = draw(weights, free, torch.tensor(uniform, dtype=torch.float64))
    assert row.shape == (1,)
    assert weights[row.item()] > 0
    positive = weights.nonzero().squeeze(1)
    assert uniform == 0.3 or row.item() == positive[0 if uniform == 0 else -1].item()


def test_a_draw_divides_the_unit_interval_as_exact_arithmetic_does():
    weights = torch.tensor([1.0, 3.0, 0.0, 0.1, 4.0, 1e-20, 2.0])
    exact = [Fraction(weight) for weight in weights.tolist()]
    free = torch.ones(7, dtype=torch.bool)
    for step in range(400):
        uniform = (step + 0.5) / 400
        sums = itertools.accumulate(exact)
        expected = next(row for row, total in enumerate(sums) if total > Fraction(uniform) * sum(exact))
        assert draw(weights, free, torch.tensor(uniform, dtype=torch.float64)).item() == expected


def test_draws_without_any_weight_are_uniform_over_the_free():
    free = torch.tensor([False, True, True, False, True, False])
    uniforms = torch.tensor([0.0, 0.3, 0.34, 0.66, 0.67, 1 - 2.0**-53], dtype=torch.float64)
    rows = [draw(torch.zeros(6), free, uniform).item() for uniform in uniforms]
    assert rows == [1, 1, 2, 2, 4, 4]


def test_a_drawn_row_never_returns_whatever_its_distance_is_rounded_to():
    class Noisy:
        norms = torch.ones(6)

        def to(self, index):
            return torch.zeros(6).index_fill_(0, index, 1e-7)

    for seed in range(5):
        rows = seeds(Noisy(), torch.ones(6, dtype=torch.bool), 6, drawing(seed))
        assert sorted(rows.tolist()) == list(range(6))


def test_rows_equal_to_a_drawn_one_come_last():
    """Of 1,000 rows in float32 only 4 differ: they are drawn first, then all others alike."""
    distinct = torch.rand(4, 300, generator=drawing(0)), torch.rand(4, 60, generator=drawing(1))
    kind = torch.arange(1000) % 4
    for factors in (distinct, distinct[:1], (distinct[0] + 100,)):
        for seed in range(5):
            rows = kmeans_plusplus(*(factor[kind] for factor in factors), n_select=40, generator=drawing(seed))
            assert sorted(kind[rows[:4]].tolist()) == [0, 1, 2, 3]
            assert len(set(rows.tolist())) == 40
            assert kind[rows[4:]].bincount(minlength=4).min() > 2


def test_a_huge_candidate_does_not_hide_the_differences_of_the_others():
    candidates = torch.randn(40, 8, generator=drawing(0))
    candidates[17] *= 1e15
    rows = kmeans_plusplus(candidates, n_select=10, generator=drawing(2)).tolist()
    assert rows[1] == 17
    rest = candidates.clone()
    rest[17] = rest[rows[0]]
    nearest = slow_distances(rest)[rows[0]]
    uniforms = torch.rand(10, generator=drawing(2), dtype=torch.float64)
    assert rows[2] == torch.searchsorted(nearest.double().cumsum(0), uniforms[2] * nearest.double().sum()).item()


def test_points_far_from_the_origin_are_told_apart_in_float32():
    points = torch.randn(200, 16, generator=drawing(0)).mul(256).round() / 256
    expected = kmeans_plusplus(points.double(), n_select=50, generator=drawing(1))
    moved = points + 8192
    assert torch.equal(moved - 8192, points)
    assert kmeans_plusplus(moved, n_select=50, generator=drawing(1)).tolist() == expected.tolist()


def test_a_row_that_differs_by_more_than_rounding_is_drawn_before_equal_ones():
    """By 8e-6 of the sum of both squared norms, where rounding is taken for 3e-6."""
    a, b = (torch.randn(1, 512, generator=drawing(seed)).repeat(50, 1) for seed in (0, 1))
    b[7] *= 1.004
    for seed in range(5):
        assert 7 in kmeans_plusplus(a, b, n_select=2, generator=drawing(seed)).tolist()


# ---------------------------------------------------------------------------------------------- released


def slow_released(candidates, queries, n_select, seed, temperature=1.0):
    """The row of every cluster nearest to its mean, of equally near ones the first; only the uniforms are shared."""
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
    centres, owner = [rows[n] for n in seeds], [0] * len(rows)
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
            nearest.append(next(n for n, distance in own.items() if distance <= min(own.values()) + 1e-12))
    return nearest


@pytest.mark.parametrize(("rows", "n_select", "temperature"), [(40, 7, 1.0), (40, 7, 0.4), (5, 1, 1.0)])
def test_released_equals_a_slow_transcription(rows, n_select, temperature):
    """Of a single cluster k-means ends in its first round, before any mean is taken."""
    tensors = arguments(rows, 5, 4, 3)
    for seed in range(8):
        expected = slow_released(*tensors[:2], n_select, seed, temperature)
        assert len(expected) == n_select
        assert rows_of("released", tensors, n_select=n_select, seed=seed, temperature=temperature) == expected
        assert n_select == 1 or rows_of("feature", tensors, n_select=n_select, seed=seed) != expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_of_a_cluster_of_two_released_takes_the_earlier_row(dtype):
    """Ten candidates in seven clusters: most that are no single points are pairs."""
    for seed in range(40):
        candidates, queries, inputs = arguments(10, 4, 6, 3, seed=seed)
        expected = slow_released(candidates, queries, 7, seed)
        rows = rows_of("released", [part.to(dtype) for part in (candidates, queries, inputs)], n_select=7, seed=seed)
        assert rows[: len(expected)] == expected, seed


def test_released_fills_up_when_clusters_are_lost():
    """Only 4 different points for 7 clusters: the published code returns 4 rows."""
    candidates, queries, inputs = arguments(4, 3, 4, 3)
    candidates = candidates[[0, 1, 2, *[3] * 17]]
    for seed in range(5):
        assert len(slow_released(candidates, queries, 7, seed)) == 4
        rows = rows_of("released", (candidates, queries, inputs), n_select=7, seed=seed)
        assert sorted(min(row, 3) for row in rows[:4]) == [0, 1, 2, 3]  # which of equal rows, rounding decides
        assert len(set(rows)) == 7
