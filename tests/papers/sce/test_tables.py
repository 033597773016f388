"""SCE's tables: their runs, and the printed accuracies beside made-up ones."""

import math

import pytest
from made_up_measures import asked, laid_out

from repro.papers.sce.tables import TABLES
from repro.report.printed import as_printed
from repro.report.text import readable

GRID = TABLES["temperature_grid"]
NAMES = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "stl10": "STL10", "tiny_imagenet": "Tiny-IN"}


def places(dataset=None, **choices):
    recipes = [run.recipe for run in asked(GRID, dataset, **choices)]
    return [(recipe.method, recipe.temperature, recipe.key_temperature) for recipe in recipes]


@pytest.mark.parametrize(("dataset", "own"), [
    ("digits", [0.03, 0.05, 0.07, 0.1]), ("cifar10", [0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1])])
def test_the_grid_of_temperatures(dataset, own):
    assert places(dataset) == [("sce", row, column) for row in (0.1, 0.2) for column in own] + [("ressl", 0.1, 0.1)]
    assert places(dataset, method="ressl", key_temperature="0.04,0.05") == [("ressl", 0.1, 0.04), ("ressl", 0.1, 0.05)]


@pytest.mark.parametrize("subset", [False, True])
@pytest.mark.parametrize("dataset", NAMES)
def test_printed_accuracies_stand_at_their_temperatures(dataset, subset):
    rows = laid_out(GRID, dataset, subset=subset)
    grid = as_printed("sce_temperature").set_index(["dataset", "tau"])
    sce = rows[rows["method"] == "sce"]
    assert len(sce) == 16 and sce["printed"].nunique() >= 12
    for row in sce.itertuples():
        value = float(grid.loc[(NAMES[dataset], f"{row.temperature:.1f}"), f"tau_m_{row.key_temperature:.2f}"])
        assert row.printed == value
        expected = math.nan if subset else row.ours - value  # of a part of the data, or a copy, nothing is subtracted
        assert row.difference == pytest.approx(expected, nan_ok=True)
    assert rows.loc[rows["method"] == "ressl", ["printed", "difference"]].isna().all(axis=None)


@pytest.mark.parametrize(("dataset", "temperature", "key_temperature"), [
    ("imagenet100", "auto", "auto"), ("cifar10", "0.1", "0.055,0.025,0.1004"), ("cifar10", "0.104,0.3,0.15", "0.05"),
])
def test_nothing_is_printed_for_other_data_and_between_the_printed_temperatures(dataset, temperature, key_temperature):
    rows = laid_out(GRID, dataset, temperature=temperature, key_temperature=key_temperature)
    assert len(rows) >= 4 and rows[["printed", "difference"]].isna().all(axis=None)


def test_what_differs_in_a_part_is_counted_from_the_preset_of_parts():
    """Which trains ten times as long: runs of ten epochs would not be read otherwise."""
    rows = laid_out(TABLES["image_methods"], "cifar10", preset="quick", subset=True, method="sce", epochs="10,100")
    assert rows[["epochs", "changed"]].to_dict("list") == {"epochs": [10, 100], "changed": [{"epochs": 10}, {}]}


def test_the_registered_recipes_show_what_they_use_alone():
    rows = laid_out(TABLES["registered"], "cifar10", preset="quick", subset=True, epochs="10")
    assert rows[rows["method"].isin(["random", "supervised"])][["temperature", "strength"]].isna().all(axis=None)
    title, names, *lines = readable(rows).splitlines()
    assert "temperature" not in title and "nan" not in readable(rows)
    assert names.split()[:4] == ["method", "temperature", "key_temperature", "strength"]
    assert [" ".join(line.split()[:4]) for line in lines[1:4]] == ["supervised 40.2 (1)", "moco 0.2 40.5 (1)",
                                                                   "ressl 0.1 0.04 40.8"]
