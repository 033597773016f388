"""Selecting negatives in the plane: chances by autograd, and an order that follows them."""

import numpy as np
import pytest
import torch

from repro.contrast.negatives import select
from repro.papers.cmacc.selection_steps import LARGEST, SIZES, TITLES, chances, order, pool

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
    np.testing.assert_allclose(chances(strategy, POOL, drawn), nearest / nearest.sum(), atol=1e-9)


@pytest.mark.parametrize("strategy", TITLES)
def test_the_order_is_the_package_s_and_follows_the_chances(strategy):
    drawn, generator = order(strategy, POOL, 5), torch.Generator().manual_seed(5)
    expected = select(strategy, POOL.candidates, POOL.queries, POOL.queries, n_select=LARGEST, excluded=None,
                      generator=generator)
    assert torch.equal(drawn, expected) and len(drawn.unique()) == LARGEST
    np.testing.assert_allclose(chances(strategy, POOL, drawn[:0]), 1 / sum(SIZES))
    for count in range(LARGEST):
        found = chances(strategy, POOL, drawn[:count])
        assert found[drawn[count]] > 0 and not found[drawn[:count]].any()
        assert float(found.sum()) == pytest.approx(1)
    if strategy == "random":
        assert found.unique().tolist() == [0, pytest.approx(1 / (sum(SIZES) - LARGEST + 1))]
