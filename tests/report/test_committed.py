"""The committed figures: they follow from the committed cells, and hold what the README says of them."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from repro.report import glm_figures
from repro.report.redraw import LOGS, redraw
from repro.run.export import read_cells

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"


def table(name):
    return pd.read_csv(FIGURES / f"{name}.csv")


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    """Names of the files that the committed cells and logs give, and their folder, which holds the logs too."""
    folder = tmp_path_factory.mktemp("figures")
    for path in (path for name in LOGS for path in FIGURES.glob(f"{name}_*.csv")):
        shutil.copy(path, folder)
    cells = read_cells(FIGURES / "cells.csv")
    return [path.name for path in (*redraw(cells, folder), *glm_figures.redraw(cells, folder))], folder


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
    assert list(rows.index) == [1, 2, 3, 4, 5] and (rows["n_seeds"] == 3).all() and (rows["preset"] == "paper").all()
    assert (rows["difference"].abs() < 3).all()


def readme_table(*columns):
    """The rows of the README's table of these columns, as lists of texts; an empty first cell repeats the one above."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if cells(line) == [*columns])
    rows = []
    for line in lines[start + 2 :]:
        if not line.strip().startswith("|"):
            return rows
        first, *rest = cells(line)
        rows.append([first or rows[-1][0], *rest])
    return rows


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_the_column_in_the_readme_is_that_of_its_table():
    measures = {"linear": "ours", "linear_standardised": "linear_standardised", "knn1": "knn1"}
    rows, committed = readme_table("objective", "printed", *measures), table("taxonomy_ucla").set_index("objectives")
    assert [name for name, *_ in rows] == list(committed.index)
    for name, printed, *found in rows:
        row = committed.loc[name]
        assert float(printed) == row["published"]
        assert [text.split()[0] for text in found] == [f"{row[column]:.1f}" for column in measures.values()]
        deviation = "" if pd.isna(row["std"]) else f"{row['std']:.1f}"
        assert found[0].partition(" \N{PLUS-MINUS SIGN} ")[2] == deviation


def test_the_depths_in_the_readme_are_those_of_their_table():
    committed = table("encoder_collapse_ucla").set_index(["method", "layers"])
    columns = ("layers", "printed", "linear", "linear_standardised", "standardised, at random")
    rows = readme_table(*columns)
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5"]
    for layers, *found in rows:
        trained, random = committed.loc[("AE", int(layers))], committed.loc[("random", int(layers))]
        standardised = (trained["linear_standardised"], random["linear_standardised"])
        assert found == [f"{trained['published']:.2f}", *(f"{value:.1f}" for value in (trained["ours"], *standardised))]


def test_variants_in_the_readme_are_those_of_their_table():
    committed = table("taxonomy_variants_ucla").query("preset == 'paper'")
    variants = {
        "frozen_noise": "td_queue=frozen_noise", "best_on_test": "select=best_on_test", "3e-3": "learning_rate=0.003",
        "bidirectional": "bidirectional=True", "denoising": "ad_input=augmented", "float32": "precision=float32",
    }
    told = []
    for departure, name, *numbers in readme_table("what differs", "objective", "printed", "recipe", "changed"):
        found = variants[re.search(r"`--\S+ (\S+)`", departure)[1]]
        row = committed[(committed["objectives"] == name) & (committed["departures"] == found)].iloc[0]
        assert numbers == [f"{row['published']:.2f}", f"{row['usual']:.1f}", f"{row['ours']:.1f}"]
        told.append((name, found))
    assert len(set(told)) == len(told)
    three_seeds = {(name, "precision=float32") for name in ("CE", "AE+CE+AD")}  # compared in the README's words
    assert set(told) == set(zip(committed["objectives"], committed["departures"], strict=True)) - three_seeds
