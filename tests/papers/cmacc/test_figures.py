"""CM-ACC's figures: the values that they show of made-up tables and frames, by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible
from pandas import DataFrame

from repro.papers.cmacc import figures


def pretext_table(seeds=1, categories=100) -> DataFrame:
    names = [f"category {number:02d}" for number in range(categories)]
    rows = [*itertools.product(range(seeds), ("video", "audio"), names)]
    accuracies = np.random.default_rng(0).uniform(0, 100, (2, len(rows)))
    table = DataFrame(rows, columns=["seed", "query", "category"])
    return table.assign(accuracy=accuracies[0], accuracy_again=accuracies[1], preset="quick", dataset="synthetic")


def test_the_ten_best_and_five_worst_categories():
    table = pretext_table(3)
    data = figures.PRETEXT.data(table)
    for query, name in (("video", "queries of pictures"), ("audio", "queries of sound")):
        groups = table[table["query"] == query].groupby("category")
        means = groups["accuracy"].mean().sort_values(ascending=False)
        expected = pd.concat([means[:10], means[-5:]])
        stored, again = (data[(data["panel"] == name) & (data["line"] == keys)] for keys in (
            "keys of the dictionary", "encoded again, of age 0"))
        assert stored["x"].tolist() == again["x"].tolist() == list(expected.index)
        np.testing.assert_allclose(stored["value"], expected)
        np.testing.assert_allclose(stored["std"], groups["accuracy"].std()[expected.index])
        np.testing.assert_allclose(again["value"], groups["accuracy_again"].mean()[expected.index])
    assert_legible(figures.PRETEXT(table))
    unmeasured = figures.ranked_first(table.drop(columns="accuracy_again"))
    assert {*unmeasured["keys"]} == {"accuracy"}


@pytest.mark.parametrize(("categories", "shown"), [(1, 1), (10, 10), (12, 12), (40, 15)])
def test_no_category_is_both_best_and_worst_and_equal_ones_come_by_name(categories, shown):
    table = pretext_table(categories=categories).assign(accuracy=50.0).sample(frac=1, random_state=1)
    rows = figures.ranked_first(table).query("query == 'queries of sound' and keys == 'accuracy'")
    names = sorted(set(table["category"]))
    assert rows["category"].tolist() == names[:10] + names[10:][-5:] and len(rows) == shown


def test_categories_stand_in_a_panel_for_each_number_of_negatives():
    rows = DataFrame({"sampler": ["random", "gradient"] * 2, "batch": [64, 64, 32, 32], "target": "video", "std": 1.6,
                      "ours": [41.0, 56.0, 21.0, 24.0], "expected": [40.0, 40.0, 20.0, 20.0], "dataset": "synthetic",
                      "preset": "quick", "n_seeds": 3, "printed": np.nan})
    data = figures.DIVERSITY.data(rows)
    panels = {panel: rows for panel, rows in data.groupby("panel", sort=False)}
    assert [*panels] == ["negatives of pictures\nM = 32", "negatives of pictures\nM = 64"]
    for rows, values, expected in zip(panels.values(), ([21.0, 24.0], [41.0, 56.0]), (20.0, 40.0), strict=True):
        assert rows["value"].tolist() == values and set(rows["reference"]) == {expected}


def test_encoders_of_several_kinds_and_splits_are_told_apart():
    rows = DataFrame({"method": ["cmacc", "scratch", "cmacc"], "video_trunk": ["r3d18", "small_video", "r2plus1d18"],
                      "split": [0, 0, 2]})
    assert figures.by_encoder(rows)["encoder"].tolist() == [
        "Scratch", "CM-ACC, 3D-ResNet18", "CM-ACC, R(2+1)D-18, split 2"]
