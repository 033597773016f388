"""Claims of cells: that nobody else has one, what it does to a folder, and waiting for its end."""

import dataclasses
import errno
import os
import subprocess
import sys

import pytest
from made_up_training import CELL
from nursery import HELPERS

from repro.run.store import owner

# Another process, which claims CELL again and again and proves each time that nobody else holds it.
CONTENDS = """
import os, sys, time
from pathlib import Path
from made_up_training import CELL
from repro.run.store import Store

run = Store(Path(sys.argv[1])).run(CELL)
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


def test_claim_is_exclusive_within_a_process_and_released_by_an_exception(store):
    with pytest.raises(KeyboardInterrupt), store.run(CELL).claim() as first, store.run(CELL).claim() as second:
        assert first and not second
        raise KeyboardInterrupt
    with store.run(CELL).claim() as third, store.run(dataclasses.replace(CELL, seed=1)).claim() as other:
        assert third and other
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


def test_claims_of_contending_processes_never_overlap(store):
    path = os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])
    processes = [
        subprocess.Popen([sys.executable, "-c", CONTENDS, str(store.root)], env=os.environ | {"PYTHONPATH": path},
                         text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
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
