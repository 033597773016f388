"""What the taxonomy's results page says beside its tables, against loops and scipy."""

import itertools

import pandas as pd
import pytest
from pandas import DataFrame, Series
from scipy import stats

from repro import finished
from repro.data import manifest
from repro.experiments import find
from repro.papers.taxonomy import tried
from repro.report import statistics
from repro.run.store import everything


def test_changed_recipes_stand_beside_the_same_seeds_of_the_recipe():
    runs = everything()
    table = tried.changed_recipes(runs)
    assert len(table) == 23 and table["version"].tolist() == [2] * 13 + [3] * 10
    folder = manifest.shipped("figures")
    earlier = pd.read_csv(folder / "earlier" / "float32_ucla.csv").query("objectives == 'CE'")
    row, = table[table["what differs"] == "precision=float32"].query("objectives == 'CE'").to_dict("records")
    assert row["seeds"] == 3
    assert [row["changed"], row["recipe"]] == pytest.approx([earlier["ours"].mean(), earlier["usual"].mean()])
    head = pd.read_csv(folder / "released_head_ucla.csv").iloc[0]
    row, = table[table["what differs"].str.contains("key_head_copied")].to_dict("records")
    assert [row["seeds"], row["changed"], row["last epoch"]] == pytest.approx([3, *head[["ours", "linear_last"]]])
    column = finished().query("dataset == 'ucla' and preset == 'paper' and objectives == 'CE' and layers == 1")
    usual = column[~column["changes"].map(bool) & column["seed"].isin([0, 1, 2])]["linear"]
    assert len(usual) == 3 and row["recipe"] == pytest.approx(usual.mean())
    asked = find("taxonomy_ucla").asked().values()
    lost = {run.id for run in asked if (run.seed, run.recipe.objectives) == (0, "CE")}
    fewer = tried.changed_recipes(runs[~runs["id"].isin(lost)])
    assert fewer.loc[fewer["recipe"].isna(), "what differs"].tolist() == [row["what differs"]]


def test_a_shuffled_column_may_leave_out_its_furthest_row_as_ours_does():
    ours, printed = Series({"a": 1.0, "b": 2.0, "c": 9.0, "d": 4.0}), Series({"b": 2.5, "a": 1.0, "c": 3.0, "d": 4.5})

    def distance(column):
        return sum(sorted((one - other) ** 2 for one, other in zip(ours, column, strict=True))[:-1])

    here = distance(printed[ours.index])
    near = [distance(column) <= here + 1e-9 for column in itertools.permutations(printed)]
    assert tried.shuffled_as_near(ours, printed) == sum(near) / len(near) and 0 < sum(near) < len(near)


def test_means_that_nothing_pairs_are_apart_as_by_a_t_test():
    first, second = Series([1.0, 2.0, 4.0]), Series([3.0, 5.0, 6.0, 9.0])
    rows = DataFrame([first, second])
    expected = stats.ttest_ind(first, second)
    found = tried.apart(first, second, statistics.pooled(rows))
    assert found["p"] == pytest.approx(expected.pvalue)
    assert found["difference"] / found["s.e."] == pytest.approx(expected.statistic)
