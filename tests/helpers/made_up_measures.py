"""Runs as if they had finished, with made-up measures: rows of runs.csv, and what tables make of them."""

import itertools

from pandas import DataFrame

from repro.run.store import COLUMNS, row_of


def finished_row(run, **measures):
    """The row of runs.csv of a run with these measures."""
    cost = {"finished": "2024-05-01T12:00:00+00:00", "commit": "c"}
    return row_of(run.describe() | {"metrics": measures, "cost": cost})


def asked(table, dataset=None, **choices):
    """The runs that a table asks for, on data that need not be here."""
    return table.runs(dataset, device="cpu", digest=lambda recipe: "made up", **choices)


def finished(runs, measure=None):
    """A stored row of each run, with what `measure` makes of it.

    By default `linear` rises by a quarter from one to the next, `knn1` and the spread with the seed.
    """
    linear, rows = itertools.count(40.0, 0.25), []
    for run in runs:
        usual = {"linear": next(linear), "knn1": 30.0 + run.seed, "embedding_spread": 0.5 + run.seed / 10}
        row = finished_row(run, **(measure(run) if measure else usual))
        row["dataset"] += " (subset)" if run.recipe.to_dict().get("subset") else ""
        rows.append(row)
    return DataFrame(rows, columns=COLUMNS)


def laid_out(table, dataset=None, *, measure=None, **choices):
    """The rows of a table all of whose runs have such measures; arguments as for `run_table`."""
    runs = asked(table, dataset, **choices)
    fields = {name: value for name, value in choices.items() if name in table.study.fields}
    by_id = {run.id: run for run in runs}
    return table.numbers(by_id, finished(runs, measure), table.columns_asked(fields))
