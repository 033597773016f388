"""What figures need beside results, from the folders of finished cells; exported as CSV files of their own."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from pandas import DataFrame

from repro import manifest
from repro.run.store import Cell, Store, write_atomically


def objective_parts(cell: Cell) -> DataFrame:
    """The terms of SCE along the training of a finished cell in REPRO_RUNS.

    Returns:
        One row per epoch: epoch, InfoNCE, ReSSL, Ceil, loss (nats, mean over the epoch) and weight (lambda).

    Raises:
        FileNotFoundError: if the cell was not trained there.
    """
    root = manifest.runs_root()
    path = next(iter(sorted(root.glob(f"*/{cell.key}/progress.jsonl"))), None)
    if path is None:
        raise FileNotFoundError(f"{root} has no progress.jsonl of {cell.entry}, seed {cell.seed}; run its table")
    return _parts(path, cell.recipe.to_dict())


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
    """A data set's label as part of a file's name: "cifar10 (subset)" gives "cifar10_subset"."""
    return dataset.replace(" (", "_").removesuffix(")")


def _most_complete(cells: list[dict]) -> list[dict]:
    presets = [cell["preset"] for cell in cells]
    chosen = max(sorted(set(presets)), key=presets.count)
    return sorted((cell for cell in cells if cell["preset"] == chosen), key=lambda cell: (cell["entry"], cell["seed"]))


def _parts_of_first(store: Store, cells: list[dict]) -> DataFrame:
    for cell in cells:
        paths = sorted(store.root.glob(f"*/{cell['key']}/progress.jsonl"))
        if cell["recipe"]["method"] == "sce" and paths:
            return _parts(paths[0], cell["recipe"]).assign(entry=cell["entry"], preset=cell["preset"])
    return DataFrame()


def _similarities(store: Store, cells: list[dict]) -> DataFrame:
    paths = [store.root / cell["table"] / cell["key"] / "similarity.csv" for cell in cells]
    parts = [pd.read_csv(path).assign(preset=cells[0]["preset"]) for path in paths if path.exists()]
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()


def _parts(path: Path, recipe: dict) -> DataFrame:
    log = DataFrame([json.loads(line) for line in path.read_text().splitlines()])
    epochs = log["step"] * recipe["epochs"] / log["step"].iloc[-1]
    return DataFrame({"epoch": epochs}).join(log[["InfoNCE", "ReSSL", "Ceil", "loss"]]).assign(weight=recipe["weight"])


FIGURES: dict[str, tuple[str, Callable[[Store, list[dict]], DataFrame]]] = {
    "objective_parts": ("temperature_grid", _parts_of_first),
    "similarity_variance_images": ("similarity_variance", _similarities),
}
