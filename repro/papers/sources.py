"""What claims are held against: results of experiments, printed tables, and the logs beside the figures."""

import functools
from collections.abc import Callable

import pandas as pd
from pandas import DataFrame

from repro import experiments
from repro.data import manifest
from repro.papers import offered
from repro.report.claims import Results, independent
from repro.report.printed import printed
from repro.report.verdicts import CLOSED, PRINTED, level_of, rank
from repro.run.export import everything

PRINTED_TABLE, LOG = "printed/", "log/"  # before the name of what is no experiment
SWEEP = "varied"  # column of tables whose rows say which sweep they are of


@functools.cache
def read(names: str) -> Results:
    """What some names between spaces stand for, as `repro.report.claims.Claim.experiment` has them.

    Rows of several experiments are told apart by a column `experiment`, and carry as far as the weakest of them.

    Raises:
        ValueError: if there is no experiment or printed table of a name.
    """
    parts = [_read(name) for name in names.split()]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Results(DataFrame(), [], CLOSED)
    rows = pd.concat([part.rows.assign(experiment=name) for name, part in zip(names.split(), parts, strict=True)],
                     ignore_index=True)
    columns = ["experiment", *dict.fromkeys(column for part in parts for column in part.apart)]
    return Results(rows, independent(rows, columns), max((part.level for part in parts), key=rank))


def _read(name: str) -> Results:
    if name.startswith(PRINTED_TABLE):
        table = name.removeprefix(PRINTED_TABLE)
        return Results(_with_names().get(table, functools.partial(printed, table))(), [], PRINTED)
    if name.startswith(LOG):
        return _log(name.removeprefix(LOG))
    return by_seed(name)


def _with_names() -> dict[str, Callable[[], DataFrame]]:
    """Printed tables to which a paper adds what their rows are called, by name."""
    return {name: table for tables in offered("PRINTED_TABLES", "claims").values() for name, table in tables.items()}


@functools.cache
def by_seed(name: str) -> Results:
    """The results of an experiment, a row for each recipe and seed."""
    experiment = experiments.find(name)
    by_key = {key: row for key, (_, row) in experiment.asked().items()}
    also = [*experiment.declared.columns_asked(experiment.fields), "seed"]
    rows = experiment.declared.numbers(by_key, _cells(), also)
    if rows.empty:
        return Results(rows, [], "")
    if SWEEP in rows:  # a recipe that several sweeps share counts once
        known = rows.columns.drop([SWEEP, "departures"], errors="ignore")
        rows = rows.drop_duplicates(subset=known).drop(columns=SWEEP)
    columns = [*rows.columns[: rows.columns.get_loc("ours")].drop(["seed", "departures"], errors="ignore")]
    departs = "departures" in rows and bool(rows["departures"].map(bool).all())
    level = level_of(rows["dataset"].iloc[0], rows["preset"].iloc[0], departs)
    return Results(rows, independent(rows, columns), level)


@functools.cache
def _cells() -> DataFrame:
    return everything()


def _log(name: str) -> Results:
    """A log of figures/; no rows if it is not there."""
    path = manifest.project_root() / "figures" / f"{name}.csv"
    if not path.exists():
        return Results(DataFrame(), [], "")
    rows = pd.read_csv(path, keep_default_na=False)
    return Results(rows, [], level_of(rows["dataset"].iloc[0], rows["preset"].iloc[0]))
