"""Probes along training, and the precision that a training was begun in: cells from their folder to their result."""

import dataclasses
import functools
import json

import pytest
from made_up_skeletons import CPU, made_up, tiny
from states import assert_equal_states
from tqdm import tqdm

from repro.run import device, training
from repro.run.fit import finish, fit, load_checkpoint
from repro.run.learner import Learner
from repro.run.store import Store
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import SKELETONS
from repro.skeleton.study import ALONG

DATA = made_up()
STUDY = dataclasses.replace(SKELETONS, load=lambda recipe: DATA)
SMALL = {"epochs": 3, "probe_epochs": 3, "probe_batch": 7, "select_every": 1}


class Killed(Exception):
    """Stands for whatever ends a process in the middle of training."""


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Trains a recipe in a folder of that name on made-up sequences; returns the run and its result."""
    monkeypatch.setattr(training, "fit", functools.partial(fit, checkpoint_seconds=0))
    monkeypatch.setattr(Learner, "report_steps", 2)

    def trained(recipe, folder):
        run = Store(tmp_path / folder).run(STUDY.cell(recipe, 0, "quick"))
        run.folder.mkdir(parents=True, exist_ok=True)
        with tqdm(disable=True) as bar:
            return run, finish(training.train(run, bar, study=STUDY, device=CPU))

    return trained


def probes(run):
    return [json.loads(line) for line in (run.folder / "probes.jsonl").read_text().splitlines()]


def assert_same(found, expected):
    """Equal results, but for what they cost, and equal last states."""
    (run, result), (other, other_result) = found, expected
    assert {**result, "cost": None} == {**other_result, "cost": None}
    assert_equal_states(*(load_checkpoint(one.folder)["learner"] for one in (run, other)))


@pytest.mark.parametrize(("objectives", "changes"), [
    ("AE+CE+AD+CD", {"select": "best_on_test"}), ("AD", {}), ("CE", {"precision": "bfloat16"}),
], ids=str)
def test_a_training_with_probes_along_it_is_bit_for_bit_the_one_without(train, objectives, changes):
    recipe = tiny(objectives, **SMALL, **changes)
    usual, probed = (train(recipe.replace(probe_every=every), f"every {every}") for every in (0, 1))
    assert_same(probed, usual)
    assert not (usual[0].folder / "probes.jsonl").exists() and len(probes(probed[0])) == 3


@pytest.mark.parametrize(("every", "epochs"), [(1, [1, 2, 3]), (2, [2, 3]), (4, [3])])
def test_the_last_row_is_what_the_cell_reports(train, every, epochs):
    run, result = train(tiny("AE+CE", **SMALL, probe_every=every), "probed")
    rows = probes(run)
    assert [row["step"] for row in rows] == [4 * epoch for epoch in epochs]  # of four steps each
    assert all(row.keys() == {"step", *ALONG} and row["linear_best"] >= row["linear"] for row in rows)
    assert rows[-1] == {"step": 12} | {name: result[name] for name in ALONG}


def kill(train, recipe, step, monkeypatch):
    """Train a recipe in the folder "killed" up to so many steps, less one."""
    take, taken = Pretrainer.step, []

    def counted(learner):
        taken.append(1)
        if len(taken) == step:
            raise Killed
        return take(learner)

    with monkeypatch.context() as patch:
        patch.setattr(Pretrainer, "step", counted)
        with pytest.raises(Killed):
            train(recipe, "killed")


@pytest.mark.parametrize("step", [1, 5, 8, 12])
def test_a_killed_training_that_is_resumed_has_the_same_rows_once_each(train, step, monkeypatch):
    recipe = tiny("CE+AD", **SMALL, probe_every=1)
    undisturbed = train(recipe, "undisturbed")
    kill(train, recipe, step, monkeypatch)
    again = train(recipe, "killed")
    assert probes(again[0]) == probes(undisturbed[0]) and len(probes(again[0])) == 3
    assert_same(again, undisturbed)


@pytest.mark.parametrize(("able", "precision"), [(True, "bfloat16"), (False, "float32")])
def test_a_training_keeps_the_precision_it_was_begun_in_and_its_result_says_so(train, able, precision, monkeypatch):
    recipe = tiny("AE+CE", **SMALL).replace(precision="auto")
    monkeypatch.setattr(device, "has_bfloat16", lambda: able)
    asked, undisturbed = train(recipe.replace(precision=precision), "asked"), train(recipe, "undisturbed")
    assert undisturbed[1]["cost"]["precision"] == asked[1]["cost"]["precision"] == precision
    assert undisturbed[0].cell.key != asked[0].cell.key
    assert_same(undisturbed, asked)
    kill(train, recipe, 6, monkeypatch)
    monkeypatch.setattr(device, "has_bfloat16", lambda: not able)  # another processor takes it up
    again = train(recipe, "killed")
    assert again[1]["cost"]["precision"] == precision
    assert_same(again, undisturbed)
