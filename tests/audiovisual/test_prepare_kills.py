"""Preparing that is killed, damaged, or without room on the disk: it goes on where it was."""

import errno
import io
import os
import signal
from pathlib import Path

import preparing
import pytest
from made_clips import silent_avi
from ucf101_files import WHOLE, assert_same, counting, folder, left_behind, loaded, ready

from repro.audiovisual import arrays, index

SCRIPT = """
import os, shutil, sys, time
from pathlib import Path
from preparing import kill, killed_before
from repro.data import manifest
from repro.audiovisual import arrays, index, prepare

folder, workers, last = sys.argv[1:]

def slowly(base, item, about, decode=arrays._clip):
    time.sleep(0.1)
    with open(Path(folder) / "read.txt", "a") as file:
        print(item.name, file=file)
    return decode(base, item, about)

def half(source, target, size):
    target.write(source.read()[:1000])
    target.flush()
    kill()

def described(items, needs, describe=index.describe_all):
    if items[0].name == last:
        kill()
    return describe(items, needs)

if __name__ != "__main__":  # in a worker
    arrays._clip = kill
else:
    manifest.project_root = lambda: Path(folder)
    arrays.CHUNK = index.CHUNK = 2
    index.describe_all = described
    if not last:
        arrays._clip = slowly
    if last == "append":
        arrays.shutil.copyfileobj = half
    os.replace = killed_before(last, os.replace, 1)
    shutil.rmtree = killed_before(last, shutil.rmtree, 0)
    print(prepare.prepare("ucf101", Path(folder) / "data", size=24, workers=int(workers)).digest)
"""


def start(tmp_path, workers=1, last=""):
    """A process that prepares, and is killed at `last`."""
    return preparing.start(tmp_path, SCRIPT, workers, last)


@pytest.fixture
def undisturbed(distribution, tmp_path, monkeypatch):
    """What a preparation that nothing disturbs gives."""
    with monkeypatch.context() as patched:
        patched.setenv("REPRO_RUNS", str(tmp_path / "undisturbed"))
        return ready(distribution())


def assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded):
    decoded = counting(monkeypatch)
    assert_same(ready(root), undisturbed)
    assert decoded == undecoded and left_behind(tmp_path) == WHOLE


@pytest.mark.parametrize(("last", "undecoded"), [
    ("v_c", ["v_a", "v_b", "v_c", "v_d", "v_e"]), ("000001.json", ["v_c", "v_d", "v_e"]),
    ("append", ["v_c", "v_d", "v_e"]), ("24.jsonl", ["v_a", "v_b", "v_c", "v_d", "v_e"]), ("24.shards", []),
])
def test_a_killed_preparation_goes_on_where_it_was(distribution, tmp_path, monkeypatch, undisturbed, last, undecoded):
    root = distribution()
    process = start(tmp_path, last=last)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL and left_behind(tmp_path) != WHOLE
    if last == "v_c":
        described = []
        original = index.describe_all
        monkeypatch.setattr(index, "describe_all", lambda items, needs: described.extend(
            item.name for item in items) or original(items, needs))
        assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded)
        assert described == ["v_c", "v_d", "v_e"]
    else:
        assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded)


def test_a_killed_worker_is_an_error_that_says_what_to_do(distribution, tmp_path, undisturbed):
    root = distribution()
    process = start(tmp_path, workers=2, last="nothing")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1 and "ChildProcessError: one of the processes that read was killed" in errors
    assert_same(ready(root), undisturbed)


def test_ten_at_once_decode_once(distribution, tmp_path):
    distribution()
    processes = [start(tmp_path) for _ in range(10)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    assert len({said for said, _ in outputs}) == 1
    assert (tmp_path / "read.txt").read_text().split() == ["v_a", "v_b", "v_c", "v_d", "v_e"]


def interrupted(root, monkeypatch, before):
    """Prepare until a shard is about to be made."""
    def make(base, clips, shard, original=arrays.make_shard):
        if shard.name == before:
            raise KeyboardInterrupt
        return original(base, clips, shard)

    with monkeypatch.context() as patched:
        patched.setattr(arrays, "make_shard", make)
        with pytest.raises(KeyboardInterrupt):
            ready(root)


@pytest.mark.parametrize(("file", "damage", "undecoded"), [
    ("24.frames", lambda contents: contents[:-1], "v_c v_d v_e"),
    ("24.frames", lambda contents: b"", "v_a v_b v_c v_d v_e"),
    ("24.frames", lambda contents: contents + b"more", "v_e"),
    ("24.jsonl", lambda contents: contents[:-9], "v_c v_d v_e"),
    ("24.jsonl", lambda contents: contents.replace(b"v_a", b"v_x"), "v_a v_b v_c v_d v_e"),
    ("24.jsonl", lambda contents: b"\0" * 50, "v_a v_b v_c v_d v_e"),
    ("index.jsonl", lambda contents: b"5\n{", "v_e"),
])
def test_a_damaged_half_goes_on_where_it_is_whole(
    distribution, tmp_path, monkeypatch, undisturbed, file, damage, undecoded
):
    root = distribution()
    interrupted(root, monkeypatch, before="000002")
    path = folder(tmp_path) / file
    path.write_bytes(damage(path.read_bytes()))
    assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded.split())


def test_damage_to_what_is_complete_is_named_and_mended(distribution, tmp_path, monkeypatch, undisturbed):
    root = distribution()
    ready(root)
    for file, damage, undecoded in (
        ("24.frames", lambda contents: contents[:-5], ["v_e"]),
        ("24.jsonl", lambda contents: contents.replace(b'"frames": 18', b'"frames": 19'), undisturbed.names.tolist()),
        ("24.jsonl", lambda contents: contents[:-20], []),
        ("24.mel", lambda contents: contents + b"x", []),
    ):
        path = folder(tmp_path) / file
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises((ValueError, FileNotFoundError), match=file.replace(".", r"\.")):
            loaded(root)
        with monkeypatch.context() as patched:
            assert_goes_on(root, tmp_path, patched, undisturbed, undecoded)


def test_a_file_that_changes_is_decoded_again_with_what_follows(distribution, monkeypatch):
    root = distribution()
    ready(root)
    distribution({"Any/v_d.avi": silent_avi(130, 50)})
    with pytest.raises(FileNotFoundError, match="files that have changed since"):
        loaded(root)
    decoded = counting(monkeypatch)
    made = ready(root)
    assert decoded == ["v_c", "v_d", "v_e"] and made.first_frame[4] - made.first_frame[3] == 20


class Full(io.FileIO):
    """A file on a disk with room for 1,000 bytes of it."""

    def write(self, contents):
        if self.tell() + memoryview(contents).nbytes > 1000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(contents)


@pytest.mark.parametrize(("name", "undecoded"), [
    ("000001.frames", ["v_c", "v_d", "v_e"]), ("24.frames", ["v_c", "v_d", "v_e"]),
])
def test_a_full_disk_is_an_error_that_names_the_file(distribution, tmp_path, monkeypatch, undisturbed, name, undecoded):
    root = distribution()

    def opened(path, mode, **options):
        return (Full if Path(path).name == name else open)(path, mode, **options)

    with monkeypatch.context() as patched:
        patched.setattr(arrays, "open", opened, raising=False)
        with pytest.raises(OSError, match=rf"No space left on device.*{name}'") as raised:
            ready(root)
    assert raised.value.errno == errno.ENOSPC
    assert_goes_on(root, tmp_path, monkeypatch, undisturbed, undecoded)


def test_where_nothing_can_be_written_the_folder_is_named(distribution, tmp_path, monkeypatch):
    root = distribution()
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"file/prepared"):
        ready(root)
