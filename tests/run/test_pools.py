"""Which processes train the cells, how many, what they see, and what becomes of errors in them."""

import dataclasses
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from made_up_training import CELLS, Trainer
from nursery import HELPERS
from one_cell import Small

from repro.run import pools
from repro.run.engine import run_cells
from repro.run.pools import Cluster, Local, pool_of
from repro.run.store import Cell


def threaded(threads: int, preset: str) -> list[Cell]:
    return [dataclasses.replace(CELLS[0], recipe=Small(threads=threads), preset=preset)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Idle(Small):
    cells_per_gpu = 8


@pytest.mark.parametrize(
    ("name", "workers", "recipe", "preset", "device", "count"),
    [
        ("inline", "auto", Small(), "quick", "cpu", 1), ("inline", 1, Small(), "quick", "cpu", 1),
        ("local", "auto", Small(), "quick", "cpu", 6), ("local", "auto", Small(threads=4), "quick", "cpu", 1),
        ("local", "auto", Small(threads=8), "quick", "cpu", 1), ("local", "auto", Small(), "smoke", "cpu", 6),
        ("local", 3, Small(threads=8), "smoke", "cpu", 3), ("local", "3", Small(threads=8), "quick", "cuda:4", 3),
        ("auto", "auto", Small(), "quick", "cpu", 6), ("auto", "auto", Small(), "smoke", "cpu", 1),
        ("auto", "2", Small(), "smoke", "cpu", 2), ("auto", "auto", Small(), "quick", "cuda:4", 4),
        ("auto", "auto", Small(), "quick", "cuda:0", 1), ("local", "auto", Small(), "quick", "cuda:0", 1),
        ("auto", "auto", Idle(), "paper", "cuda:3", 24), ("local", "auto", Idle(), "smoke", "cuda:1", 8),
        ("auto", "auto", Idle(), "smoke", "cuda:1", 1), ("auto", 16, Idle(), "quick", "cuda:1", 16),
        ("auto", 1, Idle(), "quick", "cuda:1", 1), ("inline", "auto", Idle(), "quick", "cuda:1", 1),
    ],
    ids=str,
)
def test_how_many_work(monkeypatch, name, workers, recipe, preset, device, count):
    """On "cuda:3" there are three GPUs."""
    kind, _, gpus = device.partition(":")
    monkeypatch.setattr(pools, "cores", lambda: 6)
    monkeypatch.setattr("repro.run.device.cores", lambda: 64)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: int(gpus))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(total_memory=141 * 10**9))
    pool = pool_of(name, workers, [dataclasses.replace(CELLS[0], recipe=recipe, preset=preset)], torch.device(kind))
    assert pool == (Local(count, kind) if name == "local" or count > 1 else None)


@pytest.mark.parametrize(("group", "found"), [(False, "with engine 'inline'"), (True, "under torchrun")])
def test_workers_that_would_not_be_started_are_refused(monkeypatch, group, found):
    monkeypatch.setattr(pools, "grouped", lambda: group)
    with pytest.raises(ValueError, match=f"workers=8 are not started {found}; leave them out"):
        pool_of("inline", "8", threaded(1, "quick"), torch.device("cpu"))
    assert pool_of("inline", "1", threaded(1, "quick"), torch.device("cpu")) is None


@pytest.mark.parametrize(("name", "workers", "message"), [
    ("local", "tcp://host:8786", "workers=tcp://host:8786 is an address; choose engine 'dask' with it"),
    ("dask", "host:8786", "'host:8786' should be a number, or an address such as 'tcp://host:8786'"),
    ("locl", "auto", r"^engine='locl' is not one of: auto, inline, local, dask; did you mean 'local'\?$"),
    *((name, workers, r"^workers=.* should be a whole number of at least 1$")
      for name in ("inline", "local", "auto", "dask") for workers in (0, "two", 1.5, True)),
])
def test_what_is_no_engine_or_number_of_workers_is_refused(name, workers, message):
    if name == "dask":
        pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    with pytest.raises(ValueError, match=message):
        pool_of(name, workers, threaded(1, "quick"), torch.device("cpu"))


def test_dask_takes_an_address_a_number_or_its_own_configuration(monkeypatch):
    dask = pytest.importorskip("dask", reason="the extra `cluster` is not installed")
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

    def chosen(workers, device="cpu"):
        return pool_of("dask", workers, threaded(2, "quick"), torch.device(device))

    monkeypatch.setattr(pools, "cores", lambda: 6)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert chosen("tcp://host:8786") == Cluster(3, "tcp://host:8786", "cpu")
    assert chosen("2") == Cluster(2, None, "cpu") and chosen("auto") == Cluster(3, None, "cpu")
    assert chosen("auto", "cuda") == Cluster(4, None, "cuda")
    with dask.config.set({"scheduler-address": "tcp://other:1"}):
        assert chosen("auto") == Cluster(3, "tcp://other:1", "cpu") and chosen(2) == Cluster(2, None, "cpu")


def test_dask_is_asked_for_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(pools.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"engine='dask' needs dask.distributed; install it with: pip install "):
        pool_of("dask", "auto", threaded(1, "quick"), torch.device("cpu"))


ERRORS = """
import dataclasses, errno, json, os, sys
from pathlib import Path

from one_cell import CELL

import torch

from repro.run.engine import complete
from repro.run.pools import Local
from repro.run.store import Store


def train(run, progress):
    print("words")
    with open(Path(os.environ["REPRO_RUNS"]) / "tried.txt", "a") as file:
        file.write(f"{run.cell.seed} {os.getpid()} {os.environ['CUDA_VISIBLE_DEVICES']}\\n")
    if run.cell.seed == 1:
        raise MemoryError("no room")
    if run.cell.seed == 2 and not (run.folder / "once").exists():
        (run.folder / "once").touch()
        os._exit(7)
    if run.cell.seed == 4:
        raise OSError(errno.ENOSPC, "No space left on device (make room there)", "runs/checkpoint.pt")
    return {"linear": 1.0, "cost": {}}


def main():
    torch.cuda.device_count = lambda: 2
    cells = [dataclasses.replace(CELL, seed=seed) for seed in range(5)]
    store = Store(os.environ["REPRO_RUNS"])
    try:
        complete(cells, train, store, Local(2, "cuda"))
    except ChildProcessError as error:
        print(json.dumps([str(error).splitlines(), [store.run(cell).result is not None for cell in cells]]))
"""


def test_an_error_but_of_the_disk_is_tried_once_more_in_a_new_process_and_every_process_has_a_gpu_of_its_own(tmp_path):
    (tmp_path / "script.py").write_text(ERRORS)
    command = [sys.executable, "-c", "import script; script.main()"]
    (tmp_path / "sitecustomize.py").write_text("print('words of a Python that starts', end='')")
    path = os.pathsep.join(filter(None, [str(tmp_path), str(HELPERS), os.environ.get("PYTHONPATH")]))
    own = os.environ | {"REPRO_RUNS": str(tmp_path), "CUDA_VISIBLE_DEVICES": "4,6", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    (summary, *failed, _), finished = json.loads(done.stdout.splitlines()[-1])
    full = "OSError: [Errno 28] No space left on device (make room there): 'runs/checkpoint.pt'"
    assert summary == "2 of 5 cells failed, the others are done:"
    assert sorted(failed) == ["  CE, seed 1: MemoryError: no room (tried twice)", f"  CE, seed 4: {full}"]
    assert finished == [True, False, True, True, False]
    assert done.stderr.count("MemoryError: no room") == 3 and "Traceback" in done.stderr
    gone = "its process was lost (perhaps for want of memory, unless it says why above)"
    for seed, lost in ((1, "MemoryError: no room"), (2, gone)):
        assert f"CE, seed {seed}: {lost}; trying once more\n" in done.stderr
    tried = [line.split() for line in (tmp_path / "tried.txt").read_text().splitlines()]
    assert sorted(seed for seed, _, _ in tried) == ["0", "1", "1", "2", "2", "3", "4"]
    for lost in "12":
        assert len({process for seed, process, _ in tried if seed == lost}) == 2
    assert {gpu for _, _, gpu in tried} == {"4", "6"}


MEETING = """
import dataclasses, json, os, time
from pathlib import Path

import torch
from distributed import get_worker

from one_cell import CELL

from repro.run.engine import complete
from repro.run.pools import Cluster
from repro.run.store import Store

ROOT = Path(os.environ["REPRO_RUNS"])


def train(run, progress):
    worker, met = get_worker(), ROOT / "met"
    met.mkdir(exist_ok=True)
    (met / str(worker.name)).touch()
    deadline = time.monotonic() + 60
    while len(list(met.iterdir())) < 2 and time.monotonic() < deadline:  # else one could do all before the other begins
        time.sleep(0.01)
    resources = {"left": worker.state.available_resources, "has": worker.state.total_resources}
    gpus = {name: float(found.get("GPU", -1)) for name, found in resources.items()}
    told = {"sees": os.environ["CUDA_VISIBLE_DEVICES"], "address": worker.address, "cost": {}}
    return {"linear": float(worker.name)} | told | gpus


def main():
    cells = [dataclasses.replace(CELL, seed=seed) for seed in range(4)]
    store = Store(ROOT)
    torch.cuda.device_count = lambda: 2
    complete(cells, train, store, Cluster(2, None, "cuda"))
    results = [store.run(cell).result for cell in cells]
    print(json.dumps([[each[name] for each in results] for name in ("linear", "left", "has", "sees", "address")]))
"""


def test_dask_workers_of_this_machine_take_turns_with_its_gpus_and_a_cell_takes_one(tmp_path):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    (tmp_path / "script.py").write_text(MEETING)
    command = [sys.executable, "-c", "import script; script.main()"]
    own = {"REPRO_RUNS": str(tmp_path), "CUDA_VISIBLE_DEVICES": "4,6", "PYTHONPATH": str(HELPERS)}
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    names, left, has, sees, addresses = json.loads(done.stdout.splitlines()[-1])
    assert all(address.startswith("tcp://127.0.0.1:") for address in addresses)  # nobody else can reach them
    assert set(zip(names, sees, strict=True)) == {(0, "4"), (1, "6")}
    assert set(left) == {0} and set(has) == {1}  # while a cell is trained


def test_a_scheduler_that_does_not_answer_is_named_with_what_to_do(store):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}), pytest.raises(
        ConnectionError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9 .*; start one there with `dask scheduler`"
    ):
        run_cells(CELLS, Trainer(), store, pool=Cluster(1, "tcp://127.0.0.1:9", "cpu"))
