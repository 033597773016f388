"""What SCE's figures need beside results: the terms of its objective along training."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pandas import DataFrame

from repro.data import manifest
from repro.report.logs import Log, by_epoch, named, progress, usual
from repro.run.store import Cell, Store


def objective_parts(cell: Cell) -> DataFrame:
    """The terms of SCE along the training of a finished cell in REPRO_RUNS.

    Returns:
        One row per epoch: epoch, InfoNCE, ReSSL, Ceil, loss (nats, mean over the epoch), weight (lambda), and of the
        cell entry (with what departs from the preset), key, seed, dataset and preset.

    Raises:
        FileNotFoundError: if the cell was not trained there.
    """
    store = Store(manifest.runs_root())
    path = progress(store, cell.key)
    if path is None:
        raise FileNotFoundError(f"{store.root} has no progress.jsonl of {cell.label}, seed {cell.seed}; run its table")
    described = {"key": cell.key, "seed": cell.seed, "dataset": cell.dataset, "preset": cell.preset}
    return _parts(path, cell.recipe.to_dict() | described | {"entry": cell.label})


def _parts(path: Path, cell: Mapping[str, Any]) -> DataFrame:
    means = by_epoch(path, cell, ["InfoNCE", "ReSSL", "Ceil", "loss"])
    return named(means.assign(weight=cell["weight"], entry=cell["entry"]), cell)


def _of_first(store: Store, cells: DataFrame) -> DataFrame:
    """Those of the first cell of SCE that was trained here."""
    for cell in cells[cells["method"] == "sce"].to_dict("records"):
        path = progress(store, cell["key"])
        if path:
            return _parts(path, cell)
    return DataFrame()


LOGS = {
    "objective_parts": Log(
        "temperature_grid", usual, _of_first, ("epoch", "InfoNCE", "ReSSL", "Ceil", "loss", "weight"),
        texts=("entry",),
    ),
}
