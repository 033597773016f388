"""Claims of runs: that nobody else has one, what it does to a folder, and waiting for its end."""

import dataclasses
import errno
import os

import pytest
from made_up_training import RUN

from repro.run.store import owner


def test_claim_is_exclusive_within_a_process_and_released_by_an_exception(store):
    with pytest.raises(KeyboardInterrupt), store.folder(RUN).claim() as first, store.folder(RUN).claim() as second:
        assert first and not second
        raise KeyboardInterrupt
    with store.folder(RUN).claim() as third, store.folder(dataclasses.replace(RUN, seed=1)).claim() as other:
        assert third and other
    assert not (store.folder(RUN).path / "recipe.json").exists()  # nothing has been trained


def test_a_claim_drops_what_killed_processes_left_half_written_and_nothing_else(store):
    folder = store.folder(RUN)
    (folder.path / "part").mkdir(parents=True)
    (folder.path / ".ipynb_checkpoints").mkdir()
    for name in (".checkpoint.pt.0123456789abcdef", ".notes", "progress.jsonl"):
        (folder.path / name).touch()
        (folder.path / "part" / name).touch()
    with folder.claim():
        assert {path.name for path in folder.path.rglob(".*")} == {".ipynb_checkpoints", ".notes"}
        assert len(list(folder.path.rglob("progress.jsonl"))) == 2


def test_a_file_system_without_locks_is_refused(store, monkeypatch):
    def missing(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", missing)
    folder = store.folder(RUN)
    with pytest.raises(OSError, match=r"to a folder on a file system that has locks.*lock'"), folder.claim():
        raise AssertionError("claimed")
    assert not (folder.path / "owner.json").exists()


def test_owner_in_words_when_unknown(store):
    folder = store.folder(RUN)
    assert owner(folder.path) == "another process"
    folder.path.mkdir(parents=True)
    for damaged in (b'{"process": 12', b"\xff\xfe", b'{"tries": 3}'):
        (folder.path / "owner.json").write_bytes(damaged)
        assert owner(folder.path) == "another process" and folder.tries("command") == 0
