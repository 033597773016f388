"""Claims of cells: that nobody else has one, what it does to a folder, and waiting for its end."""

import dataclasses
import errno
import os

import pytest
from made_up_training import CELL

from repro.run.store import owner


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


def test_owner_in_words_when_unknown(store):
    run = store.run(CELL)
    assert owner(run.folder) == "another process"
    run.folder.mkdir(parents=True)
    for damaged in (b'{"process": 12', b"\xff\xfe", b'{"tries": 3}'):
        (run.folder / "owner.json").write_bytes(damaged)
        assert owner(run.folder) == "another process" and run.tries("command") == 0
