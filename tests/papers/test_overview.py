"""What the index of results shows of all papers, against runs and claims read otherwise."""

import json

import pandas as pd
import pytest

from repro.data import manifest
from repro.papers import overview, verdicts
from repro.papers.sources import judged

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
    assert rows["the term whose t is 2.394"] == "AD" and rows["transfer of large networks"] == ""


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
