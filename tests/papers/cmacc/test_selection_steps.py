import numpy as np
import pytest
import torch
from drawn import assert_legible

from repro.contrast.negatives import kmeans_plusplus, select
from repro.papers.cmacc.selection_steps import LARGEST, SIZES, order, pool, selection_steps, step
from repro.report.style import COLUMN

STRATEGIES = ("random", "feature", "gradient")


def gradient(candidate, queries):
    """Of the cross-entropy with the pseudo-label, in the weight of the layer that makes the queries, by autograd."""
    weight = torch.eye(2, dtype=torch.float64, requires_grad=True)
    logits = (queries @ weight.T) @ candidate
    torch.nn.functional.cross_entropy(logits[None], logits.argmax()[None]).backward()
    return weight.grad.flatten()


def embeddings(strategy, given):
    if strategy == "feature":
        return given.candidates
    return torch.stack([gradient(candidate, given.queries) for candidate in given.candidates])


def test_the_pool_has_categories_of_every_size_and_is_always_the_same():
    given = pool()
    assert given.categories.bincount().tolist() == list(SIZES)
    assert given.candidates.shape == (sum(SIZES), 2) and given.queries.shape == (len(SIZES), 2)
    again = pool()
    assert all(torch.equal(a, b) for a, b in zip(given, again, strict=True))
    assert not torch.equal(given.candidates, pool(1).candidates)
    nearest = torch.cdist(given.candidates, given.queries).argmin(1)
    assert (nearest == given.categories).double().mean() > 0.95     # categories can be told apart


@pytest.mark.parametrize("strategy", ["feature", "gradient"])
def test_chances_are_squared_distances_to_the_nearest_chosen(strategy):
    given = pool()
    points = embeddings(strategy, given)
    chosen = order(strategy, given, 3)[:5]
    nearest = ((points[:, None] - points[chosen]) ** 2).sum(2).amin(1)
    expected = nearest / nearest.sum()
    np.testing.assert_allclose(step(strategy, given, chosen).chances, expected, atol=1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_chances_before_the_first_draw_are_equal_and_those_of_the_chosen_are_0(strategy):
    given = pool()
    drawn = order(strategy, given, 0)
    first = step(strategy, given, drawn[:0])
    np.testing.assert_allclose(first.chances, 1 / sum(SIZES))
    for count in (1, 4, LARGEST):
        each = step(strategy, given, drawn[:count])
        assert each.chosen.tolist() == drawn[:count].tolist()
        assert not each.chances[each.chosen].any() and float(each.chances.sum()) == pytest.approx(1)
    if strategy == "random":
        assert each.chances.unique().tolist() == [0, pytest.approx(1 / (sum(SIZES) - LARGEST))]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_order_is_the_package_s_and_follows_the_chances(strategy):
    given = pool()
    drawn = order(strategy, given, 5)
    assert len(drawn.unique()) == LARGEST
    generator = torch.Generator().manual_seed(5)
    if strategy == "feature":
        expected = kmeans_plusplus(given.candidates, n_select=LARGEST, generator=generator)
    else:
        expected = select(strategy, given.candidates, given.queries, given.queries, n_select=LARGEST, excluded=None,
                          generator=generator)
    assert torch.equal(drawn, expected)
    for count in range(LARGEST):
        assert step(strategy, given, drawn[:count]).chances[drawn[count]] > 0


@pytest.mark.parametrize("count", [0, 1, LARGEST])
def test_the_figure_shows_what_is_drawn(count):
    given = pool()
    steps = {strategy: step(strategy, given, order(strategy, given, 0)[:count]) for strategy in STRATEGIES}
    figure = selection_steps(given, steps)
    for axes, each in zip(figure.axes, steps.values(), strict=False):
        *_, drawn, last = (np.asarray(points.get_offsets()) for points in axes.collections)
        np.testing.assert_allclose(drawn.reshape(-1, 2), given.candidates[each.chosen])
        assert len(last) == min(count, 1)
        found = len(given.categories[each.chosen].unique())
        assert f"{count} drawn, {found} of 8 categories" in axes.get_title()
    figure.draw_without_rendering()
    assert_legible(figure, 2 * COLUMN)
