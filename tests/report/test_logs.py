"""What finished cells are called, which count, and the logs that figures need of their folders."""

import dataclasses
import json

import pandas as pd
import pytest
from asked_for import changed
from made_up_study import SHAPED, frame, shaped, stored
from redrawn import export as exported

from repro import papers
from repro.audiovisual.recipe import CLIPS
from repro.image.recipe import IMAGES
from repro.papers.sce.logs import objective_parts
from repro.report import logs
from repro.run.finished import read_table
from repro.run.store import Cell, Store
from repro.skeleton.recipe import SKELETONS

STEPS = [{"step": step, "InfoNCE": 4.0 - step / 100, "ReSSL": 3.0, "Ceil": 0.5, "loss": 3.7, "knn1": 50.0,
          "seconds": 1.0} for step in (10, 20, 30, 40)]
FIRST = {"key_temperature": 0.03}  # of a cell that stands in the grid of temperatures alone


def made(study, method, dataset, preset, seed=0, *, then=None, **changes):
    """A cell; `then` are fields in which its preset was another one when it was made: they are no changes."""
    subset = {"subset": True} if " (" in dataset else {}
    plain = dataset.partition(" (")[0]
    recipe = study.presets[preset](plain, method, **subset, **changes)
    changes = changed(study, recipe, preset, changes)
    return Cell(study.name, recipe.replace(**(then or {})), seed, preset, dataset, "digest", 1, changes=changes)


def finished(store, cell, steps, measures, at="2024-05-01"):
    """The folder of a cell that is finished, with a progress file."""
    run = store.run(cell)
    with run.claim():
        (run.folder / "progress.jsonl").write_text("".join(json.dumps(line) + "\n" for line in steps))
        run.finish(measures | {"cost": {"finished": at, "commit": "c"}})
    return run


def finish(store, method="sce", *, preset="quick", dataset="digits", seed=0, steps=STEPS, at="2024-05-01", then=None,
           **changes):
    """A finished cell on images, of two epochs; returns its folder."""
    then = {"epochs": 2, "weight": 0.25} | (then or {})
    return finished(store, made(IMAGES, method, dataset, preset, seed, then=then, **changes), steps, {"linear": 50.0},
                    at)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return Store(tmp_path / "runs")


def test_parts_of_a_cell_by_epoch(store):
    run = finish(store)
    found = objective_parts(run.cell)
    means = ["InfoNCE", "ReSSL", "Ceil", "loss"]
    assert list(found.columns) == ["epoch", *means, "weight", "entry", "key", "seed", "dataset", "preset"]
    assert found["epoch"].tolist() == [1, 2]
    assert found["InfoNCE"].tolist() == pytest.approx([3.85, 3.65])  # of steps 10 and 20, and of 30 and 40
    assert found[["weight", "entry", "key", "seed", "dataset", "preset"]].drop_duplicates().to_numpy().tolist() == [
        [0.25, "sce", run.cell.key, 0, "digits", "quick"]
    ]


def test_parts_of_a_cell_nobody_trained(store):
    cell = made(IMAGES, "sce", "digits", "quick", 3, warmup=1)
    with pytest.raises(FileNotFoundError, match=r"no progress\.jsonl of sce, warmup=1, seed 3"):
        objective_parts(cell)


def contrast(store, objectives="CE+CD", *, seed=0, preset="paper", values=(6.0, 5.0, 4.0, 3.0), then=None, **changes):
    """The key of a finished cell of the taxonomy whose CD has these values, at two reports an epoch."""
    cell = made(SKELETONS, objectives, "ucla", preset, seed, then={"epochs": 2} | (then or {}), **changes)
    steps = [{"step": 10 * (number + 1), "CD": value, "loss": 9.0} for number, value in enumerate(values)]
    return finished(store, cell, steps, {"linear": 50.0}).cell.key


def test_export_of_the_contrast_of_decoders(store, tmp_path):
    contrast(store, "CE+CD", seed=2)
    second = contrast(store, "CE+CD", seed=1, values=(6.123456, 5.0, 1e-9, 3e-9))
    first = contrast(store, "CD", td_queue="frozen_noise", then={"sequence_dictionary": 64})
    contrast(store, "CD", precision="float32")
    contrast(store, "AE+CD", preset="quick")
    contrast(store, "CE")
    path, = exported(store, tmp_path / "figures")
    assert path == tmp_path / "figures" / "sequence_contrast_ucla.csv"
    columns = ["epoch", "CD", "sequence_dictionary", "objectives", "td_queue", "key", "seed", "dataset", "preset"]
    found = pd.read_csv(path)
    assert list(found.columns) == columns
    assert found.to_numpy().tolist() == [
        [1, 5.5, 64, "CD", "frozen_noise", first, 0, "ucla", "paper"],
        [2, 3.5, 64, "CD", "frozen_noise", first, 0, "ucla", "paper"],
        [1, 5.562, 640, "CE+CD", "live", second, 1, "ucla", "paper"],
        [2, 2e-9, 640, "CE+CD", "live", second, 1, "ucla", "paper"],
    ]


def test_exported_contrasts_stay_and_change_nothing_when_nothing_changed(store, tmp_path):
    contrast(store, "CE+CD", seed=1)
    contrast(store, "AE+CD", values=(0.1, 0.2, 0.3, 2 / 3))
    path, = exported(store, tmp_path)
    before = path.read_bytes()
    exported(store, tmp_path)
    assert path.read_bytes() == before
    assert exported(Store(tmp_path / "no runs"), tmp_path) == [] and path.read_bytes() == before
    other = Store(tmp_path / "other")
    contrast(other, "CD")
    contrast(other, "AE+CD", seed=3, values=(9.0, 9.0, 9.0, 9.0))  # the exported one has an earlier seed
    contrast(other, "CE+CD", seed=1, values=(2.0, 2.0, 1.0, 1.0))
    exported(other, tmp_path, store)
    found = pd.read_csv(path).groupby("objectives")
    assert found["CD"].agg(list).to_dict() == {"AE+CD": [0.15, 0.4833], "CD": [5.5, 3.5], "CE+CD": [2.0, 1.0]}
    assert found["seed"].first().to_dict() == {"AE+CD": 0, "CD": 0, "CE+CD": 1}


def diverse(store, sampler="random", batch=32, *, seed=0, preset="quick", counts=(20, 24), at="2024",
            dataset="synthetic", then=None, iterations=300, **changes):
    """A finished cell of CM-ACC that counted these categories, reported every five steps."""
    changes = {"sampler": sampler, "batch": batch, "iterations": iterations, "targets": ""} | changes
    cell = made(CLIPS, "cmacc", dataset, preset, seed, then=then, **changes)
    steps = [{"step": 5 * (number + 1), "video": 3.5, "audio": 3.5, "loss": 7.0, "categories_video": count,
              "categories_audio": count - 1, "seconds": 1.0} for number, count in enumerate(counts)]
    measures = {"categories_video": 22.0, "categories_audio": 21.0, "expected": 25.5}
    return finished(store, cell, steps, measures, at).cell


def test_a_log_that_does_not_name_its_cells_is_refused(tmp_path):
    path, log = tmp_path / "targets_digits.csv", logs.Log("transfer", logs.usual, logs.first, ("target",), ("target",))
    rows = pd.DataFrame({"target": ["007", "nan"], "key": "1234567890123456", "seed": 0, "dataset": "digits"})
    rows.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"targets_digits\.csv cannot be read .it has no column 'preset'.; restore it"):
        logs.read(path, log)
    rows.assign(preset="quick").to_csv(path, index=False)
    found = logs.read(path, log)
    assert found["key"].tolist() == ["1234567890123456"] * 2 and found["target"].tolist() == ["007", "nan"]
    with pytest.raises(ValueError, match=r"targets_digits\.csv cannot be read .'target' holds other than finite"):
        logs.read(path, log._replace(texts=()))


@pytest.mark.parametrize(("damage", "message"), [
    *((lambda text, value=value: text.replace("0.25", value), "'weight' holds other than finite numbers")
      for value in ("x", "", "inf", "nan")),
    (lambda text: text.replace(",digits,quick\n", "\n", 1), "line 2: 9 values, expected 11"),
    (lambda text: text.replace("digits,quick\n", "digits,quick,more\n"), "line 2: 12 values"),
    (lambda text: text.replace("weight", "wait"), "it has no column 'weight'"), (lambda text: "", ""),
    (lambda text: text.replace("sce", '"sce'), ""),
])
def test_a_damaged_log_is_named(store, tmp_path, damage, message):
    finish(store)
    path, = exported(store, tmp_path / "figures")
    log = papers.logs()["objective_parts"]
    assert len(logs.read(path, log)) == 2
    path.write_text(damage(path.read_text()))
    message = rf"objective_parts_digits\.csv cannot be read .{message}.*export it again where its cells"
    with pytest.raises(ValueError, match=message):
        logs.read(path, log)


@pytest.mark.parametrize("line", [
    "{", "3", '{"step": 40}', '{"step": 40, "InfoNCE": NaN}', "[" * 100_000, json.dumps(STEPS[0] | {"ReSSL": "3.0"}),
])
def test_a_damaged_line_of_a_run_s_log_is_named(store, line):
    run = finish(store)
    with (run.folder / "progress.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(ValueError, match=r"progress\.jsonl cannot be read beyond line 4 .*; delete that folder"):
        objective_parts(run.cell)


def test_export_of_pretext_accuracy_and_of_selected_negatives(store, tmp_path):
    for method, seed in (("cmacc", 1), ("cmacc", 0), ("cmacc", 2), ("xmoco", 0), ("smoco", 0)):
        cell = made(CLIPS, method, "synthetic", "quick", seed, split=0)
        run = finished(store, cell, [], {"synthetic_video": 50.0})
        if method != "smoco" and seed < 2:
            rows = pd.DataFrame({"category": ["a", "b"], "accuracy": 10.0 + seed, "method": method})
            rows.to_csv(run.folder / "pretext_accuracy.csv", index=False)
            rows.to_csv(run.folder / "selected_negatives.csv", index=False)
    accuracy, negatives = exported(store, tmp_path / "figures")
    assert accuracy.name == "pretext_accuracy_synthetic.csv" and negatives.name == "selected_negatives_synthetic.csv"
    found = pd.read_csv(accuracy)
    assert found["accuracy"].tolist() == [10.0, 10.0, 11.0, 11.0] and set(found["method"]) == {"cmacc"}
    assert found["seed"].tolist() == [0, 0, 1, 1] and found.groupby("seed")["key"].nunique().tolist() == [1, 1]
    assert pd.read_csv(negatives)["accuracy"].tolist() == [10.0, 10.0]


def test_rows_of_an_earlier_version_leave_an_exported_log_and_columns_that_came_later_do_too(store, tmp_path):
    other = Store(tmp_path / "other machine")
    for machine, method, seed, version, columns in (
        (store, "jcl", 0, 1, {}), (store, "moco", 0, 1, {}), (other, "jcl", 1, 2, {"version": 2, "evaluation": 1}),
    ):
        cell = made(IMAGES, method, "digits", "quick", seed, **({"keys": 9} if method == "jcl" else {}))
        run = finished(machine, dataclasses.replace(cell, version=version), STEPS, {"linear": 50.0})
        rows = pd.DataFrame({"model": method, "seed": seed, "d": 512, "similarity": [0.1 + 0.2], "variance": 1e-4})
        rows.assign(**columns).to_csv(run.folder / "similarity.csv", index=False)
    path, = exported(store, tmp_path / "figures")
    exported(other, tmp_path / "figures", store)
    found = logs.read(path, papers.logs()["similarity_variance_images"])
    assert found[["model", "seed", "similarity"]].to_numpy().tolist() == [["jcl", 1, 0.1 + 0.2], ["moco", 0, 0.1 + 0.2]]
    assert list(found.columns) == ["model", "seed", "d", "similarity", "variance", "key", "dataset", "preset"]


def test_a_log_of_one_cell_is_replaced_by_that_of_no_other_cell(store, tmp_path, capsys):
    shown = finish(store, seed=1, **FIRST).cell
    path, = exported(store, tmp_path / "figures")
    before, other = path.read_bytes(), Store(tmp_path / "other machine")
    here = finish(other, seed=0, steps=STEPS[:2], **FIRST).cell
    assert exported(other, tmp_path / "figures", store) == [] and path.read_bytes() == before
    assert f"{path} stays that of {shown.key}; {other.root} has {here.key}: to have that" in capsys.readouterr().err
    finish(other, seed=1, steps=STEPS[:2], **FIRST)
    (other.root / "cells" / here.key / "progress.jsonl").unlink()
    assert exported(other, tmp_path / "figures", store) == [path]  # of the cell that is shown
    assert pd.read_csv(path)["InfoNCE"].tolist() == [3.9, 3.8]


@pytest.mark.parametrize(
    "label, expected",
    [("digits", "digits"), ("cifar10 (subset)", "cifar10_subset"), ("cifar10 (a b.npz)", "cifar10_a_b_npz")],
)
def test_labels_in_names_of_files(label, expected):
    assert logs.slug(label) == expected


@pytest.mark.parametrize("content", ["", "a,b\n1,2,3\n4,5,6,7\n", "a\n\"x"])
def test_a_damaged_table_of_a_run_is_named(tmp_path, content):
    path = tmp_path / "similarity.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"similarity\.csv cannot be read \(.*\); delete it, and it is made again"):
        read_table(path)


def shapes_of(*shapes, **changes):
    recipes = [shaped("ucla", shape, **changes).to_dict() for shape in shapes]
    return SHAPED.tidy(frame(*(stored(recipe=recipe, study="shapes", **changes) for recipe in recipes)))


def test_cells_are_called_by_the_field_that_names_what_is_trained():
    found = shapes_of("square", "random", depth=3)
    assert logs.labels(found).tolist() == ["square, depth=3", "random, depth=3"]
    assert logs.fullest(found.assign(departures=[{}, {}]))["entry"].tolist() == ["random, depth=3", "square, depth=3"]


def test_random_in_that_field_is_untrained():
    assert logs.untrained(shapes_of("square", "random")).tolist() == [False, True]
