"""`repro doctor` on broken folders: what it says, that it says what to do, and that it changes nothing."""

import dataclasses
import json
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections import namedtuple
from pathlib import Path

import pytest
from one_cell import CELL, first_edition

from repro import doctor
from repro.data import manifest
from repro.doctor import QUIET, Problem, examined_runs
from repro.run.store import Store

SECTIONS = ["versions:", "devices:", "folders:", "data:", "runs:"]
LEFTOVER = ".result.json.0123456789abcdef"


@pytest.fixture(autouse=True)
def elsewhere(folders):
    """No data and no runs."""


@pytest.fixture
def root(runs):
    return runs


@pytest.fixture
def finished(root):
    """A finished cell."""
    run = Store(root).run(CELL)
    with run.claim():
        run.finish({"linear": 50.0, "cost": {}})
    return run


def examined():
    """(number of problems, lines)"""
    lines = []
    return doctor.examined(lines.append), lines


def found(root):
    """(what is said, problems) of a folder of runs, in which nothing changes."""
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    lines = [*examined_runs(root)]
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    problems = [line for line in lines if isinstance(line, Problem)]
    return [line for line in lines if line not in problems], problems


def test_nothing_is_wrong_where_nothing_is(tmp_path):
    count, lines = examined()
    assert count == 0 and [line for line in lines if line in SECTIONS] == SECTIONS and lines[-1] == "problems: 0"
    text = "\n".join(lines)
    assert sys.version.split()[0] in text and str(tmp_path / "runs") in text and "cells: 0 finished" in text
    assert "missing: " in text and "ucla" in text
    assert list(tmp_path.iterdir()) == []


def test_damaged_data_are_named(tmp_path):
    path = tmp_path / "data" / "nw_ucla" / "all_sqe.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a download")
    count, lines = examined()
    assert count == 1 and "  ucla: differs from what is declared" in lines
    assert lines[-1].startswith(f"  {path} is truncated or damaged") and "fetch it again from https://" in lines[-1]


def test_data_with_the_right_names_and_sizes_are_read(monkeypatch):
    def refuse(declared, root):
        raise ValueError(f"{declared.name} has another digest; fetch it again")

    monkeypatch.setattr("repro.data.present._state", lambda declared, root: ("present", ""))
    monkeypatch.setattr(manifest, "verified_members", refuse)
    count, lines = examined()
    assert count and "  ucla: cannot be used" in lines and "  ucla has another digest; fetch it again" in lines


def test_a_disk_that_is_nearly_full_is_a_problem(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 10**12 - 10**6, 10**6))
    count, lines = examined()
    assert count == 1 and "REPRO_RUNS at another disk" in lines[-1]


@pytest.fixture
def read_only(monkeypatch):
    """A folder that this process cannot write: as another user, if it is root's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        monkeypatch.setenv("REPRO_RUNS", str(folder / "runs"))
        (folder / "runs").mkdir()
        for path in (folder, folder / "runs"):
            path.chmod(0o555)
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        if root:
            os.seteuid(65534)
        yield folder / "runs"
        if root:
            os.seteuid(0)
        folder.chmod(stat.S_IRWXU)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_a_folder_of_runs_that_cannot_be_written(read_only):
    refusal = f"{read_only}, the folder of runs, cannot be written (Permission denied); "
    with pytest.raises(OSError) as raised:
        Store(read_only).require_usable()
    assert f"{raised.value}".startswith(refusal)
    count, lines = examined()  # nor can the data be read, whose folder is another user's
    assert count and [line for line in lines if line in SECTIONS] == SECTIONS
    problem, = (line for line in lines if line.startswith(f"  {refusal}"))
    assert "point REPRO_RUNS at another folder" in problem


def test_sound_cells_of_both_editions_are_counted(root, finished):
    whole, half = (dataclasses.replace(CELL, seed=seed) for seed in (1, 2))
    first_edition(Store(root), whole, "taxonomy", {"linear": 50.0})
    with Store(root).run(dataclasses.replace(CELL, seed=3)).claim():
        pass  # refused as it began
    folder = first_edition(Store(root), half, "taxonomy")
    (count, unfinished, _), problems = found(root)
    assert count == "cells: 2 finished, 0 being trained, 1 unfinished" and problems == []
    assert unfinished.startswith(f"unfinished: {folder}: 0% trained")
    assert found(root / "missing") == (["cells: 0 finished, 0 being trained, 0 unfinished"], [])


@pytest.mark.parametrize("content", ["", '{"linear": 50.0, "co', "[]", None])
@pytest.mark.parametrize("name", ["result.json", "recipe.json"])
def test_what_it_says_of_a_damaged_cell_brings_it_back(root, finished, name, content):
    if content is not None:
        (finished.folder / name).write_text(content)
    elif name == "recipe.json":
        (finished.folder / name).unlink()
    else:
        (finished.folder / name).write_bytes(b"\xff\xfe\x80")
    _, (problem,) = found(root)
    assert problem.startswith(f"{finished.folder / name} cannot be read")
    assert "delete recipe.json and result.json there" in problem
    for part in ("recipe.json", "result.json"):
        (finished.folder / part).unlink(missing_ok=True)
    with finished.claim():
        finished.finish({"linear": 50.0, "cost": {}})
    assert found(root)[1] == [] and Store(root).finished()[0]["result"]["linear"] == 50.0


def test_a_cell_in_the_folder_of_another(root, finished):
    described = CELL.describe() | {"key": "fedcba9876543210"}
    (finished.folder / "recipe.json").write_text(json.dumps(described))
    assert found(root)[1] == [f"{finished.folder} holds the cell fedcba9876543210; move it to the folder of that name"]


def test_a_cell_that_is_being_trained_is_told_from_one_that_waits(root):
    run, asked, done = Store(root).run(CELL), threading.Event(), threading.Event()

    def hold():
        with run.claim():
            run.begin()
            (run.folder / "progress.jsonl").write_text('{"step": 3, "of": 4}')
            asked.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    asked.wait(60)
    (_, line), problems = found(root)
    assert line.startswith(f"being trained: {run.folder}: 75% trained; process {os.getpid()} on ") and problems == []
    done.set()
    holder.join()
    assert found(root)[0][1].startswith(f"unfinished: {run.folder}: 75% trained")


@pytest.mark.parametrize("place", ["", "prepared", "prepared/ntu-0123456789abcdef", f"cells/{CELL.key}/ucf101-1"])
def test_temporary_files_are_named_after_an_hour(root, place):
    folder = root / place
    folder.mkdir(parents=True)
    for name in (LEFTOVER, ".mine"):
        (folder / name).touch()
    assert found(root)[1] == []  # somebody may be writing it
    for name in (LEFTOVER, ".mine"):
        os.utime(folder / name, (0, time.time() - QUIET - 60))
    problem, = found(root)[1]
    assert problem.startswith(f"{folder / LEFTOVER} was left by a process") and problem.endswith("delete it")


@pytest.mark.parametrize(
    ("name", "inside"),
    [(".report.0123456789abcdef", "index.html"), (".plan-ab_9zzzz", "taxonomy/0123456789abcdef/result.json")],
)
def test_the_half_of_a_report_or_plan_counts_no_cells(root, name, inside):
    (root / name / inside).parent.mkdir(parents=True)
    (root / name / inside).touch()
    os.utime(root / name, (0, 0))
    (count, *_), (problem,) = found(root)
    assert count.startswith("cells: 0 finished") and problem.startswith(f"{root / name} was left")
