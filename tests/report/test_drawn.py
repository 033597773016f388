"""What the folder of figures holds, from files written into it and from the committed ones."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.data import manifest
from repro.report.drawn import read
from repro.report.redraw import Drawing
from repro.report.style import save

TABLE = DataFrame({"method": ["random", "JCL"], "ours": [10.0, 40.0], "std": np.nan, "n_seeds": 1, "published": np.nan,
                   "difference": np.nan, "preset": "quick", "dataset": "cifar10 (my copy.npz)"})
STEM = "image_methods_cifar10_my_copy_npz"


def test_a_table_with_its_figure(tmp_path):
    provenance = {"cells": ["a1", "b2"], "seeds": [0], "preset": "quick", "dataset": "cifar10 (my copy.npz)"}
    save(Figure(), tmp_path / STEM, "What & whence <it> is.", provenance)
    TABLE.to_csv(tmp_path / f"{STEM}.csv", index=False)
    found, = read(tmp_path, {})
    assert (found.stem, found.title, found.figure) == (STEM, "image methods", f"{STEM}.svg")
    assert found.files == [f"{STEM}.csv", f"{STEM}.png", f"{STEM}.svg"]
    assert (found.caption, found.provenance) == ("What & whence <it> is.", provenance)
    assert found.table["method"].tolist() == ["random", "JCL"] and found.table["published"].isna().all()


def test_the_drawing_of_the_longest_name_sums_a_table_up_and_says_which_columns_repeat_others(tmp_path):
    TABLE.to_csv(tmp_path / f"{STEM}.csv", index=False)
    drawings = {
        "image": Drawing(Figure, "", repeated=("method",)),
        "image_methods": Drawing(Figure, "", summary=lambda rows: f"std {rows['std'].sum()}", repeated=("std", "AE")),
        "image_method": Drawing(Figure, "", repeated=("ours",)),
    }
    found, = read(tmp_path, drawings)
    assert list(found.table) == [name for name in TABLE if name != "std"] and found.summary == "std 0.0"
    assert read(tmp_path, {})[0].summary == ""


def test_a_log_is_no_table_of_results(tmp_path):
    save(Figure(), tmp_path / "objective_parts_digits", "Terms.", {"log": "objective_parts_digits.csv"})
    DataFrame({"epoch": [1], "loss": [2.0], "dataset": "digits", "preset": "quick"}).to_csv(
        tmp_path / "objective_parts_digits.csv", index=False
    )
    found, = read(tmp_path, {})
    assert found.table is None and found.title == "objective parts digits"


def test_a_table_without_a_figure(tmp_path):
    TABLE.to_csv(tmp_path / f"{STEM}.csv", index=False)
    found, = read(tmp_path, {})
    assert (found.figure, found.caption, found.provenance) == ("", "", {})
    TABLE[:0].to_csv(tmp_path / f"{STEM}.csv", index=False)
    assert read(tmp_path, {})[0].table is None


def test_other_files_are_passed_over(tmp_path):
    (tmp_path / "cells.csv").write_text("key\n")
    (tmp_path / "notes.txt").write_text("mine")
    assert read(tmp_path, {}) == [] == read(tmp_path / "missing", {})


def test_a_damaged_figure_is_named(tmp_path):
    (tmp_path / "taxonomy_ucla.svg").write_text("<svg>")
    with pytest.raises(ValueError, match=r"taxonomy_ucla\.svg is damaged .*`repro figures`"):
        read(tmp_path, {})


@pytest.mark.parametrize("content", ["", 'a,b\n"1', "a\n1,2\n3,4,5\n"])
def test_a_damaged_table_is_named(tmp_path, content):
    (tmp_path / "taxonomy_ucla.csv").write_text(content)
    with pytest.raises(ValueError, match=r"taxonomy_ucla\.csv is damaged .*`repro figures`"):
        read(tmp_path, {})


def test_every_committed_figure_says_where_it_comes_from():
    committed = {each.stem: each for each in read(manifest.project_root() / "figures", {})}
    assert committed["taxonomy_ucla"].provenance["preset"] == "paper"
    assert len(committed["taxonomy_ucla"].provenance["cells"]) == committed["taxonomy_ucla"].table["n_seeds"].sum()
    assert all(each.caption and each.provenance for each in committed.values() if each.figure)
