"""Probes along training, and the precision that a training was begun in: cells from their folder to their result."""

import dataclasses
import functools
import json

import pytest
from made_up_skeletons import CPU, made_up, tiny
from states import assert_equal_states
from tqdm import tqdm

from repro import table
from repro.run import device
from repro.run.fit import fit, load_checkpoint
from repro.run.learner import Learner
from repro.run.store import Store
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.study import SKELETONS

DATA = made_up()
STUDY = dataclasses.replace(SKELETONS, load=lambda recipe: DATA)
SMALL = {"epochs": 3, "probe_epochs": 3, "probe_batch": 7, "select_every": 1}


class Killed(Exception):
    """Stands for whatever ends a process in the middle of training."""


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Trains a recipe in a folder of that name on made-up sequences; returns the run and its result."""
    monkeypatch.setattr(table, "fit", functools.partial(fit, checkpoint_seconds=0))
    monkeypatch.setattr(Learner, "report_steps", 2)

    def trained(recipe, folder):
        run = Store(tmp_path / folder).run(made(recipe))
        run.folder.mkdir(parents=True, exist_ok=True)
        with tqdm(disable=True) as bar:
            return run, table.train(run, bar, study=STUDY, device=CPU)

    return trained


def made(recipe):
    return STUDY.cell(recipe, 0, "quick")


def probes(run):
    return [json.loads(line) for line in (run.folder / "probes.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("objectives", "changes"), [
    ("AE+CE+AD+CD", {"select": "best_on_test"}), ("AD", {}), ("CE", {"precision": "bfloat16"}),
], ids=str)
def test_a_training_with_probes_along_it_is_bit_for_bit_the_one_without(train, objectives, changes):
    recipe = tiny(objectives, **SMALL, **changes)
    (usual, expected), (probed, found) = (
        train(recipe.replace(probe_every=every), f"every {every}") for every in (0, 1)
    )
    assert_equal_states(*(load_checkpoint(run.folder)["learner"] for run in (usual, probed)))
    assert {name: value for name, value in found.items() if name != "cost"} == {
        name: value for name, value in expected.items() if name != "cost"
    }
    assert not (usual.folder / "probes.jsonl").exists() and len(probes(probed)) == 3


@pytest.mark.parametrize(("every", "epochs"), [(1, [1, 2, 3]), (2, [2, 3]), (4, [3])])
def test_the_last_row_is_what_the_cell_reports(train, every, epochs):
    run, result = train(tiny("AE+CE", **SMALL, probe_every=every), "probed")
    rows = probes(run)
    assert [row["step"] for row in rows] == [4 * epoch for epoch in epochs]  # of four steps each
    assert all(row.keys() == {"step", "linear", "linear_best", "linear_standardised", "knn1"} for row in rows)
    assert all(row["linear_best"] >= row["linear"] for row in rows)
    assert rows[-1] == {"step": 12} | {name: result[name] for name in rows[-1] if name != "step"}


def test_a_curve_is_of_the_last_epoch_of_the_probe_where_the_cell_reports_the_best(train):
    recipe = tiny("AE+CE", **SMALL, probe_every=1)
    (usual, _), (chosen, _) = train(recipe, "last"), train(recipe.replace(select="best_on_test"), "best")
    assert probes(chosen) == probes(usual)


@pytest.mark.parametrize("step", [1, 5, 8, 12])
def test_a_killed_training_that_is_resumed_has_the_same_rows_once_each(train, step, monkeypatch):
    recipe = tiny("CE+AD", **SMALL, probe_every=1)
    undisturbed, expected = train(recipe, "undisturbed")
    steps, taken = Pretrainer.step, []

    def counted(learner):
        taken.append(1)
        if len(taken) == step:
            raise Killed
        return steps(learner)

    monkeypatch.setattr(Pretrainer, "step", counted)
    with pytest.raises(Killed):
        train(recipe, "killed")
    again, found = train(recipe, "killed")
    assert probes(again) == probes(undisturbed) and len(probes(again)) == 3
    assert {**found, "cost": None} == {**expected, "cost": None}
    assert_equal_states(*(load_checkpoint(run.folder)["learner"] for run in (undisturbed, again)))


# ---------------------------------------------------------------------------------------------- precision


@pytest.mark.parametrize(("able", "precision"), [(True, "bfloat16"), (False, "float32")])
def test_a_result_says_what_it_was_computed_in_where_none_was_asked_for(train, able, precision, monkeypatch):
    monkeypatch.setattr(device, "has_bfloat16", lambda: able)
    run, found = train(tiny("CE", **SMALL).replace(precision="auto"), "auto")
    asked, expected = train(tiny("CE", **SMALL).replace(precision=precision), "asked")
    assert found["cost"]["precision"] == expected["cost"]["precision"] == precision
    assert {**found, "cost": None} == {**expected, "cost": None}
    assert run.cell.key != asked.cell.key
    assert_equal_states(*(load_checkpoint(each.folder)["learner"] for each in (run, asked)))


@pytest.mark.parametrize("begun", [True, False])
def test_a_training_goes_on_in_the_precision_it_was_begun_in(train, begun, monkeypatch):
    recipe = tiny("AE+CE", **SMALL).replace(precision="auto")
    monkeypatch.setattr(device, "has_bfloat16", lambda: begun)
    undisturbed, expected = train(recipe, "undisturbed")
    steps, taken = Pretrainer.step, []

    def counted(learner):
        taken.append(1)
        if len(taken) == 6:
            raise Killed
        return steps(learner)

    with monkeypatch.context() as patch:
        patch.setattr(Pretrainer, "step", counted)
        with pytest.raises(Killed):
            train(recipe, "killed")
    monkeypatch.setattr(device, "has_bfloat16", lambda: not begun)  # another processor takes it up
    again, found = train(recipe, "killed")
    assert found["cost"]["precision"] == expected["cost"]["precision"] == ("bfloat16" if begun else "float32")
    assert_equal_states(*(load_checkpoint(run.folder)["learner"] for run in (undisturbed, again)))
