"""The evaluator of claims: which rows are compared, what the rules make of made-up results, and what is said of it."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from pandas import DataFrame, Series
from scipy import stats

from repro.report import claims, statistics
from repro.report.claims import (
    BUNDLED,
    CLOSED,
    MISSING,
    PAPER,
    PRINTED,
    SHORTENED,
    Claim,
    Results,
    compared,
    conjunction,
    exact,
    held,
    level_of,
    paired,
)
from repro.report.statistics import Estimate

NAN = math.nan
SURE, UNKNOWN = Estimate(10.0, 1.0, 10, (3, 3)), Estimate(50.0, NAN, 0, (1, 1))


def known(value, error=1.0, df=10):
    return Estimate(value, error, df, (3, 3))


def named(*estimates):
    return dict(zip("abcdefghij", estimates, strict=False))


def results(values, *, level=PAPER, apart=("method", "keys"), **columns):
    """Rows of methods and keys with the runs given: (method, keys) -> values by seed."""
    rows = [{"method": method, "keys": keys, "ours": value, "seed": seed, "printed": NAN, **columns}
            for (method, keys), runs in values.items() for seed, value in enumerate(runs)]
    return Results(DataFrame(rows), [*apart], level)


def runs(values):
    """The same as `statistics` takes them."""
    return DataFrame.from_dict({f"{method}, {keys}": row for (method, keys), row in values.items()}, orient="index")


def printed(**columns):
    return Results(DataFrame(columns), [], PRINTED)


def judged(source, first, second=None, rule="above", **options):
    verdict, _, level, numbers = held(Claim(first=first, second=second, rule=rule, **options), lambda name: source)
    return verdict, level, numbers


GRID = {(method, keys): [base + 10 * keys + 0.1 * seed for seed in (-1, 0, 1)]
        for method, base in (("moco", 0.0), ("sce", 5.0), ("jcl", 7.0)) for keys in (1, 2)}
SCE, MOCO, ONE_KEY = {"method": "sce"}, {"method": "moco"}, {"keys": 1}


def sides(first, second, source=None, columns=("method", "keys")):
    """The values of both sides of each comparison, in these columns."""
    rows, pairs, _ = paired(source or results(GRID), first, second)
    recipes = rows.drop_duplicates("recipe").set_index("recipe")[[*columns]]
    return [(*recipes.loc[one], *recipes.loc[other]) for one, other in pairs.values()]


def test_what_the_second_side_does_not_name_is_as_in_the_first_and_several_values_are_all_compared():
    assert sides(SCE, MOCO) == [("sce", 1, "moco", 1), ("sce", 2, "moco", 2)]
    assert sides(SCE | {"keys": 2}, MOCO) == [("sce", 2, "moco", 2)]
    assert sides({"keys": 2}, ONE_KEY) == [(name, 2, name, 1) for name in ("moco", "sce", "jcl")]
    assert sides({"method": "jcl", "keys": [1, 2]}, {"method": ["moco", "sce"]}) == [
        ("jcl", 1, "moco", 1), ("jcl", 1, "sce", 1), ("jcl", 2, "moco", 2), ("jcl", 2, "sce", 2)]


def test_any_is_every_other_value_but_networks_that_are_not_trained():
    source = results(GRID | {("random", 1): [1.0, 2.0]})
    assert sides(SCE | ONE_KEY, {"method": "any"}, source) == [("sce", 1, "moco", 1), ("sce", 1, "jcl", 1)]
    assert sides({"method": "any", "keys": 1}, SCE, source) == [("moco", 1, "sce", 1), ("jcl", 1, "sce", 1)]
    samplers = Results(DataFrame({"sampler": ["random", "active"], "seed": 0, "ours": [1.0, 2.0]}), [], SHORTENED)
    assert sides({"sampler": "active"}, {"sampler": "any"}, samplers, ["sampler"]) == [("active", "random")]  # trained


def test_columns_of_one_experiment_match_those_of_another_that_lacks_them():
    rows = DataFrame({"experiment": ["noise", "usual", "usual"], "objectives": ["CD", "CD", "AE"],
                      "ad_weight": [25.0, NAN, NAN], "seed": 0, "ours": [1.0, 3.0, 9.0]})
    source = Results(rows, ["experiment", "objectives", "ad_weight"], PAPER)
    assert sides({"experiment": "noise"}, {"experiment": "usual"}, source, ["objectives"]) == [("CD", "CD")]


@pytest.mark.parametrize(("unfinished", "first", "second", "verdict"), [
    (("ressl", 1), {"method": "jcl", "keys": 1}, {"method": "any"}, "undecided"),
    (("ressl", 1), {"method": "jcl", "keys": 1}, MOCO, "holds"),  # of which nothing is missing
    (("moco", 4), SCE, MOCO, "holds"),  # with as many keys there is no other
    (("moco", 2), SCE, MOCO, "undecided"), (("moco", 2), SCE | {"keys": "any"}, MOCO, "undecided"),
    (("moco", 2), SCE | {"keys": [1, 2]}, MOCO, "undecided"), (("moco", 2), SCE | {"keys": 2}, MOCO, "not run"),
])
def test_nothing_holds_of_what_is_asked_for_and_not_finished(unfinished, first, second, verdict):
    """Whether a claim names it, leaves it open or takes any value."""
    source = results({place: values for place, values in GRID.items() if place != unfinished})
    source = source._replace(unfinished=DataFrame([unfinished], columns=["method", "keys"]))
    assert judged(source, first, second)[0] == verdict


def test_differences_have_the_error_of_all_rows_and_say_what_differs():
    numbers = compared(results(GRID), SCE, MOCO)
    error = statistics.pooled(runs(GRID)).value * math.sqrt(2 / 3)
    assert {name: number.value for name, number in numbers.items()} == pytest.approx(
        {"sce over moco, keys 1": 5.0, "sce over moco, keys 2": 5.0})
    assert [(number.error, number.df) for number in numbers.values()] == [pytest.approx((error, 12))] * 2
    assert [*compared(results(GRID), SCE | ONE_KEY, MOCO)] == ["sce over moco"]


def test_untrained_networks_and_targets_are_pooled_apart():
    rows = DataFrame([
        {"method": method, "target": target, "seed": seed, "ours": scale * seed}
        for target, scales in (("one", (1.0, 4.0)), ("two", (3.0, 9.0)))
        for method, scale in zip(("moco", "random"), scales, strict=True) for seed in (-1, 1)])
    numbers = compared(Results(rows, ["method", "target"], PAPER), {"method": "moco"}, {"method": "random"})
    assert {name: number.error for name, number in numbers.items()} == pytest.approx(
        {"moco over random, one": math.sqrt(1 + 16), "moco over random, two": math.sqrt(9 + 81)})
    named = Results(rows.replace("random", "scratch"), ["method", "target"], PAPER, paired=True)
    renamed = compared(named, {"method": "moco"}, {"method": "scratch"})
    assert [number.error for number in renamed.values()] == [number.error for number in numbers.values()]


def test_seeds_pair_rows_that_share_all_but_what_is_compared():
    """With one key a seed is high, with two it is low: within a number of keys nothing is left of that."""
    values = {(method, keys): [base + sign * effect + noise * seed for seed, effect in enumerate((0.0, 8.0, 3.0))]
              for method, base, noise in (("moco", 0.0, 0.1), ("sce", 1.0, 0.3), ("jcl", 2.0, 0.2))
              for keys, sign in ((1, 1.0), (2, -1.0))}
    paired = results(values)._replace(paired=True)
    numbers = compared(paired, SCE, MOCO)
    left = [smf.ols("ours ~ C(method) + C(seed)", paired.rows.query("keys == @keys")).fit() for keys in (1, 2)]
    df = sum(block.df_resid for block in left)
    deviation = math.sqrt(sum(block.ssr for block in left) / df)
    assert [number.error for number in numbers.values()] == pytest.approx([deviation * math.sqrt(2 / 3)] * 2)
    assert {number.df for number in numbers.values()} == {df}
    assert compared(paired, {"keys": 2}, {"keys": 1})["keys 2 over keys 1, sce"].error > 10 * deviation


def test_where_seeds_are_blocks_all_recipes_share_their_effects_and_whole_blocks_count():
    """Beside least squares of recipes and seeds; as soon as there are as many blocks as the claim asks for."""
    generator = np.random.default_rng(5)
    values = {place: [base + block + noise for block, noise in zip((0.0, 6.0, 3.0, 9.0), generator.normal(size=4),
                                                                   strict=True)]
              for base, place in enumerate([("random", NAN), ("moco", 1), ("sce", 1), ("sce", 2)])}
    values["random", NAN][3] = NAN  # of this block a run failed
    source, whole = results(values), results({place: row[:3] for place, row in values.items()})
    fitted = smf.ols("ours ~ C(recipe) + C(seed)", whole.rows.assign(recipe=whole.rows["method"].str.cat(
        whole.rows["keys"].map(str)))).fit()
    claim = {"first": SCE | ONE_KEY, "second": {"method": "random"}}
    numbers = judged(source, **claim, blocks=3)[2]
    assert [(number.error, number.df, number.runs) for number in numbers.values()] == [
        (pytest.approx(math.sqrt(fitted.mse_resid * 2 / 3)), fitted.df_resid, (3, 3))]
    assert judged(source, **claim, blocks=4)[0] == "not run"
    waiting = source._replace(unfinished=DataFrame([("ressl", 1)], columns=["method", "keys"]))
    assert judged(waiting, **claim, blocks=3)[0] == "not run"


def test_a_row_that_does_not_use_a_field_is_compared_and_paired_with_those_of_all_its_values():
    values = {("moco", NAN): [1.0, 5.0, 9.0], ("sce", 1): [2.1, 5.9, 10.2], ("sce", 2): [0.9, 5.2, 8.9]}
    numbers = compared(results(values)._replace(paired=True), SCE, MOCO)
    error = statistics.two_way(runs(values)).value * math.sqrt(2 / 3)
    assert {name: number.error for name, number in numbers.items()} == pytest.approx(
        {"sce over moco, keys 1": error, "sce over moco, keys 2": error})
    assert [*compared(results(values), MOCO, SCE)] == ["moco over sce, keys 1", "moco over sce, keys 2"]
    assert [*compared(results(values), MOCO, 5)] == ["ours minus 5"]


def test_paired_runs_are_pooled_within_their_experiment():
    values = {("moco", 1): [1.0, 1.2, 0.9], ("sce", 1): [2.1, 2.0, 2.2]}
    wild = {("moco", 1): [0.0, 9.0, -9.0], ("sce", 1): [5.0, -9.0, 3.0]}
    rows = pd.concat([results(values, experiment="calm").rows, results(wild, experiment="wild").rows])
    both = Results(rows.reset_index(drop=True), ["experiment", "method"], PAPER, paired=True)
    numbers = compared(both, SCE, MOCO)
    for name, alone in (("calm", values), ("wild", wild)):
        assert numbers[f"sce over moco, {name}"].error == pytest.approx(
            statistics.two_way(runs(alone)).value * math.sqrt(2 / 3))


def test_a_value_that_no_row_compared_has_is_missing():
    """Three keys are of another method, which is compared with nothing."""
    source = results(GRID | {("byol", 3): [9.0, 9.5, 9.7]})
    numbers = compared(source, SCE | {"keys": [1, 3]}, MOCO)
    assert numbers["keys=3"] is MISSING and numbers["sce over moco, keys 1"].value == pytest.approx(5)
    assert judged(source, SCE | {"keys": [1, 3]}, MOCO)[0] == "undecided"


@pytest.mark.parametrize(("numbers", "verdict"), [
    ([SURE], "holds"), ([SURE, SURE], "holds"), ([known(-10.0)], "fails"), ([SURE, known(-10.0)], "fails"),
    ([known(0.5)], "undecided"), ([SURE, known(0.5)], "undecided"), ([SURE, MISSING], "undecided"),
    ([known(-10.0), MISSING], "fails"), ([UNKNOWN], "undecided"), ([SURE, UNKNOWN], "undecided"),
    ([exact(0.1), exact(2.0)], "holds"), ([exact(0.1), exact(-0.1)], "fails"), ([exact(0.0)], "undecided"),
])
def test_above_is_a_conjunction_and_below_its_mirror(numbers, verdict):
    assert conjunction("above", named(*numbers))[0] == verdict
    assert conjunction("below", named(*(number._replace(value=-number.value) for number in numbers)))[0] == verdict
    lower = named(*(number._replace(value=number.value - 3) for number in numbers))
    assert conjunction("above", lower, -3.0)[0] == verdict


@pytest.mark.parametrize(("value", "error", "verdict"), [
    (0.0, 0.5, "holds"), (1.0, 0.5, "holds"), (-1.0, 0.5, "holds"), (1.9, 0.5, "undecided"), (0.0, 3.0, "undecided"),
    (9.0, 0.5, "fails"), (-9.0, 0.5, "fails"), (0.0, NAN, "undecided"), (-1.9, 0.0, "holds"), (2.1, 0.0, "fails"),
])
def test_within_needs_evidence_on_both_sides(value, error, verdict):
    assert conjunction("within", named(known(value, error, 30)), 2.0)[0] == verdict


def test_different_is_two_sided_and_never_fails():
    assert conjunction("different", named(SURE, known(-10.0)))[0] == "holds"
    for number in (known(0.0), UNKNOWN):
        assert conjunction("different", named(number))[0] == "undecided"


def test_a_verdict_has_the_least_error_at_which_it_would_be_decided_so():
    """Of a conjunction that holds the p of its weakest part, of one that fails the least that Holm gives."""
    verdict, p = conjunction("above", named(known(2.0), SURE))
    assert verdict == "holds" and p == pytest.approx(stats.t(10).sf(2.0))
    verdict, p = conjunction("above", named(known(-3.0), known(-3.5), SURE))
    assert verdict == "fails" and p == pytest.approx(3 * stats.t(10).sf(3.5))
    assert math.isnan(conjunction("above", named(known(0.5)))[1])


@pytest.mark.parametrize(("shares", "verdict"), [
    ((72.0, 57.0), "fails"), ((72.0, 37.0), "undecided"), ((31.0, 37.0), "holds")])
def test_a_sentence_whose_readings_disagree_is_undecided(shares, verdict):
    source = Results(DataFrame({"classes": [101, 51], "percent": shares}), [], CLOSED)
    assert judged(source, {"classes": "any"}, 40.0, "below by reading", measure="percent")[0] == verdict


@pytest.mark.parametrize(("steps", "verdict"), [((0, 10, 20, 30), "holds"), ((0, 10, 5, 30), "fails")])
def test_rises_from_each_value_to_the_next(steps, verdict):
    values = {("random", number + 1): [step, step + 0.5, step + 1] for number, step in enumerate(steps)}
    found, _, numbers = judged(results(values), {"method": "random", "keys": [1, 2, 3, 4]}, rule="rises")
    assert found == verdict and len(numbers) == 3 and numbers["keys 2 over keys 1"].value == pytest.approx(10)


def samplers(gaps, spread=0.5):
    """Accuracies of two samplers whose difference at each M is given, three seeds each."""
    noise = np.random.default_rng(0)
    rows = [{"sampler": sampler, "batch": batch, "target": "one", "seed": seed,
             "ours": 50 + gap * (sampler == "random") + spread * noise.standard_normal()}
            for batch, gap in gaps.items() for sampler in ("random", "ohem") for seed in range(3)]
    return Results(DataFrame(rows), ["sampler", "batch", "target"], SHORTENED)


def test_a_gap_that_shrinks_is_a_contrast_of_four_means():
    source = samplers({32: 9.0, 64: 5.0, 128: 1.0})
    sides = {"sampler": "random", "batch": [32, 128]}, {"sampler": "ohem"}, "gap shrinks"
    verdict, _, numbers = judged(source, *sides, margin=1)
    rows = source.rows.assign(row=source.rows["sampler"] + source.rows["batch"].astype(str))
    fitted = smf.ols("ours ~ C(row) - 1", rows).fit()
    weights = Series(0, fitted.params.index)
    weights[[f"C(row)[{name}]" for name in ("random32", "ohem32", "random128", "ohem128")]] = [1, -1, -1, 1]
    test, number = fitted.t_test(weights.to_numpy()), numbers["random over ohem, one, batch 32 to 128"]
    assert verdict == "holds" and number.df == fitted.df_resid
    assert number[:2] == pytest.approx((test.effect.item(), test.sd.item()))
    assert judged(samplers({32: 1.0, 128: 9.0}), *sides, margin=1)[0] == "fails"
    assert judged(samplers({32: 9.0, 128: 1.0}), *sides, margin=0.05)[0] == "fails"  # 0.45 - 1 is below zero


def test_a_mean_is_held_against_a_number_with_its_own_error():
    values = {("moco", 1): [98.9, 99.1, 99.3], ("sce", 1): [99.5, 99.1, 99.0]}
    verdict, _, numbers = judged(results(values), {"method": "any", "keys": 1}, 99.0, "within", margin=2.0)
    expected = statistics.pooled(runs(values)).value / math.sqrt(3)
    assert verdict == "holds"
    assert numbers["moco minus 99"][:3] == pytest.approx((0.1, expected, 4))
    assert judged(results(values), {"method": "any"}, 98.0, "below")[0] == "fails"
    verdict, _, numbers = judged(printed(method=["Ours"], ESC50=[80.2]), {"method": "Ours"}, 80.0, measure="ESC50")
    assert verdict == "self-consistent" and numbers["ESC50 minus 80"].value == pytest.approx(0.2)


def test_shortened_runs_have_no_say_on_printed_numbers():
    assert judged(results(GRID, level=SHORTENED), {"method": "any"}, rule="agrees", margin=99)[0] == "not run"


def column(away=0.0, *, seeds=3, rows=8):
    """Runs of several rows whose printed numbers are 0, 5, 10, ..., the last of them `away` from it."""
    noise = np.random.default_rng(0).standard_normal((rows, seeds))
    means = 5.0 * np.arange(rows)
    means[-1] += away
    return {("jcl", keys + 1): [*(means[keys] + noise[keys])] for keys in range(rows)}


def beside_print(values):
    source = results(values)
    return source._replace(rows=source.rows.assign(printed=5.0 * (source.rows["keys"] - 1)))


@pytest.mark.parametrize(("values", "margin", "verdict"), [
    (column(), 5, "holds"), (column(away=30.0), 5, "fails"), (column(), 1, "undecided"),
    (column(seeds=1), 5, "undecided"),
])
def test_a_column_agrees_or_is_refuted_or_reaches_too_far(values, margin, verdict):
    assert judged(beside_print(values), {"method": "jcl"}, rule="agrees", margin=margin)[0] == verdict


def test_a_column_that_a_shuffled_one_meets_as_well_agrees_with_nothing():
    source = beside_print(column())
    source = source._replace(rows=source.rows.assign(printed=17.5, ours=17.5 + source.rows["ours"] % 1))
    verdict, _, numbers = judged(source, {"method": "jcl"}, rule="agrees", margin=99)
    assert verdict == "undecided" and numbers["share of permutations as near"].value == 1


def test_without_results_nothing_is_said():
    nothing = Results(DataFrame(), [], "")
    assert judged(nothing, SCE, MOCO) == ("not run", "", {})
    assert judged(nothing, {}, rule="cannot be checked") == ("cannot be checked", "", {})


def test_numbers_without_a_seed_are_exact_or_have_the_error_beside_them():
    rows = DataFrame({"weight": [0.0, 1.0], "nats": [1e-15, 0.0], "slope": [1.0, 9.0], "slope_error": [3.0, 4.0],
                      "slope_df": [8.0, 6.0]})
    source = Results(rows, [], CLOSED)
    assert judged(source, {"weight": "any"}, 0.0, "within", measure="nats", margin=1e-5)[:2] == ("holds", CLOSED)
    _, _, numbers = judged(source, {"weight": 1}, {"weight": 0}, measure="slope")
    assert numbers["weight 1 over weight 0"] == Estimate(8.0, 5.0, 6.0, ())
    _, _, numbers = judged(source, {"weight": "any"}, 1.0, measure="slope")
    assert numbers["weight 1 minus 1"].p() == pytest.approx(2 * stats.t(6).sf(2))


def test_judging_gives_the_verdicts_and_the_numbers_behind_them():
    asked = {"A1": Claim(first=SCE, second=MOCO, rule="above"), "A2": Claim(rule="not run"),
             "A3": Claim(first=SCE, second=MOCO, rule="above", margin=2)}
    table, numbers = claims.judge(asked, lambda name: results(GRID))
    assert table["verdict"].tolist() == ["holds", "not run", "holds"] and table["level"].tolist() == [PAPER, "", PAPER]
    assert table["evidence"]["A1"].startswith("sce over moco, keys 1: +5, s.e. ") and table["evidence"]["A2"] == ""
    assert table["evidence"]["A3"] == f"{table['evidence']['A1']}; tested against 2"
    assert numbers["compared"].tolist() == ["sce over moco, keys 1", "sce over moco, keys 2"] * 2
    assert numbers["value"].tolist() == pytest.approx([5] * 4) and numbers["runs"].tolist() == ["3 and 3"] * 4
    assert numbers["p"][0] == pytest.approx(statistics.contrast(runs(GRID), "sce, 1", "moco, 1").p())
    table, numbers = claims.judge({}, lambda name: results(GRID))
    assert table.empty and numbers.empty and {"verdict", "evidence"} <= {*table}


TOLD_APART = printed(method=["Ours", "Ours", "AVID"], size=["240K", "1.8M", "240K"], ours=[80.2, 90.8, 79.1])
SAMPLERS = samplers({32: 1.0, 64: 1.0})._replace(apart=["sampler", "target"])


@pytest.mark.parametrize(("source", "first", "second", "options", "message"), [
    (results(GRID), {"lambda": 4}, MOCO, {}, "field='lambda' is not one of: method, keys"),
    (results(GRID), {"metod": "sce"}, MOCO, {}, "did you mean 'method'"),
    (results(GRID), SCE, {"method": "mocco"}, {}, "did you mean 'moco'. method='mocco' is not one of: moco, sce, jcl"),
    (results(GRID), SCE | {"keys": [1, 3]}, MOCO, {}, "keys=3 is not one of: 1, 2"),
    (results(GRID), SCE | {"keys": ["any", 1]}, MOCO, {}, "keys='any' is not one of: 1, 2"),
    (results(GRID), SCE, None, {}, "second=None compares nothing"),
    (results(GRID), {"method": ["sce", "jcl"]}, {}, {"rule": "gap shrinks"}, "second={} compares nothing"),
    (results(GRID), SCE, None, {"rule": "rises"}, "first={'method': 'sce'} names no field with several values"),
    (results(GRID), SCE, MOCO, {"rule": "abvoe"}, "did you mean 'above'. rule='abvoe' is not one of: above, "),
    (results(GRID), SCE, MOCO, {"measure": "our"}, "did you mean 'ours'. measure='our' is not one of: .*ours, "),
    *((results(GRID), SCE | {"keys": 1}, second, {}, f".* and second={second} name no two recipes alike in")
      for second in ({"keys": 1}, SCE)),
    *((results(GRID), {"method": ["sce", "jcl"]}, MOCO, {"rule": rule, "margin": -1},
       f"margin=-1 should be at least 0 with the rule {rule}") for rule in ("within", "gap shrinks", "agrees")),
    (TOLD_APART, {"method": "Ours"}, {"method": "AVID"}, {}, "several rows have one method; name what tells them"),
    (SAMPLERS, {"sampler": "random"}, {"sampler": "ohem"}, {}, "several rows have one sampler, target; name what"),
])
def test_a_claim_that_cannot_be_judged_is_named(source, first, second, options, message):
    claim = Claim(first=first, second=second, **{"rule": "above"} | options)
    with pytest.raises(ValueError, match=f"^claims.yaml, entry A1: {message}"):
        claims.judge({"A1": claim}, lambda name: source)


def test_numbers_in_words():
    assert claims.in_words({"CE over AE": known(1.25, 0.5)}) == "CE over AE: +1.25, s.e. 0.5 (3 and 3 runs)"
    assert claims.in_words({"a": UNKNOWN}) == "a: +50, s.e. unknown (1 and 1 runs)"
    assert claims.in_words({"share": exact(0.25), "a": SURE, "b": MISSING}).endswith("share: 0.25; not run: 1")
    many = claims.in_words({f"row {number}": known(float(number)) for number in range(9)})
    assert many.startswith("9 numbers, here the lowest and the highest; row 0: +0, ") and "row 8: +8" in many
    assert "row 2" not in many and claims.in_words({}) == ""
    assert claims.difference_in_words(17.46, 1.06, 1e-9) == "+17.5, s.e. 1.1, p < 0.001"
    assert claims.difference_in_words(-0.24, 0.31, 0.4567) == "-0.2, s.e. 0.3, p = 0.457"


@pytest.mark.parametrize(("dataset", "preset", "changed", "expected"), [
    ("ucla", "paper", False, PAPER), ("ucla", "quick", False, SHORTENED), ("ucla", "paper", True, SHORTENED),
    ("ntu (subset)", "paper", False, SHORTENED), ("cifar10 (my_copy.npz)", "quick", False, SHORTENED),
    ("synthetic", "paper", False, BUNDLED), ("digits", "quick", True, BUNDLED),
])
def test_only_the_recipe_on_official_data_is_a_reproduction(dataset, preset, changed, expected):
    assert level_of(dataset, preset, changed) == expected
