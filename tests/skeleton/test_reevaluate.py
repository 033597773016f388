"""Measures that finished cells lack, taken from checkpoints: those of a fresh training, and nothing else touched."""

import functools
import json
import shutil

import pytest
import torch

from repro.run.engine import run_cells
from repro.run.store import Cell, Store
from repro.skeleton import cell, reevaluate
from repro.skeleton.pretrain import VERSION
from repro.skeleton.recipe import quick
from repro.skeleton.reevaluate import evaluate_again

CPU = torch.device("cpu")
TINY = {"units": 16, "epochs": 2, "batch": 512, "dictionary": 32, "sequence_dictionary": 16, "probe_epochs": 2}
NEW = ("linear_standardised", "linear_standardised_unseen", "readout_spread", "decoded_scale")


def cells():
    """AE+CE at its last epoch, AE+CE chosen on the test split after the first, random initialisation, AD+CD."""
    chosen = [("AE+CE", {}), ("AE+CE", {"select": "best_on_test", "select_every": 1}), ("random", {}), ("AD+CD", {})]
    recipes = [quick("synthetic", name, **(TINY | changes)) for name, changes in chosen]
    digest = cell.data_of(recipes[0]).digest
    return [Cell("taxonomy", str(number), recipe, 0, "quick", "synthetic", digest, VERSION)
            for number, recipe in enumerate(recipes)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder of finished cells."""
    root = tmp_path_factory.mktemp("finished")
    run_cells(cells(), functools.partial(cell.train, device=CPU), Store(root))
    return root


@pytest.fixture
def store(finished, tmp_path):
    """A copy of the finished cells."""
    shutil.copytree(finished, tmp_path / "runs")
    return Store(tmp_path / "runs")


def result_path(store, wanted):
    return store.root / wanted.table / wanted.key / "result.json"


def rewrite(path, change):
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def forget(store, names=NEW):
    """Take measures out of every result, as if they had not been known; returns the results before that."""
    before = {}
    for path in sorted(store.root.glob("*/*/result.json")):
        before[path] = json.loads(path.read_text())
        rewrite(path, lambda values: [values.pop(name, None) for name in names])
    return before


def contents(store):
    return {path: path.read_bytes() for path in sorted(store.root.rglob("*")) if path.is_file()}


def test_what_is_filled_in_is_what_training_writes(store):
    before = forget(store, (*NEW, "linear_last"))
    assert evaluate_again(store, CPU) == 4
    after = {path: json.loads(path.read_text()) for path in before}
    assert after == before
    selected = after[result_path(store, cells()[1])]
    assert selected["linear_last"] == after[result_path(store, cells()[0])]["linear"]


def test_what_is_there_stays(store):
    path = result_path(store, cells()[0])
    forget(store)
    rewrite(path, lambda values: values.update(linear=12.34, knn1=56.7, cost={"finished": "long ago"}))
    others = {where: content for where, content in contents(store).items() if where.name != "result.json"}
    evaluate_again(store, CPU)
    found = json.loads(path.read_text())
    assert (found["linear"], found["knn1"], found["cost"]) == (12.34, 56.7, {"finished": "long ago"})
    assert found.keys() >= set(NEW) - {"decoded_scale"}
    assert {where: content for where, content in contents(store).items() if where.name != "result.json"} == others


def test_cells_that_lack_nothing_are_not_evaluated(store, monkeypatch):
    monkeypatch.setattr(reevaluate, "measure", None)
    before = contents(store)
    assert evaluate_again(store, CPU) == 0
    assert contents(store) == before


def test_training_writes_every_measure_that_is_asked_for(finished):
    plain = json.loads(result_path(Store(finished), cells()[0]).read_text())
    assert plain.keys() == cell.MEASURES | {"select", "cost"}
    decoded = json.loads(result_path(Store(finished), cells()[3]).read_text())
    assert decoded.keys() == cell.MEASURES | {"select", "cost", "decoded_scale"}


def test_what_nothing_can_be_said_of_is_not_written(store, monkeypatch):
    path = result_path(store, cells()[0])
    names = [name for name in json.loads(path.read_text()) if name.endswith("_unseen")]
    forget(store, names)
    monkeypatch.setattr(reevaluate, "measure", lambda *_: {"linear": 1.0})  # as where all test sequences are repeated
    before = contents(store)
    assert evaluate_again(store, CPU) == 0
    assert contents(store) == before


def test_the_decoded_scale_alone_is_added(store):
    before = forget(store, ("decoded_scale",))
    path = result_path(store, cells()[3])
    rewrite(path, lambda values: values.update(linear=12.34))
    assert evaluate_again(store, CPU) == 1
    assert json.loads(path.read_text()) == before[path] | {"linear": 12.34}


def test_a_cell_copied_from_another_table_gets_its_measures_from_there(store):
    origin = result_path(store, cells()[2])
    twin = store.root / "encoder_collapse" / origin.parent.name
    shutil.copytree(origin.parent, twin)
    rewrite(twin / "recipe.json", lambda values: values.update(table="encoder_collapse"))
    (twin / "checkpoint.pt").unlink()
    before = forget(store)
    assert evaluate_again(store, CPU) == 5
    assert json.loads((twin / "result.json").read_text()) == before[origin]


@pytest.mark.parametrize(("described", "message"), [
    ({"version": VERSION - 1}, f"version {VERSION - 1} of the pretrainer"), ({"digest": "other"}, "digest other"),
    ({"dataset": "ucla"}, "all_sqe.zip"), ({"step": 1}, "no checkpoint of step 2"), ({"checkpoint": None}, "no checkp"),
    ({"preset": "smoke"}, ""), ({"table": "image_methods"}, ""),
], ids=str)
def test_cells_that_are_passed_over(store, described, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "nothing"))
    forget(store)
    path = result_path(store, cells()[0])
    if "checkpoint" in described:
        path.with_name("checkpoint.pt").unlink()
    elif "step" in described:
        monkeypatch.setattr(cell, "load_checkpoint", lambda folder: {"step": 1, "learner": {}})
    else:
        rewrite(path.with_name("recipe.json"), lambda values: values.update(described))
        if "dataset" in described:
            rewrite(path.with_name("recipe.json"), lambda values: values["recipe"].update(described))
    before = path.read_bytes()
    evaluate_again(store, CPU)
    assert path.read_bytes() == before
    assert message in capsys.readouterr().out
