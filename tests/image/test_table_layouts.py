"""Made-up results as rows of the image tables: columns, means over seeds, departures."""

import json

import numpy as np
import pandas as pd
import pytest
from made_up_measures import finished, laid_out

import repro
from repro.data import manifest
from repro.run.export import read_cells
from repro.table import standing

TAIL = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset", "knn1", "embedding_spread"]
LAYOUTS = {
    "image_methods": ["method"],
    "temperature_grid": ["method", "temperature", "key_temperature"],
    "positive_keys": ["varied", "method", "keys", "strength", "temperature", "encoder_forwards"],
    "similarity_variance": ["method", "keys"],
}
pytestmark = pytest.mark.usefixtures("runs")


@pytest.mark.parametrize("name", LAYOUTS)
def test_columns_and_means_over_seeds(any_data, name):
    cells = repro.TABLES[name].cells("cifar10", preset="quick", seeds="0,1,5")
    rows = laid_out(repro.TABLES[name], cells)
    assert list(rows.columns) == [*LAYOUTS[name], *TAIL]
    if name != "positive_keys":
        values = finished(cells)["metrics"].map(lambda text: json.loads(text)["linear"])
        recipes = values.groupby([cell.recipe for cell in cells], sort=False)
        np.testing.assert_allclose(rows["ours"], recipes.mean())
        np.testing.assert_allclose(rows["std"], recipes.std(ddof=1))
    assert set(rows["n_seeds"]) == {3} and set(rows["preset"]) == {"quick"} and set(rows["dataset"]) == {"cifar10"}
    np.testing.assert_allclose(rows["knn1"], 32)
    np.testing.assert_allclose(rows["embedding_spread"], 0.7)


@pytest.mark.parametrize("name", ["image_methods", "positive_keys", "similarity_variance"])
def test_only_the_grid_of_temperatures_has_printed_numbers(any_data, name):
    rows = laid_out(repro.TABLES[name], repro.TABLES[name].cells("cifar10"))
    assert rows[["published", "difference"]].isna().all(axis=None)


def test_committed_cells_stand_in_the_tables_they_were_drawn_in():
    """Other tables may have more seeds of a cell by now; seed 0 is that of the committed tables of one seed."""
    folder = manifest.project_root() / "figures"
    tables = [repro.TABLES[name] for name in LAYOUTS]
    chosen = standing(tables, read_cells(folder / "cells.csv"))
    for name in LAYOUTS:
        committed = pd.read_csv(folder / f"{name}_cifar10_cifar10_lossless_subset_npz.csv")
        cells = chosen[name]
        if committed["n_seeds"].max() == 1:
            cells = cells[cells["seed"] == 0]
        rows = repro.TABLES[name].laid_out(cells)
        expected = committed.set_index(LAYOUTS[name]).sort_index()
        pd.testing.assert_frame_equal(rows.set_index(LAYOUTS[name]).sort_index(), expected, check_dtype=False)
