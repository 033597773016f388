"""SCE's tables: their cells, and the printed accuracies beside made-up ones."""

import numpy as np
import pytest
from made_up_images import be_every_set
from made_up_measures import laid_out

from repro.image.recipe import paper
from repro.papers.sce.tables import TABLES
from repro.report.printed import as_printed

GRID = TABLES["temperature_grid"]
NAMES = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "stl10": "STL10", "tiny_imagenet": "Tiny-IN"}
pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture(autouse=True)
def any_data(monkeypatch):
    be_every_set(monkeypatch)


def places(cells):
    return [(cell.recipe.method, cell.recipe.temperature, cell.recipe.key_temperature) for cell in cells]


def test_the_methods_in_one_setting():
    cells = TABLES["image_methods"].cells("cifar10")
    methods = ["random", "supervised", "moco", "ressl", "sce", "jcl"]
    assert [cell.recipe for cell in cells] == [paper("cifar10", method) for method in methods]


@pytest.mark.parametrize(
    ("dataset", "own"),
    [("digits", [0.03, 0.05, 0.07, 0.1]), ("cifar10", [0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1])],
)
def test_the_grid_of_temperatures(dataset, own):
    cells = GRID.cells(dataset)
    assert places(cells) == [("sce", row, column) for row in (0.1, 0.2) for column in own] + [("ressl", 0.1, 0.1)]
    assert cells[-1].label == "ressl, key_temperature=0.1"


def test_ressl_alone_has_the_temperatures_asked_for():
    assert places(GRID.cells(method="ressl")) == [("ressl", 0.1, 0.1)]
    asked = places(GRID.cells(method="ressl", key_temperature="0.04,0.05"))
    assert asked == [("ressl", 0.1, 0.04), ("ressl", 0.1, 0.05)]


@pytest.mark.parametrize("suffix", ["", " (subset)"])
@pytest.mark.parametrize("dataset", NAMES)
def test_printed_accuracies_stand_at_their_temperatures(dataset, suffix):
    rows = laid_out(GRID, GRID.cells(dataset, subset=bool(suffix)))
    assert set(rows["dataset"]) == {dataset + suffix}
    grid = as_printed("sce_temperature").set_index(["dataset", "tau"])
    sce = rows[rows["method"] == "sce"]
    assert len(sce) == 16
    for row in sce.itertuples():
        value = float(grid.loc[(NAMES[dataset], f"{row.temperature:.1f}"), f"tau_m_{row.key_temperature:.2f}"])
        assert row.published == value
        expected = np.nan if suffix else row.ours - value  # of a part of the data, or a copy, nothing is subtracted
        assert row.difference == pytest.approx(expected, nan_ok=True)
    assert sce["published"].nunique() >= 12
    assert rows.loc[rows["method"] == "ressl", ["published", "difference"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("dataset", "temperature", "key_temperature"),
    [("imagenet100", "auto", "auto"), ("imagenet", "auto", "auto"), ("cifar10", "0.1", "0.055,0.025,0.1004"),
     ("cifar10", "0.104,0.3,0.15", "0.05")],
)
def test_nothing_is_printed_for_other_data_and_between_the_printed_temperatures(dataset, temperature, key_temperature):
    rows = laid_out(GRID, GRID.cells(dataset, temperature=temperature, key_temperature=key_temperature))
    assert len(rows) >= 4 and rows[["published", "difference"]].isna().all(axis=None)
