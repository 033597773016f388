"""The numbers the papers print, in their folders `printed`; their sources are in papers/README.md."""

import functools
import math
from pathlib import Path
from typing import Any

from pandas import DataFrame

from repro.data.disk import read_csv
from repro.recipe import choose

PAPERS = Path(__file__).parents[1] / "papers"


def printed(name: str) -> DataFrame:
    """One printed table, rows in the printed order.

    A column of numbers becomes numeric (accuracies in percent, NaN where nothing is printed), any other stays text.

    Raises:
        ValueError: if there is no such table; the message names those there are.
    """
    return _read(name, na_values="").copy()


def as_printed(name: str) -> DataFrame:
    """The same table with every cell as the printed string: "67.0", "+2.2", "" where nothing is printed."""
    return _read(name, dtype=str).copy()


def of_recipe(name: str, row: Any, **known: Any) -> float:
    """The printed number of a row of ours (percent), NaN if there is none: of the first line whose fields it has.

    Args:
        name: of a printed table of fields of recipes, and `percent`. Where a field is empty any value will do.
        row: has the fields as attributes.
        known: values of fields that count in place of the row's.
    """
    for line in as_printed(name).to_dict("records"):
        percent = line.pop("percent")
        if all(str(known.get(field, getattr(row, field))) == value for field, value in line.items() if value):
            return float(percent)
    return math.nan


@functools.cache
def _read(name: str, **options) -> DataFrame:
    """The table of this name of whichever paper; raises ValueError, naming both, if two have one name."""
    files: dict[str, Path] = {}
    for path in PAPERS.glob("*/printed/*.csv"):
        if (other := files.setdefault(path.stem, path)) != path:
            raise ValueError(f"{other} and {path} are printed tables of one name, by which they are read; rename one")
    return read_csv(files[choose("name", name, files)], **options)
