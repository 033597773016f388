"""Files of NTU RGB+D that cannot be prepared: named, counted, left out when asked, and tried again; and odd ones."""

import errno
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from ntu_distribution import FILES
from ntu_files import AGAIN, COMING, FIRST, ONE, body, changed, recording, text

from repro.skeleton import data, ntu_prepare
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper

BAD = {"S001C003P001R001A060": text(COMING)[:4000], "S017C001P038R001A004": b"",
       "S002C001P003R001A002": changed(5, b"nan" + b" 1" * 11, AGAIN), "S017C002P038R002A004": text([[], []])}


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_bad_files_are_named_and_counted_and_skipped_only_when_asked(distribution, packed):
    root = distribution(FILES | BAD, packed=packed)
    with pytest.raises(ValueError) as raised:
        ntu_prepare.prepare(root, subset=True)
    message = str(raised.value)
    assert "4 files cannot be used (" in message and "--skip-bad" in message
    for name, reason in (("S001C003P001R001A060", "within the joints of frame 1; truncated?"), ("S017C001P038R001A004",
                         "ends after line 0"), ("S002C001P003R001A002", "a coordinate of frame 0 is not finite"),
                         ("S017C002P038R002A004", "no frame has a body")):
        assert any(name in line and reason in line for line in message.splitlines())
    with pytest.raises(ValueError, match=r"4 files cannot be used [^!]*leave them out: --skip-bad --subset"):
        ntu_prepare.prepare(root, skip_bad=True)
    prepared = ntu_prepare.prepare(root, skip_bad=True, subset=True)
    with pytest.raises(ValueError, match="4 files cannot be used"):
        ntu_prepare.prepare(root, skip_bad=True)
    assert sorted(prepared.bad) == sorted(BAD) and len(prepared.names) == 5
    assert "4 files cannot be used" in "\n".join(ntu_prepare.describe(prepared))
    assert len(data.load("ntu", root, subset=True).lengths) == 5
    with pytest.raises(ValueError, match="4 files cannot be used"):
        ntu_prepare.prepare(root, subset=True)
    assert len(data.load("ntu", root, subset=True).lengths) == 5


@pytest.mark.parametrize("files", [{"S001C002P005R002A008": ONE}, dict.fromkeys(list(FILES)[:3], b"")])
def test_nothing_usable_is_an_error(distribution, files):
    with pytest.raises(ValueError, match="none of its files is usable"):
        ntu_prepare.prepare(distribution(files), subset=True, skip_bad=True)


def test_a_file_that_the_disk_cannot_read_is_named_and_counted(distribution, monkeypatch):
    root = distribution()

    def unreadable(path, read=Path.read_bytes):
        if path.name == "S002C002P003R002A001.skeleton":
            raise OSError(errno.EIO, "Input/output error", str(path))
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", unreadable)
        with pytest.raises(ValueError, match=r"1 files cannot .*\n  S002C002P003R002A001: .*Input/output error"):
            ntu_prepare.prepare(root)
        assert len(ntu_prepare.prepare(root, subset=True, skip_bad=True).names) == 8
    assert len(ntu_prepare.prepare(root).names) == 9


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


def test_files_that_are_none_of_the_distribution_are_left_out_and_counted(distribution):
    root = distribution()
    sound = ntu_prepare.prepare(root)
    folder = root / "ntu" / "nturgb+d_skeletons"
    for name in ("README", "notes.txt", "a.npy", "b.npy", "S018C001P001R001A001.skeleton",
                 "S001C001P001R001A061.skeleton", "S001C001P001R001A001 (1).skeleton"):
        (folder / name).write_bytes(b"")
    for options in ({}, {"skip_bad": True}, {"subset": True}, {"subset": True, "skip_bad": True}):
        prepared = ntu_prepare.prepare(root, **options)
        assert prepared.digest == sound.digest and not prepared.bad
    told, = (line for line in ntu_prepare.describe(prepared) if line.startswith("left out: "))
    assert told == (
        "left out: 2 files ending in .npy, 1 file ending in .txt, 2 files of NTU RGB+D 120 alone, 1 file that the "
        "distribution lists as having no usable skeleton, 1 file with another name than S001C001P001R001A001, 1 file "
        "without an ending"
    )
    assert data.load("ntu", root).digest == data.load("ntu", root, subset=True).digest


def test_a_folder_without_any_file_of_the_distribution_says_what_it_holds(distribution):
    root = distribution({"S018C001P001R001A001": ONE, "S019C001P001R001A001": ONE})
    with pytest.raises(ValueError, match=r"holds no file of NTU RGB\+D 60.*only 2 files of NTU RGB\+D 120 alone"):
        ntu_prepare.prepare(root, subset=True)


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_a_recording_that_is_there_twice_is_named(distribution, packed):
    files = FILES | {"more/S001C001P001R001A001": ONE}
    if not packed:
        (distribution() / "ntu" / "nturgb+d_skeletons" / "more").mkdir()
    root = distribution(files, packed=packed)
    with pytest.raises(ValueError, match="S001C001P001R001A001 is there twice"):
        ntu_prepare.prepare(root, subset=True, skip_bad=True)


def test_hidden_files_are_passed_over(distribution):
    root = distribution()
    (root / "ntu" / "nturgb+d_skeletons" / ".DS_Store").write_bytes(b"")
    (root / "ntu" / "nturgb+d_skeletons" / "._S001C001P001R001A001.skeleton").write_bytes(b"")
    assert len(ntu_prepare.prepare(root).names) == 9
