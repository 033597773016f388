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
from repro.run.store import Store
from repro.run.training import checkpoint, kept, restored


def test_what_is_kept_is_computed_once_with_the_threads_and_the_precision_of_training(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    Store(tmp_path).folder(RUN).path.mkdir(parents=True)
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
def test_what_is_kept_of_another_version_is_computed_again(tmp_path, monkeypatch, change):
    """A file of before versions were kept, or with the same id: that of an evaluation is not in it."""
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    today = dataclasses.replace(RUN, **change)
    values = iter([0.5, 2.0, 3.0])

    def compute():
        return pd.DataFrame({"value": [next(values)]})

    for each in (RUN, today):
        folder = Store(tmp_path).folder(each)
        folder.path.mkdir(parents=True, exist_ok=True)
        for name in ("result.json", "checkpoint.pt"):
            (folder.path / name).touch()
    place = Store(tmp_path).folder(today).path
    assert kept(RUN, "values.csv", compute)["value"].tolist() == [0.5]
    if place != Store(tmp_path).folder(RUN).path:  # another training has another folder
        (place / "values.csv").write_bytes((Store(tmp_path).folder(RUN).path / "values.csv").read_bytes())
    assert kept(today, "values.csv", compute)["value"].tolist() == [2.0]
    assert kept(today, "values.csv", compute)["value"].tolist() == [2.0]
    (place / "values.csv").write_text("value,dataset,preset\n7.0,synthetic,quick\n")
    assert kept(today, "values.csv", compute)["value"].tolist() == [3.0]
    (place / "values.csv").write_text("value,dataset,preset\n7.0,synthetic,quick\n")
    (place / "checkpoint.pt").unlink()  # nothing to compute it from: it stays
    assert kept(today, "values.csv", compute)["value"].tolist() == [7.0]


@pytest.mark.parametrize("changed", ["papers/jcl/measured.py", "image/augment.py", "contrast/active.py",
                                     "report/histograms.py", "skeleton/study.py"])
def test_what_is_kept_is_computed_again_where_what_computes_it_has_changed(store, monkeypatch, changed):
    run, values = dataclasses.replace(RUN, recipe=ImageRecipe(dataset="digits")), iter([0.5, 2.0])

    def compute(shift):
        return pd.DataFrame({"value": [shift + next(values)]})

    compute.__module__ = "repro.papers.jcl.measured"
    store.folder(run).path.mkdir(parents=True)
    (store.folder(run).path / "checkpoint.pt").touch()
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
    cpu, run = torch.device("cpu"), run_of(TOY, TOY.presets["paper"]("ucla", "plain"), 3, "paper")
    train_runs([run], functools.partial(training.train, study=TOY, device=cpu), store)
    learner = restored(run, TOY, cpu)
    assert (learner.taken, learner.model["number"].item()) == (2, pytest.approx(3.2))
    with pytest.raises(ValueError, match="ucla has changed since this run was asked for"):
        restored(dataclasses.replace(run, digest="of other data"), TOY, cpu)
    other = restored(run, TOY, cpu, dataset="ntu")  # which is asked for
    assert (other.data.name, other.taken) == ("ntu", 2)
