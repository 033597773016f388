"""Categories of uniform draws in closed form, against all draws there are and against simulation."""

import itertools

import numpy as np
import pytest

from repro.audiovisual.coverage import expected_categories, uniform_draws


@pytest.mark.parametrize("draws", [0, 1, 2, 4])
def test_expectation_is_the_mean_over_all_draws(draws):
    """Of six items, three of which are of one category, two of two others, one of none."""
    kinds = [0, 0, 0, 1, 2, None]
    counts = [len(set(drawn) - {None}) for drawn in itertools.product(kinds, repeat=draws)]
    assert expected_categories([3 / 6, 1 / 6, 1 / 6], draws) == pytest.approx(np.mean(counts))


def test_expectation_is_that_of_a_simulation():
    generator = np.random.default_rng(0)
    shares = generator.dirichlet(np.ones(40))
    counts = [len(set(generator.choice(40, 64, p=shares))) for _ in range(4000)]
    assert expected_categories(shares, 64) == pytest.approx(np.mean(counts), abs=4 * np.std(counts) / 4000**0.5)


def test_ends():
    assert expected_categories([1.0], 5) == 1
    assert expected_categories([], 5) == 0
    assert expected_categories(np.full(7, 1 / 7), 10_000) == pytest.approx(7)


@pytest.mark.parametrize(("shares", "draws", "message"), [
    ([0.7, 0.7], 3, "sum of at most 1"), ([-0.1, 0.5], 3, "should be probabilities"),
    ([np.nan, 0.5], 3, "should be probabilities"), ([0.5, 0.5], -1, "draws=-1 should be a number from 0"),
])
def test_what_is_no_distribution_is_refused(shares, draws, message):
    with pytest.raises(ValueError, match=message):
        expected_categories(shares, draws)


def test_uniform_draws_from_the_actions_of_ucf101():
    """Typed from hand-computed values; at M = 128, 72.0 % of 101 categories, where the paper claims 30 to 40 %."""
    found = uniform_draws().set_index(["categories", "draws"]).round(1)
    assert found.loc[101].to_numpy().tolist() == [[27.5, 27.3, 86.1], [47.6, 47.1, 74.3], [72.7, 72.0, 56.8]]
    assert found.loc[(51, 128)].tolist() == [47.0, 92.1, 36.7]
    assert len(uniform_draws([5], [2, 3])) == 2
