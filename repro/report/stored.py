"""Finished cells as the reader's side takes them: exported or in REPRO_RUNS, by data set, preset and seed."""

import json

from pandas import DataFrame

from repro import manifest
from repro.recipe import choose, parse_numbers
from repro.run.export import finished_cells, merged, read_cells, results
from repro.run.store import Store

PRESETS = ("paper", "quick", "smoke")


def everything() -> DataFrame:
    """Every finished cell, of figures/cells.csv and of REPRO_RUNS, as `run.export` gives them.

    Where the package is installed these are two files: the one that comes with it and that of the current folder.
    """
    exported = read_cells(manifest.project_root() / "figures" / "cells.csv")
    if manifest.checkout() is None:
        exported = merged(read_cells(manifest.shipped("figures") / "cells.csv"), exported)
    return merged(exported, finished_cells(Store(manifest.runs_root())))


def stored(dataset: str = "all", *, preset: str = "auto", seeds: str | int = "all") -> DataFrame:
    """Those of one data set, preset and some seeds.

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


def placed(cells: DataFrame, table: str, dataset: str) -> DataFrame:
    """A table's cells on a data set, with metrics and the recipe's fields as columns; of equal ones the last finished.

    A field of the recipe that is also a metric's name keeps the metric.

    Raises:
        MixedSeeds: as `run.export.results`.
    """
    found = results(cells, table, dataset)
    recipes = DataFrame(found["recipe"].map(json.loads).tolist(), index=found.index)
    return found.join(recipes[[name for name in recipes if name not in found]])


def departures(entry: str) -> dict[str, str]:
    """Fields and values that an entry names: "CE, layers=3" gives {"layers": "3"}."""
    return dict(part.split("=") for part in entry.split(", ")[1:])


def with_departures(rows: DataFrame) -> DataFrame:
    """Rows, whose index names the entries, with what each departs in beyond their columns; as given if none does."""
    named = [departures(entry) for entry in rows.index]
    departing = [", ".join(f"{name}={value}" for name, value in one.items() if name not in rows) for one in named]
    return rows.assign(departures=departing) if any(departing) else rows
