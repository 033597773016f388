"""Finished cells as the reader's side takes them: by data set, preset and seed, and what they are called."""

from collections.abc import Collection

from pandas import DataFrame, Series

from repro.data import manifest
from repro.recipe import choose, in_words, parse_numbers
from repro.run.export import everything

PRESETS = ("paper", "quick", "smoke")


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
    """What people are told that cells of a table are, but for their seeds: "AE, layers=3"."""
    pairs = zip(cells["named"], cells["changes"], strict=True)
    called = [", ".join(filter(None, (name, in_words(changes)))) for name, changes in pairs]
    return Series(called, cells.index, dtype=object)


def untrained(rows: DataFrame, named: Collection[str] = ("named",)) -> Series:
    """Which cells, or rows of a table, are of networks that were not trained, "random" in a column that names these.

    Args:
        named: the columns; those of tables are what studies call them, as "objectives" and "method".
    """
    return (rows[rows.columns.intersection(list(named))] == "random").any(axis="columns")
