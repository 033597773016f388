"""Our numbers beside the printed ones, in the rows and columns of the image papers' tables."""

import numpy as np
from pandas import DataFrame, Series, concat

from repro.image.table_cells import BASE, GRID, SWEEPS
from repro.report.printed import sce_grid
from repro.report.stored import with_departures
from repro.run.table import with_measures

MEASURES = ["knn1", "embedding_spread"]  # shown behind the linear probe
FORWARDS = 3  # of the query, its backward pass counted twice; each key adds one (JCL)


def image_methods_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `image_methods` from finished cells.

    Args:
        results: one row per cell with entry, seed, linear, knn1, embedding_spread and the table's fields.
        preset, dataset: of these cells.
    """
    return _unprinted(_entries(results, ["method"]), results, preset, dataset)


def temperature_grid_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `temperature_grid` from finished cells; `results` as for `image_methods_table`."""
    rows = _entries(results, ["method", *GRID])
    printed, places = sce_grid(dataset), zip(rows["method"], *(rows[name] for name in GRID), strict=True)
    values = [printed.get(tuple(place), np.nan) if method == "sce" else np.nan for method, *place in places]
    published = Series(values, index=rows.index, dtype=float)
    return with_measures(rows, results, published, preset, dataset, MEASURES)


def row_optima(table: DataFrame) -> DataFrame:
    """The best key temperature for every temperature of SCE, ours beside the printed one.

    Args:
        table: of `temperature_grid`.

    Returns:
        One row per temperature: temperature, key_temperature, ours, printed_key_temperature, published; the last two
        NaN where nothing may be compared. Ours is the best of what was run, printed the best of all that is printed.
        Of equal accuracies the lowest key temperature.
    """
    rows = []
    for temperature, row in table[table["method"] == "sce"].sort_values("key_temperature").groupby("temperature"):
        ours = row.set_index("key_temperature")["ours"].dropna()
        found = {"temperature": temperature, "key_temperature": ours.idxmax(), "ours": ours.max()}
        if row["published"].notna().any():
            printed = sce_grid(row["dataset"].iloc[0]).loc[temperature].sort_index()
            found |= {"printed_key_temperature": printed.idxmax(), "published": printed.max()}
        rows.append(found)
    return DataFrame(rows, columns=["temperature", "key_temperature", "ours", "printed_key_temperature", "published"])


def positive_keys_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `positive_keys` from finished cells; `results` as for `image_methods_table`."""
    rows = _entries(results, ["method", *SWEEPS])
    rows.insert(1 + len(SWEEPS), "encoder_forwards", FORWARDS + rows["keys"])
    points = _unprinted(rows, results, preset, dataset)
    sweeps = []
    for name in BASE:
        others = {other: value for other, value in BASE.items() if other != name}
        sweep = points[(points[[*others]] == [*others.values()]).all(axis=1)].sort_values(name)
        sweeps.append(sweep.assign(varied=name))
    table = concat(sweeps, ignore_index=True)
    return table[["varied", *table.columns.drop("varied")]]


def similarity_variance_table(results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """The table of `similarity_variance` from finished cells; `results` as for `image_methods_table`."""
    return _unprinted(_entries(results, ["method", "keys"]), results, preset, dataset)


def _unprinted(rows: DataFrame, results: DataFrame, preset: str, dataset: str) -> DataFrame:
    """Our values by entry, where the paper prints curves or nothing."""
    return with_measures(rows, results, Series(float("nan"), index=rows.index), preset, dataset, MEASURES)


def _entries(results: DataFrame, columns: list[str]) -> DataFrame:
    """These columns of every entry, and where one departs from its preset in another field, `departures`, which."""
    return with_departures(results.drop_duplicates("entry").set_index("entry")[columns])
