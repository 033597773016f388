"""Selecting negatives in the plane: chances by autograd, and an order that follows them."""

import numpy as np
import pytest
import torch

from repro.contrast.active import select
from repro.papers.cmacc.selection_steps import CANDIDATE, DRAWN, LARGEST, SIZES, TITLES, chances, pool, steps

POOL = pool()


def gradient(candidate):
    """Of the cross-entropy with the pseudo-label, in the weight of the layer that makes the queries, by autograd."""
    weight = torch.eye(2, dtype=torch.float64, requires_grad=True)
    logits = (POOL.queries @ weight.T) @ candidate
    torch.nn.functional.cross_entropy(logits[None], logits.argmax()[None]).backward()
    return weight.grad.flatten()


def drawn(strategy, seed):
    """What the package selects, in its order."""
    generator = torch.Generator().manual_seed(seed)
    return select(strategy, POOL.candidates, POOL.queries, POOL.queries, n_select=LARGEST, excluded=None,
                  generator=generator)


def test_the_pool_has_categories_of_every_size_and_is_always_the_same():
    assert POOL.categories.bincount().tolist() == list(SIZES)
    assert all(torch.equal(a, b) for a, b in zip(POOL, pool(), strict=True))
    nearest = torch.cdist(POOL.candidates, POOL.queries).argmin(1)
    assert (nearest == POOL.categories).double().mean() > 0.95     # categories can be told apart


@pytest.mark.parametrize("strategy", ["feature", "gradient"])
def test_chances_are_squared_distances_to_the_nearest_drawn(strategy):
    points = POOL.candidates if strategy == "feature" else torch.stack([gradient(row) for row in POOL.candidates])
    first = drawn(strategy, 3)[:5]
    nearest = ((points[:, None] - points[first]) ** 2).sum(2).amin(1)
    np.testing.assert_allclose(chances(strategy, POOL, first), nearest / nearest.sum(), atol=1e-9)


@pytest.mark.parametrize(("number", "strategy"), [*enumerate(TITLES)])
def test_steps_are_the_package_s_draws_and_follow_the_chances(number, strategy):
    expected = drawn(strategy, 5)
    rows = steps(5)
    title = rows["strategy"].unique()[number]
    covered = len(set(POOL.categories[expected].tolist()))
    assert title == f"{TITLES[strategy]}: {LARGEST} drawn are of {covered} of {len(SIZES)} categories"
    for count, step in rows[rows["strategy"] == title].groupby("drawn"):
        np.testing.assert_array_equal(step[["x", "y"]], POOL.candidates)
        marked = step["kind"] == DRAWN
        assert sorted(np.flatnonzero(marked)) == sorted(expected[:count].tolist())
        assert step["size"].iloc[int(expected[count - 1])] == step["size"][marked].max()
        assert (step["size"] == step["chance"])[step["kind"] == CANDIDATE].all()
        assert not step["chance"][marked].any() and step["chance"].sum() == pytest.approx(100)
        if strategy == "random":
            assert sorted(step["chance"].unique()) == [0, pytest.approx(100 / (sum(SIZES) - count))]
