"""JCL's tables: the runs of its sweeps, and their rows."""

import json

import pytest
from made_up_measures import asked, finished, laid_out

from repro.papers.jcl.tables import TABLES

KEYS = TABLES["positive_keys"]


def runs(table, dataset=None, **choices):
    return [run for run in asked(table, dataset, **choices)]


def swept(runs):
    return [(run.recipe.keys, run.recipe.strength, run.recipe.temperature) for run in runs]


@pytest.mark.parametrize(("dataset", "keys", "strengths", "temperatures"), [
    ("digits", [1, 2, 5, 9], [0, 4, 10], [0.1, 0.2, 0.5]),
    ("imagenet100", [1, 2, 3, 5, 7, 9], [0, 0.5, 1, 2, 4, 6, 10], [0.07, 0.1, 0.2, 0.3, 0.5]),
])
def test_the_three_sweeps(dataset, keys, strengths, temperatures):
    expected = [(number, 4, 0.2) for number in keys] + [(5, value, 0.2) for value in strengths]
    expected += [(5, 4, value) for value in temperatures]
    found = runs(KEYS, dataset)
    assert swept(found) == list(dict.fromkeys(expected))  # the common point once
    assert {run.recipe.method for run in found} == {"jcl"}


def test_the_common_point_is_a_row_of_all_three_sweeps():
    rows, found = laid_out(KEYS, seeds="0,1"), runs(KEYS, seeds="0,1")
    assert "changed" not in rows
    assert rows["varied"].tolist() == ["keys"] * 4 + ["strength"] * 3 + ["temperature"] * 3
    for name, values in {"keys": [1, 2, 5, 9], "strength": [0, 4, 10], "temperature": [0.1, 0.2, 0.5]}.items():
        sweep = rows[rows["varied"] == name]
        assert sweep[name].tolist() == values
        for other, value in {"keys": 5, "strength": 4.0, "temperature": 0.2}.items():
            assert other == name or (sweep[other] == value).all()
    base = rows[(rows["keys"] == 5) & (rows["strength"] == 4) & (rows["temperature"] == 0.2)]
    linear = [json.loads(text)["linear"] for text in finished(found)["metrics"]]
    values = [value for value, place in zip(linear, swept(found), strict=True) if place == (5, 4, 0.2)]
    assert len(values) == 2 and base["ours"].tolist() == [sum(values) / 2] * 3
    assert (rows["encoder_forwards"] == rows["keys"] + 3).all()


def test_a_run_beside_the_sweeps_differs_from_the_first_that_it_is_of():
    rows = laid_out(KEYS, keys=3, strength=1.0, temperature=0.2)
    assert dict(zip(rows["varied"], rows["changed"], strict=True)) == {"keys": {"strength": 1.0}}


def test_at_one_point_of_a_sweep_the_row_that_differs_least_comes_first():
    rows = laid_out(KEYS, keys="2,5", strength="1,4", temperature=0.2)
    assert rows[rows["varied"] == "keys"][["keys", "strength"]].values.tolist() == [[2, 4], [2, 1], [5, 4]]
