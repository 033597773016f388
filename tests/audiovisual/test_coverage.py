"""Categories of uniform draws in closed form, against all draws there are and against simulation."""

import itertools

import numpy as np
import pytest

from repro.audiovisual.coverage import expected_categories, uniform_draws


@pytest.mark.parametrize("draws", [0, 1, 2, 4])
@pytest.mark.parametrize("replaced", [True, False])
def test_expectation_is_the_mean_over_all_draws(draws, replaced):
    """Of six items, three of which are of one category, two of two others, one of none."""
    kinds = [0, 0, 0, 1, 2, None]
    ways = itertools.product(kinds, repeat=draws) if replaced else itertools.permutations(kinds, draws)
    counts = [len(set(drawn) - {None}) for drawn in ways]
    population = {} if replaced else {"population": 6}
    assert expected_categories([3 / 6, 1 / 6, 1 / 6], draws, **population) == pytest.approx(np.mean(counts))


def test_ends():
    assert expected_categories([1.0], 5) == 1 and expected_categories([], 5) == 0
    assert expected_categories(np.full(7, 1 / 7), 10_000) == pytest.approx(7)


def test_uniform_draws_from_the_actions_of_ucf101():
    """Typed from hand-computed values; at M = 128, 72.0 % of 101 categories, where the paper claims 30 to 40 %."""
    found = uniform_draws().set_index(["categories", "draws"]).round(1)
    assert found.loc[101].to_numpy().tolist() == [[27.5, 27.3, 86.1], [47.6, 47.1, 74.3], [72.7, 72.0, 56.8]]
    assert found.loc[(51, 128)].tolist() == [47.0, 92.1, 36.7]
