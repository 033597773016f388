"""Cells that an earlier version evaluated, measured again from checkpoints: what a fresh training would write."""

import dataclasses
import functools
import json
import shutil

import pytest
import torch
from tqdm import tqdm

from repro.run.engine import pool_of, run_cells
from repro.run.export import finished_cells
from repro.run.fit import fit, load_checkpoint, save_checkpoint
from repro.run.store import Cell, Store, evaluation_of
from repro.skeleton import cell, reevaluate
from repro.skeleton.pretrain import VERSION, Pretrainer
from repro.skeleton.recipe import quick
from repro.skeleton.reevaluate import evaluate_again

CPU = torch.device("cpu")
TINY = {"units": 16, "epochs": 2, "batch": 512, "dictionary": 32, "sequence_dictionary": 16, "probe_epochs": 2}
MEASURES = {"linear", "linear_unseen", "linear_best", "linear_standardised", "linear_standardised_unseen", "knn1",
            "knn1_unseen", "embedding_spread", "readout_spread", "select", "evaluation", "cost"}
DECODED, SELECTED = {"decoded_scale"}, {"linear_last"}


def cells():
    """AE+CE at its last epoch, AE+CE chosen on the test split after the first, random initialisation, AD+CD."""
    chosen = [("AE+CE", {}), ("AE+CE", {"select": "best_on_test", "select_every": 1}), ("random", {}), ("AD+CD", {})]
    recipes = [quick("synthetic", name, **(TINY | changes)) for name, changes in chosen]
    digest = cell.data_of(recipes[0]).digest
    return [Cell("taxonomy", str(number), recipe, 0, "quick", "synthetic", digest, VERSION,
                 cell.EVALUATION) for number, recipe in enumerate(recipes)]


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


def outdate(store, **values):
    """Make every result one of an earlier evaluation, with less in it; returns the results before that."""
    before = {}
    for path in sorted(store.root.glob("*/*/result.json")):
        before[path] = json.loads(path.read_text())
        cost = before[path]["cost"] | values
        path.write_text(json.dumps({"linear": 12.34, "select": before[path]["select"], "cost": cost}))
    return before


def contents(store):
    return {path: path.read_bytes() for path in sorted(store.root.rglob("*")) if path.is_file()}


def test_what_is_measured_again_is_what_training_writes(store):
    before = outdate(store)
    assert evaluate_again(store, CPU) == 4
    after = {path: json.loads(path.read_text()) for path in before}
    assert after == before
    selected = after[result_path(store, cells()[1])]
    assert selected["linear_last"] == after[result_path(store, cells()[0])]["linear"]


def test_the_cost_stays_and_so_does_all_but_the_results(store):
    path = result_path(store, cells()[0])
    outdate(store, finished="long ago", precision="bfloat16")
    others = {where: content for where, content in contents(store).items() if where.name != "result.json"}
    evaluate_again(store, CPU)
    cost = json.loads(path.read_text())["cost"]
    assert (cost["finished"], cost["precision"], cost["steps"]) == ("long ago", "bfloat16", 2)
    assert {where: content for where, content in contents(store).items() if where.name != "result.json"} == others


def test_cells_of_this_evaluation_are_not_evaluated(store, monkeypatch):
    monkeypatch.setattr(reevaluate, "measure", None)
    before = contents(store)
    assert evaluate_again(store, CPU) == 0
    assert contents(store) == before


@pytest.mark.parametrize(("number", "expected"), [
    (0, MEASURES), (1, MEASURES | SELECTED), (2, MEASURES), (3, MEASURES | DECODED),
])
def test_training_writes_every_measure_and_the_version_of_the_evaluation(finished, number, expected):
    result = json.loads(result_path(Store(finished), cells()[number]).read_text())
    assert result.keys() == expected and result["evaluation"] == cell.EVALUATION


def test_a_cell_copied_from_another_table_gets_its_measures_from_there(store):
    origin = result_path(store, cells()[2])
    twin = store.root / "encoder_collapse" / origin.parent.name
    shutil.copytree(origin.parent, twin)
    rewrite(twin / "recipe.json", lambda values: values.update(table="encoder_collapse"))
    (twin / "checkpoint.pt").unlink()
    before = outdate(store)
    assert evaluate_again(store, CPU) == 5
    assert json.loads((twin / "result.json").read_text()) == before[origin]


# ---------------------------------------------------------------------------------------------- where a table is run


def run_again(store, monkeypatch, wanted=None, engine="inline"):
    """Run the table's cells again; how many steps are taken, inline."""
    taken = []
    step = Pretrainer.step
    monkeypatch.setattr(Pretrainer, "step", lambda learner: (taken.append(1), step(learner))[1])
    wanted = wanted or cells()
    run_cells(wanted, functools.partial(cell.train, device=CPU), store, pool=pool_of(engine, 1, wanted, CPU))
    return len(taken)


def test_a_table_that_is_run_measures_outdated_cells_again_without_a_step(store, monkeypatch):
    before = outdate(store, commit="earlier")
    checkpoints = {path: content for path, content in contents(store).items() if path.suffix == ".pt"}
    assert [store.run(each).result for each in cells()] == [None] * 4
    assert run_again(store, monkeypatch) == 0
    for path, result in before.items():
        expected = result | {"cost": result["cost"] | {"commit": "earlier"}}
        assert json.loads(path.read_text()) == expected
    assert {path: content for path, content in contents(store).items() if path.suffix == ".pt"} == checkpoints


DAMAGES = {"missing": lambda path: path.unlink(), "garbage": lambda path: path.write_bytes(b"no checkpoint"),
           "cut off": lambda path: path.write_bytes(path.read_bytes()[:-200])}


@pytest.mark.parametrize(("damage", "engine"), [*((name, "inline") for name in DAMAGES), ("cut off", "local")])
def test_without_a_sound_checkpoint_the_result_stays_and_says_its_evaluation(store, damage, engine, monkeypatch):
    wanted = cells()[0]
    outdate(store)
    path = result_path(store, wanted)
    rewrite(path, lambda values: values.update(evaluation=cell.EVALUATION - 1))
    before = path.read_bytes()
    DAMAGES[damage](path.with_name("checkpoint.pt"))
    assert run_again(store, monkeypatch, [wanted], engine) == 0
    assert path.read_bytes() == before
    assert store.run(wanted).result == json.loads(before)
    metrics = json.loads(finished_cells(store).set_index("key").loc[wanted.key, "metrics"])
    assert metrics["evaluation"] == cell.EVALUATION - 1


def test_a_result_that_does_not_say_its_evaluation_is_of_the_first():
    assert evaluation_of({"linear": 50.0}) == 1
    assert evaluation_of({"linear": 50.0, "evaluation": 3}) == 3


def test_the_version_of_the_evaluation_is_neither_in_the_key_nor_in_the_description():
    wanted = cells()[0]
    later = dataclasses.replace(wanted, evaluation=cell.EVALUATION + 1)
    assert later.key == wanted.key and later.describe() == wanted.describe()
    assert "evaluation" not in wanted.describe()


@pytest.mark.parametrize(("described", "message"), [
    ({"version": VERSION - 1}, f"version {VERSION - 1} of the pretrainer"), ({"digest": "other"}, "digest other"),
    ({"dataset": "ucla"}, "all_sqe.zip"), ({"step": 1}, "no checkpoint of step 2"), ({"checkpoint": None}, "no checkp"),
    ({"preset": "smoke"}, ""), ({"table": "image_methods"}, ""),
], ids=str)
def test_cells_that_are_passed_over(store, described, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "nothing"))
    outdate(store)
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


def test_what_was_trained_on_another_kind_of_device_is_evaluated_again(tmp_path):
    """Its generator's state is of another size, which only training on would need."""
    chosen = cells()[0]
    data = cell.data_of(chosen.recipe)
    learner = cell.learner_of(chosen.recipe, data, 0, CPU)
    with tqdm(disable=True) as progress:
        fit(learner, tmp_path, progress)
        state = load_checkpoint(tmp_path)
        state["learner"]["generator"] = torch.zeros(16, dtype=torch.uint8)
        save_checkpoint(tmp_path, state)
        again = cell.learner_of(chosen.recipe, data, 1, CPU)
        fit(again, tmp_path, progress)
    assert cell.evaluate(again, data, 0) == cell.evaluate(learner, data, 0)
