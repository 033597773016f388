"""How many workers an engine has, by cells, cores and GPUs, and which numbers are refused."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from made_up_training import CELLS
from one_cell import Small

from repro.recipe import Recipe
from repro.run import cluster, engine
from repro.run.cluster import Cluster
from repro.run.engine import pool_of
from repro.run.local import Local
from repro.run.store import Cell
from repro.skeleton.recipe import SkeletonRecipe


def threaded(threads: int, preset: str) -> list[Cell]:
    return [dataclasses.replace(CELLS[0], recipe=Small(threads=threads), preset=preset)]


@pytest.mark.parametrize(
    ("name", "workers", "threads", "preset", "device", "count"),
    [
        ("inline", "auto", 1, "quick", "cpu", 1), ("inline", 1, 1, "quick", "cpu", 1),
        ("local", "auto", 1, "quick", "cpu", 6), ("local", "auto", 2, "quick", "cpu", 3),
        ("local", "auto", 4, "quick", "cpu", 1), ("local", "auto", 8, "quick", "cpu", 1),
        ("local", "auto", 1, "smoke", "cpu", 6), ("local", 3, 8, "smoke", "cpu", 3),
        ("local", "3", 8, "quick", "cuda", 3), ("auto", "auto", 1, "quick", "cpu", 6),
        ("auto", 2, 1, "paper", "cpu", 2), ("auto", "2", 1, "smoke", "cpu", 2), ("auto", "auto", 1, "quick", "cuda", 4),
        ("local", "auto", 8, "quick", "cuda", 4), ("auto", "auto", 1, "smoke", "cuda", 1),
    ],
)
def test_how_many_work(monkeypatch, name, workers, threads, preset, device, count):
    monkeypatch.setattr(engine, "cores", lambda: 6)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    pool = pool_of(name, workers, threaded(threads, preset), torch.device(device))
    assert pool == (Local(count) if name == "local" or count > 1 else None)


@pytest.mark.parametrize(("group", "found"), [(False, "with engine 'inline'"), (True, "under torchrun")])
def test_workers_that_would_not_be_started_are_refused(monkeypatch, group, found):
    monkeypatch.setattr(engine, "grouped", lambda: group)
    with pytest.raises(ValueError, match=f"workers=8 are not started {found}; leave them out"):
        pool_of("inline", "8", threaded(1, "quick"), torch.device("cpu"))
    assert pool_of("inline", "1", threaded(1, "quick"), torch.device("cpu")) is None


@pytest.mark.parametrize("name", ["auto", "inline", "local"])
def test_an_address_is_for_dask(name):
    with pytest.raises(ValueError, match=r"workers=tcp://host:8786 is an address; choose engine 'dask' with it"):
        pool_of(name, "tcp://host:8786", threaded(1, "quick"), torch.device("cpu"))


def test_half_an_address_is_refused_with_the_whole_one():
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    with pytest.raises(ValueError, match=r"'host:8786' should be a number, or an address such as 'tcp://host:8786'"):
        pool_of("dask", "host:8786", threaded(1, "quick"), torch.device("cpu"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Idle(Small):
    cells_per_gpu = 8


@pytest.mark.parametrize(
    ("name", "workers", "gpus", "preset", "count"),
    [
        ("auto", "auto", 1, "quick", 8), ("local", "auto", 1, "smoke", 8), ("auto", "auto", 3, "paper", 24),
        ("auto", 16, 1, "quick", 16), ("auto", 1, 1, "quick", 1), ("auto", "auto", 1, "smoke", 1),
        ("inline", "auto", 1, "quick", 1),
    ],
)
def test_cells_that_leave_a_gpu_idle_share_it(monkeypatch, name, workers, gpus, preset, count):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(total_memory=141 * 10**9))
    monkeypatch.setattr("repro.run.device.cores", lambda: 64)
    cells = [dataclasses.replace(CELLS[0], recipe=Idle(), preset=preset)]
    pool = pool_of(name, workers, cells, torch.device("cuda"))
    assert pool == (Local(count) if name == "local" or count > 1 else None)


def test_how_many_share_a_gpu_is_no_part_of_a_recipe():
    assert (Recipe.cells_per_gpu, Idle().cells_per_gpu, SkeletonRecipe.cells_per_gpu) == (1, 8, 8)
    assert Idle().canonical() == Small().canonical()


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_single_gpu_trains_in_this_process_unless_a_worker_is_asked_for(monkeypatch, gpus):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert pool_of("auto", "auto", threaded(1, "quick"), torch.device("cuda")) is None
    assert pool_of("local", "auto", threaded(1, "quick"), torch.device("cuda")) == Local(1)


def test_dask_takes_an_address_a_number_or_its_own_configuration(monkeypatch):
    dask = pytest.importorskip("dask", reason="the extra `cluster` is not installed")
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

    def chosen(workers, device="cpu"):
        return pool_of("dask", workers, threaded(2, "quick"), torch.device(device))

    monkeypatch.setattr(engine, "cores", lambda: 6)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert chosen("tcp://host:8786") == Cluster(3, "tcp://host:8786", "cpu")
    assert chosen("2") == Cluster(2, None, "cpu") and chosen("auto") == Cluster(3, None, "cpu")
    assert chosen("auto", "cuda") == Cluster(4, None, "cuda")
    with dask.config.set({"scheduler-address": "tcp://other:1"}):
        assert chosen("auto") == Cluster(3, "tcp://other:1", "cpu") and chosen(2) == Cluster(2, None, "cpu")


def test_dask_is_asked_for_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"engine='dask' needs dask.distributed; install it with: pip install "):
        pool_of("dask", "auto", threaded(1, "quick"), torch.device("cpu"))


@pytest.mark.parametrize("name", ["inline", "local", "auto", "dask"])
@pytest.mark.parametrize("workers", ["0", 0, -1, "two", "", 1.5, True])
def test_impossible_numbers_of_workers_are_refused(monkeypatch, name, workers):
    monkeypatch.setattr(engine, "scheduler_address", lambda workers: None)
    with pytest.raises(ValueError, match=r"^workers=.* should be a whole number of at least 1$"):
        pool_of(name, workers, threaded(1, "quick"), torch.device("cpu"))


def test_an_unknown_engine_is_refused():
    message = r"^engine='locl' is not one of: auto, inline, local, dask; did you mean 'local'\?$"
    with pytest.raises(ValueError, match=message):
        pool_of("locl", "auto", threaded(1, "quick"), torch.device("cpu"))
