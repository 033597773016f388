"""Broken folders of runs: what is said of them, and that repairing loses nothing."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import time

import pytest
from nursery import HELPERS
from one_cell import CELL, first_edition

from repro.data.disk import write_atomically
from repro.run.health import QUIET, examine
from repro.run.store import Store

LEFTOVER = ".result.json.0123456789abcdef"

HOLD = """
import os, sys
from pathlib import Path
from one_cell import CELL
from repro.run.store import Store

run = Store(Path(sys.argv[1])).run(CELL)
with run.claim():
    (run.folder / "progress.jsonl").write_text('{"step": 3, "of": 4}')
    (run.folder / ".checkpoint.pt.0123456789abcdef").write_text("half")
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def run(root):
    return Store(root).run(CELL)


@pytest.fixture
def finished(run):
    with run.claim():
        run.finish({"linear": 50.0, "cost": {}})
    return run


@contextlib.contextmanager
def holder(root):
    """Another process that trains the cell; yields it, and kills it at the end."""
    command = [sys.executable, "-c", HOLD, str(root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    own = os.environ | {"PYTHONPATH": os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, env=own, text=True, **pipes) as process:
        assert process.stdout.readline() == f"{process.pid}\n"
        try:
            yield process
        finally:
            process.kill()


def leave(path):
    """A temporary file that nobody has written to for long."""
    path.touch()
    os.utime(path, (0, time.time() - QUIET - 60))


def contents(root):
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_no_folder_and_sound_ones(root, finished):
    before = contents(root)
    health = examine(root)
    assert (health.finished, health.running, health.unfinished, health.problems) == (1, [], [], [])
    assert contents(root) == before and examine(root / "missing").finished == 0


@pytest.mark.parametrize("content", ["", '{"linear": 50.0, "co', "[]"])
@pytest.mark.parametrize("name", ["result.json", "recipe.json"])
def test_what_cannot_be_read_is_set_aside_and_the_cell_can_be_asked_for_again(root, finished, name, content):
    (finished.folder / "checkpoint.pt").write_text("the last state")
    (finished.folder / name).write_text(content)
    before = contents(root)
    problem, = examine(root).problems
    assert problem.what.startswith(f"{finished.folder / name} cannot be read")
    assert contents(root) == before  # looking changes nothing
    problem.repair()
    health = examine(root)
    assert health.problems == [] and len(health.unfinished) == 1
    assert sorted(contents(root).values()) == sorted(before.values())  # nothing is lost
    assert finished.result is None and Store(root).finished() == []
    with finished.claim() as claimed:
        assert claimed
        finished.finish({"linear": 50.0, "cost": {}})
    assert Store(root).finished()[0]["result"]["linear"] == 50.0


def test_damaged_twice_keeps_both(root, finished):
    for content in ("first", "second"):
        (finished.folder / "result.json").write_text(content)
        (finished.folder / "recipe.json").write_text("{}")
        examine(root).problems[0].repair()
    assert {"first", "second"} <= {path.read_text() for path in finished.folder.glob("result.damaged*.json")}


def test_cells_of_the_first_edition_are_looked_at_too(root):
    whole, half = (dataclasses.replace(CELL, seed=seed) for seed in (1, 2))
    first_edition(Store(root), whole, "taxonomy", {"linear": 50.0})
    folder = first_edition(Store(root), half, "taxonomy")
    health = examine(root)
    assert (health.finished, health.problems) == (1, []) and str(folder) in health.unfinished[0]


def test_a_missing_description_is_a_damaged_one(root, finished):
    (finished.folder / "recipe.json").unlink()
    problem, = examine(root).problems
    assert "recipe.json cannot be read" in problem.what
    problem.repair()
    assert (finished.folder / "result.damaged.json").exists()


def test_a_cell_in_the_folder_of_another(root, finished):
    described = CELL.describe() | {"key": "fedcba9876543210"}
    (finished.folder / "recipe.json").write_text(json.dumps(described))
    problem, = examine(root).problems
    assert problem.what == f"{finished.folder} holds the cell fedcba9876543210" and problem.repair is None


def test_a_cell_that_is_being_trained_is_left_alone(root, run):
    with holder(root) as process:
        health = examine(root)
        assert health.problems == [] == health.unfinished
        assert health.running[0].startswith(f"{run.folder}: process {process.pid} on ")


def test_the_lock_of_a_dead_process_is_free_and_its_leftover_goes(root, run):
    with holder(root) as process:
        pass
    health = examine(root)
    assert health.running == []
    assert f"{run.folder}: 75% trained; process {process.pid} on " in health.unfinished[0]
    assert health.unfinished[0].endswith("holds its lock no more")
    problem, = health.problems
    assert problem.what.startswith(f"{run.folder / '.checkpoint.pt.0123456789abcdef'} was left by a process")
    problem.repair()
    assert examine(root).problems == [] and (run.folder / "progress.jsonl").exists()


def test_a_leftover_in_a_part_of_a_cell_goes_too(root, finished):
    (finished.folder / "ucf101-1").mkdir()
    leave(finished.folder / "ucf101-1" / LEFTOVER)
    problem, = examine(root).problems
    problem.repair()
    assert examine(root).problems == [] and (finished.folder / "ucf101-1").is_dir()


def test_a_cell_claimed_after_it_was_looked_at_is_left_alone(root, finished):
    leave(finished.folder / LEFTOVER)
    problem, = examine(root).problems
    with finished.claim():
        (finished.folder / LEFTOVER).touch()  # of the process that writes now
        with pytest.raises(BlockingIOError, match="has been claimed meanwhile"):
            problem.repair()
        assert (finished.folder / LEFTOVER).exists()


def test_what_comes_to_a_finished_cell_meanwhile_is_left_alone(root, finished):
    """Features and new measures of a finished cell are written without its lock."""
    health = []
    write_atomically(finished.folder / "features.csv", lambda temporary: (
        temporary.write_text("a,b\n"), health.append(examine(root))))
    assert health[0].problems == [] and health[0].finished == 1
    assert (finished.folder / "features.csv").read_text() == "a,b\n"


def test_a_file_that_is_moved_while_it_is_looked_at_is_no_problem(root, monkeypatch):
    monkeypatch.setattr("repro.run.health._temporary", lambda folder: [root / "prepared" / LEFTOVER])
    assert examine(root).problems == []


@pytest.mark.parametrize("place", ["", "prepared", "prepared/ntu-0123456789abcdef", "taxonomy"])
def test_temporary_files_elsewhere_are_left_for_an_hour(root, place):
    folder = root / place
    folder.mkdir(parents=True)
    (folder / LEFTOVER).touch()
    (folder / ".mine").touch()
    assert examine(root).problems == []  # somebody may be writing it
    for name in (LEFTOVER, ".mine"):
        os.utime(folder / name, (0, os.stat(folder).st_mtime - QUIET - 60))
    problem, = examine(root).problems
    problem.repair()
    assert [path.name for path in folder.iterdir()] == [".mine"]


@pytest.mark.parametrize(
    ("name", "inside"),
    [(".report.0123456789abcdef", "index.html"), (".plan-ab_9zzzz", "taxonomy/0123456789abcdef/result.json")],
)
def test_the_half_of_a_report_or_plan_goes_with_what_is_in_it(root, name, inside):
    folder = root / name
    (folder / inside).parent.mkdir(parents=True)
    (folder / inside).touch()
    os.utime(folder, (0, 0))
    health = examine(root)
    assert (health.finished, health.unfinished) == (0, [])
    problem, = health.problems
    problem.repair()
    assert list(root.iterdir()) == []
