"""The statistics behind verdicts, against scipy and cases computed by hand."""

import math

import numpy as np
import pytest
from pandas import Series
from scipy import stats

from repro.data import manifest
from repro.report.verdicts import (
    EMBEDDED,
    FAILS,
    HOLDS,
    LEVELS,
    PAPER,
    QUICK,
    UNDECIDED,
    Deviation,
    Estimate,
    above,
    below,
    difference,
    different,
    from_printed,
    level_of,
    paired,
    pooled,
    rank,
    reproduced,
    within,
)

SURE = Estimate(10.0, 1.0, 10, "made up")
UNKNOWN = Estimate(50.0, math.nan, 0, "one run")
NAMES = "abcdefghij"


def known(mean, error=1.0, freedom=10):
    return Estimate(mean, error, freedom, "made up")


def named(*estimates):
    return dict(zip(NAMES, estimates, strict=False))


@pytest.mark.parametrize("bound", [-1.0, 0.0, 0.7])
def test_paired_differences_are_tested_as_scipy_does(bound):
    differences = Series([1.0, 0.2, -0.4, 2.0])
    expected = stats.ttest_1samp(differences, bound, alternative="greater")
    estimate = paired(differences)
    assert estimate.tail(bound) == pytest.approx(expected.pvalue)
    low, high = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (estimate.mean - estimate.reach(), estimate.mean + estimate.reach()) == pytest.approx((low, high))


def test_equal_differences_have_no_error():
    estimate = paired(Series([1.0, 1.0, 1.0]))
    assert (estimate.tail(0.0), estimate.tail(1.0), estimate.tail(2.0)) == (0.0, 0.5, 1.0)
    assert [above(named(estimate), margin) for margin in (0, 1, 2)] == [HOLDS, UNDECIDED, FAILS]


def test_seeds_are_paired_where_two_are_shared():
    first, second = Series({0: 1.0, 1: 5.0, 2: 9.0}), Series({1: 4.0, 2: 7.0, 7: 99.0})
    estimate = difference(first, second, Deviation(100.0, 5))
    assert estimate[:3] == pytest.approx((1.5, 0.5, 1))
    assert difference(Series(dtype=float), second, Deviation(1.0, 5)) is None


def test_pairs_that_differ_by_the_same_take_the_pooled_deviation():
    """Two shared seeds of 0.25 more each: no certainty, but an error of 3 sqrt(1/2 + 1/3)."""
    first, second = Series([50.25, 51.25]), Series([50.0, 51.0, 40.0])
    estimate = difference(first, second, Deviation(3.0, 5))
    assert estimate[1:3] == pytest.approx((3 * (1 / 2 + 1 / 3) ** 0.5, 5))
    assert above(named(difference(first, second[:2], Deviation(math.nan, 0)))) == UNDECIDED


def test_single_runs_take_the_pooled_deviation_as_students_two_sample_test_does():
    generator = np.random.default_rng(0)
    first, second = generator.normal(3, 1, 4), generator.normal(2, 1, 5)
    both = Series([*first, *second])
    deviation = pooled(both, Series([*"aaaa", *"bbbbb"]))
    expected = stats.ttest_ind(first, second, alternative="greater").pvalue
    estimate = difference(Series(first), Series(second, index=range(10, 15)), deviation)
    assert deviation.freedom == 7 and estimate.tail(0.0) == pytest.approx(expected)


def test_pooling_leaves_single_values_out():
    deviation = pooled(Series([1.0, 3.0, 50.0, 7.0, 7.0, 10.0]), Series([*"aabccc"]))
    assert deviation.freedom == 3 and deviation.value == pytest.approx(math.sqrt((2 + 6) / 3))
    assert math.isnan(pooled(Series([1.0, 2.0]), Series(["a", "b"])).value)
    assert pooled(Series(dtype=float), Series(dtype=object)).freedom == 0


def test_a_printed_number_counts_as_one_more_run():
    estimate = from_printed(Series([79.0, 81.0, 83.0]), 80.0, Deviation(2.0, 6))
    assert estimate[:3] == pytest.approx((1.0, 2.0 * math.sqrt(1 + 1 / 3), 6))
    assert from_printed(Series(dtype=float), 80.0, Deviation(2.0, 6)) is None


def test_prediction_intervals_cover_as_often_as_they_say():
    generator, inside = np.random.default_rng(0), 0
    for _ in range(500):
        runs = generator.normal(0, 1, 4)
        estimate = from_printed(Series(runs[:3]), runs[3], pooled(Series(runs[:3]), Series(["a"] * 3)))
        inside += reproduced(named(estimate), widest=math.inf) == HOLDS
    assert inside / 500 == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize(("estimates", "verdict"), [
    ([SURE], HOLDS),
    ([SURE, SURE], HOLDS),
    ([known(-10.0)], FAILS),
    ([SURE, known(-10.0)], FAILS),
    ([known(0.5)], UNDECIDED),
    ([SURE, known(0.5)], UNDECIDED),
    ([SURE, None], UNDECIDED),
    ([known(-10.0), None], FAILS),
    ([UNKNOWN], UNDECIDED),
    ([SURE, UNKNOWN], UNDECIDED),
    ([None], UNDECIDED),
])
def test_above_is_a_conjunction(estimates, verdict):
    assert above(named(*estimates)) == verdict
    opposite = [each and each._replace(mean=-each.mean) for each in estimates]
    assert below(named(*opposite)) == verdict


def test_one_of_many_that_falls_short_by_chance_decides_nothing():
    """t of -2 with 10 degrees of freedom has p = 0.037: enough alone, not as one of ten."""
    short = known(-2.0)
    assert above(named(short)) == FAILS
    assert above(named(short, *[SURE] * 9)) == UNDECIDED


@pytest.mark.parametrize(("mean", "verdict"), [(-0.5, HOLDS), (-1.5, FAILS)])
def test_margins(mean, verdict):
    assert above(named(known(mean, 0.1)), margin=-1.0) == verdict


@pytest.mark.parametrize(("mean", "error", "verdict"), [
    (0.0, 0.5, HOLDS), (1.0, 0.5, HOLDS), (-1.0, 0.5, HOLDS), (1.9, 0.5, UNDECIDED), (0.0, 3.0, UNDECIDED),
    (9.0, 0.5, FAILS), (-9.0, 0.5, FAILS), (0.0, math.nan, UNDECIDED),
])
def test_within_needs_evidence_on_both_sides(mean, error, verdict):
    assert within(named(known(mean, error, 30)), 2.0) == verdict


@pytest.mark.parametrize(("estimates", "verdict"), [
    ([known(0.5, 1.0)], HOLDS), ([known(0.5, 1.0), None], UNDECIDED), ([known(9.0, 1.0)], FAILS),
    ([known(0.5, 9.0)], UNDECIDED), ([known(99.0, 9.0)], FAILS), ([UNKNOWN], UNDECIDED), ([None], UNDECIDED),
    ([known(0.5, 1.0), known(-9.0, 1.0), None], FAILS),
])
def test_reproduced(estimates, verdict):
    assert reproduced(named(*estimates), widest=5.0) == verdict


def test_different_is_two_sided_and_never_fails():
    assert different(named(SURE, known(-10.0))) == HOLDS
    assert different(named(known(0.0))) == different(named(UNKNOWN)) == different({}) == UNDECIDED


def test_an_estimate_in_words():
    assert str(known(1.25, 0.5)) == "+1.25, s.e. 0.50 (made up)"
    assert known(0.125, 0.0625).in_words(4) == "+0.1250, s.e. 0.0625 (made up)"
    assert str(UNKNOWN) == "+50.00, s.e. unknown (one run)"


def test_a_mean_over_seeds_has_an_error_from_two_on():
    assert paired(Series([1.0, 3.0]))[:3] == pytest.approx((2.0, 1.0, 1))
    alone = paired(Series([1.0]))
    assert alone.mean == 1.0 and math.isnan(alone.error) and above({"": alone}) == UNDECIDED


@pytest.mark.parametrize(("dataset", "preset", "changed", "expected"), [
    ("ucla", "paper", False, PAPER), ("ucla", "quick", False, QUICK), ("ucla", "paper", True, QUICK),
    ("ntu (subset)", "paper", False, QUICK), ("cifar10 (my_copy.npz)", "quick", False, QUICK),
    ("synthetic", "paper", False, EMBEDDED), ("digits", "quick", True, EMBEDDED),
])
def test_only_the_recipe_on_official_data_is_a_reproduction(dataset, preset, changed, expected):
    assert level_of(dataset, preset, changed) == expected
    with pytest.raises(ValueError, match="dataset='uclla' is not one of"):
        level_of("uclla", preset)


def test_levels_by_how_far_they_carry_are_those_that_the_notebook_explains():
    ordered = ["closed form", "printed numbers", "paper recipe, real data", "quick, real data", "embedded data"]
    assert sorted(LEVELS, key=rank) == ordered
    text = (manifest.project_root() / "notebooks" / "claims.ipynb").read_text(encoding="utf-8")
    assert all(f"| {level} | {meaning} |" in text for level, meaning in LEVELS.items())
