"""What figures need beside results, from the folders of finished cells; exported as CSV files of their own."""

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from pandas import DataFrame

from repro import manifest
from repro.run.store import Cell, Store, write_atomically


def objective_parts(cell: Cell) -> DataFrame:
    """The terms of SCE along the training of a finished cell in REPRO_RUNS.

    Returns:
        One row per epoch: epoch, InfoNCE, ReSSL, Ceil, loss (nats, mean over the epoch), weight (lambda), and of the
        cell entry, dataset and preset.

    Raises:
        FileNotFoundError: if the cell was not trained there.
    """
    root = manifest.runs_root()
    path = next(iter(sorted(root.glob(f"*/{cell.key}/progress.jsonl"))), None)
    if path is None:
        raise FileNotFoundError(f"{root} has no progress.jsonl of {cell.entry}, seed {cell.seed}; run its table")
    return _parts(path, cell.describe())


def export(store: Store, folder: Path) -> list[Path]:
    """Write the logs that figures need to `folder`, one file per figure and data set; returns those written.

    Of the finished cells of a data set that have such a log, smoke runs left out, those count whose preset has most.
    The parts of a loss are those of one cell, the first by entry and seed.
    """
    written = []
    for name, (table, collect) in FIGURES.items():
        found = [cell for cell in store.finished() if cell["table"] == table and cell["preset"] != "smoke"]
        for dataset in sorted({cell["dataset"] for cell in found}):
            log = collect(store, _most_complete([cell for cell in found if cell["dataset"] == dataset]))
            if not log.empty:
                path = folder / f"{name}_{slug(dataset)}.csv"
                write_atomically(path, lambda temporary, log=log: log.to_csv(temporary, index=False))
                written.append(path)
    return written


def slug(dataset: str) -> str:
    """A data set's label as part of a file's name: "cifar10 (my copy.npz)" gives "cifar10_my_copy_npz"."""
    return re.sub(r"\W+", "_", dataset).strip("_")


def _most_complete(cells: list[dict]) -> list[dict]:
    presets = [cell["preset"] for cell in cells]
    chosen = max(sorted(set(presets)), key=presets.count)
    return sorted((cell for cell in cells if cell["preset"] == chosen), key=lambda cell: (cell["entry"], cell["seed"]))


def _parts_of_first(store: Store, cells: list[dict]) -> DataFrame:
    for cell in cells:
        paths = sorted(store.root.glob(f"*/{cell['key']}/progress.jsonl"))
        if cell["recipe"]["method"] == "sce" and paths:
            return _parts(paths[0], cell)
    return DataFrame()


def _joined(name: str, store: Store, cells: list[dict]) -> DataFrame:
    paths = [store.root / cell["table"] / cell["key"] / name for cell in cells]
    parts = [pd.read_csv(path) for path in paths if path.exists()]
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()


def _of_most_keys(store: Store, cells: list[dict]) -> DataFrame:
    for cell in sorted(cells, key=lambda cell: -cell["recipe"]["keys"]):
        found = _joined("sampled_keys.csv", store, [cell])
        if not found.empty:
            return found
    return DataFrame()


def _parts(path: Path, cell: dict) -> DataFrame:
    log = DataFrame([json.loads(line) for line in path.read_text().splitlines()])
    epochs = np.ceil(log["step"] * cell["recipe"]["epochs"] / log["step"].iloc[-1]).astype(int).rename("epoch")
    means = log.groupby(epochs)[["InfoNCE", "ReSSL", "Ceil", "loss"]].mean().reset_index()
    described = {name: cell[name] for name in ("entry", "dataset", "preset")}
    return means.assign(weight=cell["recipe"]["weight"], **described)


FIGURES: dict[str, tuple[str, Callable[[Store, list[dict]], DataFrame]]] = {
    "objective_parts": ("temperature_grid", _parts_of_first),
    "similarity_variance_images": ("similarity_variance", functools.partial(_joined, "similarity.csv")),
    "sampled_keys": ("positive_keys", _of_most_keys),
}
