"""Finished cells as rows of one table, `figures/cells.csv`, from which every figure is redrawn without training."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from repro.data import manifest
from repro.data.disk import write_atomically
from repro.recipe import parse_number
from repro.run.files import check_metrics, check_parts, parse_json, whole_lines
from repro.run.store import Cell, Store, evaluation_of

COLUMNS = ["key", "study", "seed", "preset", "dataset", "digest", "version"]
COLUMNS += ["changes", "recipe", "metrics", "cost", "commit"]


def finished_cells(store: Store) -> DataFrame:
    """One row per finished cell of the store; changes, recipe, metrics and cost as JSON."""
    return DataFrame([_row(cell) for cell in store.finished()], columns=COLUMNS)


def rows_of(cells: Sequence[Cell], store: Store) -> DataFrame:
    """The rows of those of these cells that are finished, in their order, with the changes they say of themselves.

    Raises:
        ValueError: as `Store.run`, if a result is damaged.
    """
    done = [run for run in map(store.run, cells) if (run.folder / "result.json").exists()]
    return DataFrame([_row(run.cell.describe() | {"result": run.read()}) for run in done], columns=COLUMNS)


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


def everything(finished: DataFrame | None = None) -> DataFrame:
    """Every finished cell, of figures/cells.csv and of REPRO_RUNS, of which `finished` are those if they are read.

    Where the package is installed the former are two files: the one that comes with it and that of the current folder.
    """
    exported = read_cells(manifest.project_root() / "figures" / "cells.csv")
    if manifest.checkout() is None:
        exported = merged(read_cells(manifest.shipped("figures") / "cells.csv"), exported)
    return merged(exported, finished_cells(Store(manifest.runs_root())) if finished is None else finished)


def merged(exported: DataFrame, finished: DataFrame) -> DataFrame:
    """Both sets of cells, each key once, of the newest evaluation, of equal ones the one that finished last.

    In a fixed order.
    """
    cells = pd.concat([exported, finished], ignore_index=True)
    evaluations = cells["metrics"].map(json.loads).map(evaluation_of)
    finished_at = cells["cost"].map(json.loads).str["finished"]
    age = DataFrame({"evaluation": evaluations, "finished": finished_at})
    cells = cells.loc[age.sort_values(["evaluation", "finished"], kind="stable").index]
    cells = cells.drop_duplicates("key", keep="last")
    return cells.sort_values(["study", "dataset", "preset", "recipe", "seed", "key"], ignore_index=True)


def export(finished: DataFrame, path: Path) -> DataFrame:
    """Merge finished cells of a store, smoke runs left out, into `path` and return all of its rows."""
    cells = merged(read_cells(path), finished[finished["preset"] != "smoke"])
    write_atomically(path, lambda temporary: cells.to_csv(temporary, index=False))
    return cells


def _checked(line: int, row: list[str]) -> list[str]:
    """The values of a row.

    Raises:
        ValueError: if what should be a number or JSON is something else.
    """
    values = dict(zip(COLUMNS, row, strict=True))
    for name in ("seed", "version"):
        parse_number(f"line {line}: {name}", values[name])
    for name in ("changes", "recipe", "metrics", "cost"):
        if (name, values[name]) == ("changes", "null"):  # of the first edition, which does not say
            continue
        try:
            value = parse_json(values[name])
            if name == "metrics":
                check_metrics(value)
            if name == "cost":
                check_parts(value, {"finished": str})
        except ValueError as error:
            raise ValueError(f"line {line}: {name}: {error}") from error
    return row


def _row(cell: dict[str, Any]) -> dict[str, Any]:
    result = dict(cell["result"])
    cost = result.pop("cost")
    try:
        check_parts(cost, {"finished": str, "commit": str})
    except ValueError as error:
        raise ValueError(f"the cost of {cell['key']} is damaged ({error}); delete result.json there "
                         "and run the table again") from error
    encoded = {"changes": cell["changes"], "recipe": cell["recipe"], "metrics": result, "cost": cost}
    row = cell | {name: json.dumps(value, sort_keys=True) for name, value in encoded.items()}
    return {name: (row | {"commit": cost["commit"]})[name] for name in COLUMNS}
