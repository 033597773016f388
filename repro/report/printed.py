"""The numbers the papers print, in their folders `printed`; their sources are in papers/README.md."""

import functools
from importlib.resources import files
from importlib.resources.abc import Traversable

import pandas as pd
from pandas import DataFrame

from repro.recipe import choose

PAPERS = files("repro") / "papers"


def names() -> list[str]:
    """The tables that `printed` knows, sorted."""
    return sorted(_files())


def printed(name: str) -> DataFrame:
    """One printed table, rows in the printed order.

    A column of numbers becomes numeric (accuracies in percent, NaN where nothing is printed), any other stays text.

    Raises:
        ValueError: if there is no such table; the message names those there are.
    """
    return _read(name, na_values=[""])


def as_printed(name: str) -> DataFrame:
    """The same table with every cell as the printed string: "67.0", "+2.2", "" where nothing is printed.

    Raises:
        ValueError: if there is no such table; the message names those there are.
    """
    return _read(name, dtype=str)


def _read(name: str, **options) -> DataFrame:
    found = _files()
    with found[choose("name", name, found)].open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False, **options)


@functools.cache
def _files() -> dict[str, Traversable]:
    """The files of all papers, by name; raises ValueError, naming both, if two have one."""
    folders = [paper / "printed" for paper in PAPERS.iterdir() if (paper / "printed").is_dir()]
    found: dict[str, Traversable] = {}
    for file in (file for folder in folders for file in folder.iterdir() if file.name.endswith(".csv")):
        other = found.setdefault(file.name.removesuffix(".csv"), file)
        if other is not file:
            raise ValueError(f"{other} and {file} are printed tables of one name, by which they are read; rename one")
    return found
