"""Preparations of NTU RGB+D taken up again: complete, killed, damaged, on a full disk, by several processes at once."""

import contextlib
import errno
import io
import itertools
import os
import signal
import threading
import time
from pathlib import Path

import preparing
import pytest
from filelock import FileLock
from ntu_distribution import FILES, WHOLE, counting, left_behind, prepared_folder
from ntu_files import FIRST, TWO, body, recording

from repro.data import manifest, npz
from repro.skeleton import data, ntu_prepare


def test_what_is_prepared_is_not_read_again_unless_it_is_damaged(distribution, tmp_path, monkeypatch):
    root = distribution()
    expected = ntu_prepare.prepare(root).digest
    parsed = counting(monkeypatch)
    assert ntu_prepare.prepare(root).digest == expected and not parsed
    frames = prepared_folder(tmp_path) / "authors.npy"
    whole = frames.read_bytes()
    for damaged in (whole[:-8], whole[:500] + bytes([whole[500] ^ 1]) + whole[501:], b""):
        frames.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"authors\.npy or its index is damaged .* `repro data prepare ntu` again"):
            data.load("ntu", root)
        parsed.clear()
        assert ntu_prepare.prepare(root).digest == expected and len(parsed) == 9


def test_another_distribution_is_prepared_apart(distribution, tmp_path):
    root = distribution()
    ntu_prepare.prepare(root)
    distribution({"S001C001P001R001A001": recording((FIRST, 0, body(6)))})
    with pytest.raises(FileNotFoundError, match="not prepared"):
        data.load("ntu", root)
    ntu_prepare.prepare(root)
    assert len(list((tmp_path / "runs" / "prepared").iterdir())) == 2 and data.load("ntu", root).lengths[0] == 6


SCRIPT = """
import os, shutil, sys, time
from pathlib import Path
from preparing import kill, killed_before
from repro.data import manifest
from repro.skeleton import ntu, ntu_prepare

folder, workers, last = sys.argv[1:]

def killed(path, member, read=ntu.read):
    if member.name == last:
        kill()
    return read(path, member)

def slowly(path, member, read=ntu.read):
    time.sleep(0.25)
    with open(Path(folder) / "read.txt", "a") as file:
        print(member.name, file=file)
    return read(path, member)

if __name__ != "__main__":  # in a worker
    ntu.read = killed
else:
    manifest.project_root = lambda: Path(folder)
    ntu_prepare.CHUNK = 2
    if workers == "1" and not last:
        ntu.read = slowly
    os.replace = killed_before(last, os.replace, 1)
    shutil.rmtree = killed_before(last, shutil.rmtree, 0)
    print(ntu_prepare.prepare(Path(folder) / "data", subset=True, workers=int(workers)).digest)
"""


def start(tmp_path, workers, last=""):
    """A process that prepares; killed before it moves or removes the file `last`, or a worker before it reads it."""
    return preparing.start(tmp_path, SCRIPT, workers, last)


@pytest.fixture
def undisturbed(distribution, tmp_path, monkeypatch):
    """What a preparation of FILES that nothing disturbs gives."""
    with monkeypatch.context() as patched:
        patched.setenv("REPRO_RUNS", str(tmp_path / "undisturbed"))
        return ntu_prepare.prepare(distribution())


def assert_goes_on(root, tmp_path, monkeypatch, undisturbed, unread):
    """Started again, a preparation reads each of the `unread` files once and gives what it would have given."""
    parsed = counting(monkeypatch)
    found = ntu_prepare.prepare(root)
    assert len(parsed) == len(set(parsed)) == unread
    assert (found.digest, found.source, found.names.tolist()) == (
        undisturbed.digest, undisturbed.source, undisturbed.names.tolist()
    )
    assert left_behind(tmp_path) == WHOLE


@pytest.mark.parametrize(("last", "unread"), [("00002.npz", 5), ("authors.npy", 0), ("authors.npz", 0),
                                              ("authors.shards", 0)])
def test_a_killed_preparation_goes_on_where_it_was(distribution, tmp_path, monkeypatch, undisturbed, last, unread):
    root = distribution()
    process = start(tmp_path, workers=1, last=last)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL and left_behind(tmp_path) != WHOLE
    assert_goes_on(root, tmp_path, monkeypatch, undisturbed, unread)


class Full(io.FileIO):
    """A file on a disk with room for 1,000 bytes of it."""

    def write(self, contents):
        if self.tell() + memoryview(contents).nbytes > 1000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(contents)


@pytest.mark.parametrize(("name", "unread"), [("00002.npz", 5), ("authors.npy", 0), ("authors.npz", 0)])
def test_a_full_disk_is_an_error_that_names_the_file(distribution, tmp_path, monkeypatch, undisturbed, name, unread):
    root = distribution()
    with monkeypatch.context() as patched:
        for module in (ntu_prepare, npz):
            patched.setattr(module, "open", lambda path, mode: (Full if name in Path(path).name else open)(path, mode),
                            raising=False)
        with pytest.raises(OSError, match=f"No space left on device.*{name}'") as raised:
            ntu_prepare.prepare(root)
    assert raised.value.errno == errno.ENOSPC
    assert not list((tmp_path / "runs").rglob(f".{name}*"))
    assert_goes_on(root, tmp_path, monkeypatch, undisturbed, unread)


def interrupt(root, monkeypatch, shards):
    """Prepare until a number of shards is written; returns them."""
    def interrupted(*job, make=ntu_prepare._make_shard):
        if job[-1].name == f"{shards:05d}.npz":
            raise KeyboardInterrupt
        return make(*job)

    with monkeypatch.context() as patched:
        patched.setattr(ntu_prepare, "_make_shard", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ntu_prepare.prepare(root)
    return sorted(manifest.runs_root().rglob("0*.npz"))


@pytest.mark.parametrize("damage", [
    lambda shard, other: shard[: len(shard) // 2], lambda shard, other: b"", lambda shard, other: b"x" * len(shard),
    lambda shard, other: shard[: len(shard) // 2] + bytes([shard[len(shard) // 2] ^ 1]) + shard[len(shard) // 2 + 1 :],
    lambda shard, other: other,
], ids=["cut", "empty", "overwritten", "bit", "of other recordings"])
def test_a_damaged_shard_is_made_again(distribution, tmp_path, monkeypatch, undisturbed, damage):
    root = distribution()
    other, shard, _ = interrupt(root, monkeypatch, shards=3)
    shard.write_bytes(damage(shard.read_bytes(), other.read_bytes()))
    assert_goes_on(root, tmp_path, monkeypatch, undisturbed, unread=9 - 4)


def test_shards_of_another_size_are_made_again(distribution, tmp_path, monkeypatch, undisturbed):
    root = distribution()
    interrupt(root, monkeypatch, shards=3)
    monkeypatch.setattr(ntu_prepare, "CHUNK", 3)
    assert_goes_on(root, tmp_path, monkeypatch, undisturbed, unread=9)


@pytest.mark.parametrize("before", [lambda root, monkeypatch: interrupt(root, monkeypatch, 2),
                                    lambda root, monkeypatch: ntu_prepare.prepare(root)], ids=["killed", "complete"])
def test_another_list_of_unusable_recordings_is_another_set(distribution, tmp_path, monkeypatch, before):
    root = distribution()
    before(root, monkeypatch)
    listed = tmp_path / "data_manifests" / "ntu_missing.txt"
    listed.write_text(f"{listed.read_text()}S001C001P001R001A001\n")
    with pytest.raises(FileNotFoundError, match="not prepared"):
        data.load("ntu", root, subset=True)
    found = ntu_prepare.prepare(root, subset=True)
    assert found.names.tolist() == sorted(set(FILES) - {"S001C001P001R001A001", "S001C002P005R002A008"})
    assert len(found.frames) == found.lengths.sum()


def test_a_killed_worker_is_an_error_that_says_what_to_do(distribution, tmp_path, monkeypatch, undisturbed):
    root = distribution()
    process = start(tmp_path, workers=2, last="S002C001P003R001A002")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "ChildProcessError: one of the processes that read was killed" in errors
    assert "started again it goes on where it was, and fewer --workers need less memory" in errors
    found = ntu_prepare.prepare(root)
    assert (found.digest, left_behind(tmp_path)) == (undisturbed.digest, WHOLE)


def test_ten_at_once_read_once(distribution, tmp_path):
    distribution()
    processes = [start(tmp_path, workers=1) for _ in range(10)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    assert len({said for said, _ in outputs}) == 1
    assert sorted((tmp_path / "read.txt").read_text().split()) == sorted(set(FILES) - {"S001C002P005R002A008"})


def test_who_comes_second_says_that_it_waits(distribution, tmp_path, capsys):
    root = distribution()
    ntu_prepare.prepare(root)
    lock, found = FileLock(prepared_folder(tmp_path) / "authors.lock"), []
    with lock:
        thread = threading.Thread(target=lambda: found.append(ntu_prepare.prepare(root)))
        thread.start()
        deadline = time.monotonic() + 30
        said = ""
        while "waiting for the process that prepares" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
        assert not found and str(prepared_folder(tmp_path) / "authors") in said
    thread.join()
    assert len(found[0].names) == 9


def children(parent):
    """Ids of the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rsplit(") ", 1)[1].split()[1]) == parent:
                found.append(path.parent)
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="asks Linux for the children of a process")
def test_workers_end_with_the_process_that_started_them(distribution, tmp_path):
    distribution(FILES | {f"S003C00{camera}P00{subject}R001A0{action}": TWO for camera, subject, action in
                          itertools.product((1, 2, 3), (1, 3), range(10, 60))})
    process = start(tmp_path, workers=2)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "runs").rglob("*.shards/0*.npz")) and time.monotonic() < deadline:
        time.sleep(0.01)
    found = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    while any(path.exists() for path in found) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found) >= 2 and not any(path.exists() for path in found)
    assert len(list((tmp_path / "runs").rglob("*.shards/0*.npz"))) < 154
