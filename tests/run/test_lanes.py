"""Several runs in one process, in turns: who is next, what an error ends, that no result depends on it."""

import dataclasses
import functools
import json

import pytest
import torch
from made_up_skeletons import CPU, made_up, tiny
from made_up_study import run_of
from made_up_training import RUNS, value
from states import differences, outcome

from repro.run import fit as fitting
from repro.run import training
from repro.run.engine import Pool, train_runs, worked
from repro.run.fit import NonFiniteLoss, fit
from repro.run.learner import Learner
from repro.run.store import Store
from repro.skeleton.recipe import SKELETONS

LENGTHS = {("CE", 0): 2, ("AE", 0): 4, ("CE", 1): 1, ("CD", 0): 3, ("AE", 1): 2}  # turns that a run takes


class Turns:
    """Stands for training a run in several turns; notes each, and meets an error in the last of some runs."""

    def __init__(self, **errors):
        self.taken, self.errors = [], errors

    def __call__(self, folder, progress):
        run = (folder.run.label, folder.run.seed)
        for turn in range(1, LENGTHS[run] + 1):
            self.taken.append((*run, turn, torch.get_num_threads()))
            (folder.path / "progress.jsonl").write_text(json.dumps({"step": turn, "of": LENGTHS[run]}) + "\n")
            if turn == LENGTHS[run] and folder.run.label in self.errors:
                raise self.errors[folder.run.label]
            if turn < LENGTHS[run]:
                yield
        return {"linear": value(folder.run), "select": "last", "cost": {"seconds": 1.0}}

    def names(self):
        return " ".join(f"{label}{seed}.{turn}" for label, seed, turn, _ in self.taken)


def finished(store):
    return [store.folder(run).result and store.folder(run).result["linear"] for run in RUNS]


# ---------------------------------------------------------------------------------------------- turns


@pytest.mark.parametrize(("lanes", "expected"), [
    (1, "CE0.1 CE0.2 AE0.1 AE0.2 AE0.3 AE0.4 CE1.1 CD0.1 CD0.2 CD0.3 AE1.1 AE1.2"),
    (3, "CE0.1 AE0.1 CE1.1 CE0.2 AE0.2 CD0.1 AE0.3 CD0.2 AE1.1 AE0.4 CD0.3 AE1.2"),
    (9, "CE0.1 AE0.1 CE1.1 CD0.1 AE1.1 CE0.2 AE0.2 CD0.2 AE1.2 AE0.3 CD0.3 AE0.4"),
])
def test_lanes_take_turns_and_one_that_is_free_takes_the_next_run(store, lanes, expected):
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)  # each turn has those of its recipe
    try:
        train_runs(RUNS, train := Turns(), store, pool=Pool(lanes=lanes))
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)
    assert train.names() == expected and {threads for *_, threads in train.taken} == {1}
    assert finished(store) == [value(run) for run in RUNS]


# ---------------------------------------------------------------------------------------------- errors, claims


def test_an_error_in_a_lane_ends_its_run_alone(store, capsys):
    with pytest.raises(ChildProcessError) as raised:
        train_runs(RUNS, Turns(CD=RuntimeError("a device that was lost")), store, pool=Pool(lanes=3))
    assert str(raised.value).splitlines() == [
        "1 of 5 runs failed, the others are done:", "  CD, seed 0: RuntimeError: a device that was lost",
        "once the reason is gone, the same command trains them again",
    ]
    assert "Traceback" in capsys.readouterr().err
    assert finished(store) == [None if run.label == "CD" else value(run) for run in RUNS]
    train_runs(RUNS, train := Turns(), store, pool=Pool(lanes=3))
    assert train.names() == "CD0.1 CD0.2 CD0.3"


def test_a_worker_ends_the_lanes_beside_an_error_and_begins_no_further_run(store, capsys):
    errors = {"AE": NonFiniteLoss("AE is nan at step 7"), "CD": RuntimeError("a device that was lost")}
    met = worked(RUNS, Turns(**errors), store, 2, "first")  # a divergence leaves a process as it was
    assert {id: f"{type(error).__name__}: {error}" for id, error in met.items()} == {
        RUNS[1].id: "NonFiniteLoss: AE is nan at step 7",
        RUNS[3].id: "ChildProcessError: RuntimeError: a device that was lost",
        RUNS[4].id: "NonFiniteLoss: AE is nan at step 7"}
    assert "Traceback" in capsys.readouterr().err
    met = worked(RUNS[3:], train := Turns(CD=errors["CD"]), store, 1, "second")
    assert [*met] == [RUNS[3].id] and train.names() == "CD0.1 CD0.2 CD0.3"
    assert finished(store) == [value(run) if run.label == "CE" else None for run in RUNS]


def test_what_ends_the_process_leaves_no_run_held_also_while_its_traceback_is_kept(store):
    """As where the kernel of a notebook is interrupted, and the same cell of the notebook is run again."""
    with pytest.raises(KeyboardInterrupt) as raised:
        train_runs(RUNS, Turns(CE=KeyboardInterrupt()), store, pool=Pool(lanes=3))
    for run in RUNS:
        with store.folder(run).claim() as claimed:
            assert claimed, f"{run} is held while {raised.value!r} is looked at"


# ---------------------------------------------------------------------------------------------- results


DATA = made_up()
STUDY = dataclasses.replace(SKELETONS, load=lambda recipe: DATA)
SMALL = {"epochs": 3, "probe_epochs": 3, "probe_batch": 7}
RECIPES = [tiny("AE+CE+AD+CD", **SMALL), tiny("CE", **SMALL), tiny("random", **SMALL),
           tiny("AE+CE", **SMALL, select="best_on_test", select_every=1)]
TRAINED = [run_of(STUDY, recipe, seed, "quick") for seed, recipe in enumerate(RECIPES)]


@pytest.fixture
def train(monkeypatch):
    """Trains a run of a small study, with a report every other step and a checkpoint at each."""
    monkeypatch.setattr(training, "fit", functools.partial(fit, checkpoint_seconds=0))
    monkeypatch.setattr(Learner, "report_steps", 2)
    return functools.partial(training.train, study=STUDY, device=CPU)


def test_results_do_not_depend_on_lanes_also_when_a_kill_ends_them_all(tmp_path, train, monkeypatch):
    """To the last bit. The kill comes between two runs' checkpoints, of those in the lanes all are taken up again."""
    train_runs(TRAINED, train, Store(tmp_path / "one"), pool=Pool(lanes=1))
    expected = outcome(tmp_path / "one")
    train_runs(TRAINED, train, Store(tmp_path / "three"), pool=Pool(lanes=3))
    assert len(expected) > 3 * len(TRAINED) and differences(outcome(tmp_path / "three"), expected) == []
    saves, save = [], fitting.save_checkpoint

    def save_or_die(folder, state):
        saves.append(folder)
        if len(saves) == 8:
            raise KeyboardInterrupt
        save(folder, state)

    monkeypatch.setattr(fitting, "save_checkpoint", save_or_die)
    with pytest.raises(KeyboardInterrupt):
        train_runs(TRAINED, train, Store(tmp_path / "killed"), pool=Pool(lanes=3))
    left = [path.parent.name for path in (tmp_path / "killed").glob("runs/*/checkpoint.pt")]
    assert len(left) >= 3 and len(set(saves[-3:])) == 3
    train_runs(TRAINED, train, Store(tmp_path / "killed"), pool=Pool(lanes=3))
    assert differences(outcome(tmp_path / "killed"), expected) == []
