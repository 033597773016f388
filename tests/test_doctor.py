"""`repro doctor` on broken folders: what it says, that it says what to do, and that it changes nothing."""

import dataclasses
import os
import sys

import pytest
from pandas import DataFrame

from repro import doctor
from repro.doctor import examined_runs
from repro.run.store import COLUMNS, Run, Store, read_record
from repro.skeleton.recipe import smoke
from repro.table import Study

RUN = Run("skeletons", smoke("synthetic", "CE"), 0, "smoke", "synthetic", "d1", 3)
RESULT = {"linear": 50.0, "cost": {"finished": "2026-01-01T00:00:00+00:00", "commit": "1234567"}}


@pytest.fixture(autouse=True)
def elsewhere(folders, monkeypatch):
    """No data and no runs; whatever is finished was trained by the code at hand."""
    monkeypatch.setattr(Study, "code", property(lambda study: None))


@pytest.fixture
def finished(runs_root):
    """A finished run."""
    folder = Store(runs_root).folder(RUN)
    folder.finish(RESULT)
    return folder


def examined():
    """(number of problems, lines)"""
    lines = []
    return doctor.examined(lines.append), "\n".join(lines).splitlines()


def found(runs_root):
    """(what is said, problems) of the runs, in which nothing changes."""
    before = {path: path.read_bytes() for path in runs_root.rglob("*") if path.is_file()}
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("repro.run.store.exported", lambda tell: DataFrame(columns=COLUMNS))
        problems = [*examined_runs(said.append)]
    assert {path: path.read_bytes() for path in runs_root.rglob("*") if path.is_file()} == before
    return said, problems


def test_own_runs_of_other_code_and_of_earlier_versions_are_told_in_a_line_each(runs_root, finished, monkeypatch):
    monkeypatch.setattr(Study, "code", property(lambda study: "0123456789abcdef"))
    Store(runs_root).folder(dataclasses.replace(RUN, version=2)).finish(RESULT)
    said, problems = found(runs_root)
    assert said[0] == "1 runs of earlier versions of the training are left out"
    line, = problems
    assert line.startswith(f"1 of 1 of your runs of skeletons ({RUN.id}) were trained by other code than that at ")


def test_nothing_is_wrong_where_nothing_is(tmp_path):
    count, lines = examined()
    assert count == 0 and lines[-1] == "problems: 0"
    text = "\n".join(lines)
    assert sys.version.split()[0] in text and str(tmp_path / "runs") in text and "runs: 0 of REPRO_RUNS, " in text
    assert "torch 2." in text and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("place", "contents", "line"), [
    ("data/nw_ucla/all_sqe.zip", b"half a download", "PATH is no archive that can be unpacked"),
    ("manifests/mine.yaml", b"name: mine\ntitle: x\n", "PATH: it lacks access, source, licence, "),
    ("data", b"", "REPRO_DATA is PATH, a file; point it at the folder that holds the data sets"),
    ("manifests/mine.yaml", os.mkfifo, "PATH: is no regular file, or a link that leads nowhere; mend "),
    ("runs/runs", b"", "PATH, the folder of runs, cannot be written (Not a directory); make room or "),
])
def test_a_file_that_is_wrong_is_named_once_and_the_rest_is_examined(tmp_path, monkeypatch, place, contents, line):
    (tmp_path / "manifests").mkdir()
    monkeypatch.setenv("REPRO_MANIFESTS", str(tmp_path / "manifests"))
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    contents(tmp_path / place) if callable(contents) else (tmp_path / place).write_bytes(contents)
    count, lines = examined()
    assert count == 1 and lines[-1].startswith(f"  {line.replace('PATH', str(tmp_path / place))}")
    assert any(line.startswith("runs: 0 of REPRO_RUNS") for line in lines)


def test_data_are_read_and_where_that_fails_other_sections_follow(monkeypatch):
    def refused(*about):
        raise PermissionError(13, "Permission denied", "data")

    with monkeypatch.context() as patch:
        patch.setattr("repro.data.files._state_of", lambda declared, root: ("present", ""))
        patch.setattr("repro.data.files.verified_members", refused)
        count, lines = examined()
        assert count and "reading ucla" in lines and "  [Errno 13] Permission denied: 'data'" in lines
    monkeypatch.setattr("repro.data.files.status", refused)
    count, lines = examined()
    assert count == 1 and any(line.startswith("runs: ") for line in lines)
    assert lines[-1] == ("  [Errno 13] Permission denied: 'data'; give yourself the right to read it, or point "
                         "REPRO_DATA and REPRO_RUNS elsewhere")


def test_sound_runs_are_counted(runs_root, finished):
    whole, half, refused = (dataclasses.replace(RUN, seed=seed) for seed in (1, 2, 3))
    Store(runs_root).folder(whole).finish(RESULT)
    Store(runs_root).folder(half).begin()
    with Store(runs_root).folder(refused).claim():
        pass  # as it began: nothing was trained
    assert found(runs_root) == (["runs: 2 of REPRO_RUNS, 0 of figures/runs.csv"], [])
    other = dataclasses.replace(RUN, study="unheard of")
    Store(runs_root).folder(other).finish(RESULT)
    assert found(runs_root)[1] == [f"the run {other.id} is of no study, 'unheard of'; take the version that wrote it"]


@pytest.mark.parametrize("name", ["result.json", "recipe.json"])
def test_what_it_says_of_a_damaged_run_brings_it_back(runs_root, finished, name):
    (finished.path / name).write_text('{"linear": 50.0, "co')
    (count,), (problem,) = found(runs_root)
    assert count.startswith("runs: 0 of ") and problem.startswith(f"{finished.path} is left out: ")
    assert "delete recipe.json and result.json there" in problem
    for part in ("recipe.json", "result.json"):
        (finished.path / part).unlink(missing_ok=True)
    finished.finish(RESULT)
    assert found(runs_root)[1] == [] and read_record(finished.path)["metrics"]["linear"] == 50.0


def test_locks_that_keep_nobody_away_are_named(tmp_path, monkeypatch):
    _, lines = examined()
    assert "locks: held" in lines
    monkeypatch.setattr("fcntl.flock", lambda file, operation: None)
    count, lines = examined()
    message = f"  {tmp_path} is on a file system, or mounted so, that locks do nothing: two processes would train"
    assert count == 1 and lines[-1].startswith(message)
    assert list(tmp_path.iterdir()) == []
