"""The record of a run: its id, folder, claims, results, what it leaves, and its row of `figures/runs.csv`."""

import dataclasses
import errno
import json
import os
import re
import shutil

import pandas as pd
import pytest
from made_up_training import RUN, Small
from pandas import DataFrame

import repro
from repro import experiments, papers
from repro.run.store import (
    COLUMNS,
    LOGS,
    Run,
    RunFolder,
    Store,
    evaluation_of,
    export,
    finished_runs,
    merged,
    read_frame,
    read_record,
    read_runs,
    rows_of,
    trained,
    write_frame,
)

COST = {"seconds": 1.25, "finished": "2026-01-01T00:00:00+00:00", "commit": "1234567", "device": "a CPU, \"the\" usual"}
RESULT = {"linear": 50.0, "knn1": 12.5, "select": "last", "cost": COST}


def finish(store, method="CE", seed=0, *, linear=50.0, finished=COST["finished"], **changes) -> Run:
    """Complete a run of `store`."""
    run = dataclasses.replace(RUN, recipe=Small(method=method), seed=seed, **changes)
    store.folder(run).finish(RESULT | {"linear": linear, "cost": COST | {"finished": finished}})
    return run


@pytest.fixture
def folder(store) -> RunFolder:
    """The folder of a complete run of four epochs."""
    folder = store.folder(dataclasses.replace(RUN, recipe=Small(epochs=4)))
    folder.finish(RESULT)
    return folder


# ---------------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize(("change", "same"), [
    *(({name: value}, False) for name, value in (
        ("recipe", Small(epochs=4)), ("recipe", Small(rate=0.25)), ("seed", 1), ("digest", "d2"), ("version", 2),
        ("study", "another paper's"))),
    *(({name: value}, True) for name, value in (
        ("study", "images"), ("preset", "paper"), ("evaluation", 2), ("changes", {"rate": 0.5}), ("dataset", "ucla"),
        ("recipe", Small(rate=0.5)))),
], ids=str)
def test_the_id_depends_on_what_decides_a_training_alone(change, same):
    assert (dataclasses.replace(RUN, **change).id == RUN.id) == same


def test_the_label_says_what_is_trained_and_what_differs_from_the_preset():
    changed = dataclasses.replace(RUN, changes={"epochs": 4, "rate": 0.25})
    assert (RUN.label, changed.label) == ("CE", "CE, epochs=4, rate=0.25")
    assert dataclasses.replace(changed, changes={"crop": None, "targets": ""}).label == "CE, crop=none, targets=none"
    assert f"{RUN}" == "CE, seed 0" and changed == RUN  # the id says what is equal


# ---------------------------------------------------------------------------------------------- the folder


def test_a_run_is_complete_once_its_result_exists(store):
    folder = store.folder(RUN)
    assert folder.path == store.root / "runs" / RUN.id and not folder.path.exists() and folder.result is None
    with folder.claim() as claimed:
        assert claimed and folder.result is None
        assert not (folder.path / "recipe.json").exists()  # nothing has been trained
        for name in ("checkpoint.pt", "checkpoint.previous.pt"):
            (folder.path / name).touch()
        folder.finish(RESULT)
    assert folder.result == RESULT | {"evaluation": 1}
    assert (folder.path / "checkpoint.pt").exists() and not (folder.path / "checkpoint.previous.pt").exists()
    stored = json.loads((folder.path / "recipe.json").read_text())
    assert stored == json.loads(json.dumps(RUN.describe())) and [*stored][:2] == ["id", "study"]
    assert stored.pop("id") == RUN.id
    assert Run(**stored | {"recipe": Small.from_dict(stored["recipe"])}) == RUN


LATER = dataclasses.replace(RUN, evaluation=3)  # the run as it is once more is measured of it


def test_the_version_of_the_evaluation_stands_with_the_result_alone(store):
    assert LATER.id == RUN.id and LATER.describe() == RUN.describe() and "evaluation" not in RUN.describe()
    store.folder(LATER).finish(RESULT)
    assert store.folder(LATER).result == RESULT | {"evaluation": 3}
    assert store.folder(RUN).result["evaluation"] == 3  # a later one is as good


@pytest.mark.parametrize("stored", [{}, {"evaluation": 2}])
def test_an_outdated_result_counts_as_long_as_there_is_no_checkpoint_to_measure_again(store, stored):
    folder, earlier = store.folder(LATER), RESULT | stored
    folder.path.mkdir(parents=True)
    (folder.path / "result.json").write_text(json.dumps(earlier))
    assert folder.result == earlier and evaluation_of(earlier) == stored.get("evaluation", 1)
    (folder.path / "checkpoint.pt").touch()
    assert folder.result is None and folder.complete and folder.done == 1.0
    folder.finish({"linear": 51.0, "cost": {"seconds": 0.0}})
    assert folder.result == {"linear": 51.0, "cost": COST, "evaluation": 3}  # what the training cost stays


@pytest.mark.parametrize(("text", "share"), [
    ("", 0), ("{", 0), ("3", 0), ('{"step": 3}', 0), ('{"step": 3, "of": -1}', 0), ('{"step": "3", "of": 6}', 0),
    ('{"step": 3, "of": 5}', 0.5), ('{"step": 6, "of": 6}', 6 / 7), ('{"step": 30, "of": 6}', 1),
    ('{"step": -3, "of": 6}', 0),
    ('{"step": NaN, "of": 6}', 0), ("[" * 100_000, 0), ('{"step": 1, "of": 9}\n' * 900 + '{"step": 3, "of": 5}', 0.5),
], ids=lambda value: str(value)[:20])
def test_how_much_is_trained_is_a_share_whatever_the_log_holds(tmp_path, text, share):
    (tmp_path / "progress.jsonl").write_text(f'{{"step": 1, "of": 6}}\n{text}\n' if text else "")
    assert trained(tmp_path) == share


# ---------------------------------------------------------------------------------------------- claims


def test_a_claim_is_exclusive_within_a_process_and_released_by_an_exception(store):
    with pytest.raises(KeyboardInterrupt), store.folder(RUN).claim() as first, store.folder(RUN).claim() as second:
        assert first and not second
        raise KeyboardInterrupt
    with store.folder(RUN).claim() as third, store.folder(dataclasses.replace(RUN, seed=1)).claim() as other:
        assert third and other


def test_a_claim_drops_what_killed_processes_left_half_written_and_nothing_else(store):
    folder = store.folder(RUN)
    folder.path.mkdir(parents=True)
    for name in (".checkpoint.pt.0123456789abcdef", ".notes", "progress.jsonl"):
        (folder.path / name).touch()
    with folder.claim():
        assert {path.name for path in folder.path.iterdir()} >= {".notes", "progress.jsonl"}
        assert not (folder.path / ".checkpoint.pt.0123456789abcdef").exists()


def test_a_file_system_without_locks_is_refused(store, monkeypatch):
    def missing(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", missing)
    folder = store.folder(RUN)
    with pytest.raises(OSError, match=r"to a folder on a file system that has locks.*lock'"), folder.claim():
        raise AssertionError("claimed")
    assert not (folder.path / "owner.json").exists()


def test_an_owner_that_cannot_be_read_keeps_nobody_away(store):
    folder = store.folder(RUN)
    folder.path.mkdir(parents=True)
    for damaged in (b'{"process": 12', b"\xff\xfe", b'{"attempts": 3}'):
        (folder.path / "owner.json").write_bytes(damaged)
        folder.wait()
        with folder.claim("attempt") as claimed:
            assert claimed


# ---------------------------------------------------------------------------------------------- damage


def described(**change):
    """Of a description, with other values; those that are ... are left out."""
    return {name: value for name, value in (RUN.describe() | change).items() if value is not ...}


@pytest.mark.parametrize(("name", "content", "message"), [
    *(("result", content, message) for content, message in (
        ("", ""), ("{", ""), ("\x00" * 20, ""), (b"\xff\xfe\x80" * 9, ""), ("[]", "it holds a list"),
        ('{"linear": NaN}', "NaN' is not a finite number"), ('{"linear": 1e999}', "1e999' is not a finite number"),
        ('{"linear": -Infinity}', "-Infinity' is not a finite number"),
        (f'{{"linear": -{"9" * 400}}}', "is not a finite number of 64 bits"),
        (f'{{"linear": {"9" * 5000}}}', "integer string conversion"), ("[" * 100_000, "it is nested too deeply"),
        *((RESULT | {"linear": value}, "linear is ") for value in (None, True, [50.0], "50")),
        ('{"cost": 3}', "cost is 3"), ('{"linear": 1.0}', "it lacks cost"), (RESULT | {"select": 3}, "select is 3"),
        ({"cost": COST | {"device": "\x1b[2J"}}, r"device='\\x1b\[2J', which cannot be printed"),
        (RESULT | {"evaluation": 1.5}, "evaluation is 1.5"), ({"cost": COST | {"code": ["a"]}}, r"code is \['a'\]"),
        ({"cost": COST | {"seconds": "9"}}, "seconds is '9'"),
        *((RESULT | {name: 3}, f"{name} is the name of a column") for name in ("seed", "finished", "value", "epochs")),
        (f'{{"cost": {{}}, "linear": 3{" " * 2**20}}}', "has 1,048,601 bytes, at most 1,048,576 are read"),
        (RESULT | {"cost": {"commit": "c1"}}, "it lacks finished"), ({"cost": {"finished": "today"}}, "lacks commit"),
        (os.mkfifo, "is no regular file"))),  # to open it would wait for ever
    *(("recipe", described(**change), message) for change, message in (
        ({"recipe": None}, "recipe is None"), ({"seed": "0"}, "seed is '0'"), ({"seed": True}, "seed is True"),
        ({"version": 1.0}, "version is 1.0"), ({"changes": "epochs"}, "changes is 'epochs'"), ({"study": ...}, "lacks"),
        ({"digest": ...}, "it lacks digest"), ({"seed": -1}, "seed=-1"), ({"version": 0}, "version=0 should be"),
        ({"dataset": "ucla\udcff"}, "surrogates not allowed"), ({"changes": {"\ud800": 1}}, "surrogates not allowed"),
        ({"id": "3e38"}, "id='3e38' is not its folder's, "))),
    ("recipe", os.mkfifo, "is no regular file"), ("recipe", lambda path: None, "No such file"),
], ids=lambda value: str(value)[:20])
def test_a_damaged_record_is_named_and_left_out_with_one_line(store, name, content, message, capsys):
    folder = store.folder(RUN)
    folder.finish(RESULT)
    path = folder.path / f"{name}.json"
    if callable(content):
        path.unlink()
        content(path)
    else:
        content = json.dumps(content) if isinstance(content, dict) else content
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"^{path} cannot be read \(.*{message}.*\); delete "):
        read_record(folder.path)
    assert finished_runs(store).empty and finished_runs(store).empty
    line, = capsys.readouterr().err.splitlines()  # once
    assert line.startswith(f"{folder.path} is left out: {path} cannot be read (")


@pytest.mark.parametrize("measures", [{"linear": "fifty"}, {"seed": 3}, {"linear": None}, {"epochs": 3}], ids=str)
def test_a_result_that_nobody_could_read_is_not_written(store, measures):
    folder = store.folder(RUN)
    with pytest.raises(ValueError, match=f"{next(iter(measures))} is "):
        folder.finish(RESULT | measures)
    assert not folder.path.exists()


# ---------------------------------------------------------------------------------------------- frames

LINES = [{"step": step, "of": 20, "loss": 10.0 - step, "CD": float(step), "seconds": 0.1} for step in (3, 5, 8, 20)]


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_reports_are_rows_and_epochs_their_means_and_probes_a_row_for_each_measure(folder):
    """Of 20 steps in four epochs, steps 3 and 5 are of the first, 8 of the second, 20 of the last."""
    write(folder.path / "progress.jsonl", LINES)
    write(folder.path / "probes.jsonl", [{"step": step, "linear": 50 + step / 3, "knn1": 40.0} for step in (5, 20)])
    assert folder.frame("progress").to_dict("list") == {
        "step": [3, 5, 8, 20], "loss": [7.0, 5.0, 2.0, -10.0], "CD": [3.0, 5.0, 8.0, 20.0]}
    assert folder.frame("epochs").to_dict("list") == {
        "epoch": [1, 2, 4], "loss": [6.0, 2.0, -10.0], "CD": [4.0, 8.0, 20.0]}
    assert folder.frame("probes").to_numpy().tolist() == [
        [1, "knn1", 40.0], [1, "linear", 51.67], [4, "knn1", 40.0], [4, "linear", 56.67]]
    assert folder.frame("similarity").empty
    (folder.path / "result.json").unlink()  # what is trained again has half a log
    assert folder.frame("progress").empty


def test_epochs_of_a_training_that_its_iterations_end_early_are_those_it_has_seen(folder):
    """Of four epochs of ten steps two are trained."""
    write(folder.path / "progress.jsonl", [line | {"steps_per_epoch": 10} for line in LINES])
    assert folder.frame("epochs")["epoch"].tolist() == [1, 2]
    write(folder.path / "probes.jsonl", [{"step": step, "linear": 50.0} for step in (10, 20)])
    assert folder.frame("probes")["epoch"].tolist() == [1, 2]
    assert list(folder.frame("progress")) == ["step", "loss", "CD"]


@pytest.mark.parametrize(("name", "content", "step"), [
    *(("progress.jsonl", json.dumps(LINES[0]) + f"\n{line}\n", "delete that folder")
      for line in ("{", "[]", "{}", '{"step": 1}', '{"step": 1, "loss": "a", "CD": 1}')),
    *((name, "".join(json.dumps(line | change) + "\n" for line in LINES), "delete that folder")
      for change in ({"step": -3}, {"step": 0}, {"step": 5}, {"step": 2.5}, {"step": 21}, {"step": "5"}, {"loss": None},
                     {"loss": True}, {"CD": 1e308}, {"steps_per_epoch": 0}, {"of": 0}, {"of": "20"})
      for name in ("progress.jsonl", "probes.jsonl")), ("progress.jsonl", os.mkfifo, "is no regular file"),
    *(("similarity.csv", content, "restore it") for content in ("", "a,b\n", "a,b\n1\n", "a,b\n1,inf\n", 'a\n"x')),
])
def test_a_damaged_frame_is_named(folder, name, content, step):
    path = folder.path / name
    content(path) if callable(content) else path.write_text(content)
    with pytest.raises(ValueError, match=rf"^{path} cannot be read \(.*{step}"):
        folder.frame(name.partition(".")[0])


FRAMED = {name: declared for name, declared in papers.pictures().items() if declared.frame}


@pytest.mark.parametrize("name", FRAMED)
def test_committed_frames_are_read_by_experiment_and_the_run_s_own_come_first(name, folders):
    declared = FRAMED[name]

    def rows():
        return pd.concat([repro.results(experiment, frame=declared.frame) for experiment in declared.experiments])

    written = read_frame(experiments.manifest.project_root() / "figures" / f"{name}.csv")
    written = written[written["id"].isin(experiments.everything()["id"])]  # others are kept rows of earlier versions
    found = rows()
    own = [column for column in written if column in found]
    assert len(found.drop_duplicates()) >= len(written) and {"id", "seed", "dataset", "preset"} <= {*own}
    both = found[own].astype(str).merge(written[own].astype(str), how="right", indicator=True)
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
    assert 0 < (rows()["id"] == id).sum() <= 4


def test_an_experiment_without_a_frame_has_no_rows_and_a_frame_that_nothing_leaves_is_refused(folders):
    assert repro.results("taxonomy_ucla", frame="similarity").empty
    with pytest.raises(ValueError, match=r"did you mean 'probes'\? frame='probe' is not one of: epochs, "):
        repro.results("taxonomy_ucla", frame="probe")


# ---------------------------------------------------------------------------------------------- rows of a file


def by(runs, *columns):
    """Columns of runs; of the method, which is in the recipe."""
    methods = [json.loads(recipe).get("method") for recipe in runs["recipe"]]
    return list(runs.assign(method=methods)[list(columns)].itertuples(index=False, name=None))


def linears(runs):
    return [json.loads(metrics)["linear"] for metrics in runs["metrics"]]


def test_a_row_holds_the_whole_run(store):
    run = finish(store, "AE+CD", 3, linear=61.5, changes={"rate": 0.25, "epochs": 4})
    runs = finished_runs(store)
    assert list(runs.columns) == COLUMNS and len(runs) == 1
    row = runs.iloc[0].to_dict()
    assert [row[name] for name in COLUMNS[:7]] == [run.id, "skeletons", 3, "quick", "synthetic", "d1", 1]
    assert json.loads(row["changes"]) == {"rate": 0.25, "epochs": 4}
    assert Small.from_dict(json.loads(row["recipe"])) == run.recipe
    assert json.loads(row["metrics"]) == {"linear": 61.5, "knn1": 12.5, "select": "last", "evaluation": 1}
    assert json.loads(row["cost"])["seconds"] == 1.25 and row["commit"] == "1234567"


def test_finished_runs_are_those_that_are_complete_by_id(store):
    assert not store.root.exists() and finished_runs(store).empty
    runs = [finish(store, seed=seed) for seed in range(6)]
    store.folder(dataclasses.replace(RUN, seed=9)).begin()  # not complete
    (store.root / "prepared" / "ucla-1234").mkdir(parents=True)
    assert finished_runs(store)["id"].tolist() == sorted(run.id for run in runs)
    for order in (runs, runs[::-1]):
        asked = [dataclasses.replace(RUN, seed=7), *order]
        assert rows_of(asked, store)["id"].tolist() == [run.id for run in order]
    assert rows_of(asked[:1], store).empty


def test_a_run_that_was_copied_into_the_folder_of_another_is_refused(store):
    """Its numbers would be the other's; a store that is read whole leaves it out."""
    copied, other = finish(store, "AE"), finish(store, "CE", 1)
    shutil.copytree(store.folder(copied).path, store.folder(other).path, dirs_exist_ok=True)
    message = f"id='{copied.id}' is not its folder's, {other.id}.; delete the folder"
    with pytest.raises(ValueError, match=message):
        rows_of([copied, other], store)
    told = []
    assert finished_runs(store, told.append)["id"].tolist() == [copied.id] and re.search(message, told[0])


def test_a_copy_of_a_run_elsewhere_in_the_store_does_not_take_its_place(store):
    run, told = finish(store, "AE", linear=50.0), []
    copy = store.root / "runs" / "backup" / run.id
    shutil.copytree(store.folder(run).path, copy)
    path = copy / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"linear": 99.0}))
    for runs in (finished_runs(store, told.append), rows_of([run], store)):
        assert linears(runs) == [50.0] and told == []


def test_reading_gives_back_what_was_written_and_exporting_again_changes_nothing(store, tmp_path):
    path = tmp_path / "figures" / "runs.csv"
    assert len(export(finished_runs(store), path)[1]) == 0 and path.read_text() == ",".join(COLUMNS) + "\n"
    finish(store, "NA", digest="00123", dataset="null")  # text that looks like something else
    finish(store, "CE", 2, linear=1 / 3)
    finish(store, "AE", preset="smoke")  # which is left out
    written, read = export(finished_runs(store), path)[1], read_runs(path)
    assert by(read, *COLUMNS) == by(written, *COLUMNS)
    assert by(read, "method", "seed", "digest", "dataset") == [("NA", 0, "00123", "null"), ("CE", 2, "d1", "synthetic")]
    assert linears(read)[1] == 1 / 3  # to the last bit
    before = path.read_bytes()
    for source in (store, Store(tmp_path / "no runs")):  # a fresh clone has the file and no runs
        export(finished_runs(source), path)
        assert path.read_bytes() == before


def test_the_order_is_fixed_whatever_finished_first(tmp_path):
    rows = [("random", 1), ("AE", 0), ("CE", 2), ("AE", 10), ("AE", 2), ("CE", 0)]
    written = []
    for number, order in enumerate((rows, rows[::-1])):
        store, path = Store(tmp_path / str(number)), tmp_path / f"{number}.csv"
        for method, seed in order:
            finish(store, method, seed)
            finish(store, method, seed, study="images", dataset="ucla", preset="paper", digest="d2")
            export(finished_runs(store), path)
        written.append(path.read_bytes())
    assert written[0] == written[1]
    runs = by(read_runs(tmp_path / "0.csv"), "study", "dataset", "preset", "recipe", "seed")
    assert runs == sorted(runs) and len(runs) == 12


@pytest.mark.parametrize("clock", ["right", "of the past"])
def test_exports_of_two_machines_add_up_and_of_a_run_the_one_in_the_store_stays(tmp_path, clock):
    here, there, path = Store(tmp_path / "here"), Store(tmp_path / "there"), tmp_path / "runs.csv"
    times = ["2026-01-02T00:00:00+00:00", "2026-01-10T00:00:00+00:00"][:: 1 if clock == "right" else -1]
    for store, value, time in zip((here, there), (1.0, 2.0), times, strict=True):
        finish(store, "CE", linear=value, finished=time)
        finish(store, "AE", linear=value, finished=times[0])  # at the same time
        finish(store, "CD", int(value), linear=value)
    export(finished_runs(here), path)
    _, runs = export(finished_runs(there), path)
    linear = dict(zip(by(runs, "seed", "method"), linears(runs), strict=True))
    assert linear == {(0, "CE"): 2.0, (0, "AE"): 2.0, (1, "CD"): 1.0, (2, "CD"): 2.0}


@pytest.mark.parametrize("order", [1, -1])
def test_of_one_run_the_newest_evaluation_counts_whichever_finished_last(store, order):
    finish(store, linear=50.0, finished="2026-02-01T00:00:00+00:00")
    earlier, newer = finished_runs(store), finished_runs(store)
    newer["metrics"] = json.dumps({"linear": 60.0, "evaluation": 2})
    newer["cost"] = newer["cost"].str.replace("2026-02", "2026-01")
    copy = earlier.copy()
    assert linears(merged(*(earlier, newer)[::order])) == [60.0]
    pd.testing.assert_frame_equal(earlier, copy)


@pytest.fixture
def two_rows(store, tmp_path):
    """A file of two runs, of which one has the accuracy 50."""
    path = tmp_path / "runs.csv"
    finish(store, "CE", linear=50.0)
    finish(store, "AE", linear=60.0)
    export(finished_runs(store), path)
    return path


@pytest.mark.parametrize(("message", "damage"), [
    ("seed='x' should be a whole number", lambda row, _: row.replace(",0,", ",x,", 1)),
    ("seed='-1' should be a whole number", lambda row, _: row.replace(",0,", ",-1,", 1)),
    ("11 values, expected 12", lambda row, _: row.rpartition(",")[0] + "\n"),
    ("13 values", lambda row, _: row.rstrip("\n") + ",more\n"),
    ("version='one' should be a whole number", lambda row, _: row.replace(",d1,1,", ",d1,one,")),
    ("'NaN' is not a finite number", lambda row, _: row.replace("50.0", "NaN")),
    ("it lacks finished", lambda row, _: row.replace("finished", "ended")),
    ("is the id of an earlier row, too", lambda row, other: other.replace("60.0", "10.0")),
])
def test_a_damaged_row_is_left_out_with_one_line_and_not_lost(store, two_rows, capsys, message, damage):
    header, *rows = two_rows.read_text().splitlines(keepends=True)
    rows.sort(key=lambda row: "50.0" in row)
    two_rows.write_text("".join([header, rows[0], damage(rows[1], rows[0])]))
    damaged = two_rows.read_bytes()
    for _ in range(2):
        assert linears(read_runs(two_rows)) == [60.0]
    line, = capsys.readouterr().err.splitlines()  # once
    assert line.startswith(f"{two_rows}: line 3: ") and message in line
    assert line.endswith("the row is left out: restore it from version control")
    with pytest.raises(ValueError, match="the row is left out"):
        export(finished_runs(store), two_rows)
    assert two_rows.read_bytes() == damaged


@pytest.mark.parametrize(("message", "damage"), [
    ("unexpected end of data", lambda text: text[:-20]),
    ("it has the columns .*, expected .*'digest'", lambda text: text.replace("digest,", "", 1)),
    ("it has the columns", lambda text: text.replace("digest,version", "version,digest", 1)),
    ("it has the columns", lambda text: text.replace("id,", "id,id,", 1)),
    ("it has the columns", lambda text: ""), ("'utf-8' codec", lambda text: "\udcff"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_file_that_is_no_table_of_runs_is_named_and_left(store, two_rows, damage, message):
    two_rows.write_text(damage(two_rows.read_text()), errors="surrogateescape")
    damaged = two_rows.read_bytes()
    for read in (lambda: read_runs(two_rows), lambda: export(finished_runs(store), two_rows)):
        with pytest.raises(ValueError, match=rf"runs\.csv cannot be read \({message}.*\); restore it from version"):
            read()
    assert two_rows.read_bytes() == damaged
