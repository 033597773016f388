"""What the package makes is what it made when the golden files were written, see this folder's `__init__`.

Where a change is meant, `record.py` writes the files anew, and the commit says what changed.
"""

import csv
import json
from pathlib import Path

import pytest
from torch import ones, zeros

from tests.golden import adapter, asked, recorded
from tests.golden.bits import digest

CHECKOUT = Path(__file__).parents[2]
ROUNDING = 2 * 10**-recorded.DIGITS
# Of losses and spreads, which float32 gives to about six digits a step, relative to them or to 1 if they are less.
CLOSE = 1e-3
FLIPPED = 1.5  # percent of samples whose prediction may flip with the order in which a processor adds


def read(name):
    return json.loads((recorded.FOLDER / name).read_text(encoding="utf-8"))


def read_rows():
    with (recorded.FOLDER / "rows.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def told(request):
    return {name: request[name] for name in recorded.REQUEST}


@pytest.mark.parametrize("study", asked.RECORDED)
def test_recipes_of_presets(study):
    now, before = recorded.recipes()[study], read("recipes.json")[study]
    assert now.keys() == before.keys()
    for name, recipe in before.items():
        assert now[name] == recipe, f"{study}: {name or 'the first recipe'}"


@pytest.mark.parametrize("table", asked.BUNDLED)
def test_cells_and_their_keys(table):
    before = read("keys.json")
    for request in before["requests"]:
        if request["table"] == table:
            now = recorded.cells(told(request))
            cells = {key: before["cells"][key] for key in request["keys"].split()}
            assert now["cells"] == cells, told(request)
            assert now["data"] == request["data"], told(request)


def test_keys_of_committed_cells():
    csv.field_size_limit(2**24)
    with (CHECKOUT / "figures" / "cells.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            study, key = adapter.study_and_key_of(row)
            assert key == row["key"], (study, row["changes"])


@pytest.mark.parametrize("table", asked.BUNDLED)
def test_rows_beside_printed_numbers(table):
    before = [row for row in read_rows() if row["table"] == table]
    now = [row for request in asked.laid_out() if request["table"] == table for row in recorded.rows(request)]
    identifying = recorded.COLUMNS[:8]
    now_by_place = {tuple(row[name] for name in identifying): row for row in now}
    before_by_place = {tuple(row[name] for name in identifying): row for row in before}
    assert now_by_place.keys() == before_by_place.keys()
    assert len(now) == len(before) == len(before_by_place)
    for place, row in before_by_place.items():
        for name in (*recorded.NUMBERS, "measures"):
            now_there, before_there = (json.loads(values[name] or "null") for values in (now_by_place[place], row))
            assert_equal(now_there, before_there, (place, name))


def assert_equal(now, before, place):
    """Numbers and dicts of them are equal but for their rounding."""
    now, before = (value if isinstance(value, dict) else {"": value} for value in (now, before))
    assert now.keys() == before.keys(), place
    for name, value in before.items():
        same = now[name] == value or (
            isinstance(value, int | float) and isinstance(now[name], int | float) and abs(now[name] - value) <= ROUNDING
        )
        assert same, (place, name, now[name], value)


@pytest.mark.parametrize("study", asked.RECORDED)
def test_results_of_small_trainings(study):
    before = [training for training in read("results.json") if training["study"] == study]
    assert [training for training in asked.trainings() if training["study"] == study] == [
        {name: value for name, value in training.items() if name != "measured"} for training in before
    ]
    for training in before:
        measured, weights = recorded.trained(training)
        assert measured.keys() == training["measured"].keys(), training
        assert weights
        for name, value in training["measured"].items():
            allowed = tolerance(name, value)
            assert abs(measured[name] - value) <= allowed, (training, name, measured[name], value)


def tolerance(name, value):
    """By how much a measure may differ: accuracies are in percent, losses and spreads are not."""
    continuous = name.startswith("last ") or name.endswith(("spread", "scale")) or name in ("trained_on", "expected")
    if name in ("last knn1", "last categories_video", "last categories_audio"):
        continuous = False
    return CLOSE * max(1.0, abs(value)) if continuous else FLIPPED


def test_weights_are_hashed_whatever_their_names_and_order():
    assert digest([ones(2), zeros(3)]) == digest([zeros(3), ones(2)])
    assert digest([ones(2)]) != digest([ones(1, 2)]) != digest([zeros(1, 2)])


def test_made_up_results_tell_cells_and_measures_apart():
    values = {recorded.made_up(key, name) for key in ("a", "b") for name in ("linear", "knn1")}
    assert len(values) == 4 and all(0 <= value < 100 for value in values)
