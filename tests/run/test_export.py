"""Finished runs as rows of `figures/runs.csv`: what they hold, how files add up, and which are refused."""

import dataclasses
import json
import re
import shutil

import pandas as pd
import pytest
from made_up_training import RUN, Small

from repro.run.store import COLUMNS, Run, Store, export, finished_runs, merged, read_runs, rows_of


def finish(store, method="CE", seed=0, *, linear=50.0, finished="2026-01-01T00:00:00+00:00", **changes) -> Run:
    """Complete a run of `store`."""
    run = dataclasses.replace(RUN, recipe=Small(method=method), seed=seed, **changes)
    cost = {"seconds": 1.25, "finished": finished, "commit": "1234567", "device": "a CPU, \"the\" usual"}
    store.folder(run).finish({"linear": linear, "knn1": 12.5, "select": "last", "cost": cost})
    return run


def by(runs, *columns):
    """Columns of runs; of the method, which is in the recipe."""
    methods = [json.loads(recipe).get("method") for recipe in runs["recipe"]]
    return list(runs.assign(method=methods)[list(columns)].itertuples(index=False, name=None))


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


def test_reading_gives_back_what_was_written_and_exporting_again_changes_nothing(store, tmp_path):
    path = tmp_path / "figures" / "runs.csv"
    assert len(export(finished_runs(store), path)[1]) == 0 and path.read_text() == ",".join(COLUMNS) + "\n"
    finish(store, "NA", digest="00123", dataset="null")  # text that looks like something else
    finish(store, "CE", 2, linear=1 / 3)
    finish(store, "AE", preset="smoke")  # which is left out
    written, read = export(finished_runs(store), path)[1], read_runs(path)
    assert by(read, *COLUMNS) == by(written, *COLUMNS)
    assert by(read, "method", "seed", "digest", "dataset") == [("NA", 0, "00123", "null"), ("CE", 2, "d1", "synthetic")]
    assert json.loads(read["metrics"][1])["linear"] == 1 / 3  # to the last bit
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
    linear = {(row.seed, json.loads(row.recipe)["method"]): json.loads(row.metrics)["linear"]
              for row in runs.itertuples()}
    assert linear == {(0, "CE"): 2.0, (0, "AE"): 2.0, (1, "CD"): 1.0, (2, "CD"): 2.0}


@pytest.mark.parametrize("order", [1, -1])
def test_of_one_run_the_newest_evaluation_counts_whichever_finished_last(store, order):
    finish(store, linear=50.0, finished="2026-02-01T00:00:00+00:00")
    earlier, newer = finished_runs(store), finished_runs(store)
    newer["metrics"] = json.dumps({"linear": 60.0, "evaluation": 2})
    newer["cost"] = newer["cost"].str.replace("2026-02", "2026-01")
    copy = earlier.copy()
    metrics, = merged(*(earlier, newer)[::order])["metrics"]
    assert json.loads(metrics)["linear"] == 60.0
    pd.testing.assert_frame_equal(earlier, copy)


def test_rows_of_runs_are_in_their_order_without_those_that_are_not_finished(store):
    runs = [finish(store, method) for method in ("CE", "AE", "CD")]
    unfinished = dataclasses.replace(runs[0], seed=7)
    for order in (runs, runs[::-1]):
        assert rows_of([unfinished, *order], store)["id"].tolist() == [run.id for run in order]
    assert rows_of([unfinished], store).empty


def test_a_run_that_was_copied_into_the_folder_of_another_is_refused(store):
    """Its numbers would be the other's; a store that is read whole leaves it out."""
    copied, other = finish(store, "AE"), finish(store, "CE", 1)
    shutil.copytree(store.folder(copied).path, store.folder(other).path, dirs_exist_ok=True)
    message = f"id='{copied.id}' is not its folder's, {other.id}.; delete the folder"
    with pytest.raises(ValueError, match=message):
        rows_of([copied, other], store)
    told = []
    assert finished_runs(store, told.append)["id"].tolist() == [copied.id] and re.search(message, told[0])


DAMAGES = {
    "seed='x' should be a whole number": lambda text: text.replace(",0,", ",x,", 1),
    "seed='-1' should be a whole number": lambda text: text.replace(",0,", ",-1,", 1),
    "11 values, expected 12": lambda text: text.rpartition(",")[0] + "\n",
    "13 values": lambda text: text.rstrip("\n") + ",more\n",
    "version='one' should be a whole number": lambda text: text.replace(",d1,1,", ",d1,one,"),
    "'NaN' is not a finite number": lambda text: text.replace("50.0", "NaN"),
    "it lacks finished": lambda text: text.replace("finished", "ended"),
}


@pytest.fixture
def two_rows(store, tmp_path):
    """A file of two runs, of which the first has the accuracy 50."""
    path = tmp_path / "runs.csv"
    finish(store, "CE", linear=50.0)
    finish(store, "AE", linear=60.0)
    export(finished_runs(store), path)
    return path


@pytest.mark.parametrize(("message", "damage"), DAMAGES.items(), ids=[*DAMAGES])
def test_a_damaged_row_is_left_out_with_one_line_and_not_lost(store, two_rows, capsys, message, damage):
    header, *rows = two_rows.read_text().splitlines(keepends=True)
    place, = (place for place, row in enumerate(rows) if "50.0" in row)
    rows[place] = damage(rows[place])
    two_rows.write_text("".join([header, *rows]))
    damaged = two_rows.read_bytes()
    for _ in range(2):
        run, = read_runs(two_rows).itertuples()
        assert json.loads(run.metrics)["linear"] == 60.0
    line, = capsys.readouterr().err.splitlines()  # once
    assert line.startswith(f"{two_rows}: line {place + 2}: ") and message in line
    assert line.endswith("the row is left out: restore it from version control")
    with pytest.raises(ValueError, match="the row is left out"):
        export(finished_runs(store), two_rows)
    assert two_rows.read_bytes() == damaged


def test_of_two_rows_of_one_id_the_first_counts_and_the_file_is_not_exported_over(store, two_rows, capsys):
    header, first, second = two_rows.read_text().splitlines(keepends=True)
    two_rows.write_text(header + first + second + first.replace("50.0", "10.0").replace("60.0", "10.0"))
    assert sorted(json.loads(metrics)["linear"] for metrics in read_runs(two_rows)["metrics"]) == [50.0, 60.0]
    id = first.partition(",")[0]
    assert f"line 4: {id} is the id of an earlier row, too; the row is left out" in capsys.readouterr().err
    with pytest.raises(ValueError, match="is the id of an earlier row"):
        export(finished_runs(store), two_rows)


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
