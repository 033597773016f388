"""The evaluator of claims: which rows are compared, what the rules make of made-up results, and what is said of it."""

import math

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame
from scipy import stats

from repro.report import claims, statistics
from repro.report.claims import MISSING, RULES, Claim, Results, above, compared, different, exact, held, pairs, within
from repro.report.statistics import Estimate
from repro.report.verdicts import (
    BUNDLED,
    CANNOT,
    CLOSED,
    CONSISTENT,
    CONTRADICTS,
    FAILS,
    HOLDS,
    NOT_RUN,
    PAPER,
    PRINTED,
    SHORTENED,
    UNDECIDED,
)

NAN = math.nan
SURE, UNKNOWN = Estimate(10.0, 1.0, 10, (3, 3)), Estimate(50.0, NAN, 0, (1, 1))
COLUMNS = ["experiment", "measure", "first", "second", "rule", "margin"]


def known(value, error=1.0, df=10):
    return Estimate(value, error, df, (3, 3))


def named(*estimates):
    return dict(zip("abcdefghij", estimates, strict=False))


def results(values, *, level=PAPER, apart=("method", "keys"), **columns):
    """Rows of methods and keys with the runs given: (method, keys) -> values by seed."""
    rows = [{"method": method, "keys": keys, "ours": value, "seed": seed, "published": NAN, **columns}
            for (method, keys), runs in values.items() for seed, value in enumerate(runs)]
    return Results(DataFrame(rows), [*apart], level)


def printed(**columns):
    return Results(DataFrame(columns), [], PRINTED)


def claim(first, second="", rule="above", *, measure="ours", margin=0.0, experiment="made_up"):
    return Claim(experiment, measure, first, second, rule, margin)


def judged(source, *parts, **options):
    return held(claim(*parts, **options), lambda name: source, RULES)


GRID = {(method, keys): [base + 10 * keys + 0.1 * seed for seed in (-1, 0, 1)]
        for method, base in (("moco", 0.0), ("sce", 5.0), ("jcl", 7.0)) for keys in (1, 2)}


def sides(first, second, source=None):
    found = pairs(claim(first, second), source or results(GRID))
    return [(one["method"], one["keys"], other["method"], other["keys"]) for one, other in found]


def test_what_the_second_side_does_not_name_is_as_in_the_first():
    assert sides("method=sce", "method=moco") == [("sce", 1, "moco", 1), ("sce", 2, "moco", 2)]
    assert sides("method=sce; keys=2", "method=moco") == [("sce", 2, "moco", 2)]
    assert sides("keys=2", "keys=1") == [(name, 2, name, 1) for name in ("moco", "sce", "jcl")]


def test_several_values_are_all_compared():
    assert sides("method=jcl; keys=1|2", "method=moco|sce") == [
        ("jcl", 1, "moco", 1), ("jcl", 1, "sce", 1), ("jcl", 2, "moco", 2), ("jcl", 2, "sce", 2)]


def test_a_star_is_every_other_value_but_networks_that_are_not_trained():
    source = results(GRID | {("random", 1): [1.0, 2.0]})
    assert sides("method=sce; keys=1", "method=*", source) == [("sce", 1, "moco", 1), ("sce", 1, "jcl", 1)]
    assert sides("method=*; keys=1", "method=sce", source) == [("moco", 1, "sce", 1), ("jcl", 1, "sce", 1)]


def test_a_sampler_called_random_is_no_untrained_network():
    rows = DataFrame({"sampler": ["random", "active"], "seed": 0, "ours": [1.0, 2.0]})
    found = pairs(claim("sampler=active", "sampler=*"), Results(rows, ["sampler"], SHORTENED))
    assert [other["sampler"] for _, other in found] == ["random"]


@pytest.mark.parametrize(("first", "message"), [
    ("lambda=4", "made_up has no lambda; its columns are method, keys"), ("sce", "'sce' in 'sce' is no FIELD=VALUE")])
def test_a_field_that_there_is_not_is_named(first, message):
    with pytest.raises(ValueError, match=message):
        pairs(claim(first, "method=moco"), results(GRID))


def test_columns_that_follow_from_others_tell_nothing_apart():
    rows = DataFrame({"objectives": ["AE", "AE+CE", "CE"], "AE": [1, 1, 0], "layers": 1})
    assert claims.independent(rows, ["objectives", "AE", "layers"]) == ["objectives"]
    assert claims.independent(rows, ["AE", "objectives"]) == ["AE", "objectives"]


def test_columns_of_one_experiment_match_those_of_another_that_lacks_them():
    rows = DataFrame({"experiment": ["noise", "usual", "usual"], "objectives": ["CD", "CD", "AE"],
                      "ad_weight": [25.0, NAN, NAN], "seed": 0, "ours": [1.0, 3.0, 9.0]})
    source = Results(rows, ["experiment", "objectives", "ad_weight"], PAPER)
    found = pairs(claim("experiment=noise", "experiment=usual"), source)
    assert [(one["objectives"], other["objectives"]) for one, other in found] == [("CD", "CD")]


def test_differences_have_the_error_of_all_rows_and_say_what_differs():
    source = results(GRID)
    numbers = compared(claim("method=sce", "method=moco"), source)
    runs, _ = claims.runs_of(source, "ours")
    error = statistics.pooled(runs).value * math.sqrt(2 / 3)
    assert {name: number.value for name, number in numbers.items()} == pytest.approx(
        {"sce over moco, keys 1": 5.0, "sce over moco, keys 2": 5.0})
    assert [(number.error, number.df) for number in numbers.values()] == [pytest.approx((error, 12))] * 2


def test_untrained_networks_and_targets_are_pooled_apart():
    rows = DataFrame([
        {"method": method, "target": target, "seed": seed, "ours": scale * seed}
        for target, scales in (("one", (1.0, 4.0)), ("two", (3.0, 9.0)))
        for method, scale in zip(("moco", "random"), scales, strict=True) for seed in (-1, 1)])
    numbers = compared(claim("method=moco", "method=random"), Results(rows, ["method", "target"], PAPER))
    assert {name: number.error for name, number in numbers.items()} == pytest.approx(
        {"moco over random, one": math.sqrt(1 + 16), "moco over random, two": math.sqrt(9 + 81)})


def test_paired_runs_have_the_error_of_rows_and_seeds():
    values = {("moco", 1): [1.0, 5.0, 9.0], ("sce", 1): [2.1, 5.9, 10.2], ("jcl", 1): [0.9, 5.2, 8.9]}
    source = results(values)
    runs, _ = claims.runs_of(source, "ours")
    number, = compared(claim("method=sce", "method=moco"), source, paired=True).values()
    assert number.error == pytest.approx(statistics.two_way(runs).value * math.sqrt(2 / 3))
    assert number.error < compared(claim("method=sce", "method=moco"), source)["sce over moco"].error


def test_what_a_claim_names_and_results_lack_is_missing():
    numbers = compared(claim("method=sce|byol; keys=1", "method=moco"), results(GRID))
    assert numbers["method=byol"] is MISSING and not math.isnan(numbers["sce over moco"].value)
    assert judged(results(GRID), "method=sce|byol; keys=1", "method=moco")[0] == UNDECIDED
    assert judged(results(GRID), "method=byol", "method=moco")[0] == NOT_RUN


@pytest.mark.parametrize(("numbers", "verdict"), [
    ([SURE], HOLDS), ([SURE, SURE], HOLDS), ([known(-10.0)], FAILS), ([SURE, known(-10.0)], FAILS),
    ([known(0.5)], UNDECIDED), ([SURE, known(0.5)], UNDECIDED), ([SURE, MISSING], UNDECIDED),
    ([known(-10.0), MISSING], FAILS), ([UNKNOWN], UNDECIDED), ([SURE, UNKNOWN], UNDECIDED),
])
def test_above_is_a_conjunction_and_below_its_mirror(numbers, verdict):
    assert above(named(*numbers)) == verdict
    mirrored = [number._replace(value=-number.value) for number in numbers]
    assert above(named(*mirrored), alternative="less") == verdict


def test_one_of_many_that_falls_short_by_chance_decides_nothing():
    """t of -2 with 10 degrees of freedom has p = 0.037: enough alone, not as one of ten."""
    assert above(named(known(-2.0))) == FAILS
    assert above(named(known(-2.0), *[SURE] * 9)) == UNDECIDED


@pytest.mark.parametrize(("value", "verdict"), [(-0.5, HOLDS), (-1.5, FAILS)])
def test_margins(value, verdict):
    assert above(named(known(value, 0.1)), -1.0) == verdict


def test_numbers_without_error_are_compared_as_they_are():
    assert above(named(exact(0.1), exact(2.0))) and not above(named(exact(0.1), exact(0.0)))
    assert within(named(exact(0.9), exact(-0.9)), 1.0) and not within(named(exact(1.1)), 1.0)


@pytest.mark.parametrize(("value", "error", "verdict"), [
    (0.0, 0.5, HOLDS), (1.0, 0.5, HOLDS), (-1.0, 0.5, HOLDS), (1.9, 0.5, UNDECIDED), (0.0, 3.0, UNDECIDED),
    (9.0, 0.5, FAILS), (-9.0, 0.5, FAILS), (0.0, NAN, UNDECIDED),
])
def test_within_needs_evidence_on_both_sides(value, error, verdict):
    assert within(named(known(value, error, 30)), 2.0) == verdict


def test_different_is_two_sided_and_never_fails():
    assert different(named(SURE, known(-10.0))) == HOLDS
    assert different(named(known(0.0))) == different(named(UNKNOWN)) == UNDECIDED


@pytest.mark.parametrize(("level", "shown", "contrary"), [
    (PAPER, HOLDS, FAILS), (BUNDLED, HOLDS, FAILS)])
def test_results_hold_or_fail(level, shown, contrary):
    source = results(GRID, level=level)
    assert judged(source, "method=sce", "method=moco")[:2] == (shown, level)
    assert judged(source, "method=moco", "method=sce")[:2] == (contrary, level)
    assert judged(source, "method=moco", "method=sce", "below")[:2] == (shown, level)


def test_a_paper_contradicts_its_own_numbers_or_not():
    source = printed(sampler=["Active", "Random"], UCF=[78.0, 61.9], HMDB=[41.2, 42.0])
    assert judged(source, "sampler=Active", "sampler=Random", measure="UCF")[:2] == (CONSISTENT, PRINTED)
    verdict, _, numbers = judged(source, "sampler=Active", "sampler=Random", measure="UCF, HMDB")
    assert verdict == CONTRADICTS
    assert {name: number.value for name, number in numbers.items()} == pytest.approx(
        {"Active over Random, UCF": 16.1, "Active over Random, HMDB": -0.8})


def test_two_columns_of_a_printed_table_are_compared_row_by_row():
    source = printed(layers=[1, 2], random=[52.0, 56.5], AE=[51.9, 32.0])
    _, _, numbers = judged(source, "layers=*", "measure=AE", measure="random")
    values = {name: number.value for name, number in numbers.items()}
    assert values == pytest.approx({"layers 1": 0.1, "layers 2": 24.5})


def test_printed_rows_that_are_not_told_apart_are_refused():
    source = printed(method=["Ours", "Ours", "AVID"], size=["240K", "1.8M", "240K"], ESC50=[80.2, 90.8, 79.1])
    with pytest.raises(ValueError, match=r"2 printed rows have .*'Ours'"):
        judged(source, "method=Ours", "method=AVID", measure="ESC50")
    with pytest.raises(ValueError, match="has no rows"):
        judged(source, "method=Theirs", "method=AVID", measure="ESC50")


@pytest.mark.parametrize(("margin", "verdict"), [(1.1, CONSISTENT), (0.1, CONTRADICTS)])
def test_printed_differences_can_have_a_value(margin, verdict):
    source = printed(method=["Ours", "AVID"], ESC50=[80.2, 79.1])
    assert judged(source, "method=Ours", "method=AVID", "equals", measure="ESC50", margin=margin)[0] == verdict


@pytest.mark.parametrize(("steps", "verdict"), [((0, 10, 20, 30), HOLDS), ((0, 10, 5, 30), FAILS)])
def test_rises_from_each_value_to_the_next(steps, verdict):
    values = {("random", number + 1): [step, step + 0.5, step + 1] for number, step in enumerate(steps)}
    found, _, numbers = judged(results(values), "method=random; keys=1|2|3|4", rule="rises")
    assert found == verdict and len(numbers) == 3 and numbers["keys 2 over keys 1"].value == pytest.approx(10)


def test_rises_over_the_columns_of_a_printed_table():
    source = printed(sampler=["Active", "OHEM"], M32=[1.0, 5.0], M64=[2.0, 6.0], M128=[3.0, 5.5])
    verdict, _, numbers = judged(source, "sampler=*", rule="rises", measure="M32, M64, M128")
    assert verdict == CONTRADICTS and len(numbers) == 4
    assert numbers["OHEM, M128 over M64"].value == pytest.approx(-0.5)


def test_a_mean_is_held_against_a_number_with_its_own_error():
    values = {("moco", 1): [98.9, 99.1, 99.3], ("sce", 1): [99.5, 99.1, 99.0]}
    source = results(values)
    verdict, _, numbers = judged(source, "method=*", "99", "within", margin=2)
    expected = statistics.pooled(claims.runs_of(source, "ours")[0]).value / math.sqrt(3)
    assert verdict == HOLDS
    assert numbers["moco"][:3] == pytest.approx((0.1, expected, 4))
    assert judged(source, "method=*", "98", "below")[0] == FAILS
    assert judged(source, "method=*", "100", "below")[0] == HOLDS


def test_shortened_runs_have_no_say_on_printed_numbers():
    assert judged(results(GRID, level=SHORTENED), "method=*", rule="agrees", margin=99)[0] == NOT_RUN


def column(away=0.0, *, scale=1.0, seeds=3, rows=8):
    """Runs of several rows whose printed numbers are 0, 1, ..., the last of them `away` from it."""
    noise = np.random.default_rng(0).standard_normal((rows, seeds)) * scale
    means = 5.0 * np.arange(rows)
    means[-1] += away
    return results({("jcl", keys + 1): [*(means[keys] + noise[keys])] for keys in range(rows)})


def printed_as(source):
    return source._replace(rows=source.rows.assign(published=5.0 * (source.rows["keys"] - 1)))


@pytest.mark.parametrize(("source", "margin", "verdict"), [
    (column(), 5, HOLDS), (column(away=30.0), 5, FAILS), (column(), 1, UNDECIDED), (column(seeds=1), 5, UNDECIDED)])
def test_a_column_agrees_or_is_refuted_or_reaches_too_far(source, margin, verdict):
    assert judged(printed_as(source), "method=jcl", rule="agrees", margin=margin)[0] == verdict


def test_a_column_that_a_shuffled_one_meets_as_well_agrees_with_nothing():
    source = printed_as(column())
    source = source._replace(rows=source.rows.assign(published=17.5, ours=17.5 + source.rows["ours"] % 1))
    verdict, _, numbers = judged(source, "method=jcl", rule="agrees", margin=99)
    assert verdict == UNDECIDED and numbers["share of shuffled columns as near"].value == 1


def test_agreement_stands_beside_a_constant_and_shuffled_columns():
    source = printed_as(column(away=30.0))
    _, _, numbers = judged(source, "method=jcl", rule="agrees", margin=5)
    runs, _ = claims.runs_of(source, "ours")
    kept = statistics.agreement(runs[:-1], pd.Series(5.0 * np.arange(7), runs.index[:-1]),
                                deviation=statistics.pooled(runs).value)
    assert numbers["root mean square of 7 that are not refuted"].value == pytest.approx(kept.rms)
    assert numbers["of the best constant's"].value == pytest.approx(kept.constant_rms)
    assert numbers["within two deviations, of 8"].value == 7


def test_steadier_is_the_f_test_of_variances():
    values = {("jcl", 4): [1.0, 1.1, 0.9, 1.0, 1.05], ("jcl", 10): [1.0, 9.0, -8.0, 3.0, 5.0]}
    verdict, _, numbers = judged(results(values), "keys=4", "keys=10", "steadier")
    ratio = np.var([*values["jcl", 4]], ddof=1) / np.var([*values["jcl", 10]], ddof=1)
    assert numbers["variance of keys 4 over keys 10"].value == pytest.approx(ratio)
    assert stats.f.cdf(ratio, 4, 4) < 0.05 and verdict == HOLDS
    assert judged(results(values), "keys=10", "keys=4", "steadier")[0] == FAILS


def test_without_results_nothing_is_said():
    nothing = Results(DataFrame(), [], "")
    assert judged(nothing, "method=sce", "method=moco") == (NOT_RUN, "", {})
    assert judged(nothing, "", rule="cannot be checked", experiment="")[:2] == (CANNOT, "")


def test_a_closed_form_needs_no_experiment():
    rules = {"identity": lambda claim, results: (True, {"difference": exact(0.0)})}
    found = held(claim("", rule="identity", experiment=""), lambda name: Results(DataFrame(), [], CLOSED), rules)
    assert found == (HOLDS, CLOSED, {"difference": exact(0.0)})


def test_a_rule_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="rule='abvoe' is not one of: above, "):
        judged(results(GRID), "method=sce", "method=moco", "abvoe")


LIST = "id,place,says,experiment,measure,first,second,rule,margin\n"


def test_a_list_has_a_margin_of_nothing_where_none_stands(tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text(f'{LIST}A1,text,"It holds, always.",made_up,ours,method=sce,method=moco,above,\n'
                    "A2,text,It is near.,made_up,ours,method=sce,method=moco,within,2.5\n")
    table = claims.read_list(path)
    assert table["margin"].tolist() == [0, 2.5] and table["says"][0] == "It holds, always."


@pytest.mark.parametrize(("text", "message"), [
    ("id,place,says\nA1,text,so\n", "has no column experiment"),
    (f"{LIST}A1,text,so,made_up,ours,a=1,a=2,above,much\n", "a margin is no number"),
])
def test_a_damaged_list_is_named(tmp_path, text, message):
    path = tmp_path / "claims.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"claims\.csv.*{message}"):
        claims.read_list(path)


def table_of(*rows):
    names = ["id", "paper", "place", "says", *COLUMNS]
    return DataFrame([("A1", "Made", "Table 1", "It holds.", "made_up", "ours", *row) for row in rows], columns=names)


def test_judging_gives_the_claims_and_the_numbers_behind_them():
    rows = table_of(("method=sce", "method=moco", "above", 0.0))
    table, numbers = claims.judge(rows, lambda name: results(GRID), RULES)
    assert table.loc[0, ["claim", "verdict", "level"]].tolist() == ["It holds.", HOLDS, PAPER]
    assert numbers["compared"].tolist() == ["sce over moco, keys 1", "sce over moco, keys 2"]
    assert numbers["value"].tolist() == pytest.approx([5, 5]) and numbers["runs"].tolist() == ["3 and 3"] * 2
    runs, _ = claims.runs_of(results(GRID), "ours")
    assert numbers["p"][0] == pytest.approx(statistics.contrast(runs, "sce, 1", "moco, 1").p())


def test_a_paper_may_have_no_claims():
    nothing = table_of()
    table, numbers = claims.judge(nothing, lambda name: results(GRID), RULES)
    assert table.empty and numbers.empty and {"verdict", "evidence"} <= {*table}
    assert claims.measured_discrepancies(nothing, lambda name: results(GRID), RULES).empty


def test_a_claim_that_cannot_be_judged_is_named():
    with pytest.raises(ValueError, match="A1: made_up has no lambda"):
        claims.judge(table_of(("lambda=4", "lambda=2", "above", 0.0)), lambda name: results(GRID), RULES)


def test_discrepancies_have_numbers_and_no_verdict():
    rows = table_of(("method=sce; keys=1", "method=moco", "different", 0.0), ("", "", "", 0.0)).drop(columns="says")
    table = claims.measured_discrepancies(rows, lambda name: results(GRID), RULES)
    assert [*table] == ["id", "paper", "place", "measured"]
    assert table["measured"][0].startswith("sce over moco +5, s.e. ") and table["measured"][1] == "not measured"


def test_numbers_in_words():
    assert claims.in_words({"CE over AE": known(1.25, 0.5)}) == "CE over AE +1.25, s.e. 0.5, p 0.031 (3 and 3 runs)"
    assert claims.in_words({"a": UNKNOWN}) == "a +50, s.e. unknown, p nan (1 and 1 runs)"
    assert claims.in_words({"share": exact(0.25), "a": SURE, "b": MISSING}).endswith("share 0.25; not run: 1")
    many = claims.in_words({f"row {number}": known(float(number)) for number in range(5)})
    assert many.startswith("5 comparisons, the lowest and the highest: row 0 +0, ") and "row 4 +4" in many
    assert "row 2" not in many and claims.in_words({}) == ""


VERDICTS = DataFrame({"paper": ["SCE", "SCE", "JCL"], "verdict": [HOLDS, FAILS, HOLDS],
                      "level": [PAPER, CLOSED, CLOSED]})


def test_claims_are_chosen_by_verdict_and_level():
    assert len(claims.chosen(VERDICTS)) == 3 and len(claims.chosen(VERDICTS, verdict=HOLDS)) == 2
    assert claims.chosen(VERDICTS, verdict=HOLDS, level=CLOSED)["paper"].tolist() == ["JCL"]
    with pytest.raises(ValueError, match="verdict='true' is not one of: all, holds, fails"):
        claims.chosen(VERDICTS, verdict="true")
    with pytest.raises(ValueError, match="level='sure' is not one of: all, closed form"):
        claims.chosen(VERDICTS, level="sure")


def test_verdicts_are_counted_by_paper():
    counts = claims.counted(VERDICTS)
    assert [*counts.index] == ["SCE", "JCL"] and counts.loc["SCE", [HOLDS, FAILS, UNDECIDED]].tolist() == [1, 1, 0]


def test_lines_are_broken_at_a_width_and_notebooks_escape_what_is_no_html():
    table, _ = claims.judge(table_of(("method=sce", "method=moco", "above", 0.0)), lambda name: results(GRID), RULES)
    one, = claims.lines(table, DataFrame())
    assert one.startswith("A1    holds             paper recipe, real data Made, Table 1: It holds. sce over moco")
    assert max(map(len, claims.lines(table, DataFrame(), 60))) <= 60
    assert "a &lt; b" in claims.shown(table.assign(claim="a < b")).to_html()
