"""What figures need beside results, from the folders of finished cells; exported as CSV files of their own."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from repro.data.disk import write_atomically
from repro.report.stored import labels
from repro.run.files import parse_json, whole_lines
from repro.run.finished import read_table
from repro.run.store import Store

NAMED = ("key", "seed", "dataset", "preset")  # of the cell that a row of a log comes from
TEXTS = ("key", "dataset", "preset")  # those of them that are no numbers
AGAIN = ("export it again where its cells were trained, with `repro results export`, or restore it from version "
         "control")


class Log(NamedTuple):
    """What a figure needs beside results.

    Attributes:
        table: in which the cells stand that have it.
        choose: which of these count, of one data set, smoke runs left out.
        collect: makes the log from the store and these.
        columns: that its figure needs, besides those that name its cells.
        texts: which of its columns, besides these, hold text; all others hold finite numbers.
        join: puts what the file has so far, if it is there, and the log together, in this order; without it the log
            replaces the file.
    """

    table: str
    choose: Callable[[DataFrame], DataFrame]
    collect: Callable[[Store, DataFrame], DataFrame]
    columns: tuple[str, ...]
    texts: tuple[str, ...] = ()
    join: Callable[..., DataFrame] | None = None


def read(path: Path, wanted: Log) -> DataFrame:
    """An exported log, with the columns that its figure needs and those that name its cells.

    Raises:
        ValueError: if the file is damaged, a column is missing, or a value is no finite number where one should be.
    """
    texts = [*TEXTS, *wanted.texts]
    try:
        text = path.read_text(encoding="utf-8")
        list(whole_lines(io.StringIO(text)))  # pandas would pad a line that is cut
        log = pd.read_csv(io.StringIO(text), dtype=dict.fromkeys(texts, str), keep_default_na=False)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {AGAIN}") from error
    missing = [name for name in (*NAMED, *wanted.columns) if name not in log]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}; {AGAIN}")
    for name in log.columns.difference(texts):
        if log[name].dtype.kind not in "iuf" or not np.isfinite(log[name]).all():
            raise ValueError(f"{path} is damaged ({name!r} holds other than finite numbers); {AGAIN}")
    return log


def export(kept: Mapping[str, Log], cells: Mapping[str, DataFrame], store: Store, folder: Path) -> list[Path]:
    """Write the logs that figures need to `folder`, one file per figure and data set; returns those written.

    Args:
        kept: what logs there may be, by name.
        cells: by table the finished cells of the store that stand in it; smoke runs are passed over.
        store: where they are.
        folder: gets `<name>_<dataset>.csv`.
    """
    written = []
    for name, wanted in kept.items():
        found = cells[wanted.table]
        for dataset, of_dataset in found[found["preset"] != "smoke"].groupby("dataset"):
            log = wanted.collect(store, wanted.choose(of_dataset))
            if not log.empty:
                path = folder / f"{name}_{slug(dataset)}.csv"
                if wanted.join:
                    earlier = [read(path, wanted)] if path.exists() else []
                    log = wanted.join(*earlier, log)
                write_atomically(path, lambda temporary, log=log: log.to_csv(temporary, index=False))
                written.append(path)
    return written


def slug(dataset: str) -> str:
    """A data set's label as part of a file's name: "cifar10 (my copy.npz)" gives "cifar10_my_copy_npz"."""
    return re.sub(r"\W+", "_", dataset).strip("_")


def fullest(cells: DataFrame) -> DataFrame:
    """Cells of the preset that has most, of what differs in its version alone the newest, in the order of their names.

    Seeds of one version are never mixed with another's.
    """
    cells = cells.assign(entry=labels(cells))
    presets = cells["preset"].tolist()
    chosen = cells[cells["preset"] == max(sorted(set(presets)), key=presets.count, default=None)]
    newest = chosen.groupby("entry")["version"].transform("max")
    return chosen[chosen["version"] == newest].sort_values(["entry", "seed"])


def usual(cells: DataFrame) -> DataFrame:
    """Those of `fullest` that depart from the rows of their table in nothing."""
    return fullest(cells[~cells["departures"].map(bool) & ~cells["setting"].map(bool)])


def joined(name: str, store: Store, cells: DataFrame) -> DataFrame:
    """The file of that name of all cells that have it."""
    parts = [named(read_table(path), cell) for cell, path in _files(name, store, cells)]
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()


def first(name: str, store: Store, cells: DataFrame) -> DataFrame:
    """That file of the first of the cells that has it."""
    return next((named(read_table(path), cell) for cell, path in _files(name, store, cells)), DataFrame())


def seeds_of_first(name: str, store: Store, cells: DataFrame) -> DataFrame:
    """That file of all seeds of the first of the cells that has it."""
    entries = [cell["entry"] for cell, _ in _files(name, store, cells)]
    return joined(name, store, cells[cells["entry"] == entries[0]]) if entries else DataFrame()


def named(rows: DataFrame, cell: Mapping[str, Any]) -> DataFrame:
    """The rows, with what names the cell that they come from."""
    return rows.assign(**{name: cell[name] for name in NAMED})


def progress(store: Store, key: str) -> Path | None:
    """The losses along the training of a cell, if they are here."""
    path = store.folder(key) / "progress.jsonl"
    return path if path.exists() else None


def by_epoch(terms: list[str], fields: Sequence[str], store: Store, cells: DataFrame) -> DataFrame:
    """One row per epoch, from 1, of every cell trained here: the means of the terms, and these fields of the cell."""
    parts = []
    for cell, path in _files("progress.jsonl", store, cells):
        log = lines_of(path, ("step", *terms))
        epochs = np.ceil(log["step"] * cell["epochs"] / log["step"].iloc[-1]).astype(int).rename("epoch")
        means = log.groupby(epochs)[terms].mean().reset_index()
        parts.append(named(means.assign(**{name: cell[name] for name in fields}), cell))
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()


def lines_of(path: Path, columns: Sequence[str]) -> DataFrame:
    """Columns of the lines of a progress.jsonl.

    Raises:
        ValueError: if a line is damaged, or lacks a column.
    """
    rows = []
    try:
        for line in path.read_text().splitlines():
            values = parse_json(line)
            rows.append({name: values[name] for name in columns})
            if not all(type(value) in (int, float) for value in rows[-1].values()):
                raise TypeError(f"{rows.pop()} are not all numbers")
        if not rows:
            raise ValueError("it is empty")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read beyond line {len(rows)} ({type(error).__name__}: {error}); delete "
                         "that folder and run the table again") from error
    return DataFrame(rows)


def _files(name: str, store: Store, cells: DataFrame) -> list[tuple[dict[str, Any], Path]]:
    """Cells that have a file of that name, and where it is."""
    found = [(cell, store.folder(cell["key"]) / name) for cell in cells.to_dict("records")]
    return [(cell, path) for cell, path in found if path.exists()]
