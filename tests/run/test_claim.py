"""Claims of cells: that nobody else has one, what it does to a folder, and waiting for its end."""

import dataclasses
import errno
import os
import signal
import subprocess
import sys
import threading

import pytest
from nursery import HELPERS
from one_cell import CELL

from repro.run.store import owner

# Another process that asks for CELL: `hold` claims it and keeps it until its standard input ends,
# `contend` claims it again and again and proves each time that nobody else holds it.
OTHER = """
import os, sys, time
from pathlib import Path
from one_cell import CELL
from repro.run.store import Store

run = Store(Path(sys.argv[2])).run(CELL)
if sys.argv[1] == "hold":
    with run.claim() as claimed:
        print(claimed, run.cell.key, flush=True)
        sys.stdin.read()
else:
    sys.stdin.readline()
    held = 0
    end = time.monotonic() + 0.7
    while time.monotonic() < end:
        with run.claim() as claimed:
            if claimed:
                os.close(os.open(run.folder / "marker", os.O_CREAT | os.O_EXCL))
                held += 1
                time.sleep(0.002)
                os.unlink(run.folder / "marker")
        time.sleep(0.001)
    print(held, flush=True)
"""


@pytest.fixture
def start(store):
    """Starts another process in the role `hold` or `contend`; what is left of them is killed at the end."""
    started = []

    def launch(role: str) -> subprocess.Popen:
        command = [sys.executable, "-c", OTHER, role, str(store.root)]
        path = os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, text=True, **pipes)
        started.append(process)
        return process

    yield launch
    for process in started:
        process.kill()
        process.communicate()


def held_by(process: subprocess.Popen) -> str:
    """Wait until a `hold` process has the claim; the key of its cell."""
    claimed, key = process.stdout.readline().split()
    assert claimed == "True"
    return key


def test_key_is_the_same_in_another_process(start):
    assert held_by(start("hold")) == CELL.key
    assert len(CELL.key) == 16 and set(CELL.key) <= set("0123456789abcdef")


def test_claim_is_exclusive_within_a_process(store):
    with store.run(CELL).claim() as first, store.run(CELL).claim() as second:
        assert first and not second
    with store.run(CELL).claim() as third:
        assert third


def test_claim_is_released_by_an_exception(store):
    with pytest.raises(KeyboardInterrupt), store.run(CELL).claim():
        raise KeyboardInterrupt
    with store.run(CELL).claim() as claimed:
        assert claimed


def test_a_claim_drops_what_killed_processes_left_half_written(store):
    run = store.run(CELL)
    (run.folder / "part").mkdir(parents=True)
    for place in (run.folder, run.folder / "part"):
        (place / ".checkpoint.pt.0123456789abcdef").touch()
        (place / "progress.jsonl").touch()
    with run.claim():
        assert not list(run.folder.rglob(".*")) and len(list(run.folder.rglob("progress.jsonl"))) == 2


def test_a_claim_leaves_hidden_files_of_others_alone(store):
    run = store.run(CELL)
    (run.folder / ".ipynb_checkpoints").mkdir(parents=True)
    (run.folder / ".notes").touch()
    with run.claim() as claimed:
        assert claimed
    assert {path.name for path in run.folder.glob(".*")} == {".ipynb_checkpoints", ".notes"}


def test_a_file_system_without_locks_is_refused(store, monkeypatch):
    def missing(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", missing)
    run = store.run(CELL)
    with pytest.raises(OSError, match=r"to a folder on a file system that has locks.*lock'"), run.claim():
        raise AssertionError("claimed")
    assert not (run.folder / "owner.json").exists()


def test_claim_is_exclusive_between_processes(store, start):
    run, holder = store.run(CELL), start("hold")
    held_by(holder)
    with run.claim() as claimed:
        assert not claimed
    assert owner(run.folder).startswith(f"process {holder.pid} on ")  # the failed claim left the owner alone
    with store.run(dataclasses.replace(CELL, seed=1)).claim() as claimed:
        assert claimed  # another cell is free
    holder.communicate()  # ends its input, so it lets go
    with run.claim() as claimed:
        assert claimed
        assert owner(run.folder).startswith(f"process {os.getpid()} on ")


def test_claims_of_contending_processes_never_overlap(start):
    processes = [start("contend") for _ in range(2)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    held = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert all(int(count) > 0 for count in held), held


def test_lock_is_free_after_its_holder_is_killed(store, start):
    run, holder = store.run(CELL), start("hold")
    held_by(holder)
    os.kill(holder.pid, signal.SIGKILL)
    assert holder.wait() == -signal.SIGKILL
    with run.claim() as claimed:
        assert claimed


def test_owner_in_words_when_unknown(store):
    run = store.run(CELL)
    assert owner(run.folder) == "another process"
    run.folder.mkdir(parents=True)
    (run.folder / "owner.json").write_text('{"process": 12')
    assert owner(run.folder) == "another process"


def waiting_for(run) -> threading.Thread:
    thread = threading.Thread(target=run.wait, daemon=True)
    thread.start()
    return thread


def test_wait_says_for_whom_and_ends_when_the_holder_lets_go(store, start, capsys):
    run, holder = store.run(CELL), start("hold")
    held_by(holder)
    thread = waiting_for(run)
    thread.join(0.2)
    assert thread.is_alive()
    said = capsys.readouterr()
    assert said.err.startswith(f"waiting for process {holder.pid} on ")
    assert said.err.endswith(f"which trains CE, seed 0, in {run.folder}\n") and said.out == ""
    holder.communicate()  # which ends it
    thread.join(30)
    assert not thread.is_alive() and capsys.readouterr().err == ""


def test_wait_ends_when_the_holder_is_killed(store, start):
    run, holder = store.run(CELL), start("hold")
    held_by(holder)
    thread = waiting_for(run)
    thread.join(0.1)
    assert thread.is_alive()
    holder.kill()
    thread.join(30)
    assert not thread.is_alive() and run.result is None
    with run.claim() as claimed:
        assert claimed
