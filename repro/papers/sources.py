"""What claims are held against: results of experiments, printed tables, and the logs beside the figures."""

import functools
from collections.abc import Callable

import pandas as pd
from pandas import DataFrame

from repro import experiments
from repro.data import manifest
from repro.papers import offered
from repro.report.claims import Read, Results, independent
from repro.report.printed import printed
from repro.report.verdicts import CLOSED, PRINTED, level_of, rank
from repro.run.export import everything

PRINTED_TABLE, LOG = "printed/", "log/"  # before the name of what is no experiment
SWEEP = "varied"  # column of tables whose rows say which sweep they are of
NOTHING = Results(DataFrame(), [], "")


def reader() -> Read:
    """What reads the results that some names between spaces stand for, of the cells that are finished now.

    Names are as `repro.report.claims.Claim.experiment` has them. Rows of several experiments are told apart by a column
    `experiment`, and carry as far as the weakest of them; they are none where one of them has none. The reader raises
    ValueError if there is no experiment or printed table of a name.
    """
    cells = everything()

    @functools.cache
    def one(name: str) -> Results:
        if name.startswith(PRINTED_TABLE):
            table = name.removeprefix(PRINTED_TABLE)
            return Results(_with_names().get(table, functools.partial(printed, table))(), [], PRINTED)
        return _log(name.removeprefix(LOG)) if name.startswith(LOG) else _by_seed(name, cells)

    def read(names: str) -> Results:
        parts = {name: one(name) for name in names.split()}
        if not parts:
            return Results(DataFrame(), [], CLOSED)
        return next(iter(parts.values())) if len(parts) == 1 else _joined(parts)

    return read


def _joined(parts: dict[str, Results]) -> Results:
    if any(part.rows.empty for part in parts.values()):
        return NOTHING
    rows = pd.concat([part.rows.assign(experiment=name) for name, part in parts.items()], ignore_index=True)
    columns = ["experiment", *dict.fromkeys(column for part in parts.values() for column in part.apart)]
    return Results(rows, independent(rows, columns), max((part.level for part in parts.values()), key=rank))


def _with_names() -> dict[str, Callable[[], DataFrame]]:
    """Printed tables to which a paper adds what their rows are called, by name."""
    return {name: table for tables in offered("PRINTED_TABLES", "claims").values() for name, table in tables.items()}


def _by_seed(name: str, cells: DataFrame) -> Results:
    """The results of an experiment, a row for each recipe and seed."""
    experiment = experiments.find(name)
    by_key = {key: row for key, (_, row) in experiment.asked().items()}
    also = [*experiment.declared.columns_asked(experiment.fields), "seed"]
    rows = experiment.declared.numbers(by_key, cells, also)
    if rows.empty:
        return NOTHING
    if SWEEP in rows:  # a recipe that several sweeps share counts once
        known = rows.columns.drop([SWEEP, "departures"], errors="ignore")
        rows = rows.drop_duplicates(subset=known).drop(columns=SWEEP)
    columns = [*rows.columns[: rows.columns.get_loc("ours")].drop(["seed", "departures"], errors="ignore")]
    departs = "departures" in rows and bool(rows["departures"].map(bool).all())
    level = level_of(rows["dataset"].iloc[0], rows["preset"].iloc[0], departs)
    return Results(rows, independent(rows, columns), level)


def _log(name: str) -> Results:
    """A log of figures/; no rows if it is not there."""
    path = manifest.project_root() / "figures" / f"{name}.csv"
    if not path.exists():
        return NOTHING
    rows = pd.read_csv(path, keep_default_na=False)
    return Results(rows, [], level_of(rows["dataset"].iloc[0], rows["preset"].iloc[0]))
