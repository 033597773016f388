"""What runs leave beside numbers: read from their folders, and from committed files."""

import dataclasses
import json

import pandas as pd
import pytest
from made_up_training import RUN, Small
from pandas import DataFrame

import repro
from repro import experiments, papers
from repro.run.store import LOGS, RunFolder, Store, read_frame, write_frame

LINES = [{"step": step, "of": 20, "loss": 10.0 - step, "CD": float(step), "seconds": 0.1} for step in (3, 5, 8, 20)]


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "no data"))


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def folder(tmp_path):
    """The folder of a finished run of four epochs, which has left nothing yet."""
    (tmp_path / "result.json").touch()
    return RunFolder(tmp_path, dataclasses.replace(RUN, recipe=Small(epochs=4)))


def test_reports_are_rows_and_epochs_their_means(folder):
    """Of 20 steps in four epochs, steps 3 and 5 are of the first, 8 of the second, 20 of the last."""
    write(folder.path / "progress.jsonl", LINES)
    assert folder.frame("progress").to_dict("list") == {
        "step": [3, 5, 8, 20], "loss": [7.0, 5.0, 2.0, -10.0], "CD": [3.0, 5.0, 8.0, 20.0]}
    assert folder.frame("epochs").to_dict("list") == {
        "epoch": [1, 2, 4], "loss": [6.0, 2.0, -10.0], "CD": [4.0, 8.0, 20.0]}
    assert folder.frame("similarity").empty and folder.frame("probes").empty
    (folder.path / "result.json").unlink()  # what is trained again has half a log
    assert folder.frame("progress").empty


def test_epochs_of_a_training_that_its_iterations_end_early_are_those_it_has_seen(folder):
    """Of four epochs of ten steps two are trained."""
    write(folder.path / "progress.jsonl", [line | {"steps_per_epoch": 10} for line in LINES])
    assert folder.frame("epochs")["epoch"].tolist() == [1, 2]
    write(folder.path / "probes.jsonl", [{"step": step, "linear": 50.0} for step in (10, 20)])
    assert folder.frame("probes")["epoch"].tolist() == [1, 2]
    assert list(folder.frame("progress")) == ["step", "loss", "CD"]


def test_probes_are_a_row_for_each_epoch_and_measure(folder):
    write(folder.path / "progress.jsonl", LINES)
    write(folder.path / "probes.jsonl", [{"step": step, "linear": 50 + step / 3, "knn1": 40.0} for step in (5, 20)])
    assert folder.frame("probes").to_numpy().tolist() == [
        [1, "knn1", 40.0], [1, "linear", 51.67], [4, "knn1", 40.0], [4, "linear", 56.67]]


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"step": 1}', '{"step": 1, "loss": "a", "CD": 1}'])
def test_a_damaged_line_is_named(folder, line):
    write(folder.path / "progress.jsonl", LINES[:2])
    (folder.path / "progress.jsonl").write_text((folder.path / "progress.jsonl").read_text() + line + "\n")
    with pytest.raises(ValueError, match=r"progress.jsonl cannot be read \(.*delete that folder"):
        folder.frame("progress")


@pytest.mark.parametrize("content", ["", "a,b\n", "a,b\n1\n", "a,b\n1,inf\n", 'a\n"x'])
def test_a_damaged_frame_is_named(folder, content):
    (folder.path / "similarity.csv").write_text(content)
    with pytest.raises(ValueError, match=r"similarity.csv cannot be read \(.*restore it"):
        folder.frame("similarity")


FRAMED = {name: declared for name, declared in papers.pictures().items() if declared.frame}


@pytest.mark.parametrize("name", FRAMED)
def test_committed_frames_are_read_by_experiment_and_the_run_s_own_come_first(name, tmp_path):
    declared = FRAMED[name]
    written = read_frame(experiments.manifest.project_root() / "figures" / f"{name}.csv")
    written = written[written["id"].isin(experiments.everything()["id"])]  # others are kept rows of earlier versions
    rows = pd.concat([repro.results(experiment, frame=declared.frame) for experiment in declared.experiments])
    own = [column for column in written if column in rows]
    assert len(rows.drop_duplicates()) >= len(written) and {"id", "seed", "dataset", "preset"} <= {*own}
    both = rows[own].astype(str).merge(written[own].astype(str), how="right", indicator=True)
    assert (both["_merge"] == "both").all()
    id = written["id"].iloc[0]
    folder = Store().path(id)
    folder.mkdir(parents=True)
    (folder / "result.json").touch()
    if declared.frame in LOGS:
        write(folder / "progress.jsonl", LINES)
        write(folder / "probes.jsonl", [{"step": 20, "linear": 50.0}])
    else:
        write_frame(DataFrame({"alone": [1.0]}), folder / f"{declared.frame}.csv")
    again = pd.concat([repro.results(experiment, frame=declared.frame) for experiment in declared.experiments])
    assert 0 < (again["id"] == id).sum() <= 4


def test_an_experiment_without_a_frame_has_no_rows_and_a_frame_that_nothing_leaves_is_refused():
    assert repro.results("taxonomy_ucla", frame="similarity").empty
    with pytest.raises(ValueError, match=r"did you mean 'probes'\? frame='probe' is not one of: epochs, "):
        repro.results("taxonomy_ucla", frame="probe")
