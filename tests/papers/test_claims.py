"""The papers' claims: that all can be judged, what verdicts committed runs and printed numbers give, and rules.

Numbers are typed from other calculations than those of the package: by hand, or from the tables of the papers.
"""

import dataclasses
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up_measures import finished, finished_row
from pandas import DataFrame
from scipy import stats
from statsmodels.stats.multitest import multipletests
from typer.testing import CliRunner

from repro import cli, experiments, papers
from repro.data import manifest
from repro.papers import overview, sources
from repro.papers.cmacc import claims as cmacc
from repro.papers.jcl import claims as jcl
from repro.papers.sce import claims as sce
from repro.papers.sources import FIXED, LOG, PRINTED_TABLE
from repro.papers.taxonomy import claims as taxonomy
from repro.papers.taxonomy import glm
from repro.report.claims import (
    BUNDLED,
    PAPER,
    RULES,
    SHORTENED,
    Claim,
    difference_in_words,
    held,
    judge,
    listed,
    paired,
)
from repro.report.printed import as_printed
from repro.run.store import COLUMNS

TITLES = ("CM-ACC", "JCL", "SCE", "taxonomy")


@pytest.fixture(scope="module", autouse=True)
def no_runs():
    """Of the committed runs alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", "/nonexistent")
        yield


@pytest.fixture(scope="module")
def read():
    """The reader of committed results, which reads each once."""
    return sources.reader()


@pytest.fixture(scope="module")
def committed(read):
    """Claims by id, the numbers behind them, and discrepancies by id, as `repro claims` has judged them."""
    answers, judged = [], sources.judged
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "reader", lambda: read)
        patch.setattr(sources, "judged", lambda *paper, **of: answers.append(judged(*paper, **of)) or answers[-1])
        ended = CliRunner().invoke(cli.app, ["claims"])
    (claims, numbers, discrepancies), = answers
    assert ended.exit_code == 0
    rows = [line for line in ended.stdout.splitlines() if line[0] != " "]
    assert [row.split()[0] for row in rows] == [*claims["id"], *discrepancies["id"]]
    return claims.set_index("id"), numbers, discrepancies.set_index("id")


@pytest.fixture(scope="module")
def beside(committed):
    """Ours beside the papers' numbers."""
    return overview.beside(committed[1]).set_index("what")


def number(committed, claim, compared):
    rows = committed[1].query("id == @claim and compared == @compared")
    assert len(rows) == 1, [*committed[1].query("id == @claim")["compared"]]
    return rows.iloc[0]


def test_all_that_papers_offer_is_used_and_all_that_claims_name_is_there(read):
    claims = [claim for _, claim in papers.claims().values()]
    named = {name for claim in claims for name in listed(claim.experiment) if name}
    derived = papers.joined("derived table", papers.offered("DERIVED", "claims"))
    fixed = {path.stem for folder in papers.folders().values() for kind in FIXED for path in folder.glob(f"{kind}/*")}
    assert {claim.rule for claim in claims} == {*RULES, "not run", "cannot be checked"} and {*derived, *fixed} <= named
    for name in named | {source for source, _ in derived.values()}:
        if name.startswith((PRINTED_TABLE, LOG)) or name in fixed:
            assert len(read(name).rows)
        else:
            assert name in derived or experiments.find(name)


def test_how_categories_differ_is_told_of_all_encoders_together(committed, read):
    """Chi-squared of a table of counts, right and wrong, by category, summed over encoders and kinds of queries."""
    frame = read("log/pretext_accuracy_synthetic").rows
    total = freedom = error = 0
    for _, part in frame.groupby(["query", "seed"]):
        right = (part["accuracy"] / 100 * part["pairs"]).round()
        found = stats.chi2_contingency([right, part["pairs"] - right], correction=False)
        total, freedom, error = total + found.statistic, freedom + found.dof, error + (2 * found.dof) ** 0.5
    assert (round(total), freedom) == (377, 186)
    found = number(committed, "C42", "all minus 0")
    assert found["value"] == pytest.approx(total - freedom, abs=1e-6)
    assert found["error"] == pytest.approx(error)


def test_verdicts_are_the_recorded_ones(committed):
    """Of all sentences; where one changes on purpose, CHANGELOG says why and `tests/golden/verdicts.csv` has it."""
    recorded = pd.read_csv(Path(__file__).parents[1] / "golden" / "verdicts.csv", keep_default_na=False)
    table = committed[0].reset_index()[["id", "verdict", "level"]]
    assert table.to_dict("records") == recorded.to_dict("records")


def test_sentences_that_would_not_survive_a_correction_across_them_are_known(committed):
    """RESULTS names them, and when each sentence was fixed."""
    table = committed[0].reset_index()
    trained = table[table["level"].isin([PAPER, SHORTENED, BUNDLED])]
    survives = multipletests(trained["p"].fillna(1), method="holm")[0]  # undecided ones were tested, too
    weak = trained.loc[~survives & trained["p"].notna(), "id"].tolist()
    assert {"C71", "C77", "C94", "C92"} <= {*weak} and {"C93", "C70"}.isdisjoint(weak)
    results = (Path(__file__).parents[2] / "RESULTS.md").read_text(encoding="utf-8")
    said, = re.findall(r"would not survive[^:]*: ([^.]*)\.", results)
    assert re.findall(r"[A-Z]\d+", said) == weak and "No author was asked" in results
    _, _, fixed = results.partition("## What was fixed before which runs")
    table_of_dates, _, _ = fixed.partition("\n\nC42 and T21 have a day and no commit")
    named = re.findall(r"\b[CJST]\d+\b", table_of_dates)
    assert sorted(named) == sorted(set(named)) and {*trained["id"]} <= {*named} <= {*table["id"]}


def test_the_printed_column_stands_beside_a_constant_and_shuffled_ones(committed):
    said = [number(committed, "T10", name)["value"] for name in (
        "rms from the paper, of 12", "rms of one number for all", "correlation")]
    table = experiments.results("taxonomy_ucla").set_index("objectives")
    ours, theirs = table.drop(index=["random", "AE", "AE+CD", "AE+AD+CD"])[["ours", "printed"]].to_numpy(float).T
    assert said == pytest.approx([((ours - theirs) ** 2).mean() ** 0.5, theirs.std(), stats.pearsonr(ours, theirs)[0]])
    rows = committed[1].query("id == 'T10' and error > 0")
    refuted = rows[rows["p"] * len(rows) < 0.05]
    assert refuted["compared"].tolist() == ["AE+AD+CD"]


@pytest.mark.parametrize(("claim", "compared", "value"), [
    ("T1", "t minus 2.394", 1.210 - 2.394), ("T2", "p_one_tailed minus 0.038", 0.0374 - 0.038),
    ("T18", "printed_by_objective over printed_depths", 8.09),
    ("T20", "mixed over unmixed, UCLA", 0.38), ("T20", "mixed over unmixed, NTU_1layer", 0.13),
    ("T21", "points minus 2", 1.22 - 2),
    ("T14", "random_init over AE, layers 1", 0.12), ("C2", "classes 101 minus 0", 0.6 * 128 - 72.74),
    ("C2", "classes 51 minus 0", 51 - 0.6 * 128), ("C1", "draws, classes 51 minus 40", 36.685 - 40),
    ("C1", "categories, classes 101 minus 40", 72.02 - 40), ("C1", "draws, classes 101 minus 40", 56.83 - 40),
    ("C32", "AudioSet, 1.8M minus 0", 0),
    ("C35", "printed/cmacc_table6 over printed/cmacc_table1, ESC50", -1.9),
    ("C82", "printed/cmacc_table6 over printed/cmacc_table4, HMDB51", 0.4),
    ("C83", "printed/cmacc_table6 over printed/cmacc_table5", -1.0),
    ("C51", "Supervised over CM-ACC", -0.9), ("C52", "gained_ESC50 minus 0.1", 1.0),
    ("C29", "Ours over others, UCF101", 1.6), ("C31", "Ours over others, UCF101", 1.0),
    ("C48", "Random over OHEM, UCF101, batch 32 to 64", 9.4),
    ("S8", "tau 0.2 over tau 0.1", 1.37), ("S16", "tau over tau_m, CIFAR100", 0.02),
    ("C34", "CM-ACC, AudioSet over Supervised, Kinetics400, ESC50", 8.5),
])
def test_numbers_known_beforehand(committed, claim, compared, value):
    assert number(committed, claim, compared)["value"] == pytest.approx(value, abs=0.06 if value > 50 else 0.0051)


@pytest.fixture(scope="module")
def asked():
    """The recipes of every experiment and table that a claim rests on, by the ids of its runs."""
    named = {name for _, claim in papers.claims().values() for name in listed(claim.experiment)}
    named |= {source for source, _ in papers.joined("", papers.offered("DERIVED", "claims")).values()}
    return {name: {id: run.recipe for id, run in experiment.asked().items()}
            for name, experiment in experiments.experiments().items() if name in named}


@pytest.mark.parametrize(("of", "share"), [("id", 0.6), ("recipe", 0.5), ("id", 1)])
def test_no_verdict_is_firmer_than_the_runs_that_are_left_allow(committed, asked, monkeypatch, of, share):
    """Where a comparison of a claim is lost, or a run behind a derived table, it does not hold.

    It fails only if it does with all runs, or where a comparison that is left rests on fewer, which may scatter less.
    """
    claims, numbers, _ = committed
    runs, derived = sources.everything(), papers.joined("derived table", papers.offered("DERIVED", "claims"))
    declared = {name: claim for name, (_, claim) in papers.claims().items() if claim.says}
    left = runs[runs[of].map(lambda text: zlib.crc32(text.encode()) % 10 >= 10 * share)]  # a new run changes no other's
    monkeypatch.setattr(sources, "everything", lambda: left)
    lost, trained, from_lost = {}, {}, set()
    for name, recipes in asked.items():
        before, after = ({recipes[id] for id in some["id"] if id in recipes} for some in (runs, left))
        lost[name] = before != after
    for name, claim in declared.items():
        behind = [derived[source][0] if source in derived else source for source in listed(claim.experiment)]
        if any(source in lost for source in behind):
            trained[name] = claim
        if any(source in derived and lost.get(derived[source][0]) for source in listed(claim.experiment)):
            from_lost.add(name)
    verdicts = judge(trained, sources.reader())
    told = [table[(table["error"] != 0) & table["value"].notna()].set_index(["id", "compared"])["runs"]
            for table in (numbers, verdicts[1])]
    assert len(trained) >= 60
    for name, verdict in verdicts[0]["verdict"].items():
        before, after = ({} if name not in some.index else some[name].to_dict() for some in told)
        if name in from_lost or before.keys() - after.keys():
            fewer = any(before[what] != count for what, count in after.items())
            fails = {"fails"} if fewer or claims.at[name, "verdict"] == "fails" else set()
            assert verdict in {"undecided", "not run"} | fails, name
    if share == 1:
        assert (verdicts[0]["verdict"] == "not run").all()


def test_ours_beside_the_papers_is_of_the_runs_and_claims_that_are_named(beside):
    assert {*beside["verdict on the whole"]} == {"in part", "reproduced", "not reproduced", "undecided", "not run"}
    runs = pd.read_csv(manifest.shipped("figures") / "runs.csv")
    recipes = runs["recipe"].map(json.loads)
    named = recipes.map(lambda recipe: recipe.get("objectives") == "AE+AD+CD" and recipe["layers"] == 1)
    usual = (runs["preset"] == "paper") & (runs["dataset"] == "ucla") & (runs["changes"] == "{}")
    linear = runs[named & usual & (runs["version"] == 3)]["metrics"].map(lambda text: json.loads(text)["linear"])
    assert len(linear) == 5
    rows = beside["ours"]
    assert rows["AE+AD+CD, the one of fifteen refuted"] == f"{linear.mean():.1f} ± {linear.std():.1f} (5)"
    assert rows["SCE minus ReSSL at equal temperatures"].startswith("+17.5, s.e. 1.1, p < 0.001 (3")
    assert rows["which term has t = 2.394"] == "AD" and rows["transfer of large networks"] == ""


def test_the_papers_numbers_are_those_of_its_printed_tables(beside):
    """Of which we show objectives by their terms, depths, and differences of methods and samplers."""
    theirs = beside["the paper"]
    column, depths, methods, samplers = (as_printed(name) for name in (
        "taxonomy", "taxonomy_depth_collapse", "cmacc_table1", "cmacc_table3"))
    whole = column.set_index(["AE", "CE", "AD", "CD"])["UCLA"]
    assert theirs["AE+CE+AD, the paper's best"] == whole["1", "1", "1", "0"]
    assert theirs["AE+AD+CD, the one of fifteen refuted"] == whole["1", "0", "1", "1"]
    three = depths.set_index("layers").loc["3"]
    assert theirs[["random initialisation, three layers", "AE, three layers"]].tolist() == [
        three["random_init"], three["AE"]]
    gain = methods.set_index("approach")["gain_UCF101"]["XMoCo (w/o fcl)"]
    assert theirs.filter(like="contrast across").tolist() == [f"{gain} on UCF101"]
    table = samplers.set_index("sampler").astype(float)
    for what, better, worse in (("random negatives minus OHEM's, new pairs", "Random", "OHEM"),
                                ("active negatives minus random ones, new pairs", "Active", "Random")):
        gained = table.loc[better] - table.loc[worse]
        assert theirs[what] == f"{gained.min():+.1f} to {gained.max():+.1f} on UCF101, HMDB51"


def test_claims_of_one_paper_and_verdict():
    claims, numbers, discrepancies = sources.judged("SCE", verdict="self-consistent")
    assert {*claims["paper"]} == {*discrepancies["paper"]} == {"SCE"} and {*claims["verdict"]} == {"self-consistent"}
    assert {*numbers["id"]} == {*claims["id"]}
    with pytest.raises(ValueError, match="level='sure' is not one of: all, closed form"):
        sources.judged("SCE", level="sure")


# Tables that papers derive, of made-up results


def objectives(values, seeds=3, spread=0.1):
    rows = [{"objectives": name, "seed": seed, "ours": value + spread * (seed - 1)}
            for name, value in values.items() for seed in range(seeds)]
    return DataFrame(rows)


def test_what_is_lost_with_a_term():
    values = {name: 80.0 - 4.0 * ("CD" in name.split("+")) for name in glm.OBJECTIVES}
    assert taxonomy.lowered_by_contrastive_decoder(objectives(values))["points"].tolist() == [pytest.approx(4)] * 7


def test_the_lead_of_mixing_is_of_the_best_of_either_kind_and_has_the_error_of_their_seeds():
    values = {"AE": 50.0, "CE": 80.0, "CE+AD": 84.0, "AE+CE": 81.0, "AE+CE+AD": 83.0}
    rows = objectives(values | {"random": 99.0})
    lead, = taxonomy.lead_of_mixing(rows).to_dict("records")
    assert lead["points"] == pytest.approx(83.0 - 84.0) and lead["points_df"] == 10  # of five rows, two each
    assert lead["points_error"] == pytest.approx(0.1 * (2 / 3) ** 0.5)  # every row deviates by 0.1
    wide = rows["objectives"].eq("CE+AD")
    rows.loc[wide, "ours"] = 84.0 + 10 * (rows.loc[wide, "ours"] - 84.0)
    first, second = (rows.loc[rows["objectives"] == name, "ours"] for name in ("AE+CE+AD", "CE+AD"))
    lead, = taxonomy.lead_of_mixing(rows).to_dict("records")
    assert lead["points_error"] == pytest.approx((first.var() / 3 + second.var() / 3) ** 0.5)  # Welch's
    assert taxonomy.lead_of_mixing(objectives({"CE": 80.0, "AD": 82.0})).empty


def test_the_lead_of_the_best_has_the_error_of_two_runs():
    rows = DataFrame({"method": ["sce", "sce", "ressl", "ressl"], "temperature": 0.1, "key_temperature": 0.1,
                      "seed": [0, 1, 0, 1], "ours": [1.0, 3.0, 5.0, 5.0]})
    table = sce.lead_of_best(rows).set_index("dataset")
    assert table.loc["cifar10", "lead"] == pytest.approx(90.34 - 90.22)
    assert table["lead_error"].to_numpy() == pytest.approx([2**0.5] * 4) and (table["lead_df"] == 2).all()


def test_distances_from_means_are_those_of_levenes_test():
    values = {4: [1.0, 1.1, 0.9], 10: [1.0, 9.0, -8.0]}
    rows = DataFrame([{"keys": 5, "strength": strength, "temperature": 0.2, "ours": value}
                      for strength, runs in values.items() for value in runs])
    table = jcl.distances_from_mean(rows)
    t = stats.ttest_ind(*(part["distance"] for _, part in table.groupby("strength"))).statistic
    assert t**2 == pytest.approx(stats.levene(*values.values(), center="mean").statistic)


def test_rows_that_are_compared_are_made_of_what_is_stored():
    rows = [{"measure": measure, "posterior": posterior, "step": step, "value": value}
            for measure, posterior, step, value in (
                ("categories", 1.0, 9, 40.0), ("categories", 1.0, 1, 1.0), ("categories", 0.3, 9, 2.0),
                ("rho", 1.0, 9, 3.0))]
    assert cmacc.DERIVED["chosen_post_hoc"][1](DataFrame(rows))["value"].tolist() == [40.0]
    curve = DataFrame({"step": range(1, 101), "categories_video": range(1, 101)}).assign(
        sampler="random", frequency="zipf", batch=64, seed=0)
    assert cmacc.by_tenth(curve).set_index("tenth")["categories_video"].to_dict() == {"first": 5.5, "last": 95.5}
    accuracy = {("gradient", 32): 5.0, ("random", 32): 4.0,
                ("gradient", 64): 9.0, ("random", 64): 6.0, ("ohem", 64): 1.0}
    runs = DataFrame([{"sampler": sampler, "batch": batch, "target": "new_drawings", "seed": seed, "ours": ours}
                      for seed in (0, 1) for (sampler, batch), ours in accuracy.items()])
    means = cmacc.over_batches(runs[:-2]).pivot(index="sampler", columns="seed", values="ours")  # one lacks a number
    assert means.loc["gradient"].tolist() == [7.0, 7.0] and means.loc["random", 0] == 5.0
    assert means.loc["random"].isna().tolist() == [False, True]


def test_runs_of_one_seed_share_drawn_data_alone(read):
    assert read("samplers_by_batch").paired and not read("cross_modal_synthetic").paired
    assert read("diversity_balanced", "diversity_zipf").paired and read("samplers_over_batches").paired


def by_seed_of(finished, **fields):
    """What claims are held against of a sweep of methods; `finished` gives our number of a recipe that is finished."""
    experiment = experiments.Experiment(name="odd", table="image_methods", says="", dataset="cifar10", preset="paper",
                                        seeds="0-2", data={"digest": "0" * 64}, fields=fields)
    rows = [finished_row(run, linear=number + run.seed, knn1=0.0) for run in experiment.asked().values()
            if (number := finished(run.recipe)) is not None]
    return sources.by_seed(experiment, DataFrame(rows, columns=COLUMNS))


def test_rows_that_differ_in_another_field_are_not_compared_while_others_are_not_finished():
    """In which of them the two happen to go together."""
    numbers = {("moco", 64): 50.0, ("sce", 128): 70.0}
    found = by_seed_of(lambda recipe: numbers.get((recipe.method, recipe.batch)), method=["moco", "sce"],
                       batch=[64, 128])
    assert found.apart == ["method", "batch"]
    claim = Claim(experiment="odd", first={"method": "sce"}, second={"method": "moco"}, rule="above")
    assert held(claim, lambda name: found)[0] == "not run"


def test_a_field_that_one_side_does_not_use_tells_nothing_of_it():
    """It is compared at all values of the field, whether its own is one of them or not."""
    numbers = {0.1: 70.0, 0.2: 40.0, 0.3: 60.0}
    for values in ([0.1, 0.2], [0.2, 0.3]):
        found = by_seed_of(lambda recipe: numbers[recipe.key_temperature] if recipe.method == "sce" else 50.0,
                           method=["moco", "sce"], key_temperature=values)
        _, pairs, lacking = paired(found, {"method": "sce"}, {"method": "moco"})
        assert [*pairs] == [f"sce over moco, key_temperature {value}" for value in values] and not lacking


def test_registered_sentences_compare_what_their_page_says():
    """docs/registered.md has a row for each; numbers are made up, so that each recipe is known by its own."""
    experiment = experiments.find("registered_cifar10")
    runs = [*experiment.asked().values()]
    recipes = [*dict.fromkeys(run.recipe for run in runs)]
    assert len(recipes) == 12 and len(runs) == 36 and all(
        run.recipe.epochs == 10 for run in runs if run.recipe.uses("epochs"))

    def place(method, temperature=None, key_temperature=None, strength=None):
        asked = {"method": method, "temperature": temperature, "key_temperature": key_temperature, "strength": strength}
        found, = (number for number, recipe in enumerate(recipes)
                  if all(value in (None, getattr(recipe, name)) for name, value in asked.items()))
        return found

    numbers = 50 * np.sqrt(np.arange(1, 13))

    def measured(run):
        return {"linear": float(numbers[recipes.index(run.recipe)] / 5 + 3 * run.seed), "knn1": 0.0}

    found = sources.by_seed(experiment, finished(runs, measured))
    grid = {key: place("sce", 0.1, key) for key in (0.03, 0.05, 0.07, 0.1)}
    random, supervised, moco, collapsing = place("random"), place("supervised"), place("moco"), place("ressl", 0.1, 0.1)
    expected = {
        "V1": [(grid[0.05], place("ressl", 0.1, 0.04))], "V2": [(grid[0.05], moco)], "V3": [(collapsing, random)],
        "V4": [(grid[0.1], random)], "V5": [(grid[0.1], collapsing)],
        "V6": [(grid[first], grid[second]) for first in (0.05, 0.07) for second in (0.03, 0.1)],
        "V7": [(place("sce", 0.2, 0.1), grid[0.1])], "V8": [(place("jcl", strength=4.0), moco)],
        "V9": [(place("jcl", strength=4.0), place("jcl", strength=0.0))],
        "V10": [(supervised, other) for other in range(12) if other != supervised]}
    registered = {name: claim for name, (_, claim) in papers.claims().items() if name.startswith("V")}
    assert registered.keys() == expected.keys()
    for name, pairs in expected.items():
        *_, estimates = held(registered[name], lambda experiment: found)
        differences = sorted((numbers[first] - numbers[second]) / 5 for first, second in pairs)
        assert sorted(number.value for number in estimates.values()) == pytest.approx(differences), name
        assert registered[name].blocks == 3 and {number.runs for number in estimates.values()} == {(3, 3)}
        assert registered[name].rule == ("below" if name == "V3" else "above")


def test_experiments_that_share_runs_are_not_compared_and_equal_numbers_are_no_equal_runs(read):
    with pytest.raises(ValueError, match="image_methods_cifar10 and temperature_grid_cifar10 have 3 runs in common"):
        read("image_methods_cifar10", "temperature_grid_cifar10")
    tied = read("accuracy_by_diversity").rows
    assert tied.duplicated(["ours", "seed"]).any()
    assert len(read("accuracy_by_diversity", "taxonomy_ucla").rows) == len(tied) + len(read("taxonomy_ucla").rows)


def test_picks_are_compared_with_random_ones_from_the_same_pool():
    norms = {("ohem", 0): [3.0, 5.0], ("random", 0): [1.0, 2.0], ("ohem", 1): [9.0, 9.0], ("random", 1): [8.0, 9.0]}
    rows = DataFrame([{"modality": "video", "sampler": sampler, "seed": seed, "gradient_norm": norm}
                      for (sampler, seed), picks in norms.items() for norm in picks])
    assert cmacc.beyond_random(rows).to_dict("records") == [
        {"modality": "video", "seed": 0, "sampler": "ohem", "beyond": 2.5},
        {"modality": "video", "seed": 1, "sampler": "ohem", "beyond": 0.5}]


def against(name, value, **choices):
    experiment = experiments.find(name).with_choices(choices)
    lines = sources.differences(experiment, sources.row_named(experiment, value)).splitlines()
    return dict(map(str.strip, line.split("  ", 1)) for line in lines)


def test_differences_from_a_row_are_those_of_claims(committed):
    numbers = committed[1].set_index(["id", "compared"])[["value", "error", "p"]]
    for claim, name, value, line in (
        ("C92", "cross_modal_with_headroom", "XMoCo", "CM-ACC over XMoCo, characters"),
        ("C11", "mutual_information_printed_pairs", "xmoco", "cmacc over xmoco, characters 5, characters"),
    ):
        assert against(name, value)[line] == difference_in_words(*numbers.loc[(claim, line)])


def test_differences_from_a_row_that_is_not_finished_or_has_one_seed_say_so():
    unfinished = against("taxonomy_synthetic", "7", objectives="AD", ad_weight="1,7", seeds="0")
    assert unfinished == {"ad_weight 1 over ad_weight 7": "not finished"}
    single, = against("taxonomy_ucla", "CE", objectives="CE,AD", seeds="0").values()
    assert single.endswith("s.e. unknown")


@pytest.mark.parametrize(("name", "first", "second", "message"), [
    ("temperature_grid", {"method": "sec"}, {"method": "ressl"}, "did you mean 'sce'"),  # of which no run is finished
    ("lead_of_best", {"dataset": "cifar"}, 0.0, "did you mean 'cifar10'"),
])
def test_a_claim_that_names_a_value_which_no_recipe_has_is_refused(name, first, second, message, read):
    with pytest.raises(ValueError, match=message):
        judge({"X1": Claim(experiment=name, measure="lead" if name == "lead_of_best" else "ours", first=first,
                           second=second, rule="above")}, read)


def test_smoke_runs_judge_nothing(monkeypatch):
    assert len(sources.reader()("taxonomy_synthetic").rows)
    smoke = dataclasses.replace(experiments.find("taxonomy_synthetic"), preset="smoke")
    runs = DataFrame([finished_row(run, linear=50.0) for run in smoke.asked().values()])
    assert len(sources.by_seed(smoke, runs).rows)
    monkeypatch.setattr(sources, "everything", lambda: runs)
    monkeypatch.setattr(experiments, "find", lambda name: smoke)
    assert sources.reader()("taxonomy_synthetic").rows.empty


@pytest.mark.parametrize(("experiment", "message"), [
    ("log/glm_specification", "did you mean 'log/glm_specifications'"), ("taxonomy_ulca", "did you mean 'taxonomy_u"),
    (["taxonomy_ucla", "log/nonsense"], ".*experiment='log/nonsense' is not one of: log/"),
])
def test_results_that_no_experiment_or_table_has_are_refused(experiment, message, read):
    claim = Claim(experiment=experiment, first={"objectives": "CE"}, second=0.0, rule="above")
    with pytest.raises(ValueError, match=f"X1: {message}"):
        judge({"X1": claim}, read)


def test_several_experiments_are_told_apart_and_carry_as_far_as_the_weakest(read):
    found = read("taxonomy_ucla", "taxonomy_synthetic")
    assert found.apart[0] == "experiment" and found.level == read("taxonomy_synthetic").level
    assert {*found.rows["experiment"]} == {"taxonomy_ucla", "taxonomy_synthetic"}
