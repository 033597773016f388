"""Agreement with the printed column, against hand-computed cases, numpy and scipy."""

import math

import numpy as np
import pytest
from pandas import DataFrame
from scipy.stats import spearmanr

from repro.papers.taxonomy.agreement import apart, rank_correlation, seed_deviation, summary

NAMES = ["random", "AE", "CE", "AD", "AE+CE"]


def table(ours, published, std=1.0, n_seeds=3):
    rows = DataFrame({"objectives": NAMES[: len(ours)], "ours": ours, "published": published})
    return rows.assign(difference=rows["ours"] - rows["published"], std=std, n_seeds=n_seeds, preset="paper")


def test_rank_correlation_is_scipys_without_random():
    ours, published = [99.0, 50, 60, 60, 80], [1.0, 55, 50, 70, 72]
    assert rank_correlation(table(ours, published)) == pytest.approx(spearmanr(ours[1:], published[1:]).statistic)
    assert rank_correlation(table([0.0, 1, 2, 3, 4], [9.0, 10, 20, 30, 40])) == 1


def test_rank_correlation_leaves_out_what_is_not_printed_or_not_run():
    ours, published = [1.0, 50, math.nan, 70, 60], [1.0, 20, 30, math.nan, 10]
    assert rank_correlation(table(ours, published)) == pytest.approx(-1)


@pytest.mark.parametrize("ours", [[1.0], [1.0, 2.0]])
def test_rank_correlation_of_too_little_is_not_a_number(ours):
    assert math.isnan(rank_correlation(table(ours, [1.0, 2.0, 3.0][: len(ours)])))


def test_pooled_deviation_is_that_of_the_residuals_of_trained_entries():
    seeds = [np.array([0.0, 90.0]), np.array([1.0, 3.0]), np.array([10.0, 11.0, 15.0]), np.array([7.0])]
    means, deviations = [s.mean() for s in seeds], [s.std(ddof=1) if len(s) > 1 else math.nan for s in seeds]
    rows = table(means, means, std=deviations, n_seeds=[2, 2, 3, 1])
    residuals = np.concatenate([s - s.mean() for s in seeds[1:]])
    assert seed_deviation(rows) == pytest.approx(math.sqrt((residuals**2).sum() / 3))
    assert math.isnan(seed_deviation(table([1.0, 2.0], [1.0, 2.0], std=math.nan, n_seeds=1)))
    assert math.isnan(seed_deviation(table([1.0], [1.0])))


def test_apart_lists_the_farthest_first_on_both_sides():
    """s = 1 and n = 3: one deviation of a difference is sqrt(4 / 3) = 1.1547 points, two are 2.3094."""
    found = apart(table([90.0, 50, 50, 50, 50], [50.0, 52.3, 52.32, 41, 49]))
    assert found["objectives"].tolist() == ["AD", "CE"]
    assert found["deviations"].tolist() == pytest.approx([9 / 1.1547005, -2.32 / 1.1547005])
    assert apart(table([50.0, 50], [0.0, 99], std=math.nan, n_seeds=1)).empty


@pytest.mark.parametrize(("seeds", "deviation"), [(1, 2**0.5), (2, 1.5**0.5), (4, 1.25**0.5), (10**6, 1.0)])
def test_a_mean_of_more_seeds_is_judged_more_strictly(seeds, deviation):
    """One entry of n seeds among others whose deviation is 2: two deviations are 4 sqrt(1 + 1/n) points."""
    for difference, listed in ((4 * deviation + 1e-3, ["CE"]), (4 * deviation - 1e-3, [])):
        rows = table([1.0, 60, 50 + difference], [1.0, 60, 50], std=[9.0, 2.0, 2.0 if seeds > 1 else math.nan],
                     n_seeds=[3, 3, seeds])
        assert apart(rows)["objectives"].tolist() == listed


def test_summary_in_words():
    assert "no printed number" in summary(table([50.0, 60], [math.nan, math.nan]))
    assert "One seed says nothing" in summary(table([50.0, 60, 70], [1.0, 2, 3], std=math.nan, n_seeds=1))
    text = summary(table([50.0, 60, 70], [90.0, 61, 71]))
    assert "between seeds is 1.0 points. " in text
    assert text.endswith("(pooled over 2 objectives, 4 degrees of freedom) away: 0 of 2 objectives.")
    away = table([50.0, 60, 70], [50.0, 61, 80]).assign(departures="head=mlp")
    assert summary(away).startswith("Paper recipe, head=mlp: ")
    text = summary(table([50.0, 60, 70], [50.0, 61, 80]))
    assert text.startswith("Paper recipe: ") and "is 1.00 (2 objectives)" in text
    assert text.endswith(" away: 1 of 2 objectives, CE (-10.0).")


def test_summary_counts_only_what_the_deviation_rests_on():
    """Three seeds of one objective and two of another, one of a third; random initialisation does not count."""
    rows = table([50.0, 60, 70, 80], [50.0, 61, 71, 81], std=[3.0, 1.0, 2.0, math.nan], n_seeds=[9, 3, 2, 1])
    text = summary(rows)
    assert "is 1.4 points." in text and "(pooled over 2 objectives, 3 degrees of freedom)" in text  # sqrt((2 + 4) / 3)
    assert summary(rows.assign(preset="quick")).startswith("Quick recipe: ")
