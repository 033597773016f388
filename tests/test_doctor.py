"""`repro doctor` on broken folders: what it says, what it leaves, what it mends, and its status."""

import os
import shutil
import stat
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

import pytest
from one_cell import CELL

from repro import doctor
from repro.data import manifest
from repro.run.health import QUIET
from repro.run.store import Store

SECTIONS = ["versions:", "devices:", "folders:", "data:", "runs:"]


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))


@pytest.fixture
def damaged(tmp_path):
    """A finished cell whose result was cut off; returns its folder."""
    run = Store(tmp_path / "runs").run(CELL)
    with run.claim():
        run.finish({"linear": 50.0, "cost": {}})
    (run.folder / "result.json").write_text('{"linear": 50')
    return run.folder


def examined(*, repair=False):
    """(problems left, lines)"""
    lines = []
    return doctor.examined(lines.append, repair=repair), lines


def test_nothing_is_wrong_where_nothing_is(tmp_path):
    left, lines = examined()
    assert left == 0 and [line for line in lines if line in SECTIONS] == SECTIONS and lines[-1] == "problems: 0"
    text = "\n".join(lines)
    assert sys.version.split()[0] in text and str(tmp_path / "runs") in text and "cells: 0 finished" in text
    assert "missing: " in text and "ucla" in text
    assert list(tmp_path.iterdir()) == []


def test_without_the_option_it_only_says_what_it_would_do(damaged):
    left, lines = examined()
    assert left == 1 and "problems: 1" in lines
    assert lines[-2].startswith(f"  {damaged / 'result.json'} cannot be read")
    assert lines[-1].startswith("    --repair would: set result.json and recipe.json there aside")
    assert (damaged / "result.json").exists()


def test_with_the_option_it_mends(damaged):
    left, lines = examined(repair=True)
    assert left == 0 and lines[-1].startswith("    done: set result.json")
    assert (damaged / "result.damaged.json").read_text() == '{"linear": 50'
    assert examined()[0] == 0


def test_what_it_cannot_mend_is_left_and_said(damaged, capsys, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "there")

    monkeypatch.setattr(os, "replace", refuse)
    left, lines = examined(repair=True)
    assert left == 1 and lines[-1].startswith("    could not: set result.json")
    assert "Permission denied: 'there'" in capsys.readouterr().err


def test_damaged_data_are_a_problem_for_a_person(tmp_path):
    path = tmp_path / "data" / "nw_ucla" / "all_sqe.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a download")
    left, lines = examined(repair=True)
    assert left == 1 and "  ucla: differs from what is declared" in lines
    assert lines[-2].startswith(f"  {path} is truncated or damaged") and "fetch it again from https://" in lines[-1]
    assert path.exists()


def test_data_with_the_right_names_and_sizes_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("repro.data.present._state", lambda declared, root: ("present", ""))

    def verified_members(declared, root):
        raise ValueError(f"{declared.name} has another digest; fetch it again")

    monkeypatch.setattr(manifest, "verified_members", verified_members)
    left, lines = examined()
    assert "  ucla: cannot be used" in lines and left >= 1
    assert "    fetch it again" in lines[lines.index("  ucla has another digest"):]


def test_the_rest_of_a_download_is_named_and_left(tmp_path):
    rest = tmp_path / "data" / "cifar10" / "tmpab12_xyz"
    rest.parent.mkdir(parents=True)
    rest.touch()
    assert examined()[0] == 0  # perhaps it goes on
    os.utime(rest, (0, time.time() - QUIET - 60))
    left, lines = examined(repair=True)
    assert left == 1 and lines[-2].startswith(f"  {rest} looks like the rest of a download") and rest.exists()


def test_a_disk_that_is_nearly_full_is_a_problem(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 10**12 - 10**6, 10**6))
    left, lines = examined()
    assert left == 1 and "REPRO_RUNS at another disk" in lines[-1]


@pytest.fixture
def read_only(monkeypatch):
    """A folder that this process cannot write: as another user, if it is root's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        monkeypatch.setenv("REPRO_RUNS", str(folder / "runs"))
        (folder / "runs").mkdir()
        for each in (folder, folder / "runs"):
            each.chmod(0o555)
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        if root:
            os.seteuid(65534)
        yield folder / "runs"
        if root:
            os.seteuid(0)
        folder.chmod(stat.S_IRWXU)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_a_folder_of_runs_that_cannot_be_written(read_only):
    with pytest.raises(OSError, match=rf"{read_only}, the folder of runs, cannot be written \(Permission denied\)"):
        Store(read_only).require_usable()
    problems = [each for each in doctor._folders() if isinstance(each, doctor.Problem)]
    assert [problem.what for problem in problems] == [f"{read_only}, the folder of runs, cannot be written "
                                                      "(Permission denied)"]
    assert "point REPRO_RUNS at another folder" in problems[0].remedy
    left, lines = examined()  # nor can the data be read, whose folder is another user's
    assert left >= 1 and [line for line in lines if line in SECTIONS] == SECTIONS


def test_versions_that_are_not_the_pinned_ones_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "checkout", lambda: tmp_path)
    (tmp_path / "requirements.txt").write_text(
        "# made up\nnumpy==0.1\ntorch==9 ; python_version < '3'\nno-such-thing==1.0 ; python_version >= '3'\n-e .\n"
    )
    *_, last = doctor._versions()
    assert last.startswith("not as in requirements.txt: numpy ")
    assert ", pinned 0.1; no-such-thing is not installed, pinned 1.0; " in last and "torch" not in last
