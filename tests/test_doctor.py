"""`repro doctor` on broken folders: what it says, that it says what to do, and that it changes nothing."""

import dataclasses
import os
import sys

import pytest
from one_cell import CELL

from repro import doctor
from repro.data import manifest
from repro.doctor import LISTED, Problem, examined_results, examined_runs
from repro.run.export import read_cells
from repro.run.store import Store

SECTIONS = ["versions:", "devices:", "folders:", "data:", "runs:", "results:"]


@pytest.fixture(autouse=True)
def elsewhere(folders):
    """No data and no runs."""


@pytest.fixture
def finished(runs):
    """A finished cell."""
    run = Store(runs).run(CELL)
    run.finish({"linear": 50.0, "cost": {}})
    return run


def examined():
    """(number of problems, lines)"""
    lines = []
    return doctor.examined(lines.append), "\n".join(lines).splitlines()


def found(runs):
    """(what is said, problems) of a folder of runs, in which nothing changes."""
    before = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    lines = [*examined_runs(runs)]
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == before
    problems = [line for line in lines if isinstance(line, Problem)]
    return [line for line in lines if line not in problems], problems


def test_nothing_is_wrong_where_nothing_is(tmp_path):
    count, lines = examined()
    assert count == 0 and [line for line in lines if line in SECTIONS] == SECTIONS and lines[-1] == "problems: 0"
    text = "\n".join(lines)
    assert sys.version.split()[0] in text and str(tmp_path / "runs") in text and "cells: 0 finished" in text
    assert "missing: " in text and "ucla" in text and "torch 2." in text
    assert list(tmp_path.iterdir()) == []


def test_damaged_data_are_named(tmp_path):
    path = tmp_path / "data" / "nw_ucla" / "all_sqe.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a download")
    count, lines = examined()
    assert count == 1 and "  ucla: differs" in lines
    assert lines[-1].startswith(f"  {path} is truncated or damaged") and "fetch it again from https://" in lines[-1]


def test_data_with_the_right_names_and_sizes_are_read(monkeypatch):
    def refuse(declared, root):
        raise ValueError(f"{declared.name} has another digest; fetch it again")

    monkeypatch.setattr("repro.data.present._state", lambda declared, root: ("present", ""))
    monkeypatch.setattr(manifest, "verified_members", refuse)
    count, lines = examined()
    assert count and "  ucla: cannot be used" in lines and "  ucla has another digest; fetch it again" in lines


def test_a_section_that_cannot_be_read_is_a_problem_and_the_others_follow(monkeypatch):
    def refused():
        raise PermissionError(13, "Permission denied", "data")

    monkeypatch.setattr("repro.data.present.status", refused)
    count, lines = examined()
    assert count == 1 and [line for line in lines if line in SECTIONS] == SECTIONS
    assert lines[-1] == ("  [Errno 13] Permission denied: 'data'; give yourself the right to read it, or point "
                         "REPRO_DATA and REPRO_RUNS elsewhere")


def test_sound_cells_are_counted(runs, finished):
    whole, half, refused = (dataclasses.replace(CELL, seed=seed) for seed in (1, 2, 3))
    Store(runs).run(whole).finish({"linear": 50.0, "cost": {}})
    folder = Store(runs).run(half).folder
    Store(runs).run(half).begin()
    with Store(runs).run(refused).claim():
        pass  # as it began: nothing was trained
    (count, unfinished, _), problems = found(runs)
    assert count == "cells: 2 finished, 1 unfinished" and problems == []
    assert unfinished.startswith(f"unfinished: {folder}: 0% trained")
    assert found(runs / "missing") == (["cells: 0 finished, 0 unfinished"], [])


@pytest.mark.parametrize("content", [b"", b'{"linear": 50.0, "co', b"\xff\xfe\x80"])
@pytest.mark.parametrize("name", ["result.json", "recipe.json"])
def test_what_it_says_of_a_damaged_cell_brings_it_back(runs, finished, name, content):
    (finished.folder / name).write_bytes(content)
    (count,), (problem,) = found(runs)
    assert count.startswith("cells: 1 finished") and problem.startswith(f"{finished.folder / name} cannot be read")
    assert "delete recipe.json and result.json there" in problem
    for part in ("recipe.json", "result.json"):
        (finished.folder / part).unlink(missing_ok=True)
    finished.finish({"linear": 50.0, "cost": {}})
    assert found(runs)[1] == [] and Store(runs).finished()[0]["result"]["linear"] == 50.0


def test_a_few_unfinished_cells_are_named(runs):
    for seed in range(LISTED + 2):
        run = Store(runs).run(dataclasses.replace(CELL, seed=seed))
        with run.claim():
            run.begin()
        (run.folder / "progress.jsonl").write_text('{"step": 3, "of": 3}')  # what is left is to evaluate
    (count, *lines, _), problems = found(runs)
    assert count == f"cells: 0 finished, {LISTED + 2} unfinished" and problems == []
    assert len(lines) == LISTED
    assert all(f": 75% trained, nothing of it saved yet; process {os.getpid()} on " in line for line in lines)
    (run.folder.parent / CELL.key / "checkpoint.pt").touch()
    assert sum(f": 75% trained; process {os.getpid()} on " in line for line in found(runs)[0]) == 1


def test_what_killed_commands_left_is_named_and_counts_no_cells(runs):
    kept = runs / ".report.0a_b1c2d" / "runs" / "cells" / "0123456789abcdef"
    kept.mkdir(parents=True)
    (kept / "result.json").touch()
    (count, *lines), problems = found(runs)
    assert count == "cells: 0 finished, 0 unfinished" and problems == []
    assert [line.partition(": ")[2] for line in lines] == [f"{runs}/.report.0a_b1c2d; delete it"]


def test_cells_that_are_left_out_are_listed(monkeypatch):
    cells = read_cells(manifest.project_root() / "figures" / "cells.csv").iloc[:3]
    cells.loc[0, "recipe"] = '{"field_of_another_branch": 1}'
    cells.loc[1, "study"] = "sculptures"
    monkeypatch.setattr(doctor, "examined_cells", lambda path: (cells, ["line 9: it is cut"]))
    count, *problems = examined_results()
    assert count == "cells: 3 of figures/cells.csv and of the runs" and {*map(type, problems)} == {Problem}
    assert problems[0] == "line 9: it is cut" and {cells["key"][0], cells["key"][1]} == {
        key for key in cells["key"] if any(key in problem for problem in problems)}
    assert any("'field_of_another_branch' is not a field of" in problem for problem in problems)
