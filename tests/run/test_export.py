import dataclasses
import itertools
import json

import pandas as pd
import pytest

from repro.recipe import Recipe, setting
from repro.report.stored import departures
from repro.run.export import COLUMNS, MixedSeeds, export, finished_cells, merged, read_cells, results, without_mixed
from repro.run.store import Cell, Store


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    objectives: str = setting("CE", "assumed")
    rate: float = setting(0.1, "assumed")
    crop: int | None = setting(None, "assumed")


def finish(store, entry="CE", seed=0, *, linear=50.0, finished="2026-01-01T00:00:00+00:00", **changes) -> Cell:
    """Complete a cell of `store`."""
    usual = {"table": "taxonomy", "preset": "quick", "dataset": "synthetic", "digest": "d1", "version": 1}
    cell = Cell(entry=entry, seed=seed, **{"recipe": Small(objectives=entry)} | usual | changes)
    with store.run(cell).claim():
        cost = {"seconds": 1.25, "finished": finished, "commit": "1234567", "device": "a CPU, \"the\" usual"}
        store.run(cell).finish({"linear": linear, "knn1": 12.5, "select": "last", "cost": cost})
    return cell


def by(cells, *columns):
    return list(cells[list(columns)].itertuples(index=False, name=None))


def test_a_row_holds_the_whole_cell(store):
    cell = finish(store, "AE+CD", 3, linear=61.5)
    cells = finished_cells(store)
    assert list(cells.columns) == COLUMNS and len(cells) == 1
    row = cells.iloc[0].to_dict()
    assert [row[name] for name in COLUMNS[:8]] == [cell.key, "taxonomy", "AE+CD", 3, "quick", "synthetic", "d1", 1]
    assert Small.from_dict(json.loads(row["recipe"])) == cell.recipe
    assert json.loads(row["metrics"]) == {"linear": 61.5, "knn1": 12.5, "select": "last", "evaluation": 1}
    assert json.loads(row["cost"])["seconds"] == 1.25 and row["commit"] == "1234567"


def test_reading_gives_back_what_was_written(store, tmp_path):
    finish(store, "AE")
    finish(store, "CE", 2, linear=1 / 3)
    written = export(store, tmp_path / "cells.csv")
    read = read_cells(tmp_path / "cells.csv")
    assert by(read, *COLUMNS) == by(written, *COLUMNS) and len(read) == 2
    assert json.loads(read["metrics"][1])["linear"] == 1 / 3  # to the last bit
    assert read["seed"].tolist() == [0, 2] and read["commit"].tolist() == ["1234567"] * 2


def test_text_that_looks_like_something_else_stays_text(store, tmp_path):
    finish(store, "NA", digest="00123", dataset="null")
    export(store, tmp_path / "cells.csv")
    assert by(read_cells(tmp_path / "cells.csv"), "entry", "digest", "dataset") == [("NA", "00123", "null")]


def test_exporting_twice_changes_nothing(store, tmp_path):
    path = tmp_path / "figures" / "cells.csv"
    for entry in ("CE", "AE", "random"):
        finish(store, entry)
    export(store, path)
    before = path.read_bytes()
    export(store, path)
    assert path.read_bytes() == before
    export(Store(tmp_path / "no runs"), path)  # a fresh clone has the file and no runs
    assert path.read_bytes() == before


def test_the_order_is_fixed_whatever_finished_first(tmp_path):
    rows = [("random", 1), ("AE", 0), ("CE", 2), ("AE", 10), ("AE", 2), ("CE", 0)]
    written = []
    for number, order in enumerate((rows, rows[::-1])):
        store = Store(tmp_path / str(number))
        for entry, seed in order:
            finish(store, entry, seed)
            finish(store, entry, seed, table="collapse", dataset="ucla", preset="paper")
            finish(store, entry, seed, table="collapse", dataset="ucla", preset="quick", digest="d2")
            export(store, tmp_path / f"{number}.csv")
        written.append((tmp_path / f"{number}.csv").read_bytes())
    assert written[0] == written[1]
    cells = read_cells(tmp_path / "0.csv")
    found = by(cells, "table", "dataset", "preset", "entry", "seed")
    assert found == sorted(found) and len(found) == 18
    assert found[:2] == [("collapse", "ucla", "paper", "AE", 0), ("collapse", "ucla", "paper", "AE", 2)]


def test_exports_of_two_machines_add_up(tmp_path):
    here, there, path = Store(tmp_path / "here"), Store(tmp_path / "there"), tmp_path / "cells.csv"
    finish(here, "AE", linear=1.0)
    finish(there, "CE", linear=2.0)
    export(here, path)
    cells = export(there, path)
    assert by(cells, "entry") == [("AE",), ("CE",)]
    assert by(read_cells(path), *COLUMNS) == by(cells, *COLUMNS)


@pytest.mark.parametrize("newest", ["exported", "finished"])
def test_of_the_same_cell_the_one_finished_last_stays(tmp_path, newest):
    exported, finished, path = Store(tmp_path / "a"), Store(tmp_path / "b"), tmp_path / "cells.csv"
    times = ["2026-01-02T00:00:00+00:00", "2026-01-10T00:00:00+00:00"]
    if newest == "exported":
        times.reverse()
    for store, value, time in zip((exported, finished), (1.0, 2.0), times, strict=True):
        finish(store, "CE", linear=value, finished=time)
        finish(store, "AE", linear=value, table="other", finished=times[0])  # at the same time: the store's
    export(exported, path)
    cells = export(finished, path)
    values = {row.table: json.loads(row.metrics)["linear"] for row in cells.itertuples()}
    assert values == {"taxonomy": 1.0 if newest == "exported" else 2.0, "other": 2.0}


def test_equal_keys_of_two_tables_are_two_rows(store, tmp_path):
    cells = [finish(store, "AE", table=table) for table in ("taxonomy", "encoder_collapse")]
    assert cells[0].key == cells[1].key
    assert len(export(store, tmp_path / "cells.csv")) == 2


def test_smoke_runs_are_not_exported(store, tmp_path):
    finish(store, "AE", preset="smoke")
    finish(store, "CE", preset="quick")
    assert by(export(store, tmp_path / "cells.csv"), "entry") == [("CE",)]
    assert sorted(finished_cells(store)["entry"]) == ["AE", "CE"]


def test_nothing_to_export(store, tmp_path):
    path = tmp_path / "cells.csv"
    assert len(read_cells(path)) == len(finished_cells(store)) == 0
    assert len(export(store, path)) == 0
    assert path.read_text() == ",".join(COLUMNS) + "\n"
    assert len(export(store, path)) == 0
    finish(store, "CE")
    assert by(export(store, path), "entry", "seed") == [("CE", 0)]


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
    change(export(store, path)).to_csv(path, index=False)
    before = path.read_bytes()
    for read in (lambda: read_cells(path), lambda: export(store, path)):
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
    export(store, path)
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


def test_results_spread_the_metrics_of_one_table_and_data_set(store):
    finish(store, "AE", 1, linear=61.0)
    finish(store, "AE", 0, linear=60.0)
    finish(store, "AE", dataset="ucla", digest="d2")
    finish(store, "CE", table="encoder_collapse")
    found = results(finished_cells(store), "taxonomy", "synthetic")
    expected = [("AE", 0, 60.0, 12.5, "last"), ("AE", 1, 61.0, 12.5, "last")]
    assert sorted(by(found, "entry", "seed", "linear", "knn1", "select")) == expected
    assert sorted(found.columns) == sorted([*COLUMNS, "linear", "knn1", "select", "evaluation"])
    assert list(found.index) == [0, 1]


def test_results_pick_the_last_of_equal_entry_preset_and_seed(store):
    days = {number: f"2026-01-{day:02}T00:00:00+00:00" for number, day in ((1, 9), (2, 10), (3, 2))}
    for number, day in days.items():  # the second recipe finished last
        recipe = Small(rate=number / 10)
        finish(store, "CE", recipe=recipe, linear=float(number), finished=day)
    finish(store, "CE", 1, recipe=Small(rate=0.2), linear=7.0)
    finish(store, "CE", preset="paper", digest="d2", linear=8.0)
    cells = finished_cells(store)
    expected = [("paper", 0, 8.0), ("quick", 0, 2.0), ("quick", 1, 7.0)]
    for turned in (cells, cells[::-1].reset_index(drop=True), merged(cells.iloc[:2], cells)):
        found = results(turned, "taxonomy", "synthetic")
        assert sorted(by(found, "preset", "seed", "linear")) == expected


def test_seeds_of_an_entry_are_of_one_version_and_earlier_ones_are_an_entry_of_their_own(store):
    for version, seeds in ((1, (0, 1, 2)), (2, (0, 1)), (3, (1,))):
        for seed in seeds:
            finished = f"2026-0{9 - version}-01T00:00:00+00:00"  # the earliest version finished last
            finish(store, "CE", seed, version=version, linear=10.0 * version + seed, finished=finished)
    finish(store, "AE", version=1, linear=1.0)
    finish(store, "CE", preset="paper", version=1, linear=2.0, digest="d2")
    found = results(finished_cells(store), "taxonomy", "synthetic")
    assert sorted(by(found, "preset", "entry", "version", "seed", "linear")) == [
        ("paper", "CE", 1, 0, 2.0), ("quick", "AE", 1, 0, 1.0), ("quick", "CE", 3, 1, 31.0),
        ("quick", "CE, version=1", 1, 0, 10.0), ("quick", "CE, version=1", 1, 1, 11.0),
        ("quick", "CE, version=1", 1, 2, 12.0), ("quick", "CE, version=2", 2, 0, 20.0),
        ("quick", "CE, version=2", 2, 1, 21.0),
    ]
    assert departures("CE, version=2") == {"version": "2"}


def test_versions_of_other_recipes_are_not_mixed_with_each_other(store):
    """Each version has seeds of one recipe; what changed between the versions may have changed the recipe too."""
    for version, rate in ((1, 0.1), (2, 0.3)):
        for seed in range(2):
            finish(store, "CE", seed, version=version, recipe=Small(rate=rate))
    cells = finished_cells(store)
    assert len(results(cells, "taxonomy", "synthetic")) == 4
    row = cells.index[cells["version"] == 1][0]
    with pytest.raises(MixedSeeds, match="'CE, version=1' differ in rate"):
        results(changed(cells, row, "recipe", rate=0.7), "taxonomy", "synthetic")


def changed(cells, row, column, **fields):
    """The cells with some fields of one cell's recipe changed, or removed if None; or with another digest."""
    cells = cells.copy()
    if column == "digest":
        cells.loc[row, "digest"] = "another"
    else:
        recipe = json.loads(cells.loc[row, "recipe"]) | fields
        kept = {name: value for name, value in recipe.items() if value is not None}
        cells.loc[row, "recipe"] = json.dumps(kept)
    return cells


@pytest.mark.parametrize(("column", "fields", "named"), [
    ("recipe", {"rate": 0.2}, "rate"), ("recipe", {"rate": 0.2, "objectives": "AE"}, "objectives, rate"),
    ("digest", {}, "digest"),
])
def test_seeds_of_other_recipes_or_data_are_not_averaged(store, column, fields, named):
    for seed in range(3):
        finish(store, "CE", seed)
    finish(store, "AE", 5)
    cells = finished_cells(store).sort_values(["entry", "seed"], ignore_index=True)
    mixed = changed(cells, 2, column, **fields)
    keys = ", ".join(mixed.loc[mixed["entry"] == "CE", "key"])
    message = rf"taxonomy on synthetic, quick recipe: seeds 0, 1, 2 of 'CE' differ in {named} \(cells {keys}\); they "
    with pytest.raises(MixedSeeds, match=f"{message}cannot be averaged: run all seeds again, or delete the others"):
        results(mixed, "taxonomy", "synthetic")
    assert len(results(mixed, "taxonomy", "ucla")) == 0


def test_what_cannot_be_averaged_is_left_out_by_table_data_set_and_preset(store):
    settings = (("AE", "quick", "d1"), ("CE", "quick", "d1"), ("CE", "paper", "d2"))
    for seed, (entry, preset, digest) in itertools.product(range(2), settings):
        finish(store, entry, seed, preset=preset, digest=digest)
    cells = finished_cells(store).sort_values(["preset", "entry", "seed"], ignore_index=True)
    pd.testing.assert_frame_equal(without_mixed(cells)[0], cells)
    assert without_mixed(cells)[1] == without_mixed(cells[:0])[1] == [] and without_mixed(cells[:0])[0].empty
    mixed = changed(changed(cells, 2, "digest"), 4, "digest")
    kept, (told,) = without_mixed(mixed)
    pd.testing.assert_frame_equal(kept, mixed[:2])
    assert kept["preset"].unique().tolist() == ["paper"]
    assert "quick recipe: seeds 0, 1 of 'AE' differ in digest" in told
    assert all(key in told for key in mixed["key"][2:]) and not any(key in told for key in kept["key"])
    assert "\n" not in told


def test_a_field_that_came_later_and_the_precision_of_a_device_may_differ(store):
    for seed in range(2):
        finish(store, "CE", seed)
    cells = finished_cells(store)
    for fields in ({"rate": None}, {"precision": "float32"}):
        assert len(results(changed(cells, 1, "recipe", **fields), "taxonomy", "synthetic")) == 2
    both = changed(changed(cells, 0, "recipe", precision="bfloat16"), 1, "recipe", precision="float32")
    assert len(results(both, "taxonomy", "synthetic")) == 2


def test_entries_and_presets_may_differ_from_each_other(store):
    finish(store, "CE", 0)
    finish(store, "AE", 1, digest="d2")
    finish(store, "CE", 1, preset="paper", digest="d3")
    assert len(results(finished_cells(store), "taxonomy", "synthetic")) == 3


def test_results_of_a_table_without_cells(store):
    finish(store, "CE")
    assert len(results(finished_cells(store), "taxonomy", "ucla")) == 0
    assert len(results(read_cells(store.root / "nothing.csv"), "taxonomy", "ucla")) == 0


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
