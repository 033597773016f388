"""Finished cells as rows of one table, `figures/cells.csv`, from which every figure is redrawn without training."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame, Series

from repro.recipe import parse_number
from repro.run.csv_files import whole_lines
from repro.run.json_files import check_metrics, check_parts, parse_json
from repro.run.store import Store, evaluation_of, write_atomically


class MixedSeeds(ValueError):
    """Seeds of one entry come from different recipes or data."""


COLUMNS = ["key", "table", "entry", "seed", "preset", "dataset", "digest", "version"]
COLUMNS += ["recipe", "metrics", "cost", "commit"]
CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {  # of the columns that are JSON objects
    "recipe": functools.partial(check_parts, parts={}),
    "metrics": check_metrics,
    "cost": functools.partial(check_parts, parts={"finished": str}),
}


def finished_cells(store: Store) -> DataFrame:
    """One row per finished cell of the store; recipe, metrics and cost as JSON."""
    return DataFrame([_row(cell) for cell in store.finished()], columns=COLUMNS)


def read_cells(path: Path) -> DataFrame:
    """The exported cells of `path`, none if it does not exist.

    Raises:
        ValueError: if the file is damaged or has other columns than ours; with the line, if a value is none of ours.
    """
    if not path.exists():
        return DataFrame(columns=COLUMNS)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = whole_lines(file)
            _, header = next(lines)
            rows = [_checked(line, row) for line, row in lines] if header == COLUMNS else []
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); restore it from version control") from error
    if header != COLUMNS:
        raise ValueError(f"{path} has the columns {header}, expected {COLUMNS}; restore it from version control")
    return DataFrame(rows, columns=COLUMNS).astype({"seed": int, "version": int})


def merged(exported: DataFrame, finished: DataFrame) -> DataFrame:
    """Both sets of cells, each (table, key) once, of the newest evaluation, of equal ones the one that finished last.

    In a fixed order.
    """
    cells = pd.concat([exported, finished], ignore_index=True)
    age = DataFrame({"evaluation": cells["metrics"].map(_evaluation), "finished": cells["cost"].map(_finished_at)})
    cells = cells.loc[age.sort_values(["evaluation", "finished"], kind="stable").index]
    cells = cells.drop_duplicates(["table", "key"], keep="last")
    return cells.sort_values(["table", "dataset", "preset", "entry", "seed", "key"], ignore_index=True)


def export(store: Store, path: Path) -> DataFrame:
    """Merge the store's finished cells, smoke runs left out, into `path` and return all of its rows."""
    finished = finished_cells(store)
    cells = merged(read_cells(path), finished[finished["preset"] != "smoke"])
    write_atomically(path, lambda temporary: cells.to_csv(temporary, index=False))
    return cells


def results(cells: DataFrame, table: str, dataset: str) -> DataFrame:
    """A table's cells on a data set, metrics as columns; of equal entry, preset and seed the one finished last.

    The seeds of an entry are of one version of the training, the newest that has a finished cell; those of an earlier
    one form an entry of their own, which names it: "CE, version=2".

    Raises:
        MixedSeeds: if the seeds of an entry are not those of one recipe on the same data.
    """
    chosen = cells[(cells["table"] == table) & (cells["dataset"] == dataset)]
    chosen = chosen.assign(entry=_with_version(chosen))
    chosen = chosen.iloc[chosen["cost"].map(_finished_at).argsort(kind="stable")]
    chosen = chosen.drop_duplicates(["entry", "preset", "seed"], keep="last").sort_index().reset_index(drop=True)
    for preset, rows in chosen.groupby("preset"):
        mixed = [_mixed(entry, seeds) for entry, seeds in rows.groupby("entry") if _differing(seeds)]
        if mixed:
            raise MixedSeeds(
                f"{table} on {dataset}, {preset} recipe: {'; '.join(mixed)}; they cannot be averaged: run all seeds "
                "again, or delete the others, a row of figures/cells.csv or a folder of that name in REPRO_RUNS"
            )
    return pd.concat([chosen, DataFrame(chosen["metrics"].map(json.loads).tolist())], axis=1)


def _with_version(cells: DataFrame) -> Series:
    """The entries of cells, followed by the version where it is not the newest that the entry has with its preset."""
    newest = cells.groupby(["entry", "preset"])["version"].transform("max")
    named = cells["entry"] + ", version=" + cells["version"].astype(str)
    return cells["entry"].where(cells["version"] == newest, named)


def without_mixed(cells: DataFrame) -> tuple[DataFrame, list[str]]:
    """The cells of every table, data set and preset in which `results` can average seeds, and why the others are not.

    Returns:
        The cells, as they come, and a line for each table, data set and preset that is left out.
    """
    kept, told = [cells[:0]], []
    for (table, dataset, _), rows in cells.groupby(["table", "dataset", "preset"], sort=False):
        try:
            results(rows, table, dataset)
        except MixedSeeds as error:
            told.append(str(error))
        else:
            kept.append(rows)
    return pd.concat(kept).sort_index(), told


def _checked(line: int, row: list[str]) -> list[str]:
    """The values of a row.

    Raises:
        ValueError: if what should be a number or JSON is something else.
    """
    values = dict(zip(COLUMNS, row, strict=True))
    for name in ("seed", "version"):
        parse_number(f"line {line}: {name}", values[name])
    for name, check in CHECKS.items():
        try:
            check(parse_json(values[name]))
        except ValueError as error:
            raise ValueError(f"line {line}: {name}: {error}") from error
    return row


def _mixed(entry: str, seeds: DataFrame) -> str:
    """What differs between the seeds of an entry, and the keys of their cells."""
    seeds = seeds.sort_values("seed")
    listed = ", ".join(map(str, seeds["seed"]))
    return f"seeds {listed} of {entry!r} differ in {', '.join(_differing(seeds))} (cells {', '.join(seeds['key'])})"


def _differing(seeds: DataFrame) -> list[str]:
    """What differs between the seeds of an entry: fields of their recipes, or "digest", that of the data.

    A field that one of them lacks was added later, with the earlier behaviour. The precision follows from the kind of
    device, unless the entry names it.
    """
    first, *others = seeds["recipe"].map(json.loads)
    shared = set(first).intersection(*others) - {"precision"}
    fields = sorted(name for name in shared if any(other[name] != first[name] for other in others))
    return fields + (["digest"] if seeds["digest"].nunique() > 1 else [])


def _row(cell: dict[str, Any]) -> dict[str, Any]:
    result = dict(cell["result"])
    cost = result.pop("cost")
    try:
        check_parts(cost, {"finished": str, "commit": str})
    except ValueError as error:
        raise ValueError(f"the cost of {cell['table']}/{cell['key']} is damaged ({error}); delete result.json there "
                         "and run the table again") from error
    encoded = {"recipe": cell["recipe"], "metrics": result, "cost": cost}
    row = cell | {name: json.dumps(value, sort_keys=True) for name, value in encoded.items()}
    return {name: (row | {"commit": cost["commit"]})[name] for name in COLUMNS}


def _evaluation(metrics: str) -> int:
    return evaluation_of(json.loads(metrics))


def _finished_at(cost: str) -> str:
    return json.loads(cost)["finished"]
