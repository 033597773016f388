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
        path = os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])
        started.append(subprocess.Popen(
            [sys.executable, "-c", OTHER, role, str(store.root)], env=os.environ | {"PYTHONPATH": path}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ))
        return started[-1]

    yield launch
    for process in started:
        process.kill()
        process.communicate()


def test_claim_is_exclusive_within_a_process_and_released_by_an_exception(store):
    with pytest.raises(KeyboardInterrupt), store.run(CELL).claim() as first, store.run(CELL).claim() as second:
        assert first and not second
        raise KeyboardInterrupt
    with store.run(CELL).claim() as third:
        assert third
    assert not (store.run(CELL).folder / "recipe.json").exists()  # nothing has been trained


def test_a_claim_drops_what_killed_processes_left_half_written_and_nothing_else(store):
    run = store.run(CELL)
    (run.folder / "part").mkdir(parents=True)
    (run.folder / ".ipynb_checkpoints").mkdir()
    for name in (".checkpoint.pt.0123456789abcdef", ".notes", "progress.jsonl"):
        (run.folder / name).touch()
        (run.folder / "part" / name).touch()
    with run.claim():
        assert {path.name for path in run.folder.rglob(".*")} == {".ipynb_checkpoints", ".notes"}
        assert len(list(run.folder.rglob("progress.jsonl"))) == 2


def test_a_file_system_without_locks_is_refused(store, monkeypatch):
    def missing(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", missing)
    run = store.run(CELL)
    with pytest.raises(OSError, match=r"to a folder on a file system that has locks.*lock'"), run.claim():
        raise AssertionError("claimed")
    assert not (run.folder / "owner.json").exists()


def test_claim_is_exclusive_between_processes_until_its_holder_is_killed_and_waiting_says_for_whom(
    store, start, capsys
):
    run, holder = store.run(CELL), start("hold")
    assert holder.stdout.readline().split() == ["True", CELL.key]  # the same key in another process
    with run.claim() as claimed:
        assert not claimed
    assert owner(run.folder).startswith(f"process {holder.pid} on ")  # the failed claim left the owner alone
    with store.run(dataclasses.replace(CELL, seed=1)).claim() as claimed:
        assert claimed  # another cell is free
    thread = threading.Thread(target=run.wait, daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    errors = capsys.readouterr().err
    assert errors.startswith(f"waiting for process {holder.pid} on ")
    assert errors.endswith(f"which trains CE, seed 0, in {run.folder}\n")
    os.kill(holder.pid, signal.SIGKILL)
    assert holder.wait() == -signal.SIGKILL
    thread.join(30)
    assert not thread.is_alive() and run.result is None
    with run.claim() as claimed:
        assert claimed and owner(run.folder).startswith(f"process {os.getpid()} on ")


def test_claims_of_contending_processes_never_overlap(start):
    processes = [start("contend") for _ in range(2)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    held = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert all(int(count) > 0 for count in held), held


def test_owner_in_words_when_unknown(store):
    run = store.run(CELL)
    assert owner(run.folder) == "another process"
    run.folder.mkdir(parents=True)
    (run.folder / "owner.json").write_text('{"process": 12')
    assert owner(run.folder) == "another process"
