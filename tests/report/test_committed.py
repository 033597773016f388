"""The committed figures: they follow from the committed cells, and hold what the README says of them."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from repro.report.redraw import LOGS, redraw
from repro.run.export import read_cells

FIGURES = Path(__file__).parents[2] / "figures"


def table(name):
    return pd.read_csv(FIGURES / f"{name}.csv")


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    """Names of the files that the committed cells and logs give, and their folder, which holds the logs too."""
    folder = tmp_path_factory.mktemp("figures")
    for path in (path for name in LOGS for path in FIGURES.glob(f"{name}_*.csv")):
        shutil.copy(path, folder)
    return [path.name for path in redraw(read_cells(FIGURES / "cells.csv"), folder)], folder


def test_no_file_is_left_over_and_none_is_missing(redrawn):
    committed = {path.name for path in FIGURES.iterdir()} - {"cells.csv"}
    assert committed == {path.name for path in redrawn[1].iterdir()}


def test_every_table_follows_from_the_committed_cells(redrawn):
    names, folder = redrawn
    assert {"taxonomy_synthetic.png", "taxonomy_ucla.png", "encoder_collapse_ucla.png"} <= set(names)
    for name in names:
        assert (FIGURES / name).exists()
        if name.endswith(".csv"):
            assert (folder / name).read_bytes() == (FIGURES / name).read_bytes()


@pytest.mark.parametrize("name", ["taxonomy_synthetic", "taxonomy_ucla"])
def test_tables_are_complete(name):
    assert len(table(name)) == 16 and table(name)["ours"].notna().all()


def test_random_initialisation_stays_far_below_the_best_objective_on_embedded_data():
    rows = table("taxonomy_synthetic").set_index("objectives")
    assert (rows["n_seeds"] == 3).all()
    assert rows["ours"].max() - rows.loc["random", "ours"] >= 15


def test_random_initialisation_reproduces_the_printed_row_at_every_depth():
    rows = table("encoder_collapse_ucla")
    rows = rows[rows["method"] == "random"].set_index("layers")
    assert list(rows.index) == [1, 2, 3, 4, 5] and (rows["n_seeds"] == 3).all()
    assert (rows["difference"].abs() < 3).all()
