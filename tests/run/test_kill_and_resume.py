"""Real processes, killed: what they leave, who takes over, and that the result is the undisturbed one, bit by bit."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from nursery import Nursery, until
from states import differences, outcome

# Brings runs to their results as a table would, with a checkpoint after every report, on small data. All
# four terms, dictionaries that wrap around, augmentation; the second cell also takes the less common ways. Each process
# of the nursery trains runs by seed with a number of workers and writes its table as JSON, after what it says. Instead
# of the number there may be the address of a dask scheduler, which another process is ("scheduler"), and others its
# workers ("worker", its address); they write down their own. A file "hold" there holds runs at a checkpoint.
SMALL_TABLE = """
import dataclasses, functools, json, os, time
from pathlib import Path

import nursery
import torch
from made_up_skeletons import made_up, tiny
from made_up_study import run_of

import repro.run.fit, repro.run.training
from repro.run.engine import Pool, train_runs
from repro.run.fit import fit
from repro.run.store import Store
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import SKELETONS

SMALL = {"epochs": int(os.environ["EPOCHS"]), "probe_epochs": 3, "probe_batch": 16, "threads": 1}
OTHER = {"select": "best_on_test", "select_every": 2, "head": "mlp", "ema_head_twice": True, "precision": "bfloat16"}
RECIPES = [tiny("AE+CE+AD+CD", **SMALL, **changes) for changes in ({}, OTHER)]
DATA = made_up()


def remember(event):
    with open(Path(os.environ["REPRO_RUNS"]) / "events.txt", "a") as file:
        file.write(f"{os.getpid()} {event}\\n")


def load_and_remember(pretrainer, state, load=Pretrainer.load_weights):  # of what goes on, or is only measured
    load(pretrainer, state)
    if "remembered" not in vars(pretrainer):
        pretrainer.remembered = True
        remember("resumes")


def save_and_wait(folder, state, save=repro.run.fit.save_checkpoint):
    save(folder, state)
    while (Path(os.environ["REPRO_RUNS"]) / "hold").exists():
        time.sleep(0.001)


def train_and_remember(folder, progress):
    remember(f"trains {folder.run.seed}")
    return repro.run.training.train(folder, progress, study=STUDY, device=torch.device("cpu"))


STUDY = dataclasses.replace(SKELETONS, load=lambda recipe: DATA)
repro.run.fit.save_checkpoint = save_and_wait
repro.run.training.fit = functools.partial(fit, checkpoint_seconds=0)
Pretrainer.load_weights = load_and_remember


def serve(root, what, address=""):
    import asyncio
    from distributed import Scheduler, Worker

    async def served():
        options = {"host": "127.0.0.1", "dashboard": False}
        if what == "worker":
            options |= {"scheduler_ip": address, "nthreads": 1, "local_directory": str(root)}
        async with {"scheduler": Scheduler, "worker": Worker}[what](**options) as server:
            (root / f"{what}-{os.getpid()}").write_text(server.address)
            await server.finished()

    asyncio.run(served())


def work(root, what, rest="1"):
    nursery.fork_workers()
    if what in ("scheduler", "worker"):
        return serve(root, what, rest)
    runs = [dataclasses.replace(run_of(STUDY, RECIPES[seed], seed, "smoke"), changes={"select": RECIPES[seed].select})
             for seed in map(int, what)]
    store = Store(root)
    pool = Pool(address=rest) if "://" in rest else Pool(int(rest) if int(rest) > 1 else 0)
    train_runs(runs, train_and_remember, store, pool=pool)
    print(json.dumps({run.seed: store.folder(run).result["linear"] for run in runs}))


def warm_up():
    import distributed
"""
EPOCHS = 6  # of 4 steps; each ends with a report, a line of progress and a checkpoint


class Small(Nursery):
    """Trains the small table."""

    def serve(self, root: Path, what: str, address: str = "") -> tuple[int, str]:
        """The id and the address of a new scheduler or worker of dask, once it is there."""
        pid = self.start(root, what, address)
        path = root / f"{what}-{pid}"
        until(lambda: path.exists() and path.read_text())
        return pid, path.read_text()

    def end(self, root: Path, pid: int) -> tuple[list[str], dict]:
        """Wait for a process that ends by itself: for whom it waited, and its table, all that it prints."""
        assert self.status(pid) == 0, (root / f"{pid}.err").read_text()
        return waited(root, pid), json.loads((root / f"{pid}.out").read_text())


def waited(root: Path, pid: int) -> list[str]:
    """For whom a process has said that it waits."""
    errors = root / f"{pid}.err"
    return re.findall("(waiting for (?:another )?process.*)\n", errors.read_text()) if errors.exists() else []


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nursery")
    (folder / "small_table.py").write_text(SMALL_TABLE)
    nursery = Small("small_table", folder, EPOCHS=str(EPOCHS))
    yield nursery
    nursery.close()


def is_alive(pid: int) -> bool:
    """Whether a thread of a process runs. The first may be dead while others still hold the files and their locks."""
    try:
        threads = [path.read_text().rpartition(")")[2] for path in Path("/proc").glob(f"{pid}/task/*/stat")]
    except (FileNotFoundError, ProcessLookupError):  # one ended while we looked
        return True
    return any(thread.split()[0] not in "ZX" for thread in threads)


def events(root: Path, event: str) -> list[int]:
    """The processes to which `event` happened, in order."""
    path = root / "events.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [int(pid) for pid, what, *_ in map(str.split, lines) if what == event]


def half_done(root: Path) -> int:
    """Runs that have a checkpoint and no result yet."""
    begun = {path.parent for path in root.glob("runs/*/checkpoint*.pt")}
    return sum(not (folder / "result.json").exists() for folder in begun)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, nursery) -> tuple[dict, dict]:
    """The runs and the table of a process that nothing disturbs."""
    root = tmp_path_factory.mktemp("undisturbed")
    said, table = nursery.end(root, nursery.start(root, "01"))
    assert said == [] and table["0"] != table["1"]
    return outcome(root / "runs"), table


def test_four_processes_that_ask_at_once_train_every_run_once(tmp_path, nursery, undisturbed):
    (tmp_path / "hold").touch()
    asking = [nursery.start(tmp_path, "01") for _ in range(4)]
    until(lambda: sum(map(bool, (waited(tmp_path, pid) for pid in asking))) == 2, seconds=300)
    (tmp_path / "hold").unlink()
    ended = {pid: nursery.end(tmp_path, pid) for pid in asking}
    assert [table for _, table in ended.values()] == [undisturbed[1]] * 4
    assert differences(outcome(tmp_path / "runs"), undisturbed[0]) == []
    assert len(set(events(tmp_path, "trains"))) == len(events(tmp_path, "trains")) == 2
    assert events(tmp_path, "resumes") == []
    said = [line for lines, _ in ended.values() for line in lines]
    assert all(", select=last, seed 0, in " in line or ", select=best_on_test, " in line for line in said)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_process_that_started_them_and_others_go_on(tmp_path, nursery, undisturbed, how):
    (tmp_path / "hold").touch()
    first = nursery.start(tmp_path, "01", 2)
    until(lambda: half_done(tmp_path) == 2)
    workers = events(tmp_path, "trains")
    assert len({first, *workers}) == 3
    began = time.monotonic()
    os.kill(first, how)
    ended = nursery.status(first)
    if how == signal.SIGINT:  # here no command catches it
        errors = (tmp_path / f"{first}.err").read_text()
        assert errors.count("Traceback") == 1 and "\nKeyboardInterrupt\n" in errors
        assert time.monotonic() - began < 2 and not any(map(is_alive, workers))
    else:
        assert ended == -how
        until(lambda: not any(map(is_alive, workers)))
    assert half_done(tmp_path) == 2
    (tmp_path / "hold").unlink()
    said, table = nursery.end(tmp_path, nursery.start(tmp_path, "01"))
    assert said == [] and table == undisturbed[1]
    assert differences(outcome(tmp_path / "runs"), undisturbed[0]) == []
    assert len(events(tmp_path, "resumes")) == 2 and len(events(tmp_path, "trains")) == 4


def test_another_dask_worker_resumes_what_a_killed_one_has_begun(tmp_path, nursery, undisturbed):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    (tmp_path / "hold").touch()
    scheduler, address = nursery.serve(tmp_path, "scheduler")
    workers = [nursery.serve(tmp_path, "worker", address)[0] for _ in range(3)]
    command = nursery.start(tmp_path, "01", address)
    until(lambda: half_done(tmp_path) == 2)
    lost, other = events(tmp_path, "trains")
    assert {lost, other} < set(workers)
    nursery.kill(lost)
    (tmp_path / "hold").unlink()
    said, table = nursery.end(tmp_path, command)
    assert said == [] and table == undisturbed[1]
    assert differences(outcome(tmp_path / "runs"), undisturbed[0]) == []
    (resumed,) = events(tmp_path, "resumes")
    assert resumed in set(workers) - {lost} and events(tmp_path, "trains") == [lost, other, resumed]
    for pid in (*(set(workers) - {lost}), scheduler):
        nursery.kill(pid)


def test_a_lost_dask_scheduler_is_named(tmp_path, nursery):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    (tmp_path / "hold").touch()
    scheduler, address = nursery.serve(tmp_path, "scheduler")
    worker, _ = nursery.serve(tmp_path, "worker", address)
    command = nursery.start(tmp_path, "0", address)
    until(lambda: events(tmp_path, "trains"))
    nursery.kill(scheduler)
    assert nursery.status(command) == 1
    errors = (tmp_path / f"{command}.err").read_text()
    assert errors.splitlines()[-1] == (f"ConnectionError: the scheduler at {address} is lost; start it again, then "
                                       "give the same command again, and the table goes on")
    os.kill(worker, signal.SIGKILL)
    nursery.status(worker)
