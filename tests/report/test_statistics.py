"""The statistics behind verdicts, held against statsmodels, scipy, simulations and cases worked out by hand."""

import itertools
import math

import numpy as np
import pytest
import statsmodels.formula.api as smf
from pandas import DataFrame, Series
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from repro.report import statistics

NAN = math.nan


def made_up(rows=5, seeds=3, *, deviation=1.0, seed=0, missing=()):
    """Runs of rows with means 0, 1, 2, ... of which some are missing."""
    draws = np.random.default_rng(seed).standard_normal((rows, seeds)) * deviation
    runs = DataFrame(draws + np.arange(rows)[:, None], index=list("abcdefgh"[:rows]))
    for row, column in missing:
        runs.loc[row, column] = NAN
    return runs


def long(runs):
    return runs.stack().dropna().rename("x").rename_axis(["row", "seed"]).reset_index()


@pytest.mark.parametrize("missing", [(), (("a", 0), ("c", 2)), (("b", 0), ("b", 1))])
def test_the_pooled_deviation_is_the_residual_one_of_an_analysis_of_variance(missing):
    runs = made_up(missing=missing)
    fitted = smf.ols("x ~ C(row)", long(runs)).fit()
    value, df = statistics.pooled(runs)
    assert value == pytest.approx(math.sqrt(fitted.mse_resid))
    assert df == fitted.df_resid


def test_single_runs_have_no_deviation():
    value, df = statistics.pooled(made_up(seeds=1))
    assert math.isnan(value) and df == 0
    assert math.isnan(statistics.contrast(made_up(seeds=1), "a", "b").p())


def test_equal_runs_show_nothing_of_how_far_others_would_be():
    tied = DataFrame([[50.0, 50.0, 50.0], [49.75, 49.75, 49.75]], index=["a", "b"]) / 3  # sums that round
    for estimate in (statistics.contrast(tied, "a", "b"), statistics.paired_contrast(tied, "a", "b"),
                     statistics.from_number(tied, "a", 16.0)):
        assert estimate.value > 0 and math.isnan(estimate.p()) and math.isnan(estimate.error)
    tied.loc["c"] = 20.0, 20.5, 21.0  # one side that varies tells how far, by Welch
    kinds = Series({"a": "random", "b": "random", "c": "trained"})
    told = statistics.contrast(tied, "c", "a", statistics.deviations(tied, kinds))
    assert told.error == pytest.approx(0.5 / 3**0.5) and told.df == pytest.approx(2)


@pytest.mark.parametrize("missing", [(), (("a", 0), ("c", 2), ("e", 1))])
def test_a_contrast_is_that_of_the_linear_model_with_a_mean_for_each_row(missing):
    runs = made_up(missing=missing)
    test = smf.ols("x ~ C(row) - 1", long(runs)).fit().t_test([0, 0, 1, -1, 0])
    estimate = statistics.contrast(runs, "c", "d")
    assert estimate.value == pytest.approx(test.effect.item())
    assert estimate.error == pytest.approx(test.sd.item())
    assert estimate.p() == pytest.approx(test.pvalue.item())
    low, high = test.conf_int().ravel()
    assert estimate.reach() == pytest.approx((high - low) / 2)
    assert estimate.runs == tuple(runs.loc[["c", "d"]].count(axis=1))


def test_a_direction_and_a_bound_are_those_of_student():
    estimate = statistics.Estimate(1.3, 0.5, 7, (3, 3))
    upper = stats.t(7).sf((1.3 - 1) / 0.5)
    assert estimate.p("greater", 1) == pytest.approx(upper)
    assert estimate.p("less", 1) == pytest.approx(1 - upper)
    assert estimate.p("two-sided", 1) == pytest.approx(2 * upper)


@pytest.mark.parametrize("df", [4, 12, 52])
def test_a_difference_that_can_be_detected_is_seen_by_as_many_tests(df):
    """By the noncentral form of Student's t, which is exact."""
    difference = statistics.Estimate(0.0, 0.7, df, (3, 3)).detectable()
    seen = stats.nct(df, difference / 0.7).sf(stats.t(df).ppf(0.975))
    assert seen == pytest.approx(0.8, abs=0.02)


def test_a_row_that_scatters_is_judged_by_its_own_deviation():
    runs = made_up(rows=7, seeds=4, seed=3)
    runs.loc["a"] = 20 * made_up(rows=1, seeds=4, seed=5).loc["a"]
    assert statistics.scattered(runs.std(axis=1)) == ["a"]
    rest = statistics.pooled(runs.drop(index="a"))
    judged = statistics.deviations(runs)
    assert judged.loc["a", "value"] == pytest.approx(runs.loc["a"].std())
    assert judged.loc["b", "value"] == pytest.approx(rest.value)
    assert statistics.contrast(runs, "b", "c").error == pytest.approx(rest.value * math.sqrt(2 / 4))


def test_of_two_rows_with_a_deviation_each_the_contrast_is_that_of_welch():
    """Two kinds of one row each, so that nothing is pooled."""
    runs = made_up(rows=2, seeds=5, missing=[("b", 3)])
    runs.loc["a"] *= 2.5
    judged = statistics.deviations(runs, Series({"a": "trained", "b": "untrained"}))
    estimate = statistics.contrast(runs, "a", "b", judged)
    sides = [DescrStatsW(runs.loc[row].dropna()) for row in "ab"]
    _, p, df = CompareMeans(*sides).ttest_ind(usevar="unequal")
    assert estimate.p() == pytest.approx(p)
    assert estimate.df == pytest.approx(df)


@pytest.mark.parametrize("missing", [(), (("a", 0), ("c", 2)), (("a", 0), ("a", 1), ("a", 2))])
def test_two_way_residuals_are_those_of_rows_and_seeds(missing):
    runs = made_up(missing=missing).dropna(how="all") + np.array([0.0, 5.0, -3.0])
    fitted = smf.ols("x ~ C(row) + C(seed)", long(runs)).fit()
    value, df = statistics.two_way(runs)
    assert value == pytest.approx(math.sqrt(fitted.mse_resid))
    assert df == fitted.df_resid


@pytest.mark.parametrize("missing", [(), (("a", 0), ("f", 2)), (("a", 0), ("b", 0))])
def test_seeds_have_their_effects_within_a_block_of_rows(missing):
    runs = made_up(rows=6, missing=missing)
    runs.iloc[:3] += np.array([0.0, 5.0, -3.0])  # a seed is high in one block and low in the other
    runs.iloc[3:] += np.array([4.0, -6.0, 1.0])
    blocks = Series(["few", "few", "few", "many", "many", "many"], runs.index)
    fitted = [smf.ols("x ~ C(row) + C(seed)", long(runs[blocks == name])).fit() for name in ("few", "many")]
    value, df = statistics.two_way(runs, blocks[::-1])
    assert df == sum(block.df_resid for block in fitted)
    assert value == pytest.approx(math.sqrt(sum(block.ssr for block in fitted) / df))
    assert statistics.paired_contrast(runs, "e", "d", blocks).df == df
    assert value < statistics.two_way(runs).value / 2


def test_two_seeds_of_one_row_leave_nothing_for_two_way_residuals():
    value, df = statistics.two_way(made_up(rows=1, seeds=2))
    assert math.isnan(value) and df == 0


def test_a_paired_contrast_is_that_of_the_model_of_rows_and_seeds():
    runs = made_up(rows=4) + np.array([0.0, 9.0, -4.0])
    fitted = smf.ols("x ~ C(row) + C(seed)", long(runs)).fit()
    test = fitted.t_test("C(row)[T.c] - C(row)[T.b] = 0")
    estimate = statistics.paired_contrast(runs, "c", "b")
    assert estimate.value == pytest.approx(test.effect.item())
    assert estimate.error == pytest.approx(test.sd.item())
    assert estimate.p() == pytest.approx(test.pvalue.item())


def test_a_paired_contrast_is_over_shared_seeds():
    runs = made_up(rows=4, missing=[("a", 1)])
    estimate = statistics.paired_contrast(runs, "a", "b")
    assert estimate.runs == (2, 2)
    assert estimate.value == pytest.approx((runs.loc["a"] - runs.loc["b"])[[0, 2]].mean())


def test_a_row_that_scatters_is_judged_by_its_own_pairs_and_left_out_of_those_of_others():
    runs = made_up(rows=6, seeds=4, deviation=0.3) + np.array([0.0, 0.4, -0.2, 0.3])
    runs.loc["f"] = made_up(rows=1, seeds=4, seed=9).loc["a"] * 9
    assert statistics.scattered(runs.std(axis=1)) == ["f"]
    assert statistics.paired_contrast(runs, "b", "c") == statistics.paired_contrast(runs.drop(index="f"), "b", "c")
    own = statistics.paired_contrast(runs, "f", "b")
    test = stats.ttest_rel(runs.loc["f"], runs.loc["b"])
    assert own.p() == pytest.approx(test.pvalue) and own.df == test.df
    blocks = Series(["calm"] * 4 + ["wild"] * 2, runs.index)  # f scatters among its like
    assert statistics.paired_contrast(runs, "f", "e", blocks).df == statistics.two_way(runs, blocks).df


def test_rows_without_a_shared_seed_have_no_paired_contrast():
    estimate = statistics.paired_contrast(made_up(missing=[("a", 0), ("b", 1), ("b", 2)]), "a", "b")
    assert math.isnan(estimate.value) and math.isnan(estimate.p()) and estimate.runs == (0, 0)


@pytest.mark.parametrize("p", [[0.01], [0.02, 0.01, 0.04], [0.5, 0.9, 0.001, 0.001, 0.3]])
def test_holm_is_that_of_statsmodels(p):
    assert statistics.holm(p).tolist() == pytest.approx(multipletests(p, method="holm")[1])


def test_unknown_p_count_for_holm_and_stay_unknown():
    corrected = statistics.holm([0.01, NAN, 0.02])
    assert corrected[[0, 2]].tolist() == pytest.approx([0.03, 0.04])
    assert math.isnan(corrected[1])


def test_a_printed_number_is_one_more_run():
    runs = made_up()
    estimate = statistics.from_printed(runs, "c", 9.0)
    assert estimate.value == pytest.approx(runs.loc["c"].mean() - 9) and (estimate.df, estimate.runs) == (10, (3, 1))
    assert estimate.error == pytest.approx(statistics.pooled(runs).value * math.sqrt(4 / 3))


def test_agreement_with_five_numbers_is_that_of_all_their_permutations():
    runs = made_up(seeds=4, deviation=0.8)
    ours, printed = runs.mean(axis=1), Series([1.0, 0.0, 3.0, 1.5, 4.0], runs.index)
    found = statistics.agreement(runs, printed)
    orders = np.array([*itertools.permutations(printed)])
    rms = np.sqrt(((orders - ours.to_numpy()) ** 2).mean(axis=1))
    correlations = np.array([np.corrcoef(order, ours)[0, 1] for order in orders])
    assert found.rows == 5
    assert found.rms == pytest.approx(math.sqrt(((ours - printed) ** 2).mean()))
    assert found.r == pytest.approx(stats.pearsonr(ours, printed).statistic)
    assert found.constant_rms == pytest.approx(min(
        math.sqrt(((printed - constant) ** 2).mean()) for constant in np.linspace(0, 4, 4001)), abs=1e-5)
    assert found.shuffled_rms == (rms <= found.rms + 1e-9).mean()  # all 120 of them, and none drawn
    assert found.shuffled_r == (correlations >= found.r - 1e-9).mean()


def test_where_permutations_are_too_many_half_a_million_are_drawn():
    """Ten rows have 3,628,800 orders, nine 362,880."""
    column = np.arange(10.0)
    orders = statistics.permutations(column, np.random.default_rng(0))
    assert orders.shape == (statistics.SHUFFLES, 10) and (np.sort(orders, axis=1) == column).all()
    assert len(statistics.permutations(column[:9], np.random.default_rng(0))) == math.factorial(9)


def test_the_noise_ceiling_is_what_a_further_run_of_each_would_give():
    runs = made_up(rows=8, seeds=6, deviation=0.5, seed=2)
    found = statistics.agreement(runs, runs.mean(axis=1))
    deviation, means = statistics.pooled(runs).value, runs.mean(axis=1).to_numpy()
    assert found.ceiling_rms == pytest.approx(deviation * math.sqrt(stats.chi2(8).median() / 8), rel=0.03)
    noise = np.random.default_rng(7).normal(0, deviation, (4000, 8))
    assert found.ceiling_r == pytest.approx(np.median([np.corrcoef(means, means + draw)[0, 1] for draw in noise]),
                                            abs=0.01)


def test_agreement_needs_runs_and_printed_numbers():
    runs = made_up()
    with pytest.raises(ValueError, match="of which b lack"):
        statistics.agreement(runs, Series({"a": 1.0, "c": 2.0, "d": 3.0, "e": 4.0}))
    with pytest.raises(ValueError, match="2 rows"):
        statistics.agreement(runs[:2], Series({"a": 1.0, "b": 2.0}))
