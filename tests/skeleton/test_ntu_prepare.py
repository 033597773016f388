"""The preparation of NTU RGB+D: folders, archives, bad files, kills, and the tables made of it."""

import contextlib
import errno
import io
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from filelock import FileLock
from ntu_files import AGAIN, COMING, CROWD, FIRST, GHOST, LONG, ONE, SITTING, TWO, body, changed, recording, text
from typer.testing import CliRunner

from repro import cli, manifest, npz
from repro.skeleton import data, ntu, ntu_prepare, pipelines, tables
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper

FILES = {                     # two training and two test subjects, all cameras; the last one is among the missing
    "S001C001P001R001A001": ONE, "S001C002P001R001A050": TWO, "S001C003P001R001A060": COMING,
    "S002C001P003R001A002": AGAIN, "S002C002P003R002A001": CROWD, "S002C003P006R001A003": LONG,
    "S017C001P038R001A004": ONE, "S017C002P038R002A004": GHOST, "S017C003P040R001A050": SITTING,
    "S001C002P005R002A008": [[], []],
}
SPLITS = {
    "xsub": {"train": {"subjects": [1, 5, 38]}, "test": {"subjects": [3, 6, 40]},
             "expect": {"train": 6, "test": 4}, "kept": {"train": 5, "test": 4}},
    "xview": {"train": {"views": [2, 3]}, "test": {"views": [1]},
              "expect": {"train": 7, "test": 3}, "kept": {"train": 6, "test": 3}},
}


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Writes files as the official folder or zip, declares them as the whole of `ntu`, and returns the data root."""
    (tmp_path / "data_manifests").mkdir()
    official = manifest.project_root() / "data_manifests" / "ntu.yaml"
    declared = yaml.safe_load(official.read_text()) | {"splits": SPLITS}
    (tmp_path / "data_manifests" / "ntu.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))
    (tmp_path / "data_manifests" / "ntu_missing.txt").write_text("S001C002P005R002A008\nS001C002P006R001A008\n")
    monkeypatch.setattr(manifest, "project_root", lambda: tmp_path)
    monkeypatch.setattr(ntu_prepare, "CHUNK", 2)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))

    def write(files=FILES, packed=False, root="data"):
        folder = tmp_path / root / "ntu"
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: value if isinstance(value, bytes) else text(value) for name, value in files.items()}
        if packed:
            with zipfile.ZipFile(folder / "nturgbd_skeletons_s001_to_s017.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name, contents in files.items():
                    archive.writestr(f"nturgb+d_skeletons/{name}.skeleton", contents)
        else:
            (folder / "nturgb+d_skeletons").mkdir(exist_ok=True)
            for name, contents in files.items():
                (folder / "nturgb+d_skeletons" / f"{name}.skeleton").write_bytes(contents)
        return tmp_path / root

    return write


def prepared_folder(tmp_path):
    (folder,) = (tmp_path / "runs" / "prepared").iterdir()
    return folder


def left_behind(tmp_path):
    return sorted(path.name for path in prepared_folder(tmp_path).iterdir())


WHOLE = ["authors.lock", "authors.npy", "authors.npz"]


def assert_same_set(first, second):
    assert first.digest == second.digest and torch.equal(first.frames, second.frames)
    assert torch.equal(first.lengths, second.lengths) and torch.equal(first.train, second.train)


@pytest.mark.parametrize("pipeline", ["authors", "predict_cluster"])
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_prepare_and_load(distribution, packed, pipeline):
    root = distribution(packed=packed)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    prepared = ntu_prepare.prepare(root, pipeline=pipeline)
    loaded = data.load("ntu", root, pipeline=pipeline)
    names = sorted(FILES)[:2] + sorted(FILES)[3:]
    assert prepared.names.tolist() == names and not prepared.bad
    function = ntu_prepare.PIPELINES[pipeline][0]
    for index, name in enumerate(names):
        expected = function(ntu.parse(text(FILES[name]))).astype(np.float32)
        assert loaded.lengths[index] == len(expected)
        np.testing.assert_array_equal(loaded.sequences[index, : len(expected)], expected)
        assert (loaded.sequences[index, len(expected) :] == 0).all()
    assert loaded.labels.tolist() == [int(name[-3:]) - 1 for name in names]
    assert loaded.views.tolist() == [int(name[5:8]) for name in names]
    assert loaded.train.tolist() == [name[9:12] in ("001", "038") for name in names]
    assert torch.equal(loaded.test, ~loaded.train) and loaded.name == "ntu"
    assert max(max(bone) for bone in loaded.bones) == loaded.frames.shape[1] // 3 - 1
    across = data.load("ntu", root, pipeline=pipeline, protocol="xview")
    assert across.train.tolist() == [name[5:8] != "001" for name in names]
    assert across.digest != loaded.digest and torch.equal(across.frames, loaded.frames)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_folder_and_archive_give_the_same_set(distribution):
    sets = []
    for packed, root in ((False, "a"), (True, "b")):
        ntu_prepare.prepare(distribution(packed=packed, root=root))
        sets.append(data.load("ntu", manifest.project_root() / root))
    assert_same_set(*sets)
    assert_same_set(sets[0], data.load("ntu", manifest.project_root() / "a", pipeline="authors"))


def test_of_archive_and_folder_the_archive_is_read(distribution):
    distribution()
    root = distribution({name: FILES[name] for name in sorted(FILES)[:4]}, packed=True)
    assert len(ntu_prepare.prepare(root, subset=True).names) == 3


def test_workers_give_the_same_files_and_leave_nothing_behind(distribution, tmp_path):
    root = distribution()
    alone = ntu_prepare.prepare(root)
    assert left_behind(tmp_path) == WHOLE
    (prepared_folder(tmp_path) / "authors.npz").unlink()
    shared = ntu_prepare.prepare(root, workers=2)
    assert (shared.digest, shared.source) == (alone.digest, alone.source)
    np.testing.assert_array_equal(shared.frames, alone.frames)
    assert left_behind(tmp_path) == WHOLE


def test_examples_stand_upright_one_per_action(distribution):
    root = distribution()
    ntu_prepare.prepare(root)
    chosen, bones = data.examples("ntu", root)
    assert list(chosen) == ["drink water", "brush hair", "punch", "walk apart"]
    for action, name in (("drink water", "S001C001P001R001A001"), ("punch", "S001C002P001R001A050")):
        expected = pipelines.authors(ntu.parse(text(FILES[name]))).reshape(-1, 50, 3)
        np.testing.assert_allclose(chosen[action], expected[..., [0, 2, 1]], atol=1e-6)
    assert max(joint for bone in bones for joint in bone) == 49


def test_examples_of_the_only_pipeline_that_is_prepared(distribution):
    root = distribution()
    ntu_prepare.prepare(root, pipeline="predict_cluster")
    chosen, bones = data.examples("ntu", root, pipeline="predict_cluster")
    found = chosen["drink water"]
    expected = pipelines.predict_cluster(ntu.parse(text(FILES["S001C001P001R001A001"]))).reshape(-1, 25, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (found[0, 1, 2] > found[0, 0, 2]).all()  # the last coordinate runs up the spine
    assert max(joint for bone in bones for joint in bone) == 24
    with pytest.raises(FileNotFoundError, match="not prepared for pipeline 'authors'"):
        data.examples("ntu", root)


def test_frames_are_mapped_and_stay_as_they_are_in_their_file(distribution, tmp_path):
    root = distribution()
    ntu_prepare.prepare(root)
    loaded = data.load("ntu", root)
    loaded.frames[:] = 7
    assert not (data.load("ntu", root).frames == 7).any()


def test_without_preparation_the_command_is_named(distribution):
    root = distribution()
    with pytest.raises(FileNotFoundError, match="not prepared for pipeline 'authors': run `repro data prepare ntu` f"):
        data.load("ntu", root)
    ntu_prepare.prepare(root)
    with pytest.raises(FileNotFoundError, match="`repro data prepare ntu --subset --pipeline predict_cluster` first"):
        data.load("ntu", root, pipeline="predict_cluster", subset=True)


def test_what_another_format_has_prepared_is_not_read(distribution, monkeypatch):
    root = distribution()
    ntu_prepare.prepare(root)
    monkeypatch.setattr(ntu_prepare, "FORMAT", ntu_prepare.FORMAT + 1)
    with pytest.raises(FileNotFoundError, match="not prepared for pipeline 'authors'"):
        data.load("ntu", root)


def test_without_the_distribution_page_and_places_are_named(distribution, tmp_path):
    distribution()
    expected = r"nturgbd_skeletons_s001_to_s017\.zip .*nturgb\+d_skeletons.*rose1\.ntu\.edu\.sg"
    for ask in (data.load, lambda _, root: ntu_prepare.prepare(root)):
        with pytest.raises(FileNotFoundError, match=expected):
            ask("ntu", tmp_path / "nothing")


def test_an_incomplete_distribution_is_a_subset_or_an_error(distribution):
    root = distribution({name: FILES[name] for name in sorted(FILES)[:5]})
    for refused in (lambda: ntu_prepare.prepare(root), lambda: data.load("ntu", root)):
        with pytest.raises(ValueError, match=r"xsub are 4 for train and 1 for test, expected 6 for.*--subset"):
            refused()
    ntu_prepare.prepare(root, subset=True)
    with pytest.raises(ValueError, match="of protocol xsub are"):
        data.load("ntu", root)
    loaded = data.load("ntu", root, subset=True)
    assert loaded.name == "ntu (subset)" and len(loaded.lengths) == 4
    assert "batch=32 exceeds the 3 training sequences of ntu (subset)" in str(refusal(loaded))


def refusal(loaded):
    with pytest.raises(ValueError) as raised:
        Pretrainer(paper("ntu", "CE"), loaded, 0, torch.device("cpu"))
    return raised.value


def test_a_subset_without_test_recordings_is_refused(distribution):
    root = distribution({name: FILES[name] for name in sorted(FILES)[:4]})
    ntu_prepare.prepare(root, subset=True)
    with pytest.raises(ValueError, match=r"ntu \(subset\): none of its 3 recordings belongs to test"):
        data.load("ntu", root, subset=True)
    assert data.load("ntu", root, subset=True, protocol="xview").test.sum() == 1


BAD = {"S001C003P001R001A060": text(COMING)[:4000], "S017C001P038R001A004": b"",
       "S002C001P003R001A002": changed(5, b"nan" + b" 1" * 11, AGAIN), "S017C002P038R002A004": text([[], []])}


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_bad_files_are_named_and_counted_and_skipped_only_when_asked(distribution, packed):
    root = distribution(FILES | BAD, packed=packed)
    with pytest.raises(ValueError) as raised:
        ntu_prepare.prepare(root, subset=True)
    message = str(raised.value)
    assert "4 files cannot be read:" in message and "--skip-bad" in message
    for name, reason in (("S001C003P001R001A060", "within the joints of frame 1; truncated?"), ("S017C001P038R001A004",
                         "ends after line 0"), ("S002C001P003R001A002", "a coordinate of frame 0 is not finite"),
                         ("S017C002P038R002A004", "no frame has a body")):
        assert any(name in line and reason in line for line in message.splitlines())
    with pytest.raises(ValueError, match=r"4 files cannot be read:[^!]*leave them out: --skip-bad --subset"):
        ntu_prepare.prepare(root, skip_bad=True)
    prepared = ntu_prepare.prepare(root, skip_bad=True, subset=True)
    with pytest.raises(ValueError, match="4 files cannot be read"):
        ntu_prepare.prepare(root, skip_bad=True)
    assert sorted(prepared.bad) == sorted(BAD) and len(prepared.names) == 5
    assert "4 files cannot be read" in "\n".join(ntu_prepare.describe(prepared))
    assert len(data.load("ntu", root, subset=True).lengths) == 5
    with pytest.raises(ValueError, match="4 files cannot be read"):
        ntu_prepare.prepare(root, subset=True)
    assert len(data.load("ntu", root, subset=True).lengths) == 5


@pytest.mark.parametrize("files", [{"S001C002P005R002A008": ONE}, dict.fromkeys(list(FILES)[:3], b"")])
def test_nothing_usable_is_an_error(distribution, files):
    with pytest.raises(ValueError, match="none of its recordings is usable"):
        ntu_prepare.prepare(distribution(files), subset=True, skip_bad=True)


def test_a_file_mended_without_changing_its_size_is_read_again(distribution):
    whole = text(ONE)
    root = distribution(FILES | {"S001C001P001R001A001": whole[:-400] + b"x" * 400})
    for skip_bad in (False, True):
        with pytest.raises(ValueError, match="1 files cannot be read"):
            ntu_prepare.prepare(root, skip_bad=skip_bad)
    distribution({"S001C001P001R001A001": whole})
    assert len(ntu_prepare.prepare(root, skip_bad=True).names) == 9


def test_files_that_were_left_out_are_tried_again(distribution, tmp_path, monkeypatch):
    root = distribution(FILES | BAD)
    ntu_prepare.prepare(root, subset=True, skip_bad=True)
    parsed = counting(monkeypatch)
    assert len(ntu_prepare.prepare(root, subset=True, skip_bad=True).names) == 5 and sorted(parsed) == sorted(BAD)
    parsed.clear()
    with pytest.raises(ValueError, match="4 files cannot be read"):
        ntu_prepare.prepare(root, subset=True)
    assert sorted(parsed) == sorted(BAD) and left_behind(tmp_path) == WHOLE
    name = "S002C001P003R001A002"                          # has a coordinate that is not a number
    distribution({name: BAD[name].replace(b"nan", b"1.5")})
    with pytest.raises(ValueError, match="3 files cannot be read"):
        ntu_prepare.prepare(root, subset=True)
    assert len(ntu_prepare.prepare(root, subset=True, skip_bad=True).names) == 6
    assert left_behind(tmp_path) == WHOLE


def test_a_file_that_the_disk_cannot_read_is_named_and_counted(distribution, monkeypatch):
    root = distribution()

    def unreadable(path, read=Path.read_bytes):
        if path.name == "S002C002P003R002A001.skeleton":
            raise OSError(errno.EIO, "Input/output error", str(path))
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", unreadable)
        with pytest.raises(ValueError, match=r"1 files cannot be read:\n  S002C002P003R002A001: .*Input/output error"):
            ntu_prepare.prepare(root)
        assert len(ntu_prepare.prepare(root, subset=True, skip_bad=True).names) == 8
    assert len(ntu_prepare.prepare(root).names) == 9


def test_any_other_error_has_a_note_of_the_file(distribution, monkeypatch):
    root = distribution()
    monkeypatch.setitem(ntu_prepare.PIPELINES, "authors", (lambda bodies: bodies.joints[10**6], 150))
    with pytest.raises(IndexError) as raised:
        ntu_prepare.prepare(root)
    assert raised.value.__notes__ == [f"in S001C001P001R001A001.skeleton of {root / 'ntu' / 'nturgb+d_skeletons'}"]


def test_a_damaged_member_of_the_archive_is_named(distribution):
    root = distribution(packed=True)
    path = root / "ntu" / "nturgbd_skeletons_s001_to_s017.zip"
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("nturgb+d_skeletons/S002C003P006R001A003.skeleton")
    contents = bytearray(path.read_bytes())
    contents[info.header_offset + 2000] ^= 255
    path.write_bytes(contents)
    with pytest.raises(ValueError, match="S002C003P006R001A003: the archive is damaged here"):
        ntu_prepare.prepare(root)
    path.write_bytes(contents[: len(contents) // 2])
    with pytest.raises(ValueError, match=r"s017\.zip is truncated or damaged"):
        ntu_prepare.prepare(root)


@pytest.mark.parametrize("pipeline", ["authors", "predict_cluster"])
def test_a_recording_of_one_frame_is_a_sequence_of_one_frame(distribution, pipeline):
    root = distribution(FILES | {"S001C001P001R001A001": recording((FIRST, 0, body(1)))})
    ntu_prepare.prepare(root, pipeline=pipeline)
    loaded = data.load("ntu", root, pipeline=pipeline)
    assert loaded.lengths[0] == 1 and loaded.sequences[0, 0].isfinite().all() and loaded.sequences[0, 0].any()
    fast = Pretrainer(paper("ntu", "AE+CE+AD+CD", units=8, batch=4, dictionary=8, sequence_dictionary=6), loaded, 0,
                      torch.device("cpu"))
    assert fast.step().isfinite().all()


def test_coordinates_too_large_for_a_pipeline_are_a_bad_file_with_its_frame(distribution):
    huge = body(6)
    huge[:, :, 0], huge[4, 7, 0] = -3.4e38, 3.4e38
    root = distribution(FILES | {"S001C002P001R001A050": recording((FIRST, 0, huge))})
    with pytest.raises(ValueError, match=r"S001C002P001R001A050: .*so large that frame 4 of the sequence is not"):
        ntu_prepare.prepare(root)
    prepared = ntu_prepare.prepare(root, subset=True, skip_bad=True)
    assert list(prepared.bad) == ["S001C002P001R001A050"] and np.isfinite(prepared.frames).all()


@pytest.mark.parametrize(("name", "message"), [
    ("notes.txt", "notes.txt is not a file of NTU RGB"), ("S018C001P001R001A001.skeleton", "S018C001P001R001A001"),
    ("S001C001P001R001A061.skeleton", "A061.skeleton is not a file of NTU RGB"),
    ("more/S001C001P001R001A001.skeleton", "S001C001P001R001A001 is there twice"),
])
def test_foreign_files_are_named(distribution, name, message):
    root = distribution()
    path = root / "ntu" / "nturgb+d_skeletons" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=message):
        ntu_prepare.prepare(root, subset=True)


def test_hidden_files_are_passed_over(distribution):
    root = distribution()
    (root / "ntu" / "nturgb+d_skeletons" / ".DS_Store").write_bytes(b"")
    (root / "ntu" / "nturgb+d_skeletons" / "._S001C001P001R001A001.skeleton").write_bytes(b"")
    assert len(ntu_prepare.prepare(root).names) == 9


def counting(monkeypatch):
    """The names of files parsed from here on."""
    parsed, read = [], ntu.read

    def counted(path, member):
        parsed.append(member.name)
        return read(path, member)

    monkeypatch.setattr(ntu, "read", counted)
    return parsed


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
import os, shutil, signal, sys, time
from pathlib import Path
from repro import manifest
from repro.skeleton import ntu, ntu_prepare

folder, workers, last = sys.argv[1:]

def killed(path, member, read=ntu.read):
    if member.name == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(path, member)

def slowly(path, member, read=ntu.read):
    time.sleep(0.25)
    with open(Path(folder) / "read.txt", "a") as file:
        print(member.name, file=file)
    return read(path, member)

def killed_before(function, place):
    def call(*arguments, **options):
        if Path(arguments[place]).name == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

if __name__ != "__main__":  # in a worker
    ntu.read = killed
else:
    manifest.project_root = lambda: Path(folder)
    ntu_prepare.CHUNK = 2
    if workers == "1" and not last:
        ntu.read = slowly
    os.replace = killed_before(os.replace, 1)
    shutil.rmtree = killed_before(shutil.rmtree, 0)
    print(ntu_prepare.prepare(Path(folder) / "data", subset=True, workers=int(workers)).digest)
"""


def start(tmp_path, workers, last=""):
    """A process that prepares; killed before it moves or removes the file `last`, or a worker before it reads it."""
    path = tmp_path / "prepare.py"
    if not path.exists():  # another process may be reading it
        path.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen([sys.executable, path, str(tmp_path), str(workers), last], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


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


def test_unknown_options_and_pipelines_raise(distribution):
    root = distribution()
    with pytest.raises(TypeError, match="no option pipline; its options are pipeline, protocol, subset"):
        data.load("ntu", root, pipline="raw")
    with pytest.raises(ValueError, match="pipeline='raw' is not one of: default, authors, predict_cluster"):
        data.load("ntu", root, pipeline="raw")
    with pytest.raises(ValueError, match="protocol='xset' is not one of: xsub, xview"):
        data.load("ntu", root, protocol="xset")


def test_only_ntu_may_be_a_subset():
    with pytest.raises(TypeError, match="no option subset; its options are pipeline, protocol"):
        data.load("synthetic", subset=True)


# ---------------------------------------------------------------------------------------------- tables


def invoked(*arguments):
    done = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_from_files_to_a_table(distribution, monkeypatch):
    people = itertools.product((1, 38, 3), (1, 2, 3), (1, 2))
    files = {f"S001C00{camera}P{person:03d}R00{take}A00{1 + (person + take) % 2}": recording(
        (FIRST, 0, body(12 + 3 * take + camera, seed))) for seed, (person, camera, take) in enumerate(people)}
    twice = {name.replace("R001", "R002").replace("S001", "S002"): frames for name, frames in files.items()}
    monkeypatch.setenv("REPRO_DATA", str(distribution(files | twice)))
    printed = invoked("data", "prepare", "ntu", "--subset", "--workers", "1")
    assert "36 recordings" in printed and "xsub: 24 train / 12 test, a subset, 5 / 4 are declared" in printed
    assert "xview: 24 train / 12 test" in printed
    chosen = ["--dataset", "ntu", "--subset", "--preset", "smoke", "--objectives", "random,CE+AD"]
    table = invoked("run", "taxonomy", *chosen)
    assert table.count("ntu") == 2
    kept, = tables.taxonomy_cells("ntu", preset="smoke", objectives="CE+AD", protocol="xview", subset=True)
    assert (kept.entry, kept.dataset) == ("CE+AD, protocol=xview", "ntu (subset)")
    with pytest.raises(ValueError, match="of protocol xsub are"):
        tables.taxonomy_cells("ntu", preset="smoke")


def test_columns_of_the_paper_are_cells(distribution, monkeypatch):
    root = distribution()
    monkeypatch.setenv("REPRO_DATA", str(root))
    ntu_prepare.prepare(root)
    for layers, units in ((1, "auto"), (3, "auto"), (1, "1024")):
        cells = tables.taxonomy_cells("ntu", layers=layers, units=units)
        assert len(cells) == 16 and {cell.preset for cell in cells} == {"paper"}
        assert {(cell.recipe.layers, cell.recipe.units, cell.recipe.protocol) for cell in cells} == {
            (layers, 512 if units == "auto" else 1024, "xsub")
        }
    with pytest.raises(FileNotFoundError, match="--pipeline predict_cluster"):
        tables.taxonomy_cells("ntu", pipeline="predict_cluster")
    ntu_prepare.prepare(root, pipeline="predict_cluster")
    cell, = tables.taxonomy_cells("ntu", objectives="CE", pipeline="predict_cluster")
    assert cell.entry == "CE, pipeline=predict_cluster" and cell.digest != cells[0].digest
