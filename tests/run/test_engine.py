"""Runs of a table: who trains them, what is left of failures, and waiting for those that others hold."""

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from made_up_training import RUNS, Small, Trainer, run, value
from nursery import HELPERS, python

from repro.run import engine
from repro.run.engine import Pool, pool_of, train_runs, worked
from repro.run.fit import NonFiniteLoss
from repro.run.store import RunFolder, Store

CPU = torch.device("cpu")
EXPECTED = [value(each) for each in RUNS]
ELSEWHERE = {"linear": 1.0, "select": "last", "cost": {"seconds": 9.0}}


def diverge(folder):
    raise NonFiniteLoss(f"{folder.run.label} is nan at step 7")


def fail(folder):
    raise RuntimeError("a device that was lost")


def values(store, runs=RUNS):
    """The accuracies that are stored."""
    return [store.folder(each).result["linear"] for each in runs]


def test_what_is_missing_is_trained_in_the_order_asked_for_and_nothing_else(store, capsys):
    train_runs([*RUNS[:3], RUNS[0]], train := Trainer(), store)
    assert train.calls == [("CE", 0), ("AE", 0), ("CE", 1)]  # one that is asked for twice is trained once
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    capsys.readouterr()
    train_runs(RUNS[:3], train := Trainer(), store)
    assert train.calls == [] and capsys.readouterr().err == ""
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before
    train_runs(RUNS[::-1], train, store)
    assert train.calls == [("AE", 1), ("CD", 0)] and values(store) == EXPECTED
    assert all(store.folder(each).result["cost"] == {"seconds": 1.0, "commit": "abc"} for each in RUNS)


def test_a_diverging_run_does_not_stop_the_others_and_is_named_at_the_end(store):
    train = Trainer(AE=diverge)
    with pytest.raises(NonFiniteLoss) as raised:
        train_runs(RUNS, train, store)
    assert str(raised.value).splitlines() == [
        "2 of 5 runs failed, the others are done:", "  AE, seed 0: AE is nan at step 7",
        "  AE, seed 1: AE is nan at step 7", "once the reason is gone, the same command trains them again",
    ]
    assert len(train.calls) == len(RUNS)
    assert [store.folder(each).result is None for each in RUNS] == [each.label == "AE" for each in RUNS]
    train_runs(RUNS, train := Trainer(), store)  # once the cause is gone, only these are trained again
    assert train.calls == [("AE", 0), ("AE", 1)] and values(store) == EXPECTED


@pytest.mark.parametrize("pool", [Pool(), Pool(1)], ids=["here", "worker"])
def test_memory_that_is_not_there_is_said_in_a_sentence_not_in_a_traceback(store, started, capsys, pool):
    def train(folder, progress):
        torch.empty(2**55)
        yield

    with pytest.raises((MemoryError, ChildProcessError), match=r"CE, seed 0 asks for \d{18} bytes at once, more"):
        train_runs(RUNS[:1], train, store, pool=pool)
    assert "Traceback" not in capsys.readouterr().err


def test_another_error_stops_at_once(store):
    train = Trainer(AE=fail)
    with pytest.raises(RuntimeError, match="a device that was lost"):
        train_runs(RUNS, train, store)
    assert train.calls == [("CE", 0), ("AE", 0)] and values(store, RUNS[:1]) == EXPECTED[:1]


def test_a_run_completed_elsewhere_just_before_it_is_claimed_is_not_trained(store, monkeypatch):
    claim = RunFolder.claim
    monkeypatch.setattr(RunFolder, "claim", lambda folder, attempt: folder.finish(ELSEWHERE) or claim(folder, attempt))
    train_runs(RUNS[:1], train := Trainer(), store)
    assert values(store, RUNS[:1]) == [1.0] and train.calls == []


def test_weights_that_a_kill_right_behind_the_result_has_left_are_removed(store):
    train_runs(RUNS[:1], Trainer(), store)
    left = store.folder(RUNS[0]).path / "later" / "checkpoint.pt"
    left.parent.mkdir()
    left.touch()
    train_runs(RUNS[:1], train := Trainer(), store)
    assert not left.exists() and train.calls == []


def test_what_cannot_be_read_or_written_is_named_before_anything_is_trained(store, tmp_path):
    store.folder(RUNS[0]).finish(ELSEWHERE)
    path = store.folder(RUNS[0]).path / "result.json"
    path.write_text(path.read_text()[:20])
    (tmp_path / "file").touch()
    train = Trainer()
    with pytest.raises(ValueError, match=r"result\.json cannot be read .* delete recipe.json and result.json there"):
        train_runs(RUNS, train, store)
    with pytest.raises(OSError, match=r"cannot be written .* point REPRO_RUNS at another folder"):
        train_runs(RUNS, train, Store(tmp_path / "file"))
    assert train.calls == []


# runs that others hold


def test_a_run_held_elsewhere_is_waited_for_after_the_others_are_done(store, held):
    let_go = held(ELSEWHERE)
    train = Trainer(AE=lambda folder: folder.run.seed == 1 and let_go.set())  # the last of RUNS
    train_runs(RUNS, train, store)
    assert train.calls == [(each.label, each.seed) for each in RUNS[1:]]
    assert values(store) == [1.0, *EXPECTED[1:]]


@pytest.mark.parametrize("result", [ELSEWHERE, None], ids=["finished", "given up"])
def test_a_run_held_elsewhere_is_read_or_taken_over_and_waiting_says_for_whom(store, held, capsys, result):
    timer = threading.Timer(0.3, held(result).set)
    timer.start()
    train_runs(RUNS[:1], train := Trainer(), store)
    timer.join()
    assert values(store, RUNS[:1]) == ([1.0] if result else EXPECTED[:1]) and len(train.calls) == (result is None)
    line, = re.findall("waiting for.*", capsys.readouterr().err)  # where bars are drawn, behind their control codes
    assert line.startswith("waiting for process ")
    assert line.endswith(f"which trains CE, seed 0, in {store.folder(RUNS[0]).path}")


# pools


@pytest.fixture
def started(monkeypatch):
    """Threads stand for worker processes; how many were started each time."""
    counts = []

    @contextlib.contextmanager
    def threads(count, environment):
        counts.append(count)
        with ThreadPoolExecutor(1) as executor:
            yield executor

    monkeypatch.setattr(engine, "processes", threads)
    return counts


def test_a_pool_gets_what_is_missing_and_the_bar_counts_what_is_trained_of_it(store, capsys, monkeypatch, started):
    pool, train = Pool(1), Trainer()
    train_runs(RUNS[:2], Trainer(), store)
    folder = store.folder(RUNS[2]).path
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").write_text('{"step": 25, "of": 100}\n')
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    train_runs(RUNS, train, store, pool=pool)
    assert values(store) == EXPECTED and "| 0.25/3 [" in capsys.readouterr().err
    assert train.calls == [(each.label, each.seed) for each in RUNS[2:]] and started == [1]
    train_runs(RUNS, train, store, pool=pool)
    assert started == [1]


@pytest.mark.parametrize("pool", [Pool(), Pool(1)], ids=["here", "worker"])
def test_a_line_for_every_finished_run_says_what_came_of_it_and_the_time_left(
    store, capsys, monkeypatch, started, pool
):
    train_runs(RUNS[:1], Trainer(), store)
    capsys.readouterr()
    clock = itertools.chain([0, 90, 150], itertools.repeat(150))  # at the beginning, and where time left is told
    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=functools.partial(next, clock)))
    folder = store.folder(RUNS[4]).path
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").write_text('{"step": 50, "of": 100}\n')
    with pytest.raises(NonFiniteLoss):
        train_runs(RUNS, Trainer(CD=diverge), store, pool=pool)
    told = re.findall(r"(?:AE|CE), seed \d: linear .*", capsys.readouterr().err)
    expected = ["AE, seed 0: linear 85", "CE, seed 1: linear 88", "AE, seed 1: linear 86"]
    assert [line.partition(", about")[0] for line in told] == expected
    if pool == Pool():  # 4 runs and half of one trained before: 90 s for 1 when 2.5 are left, 150 s for 2, then none
        assert [line.partition(", about ")[2] for line in told] == ["03:45 left", "01:52 left", ""]


@pytest.mark.parametrize(("pool", "shares", "lanes"), [
    (Pool(2, 15), [15, 15], 8), (Pool(20, 15), [15] * 15, 1), (Pool(2, 4), [15, 15], 4),
    (Pool(0, 15, address="tcp://host:1"), [8, 7], 8), (Pool(0, 4, address="tcp://host:1"), [4, 4, 4, 3], 4),
], ids=str)
def test_every_process_has_a_share_of_a_column_and_no_more_lanes(store, monkeypatch, started, pool, shares, lanes):
    """All workers of this machine go through all runs; those of a cluster, of which there are two, have theirs."""
    dealt = []

    def counted(runs, train, store, most, attempt):
        dealt.append((len(runs), most))
        return worked(runs, train, store, most, attempt)

    client = SimpleNamespace(nthreads=lambda: [1, 2], get_executor=lambda **options: ThreadPoolExecutor(1))
    monkeypatch.setattr("distributed.Client", lambda address: contextlib.nullcontext(client))
    monkeypatch.setattr(engine, "worked", counted)
    column = [run("CE", seed) for seed in range(15)]
    train_runs(column, Trainer(), store, pool=pool)
    assert [size for size, _ in dealt] == shares and max(most for _, most in dealt) == lanes
    assert values(store, column) == [value(each) for each in column]


def test_an_error_of_a_worker_before_its_first_run_is_told_and_nothing_waits_for_ever(store, monkeypatch, started):
    def missing(*job):
        raise ModuleNotFoundError("No module named 'repro'")

    monkeypatch.setattr(engine, "worked", missing)
    with pytest.raises(ChildProcessError, match=r"no worker came to its first run; .*: ModuleNotFoundError: No"):
        train_runs(RUNS, Trainer(), store, pool=Pool(2))


def test_a_run_that_another_command_trains_is_waited_for_and_is_no_try_of_this_one(store, held, started):
    let_go = held(ELSEWHERE)
    threading.Timer(0.5, let_go.set).start()
    with pytest.raises(ChildProcessError, match=r"1 of 2 runs failed.*\n  AE, seed 0: .* \(tried twice\)\n"):
        train_runs(RUNS[:2], train := Trainer(AE=fail), store, pool=Pool(1))
    assert train.calls == [("AE", 0)] * 2 and values(store, RUNS[:1]) == [1.0]
    folder = store.folder(RUNS[1])
    for attempt in ("one", "two"):
        for expected in (True, False):
            with folder.claim(attempt) as claimed:
                assert claimed == expected and folder.claimed_in(attempt)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Idle(Small):
    lanes = 8


def asking(recipe=None, preset="quick"):
    return [dataclasses.replace(RUNS[0], recipe=recipe or Small(), preset=preset)]


SLOW = Small(threads=4)


@pytest.mark.parametrize(("name", "workers", "recipe", "preset", "gpus", "pool"), [
    ("inline", 1, Small(), "quick", 0, Pool()), ("local", "auto", SLOW, "quick", 0, Pool(1)),
    ("local", 3, SLOW, "smoke", 0, Pool(3)), ("local", "auto", Small(), "smoke", 0, Pool(6)),
    ("auto", "auto", Idle(), "quick", 0, Pool(6)), ("auto", "auto", Small(), "smoke", 0, Pool()),
    ("auto", "2", Small(), "smoke", 0, Pool(2)), ("local", "3", SLOW, "quick", 4, Pool(3, 1, True)),
    ("auto", "auto", Idle(), "paper", 3, Pool(3, 8, True)), ("auto", "auto", Idle(), "smoke", 3, Pool(0, 8, True)),
    ("auto", 1, Idle(), "quick", 3, Pool(0, 8, True)), ("inline", "auto", Idle(), "quick", 3, Pool(0, 8, True)),
    ("dask", "auto", Small(), "quick", 0, Pool(6)),
    ("dask", "tcp://host:8786", Small(), "quick", 0, Pool(address="tcp://host:8786")),
], ids=str)
def test_how_many_work(monkeypatch, name, workers, recipe, preset, gpus, pool):
    """On so many GPUs, or six cores."""
    if name == "dask":
        pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    computing_on(monkeypatch, gpus)
    assert pool_of(name, workers, asking(recipe, preset), torch.device("cuda" if gpus else "cpu")) == pool


def computing_on(monkeypatch, gpus):
    monkeypatch.setattr(engine, "cores", lambda: 6)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: SimpleNamespace(total_memory=141 * 10**9))


@pytest.mark.parametrize(("name", "workers", "recipe", "gpus", "message"), [
    *((name, "auto", Small(threads=100_000), 0,
       "threads=100000 should be at most 6, the cores this process may use") for name in ("inline", "local")),
    *((name, 3, Idle(), 2, "workers=3 exceeds the number of GPUs here, 2, of which each trains 8 runs ")
      for name in ("auto", "local")),
    ("inline", "8", Small(), 0, r"workers=8 are not started .* leave them out"),
    ("local", "tcp://host:8786", Small(), 0, "workers=tcp://host:8786 is an address; choose engine 'dask' with it"),
    ("locl", "auto", Small(), 0, r"^did you mean 'local'\? engine='locl' is not one of: auto, inline, local, dask$"),
    *((name, workers, Small(), 0, r"^workers=.* should be a whole number of at least 1$")
      for name in ("inline", "local", "auto", "dask") for workers in (0, "two", 1.5, True)),
], ids=str)
def test_what_is_no_engine_or_number_of_workers_is_refused(monkeypatch, name, workers, recipe, gpus, message):
    if name == "dask":
        pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    computing_on(monkeypatch, gpus)
    with pytest.raises(ValueError, match=message):
        pool_of(name, workers, asking(recipe), torch.device("cuda" if gpus else "cpu"))


def test_a_process_group_has_one_lane_and_starts_no_workers(monkeypatch):
    computing_on(monkeypatch, 2)
    monkeypatch.setattr(engine, "grouped", lambda: True)
    assert pool_of("auto", "auto", asking(Idle()), torch.device("cuda")) == Pool(0, 1, True)
    assert pool_of("inline", "1", asking(), CPU) == Pool()
    with pytest.raises(ValueError, match=r"workers=8 are not started .* leave them out"):
        pool_of("inline", "8", asking(), CPU)


def test_dask_is_asked_for_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"engine='dask' needs dask.distributed; install it with: pip install "):
        pool_of("dask", "auto", asking(), CPU)


def test_a_scheduler_that_does_not_answer_is_named_with_what_to_do(store):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}), pytest.raises(
        ConnectionError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9 .*; start one there with `dask scheduler`"
    ):
        train_runs(RUNS, Trainer(), store, pool=Pool(address="tcp://127.0.0.1:9"))


ERRORS = """
import dataclasses, errno, json, os, signal
from pathlib import Path

from made_up_training import RUN

import torch

from repro.run.engine import Pool, train_runs
from repro.run.fit import NonFiniteLoss
from repro.run.store import Store


def train(folder, progress):
    print("words " * 50_000)  # more than a pipe holds
    with open(Path(os.environ["REPRO_RUNS"]) / "tried.txt", "a") as file:
        file.write(f"{folder.run.seed} {os.getpid()} {os.environ['CUDA_VISIBLE_DEVICES']}\\n")
    if folder.run.seed == 1:
        raise MemoryError("no room")
    if folder.run.seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if folder.run.seed == 3:
        raise NonFiniteLoss("CE is nan at step 7")
    if folder.run.seed == 4:
        raise OSError(errno.ENOSPC, "No space left on device (make room there)", "runs/checkpoint.pt")
    yield
    return {"linear": 1.0, "cost": {}}


def main():
    torch.cuda.device_count = lambda: 2
    runs = [dataclasses.replace(RUN, seed=seed) for seed in range(5)]
    store = Store(os.environ["REPRO_RUNS"])
    try:
        train_runs(runs, train, store, pool=Pool(2, 1, True))
    except ChildProcessError as error:
        print(json.dumps([str(error).splitlines(), [store.folder(run).result is not None for run in runs]]))
"""


def test_an_error_is_tried_once_more_in_a_new_process_and_every_process_has_a_gpu_of_its_own(tmp_path):
    """But a divergence and a full disk, which would end alike."""
    (tmp_path / "script.py").write_text(ERRORS)
    path = os.pathsep.join(filter(None, [str(tmp_path), str(HELPERS), os.environ.get("PYTHONPATH")]))
    own = os.environ | {"REPRO_RUNS": str(tmp_path), "CUDA_VISIBLE_DEVICES": "4,6", "PYTHONPATH": path}
    done = python("-c", "import nursery, script; nursery.fork_workers(); script.main()", cwd=tmp_path, env=own)
    (summary, *failed, _), finished = json.loads(done.stdout.splitlines()[-1])
    full = "OSError: [Errno 28] No space left on device (make room there): 'runs/checkpoint.pt'"
    gone = "its process was lost (perhaps for want of memory, unless it says why above)"
    assert summary == "4 of 5 runs failed, the others are done:" and finished == [True, False, False, False, False]
    assert sorted(failed) == ["  CE, seed 1: MemoryError: no room (tried twice)",
                              f"  CE, seed 2: {gone} (tried twice)", "  CE, seed 3: CE is nan at step 7",
                              f"  CE, seed 4: {full}"]
    for seed, lost in ((1, "MemoryError: no room"), (2, gone)):
        assert f"CE, seed {seed}: {lost}; trying once more\n" in done.stderr
    assert "Traceback" in done.stderr and "Fatal Python error" not in done.stderr
    tried = [line.split() for line in (tmp_path / "tried.txt").read_text().splitlines()]
    assert sorted(seed for seed, _, _ in tried) == ["0", "1", "1", "2", "2", "3", "4"]
    for lost in "12":
        assert len({process for seed, process, _ in tried if seed == lost}) == 2
    assert {gpu for _, _, gpu in tried} == {"4", "6"}


def test_a_script_that_its_workers_would_run_again_is_told_so_in_a_sentence(tmp_path):
    (tmp_path / "script.py").write_text(
        "from made_up_training import RUNS, Trainer\n"
        "from repro.run.engine import Pool, train_runs\nfrom repro.run.store import Store\n"
        f"train_runs(RUNS, Trainer(), Store({str(tmp_path)!r}), pool=Pool(1))\n")
    path = os.pathsep.join([str(HELPERS), str(Path(engine.__file__).parents[2])])
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1
    assert done.stderr.count("is imported by each of them: put what it does below") == 1
