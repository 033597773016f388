"""`repro doctor` on broken folders: what it says, that it says what to do, and that it changes nothing."""

import dataclasses
import json
import shutil
import sys
from types import SimpleNamespace

import pytest
from pandas import DataFrame

from repro import doctor
from repro.audiovisual import recipe as clips
from repro.data import manifest
from repro.data.disk import scratch
from repro.doctor import examined_cells, examined_checkpoints, examined_folder
from repro.experiments import studies
from repro.image import recipe as images
from repro.run.fit import save_checkpoint
from repro.run.store import COLUMNS, Cell, Store, finished_cells, read_cells, read_record
from repro.skeleton.data import load
from repro.skeleton.recipe import smoke
from repro.table import Study

CELL = Cell("skeletons", smoke("synthetic", "CE"), 0, "smoke", "synthetic", "d1", 3)
RESULT = {"linear": 50.0, "cost": {"finished": "2026-01-01T00:00:00+00:00", "commit": "1234567"}}


@pytest.fixture(autouse=True)
def elsewhere(folders, monkeypatch):
    """No data and no runs; whatever is finished was trained by the code at hand."""
    monkeypatch.setattr(Study, "code", property(lambda study: None))


@pytest.fixture
def finished(runs):
    """A finished cell."""
    run = Store(runs).run(CELL)
    run.finish(RESULT)
    return run


def examined():
    """(number of problems, lines)"""
    lines = []
    return doctor.examined(lines.append), "\n".join(lines).splitlines()


def found(runs):
    """(what is said, problems) of the runs, in which nothing changes."""
    before = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "exported", lambda tell: DataFrame(columns=COLUMNS))
        problems = [*examined_cells(said.append), *examined_checkpoints(said.append)]
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == before
    return said, problems


def test_own_cells_of_other_code_and_of_earlier_versions_are_told_in_a_line_each(runs, finished, monkeypatch):
    monkeypatch.setattr(Study, "code", property(lambda study: "0123456789abcdef"))
    Store(runs).run(dataclasses.replace(CELL, version=2)).finish(RESULT)
    said, problems = found(runs)
    assert said[-2:] == ["1 cells of earlier versions of the training are left out", said[-1]]
    line, = problems
    assert line.startswith(f"1 of 1 of your cells of skeletons ({CELL.key}) were trained by other code than that at ")


def test_nothing_is_wrong_where_nothing_is(tmp_path):
    count, lines = examined()
    assert count == 0 and lines[-1] == "problems: 0"
    text = "\n".join(lines)
    assert sys.version.split()[0] in text and str(tmp_path / "runs") in text and "cells: 0 finished" in text
    assert "torch 2." in text and list(tmp_path.iterdir()) == []


def test_damaged_data_are_named(tmp_path):
    path = tmp_path / "data" / "nw_ucla" / "all_sqe.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a download")
    count, lines = examined()
    assert count == 1
    assert lines[-1].startswith(f"  {path} is no archive that can be unpacked")
    assert "fetch it again from https://" in lines[-1]


def test_a_manifest_that_cannot_be_read_is_named_once_and_the_rest_is_examined(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_MANIFESTS", str(tmp_path))
    (tmp_path / "mine.yaml").write_text("name: mine\ntitle: x\n")
    count, lines = examined()
    assert count == 1 and lines[-1].startswith(f"  {tmp_path}/mine.yaml: the manifest lacks access, source, licence, ")
    assert any(line.startswith("cells: 0 finished") for line in lines)


def test_data_with_the_right_names_and_sizes_are_read(monkeypatch):
    def refuse(declared, root):
        raise ValueError(f"{declared.name} has another digest; fetch it again")

    monkeypatch.setattr("repro.data.files._state_of", lambda declared, root: ("present", ""))
    monkeypatch.setattr("repro.data.files.verified_members", refuse)
    count, lines = examined()
    assert count and "reading ucla" in lines and "  ucla has another digest; fetch it again" in lines


def test_a_section_that_cannot_be_read_is_a_problem_and_the_others_follow(monkeypatch):
    def refused():
        raise PermissionError(13, "Permission denied", "data")

    monkeypatch.setattr("repro.data.files.status", refused)
    count, lines = examined()
    assert count == 1 and any(line.endswith("of figures/cells.csv and of the runs") for line in lines)
    assert lines[-1] == ("  [Errno 13] Permission denied: 'data'; give yourself the right to read it, or point "
                         "REPRO_DATA and REPRO_RUNS elsewhere")


def test_sound_cells_are_counted(runs, finished):
    whole, half, refused = (dataclasses.replace(CELL, seed=seed) for seed in (1, 2, 3))
    Store(runs).run(whole).finish(RESULT)
    Store(runs).run(half).begin()
    with Store(runs).run(refused).claim():
        pass  # as it began: nothing was trained
    (count, _), problems = found(runs)
    assert count == "cells: 2 finished can be read" and problems == []


def test_cells_that_an_installed_package_brings_along_are_examined_too(tmp_path, monkeypatch):
    shipped, here = tmp_path / "shipped", tmp_path / "figures"
    committed = read_cells(manifest.shipped("figures") / "cells.csv")
    for folder, rows in ((shipped, committed[:3]), (here, committed[2:5].assign(study="unheard of"))):
        folder.mkdir()
        rows.to_csv(folder / "cells.csv", index=False)
    installed = {"checkout": None, "project_root": tmp_path, "runs_root": tmp_path / "runs"}
    places = SimpleNamespace(**{name: lambda place=place: place for name, place in installed.items()})
    places.shipped = lambda name: shipped
    monkeypatch.setattr("repro.run.store.manifest", places)
    said = []
    problems = [*examined_cells(said.append)]
    assert said[1:] == ["cells: 5 of figures/cells.csv and of the runs"]
    assert sorted(problem.split()[2] for problem in problems) == sorted(committed["key"][2:5])


@pytest.mark.parametrize("name", ["result.json", "recipe.json"])
def test_what_it_says_of_a_damaged_cell_brings_it_back(runs, finished, name):
    (finished.folder / name).write_text('{"linear": 50.0, "co')
    (count, _), (problem,) = found(runs)
    assert count.startswith("cells: 0 finished") and problem.startswith(f"{finished.folder} is left out: ")
    assert "delete recipe.json and result.json there" in problem
    for part in ("recipe.json", "result.json"):
        (finished.folder / part).unlink(missing_ok=True)
    finished.finish(RESULT)
    assert found(runs)[1] == [] and read_record(finished.folder)["metrics"]["linear"] == 50.0


def test_seeds_that_were_measured_or_ran_otherwise_are_listed(runs, monkeypatch):
    cells = [dataclasses.replace(CELL, seed=seed, version=studies()["skeletons"].version) for seed in range(4)]
    for cell in cells:
        cost = RESULT["cost"] | {"precision": "bfloat16" if cell.seed else "float32", "device": f"no. {cell.seed // 2}"}
        Store(runs).run(dataclasses.replace(cell, evaluation=1 + 2 * (cell.seed > 0))).finish(RESULT | {"cost": cost})
    committed = finished_cells(Store(runs))[3:].assign(cost=json.dumps(RESULT["cost"]))
    monkeypatch.setattr("repro.run.store.exported", lambda tell: committed)
    said = []
    problem, = doctor.examined_means(said.append)
    assert problem.startswith(f"another evaluation measured {cells[0].key}, which are in no mean; run the table")
    assert said == [f"skeletons on synthetic: {remark}, of 1 recipe" for remark in (
        "1 of yours in place of ours", "3 runs in bfloat16, 1 in float32", "2 runs on no. 0, 2 on no. 1")]


def test_what_killed_commands_left_is_named(runs):
    left = [runs / name for name in (".report", "figures/.figures")]
    unpacked = runs / "prepared" / "unpacked" / "things.zip-0"
    for folder in (*left, unpacked):
        (folder / "made").mkdir(parents=True)
    said = []
    with scratch(runs / ".others"), scratch(left[1]):  # which a living command uses now
        assert [*examined_folder(said.append)] == []
    assert said[2] == f"left by a killed command, removed by the next of its kind: {left[0]}"
    assert said[3].startswith("unpacked from an archive that is gone") and said[3].endswith(f"delete it: {unpacked}")
    shutil.rmtree(unpacked)
    for folder in left:
        with scratch(folder):
            assert list(folder.iterdir()) == []
    assert [*examined_folder(said.append)] == [] and len(said) == 6


def test_locks_that_keep_nobody_away_are_named(tmp_path, monkeypatch):
    _, lines = examined()
    assert "locks: held against another process" in lines
    (tmp_path / "sitecustomize.py").write_text("import fcntl\nfcntl.flock = lambda file, operation: None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # of the other process
    count, lines = examined()
    message = f"  {tmp_path} is on a file system, or mounted so, that locks do nothing: two processes would train"
    assert count == 1 and lines[-1].startswith(message)
    assert {path.name for path in tmp_path.iterdir()} <= {"sitecustomize.py", "__pycache__"}


@pytest.mark.parametrize(("recipe", "study", "measure"), [
    (smoke("synthetic", "CE"), "skeletons", "linear"), (images.smoke("digits", "sce"), "images", "linear"),
    (clips.smoke("multidigits", "cmacc"), "clips", "linear"), (clips.smoke("esc50", "cmacc"), "clips", "esc50"),
], ids=str)
def test_a_result_without_its_main_measure_is_listed_and_read_by_nothing(runs, capsys, recipe, study, measure):
    cells = [Cell(study, recipe, seed, "smoke", recipe.dataset, "d1", studies()[study].version) for seed in (0, 1)]
    for cell, name in zip(cells, (measure, f"{measure}r"), strict=True):
        Store(runs).run(cell).finish({name: 50.0, "cost": RESULT["cost"]})
    _, (problem,) = found(runs)
    assert problem.startswith(f"the cell {cells[1].key} cannot be read and is left out (it lacks {measure}); ")
    assert studies()[study].tidy(finished_cells(Store(runs)))["key"].tolist() == [cells[0].key]
    assert problem in capsys.readouterr().err


def test_a_file_in_the_place_of_the_data_is_named_by_all_that_reads(tmp_path):
    (tmp_path / "data").write_text("")
    count, lines = examined()
    assert (count, lines[-1]) == (1, f"  REPRO_DATA is {tmp_path}/data, a file; point it at the folder that holds the "
                                  "data sets")
    with pytest.raises(ValueError, match="a file; point it at"):
        load("ucla")


def test_checkpoints_are_read(runs, finished):
    half = Store(runs).run(dataclasses.replace(CELL, seed=1))
    half.begin()
    state = {"step": 3, "seconds": 1.0, "learner": {}}
    for run in (finished, half):
        (run.folder / "progress.jsonl").write_text('{"step": 3, "of": 4}\n')
        save_checkpoint(run.folder, state)
    assert found(runs)[1] == []
    save_checkpoint(half.folder, state | {"step": 10**12})
    _, (problem,) = found(runs)
    assert problem.startswith(f"{half.folder / 'checkpoint.pt'} is of step 1,000,000,000,000, the training has 4; move")
    path = finished.folder / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:-1])
    later = finished.folder / "finetune"  # of a later learner
    later.mkdir()
    (later / "checkpoint.pt").touch()
    damaged, other, _ = sorted(found(runs)[1], key=lambda problem: ("is damaged" not in problem, len(problem)))
    assert other.startswith(f"{later / 'checkpoint.pt'} is damaged")
    assert damaged.startswith(f"{path} is damaged (checksum does not match); an unfinished cell will begin")
