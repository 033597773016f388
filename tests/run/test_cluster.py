"""The cluster that the engine "dask" starts on this machine."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from made_up_training import CELLS, Trainer
from nursery import HELPERS

from repro.run import cluster
from repro.run.cluster import Cluster

SCRIPT = """
import dataclasses, json, os, time
from pathlib import Path

from distributed import get_worker

from one_cell import CELL

from repro.run.cluster import Cluster
from repro.run.store import Store

ROOT = Path(os.environ["REPRO_RUNS"])


def train(run, progress):
    worker, met = get_worker(), ROOT / f"met {run.cell.preset}"
    met.mkdir(exist_ok=True)
    (met / str(worker.name)).touch()
    deadline = time.monotonic() + 60
    while len(list(met.iterdir())) < 2 and time.monotonic() < deadline:  # else one could do all before the other begins
        time.sleep(0.01)
    resources = {"left": worker.state.available_resources, "has": worker.state.total_resources}
    gpus = {name: float(found.get("GPU", -1)) for name, found in resources.items()}
    return {"linear": float(worker.name), "cost": {}} | gpus


def main(device):
    cells = [dataclasses.replace(CELL, seed=seed, preset=device) for seed in range(4)]
    store = Store(ROOT)
    failed = Cluster(2, None, device)(cells, train, store)
    results = [store.run(cell).result for cell in cells]
    print(json.dumps([len(failed), *([each[name] for each in results] for name in ("linear", "left", "has"))]))
"""


@pytest.mark.parametrize(("device", "gpus_left", "gpus"), [("cuda", 0, 1), ("cpu", -1, -1)])
def test_workers_have_numbers_to_share_gpus_by_and_a_cell_takes_one_on_cuda_alone(device, gpus_left, gpus, tmp_path):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-c", f"import script; script.main({device!r})"]
    own = os.environ | {"REPRO_RUNS": str(tmp_path), "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(HELPERS)}
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    failed, names, left, has = json.loads(done.stdout.splitlines()[-1])
    assert failed == 0 and set(names) == {0.0, 1.0}
    assert set(left) == {gpus_left} and set(has) == {gpus}  # while a cell is trained; -1: there is no such resource


def test_dask_workers_of_this_machine_take_turns_with_its_gpus(store, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert Cluster(4, None, "cuda")._gpus() == 2
    assert Cluster(4, "tcp://host:8786", "cuda")._gpus() == Cluster(4, None, "cpu")._gpus() == 0

    taken = []
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    for number, each in enumerate(CELLS[:3]):
        monkeypatch.setattr(distributed, "get_worker", lambda number=number: SimpleNamespace(name=number))
        assert cluster._settle(each, Trainer(), store, 2)
    assert cluster._settle(CELLS[3], Trainer(), store, 0)
    assert taken == [0, 1, 0]


def test_a_scheduler_that_does_not_answer_is_named_with_what_to_do(store):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}), pytest.raises(
        ConnectionError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9 .*; start one there with `dask scheduler`"
    ):
        Cluster(1, "tcp://127.0.0.1:9", "cpu")(CELLS, Trainer(), store)
