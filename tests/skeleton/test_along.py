"""Probes along training: cells from their folder to their result."""

import dataclasses
import functools
import json

import pytest
from ended import finish
from made_up_skeletons import CPU, made_up, tiny
from states import assert_equal_states
from tqdm import tqdm

from repro.run import training
from repro.run.fit import fit, load_checkpoint
from repro.run.learner import Learner
from repro.run.store import Store
from repro.skeleton.recipe import SKELETONS
from repro.skeleton.study import ALONG

DATA = made_up()
STUDY = dataclasses.replace(SKELETONS, load=lambda recipe: DATA)
SMALL = {"epochs": 3, "probe_epochs": 3, "probe_batch": 7, "select_every": 1}


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


