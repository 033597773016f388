"""The numbers the four papers print; their sources are in published/README.md."""

from importlib.resources import files

import pandas as pd
from pandas import DataFrame

from repro.recipe import choose

FOLDER = files("repro.report") / "published"


def names() -> list[str]:
    """The tables that `printed` knows, sorted."""
    return sorted(file.name.removesuffix(".csv") for file in FOLDER.iterdir() if file.name.endswith(".csv"))


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
    path = FOLDER / f"{choose('name', name, names())}.csv"
    with path.open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False, **options)
