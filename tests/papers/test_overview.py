"""What the index of results shows of all papers, against runs and claims read otherwise."""

import json

import pandas as pd
import pytest

from repro.data import manifest
from repro.papers import overview, verdicts
from repro.papers.sources import judged
from repro.report.printed import as_printed

RUNS = pd.read_csv(manifest.shipped("figures") / "runs.csv")


@pytest.fixture(scope="module")
def numbers():
    return judged()[1]


def test_ours_beside_the_papers_is_of_the_runs_and_claims_that_are_named(numbers):
    table = overview.beside(numbers)
    assert {*table["verdict"]} == {"in part", "reproduced", "not reproduced", "undecided", "not run"}
    recipes = RUNS["recipe"].map(json.loads)
    named = recipes.map(lambda recipe: recipe.get("objectives") == "AE+AD+CD" and recipe["layers"] == 1)
    usual = (RUNS["preset"] == "paper") & (RUNS["dataset"] == "ucla") & (RUNS["changes"] == "{}")
    linear = RUNS[named & usual & (RUNS["version"] == 3)]["metrics"].map(lambda text: json.loads(text)["linear"])
    assert len(linear) == 5
    rows = table.set_index("what")["ours"]
    assert rows["AE+AD+CD, the one of fifteen refuted"] == f"{linear.mean():.1f} ± {linear.std():.1f} (5)"
    assert rows["SCE minus ReSSL at equal temperatures"].startswith("+17.5, s.e. 1.1, p < 0.001 (3")
    assert rows["the term that has the t of the text"] == "AD" and rows["transfer of large networks"] == ""


def test_the_papers_numbers_are_those_of_its_printed_tables(numbers):
    """Of which we show objectives by their terms, depths, and differences of methods and samplers."""
    theirs = overview.beside(numbers).set_index("what")["the paper"]
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
    lost, gained = (table.loc["Random", "UCF101_M128"] - table.loc["OHEM", "UCF101_M128"],
                    table.loc["Active"] - table.loc["Random"])
    assert theirs["random negatives minus OHEM's, batch 128"] == f"{lost:+.1f} on UCF101"
    assert theirs["active negatives minus random ones"] == (
        f"{gained.min():+.1f} to {gained.max():+.1f} on UCF101, HMDB51")


def test_links_name_the_headings_of_the_pages():
    rows = verdicts().set_index("place")
    assert overview.links(rows.reset_index())[[*rows.index].index("Table 1 on NTU RGB+D")] == (
        "[Table 1 on NTU RGB+D](results_taxonomy.ipynb#table-1-on-ntu-rgbd)")


def test_runs_that_had_ended_when_a_sentence_was_fixed_are_counted():
    """As they were counted by hand, of some; a sentence that is fixed twice is an error."""
    table = overview.fixed_before().set_index("sentences")
    known = {"C77": (0, 24), "C9, C10, C11, C56": (24, 42), "C72": (56, 60), "C76": (12, 24), "C65": (32, 32),
             "T6": (46, 80), "T34, T37, T38": (76, 80), "T27": (52, 61), "S4": (24, 24), "J19": (12, 18)}
    assert {name: (*table.loc[name, ["finished then", "runs"]],) for name in known} == known
    assert table.loc["C77", "fixed"] == "26 November 2026 17:56" and table.loc["C42", "commit"] == ""
    assert not table.index.to_series().str.split(", ").explode().duplicated().any()
