"""What the package makes is what it made when the golden files were written, see this folder's `__init__`."""

import functools
import json

import pytest

from repro.data import manifest
from tests.golden import recorded

IDS, RECIPES = recorded.read("ids.json"), recorded.read("recipes.json")
TABLES = dict.fromkeys(request["table"] for request in IDS["requests"])
ROUNDING = 2 * 10**-recorded.DIGITS
# Of losses and spreads, which float32 gives to about six digits a step, relative to them or to 1 if they are less.
CLOSE = 1e-3
CONTINUOUS = ("trained_on", "expected", "last expected")
COUNTED = ("last knn1", "last categories_video", "last categories_audio")
FLIPPED = 1.5  # percent of samples whose prediction may flip with the order in which a processor adds


pytestmark = pytest.mark.usefixtures("clips_prepared", "runs_root")


@pytest.fixture(autouse=True)
def files_stay(monkeypatch):
    """The files of data sets, which nothing changes here, are looked at once for a test, not for each run of it."""
    monkeypatch.setattr(manifest, "version", functools.cache(manifest.version))


@pytest.mark.parametrize("study", RECIPES)
def test_recipes_of_presets(study):
    expected = RECIPES[study]
    recipes = recorded.recipes(study, [*filter(None, expected)])
    assert {name: recipes[name] for name in expected if recipes[name] != expected[name]} == {}


@pytest.mark.parametrize("table", TABLES)
def test_runs_and_their_ids(table):
    for request in IDS["requests"]:
        if request["table"] == table:
            expected = {id: IDS["runs"][id] for id in request["ids"].split()}
            assert recorded.runs(request) == {"data": request["data"], "runs": expected}, request


@pytest.mark.parametrize("table", TABLES)
def test_rows_beside_printed_numbers(table):
    expected = {}
    for row in recorded.read_rows():
        expected.setdefault(tuple(row[name] for name in recorded.COLUMNS[:6]), []).append(json.loads(row["row"]))
    for place, request in zip(expected, recorded.laid_out(), strict=True):
        if request["table"] == table:
            assert recorded.rows(request) == [rounded(row) for row in expected[place]], place


def rounded(value):
    """What equals a row, also of nested ones, but for the rounding of its numbers."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return pytest.approx(value, rel=0, abs=ROUNDING) if isinstance(value, int | float) else value


@pytest.mark.parametrize("study", RECIPES)
def test_results_of_small_trainings(study):
    for training in recorded.read("results.json"):
        if training["study"] == study:
            measured, weights = recorded.trained(training)
            assert weights and training["measured"].keys() <= measured.keys(), training  # a new probe adds its own
            for name, value in training["measured"].items():
                assert abs(measured[name] - value) <= tolerance(name, value), (training, name, measured[name], value)


def tolerance(name, value):
    """By how much a measure may differ: accuracies are in percent, losses and spreads are not."""
    loss = name.startswith("last ") and name not in COUNTED
    return CLOSE * max(1.0, abs(value)) if loss or name.endswith(("spread", "scale")) or name in CONTINUOUS else FLIPPED
