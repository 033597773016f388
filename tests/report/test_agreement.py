"""Agreement with the printed column, against hand-computed cases, numpy and scipy."""

import math

import numpy as np
import pytest
from pandas import DataFrame
from scipy.stats import spearmanr

from repro.report.agreement import apart, rank_correlation, seed_deviation, summary

NAMES = ["random", "AE", "CE", "AD", "AE+CE"]


def table(ours, published, std=1.0, n_seeds=3):
    rows = DataFrame({"objectives": NAMES[: len(ours)], "ours": ours, "published": published})
    return rows.assign(difference=rows["ours"] - rows["published"], std=std, n_seeds=n_seeds)


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


def test_pooled_deviation_is_that_of_the_residuals():
    seeds = [np.array([1.0, 3.0]), np.array([10.0, 11.0, 15.0]), np.array([7.0])]
    means, deviations = [s.mean() for s in seeds], [s.std(ddof=1) if len(s) > 1 else math.nan for s in seeds]
    rows = table(means, means, std=deviations, n_seeds=[2, 3, 1])
    residuals = np.concatenate([s - s.mean() for s in seeds])
    assert seed_deviation(rows) == pytest.approx(math.sqrt((residuals**2).sum() / 3))
    assert math.isnan(seed_deviation(table([1.0, 2.0], [1.0, 2.0], std=math.nan, n_seeds=1)))


def test_apart_lists_the_farthest_first_on_both_sides():
    found = apart(table([50.0, 50, 50, 50, 50], [50.0, 52.0, 52.1, 41, 49]))
    assert found["objectives"].tolist() == ["AD", "CE"]
    assert found["deviations"].tolist() == pytest.approx([9, -2.1])
    assert apart(table([50.0, 50], [0.0, 99], std=math.nan, n_seeds=1)).empty


def test_summary_in_words():
    assert "no printed number" in summary(table([50.0, 60], [math.nan, math.nan]))
    assert "One seed says nothing" in summary(table([50.0, 60, 70], [1.0, 2, 3], std=math.nan, n_seeds=1))
    assert summary(table([50.0, 60, 70], [50.0, 61, 71])).endswith("(2.0 points) stands no entry.")
    text = summary(table([50.0, 60, 70], [50.0, 61, 80]))
    assert "is 1.00 (2 objectives)" in text and text.endswith("stands 1 of 3 entries: CE (-10.0).")
