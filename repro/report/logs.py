"""Finished cells as the reader's side takes them, and the logs that figures need of their folders, as CSV files."""

import io
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from tqdm.auto import tqdm

from repro.data import manifest
from repro.data.disk import write_atomically
from repro.recipe import choose, entry_name, parse_numbers
from repro.run.export import everything, rows_of, whole_lines
from repro.run.finished import read_table
from repro.run.store import Cell, Store, parse_json

if TYPE_CHECKING:
    from repro.table import Table  # above this module, which is handed tables

PRESETS = ("paper", "quick", "smoke")
NAMED = ("key", "seed", "dataset", "preset")  # of the cell that a row of a log comes from
TEXTS = ("key", "dataset", "preset")  # those of them that are no numbers


def stored(dataset: str = "all", *, preset: str = "auto", seeds: str | int = "all") -> DataFrame:
    """Finished cells of one data set, preset and some seeds, as `run.export.everything` gives them.

    Args:
        dataset: "all" or a name in `repro data list`; a part or copy of a data set counts as it.
        preset: "paper", "quick", "smoke", or "auto": all but smoke runs.
        seeds: "all", or a comma list of whole numbers.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
    """
    choose("dataset", dataset, ("all", *manifest.names()))
    choose("preset", preset, ("auto", *PRESETS))
    numbers = None if seeds == "all" else parse_numbers("seeds", seeds)
    cells = everything()
    cells = cells[cells["preset"] == preset] if preset != "auto" else cells[cells["preset"] != "smoke"]
    if dataset != "all":
        cells = cells[cells["dataset"].map(manifest.plain) == dataset]
    return cells if numbers is None else cells[cells["seed"].isin(numbers)]


def labels(cells: DataFrame) -> Series:
    """What cells of a table are called in texts, without their seeds: "AE, layers=3"."""
    pairs = zip(cells["named"], cells["changes"], strict=True)
    return Series([entry_name(*pair) for pair in pairs], cells.index, dtype=object)


def untrained(rows: DataFrame, named: Collection[str] = ("named",)) -> Series:
    """Which cells, or rows of a table, are of untrained networks: "random" in a column that says what is trained.

    Args:
        named: such columns; in tables they are called as in recipes, "objectives" or "method".
    """
    return (rows[rows.columns.intersection(list(named))] == "random").any(axis="columns")


def fullest(cells: DataFrame) -> DataFrame:
    """Cells of the `fullest_preset`, of what differs in its version alone the newest, in the order of their names.

    Seeds of one version are never mixed with another's.
    """
    cells = cells.assign(entry=labels(cells))
    of_preset = fullest_preset(cells, cells["entry"])
    newest = of_preset.groupby("entry")["version"].transform("max")
    return of_preset[of_preset["version"] == newest].sort_values(["entry", "seed"])


def fullest_preset(rows: DataFrame, names: Series) -> DataFrame:
    """Rows of the preset that covers most of these names of theirs (paper if equal)."""
    covered = names.groupby(rows["preset"]).nunique()
    best = max(covered.index, key=lambda preset: (covered[preset], preset == "paper"), default=None)
    return rows[rows["preset"] == best]


def usual(cells: DataFrame) -> DataFrame:
    """Those of `fullest` that depart from the rows of their table in nothing."""
    return fullest(cells[~cells["departures"].map(bool) & ~cells["setting"].map(bool)])


def only(table: DataFrame, column: str) -> Any:
    """The one value of a column; raises ValueError if there are several, or none."""
    values = table[column].unique().tolist()
    if len(values) != 1:
        raise ValueError(f"a figure shows one {column}; this table has {sorted(values)}")
    return values[0]


def beside(others: DataFrame, log: DataFrame) -> DataFrame:
    """The rows of both, with the columns that both have: files kept in the folders of runs gained some later."""
    return pd.concat([others, log], join="inner", ignore_index=True)


class Log(NamedTuple):
    """What a figure needs beside results."""

    table: str                                              # in which the cells stand that have it
    choose: Callable[[DataFrame], DataFrame]                # which of these count, of one data set, smoke runs left out
    collect: Callable[[Store, DataFrame], DataFrame]        # makes the log from the store and these
    columns: tuple[str, ...]                                # that its figure needs, besides those that name its cells
    texts: tuple[str, ...] = ()                             # of these that hold text; all others hold finite numbers
    join: Callable[[DataFrame, DataFrame], DataFrame] | None = beside  # of other cells so far; None lets their file be


def read(path: Path, declared: Log) -> DataFrame:
    """An exported log, with the columns that its figure needs and those that name its cells.

    Raises:
        ValueError: if the file is damaged, has no rows, a column is missing, or a value is no finite number where one
            should be.
    """
    texts = [*TEXTS, *declared.texts]
    try:
        text = path.read_text(encoding="utf-8")
        list(whole_lines(io.StringIO(text)))  # pandas would pad a line that is cut
        log = pd.read_csv(io.StringIO(text), dtype=dict.fromkeys(texts, str), keep_default_na=False)
        if missing := [name for name in (*NAMED, *declared.columns) if name not in log]:
            raise ValueError(f"it has no column {missing[0]!r}")
        if log.empty:
            raise ValueError("it has no rows")
        for name in log.columns.difference(texts):
            if log[name].dtype.kind not in "iuf" or not np.isfinite(log[name]).all():
                raise ValueError(f"{name!r} holds other than finite numbers")
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); restore it from version control, or delete it and export "
                         "it again where its cells were trained, with `repro results export`") from error
    return log


def export(kept: Mapping[str, Log], cells: Mapping[str, DataFrame], store: Store, folder: Path) -> list[Path]:
    """Write the logs that figures need to `folder`, one file per figure and data set; returns those written.

    A file that is there gains what the store has: of every cell that counts, it holds the rows of the last log with it.
    One that shows a single cell, or the seeds of a single entry, stays where the store has others; a line says so.

    Args:
        kept: what logs there may be, by name.
        cells: by table all finished cells that stand in it, also those exported before, among which is chosen; smoke
            runs are passed over.
        store: where logs are looked for.
        folder: gets `<name>_<dataset>.csv`.
    """
    written = []
    for name, declared in kept.items():
        of_table = cells[declared.table]
        for dataset, of_dataset in of_table[of_table["preset"] != "smoke"].groupby("dataset"):
            chosen = declared.choose(of_dataset)
            log = declared.collect(store, chosen)
            if log.empty:
                continue
            path = folder / f"{name}_{slug(dataset)}.csv"
            earlier = read(path, declared) if path.exists() else log[:0]
            others = earlier[earlier["key"].isin(chosen["key"]) & ~earlier["key"].isin(log["key"])]
            if not others.empty:
                if declared.join is None:
                    shown, here = (" and ".join(dict.fromkeys(rows["key"])) for rows in (earlier, log))
                    tqdm.write(f"{path} stays that of {shown}; {store.root} has {here}: to have that instead, delete "
                               "the file and give the same command again", file=sys.stderr)
                    continue
                log = declared.join(others, log)
            places = {key: place for place, key in enumerate(chosen["key"])}
            written.append(write(log.sort_values("key", key=lambda keys: keys.map(places), kind="stable"), path))
    return written


def write(table: DataFrame, path: Path) -> Path:
    """Write a table as CSV, all of it or nothing; returns the path."""
    write_atomically(path, lambda temporary: table.to_csv(temporary, index=False))
    return path


def slug(dataset: str) -> str:
    """A data set's label as part of a file's name: "cifar10 (my copy.npz)" gives "cifar10_my_copy_npz"."""
    return re.sub(r"\W+", "_", dataset).strip("_")


def joined(name: str, store: Store, cells: DataFrame) -> DataFrame:
    """The file of that name of all cells that have it."""
    return together(named(read_table(path), cell) for cell, path in files(name, store, cells))


def first(name: str, store: Store, cells: DataFrame, *, of: str = "key") -> DataFrame:
    """That file of the first of the cells that has it; with "entry" for `of`, those of all its seeds."""
    values = [cell[of] for cell, _ in files(name, store, cells)]
    return joined(name, store, cells[cells[of].isin(values[:1])])


def together(parts: Iterable[DataFrame]) -> DataFrame:
    """The rows of all parts; none if there is no part."""
    return pd.concat([DataFrame(), *parts], ignore_index=True)


def of_finished(table: "Table", cells: Sequence[Cell], collect: Callable[[Store, DataFrame], DataFrame]) -> DataFrame:
    """What a log's `collect` makes of these cells of a table, those of them that are finished in REPRO_RUNS."""
    store = Store(manifest.runs_root())
    rows = table.study.tidy(rows_of(cells, store))
    of_rows = {name for row in table.rows for name in row}
    away = {cell.key: {name: value for name, value in cell.changes.items() if name not in of_rows} for cell in cells}
    departures = Series([away[key] for key in rows["key"]], rows.index, dtype=object)
    return collect(store, rows.assign(entry=labels(rows), departures=departures, setting=[{}] * len(rows)))


def files(name: str, store: Store, cells: DataFrame) -> list[tuple[dict[str, Any], Path]]:
    """Cells that have a file of that name, and where it is."""
    pairs = [(cell, store.folder(cell["key"]) / name) for cell in cells.to_dict("records")]
    return [(cell, path) for cell, path in pairs if path.exists()]


def named(rows: DataFrame, cell: Mapping[str, Any]) -> DataFrame:
    """The rows, with what names the cell that they come from."""
    return rows.assign(**{name: cell[name] for name in NAMED})


def by_epoch(terms: list[str], fields: Sequence[str], store: Store, cells: DataFrame) -> DataFrame:
    """One row per epoch, from 1, of every cell trained here: the means of the terms, and these fields of the cell."""
    parts = []
    for cell, path in files("progress.jsonl", store, cells):
        log = lines_of(path, ("step", *terms))
        epochs = np.ceil(log["step"] * cell["epochs"] / log["step"].iloc[-1]).astype(int).rename("epoch")
        means = log.groupby(epochs)[terms].mean().reset_index()
        parts.append(named(means.assign(**{name: cell[name] for name in fields}), cell))
    return together(parts)


def lines_of(path: Path, columns: Sequence[str]) -> DataFrame:
    """Columns of the lines of a progress.jsonl, all numbers.

    Raises:
        ValueError: if a line is damaged, or lacks a column.
    """
    rows: list[dict[str, float]] = []
    try:
        for line in path.read_text().splitlines() or [""]:
            values = parse_json(line)
            row = {name: values[name] for name in columns}
            if not {*map(type, row.values())} <= {int, float}:
                raise TypeError(f"{row} are not all numbers")
            rows.append(row)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read beyond line {len(rows)} ({type(error).__name__}: {error}); delete "
                         "that folder and run the table again") from error
    return DataFrame(rows)
