"""What SCE's figures need beside results: the terms of its objective along training."""

import functools

from pandas import DataFrame

from repro.data import manifest
from repro.papers.sce.tables import TABLES
from repro.report.logs import Log, by_epoch, of_finished, usual
from repro.run.store import Cell, Store

_parts = functools.partial(by_epoch, ["InfoNCE", "ReSSL", "Ceil", "loss"], ["weight", "entry"])


def objective_parts(cell: Cell) -> DataFrame:
    """The terms of SCE along the training of a finished cell in REPRO_RUNS.

    Returns:
        One row per epoch: epoch, InfoNCE, ReSSL, Ceil, loss (nats, mean over the epoch), weight (lambda), and of the
        cell entry (with what departs from the preset), key, seed, dataset and preset.

    Raises:
        FileNotFoundError: if the cell was not trained there.
    """
    log = of_finished(TABLES["temperature_grid"], [cell], _parts)
    if log.empty:
        raise FileNotFoundError(f"{manifest.runs_root()} has no progress.jsonl of {cell.label}, seed {cell.seed}; run "
                                "its table")
    return log


def _of_first(store: Store, cells: DataFrame) -> DataFrame:
    """Those of the first cell of SCE that was trained here."""
    log = _parts(store, cells[cells["method"] == "sce"])
    return log if log.empty else log[log["key"] == log["key"].iloc[0]]


LOGS = {
    "objective_parts": Log(
        "temperature_grid", usual, _of_first, ("epoch", "InfoNCE", "ReSSL", "Ceil", "loss", "weight"),
        texts=("entry",), join=None,
    ),
}
