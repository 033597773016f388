import dataclasses
import functools

import pandas as pd
import pytest
import torch
from made_up_study import TOY, cell_of
from made_up_training import CELL

from repro.image.recipe import ImageRecipe
from repro.run import code, training
from repro.run.engine import run_cells
from repro.run.fit import save_checkpoint
from repro.run.store import Store
from repro.run.training import checkpoint, kept, restored


def test_what_is_kept_is_computed_once_with_the_threads_and_the_precision_of_training(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    Store(tmp_path).run(CELL).folder.mkdir(parents=True)
    calls = []

    def compute():
        calls.append((torch.get_num_threads(), torch.backends.cudnn.allow_tf32))
        return pd.DataFrame({"value": [0.5, 2.0]})

    first = kept(CELL, "values.csv", compute)
    whose = {"dataset": ["synthetic"] * 2, "preset": ["quick"] * 2, "version": [1, 1], "evaluation": [1, 1],
             "seed": [0, 0]}
    assert first.to_dict("list") == {"value": [0.5, 2.0]} | whose
    assert kept(CELL, "values.csv", compute).equals(first)
    assert calls == [(1, False)]


@pytest.mark.parametrize("change", [{"version": 2}, {"evaluation": 2}])
def test_what_is_kept_of_another_version_is_computed_again(tmp_path, monkeypatch, change):
    """A file of before versions were kept, or with the same id: that of an evaluation is not in it."""
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path))
    today = dataclasses.replace(CELL, **change)
    values = iter([0.5, 2.0, 3.0])

    def compute():
        return pd.DataFrame({"value": [next(values)]})

    for each in (CELL, today):
        run = Store(tmp_path).run(each)
        run.folder.mkdir(parents=True, exist_ok=True)
        for name in ("result.json", "checkpoint.pt"):
            (run.folder / name).touch()
    folder = Store(tmp_path).run(today).folder
    assert kept(CELL, "values.csv", compute)["value"].tolist() == [0.5]
    if folder != Store(tmp_path).run(CELL).folder:  # another training has another folder
        (folder / "values.csv").write_bytes((Store(tmp_path).run(CELL).folder / "values.csv").read_bytes())
    assert kept(today, "values.csv", compute)["value"].tolist() == [2.0]
    assert kept(today, "values.csv", compute)["value"].tolist() == [2.0]
    (folder / "values.csv").write_text("value,dataset,preset\n7.0,synthetic,quick\n")
    assert kept(today, "values.csv", compute)["value"].tolist() == [3.0]
    (folder / "values.csv").write_text("value,dataset,preset\n7.0,synthetic,quick\n")
    (folder / "checkpoint.pt").unlink()  # nothing to compute it from: it stays
    assert kept(today, "values.csv", compute)["value"].tolist() == [7.0]


@pytest.mark.parametrize("changed", ["papers/jcl/measured.py", "image/augment.py", "contrast/active.py",
                                     "report/histograms.py", "skeleton/study.py"])
def test_what_is_kept_is_computed_again_where_what_computes_it_has_changed(store, monkeypatch, changed):
    cell, values = dataclasses.replace(CELL, recipe=ImageRecipe(dataset="digits")), iter([0.5, 2.0])

    def compute(shift):
        return pd.DataFrame({"value": [shift + next(values)]})

    compute.__module__ = "repro.papers.jcl.measured"
    store.run(cell).folder.mkdir(parents=True)
    (store.run(cell).folder / "checkpoint.pt").touch()
    first, second = (kept(cell, "values.csv", functools.partial(compute, 1.0)) for _ in range(2))
    assert first.equals(second) and first["value"].tolist() == [1.5] and "code" not in first
    monkeypatch.setitem(code.IMPORTED, changed, "of other weights")
    again = kept(cell, "values.csv", functools.partial(compute, 1.0))
    assert again["value"].tolist() == ([1.5] if changed.startswith("skeleton") else [3.0])


def test_the_state_of_a_finished_cell_is_that_of_its_checkpoint(store):
    with pytest.raises(ValueError, match=f"id='{CELL.id}' is not that of a finished cell in .*; see `repro results"):
        checkpoint(CELL.id, store)
    store.run(CELL).finish({"linear": 51.0, "cost": {}})
    with pytest.raises(FileNotFoundError, match="has no sound checkpoint; delete that folder and run the table again"):
        checkpoint(CELL.id, store)
    save_checkpoint(store.folder(CELL.id), {"step": 1, "seconds": 0.0, "learner": {"weight": 3}})
    assert checkpoint(CELL.id, store) == {"weight": 3}


def test_a_learner_is_given_back_with_its_weights_and_the_data_it_was_trained_on(store):
    cpu, cell = torch.device("cpu"), cell_of(TOY, TOY.presets["paper"]("ucla", "plain"), 3, "paper")
    run_cells([cell], functools.partial(training.train, study=TOY, device=cpu), store)
    learner = restored(cell, TOY, cpu)
    assert (learner.taken, learner.model["number"].item()) == (2, pytest.approx(3.2))
    with pytest.raises(ValueError, match="ucla has changed since this cell was asked for"):
        restored(dataclasses.replace(cell, digest="of other data"), TOY, cpu)
    other = restored(cell, TOY, cpu, dataset="ntu")  # which is asked for
    assert (other.data.name, other.taken) == ("ntu", 2)
