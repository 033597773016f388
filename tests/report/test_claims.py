"""The claims: what is committed, verdicts that follow from made-up results, and their text."""

import itertools
import json
import math
import re
import shutil
from collections import Counter

import pandas as pd
import pytest
from asked_for import placed
from made_up_cells import frame, image, skeleton, sounding
from made_up_results import logs, results, write_log
from scipy.stats import chi2_contingency

from repro import papers
from repro.data import manifest
from repro.experiments import cells_by_table
from repro.papers.taxonomy import glm
from repro.report import claims
from repro.report.evidence import Evidence
from repro.report.printed import printed
from repro.report.verdicts import CANNOT, FAILS, HOLDS, LEVELS, NOT_RUN, PAPER, PRINTED, QUICK, UNDECIDED, VERDICTS
from repro.run.export import read_cells

FIGURES = manifest.project_root() / "figures"
HERE = [  # decided by cells or logs alone
    "T4", "T6", "T9", "T10", "T12", "T13", "T15", "T16", "T17", "T21", "T24",
    "T26", *(f"C{number}" for number in (*range(3, 15), 16, 18, 20, 23, 25, 27, 40, 41, 42, 44, 45, 47, 49, 50)),
    "S4", "S6", "S9", "S10", "S15", "J3", "J10", "J11", "J12", "J13", "J16",
]
ASIDE = ("T4", "T10", "T21", "T26")  # which contradict T6, T9 and T24
WITHOUT_SEEDS = ("T4", "T6", "T16", "T21", "J3", "C40", "C41", "C42")  # tested over objectives, depths, draws or picks
NUMBERS = ("T10", "T12", "T13", "C7", "S10")


PAPERS = ("CM-ACC", "JCL", "SCE", "taxonomy")
CLAIMS, DISCREPANCIES = ({entry.id: entry for entry in of_all} for of_all in (papers.claims(), papers.discrepancies()))


def by_table(cells):
    """Committed cells as experiments have them, made-up ones as if they had been asked for."""
    return cells_by_table(cells) if set(cells["commit"]) - {"c"} else placed(cells)


def judged(cells, folder, ids=CLAIMS):
    """Some of the claims, with their verdicts."""
    evidence = Evidence(by_table(cells), folder, papers.logs())
    return claims.judge([CLAIMS[number] for number in ids], evidence).set_index("id")


def row_of(number, folder, *cells):
    """One claim with its verdict, from made-up cells."""
    return judged(frame(*cells), folder, [number]).loc[number]


def measured(cells, folder, ids=DISCREPANCIES):
    evidence = Evidence(by_table(cells), folder, papers.logs())
    rows = claims.measured_discrepancies([DISCREPANCIES[number] for number in ids], evidence)
    return rows.set_index("id")["measured"]


@pytest.fixture(scope="module")
def committed():
    return judged(read_cells(FIGURES / "cells.csv"), FIGURES)


@pytest.fixture(scope="module")
def nothing(tmp_path_factory):
    return judged(frame(), tmp_path_factory.mktemp("no figures"))


@pytest.fixture(scope="module", params=[True, False], ids=["true", "false"])
def made_up(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    logs(request.param, folder)
    return request.param, judged(results(request.param), folder)


def test_there_are_enough_of_every_paper_with_unique_names_and_complete_texts():
    counts = Counter(claim.paper for claim in CLAIMS.values())
    assert {*counts} == {*PAPERS}
    assert counts["taxonomy"] >= 12 and counts["CM-ACC"] >= 15 and counts["SCE"] >= 8 and counts["JCL"] >= 8
    ids = [entry.id for entry in (*papers.claims(), *papers.discrepancies())]
    assert len(set(ids)) == len(ids)
    for claim in CLAIMS.values():
        assert claim.says.endswith(".") and claim.place and claim.predicate and "\n" not in claim.says
    for row in DISCREPANCIES.values():
        assert row.paper in PAPERS and row.paper_says and row.others_say and row.here


def test_at_least_twenty_five_verdicts_are_computed_today(committed):
    decided = committed["verdict"].isin([HOLDS, FAILS, UNDECIDED])
    assert (decided & ~committed["identity"]).sum() >= 25 and set(committed["verdict"]) <= set(VERDICTS)
    assert (committed["level"].isin(LEVELS) == decided).all() and (committed["evidence"] != "").all()
    assert not committed["evidence"].str.contains("\N{PLUS-MINUS SIGN}").any()  # the standard deviation in tables


def test_what_the_committed_cells_say_of_the_taxonomy(committed):
    """Typed from the README, which tells the same numbers in words."""
    assert committed.loc["T1", ["verdict", "level"]].tolist() == [FAILS, PRINTED]
    assert "AD 2.394, CD 1.210" in committed.loc["T1", "evidence"]
    assert committed.loc["T12", ["verdict", "level"]].tolist() == [HOLDS, PAPER]
    assert committed.loc["T16", ["verdict", "level"]].tolist() == [HOLDS, PAPER]
    assert committed.loc["T18", "verdict"] == FAILS and "+8.09" in committed.loc["T18", "evidence"]
    assert "random minus AE +37.32, s.e. 1.58 (4 depths)" in committed.loc["T16", "evidence"]
    assert re.search(r"by \+0\.\d{4}, s\.e\. 0\.\d{4} \(100 draws\)", committed.loc["J1", "evidence"])


def test_without_any_cells_what_needs_training_is_not_run(nothing):
    assert set(nothing.index[nothing["verdict"] == NOT_RUN]) == set(HERE)
    assert (nothing.loc[HERE, "level"] == "").all()


def test_printed_numbers_need_no_cells(nothing, committed):
    level = committed["level"]
    free = level.index[level.isin([PRINTED, "closed form"])]
    pd.testing.assert_frame_equal(nothing.loc[free, ["verdict", "level", "evidence"]],
                                  committed.loc[free, ["verdict", "level", "evidence"]])
    known = {"T2": HOLDS, "T5": UNDECIDED, "T8": FAILS, "T11": FAILS, "T14": HOLDS, "T19": FAILS, "C1": FAILS,
             "C2": FAILS, "C21": HOLDS, "C30": HOLDS, "C32": HOLDS, "C35": FAILS, "C36": HOLDS, "C37": FAILS,
             "S1": HOLDS, "S3": HOLDS, "S12": HOLDS, "S16": HOLDS, "J1": HOLDS, "J2": HOLDS, "J14": FAILS,
             "J15": CANNOT, "J17": HOLDS, "S11": CANNOT, "T20": FAILS, "T22": HOLDS, "T23": FAILS, "T25": FAILS,
             "C43": HOLDS, "C46": HOLDS, "C48": HOLDS}
    assert nothing.loc[list(known), "verdict"].to_dict() == known


def test_evidence_holds_the_numbers_known_beforehand(nothing):
    known = {
        "C1": "72.7 of 101 categories, 72.0 %", "T11": "0 of 15 values are k/460, at most 2", "T14": "1: 0.12",
        "C35": "Kinetics-Sound, ESC50: 77.3 and 79.2", "C34": "UCF101 +1.0, HMDB51 +3.6, ESC50 +8.5", "T2": "0.0374",
        "S16": "CIFAR10 0.1 and 0.2, CIFAR100 0.08 and 0.1", "T23": "NTU_3layer: AE+CD 10.07",
        "T20": "UCLA: AE+CE+AD 86.08, without mixing CE+AD 85.70",
        "C43": "SMoCo: UCF101 +7.4, HMDB51 +5.5, ESC50 +14.7",
        "T25": "AE 59.98, CE 83.73, AD 83.45, CD 77.73", "C48": "UCF101: 27.8, 18.1, 13.5; HMDB51: 14.4, 12.2, 9.4",
    }
    assert [number for number, text in known.items() if text not in nothing.loc[number, "evidence"]] == []


@pytest.mark.parametrize("number", [number for number in HERE if number not in ASIDE])
def test_verdicts_follow_from_results_when_they_arrive(made_up, number):
    true, table = made_up
    never = {"J13": UNDECIDED, "C42": UNDECIDED}  # that all are alike is not shown by not telling them apart
    expected = HOLDS if true else never.get(number, FAILS)
    row = table.loc[number]
    assert row["verdict"] == expected, row["evidence"]
    assert row["level"] in (PAPER, QUICK, "embedded data")


@pytest.mark.parametrize(("effect", "verdict"), [(10.0, HOLDS), (-10.0, FAILS), (0.5, UNDECIDED)])
def test_the_contrastive_decoder_in_the_nine_rows(effect, verdict, tmp_path):
    scatter = dict(zip(glm.objectives_of("all"), itertools.cycle((-0.9, 0.3, 0.6, -0.2, 0.7)), strict=False))
    rows = [skeleton(name, 60 + effect * ("CD" in name) + each) for name, each in scatter.items()]
    assert row_of("T4", tmp_path, *rows)[["verdict", "level"]].tolist() == [verdict, PAPER]
    assert row_of("T4", tmp_path, *rows[:-1])["verdict"] == verdict  # all four are not among the nine
    assert row_of("T4", tmp_path, *rows[1:])["verdict"] == NOT_RUN


@pytest.mark.parametrize(("effect", "verdict"), [(-10.0, HOLDS), (10.0, FAILS), (0.0, UNDECIDED)])
def test_mixing_is_held_against_the_best_of_what_it_mixes(effect, verdict, tmp_path):
    """AE alone is far below CE, and AD far below CD: what counts is the better one of each pair."""
    scatter = itertools.cycle((-0.9, 0.3, 0.6, -0.2, 0.7))
    rows = []
    for name in glm.objectives_of("all"):
        terms = name.split("+")
        mixes = {"AE", "CE"} <= {*terms} or {"AD", "CD"} <= {*terms}
        better = 10 * ("CE" in terms) + 10 * ("CD" in terms)
        rows.append(skeleton(name, 50 + better + effect * mixes + next(scatter)))
    row = row_of("T21", tmp_path, *rows)
    assert row[["verdict", "level"]].tolist() == [verdict, PAPER] and "7 objectives that mix" in row["evidence"]
    two = [skeleton(name) for name in ("AE+CE", "AE", "AD")]  # nothing that mixes has all its parts
    assert row_of("T21", tmp_path, *two)["verdict"] == NOT_RUN


@pytest.mark.parametrize(("lowest", "verdict"), [("CD", HOLDS), ("AE", FAILS)])
def test_the_contrastive_decoder_beside_the_other_single_terms(lowest, verdict, tmp_path):
    rows = [skeleton(name, 70 - 20 * (name == lowest) - 5 * (name == "CD") + seed * (1 + len(name)) / 10, seed=seed)
            for seed in (0, 1, 2) for name in glm.TERMS]
    assert row_of("T26", tmp_path, *rows)[["verdict", "level"]].tolist() == [verdict, PAPER]


def test_the_scatter_of_sound_encoders_says_nothing_of_collapsed_ones(tmp_path):
    """One seed of each side decides nothing, however often other cells were repeated."""
    rows = [skeleton("CE", 80.0 + seed / 10, seed=seed) for seed in range(5)]
    rows += [skeleton(name, 80.0) for name in glm.objectives_of("all") if name not in ("CE", "AE")]
    rows += [skeleton("AE", 20.0)]
    equal = {"temperature": 0.1, "key_temperature": 0.1}
    rows += [image(name, 60.0 + seed / 10, seed=seed) for name in ("moco", "sce") for seed in range(5)]
    rows += [image("sce", 60.0 + seed / 10, seed=seed, temperature=0.2, key_temperature=0.1)
             for seed in range(5)]
    rows += [image("sce", 60.0, **equal), image("ressl", 20.0, spread=0.1, **equal)]
    table = judged(frame(*rows), tmp_path, ["T24", "T26", "S15"])
    for number in table.index:
        assert table.loc[number, "verdict"] == UNDECIDED and "s.e. unknown" in table.loc[number, "evidence"], number


def test_grids_are_compared_in_the_first_regime_in_which_most_pairs_have_seeds(tmp_path):
    def grids(method, seed, characters, **fields):
        base, sign = {"smoco": (50.0, 1), "xmoco": (60.0, -1)}[method]
        linear = base + sign * (seed - 0.5) * characters / 10
        return sounding(method, {"linear": linear, "linear_held_out": linear}, dataset="multiomniglot", seed=seed,
                        version=5, characters=characters, augmented=True, **fields)

    rows = [grids(method, seed, number) for method in ("smoco", "xmoco") for seed in (0, 1) for number in (1, 3, 5)]
    begun = [grids(method, 0, number, pairs=50_000) for method in ("smoco", "xmoco") for number in (1, 3, 5)]
    claim = row_of("C9", tmp_path, *rows, *begun)
    assert claim["verdict"] == HOLDS and "pairs=50000" not in claim["evidence"]
    more = [grids(method, 1, number, pairs=50_000) for method in ("smoco", "xmoco") for number in (1, 3, 5)]
    assert "1 characters, new pairs, pairs=50000 +10.00" in row_of("C9", tmp_path, *rows, *begun, *more)["evidence"]


def test_a_choice_that_was_not_made_post_hoc_decides_nothing(tmp_path):
    logs(True, tmp_path)
    path = tmp_path / "post_hoc_diversity_part.csv"
    whole = pd.read_csv(path)
    older = whole.assign(version=4, value=0.0, step=1250)  # of which nothing counts
    for part, verdict in (
        (whole, HOLDS), (pd.concat([older, whole]), HOLDS), (whole.query("batch != 32"), UNDECIDED),
        (whole.query("batch != 32 or frequency != 'zipf'"), UNDECIDED),
        (whole.query("sampler != 'random'"), NOT_RUN),
    ):
        part.to_csv(path, index=False)
        assert row_of("C4", tmp_path)["verdict"] == verdict


def test_diversity_that_grows_in_one_kind_of_pool_alone_does_not_grow(tmp_path):
    logs(True, tmp_path)
    path = tmp_path / "category_curves_part.csv"
    whole = pd.read_csv(path)
    assert row_of("C50", tmp_path)["verdict"] == HOLDS
    late = whole["frequency"].eq("zipf") & whole["step"].eq(300)
    whole.assign(categories_video=whole["categories_video"].where(~late, 0.0)).to_csv(path, index=False)
    claim = row_of("C50", tmp_path)
    assert claim["verdict"] == FAILS and "balanced, M = 32 +" in claim["evidence"]


def test_dictionaries_of_one_method_decide_nothing_of_several(tmp_path):
    def sizes(*methods):
        return [sounding(method, {"ucf101": {128: 50, 2048: 60, 32768: 55}[size] + seed}, dataset="kinetics700",
                         preset="paper", seed=seed, dictionary=size)
                for method in methods for size in (128, 2048, 32768) for seed in range(3)]

    for number, methods in (("C12", ("smoco", "xmoco", "cmacc")), ("C13", ("smoco", "xmoco"))):
        assert row_of(number, tmp_path, *sizes(*methods))["verdict"] == HOLDS
        claim = row_of(number, tmp_path, *sizes("smoco"))
        assert claim["verdict"] == UNDECIDED and "not run: XMoCo" in claim["evidence"]


def test_one_approach_that_was_not_run_is_named(tmp_path):
    """The others of C45 are compared all the same."""
    accuracies = {"scratch": {}, "xmoco": {}, "cmacc": {"sampler": "gradient"}}
    rows = [sounding(method, {"ucf101": value + seed}, dataset="kinetics_sound", preset="paper", seed=seed, **changes)
            for value, (method, changes) in zip((50, 60, 70), accuracies.items(), strict=True) for seed in range(3)]
    claim = row_of("C45", tmp_path, *rows)
    assert (claim["verdict"], claim["level"]) == (UNDECIDED, PAPER)
    assert "XMoCo over Scratch, ucf101 +10.00" in claim["evidence"] and "not run: XMoCo (w/o fcl)" in claim["evidence"]


def test_the_newest_version_counts_once_it_has_all_rows_of_the_table(tmp_path):
    older = [skeleton(name, 60.0, version=2) for name in glm.objectives_of("all")]
    older += [skeleton("AD", 70.0, version=2, bidirectional=True)]  # departs
    newer = [skeleton(name, 60.0, version=3) for name in glm.objectives_of("all")]
    for cells, version in ((newer[:-1], 2), (newer, 3)):
        assert f"version {version}: " in row_of("T6", tmp_path, *older, *cells)["evidence"].partition(". Also")[0]


@pytest.mark.parametrize(("shift", "verdict", "of_two"), [(1.0, HOLDS, UNDECIDED), (12.0, FAILS, FAILS)])
def test_the_printed_column(shift, verdict, of_two, tmp_path):
    table = printed("taxonomy")
    rows = [skeleton(name, value + shift + seed - 1, seed=seed) for seed in (0, 1, 2)
            for name, value in zip(glm.names(table), table["UCLA"], strict=True)]
    assert row_of("T10", tmp_path, *rows)[["verdict", "level"]].tolist() == [verdict, PAPER]
    assert row_of("T10", tmp_path, *rows[:-15])["verdict"] == of_two  # two seeds: AE's own interval is wide
    assert row_of("T10", tmp_path, *rows[:-30])["verdict"] == UNDECIDED  # one


def test_one_seed_decides_nothing_that_seeds_must(tmp_path):
    logs(True, tmp_path, seeds=(0,))
    seeded = [number for number in HERE if number not in WITHOUT_SEEDS and number != "T12"]
    assert set(judged(results(True, seeds=(0,)), tmp_path, seeded)["verdict"]) == {UNDECIDED}


def test_three_seeds_that_scatter_decide_nothing(tmp_path):
    seeded = [number for number in HERE if number not in (*WITHOUT_SEEDS, "C6", "J13")]
    table = judged(results(True, noise=40.0), tmp_path, seeded)
    verdicts = table.loc[table["level"] != "", "verdict"]
    assert len(verdicts) > 25 and (verdicts == UNDECIDED).mean() > 0.9 and not (verdicts == HOLDS).any()


def test_quick_cells_say_nothing_of_printed_numbers(tmp_path):
    cells = results(True)
    cells = cells[cells["preset"] != "paper"]
    quick = [skeleton(name, 50.0 + seed, preset="quick", seed=seed) for name in ("CE", "AD") for seed in (0, 1, 2)]
    table = judged(pd.concat([cells, frame(*quick)]), tmp_path, [*NUMBERS, "S6"])
    assert set(table.loc[list(NUMBERS), "verdict"]) == {NOT_RUN}
    assert table.loc["S6", ["verdict", "level"]].tolist() == [HOLDS, QUICK]


@pytest.mark.parametrize(("number", "missing"), [
    ("J10", {"keys": 9}), ("J11", {"strength": 10.0}), ("J12", {"temperature": 0.1}),
])
def test_a_value_of_a_sweep_that_was_not_run_may_be_the_best(number, missing, tmp_path):
    cells = results(True)
    point = missing.items() | {("method", "jcl")}
    gone = cells["recipe"].map(lambda recipe: point <= json.loads(recipe).items())
    row = judged(cells[~gone], tmp_path, [number]).loc[number]
    assert row["verdict"] == UNDECIDED and row["evidence"].endswith(f"over {next(iter(missing.values())):g}")


@pytest.mark.parametrize(("linear", "spread", "verdict"), [
    (45.0, 0.1, HOLDS), (45.0, 0.95, UNDECIDED), (45.0, 0.99, FAILS), (62.0, 0.1, FAILS),
])
def test_a_collapse_is_one_of_accuracy_and_of_spread(linear, spread, verdict, tmp_path):
    equal = {"temperature": 0.1, "key_temperature": 0.1}
    rows = [image("sce", 60.0 + seed, seed=seed, spread=0.95 + seed / 1000, **equal) for seed in (0, 1, 2)]
    rows += [image("ressl", linear + 1.5 * seed, seed=seed, spread=spread + seed / 900, **equal) for seed in (0, 1, 2)]
    row = row_of("S15", tmp_path, *rows)
    assert row[["verdict", "level"]].tolist() == [verdict, QUICK]
    assert f"accuracy {59.5 - linear:+.2f}" in row["evidence"] and "embedding spread" in row["evidence"]
    other = image("ressl", 45.0, spread=0.1, **equal | {"key_temperature": 0.05})
    assert row_of("S15", tmp_path, *rows[:3], other)["verdict"] == NOT_RUN


def test_one_line_for_each(nothing, tmp_path):
    discrepancies = claims.measured_discrepancies(papers.discrepancies(), Evidence({}, tmp_path, papers.logs()))
    lines = claims.lines(nothing.reset_index(), discrepancies)
    ids = [*CLAIMS, *DISCREPANCIES]
    assert [line.split()[0] for line in lines] == ids and not any("\n" in line for line in lines)
    first, = [line for line in lines if line.startswith("T1 ")]
    assert first.split("  ")[0] == "T1" and "fails             printed numbers " in first
    wrapped = claims.lines(nothing.reset_index(), discrepancies, width=80)
    assert max(map(len, wrapped)) <= 80 and len(wrapped) > len(lines)
    assert [line.split()[0] for line in wrapped if not line.startswith(" ")] == ids


def test_discrepancies_are_measured_where_there_are_cells(tmp_path):
    empty = measured(frame(), tmp_path, ["T-1", "T-13", "S-1", "C-11"])
    assert empty["T-13"] == empty["S-1"] == empty["C-11"] == claims.NOT_MEASURED
    assert "AD t = 2.394, CD t = 1.210" in empty["T-1"] and "between 1.30 and 12.89" in empty["T-1"]
    rows = [skeleton("AD", 80.0), skeleton("AD", 70.0, seed=1), skeleton("AD", 84.0, ad_input="augmented")]
    some = measured(frame(*rows), tmp_path, ["T-12", "T-13"])
    assert some["T-13"] == "ucla, paper recipe, ad_input=augmented: AD 84.0 instead of 80.0 (1 seed)"
    assert some["T-12"] == claims.NOT_MEASURED
    rows += [skeleton("AD", 60.0, ad_loss="squared"), skeleton("AD", 75.0, ad_loss="squared", ad_weight=0.004)]
    assert measured(frame(*rows), tmp_path, ["T-12"])["T-12"] == (
        "ucla, paper recipe, ad_loss=squared: AD 60.0 instead of 80.0 (1 seed); "
        "ucla, paper recipe, ad_loss=squared, ad_weight=0.004: AD 75.0 instead of 80.0 (1 seed)")


def test_two_printed_cells_that_may_have_changed_places(tmp_path):
    """What the printed table says of it needs no cells; numbers of ours are the printed ones with the two exchanged."""
    found = measured(frame(), tmp_path, ["T-17", "T-18"])
    told = found["T-17"]
    assert "printed: UCLA -16.4, NTU_1layer +12.8, NTU_3layer +11.9, NTU_1024units +8.5;" in told
    assert "of UCLA misses the two by squares of 341 as printed, 107 exchanged" in told
    assert "t in the nine rows is 2.389" in told
    assert "recipe" not in told and found["T-18"] == claims.NOT_MEASURED
    table = printed("taxonomy").set_index(glm.names(printed("taxonomy")))["UCLA"]
    rows = [skeleton(name, {"AE+CD": 60.37, "AE+AD+CD": 76.81}.get(name, value - 1.5 * (value > 83)))
            for name, value in table.items()]
    rows += [skeleton(name, value, td_queue="frozen_noise") for name, value in (("AE+CD", 40.0), ("AE+AD+CD", 77.0))]
    found = measured(frame(*rows), tmp_path, ["T-17", "T-18"])
    recipe = "paper recipe, version 1"
    assert f"ucla, {recipe}: +16.4; ucla, {recipe}, td_queue=frozen_noise: +37.0; of the 105" in found["T-17"]
    assert f"that of AE+AD+CD and AE+CD comes closest to our column, {recipe} (squares 552 to 11)" in found["T-17"]
    assert found["T-18"] == ("ucla, paper recipe: 5 of 7 are below the print; ours minus printed -1.5 to +0.0 points; "
                             "two-sided sign test, p = 0.453")
    shutil.copy(FIGURES / "along_training_ucla.csv", tmp_path)
    beside = measured(frame(*rows), tmp_path, ["T-17", "T-18"])
    assert beside["T-17"].startswith(f"{found['T-17']}; by the rule fixed before the runs an exchange is ")
    assert beside["T-18"].startswith(f"{found['T-18']}; of ") and "readings of the column" in beside["T-18"]


def test_the_released_selection_is_measured_where_samplers_are_compared(tmp_path):
    rows = [sounding("cmacc", {"ucf101": value + seed}, dataset="kinetics700", preset="paper", seed=seed,
                     sampler=sampler, batch=batch)
            for sampler, value, batch in (("released", 60.0, 16), ("gradient", 70.0, 16), ("gradient", 80.0, 128))
            for seed in (0, 1)]
    assert measured(frame(*rows), tmp_path, ["C-10"])["C-10"] == (
        "released minus printed, kinetics700, paper recipe: M = 16, ucf101 -10.00, s.e. 0.71 (2 against 2 runs)")
    assert measured(frame(*rows[2:]), tmp_path, ["C-10"])["C-10"] == "not measured"


def test_what_ohem_takes_is_measured_where_there_is_a_log(tmp_path):
    logs(False, tmp_path)
    found = measured(frame(), tmp_path, ["C-14"])
    assert found["C-14"].startswith("norms of gradients: ") and "ohem minus random, video +1." in found["C-14"]


def test_pretext_accuracies_are_compared_as_scipy_does(committed):
    log = pd.read_csv(FIGURES / "pretext_accuracy_synthetic.csv")
    for query, rows in log.groupby("query"):
        right = (rows["accuracy"] * rows["pairs"] / 100).round()
        expected = chi2_contingency([right, rows["pairs"] - right])
        told = f"queries of {query}: chi-squared {expected.statistic:.0f} with {expected.dof} degrees of freedom, p = "
        assert f"{told}{expected.pvalue:.2g}" in committed.loc["C42", "evidence"]


@pytest.mark.parametrize("accuracy", [0.0, 100.0])
def test_queries_that_all_rank_alike_tell_no_categories_apart(accuracy, tmp_path):
    log = pd.DataFrame({"query": "video", "category": ["a", "b"], "pairs": 20, "accuracy": accuracy})
    write_log("pretext_accuracy", tmp_path, log.assign(dataset="synthetic", preset="quick"))
    assert row_of("C42", tmp_path)["verdict"] == UNDECIDED


def test_norms_of_picks_are_compared_by_sampler(committed):
    log = pd.read_csv(FIGURES / "selected_negatives_synthetic.csv")
    norms = {(modality, sampler): rows for (modality, sampler), rows in log.groupby(["modality", "sampler"])
             ["gradient_norm"]}
    for number, first, second in (("C40", "random", "ohem"), ("C41", "gradient", "random")):
        for modality in ("video", "audio"):
            sides = norms[modality, first], norms[modality, second]
            error = math.sqrt(sum(side.var() / len(side) for side in sides))
            told = f"{modality} {sides[0].mean() - sides[1].mean():+.2f}, s.e. {error:.2f} (32 against 32 picks)"
            assert told in committed.loc[number, "evidence"]
    assert committed.loc["C36", "verdict"] == HOLDS and committed.loc["C40", "verdict"] == FAILS  # of three, of all


def test_a_discrepancy_is_measured_at_the_same_point_of_a_grid(tmp_path):
    low, high = ({"temperature": query, "key_temperature": key} for query, key in ((0.1, 0.05), (0.2, 0.1)))
    cells = ((40.0, low, {}), (30.0, high, {}), (41.0, low, {"masked_positive": False}))
    rows = [image("sce", value, **away, **point) for value, point, away in cells]
    for ordered in (rows, rows[::-1]):
        found = measured(frame(*ordered), tmp_path, ["S-2"])
        assert "sce, temperature=0.1, key_temperature=0.05 41.0 instead of 40.0 (1 seed)" in found["S-2"]
        assert "30.0" not in found["S-2"]


def test_committed_discrepancies_hold_what_the_readme_says():
    found = measured(read_cells(FIGURES / "cells.csv"), FIGURES)
    assert "CD 55.0 instead of 64.6 (1 seed)" in found["T-10"]
    assert "CE 33.9 at 0.05, 79.3 at 9e-4" in found["T-8"]
    assert (found != claims.NOT_MEASURED).sum() >= 20


def test_filters_and_their_errors(nothing):
    table = nothing.reset_index()
    found = claims.chosen(table, verdict="holds", level="printed numbers")
    assert set(found["level"]) == {PRINTED} and set(found["verdict"]) == {HOLDS} and len(found) > 10
    for arguments, message in (
        ({"verdict": "true"}, "verdict='true' is not one of: all, holds"),
        ({"level": "paper"}, "level='paper' is not one of: all, closed form"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            claims.chosen(table, **arguments)
    for arguments, message in (
        ({"paper": "JLC"}, "paper='JLC' is not one of: all, CM-ACC, JCL, SCE, taxonomy; did you mean 'JCL'"),
        ({"dataset": "none"}, "dataset='none' is not one of: all"),
        ({"preset": "fast"}, "preset='fast' is not one of: auto"),
        ({"seeds": "0;1"}, "seeds='0;1' should be a comma list"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            papers.judged(**arguments)


def test_counts_and_texts(committed):
    table = committed.reset_index()
    counts = claims.counted(table)
    assert list(counts.columns) == list(VERDICTS) and claims.counted(table[:0]).to_numpy().sum() == 0
    page = claims.shown(table).to_html()
    assert "taxonomy_ucla.png" in page and "p &lt; 0.038" in page
    rows = claims.measured_discrepancies(papers.discrepancies(), Evidence({}, FIGURES, papers.logs()))
    page = claims.shown_discrepancies(rows.assign(here="a < b")).to_html()
    headings = re.findall(r"<th[^>]*>(.+?)</th>", page)
    assert headings == ["id", "paper", "place", "the paper", "but", "here", "measured"]
    assert page.count("a &lt; b") == len(DISCREPANCIES)
