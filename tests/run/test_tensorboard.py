"""What TensorBoard is given: every line of the logs once, also of those that grow, are cut, or lie there already."""

import importlib.util
import json
import sys
import types

import pytest
from made_up_training import CELLS
from nursery import until

from repro.run import tensorboard
from repro.run.engine import run_cells
from repro.run.tensorboard import followed


class Writer:
    """Stands for torch's, whose package need not be installed; remembers what it was given, by folder."""

    given: dict

    def __init__(self, folder):
        self.scalars = self.given.setdefault(folder.rpartition("/")[2], [])

    def add_scalar(self, name, value, step):
        self.scalars.append((name, step, value))

    def flush(self):
        pass

    close = flush


@pytest.fixture
def given(monkeypatch):
    monkeypatch.setattr(Writer, "given", {}, raising=False)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=Writer))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(tensorboard, "SECONDS", 0.05)
    return Writer.given


def line(step, **values):
    return json.dumps({"step": step, "of": 9, **values, "seconds": 1.0}) + "\n"


def test_logs_are_copied_as_they_grow_and_when_they_are_cut(store, tmp_path, given):
    log = store.run(CELLS[1]).folder / "progress.jsonl"

    def train(run, progress):
        assert run.cell is CELLS[1]
        log.write_text(line(1, AE=4.0) + line(2, AE=3.0)[:9])           # killed while it wrote
        until(lambda: len(scalars()) == 1)
        log.write_text(line(1, AE=4.0) + line(2, AE=3.0))
        until(lambda: len(scalars()) == 2)
        log.write_text(line(1, AE=4.0))                                 # continues after its first step
        with log.open("a") as file:
            file.write(line(2, AE=3.0) + line(3, AE=2.0))
        (run.folder / "probes.jsonl").write_text(json.dumps({"step": 3, "linear": 50.0}) + "\n")
        yield
        return {"linear": 50.0, "cost": {}}

    def scalars():
        return next((values for name, values in given.items() if "AE" in name), [])

    store.run(CELLS[0]).finish({"linear": 1.0, "cost": {}})
    (store.run(CELLS[0]).folder / "progress.jsonl").write_text(line(9, CE=1.0, loss=1.0))
    with followed([store.run(cell) for cell in CELLS[:2]], tmp_path / "board"):
        run_cells(CELLS[:2], train, store)
    finished, trained = sorted(given, key=lambda name: "AE" in name)
    assert finished == f"synthetic_quick_CE_seed_0_{CELLS[0].key[:4]}"
    assert given[finished] == [("loss/CE", 9, 1.0), ("loss/loss", 9, 1.0)]
    assert given[trained] == [
        ("loss/AE", 1, 4.0), ("loss/AE", 2, 3.0), ("loss/AE", 3, 2.0), ("measured/linear", 3, 50.0),
    ]


def test_without_the_package_the_error_names_it_before_anything_is_trained(store, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="install it with: pip install tensorboard"), followed([], tmp_path):
        raise AssertionError


def test_torch_writes_what_tensorboard_reads(store, tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = store.run(CELLS[0])
    run.finish({"linear": 1.0, "cost": {}})
    (run.folder / "progress.jsonl").write_text(line(4, CE=2.0) + line(9, CE=1.0))
    for _ in range(2):  # the second time in the place of the first
        with followed([run], tmp_path / "board"):
            pass
    folder, = (tmp_path / "board").iterdir()
    read = EventAccumulator(str(folder)).Reload()
    assert [(event.step, event.value) for event in read.Scalars("loss/CE")] == [(4, 2.0), (9, 1.0)]
