"""JCL's tables: the cells of its sweeps, and their rows."""

import json

import pytest
from made_up_images import be_every_set
from made_up_measures import finished, laid_out

from repro.image.recipe import paper
from repro.papers.jcl.tables import TABLES

KEYS, MODELS = TABLES["positive_keys"], TABLES["similarity_variance"]
pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture(autouse=True)
def any_data(monkeypatch):
    be_every_set(monkeypatch)


def swept(cells):
    return [(cell.recipe.keys, cell.recipe.strength, cell.recipe.temperature) for cell in cells]


@pytest.mark.parametrize(
    ("dataset", "keys", "strengths", "temperatures"),
    [
        ("digits", [1, 2, 5, 9], [0, 4, 10], [0.1, 0.2, 0.5]),
        ("imagenet100", [1, 2, 3, 5, 7, 9], [0, 0.5, 1, 2, 4, 6, 10], [0.07, 0.1, 0.2, 0.3, 0.5]),
        ("imagenet", [1, 2, 3, 5, 7, 9], [0, 0.5, 1, 2, 4, 6, 10], [0.07, 0.1, 0.2, 0.3, 0.5]),
    ],
)
def test_the_three_sweeps(dataset, keys, strengths, temperatures):
    cells = KEYS.cells(dataset)
    expected = [(number, 4, 0.2) for number in keys] + [(5, value, 0.2) for value in strengths]
    expected += [(5, 4, value) for value in temperatures]
    assert swept(cells) == list(dict.fromkeys(expected))  # the common point once
    assert {cell.recipe.method for cell in cells} == {"jcl"} and len({cell.key for cell in cells}) == len(cells)


def test_the_models_of_the_histograms():
    jcl, moco = MODELS.cells("imagenet100")
    assert jcl.recipe == paper("imagenet100", "jcl", keys=9, strength=4.0, temperature=0.2)
    assert moco.recipe == paper("imagenet100", "moco")
    assert [cell.recipe.method for cell in MODELS.cells(method="jcl")] == ["jcl"]


def test_the_common_point_is_a_row_of_all_three_sweeps():
    cells = KEYS.cells(seeds="0,1")
    rows = laid_out(KEYS, cells)
    assert "departures" not in rows
    assert rows["varied"].tolist() == ["keys"] * 4 + ["strength"] * 3 + ["temperature"] * 3
    for name, values in {"keys": [1, 2, 5, 9], "strength": [0, 4, 10], "temperature": [0.1, 0.2, 0.5]}.items():
        sweep = rows[rows["varied"] == name]
        assert sweep[name].tolist() == values
        for other, value in {"keys": 5, "strength": 4.0, "temperature": 0.2}.items():
            assert other == name or (sweep[other] == value).all()
    base = rows[(rows["keys"] == 5) & (rows["strength"] == 4) & (rows["temperature"] == 0.2)]
    assert base["varied"].tolist() == ["keys", "strength", "temperature"]
    linear = [json.loads(text)["linear"] for text in finished(cells)["metrics"]]
    values = [value for value, place in zip(linear, swept(cells), strict=True) if place == (5, 4, 0.2)]
    assert len(values) == 2 and base["ours"].tolist() == [sum(values) / 2] * 3
    assert (rows["encoder_forwards"] == rows["keys"] + 3).all()


def test_a_cell_beside_the_sweeps_departs_from_those_it_is_nearest_to():
    recipe = KEYS.cells(seeds="0")[0].recipe.replace(keys=3, strength=1.0)
    rows = laid_out(KEYS, [KEYS.study.cell(recipe, 0, "quick")])
    assert dict(zip(rows["varied"], rows["departures"], strict=True)) == {
        "keys": {"strength": 1.0}, "strength": {"keys": 3}
    }


def test_at_one_point_of_a_sweep_the_row_that_departs_least_comes_first():
    rows = laid_out(KEYS, KEYS.cells(keys="2,5", strength="1,4", temperature=0.2))
    assert rows[rows["varied"] == "keys"][["keys", "strength"]].values.tolist() == [[2, 4], [2, 1], [5, 4]]
