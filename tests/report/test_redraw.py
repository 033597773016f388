"""Figures and their tables from made-up cells and logs, without data, training or a store."""

import dataclasses
import json
import math

import pandas as pd
import pytest
from made_up_cells import frame
from pandas import DataFrame
from redrawn import hashes, redraw, told

from repro import papers
from repro.audiovisual import synthetic
from repro.experiments import find
from repro.report import redraw as drawing
from repro.report import style

TABLES, DRAWINGS = papers.tables(), papers.drawings()
COLUMN = find("taxonomy_ucla")


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "no data"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "no runs"))


def finished(experiment, linear=50.0, **measures):
    """The rows of cells.csv of an experiment whose cells are all finished."""
    found = []
    for place, (cell, _) in enumerate(experiment.asked().values()):
        metrics = {"linear": linear + place % 7, "knn1": 40.0, "embedding_spread": 0.5, **measures}
        texts = {"recipe": cell.recipe.to_dict(), "changes": cell.changes, "metrics": metrics,
                 "cost": {"finished": "2026-01-01"}}
        found.append(cell.describe() | {name: json.dumps(text) for name, text in texts.items()} | {"commit": "c"})
    return found


def saved(name="short", seeds="0,2", **fields):
    """An experiment on the column of NW-UCLA."""
    return dataclasses.replace(COLUMN, name=name, seeds=seeds, fields=fields)


def test_an_experiment_is_a_table_and_a_figure_of_its_name_always_of_the_same_bytes(tmp_path):
    short = saved(objectives=["random", "CE", "CE+AD"])
    cells = frame(*finished(short), *finished(saved(objectives="AD")))  # which nobody asks for
    written = redraw(tmp_path / "one", cells, short, saved("unfinished", objectives="CD"))
    assert [path.name for path in written] == ["short.csv", "short.svg", "short.png"] == sorted(
        (path.name for path in (tmp_path / "one").iterdir()), key=["short.csv", "short.svg", "short.png"].index)
    table = pd.read_csv(tmp_path / "one" / "short.csv")
    assert table["objectives"].tolist() == ["random", "CE", "CE+AD"] and table["n_seeds"].tolist() == [2] * 3
    assert table["published"].tolist() == [52.01, 83.73, 85.70] and table["difference"].notna().all()
    redraw(tmp_path / "two", cells.sample(frac=1, random_state=0), short)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")


def test_a_figure_says_what_it_shows_and_names_its_cells(tmp_path):
    short = saved(objectives=["CE", "AD"])
    redraw(tmp_path, frame(*finished(short)), short)
    caption, source = told(tmp_path / "short")
    assert sorted(source.pop("cells")) == sorted(short.asked())
    assert source == {"seeds": [0, 2], "preset": "paper", "dataset": "ucla"}
    spread = "± and bars with ends: one standard deviation over seeds."
    assert caption == (f"{DRAWINGS['taxonomy'].caption} {spread} Data set: ucla. Preset: paper. Seeds: 0, 2. Drawn "
                       "from 4 cells, whose keys are in the source of this file.")


def test_one_row_is_no_figure_and_of_several_settings_the_first_is_drawn(tmp_path):
    single, rates = saved("single", objectives="CE"), saved("rates", objectives=["CE", "AD"], learning_rate=[0.1, 0.2])
    written = redraw(tmp_path, frame(*finished(single), *finished(rates)), single, rates)
    assert [path.name for path in written] == ["single.csv", "rates.csv", "rates.svg", "rates.png"]
    table = pd.read_csv(tmp_path / "rates.csv")
    assert table["departures"].tolist() == [f"learning_rate={rate}" for _ in range(2) for rate in (0.1, 0.2)]
    drawn = (tmp_path / "rates.svg").read_text(encoding="utf-8")
    assert "learning_rate=0.1" in drawn and "learning_rate=0.2" not in drawn


def test_a_drawing_that_fails_is_named_and_leaves_the_others_alone(tmp_path):
    (tmp_path / "old.csv").write_text("old")

    def draws(folder):
        (folder / "new.csv").write_text("new")
        assert not (tmp_path / "new.csv").exists()  # until all are made
        return [folder / "new.csv"]

    def fails(folder):
        (folder / "old.csv").write_text("half")
        raise TypeError("text beside numbers")

    written, failed = drawing.redraw({"fails": fails, "draws": draws}, tmp_path)
    assert written == [tmp_path / "new.csv"] and {name: str(error) for name, error in failed.items()} == {
        "fails": "text beside numbers"}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"new.csv": "new", "old.csv": "old"}


def test_names_without_a_look_of_their_own_get_one_and_are_drawn():
    looks = style.looks_of(["new", "known", "newer", "new"], {"known": style.OURS})
    assert [*looks] == ["known", "new", "newer"] and looks["known"] is style.OURS and looks["new"].label == "new"
    assert len({(look.colour, look.marker) for look in looks.values()}) == 3
    clips = find("category_diversity_synthetic")
    released = dataclasses.replace(clips, version=None, earlier={}, fields={"sampler": ["released", "random"]})
    rows = [row | {"metrics": json.dumps({"trained_on": 9, "categories_video": 8.0, "categories_audio": 7.0,
                                          "expected": 9.0})} for row in finished(released)]
    table = clips.declared.numbers({key: row for key, (_, row) in released.asked().items()}, frame(*rows))
    assert DRAWINGS["category_diversity"].draw(table.replace({"sampler": {"released": "unheard of"}})).axes
    sampled = table.assign(sampler="unheard of", published=math.nan, batch=[32 * (1 + place) for place in table.index])
    for drawn in (DRAWINGS["ohem_vs_active"].draw(sampled), DRAWINGS["ohem_vs_active"].draw(sampled.assign(batch=32))):
        assert any(len(line.get_xdata()) for axes in drawn.axes for line in axes.lines)


def test_every_table_has_a_caption():
    undrawn = {"similarity_variance"}  # its figure is drawn from a log
    assert {*TABLES} - undrawn <= set(DRAWINGS)
    assert all(drawing.caption.endswith(".") for drawing in DRAWINGS.values())


NAMED = {"key": "00a1", "seed": 0, "preset": "quick"}


def negatives(dataset):
    """What samplers pick, as a log."""
    rows = [("video", sampler, pick, 7 * pick, "a", 3.0 + pick, 50.0, 9, "b") for sampler in ("random", "gradient")
            for pick in range(4)]
    columns = ["modality", "sampler", "pick", "item", "category", "gradient_norm", "smaller", "nearest",
               "nearest_category"]
    return DataFrame(rows, columns=columns).assign(dataset=dataset, **NAMED)


def test_logs_are_drawn_beside_their_file_and_name_their_cells(tmp_path):
    parts = DataFrame({"epoch": [1.0, 2.0], "InfoNCE": 4.0, "ReSSL": 3.0, "Ceil": 1.0, "loss": 4.0, "weight": 0.5})
    parts.assign(**NAMED, dataset="digits").to_csv(tmp_path / "objective_parts_digits.csv", index=False)
    log = DataFrame({"epoch": [1, 2] * 2, "CD": 6.0, "sequence_dictionary": 640, "objectives": "CD", "td_queue": "live",
                     "key": ["c", "c", "b", "b"], "seed": [3, 3, 0, 0], "dataset": "digits", "preset": "quick"})
    log.to_csv(tmp_path / "sequence_contrast_digits.csv", index=False)
    stems = ("objective_parts_digits", "sequence_contrast_digits")
    written = redraw(tmp_path)
    assert {path.name for path in written} == {f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")}
    caption, source = told(tmp_path / "objective_parts_digits")
    assert source == {"cells": ["00a1"], "seeds": [0], "preset": "quick", "dataset": "digits"}
    assert caption == (f"{DRAWINGS['objective_parts'].caption} Data set: digits. Preset: quick. Seed: 0. Drawn from 1 "
                       "cell, whose key is in the source of this file.")
    caption, source = told(tmp_path / "sequence_contrast_digits")
    assert (source["cells"], source["seeds"]) == (["c", "b"], [0, 3])
    assert "Seeds: 0, 3. Drawn from 2 cells, whose" in caption


def test_pictures_of_real_clips_are_never_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "pictures", lambda items: pytest.fail("pictures of the wrong clips"))
    for dataset in ("ucf101", "kinetics700 (subset)"):
        name = dataset.partition(" ")[0]
        negatives(dataset).to_csv(tmp_path / f"selected_negatives_{name}.csv", index=False)
    assert redraw(tmp_path) == []
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv"}
