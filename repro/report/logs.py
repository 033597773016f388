"""What figures need beside results, from the folders of finished cells; exported as CSV files of their own."""

import functools
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from repro import manifest
from repro.report.stored import departures
from repro.run.csv_files import whole_lines
from repro.run.finished import read_table
from repro.run.json_files import parse_json
from repro.run.store import Cell, Store, write_atomically

FROZEN = ", td_queue=frozen_noise"  # ends an entry whose dictionary of decoded sequences is never refreshed
NAMED = ("key", "seed", "dataset", "preset")  # of the cell that a row of a log comes from
TEXTS = ("key", "dataset", "preset", "entry", "objectives", "measure", "departures", "method", "model", "sampler",
         "query", "modality", "category", "nearest_category")  # columns of logs that hold no numbers
ALONG = ("linear", "linear_best", "linear_standardised", "knn1")  # measured along training
AGAIN = ("export it again where its cells were trained, with `repro results export`, or restore it from version "
         "control")


class Log(NamedTuple):
    """What a figure needs beside results.

    Attributes:
        table: whose cells have it.
        choose: which of these count, of one data set and finished, smoke runs left out.
        collect: makes the log from the store and these.
        columns: that its figure needs, besides those that name its cells.
        join: puts what the file has so far, if it is there, and the log together, in this order; without it the log
            replaces the file.
    """

    table: str
    choose: Callable[[list[dict]], list[dict]]
    collect: Callable[[Store, list[dict]], DataFrame]
    columns: tuple[str, ...]
    join: Callable[..., DataFrame] | None = None


def objective_parts(cell: Cell) -> DataFrame:
    """The terms of SCE along the training of a finished cell in REPRO_RUNS.

    Returns:
        One row per epoch: epoch, InfoNCE, ReSSL, Ceil, loss (nats, mean over the epoch), weight (lambda), and of the
        cell entry, key, seed, dataset and preset.

    Raises:
        FileNotFoundError: if the cell was not trained there.
    """
    root = manifest.runs_root()
    path = _progress(root, cell.key)
    if path is None:
        raise FileNotFoundError(f"{root} has no progress.jsonl of {cell.entry}, seed {cell.seed}; run its table")
    return _parts(path, cell.describe())


def along_training(cells: list[Cell]) -> DataFrame:
    """What was measured along the training of finished skeleton cells in REPRO_RUNS; none where nothing was.

    Returns:
        One row per cell, epoch and measure: epoch, measure (one of `ALONG`), value (percent, two decimals), objectives,
        entry, version, and of the cell key, seed, dataset and preset.
    """
    store, wanted = Store(manifest.runs_root()), {(cell.table, cell.key) for cell in cells}
    return _along_training(store, [cell for cell in store.finished() if (cell["table"], cell["key"]) in wanted])


def category_curves(cells: list[Cell]) -> DataFrame:
    """From how many categories the negatives came, along the training of finished cells in REPRO_RUNS.

    Returns:
        One row per cell and report: step, categories_video, categories_audio (distinct categories of the negatives
        selected in a step, mean over the steps since the last report), sampler, batch (M), expected (categories of M
        uniform draws), and of the cell key, seed, dataset and preset; where any cell departs from its preset, or the
        data from the paper's, `departures` says how.

    Raises:
        FileNotFoundError: if none of the cells was trained there.
    """
    store, wanted = Store(manifest.runs_root()), {(cell.table, cell.key) for cell in cells}
    found = _categories(store, [cell for cell in store.finished() if (cell["table"], cell["key"]) in wanted])
    if found.empty:
        raise FileNotFoundError(f"{store.root} has no progress.jsonl of any of these {len(wanted)} cells; run them")
    return found


def read(path: Path, columns: Sequence[str] = ()) -> DataFrame:
    """An exported log, with these columns and those that name its cells.

    Raises:
        ValueError: if the file is damaged, a column is missing, or a value is no finite number where one should be.
    """
    try:
        text = path.read_text(encoding="utf-8")
        list(whole_lines(io.StringIO(text)))  # pandas would pad a line that is cut
        log = pd.read_csv(io.StringIO(text), dtype=dict.fromkeys(TEXTS, str), keep_default_na=False)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {AGAIN}") from error
    missing = [name for name in (*NAMED, *columns) if name not in log]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}; {AGAIN}")
    for name in log.columns.difference(TEXTS):
        if log[name].dtype.kind not in "iuf" or not np.isfinite(log[name]).all():
            raise ValueError(f"{path} is damaged ({name!r} holds other than finite numbers); {AGAIN}")
    return log


def export(store: Store, folder: Path) -> list[Path]:
    """Write the logs that figures need to `folder`, one file per figure and data set; returns those written.

    Of the finished cells of a data set that have such a log, smoke runs left out, those count whose preset has most,
    and of equal entry and seed the one that finished last. Cells that depart from their recipe in more than their table
    varies are left out. The parts of a loss are those of one cell, the first by entry and seed. The term CD is that of
    the paper's recipe, of the first seed of each entry; entries that are not in the store stay in the file.
    """
    written = []
    for name, wanted in FIGURES.items():
        found = [cell for cell in store.finished() if cell["table"] == wanted.table and cell["preset"] != "smoke"]
        for dataset in sorted({cell["dataset"] for cell in found}):
            log = wanted.collect(store, wanted.choose([cell for cell in found if cell["dataset"] == dataset]))
            if not log.empty:
                path = folder / f"{name}_{slug(dataset)}.csv"
                if wanted.join:
                    earlier = [read(path, wanted.columns)] if path.exists() else []
                    log = wanted.join(*earlier, log)
                write_atomically(path, lambda temporary, log=log: log.to_csv(temporary, index=False))
                written.append(path)
    return written


def slug(dataset: str) -> str:
    """A data set's label as part of a file's name: "cifar10 (my copy.npz)" gives "cifar10_my_copy_npz"."""
    return re.sub(r"\W+", "_", dataset).strip("_")


def _most_complete(cells: list[dict]) -> list[dict]:
    presets = [cell["preset"] for cell in cells]
    chosen = max(sorted(set(presets)), key=presets.count, default=None)
    return sorted((cell for cell in cells if cell["preset"] == chosen), key=lambda cell: (cell["entry"], cell["seed"]))


def _contrasting_decoders(cells: list[dict]) -> list[dict]:
    """Cells of the paper's recipe with CD, and those which depart from it only in keeping the first dictionary."""
    chosen = []
    for cell in cells:
        name = cell["recipe"]["objectives"]
        if cell["preset"] == "paper" and "CD" in name.split("+") and cell["entry"] in (name, name + FROZEN):
            chosen.append(cell)
    return sorted(chosen, key=lambda cell: (cell["entry"], cell["seed"], cell["result"]["cost"]["finished"]))


def _contrast_by_epoch(store: Store, cells: list[dict]) -> DataFrame:
    """CD along training (nats, mean over the epoch, four digits) and the entries of its dictionary."""
    parts = []
    for cell in cells:
        path = _progress(store.root, cell["key"])
        if path:
            means, entries = _by_epoch(path, cell, ["CD"]), cell["recipe"]["sequence_dictionary"]
            parts.append(_named(means.assign(sequence_dictionary=entries, entry=cell["entry"]), cell))
    if not parts:
        return DataFrame()
    log = pd.concat(parts)
    return _first_seeds(log.assign(CD=log["CD"].map(lambda value: float(f"{value:.4g}"))))


def _along_training(store: Store, cells: list[dict]) -> DataFrame:
    """What was measured along training, one row per epoch and measure, in percent with two decimals."""
    parts = []
    for cell in cells:
        path = next(iter(sorted(store.root.glob(f"*/{cell['key']}/probes.jsonl"))), None)
        if path:
            rows = _log(path, ("step", *ALONG)).melt("step", var_name="measure").round(2)
            steps = cell["result"]["cost"]["steps"] / cell["recipe"]["epochs"]
            rows.insert(0, "epoch", (rows.pop("step") / steps).round().astype(int))
            whose = {"objectives": cell["recipe"]["objectives"], "entry": cell["entry"], "version": cell["version"]}
            parts.append(_named(rows.assign(**whose), cell))
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()


def _newest_rows(*logs: DataFrame) -> DataFrame:
    """The rows of every cell, from the last of the logs that has them, of the newest version of its entry."""
    rows = pd.concat(logs).drop_duplicates(["key", "epoch", "measure"], keep="last")
    rows = rows[rows["version"] == rows.groupby(["entry", "preset"])["version"].transform("max")]
    return rows.sort_values(["entry", "seed", "epoch", "measure"], ignore_index=True)


def _first_seeds(*logs: DataFrame) -> DataFrame:
    """The first seed of every entry, from the last of the logs that has it."""
    rows = pd.concat(logs).drop_duplicates(["entry", "seed", "epoch"], keep="last")
    rows = rows[rows["seed"] == rows.groupby("entry")["seed"].transform("min")]
    return rows.sort_values(["entry", "epoch"], ignore_index=True)


def _latest(cells: list[dict]) -> list[dict]:
    """Cells of the fullest preset, of equal entry and seed the one that finished last."""
    finished = sorted(_fullest(cells), key=lambda cell: cell["result"]["cost"]["finished"])
    chosen = {(cell["entry"], cell["seed"]): cell for cell in finished}
    return [chosen[name] for name in sorted(chosen)]


def _fullest(cells: list[dict]) -> list[dict]:
    """Cells of the preset that has most, those of each entry of the newest version that it has."""
    chosen = _most_complete(cells)
    newest: dict[str, int] = {}
    for cell in chosen:
        newest[cell["entry"]] = max(cell["version"], newest.get(cell["entry"], 0))
    return [cell for cell in chosen if cell["version"] == newest[cell["entry"]]]


def _without_departures(cells: list[dict]) -> list[dict]:
    """Of cells whose entry names what their table varies alone, those of `_latest`."""
    from repro.tables import TABLES  # torchvision takes seconds to import

    return _latest([cell for cell in cells if departures(cell["entry"]).keys() <= set(TABLES[cell["table"]].varied)])


def _by_batch(cells: list[dict]) -> list[dict]:
    return sorted(_without_departures(cells), key=lambda cell: cell["recipe"]["batch"])


def _categories(store: Store, cells: list[dict]) -> DataFrame:
    """Distinct categories of the negatives selected in a step, at every report, and what uniform draws would give."""
    from repro.audiovisual import table_cells, table_layouts  # torchvision takes seconds to import

    parts, varied = [], table_cells.VARIED["category_diversity"]
    for cell in cells:
        path = _progress(store.root, cell["key"])
        if path:
            counts, recipe = _log(path, ("step", "categories_video", "categories_audio")), cell["recipe"]
            counts = counts.assign(**{name: recipe[name] for name in varied}, expected=cell["result"]["expected"])
            departing = table_layouts.departures(recipe | {"target": ""}, cell["entry"], varied, cell["dataset"])
            parts.append(_named(counts, cell).assign(departures=departing))
    log = pd.concat(parts, ignore_index=True) if parts else DataFrame(columns=["departures"])
    return log if log["departures"].any() else log.drop(columns="departures")


def _parts_of_first(store: Store, cells: list[dict]) -> DataFrame:
    for cell in cells:
        path = _progress(store.root, cell["key"])
        if cell["recipe"]["method"] == "sce" and path:
            return _parts(path, cell)
    return DataFrame()


def _joined(name: str, store: Store, cells: list[dict]) -> DataFrame:
    paths = [store.root / cell["table"] / cell["key"] / name for cell in cells]
    parts = [_named(read_table(path), cell) for path, cell in zip(paths, cells, strict=True) if path.exists()]
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()


def _first(name: str, store: Store, cells: list[dict]) -> DataFrame:
    """That file of the first of the cells that has it."""
    found = (_joined(name, store, [cell]) for cell in cells)
    return next((table for table in found if not table.empty), DataFrame())


def _seeds_of_first(name: str, store: Store, cells: list[dict]) -> DataFrame:
    """That file of all seeds of the first entry that has it."""
    entries = dict.fromkeys(cell["entry"] for cell in cells)
    found = (_joined(name, store, [cell for cell in cells if cell["entry"] == entry]) for entry in entries)
    return next((table for table in found if not table.empty), DataFrame())


def _of_most_keys(store: Store, cells: list[dict]) -> DataFrame:
    return _first("sampled_keys.csv", store, sorted(cells, key=lambda cell: -cell["recipe"]["keys"]))


def _parts(path: Path, cell: dict) -> DataFrame:
    means = _by_epoch(path, cell, ["InfoNCE", "ReSSL", "Ceil", "loss"])
    return _named(means.assign(weight=cell["recipe"]["weight"], entry=cell["entry"]), cell)


def _named(rows: DataFrame, cell: dict) -> DataFrame:
    """The rows, with what names the cell that they come from."""
    return rows.assign(**{name: cell[name] for name in NAMED})


def _by_epoch(path: Path, cell: dict, terms: list[str]) -> DataFrame:
    """One row per epoch of a finished cell: epoch, from 1, and the means of the terms."""
    log = _log(path, ("step", *terms))
    epochs = np.ceil(log["step"] * cell["recipe"]["epochs"] / log["step"].iloc[-1]).astype(int).rename("epoch")
    return log.groupby(epochs)[terms].mean().reset_index()


def _progress(root: Path, key: str) -> Path | None:
    """The log of a cell, in the folder of the table it was trained for."""
    return next(iter(sorted(root.glob(f"*/{key}/progress.jsonl"))), None)


def _log(path: Path, columns: Sequence[str]) -> DataFrame:
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


FIGURES = {
    "along_training": Log(
        "taxonomy", _fullest, _along_training, ("epoch", "measure", "value", "objectives", "entry", "version"),
        _newest_rows,
    ),
    "category_curves": Log(
        "category_diversity", _by_batch, _categories,
        ("step", "categories_video", "categories_audio", "sampler", "batch", "expected"),
    ),
    "pretext_accuracy": Log(
        "transfer", _latest, functools.partial(_seeds_of_first, "pretext_accuracy.csv"),
        ("query", "category", "pairs", "accuracy", "accuracy_renewed", "method"),
    ),
    "selected_negatives": Log(
        "transfer", _latest, functools.partial(_first, "selected_negatives.csv"),
        ("modality", "sampler", "pick", "item", "category", "gradient_norm", "smaller", "nearest", "nearest_category"),
    ),
    "objective_parts": Log(
        "temperature_grid", _without_departures, _parts_of_first,
        ("epoch", "InfoNCE", "ReSSL", "Ceil", "loss", "weight"),
    ),
    "similarity_variance_images": Log(
        "similarity_variance", _without_departures, functools.partial(_joined, "similarity.csv"),
        ("model", "d", "similarity", "variance"),
    ),
    "sampled_keys": Log(
        "positive_keys", _without_departures, _of_most_keys,
        ("keys", "inside", "inside_std", "outside", "outside_std", "closed_form"),
    ),
    "sequence_contrast": Log(
        "taxonomy", _contrasting_decoders, _contrast_by_epoch, ("epoch", "CD", "sequence_dictionary", "entry"),
        _first_seeds,
    ),
}
