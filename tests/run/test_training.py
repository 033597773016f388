import dataclasses
import functools

import pandas as pd
import pytest
import torch
from made_up_study import TOY, run_of
from made_up_training import RUN

from repro.image.recipe import ImageRecipe
from repro.run import code, training
from repro.run.engine import train_runs
from repro.run.fit import save_checkpoint
from repro.run.training import checkpoint, kept, restored

CPU = torch.device("cpu")


@pytest.fixture
def finished(store):
    """Lets runs be finished, with weights; returns a function that gives the folder of one."""
    def finish(run):
        folder = store.folder(run).path
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("result.json", "checkpoint.pt"):
            (folder / name).touch()
        return folder

    return finish


def test_what_is_kept_is_computed_once_with_the_threads_and_the_precision_of_training(finished, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    finished(RUN)
    calls = []

    def compute():
        calls.append((torch.get_num_threads(), torch.backends.cudnn.allow_tf32))
        return pd.DataFrame({"value": [0.5, 2.0]})

    first = kept(RUN, "values.csv", compute)
    whose = {"dataset": ["synthetic"] * 2, "preset": ["quick"] * 2, "version": [1, 1], "evaluation": [1, 1],
             "seed": [0, 0]}
    assert first.to_dict("list") == {"value": [0.5, 2.0]} | whose
    assert kept(RUN, "values.csv", compute).equals(first)
    assert calls == [(1, False)]


@pytest.mark.parametrize("change", [{"version": 2}, {"evaluation": 2}])
def test_what_is_kept_of_another_version_is_computed_again_from_weights(finished, change):
    """A file of before versions were kept, or with the same id: that of an evaluation is not in it."""
    today, values = dataclasses.replace(RUN, **change), iter([0.5, 2.0, 3.0])
    before, place = finished(RUN), finished(today)

    def value_of(run):
        return kept(run, "values.csv", lambda: pd.DataFrame({"value": [next(values)]}))["value"].tolist()

    assert value_of(RUN) == [0.5]
    if place != before:  # another training has another folder
        (place / "values.csv").write_bytes((before / "values.csv").read_bytes())
    assert value_of(today) == value_of(today) == [2.0]
    unversioned = "value,dataset,preset\n7.0,synthetic,quick\n"
    (place / "values.csv").write_text(unversioned)
    assert value_of(today) == [3.0]
    (place / "values.csv").write_text(unversioned)
    (place / "checkpoint.pt").unlink()  # nothing to compute it from: it stays
    assert value_of(today) == [7.0]


@pytest.mark.parametrize("changed", ["papers/jcl/measured.py", "image/augment.py", "contrast/active.py",
                                     "report/histograms.py", "skeleton/study.py"])
def test_what_is_kept_is_computed_again_where_what_computes_it_has_changed(finished, monkeypatch, changed):
    run, values = dataclasses.replace(RUN, recipe=ImageRecipe(dataset="digits")), iter([0.5, 2.0])

    def compute(shift):
        return pd.DataFrame({"value": [shift + next(values)]})

    compute.__module__ = "repro.papers.jcl.measured"
    finished(run)
    first, second = (kept(run, "values.csv", functools.partial(compute, 1.0)) for _ in range(2))
    assert first.equals(second) and first["value"].tolist() == [1.5] and "code" not in first
    monkeypatch.setitem(code.IMPORTED, changed, "of other weights")
    again = kept(run, "values.csv", functools.partial(compute, 1.0))
    assert again["value"].tolist() == ([1.5] if changed.startswith("skeleton") else [3.0])


def test_the_state_of_a_finished_run_is_that_of_its_checkpoint(store):
    with pytest.raises(ValueError, match=f"id='{RUN.id}' is not that of a finished run in .*; see `repro results"):
        checkpoint(RUN.id)
    store.folder(RUN).finish({"linear": 51.0, "cost": {}})
    with pytest.raises(FileNotFoundError, match="has no sound checkpoint; delete that folder and run the table again"):
        checkpoint(RUN.id)
    save_checkpoint(store.path(RUN.id), {"step": 1, "seconds": 0.0, "learner": {"weight": 3}})
    assert checkpoint(RUN.id) == {"weight": 3}



def test_a_learner_is_given_back_with_its_weights_and_the_data_it_was_trained_on(store):
    run = run_of(TOY, TOY.presets["paper"]("ucla", "plain"), 3, "paper")
    train_runs([run], functools.partial(training.train, study=TOY, device=CPU), store)
    learner = restored(run, TOY, CPU)
    assert (learner.taken, learner.model["number"].item()) == (2, pytest.approx(3.2))
    with pytest.raises(ValueError, match="ucla has changed since this run was asked for"):
        restored(dataclasses.replace(run, digest="of other data"), TOY, CPU)
    other = restored(run, TOY, CPU, dataset="ntu")  # which is asked for
    assert (other.data.name, other.taken) == ("ntu", 2)
