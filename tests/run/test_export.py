import dataclasses
import json

import pandas as pd
import pytest
from one_cell import CELL, Small, first_edition

from repro.run.export import COLUMNS, export, finished_cells, merged, read_cells, rows_of
from repro.run.store import Cell, Store


def finish(store, method="CE", seed=0, *, linear=50.0, finished="2026-01-01T00:00:00+00:00", **changes) -> Cell:
    """Complete a cell of `store`."""
    cell = dataclasses.replace(CELL, recipe=Small(method=method), seed=seed, **changes)
    with store.run(cell).claim():
        cost = {"seconds": 1.25, "finished": finished, "commit": "1234567", "device": "a CPU, \"the\" usual"}
        store.run(cell).finish({"linear": linear, "knn1": 12.5, "select": "last", "cost": cost})
    return cell


def by(cells, *columns):
    """Columns of cells; of the method, which is in the recipe."""
    methods = [json.loads(recipe).get("method") for recipe in cells["recipe"]]
    return list(cells.assign(method=methods)[list(columns)].itertuples(index=False, name=None))


def test_a_row_holds_the_whole_cell(store):
    cell = finish(store, "AE+CD", 3, linear=61.5, changes={"rate": 0.25, "epochs": 4})
    cells = finished_cells(store)
    assert list(cells.columns) == COLUMNS and len(cells) == 1
    row = cells.iloc[0].to_dict()
    assert [row[name] for name in COLUMNS[:7]] == [cell.key, "skeletons", 3, "quick", "synthetic", "d1", 1]
    assert json.loads(row["changes"]) == {"rate": 0.25, "epochs": 4}
    assert Small.from_dict(json.loads(row["recipe"])) == cell.recipe
    assert json.loads(row["metrics"]) == {"linear": 61.5, "knn1": 12.5, "select": "last", "evaluation": 1}
    assert json.loads(row["cost"])["seconds"] == 1.25 and row["commit"] == "1234567"


def test_reading_gives_back_what_was_written(store, tmp_path):
    finish(store, "AE")
    finish(store, "CE", 2, linear=1 / 3)
    written = export(finished_cells(store), tmp_path / "cells.csv")
    read = read_cells(tmp_path / "cells.csv")
    assert by(read, *COLUMNS) == by(written, *COLUMNS) and len(read) == 2
    assert json.loads(read["metrics"][1])["linear"] == 1 / 3  # to the last bit
    assert read["seed"].tolist() == [0, 2] and read["commit"].tolist() == ["1234567"] * 2


def test_text_that_looks_like_something_else_stays_text(store, tmp_path):
    finish(store, "NA", digest="00123", dataset="null")
    export(finished_cells(store), tmp_path / "cells.csv")
    assert by(read_cells(tmp_path / "cells.csv"), "method", "digest", "dataset") == [("NA", "00123", "null")]


def test_exporting_twice_changes_nothing(store, tmp_path):
    path = tmp_path / "figures" / "cells.csv"
    for method in ("CE", "AE", "random"):
        finish(store, method)
    export(finished_cells(store), path)
    before = path.read_bytes()
    export(finished_cells(store), path)
    assert path.read_bytes() == before
    export(finished_cells(Store(tmp_path / "no runs")), path)  # a fresh clone has the file and no runs
    assert path.read_bytes() == before


def test_the_order_is_fixed_whatever_finished_first(tmp_path):
    rows = [("random", 1), ("AE", 0), ("CE", 2), ("AE", 10), ("AE", 2), ("CE", 0)]
    written = []
    for number, order in enumerate((rows, rows[::-1])):
        store = Store(tmp_path / str(number))
        for method, seed in order:
            finish(store, method, seed)
            finish(store, method, seed, study="images", dataset="ucla", preset="paper", digest="d2")
            finish(store, method, seed, study="images", dataset="ucla", preset="quick", digest="d3")
            export(finished_cells(store), tmp_path / f"{number}.csv")
        written.append((tmp_path / f"{number}.csv").read_bytes())
    assert written[0] == written[1]
    cells = read_cells(tmp_path / "0.csv")
    found = by(cells, "study", "dataset", "preset", "recipe", "seed")
    assert found == sorted(found) and len(found) == 18
    first = by(cells, "study", "dataset", "preset", "method", "seed")[:2]
    assert first == [("images", "ucla", "paper", "AE", 0), ("images", "ucla", "paper", "AE", 2)]


def test_exports_of_two_machines_add_up(tmp_path):
    here, there, path = Store(tmp_path / "here"), Store(tmp_path / "there"), tmp_path / "cells.csv"
    finish(here, "AE", linear=1.0)
    finish(there, "CE", linear=2.0)
    export(finished_cells(here), path)
    cells = export(finished_cells(there), path)
    assert by(cells, "method") == [("AE",), ("CE",)]
    assert by(read_cells(path), *COLUMNS) == by(cells, *COLUMNS)


@pytest.mark.parametrize("newest", ["exported", "finished"])
def test_of_the_same_cell_the_one_finished_last_stays(tmp_path, newest):
    exported, finished, path = Store(tmp_path / "a"), Store(tmp_path / "b"), tmp_path / "cells.csv"
    times = ["2026-01-02T00:00:00+00:00", "2026-01-10T00:00:00+00:00"]
    if newest == "exported":
        times.reverse()
    for store, value, time in zip((exported, finished), (1.0, 2.0), times, strict=True):
        finish(store, "CE", linear=value, finished=time)
        finish(store, "AE", linear=value, study="other", finished=times[0])  # at the same time: the store's
    export(finished_cells(exported), path)
    cells = export(finished_cells(finished), path)
    values = {row.study: json.loads(row.metrics)["linear"] for row in cells.itertuples()}
    assert values == {"skeletons": 1.0 if newest == "exported" else 2.0, "other": 2.0}


def test_a_cell_of_two_tables_of_the_first_edition_is_a_row_that_can_be_exported_and_read(store, tmp_path):
    written = {"linear": 50.0, "cost": {"finished": "2026-01-01T00:00:00+00:00", "commit": "1234567"}}
    for table in ("taxonomy", "encoder_collapse"):
        first_edition(store, CELL, table, written)
    (row,) = export(finished_cells(store), tmp_path / "cells.csv").itertuples()
    assert (row.key, row.study, row.changes) == (CELL.key, "skeletons", "null")
    assert by(read_cells(tmp_path / "cells.csv"), *COLUMNS) == [row[1:]]
    assert rows_of([CELL], store)["changes"].tolist() == ["{}"]  # as the cell says of itself


def test_rows_of_cells_are_in_their_order_without_those_that_are_not_finished(store):
    cells = [finish(store, method, linear=linear) for method, linear in (("CE", 1.0), ("AE", 2.0), ("CD", 3.0))]
    unfinished = dataclasses.replace(cells[0], seed=7)
    for order in (cells, cells[::-1]):
        assert rows_of([unfinished, *order], store)["key"].tolist() == [cell.key for cell in order]
    assert rows_of([unfinished], store).empty


def test_smoke_runs_are_not_exported(store, tmp_path):
    finish(store, "AE", preset="smoke")
    finish(store, "CE", preset="quick")
    assert by(export(finished_cells(store), tmp_path / "cells.csv"), "method") == [("CE",)]
    assert sorted(by(finished_cells(store), "method")) == [("AE",), ("CE",)]


def test_nothing_to_export(store, tmp_path):
    path = tmp_path / "cells.csv"
    assert len(read_cells(path)) == len(finished_cells(store)) == 0
    assert len(export(finished_cells(store), path)) == 0
    assert path.read_text() == ",".join(COLUMNS) + "\n"
    assert len(export(finished_cells(store), path)) == 0
    finish(store, "CE")
    assert by(export(finished_cells(store), path), "method", "seed") == [("CE", 0)]


CHANGES = {
    "a column less": lambda cells: cells.drop(columns="digest"),
    "no seeds": lambda cells: cells.drop(columns="seed"),
    "a column more": lambda cells: cells.assign(extra=1),
    "another order": lambda cells: cells[COLUMNS[::-1]],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_other_columns_are_refused_and_the_file_is_left(store, tmp_path, change):
    path = tmp_path / "cells.csv"
    finish(store, "CE")
    change(export(finished_cells(store), path)).to_csv(path, index=False)
    before = path.read_bytes()
    for read in (lambda: read_cells(path), lambda: export(finished_cells(store), path)):
        with pytest.raises(ValueError) as raised:
            read()
        message = str(raised.value)
        assert message.startswith(f"{path} has the columns [") and message.endswith("; restore it from version control")
        assert str(COLUMNS) in message
    assert path.read_bytes() == before


def cut(text):
    return text.rpartition(",")[0] + "\n"


@pytest.mark.parametrize(("damage", "message"), [
    (lambda text: text.replace(",0,", ",x,", 1), "line 2: seed='x' should be a whole number"),
    (lambda text: text.replace(",0,", ",-1,", 1), "line 2: seed='-1' should be a whole number"),
    (cut, "line 2: 11 values, expected 12"), (lambda text: text.rstrip("\n") + ",more\n", "line 2: 13 values"),
    (lambda text: text.replace(",d1,1,", ",d1,one,"), "line 2: version='one' should be a whole number"),
    (lambda text: text.replace("50.0", "NaN"), "line 2: metrics: NaN is not a finite number"),
    (lambda text: text.replace("50.0", "null"), "line 2: metrics: linear is None"),
    (lambda text: text.replace("50.0", "50.0}"), "line 2: metrics: Extra data"),
    (lambda text: text.replace("finished", "ended"), "line 2: cost: it lacks finished"),
    (lambda text: text[:-20], "unexpected end of data"),
])
def test_a_damaged_row_is_named_with_its_line(store, tmp_path, damage, message):
    path = tmp_path / "cells.csv"
    finish(store, "CE", linear=50.0)
    export(finished_cells(store), path)
    text = path.read_text()
    path.write_text(damage(text))
    assert path.read_text() != text
    with pytest.raises(ValueError, match=rf"cells\.csv cannot be read \(.*{message}.*\); restore it from version"):
        read_cells(path)


def test_a_file_of_cells_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"cells\.csv cannot be read \('utf-8' codec .*; restore it"):
        read_cells(path)


def test_a_result_that_does_not_say_when_it_was_finished_is_named(store):
    cell = finish(store, "CE")
    (store.run(cell).folder / "result.json").write_text('{"linear": 50.0, "cost": {"commit": "c"}}')
    with pytest.raises(ValueError, match=rf"the cost of .*{cell.key} is damaged \(it lacks finished\); delete result"):
        finished_cells(store)


def test_merging_leaves_its_arguments_alone(store):
    for seed in range(3):
        finish(store, "CE", seed)
    cells = finished_cells(store)
    copy = cells.copy()
    both = merged(cells[::-1], cells)
    pd.testing.assert_frame_equal(cells, copy)
    assert len(both) == 3


@pytest.mark.parametrize("exported", [0, 1])
def test_of_one_cell_the_newest_evaluation_counts_whichever_finished_last(store, exported):
    finish(store, linear=50.0, finished="2026-02-01T00:00:00+00:00")
    earlier, newer = finished_cells(store), finished_cells(store)
    newer["metrics"] = json.dumps({"linear": 60.0, "evaluation": 2})
    newer["cost"] = newer["cost"].str.replace("2026-02", "2026-01")
    pair = (earlier, newer) if exported == 0 else (newer, earlier)
    metrics, = merged(*pair)["metrics"]
    assert json.loads(metrics)["linear"] == 60.0
