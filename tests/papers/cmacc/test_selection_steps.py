"""Selecting negatives in the plane: chances by autograd, an order that follows them, and what the figure shows."""

import numpy as np
import pytest
import torch
from drawn import assert_legible

from repro.contrast.negatives import select
from repro.papers.cmacc.selection_steps import LARGEST, SIZES, TITLES, order, pool, selection_steps, step
from repro.report.style import COLUMN

POOL = pool()


def gradient(candidate):
    """Of the cross-entropy with the pseudo-label, in the weight of the layer that makes the queries, by autograd."""
    weight = torch.eye(2, dtype=torch.float64, requires_grad=True)
    logits = (POOL.queries @ weight.T) @ candidate
    torch.nn.functional.cross_entropy(logits[None], logits.argmax()[None]).backward()
    return weight.grad.flatten()


def test_the_pool_has_categories_of_every_size_and_is_always_the_same():
    assert POOL.categories.bincount().tolist() == list(SIZES)
    assert POOL.candidates.shape == (sum(SIZES), 2) and POOL.queries.shape == (len(SIZES), 2)
    assert all(torch.equal(a, b) for a, b in zip(POOL, pool(), strict=True))
    nearest = torch.cdist(POOL.candidates, POOL.queries).argmin(1)
    assert (nearest == POOL.categories).double().mean() > 0.95     # categories can be told apart


@pytest.mark.parametrize("strategy", ["feature", "gradient"])
def test_chances_are_squared_distances_to_the_nearest_drawn(strategy):
    points = POOL.candidates if strategy == "feature" else torch.stack([gradient(row) for row in POOL.candidates])
    drawn = order(strategy, POOL, 3)[:5]
    nearest = ((points[:, None] - points[drawn]) ** 2).sum(2).amin(1)
    np.testing.assert_allclose(step(strategy, POOL, drawn).chances, nearest / nearest.sum(), atol=1e-9)


@pytest.mark.parametrize("strategy", TITLES)
def test_the_order_is_the_package_s_and_follows_the_chances(strategy):
    drawn, generator = order(strategy, POOL, 5), torch.Generator().manual_seed(5)
    expected = select(strategy, POOL.candidates, POOL.queries, POOL.queries, n_select=LARGEST, excluded=None,
                      generator=generator)
    assert torch.equal(drawn, expected) and len(drawn.unique()) == LARGEST
    np.testing.assert_allclose(step(strategy, POOL, drawn[:0]).chances, 1 / sum(SIZES))
    for count in range(LARGEST):
        chances = step(strategy, POOL, drawn[:count]).chances
        assert chances[drawn[count]] > 0 and not chances[drawn[:count]].any()
        assert float(chances.sum()) == pytest.approx(1)
    if strategy == "random":
        assert chances.unique().tolist() == [0, pytest.approx(1 / (sum(SIZES) - LARGEST + 1))]


@pytest.mark.parametrize("count", [0, 1, LARGEST])
def test_the_figure_shows_what_is_drawn(count):
    steps = {strategy: step(strategy, POOL, order(strategy, POOL, 0)[:count]) for strategy in TITLES}
    figure = selection_steps(POOL, steps)
    for axes, state in zip(figure.axes, steps.values(), strict=False):
        *_, drawn, last = (np.asarray(points.get_offsets()) for points in axes.collections)
        np.testing.assert_allclose(drawn.reshape(-1, 2), POOL.candidates[state.chosen])
        assert len(last) == min(count, 1)
        categories = len(POOL.categories[state.chosen].unique())
        assert f"{count} drawn, {categories} of 8 categories" in axes.get_title()
    assert_legible(figure, 2 * COLUMN)
