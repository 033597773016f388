"""Accuracy along training: from the rows that cells leave in their folders to the exported log and its figure."""

import json

import pytest
from redrawn import export, redraw, told

from repro.papers.taxonomy import figures, logs
from repro.report.logs import read
from repro.run.store import Cell, Store
from repro.skeleton.recipe import PRESETS

ROWS = [{"step": step, "linear": 50 + step / 3, "linear_best": 60.0 + step, "linear_standardised": 70.0, "knn1": 40.0}
        for step in (5, 20)]
LOG = logs.LOGS["along_training"]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "no data"))
    return Store(tmp_path / "runs")


def finish(store, objectives="CE", *, seed=0, preset="paper", rows=ROWS, version=1, **changes):
    """A finished cell of four epochs of five steps each, probed after these rows' steps; returns it."""
    recipe = PRESETS[preset]("ucla", objectives, epochs=4, **changes)
    cell = Cell("skeletons", recipe, seed, preset, "ucla", "digest", version, changes=changes)
    run = store.run(cell)
    with run.claim():
        if rows:
            (run.folder / "probes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        run.finish({"linear": 50.0, "cost": {"finished": "2024-05-01", "steps": 20.0, "commit": "c"}})
    return cell


def test_a_row_for_every_epoch_and_measure(store):
    cells = [finish(store), finish(store, "AE", rows=None), finish(store, "random", rows=None)]
    found = logs.along_training(cells)
    assert {*found} == {"epoch", "measure", "value", "objectives", "entry", "version", "key", "seed", "dataset",
                        "preset"}
    assert len(found) == 8 and set(found["key"]) == {cells[0].key}
    values = found.pivot(index="epoch", columns="measure", values="value")
    assert values.index.tolist() == [1, 4]
    assert values.columns.tolist() == ["knn1", "linear", "linear_best", "linear_standardised"]
    assert values.to_numpy().tolist() == [[40.0, 51.67, 65.0, 70.0], [40.0, 56.67, 80.0, 70.0]]
    assert logs.along_training(cells[1:]).empty


def test_exported_rows_add_up_and_are_of_the_newest_version_of_each_entry(store, tmp_path):
    def exported(of, *before):
        path, = export(of, tmp_path / "figures", *before)
        assert path.name == "along_training_ucla.csv"
        found = read(path, LOG)
        return path.read_bytes(), set(zip(found["entry"], found["version"], found["seed"], strict=True))

    finish(store, "CE", version=1)
    finish(store, "CE", seed=1, version=2)
    finish(store, "AE", version=1)
    finish(store, "AE", preset="quick", version=2)
    first = exported(store)
    assert first == exported(store) and first[1] == {("AE", 1, 0), ("CE", 2, 1)}
    other = Store(tmp_path / "other machine")
    finish(other, "CE", seed=0, version=2)
    finish(other, "AE", seed=1, version=2)
    assert exported(other, store)[1] == {("AE", 2, 1), ("CE", 2, 0), ("CE", 2, 1)}


@pytest.mark.parametrize("names", [["CE"], ["AD", "CE", "AE"], ["AD", "CE", "AE", "AE+CE+AD"]])
def test_the_figure_has_a_panel_for_every_entry_and_no_empty_one(store, names):
    cells = [finish(store, name, seed=seed) for name in names for seed in (0, 1)]
    drawn = figures.along_training(logs.along_training(cells))
    panels = [axes for axes in drawn.axes if axes.get_visible()]
    assert sorted(axes.get_title("left") for axes in panels) == sorted(names)
    for axes in panels:
        last, best, printed = axes.lines
        assert list(last.get_xdata()) == [1, 4] and list(last.get_ydata()) == [51.67, 56.67]
        assert list(best.get_ydata()) == [65.0, 80.0] and len(axes.collections) == 1  # the band of the last epoch
        assert axes.get_title("left") != "CE" or set(printed.get_ydata()) == {83.73}  # typed from the paper's Table 1


def test_an_exported_log_is_drawn_of_one_preset_without_what_departs_from_its_recipe(store, tmp_path):
    folder = tmp_path / "figures"
    finish(store, "AD", ad_weight=25.0)
    export(store, folder)
    assert redraw(folder) == []
    usual = finish(store, "CE")
    export(store, folder)
    assert {path.name for path in redraw(folder)} == {"along_training_ucla.png", "along_training_ucla.svg"}
    assert told(folder / "along_training_ucla")[1]["cells"] == [usual.key]
    other = Store(tmp_path / "other machine")
    for objectives in ("CE", "AE", "AE+CE"):
        finish(other, objectives, preset="quick")
    export(other, folder, store)
    redraw(folder)
    assert told(folder / "along_training_ucla")[1]["preset"] == "quick"  # which has more entries
