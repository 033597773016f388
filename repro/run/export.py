"""Finished cells as rows of one table, `figures/cells.csv`, from which every figure is redrawn without training."""

import csv
import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from repro.data import manifest
from repro.data.disk import write_atomically
from repro.recipe import parse_number
from repro.run.store import (
    Cell,
    Store,
    check_measures,
    check_parts,
    evaluation_of,
    parse_json,
    read_description,
    warn_once,
)

COLUMNS = ["key", "study", "seed", "preset", "dataset", "digest", "version"]
COLUMNS += ["changes", "recipe", "metrics", "cost", "commit"]
Tell = Callable[[str], object]


def finished_cells(store: Store, tell: Tell = warn_once) -> DataFrame:
    """One row per finished cell of the store; changes, recipe, metrics and cost as JSON.

    One that is damaged is left out, and what is wrong with it is told; by default a line says so, once.
    """
    rows = []
    for cell in store.finished(tell):
        try:
            rows.append(row_of(cell))
        except ValueError as error:
            tell(f"{store.folder(cell['key'])} is left out: {error}")
    return DataFrame(rows, columns=COLUMNS)


def rows_of(cells: Sequence[Cell], store: Store) -> DataFrame:
    """The rows of those of these cells that are finished, in their order, as their folders describe them.

    Raises ValueError if a description or a result is damaged, or is of another cell than its folder.
    """
    done = [run for run in map(store.run, cells) if (run.folder / "result.json").exists()]
    rows = [row_of(read_description(run.folder / "recipe.json") | {"result": run.read()}) for run in done]
    return DataFrame(rows, columns=COLUMNS)


def read_cells(path: Path, tell: Tell = warn_once) -> DataFrame:
    """The exported cells of `path`, none if it does not exist; a damaged row as a damaged cell of `finished_cells`.

    Raises:
        ValueError: if the file is no table of cells.
    """
    if not path.exists():
        return DataFrame(columns=COLUMNS)
    rows: dict[str, list[str]] = {}
    damaged = []
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            if header != COLUMNS:
                raise ValueError(f"it has the columns {header}, expected {COLUMNS}")
            for row in reader:
                try:
                    key, *_ = checked = _checked(reader.line_num, row)
                    if rows.setdefault(key, checked) is not checked:
                        raise ValueError(f"line {reader.line_num}: {key} is the key of an earlier row, too")
                except ValueError as error:
                    damaged.append(f"{path}: {error}; the row is left out: restore it from version control")
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read ({error}); restore it from version control") from error
    for problem in damaged:
        tell(problem)
    return DataFrame([*rows.values()], columns=COLUMNS).astype({"seed": int, "version": int})


def everything(tell: Tell = warn_once) -> DataFrame:
    """Every finished cell, of figures/cells.csv and of REPRO_RUNS.

    One more column, `whose`, says of each: "ours", "yours", or "replaces ours", where both have trained it.
    """
    committed = exported(tell)
    return with_owners(merged(committed, finished_cells(Store(), tell)), committed)


def with_owners(cells: DataFrame, committed: DataFrame) -> DataFrame:
    """Cells with the column `whose` of `everything`, by the committed ones."""
    numbers = committed["key"] + committed["metrics"] + committed["cost"]
    cells = cells.assign(whose="yours")
    cells.loc[cells["key"].isin(committed["key"]), "whose"] = "replaces ours"
    cells.loc[(cells["key"] + cells["metrics"] + cells["cost"]).isin(numbers), "whose"] = "ours"
    return cells


def exported(tell: Tell = warn_once) -> DataFrame:
    """The cells of figures/cells.csv: of the checkout or, where this package is installed, its own and the folder's."""
    paths = [] if manifest.checkout() else [manifest.shipped("figures") / "cells.csv"]
    paths.append(manifest.project_root() / "figures" / "cells.csv")
    return functools.reduce(merged, [read_cells(path, tell) for path in paths])


@functools.cache
def committed_fields() -> dict[tuple[str, int], set[str]]:
    """By study and version of the training, the fields that recipes of committed cells have."""
    cells = read_cells(manifest.shipped("figures") / "cells.csv")
    found: dict[tuple[str, int], set[str]] = {}
    for study, version, recipe in zip(cells["study"], cells["version"], cells["recipe"], strict=True):
        found.setdefault((study, version), set()).update(json.loads(recipe))
    return found


def merged(exported: DataFrame, finished: DataFrame) -> DataFrame:
    """Both sets of cells in a fixed order: of a key the newest evaluation, of equal ones that of the finished cells.

    No clock is asked: what was trained here again takes the place of what was exported, whatever either says of its
    time.
    """
    cells = pd.concat([exported, finished], ignore_index=True)
    evaluation = cells["metrics"].map(json.loads).map(evaluation_of)
    cells = cells.loc[evaluation.sort_values(kind="stable").index].drop_duplicates("key", keep="last")
    return cells.sort_values(["study", "dataset", "preset", "recipe", "seed", "key"], ignore_index=True)


def export(finished: DataFrame, path: Path) -> DataFrame:
    """Merge finished cells of a store, smoke runs left out, into `path` and return all of its rows.

    ValueError if rows of it are damaged: they would be lost.
    """
    damaged: list[str] = []
    before = read_cells(path, damaged.append)
    if damaged:
        raise ValueError(damaged[0])
    cells = merged(before, finished[finished["preset"] != "smoke"])
    write_atomically(path, lambda temporary: cells.to_csv(temporary, index=False))
    return cells


def _checked(line: int, row: list[str]) -> list[str]:
    """The values of a row; raises ValueError if one is missing, or no number or JSON where it should be."""
    if len(row) != len(COLUMNS):
        raise ValueError(f"line {line}: {len(row)} values, expected {len(COLUMNS)}")
    values = dict(zip(COLUMNS, row, strict=True))
    for name in ("seed", "version"):
        parse_number(f"line {line}: {name}", values[name])
    for name in ("changes", "recipe", "metrics", "cost"):
        try:
            value = parse_json(values[name])
            if name == "metrics":
                check_measures(value)
            if name == "cost":
                check_parts(value, {"finished": str})
        except ValueError as error:
            raise ValueError(f"line {line}: {name}: {error}") from error
    return row


def row_of(cell: dict[str, Any]) -> dict[str, Any]:
    """The row of a cell, a description with its result; ValueError if it does not say when it was finished, of what."""
    metrics = dict(cell["result"])
    cost = metrics.pop("cost")
    try:
        check_parts(cost, {"finished": str, "commit": str})
    except ValueError as error:
        raise ValueError(f"the cost of {cell['key']} is damaged ({error}); delete result.json there "
                         "and run the table again") from error
    texts = {"changes": cell["changes"], "recipe": cell["recipe"], "metrics": metrics, "cost": cost}
    texts = {name: json.dumps(value, sort_keys=True) for name, value in texts.items()}
    return {name: (cell | texts | {"commit": cost["commit"]})[name] for name in COLUMNS}
