"""Categories of draws in closed form, against simulation; all draws there are, in `test_study`."""

import numpy as np
import pytest

from repro.audiovisual.coverage import expected_categories, seeded_categories


@pytest.mark.parametrize(("rho", "counts"), [
    (0.05, [40, 20, 10, 5, 1, 1]), (0.4, [12] * 8), (1.0, [40, 20, 10, 5, 1, 1]), (3.5, [12] * 8)])
def test_draws_that_shun_categories_are_those_of_a_simulation(rho, counts):
    kinds, random, found = np.repeat(np.arange(len(counts)), counts), np.random.default_rng(0), []
    for _ in range(400):
        left = np.ones(len(kinds), bool)
        for _ in range(9):
            weights = left * np.where(np.isin(kinds, kinds[~left]), rho, 1.0)
            left[random.choice(len(kinds), p=weights / weights.sum())] = False
        found.append(len(set(kinds[~left])))
    assert seeded_categories(counts, 9, rho) == pytest.approx(np.mean(found), abs=0.35)


def test_without_preference_they_are_uniform_draws_and_with_the_strongest_none_repeats():
    shares = np.array([40, 20, 10, 5, 1, 1])
    assert seeded_categories(shares, 9, 1.0) == pytest.approx(expected_categories(shares / 77, 9, 77), abs=0.35)
    assert seeded_categories([*shares, 0], 9, 1e-4) == pytest.approx(6, abs=0.01)
    assert seeded_categories(np.full(101, 40), 128, 0.5) == pytest.approx(83, abs=1)


@pytest.mark.parametrize(("categories", "draws", "expected"), [
    (101, 32, 27.5), (101, 64, 47.6), (101, 128, 72.7), (51, 128, 47.0)])
def test_uniform_draws_from_the_actions_of_ucf101(categories, draws, expected):
    """Typed from hand-computed values; 72.7 are 72 % of 101 categories, where the paper claims 30 to 40 %."""
    assert expected_categories(np.full(categories, 1 / categories), draws) == pytest.approx(expected, abs=0.05)
