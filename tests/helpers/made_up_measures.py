"""Cells as if they had finished, with made-up measures: rows of cells.csv, and what tables make of them."""

import itertools

from pandas import DataFrame

from repro.run.store import COLUMNS, row_of


def finished_row(cell, **measures):
    """The row of cells.csv of a cell with these measures."""
    cost = {"finished": "2024-05-01T12:00:00+00:00", "commit": "c"}
    return row_of(cell.describe() | {"metrics": measures, "cost": cost})


def asked(table, dataset=None, **choices):
    """The cells that a table asks for, on data that need not be here."""
    return table.cells(dataset, device="cpu", digest=lambda recipe: "made up", **choices)


def finished(cells, measure=None):
    """A stored row of each cell, with what `measure` makes of it.

    By default `linear` rises by a quarter from one to the next, `knn1` and the spread with the seed.
    """
    linear, rows = itertools.count(40.0, 0.25), []
    for cell in cells:
        usual = {"linear": next(linear), "knn1": 30.0 + cell.seed, "embedding_spread": 0.5 + cell.seed / 10}
        row = finished_row(cell, **(measure(cell) if measure else usual))
        row["dataset"] += " (subset)" if cell.recipe.to_dict().get("subset") else ""
        rows.append(row)
    return DataFrame(rows, columns=COLUMNS)


def laid_out(table, dataset=None, *, measure=None, **choices):
    """The rows of a table all of whose cells have such measures; arguments as for `run_table`."""
    cells = asked(table, dataset, **choices)
    fields = {name: value for name, value in choices.items() if name in table.study.fields}
    by_id = {cell.id: cell for cell in cells}
    return table.numbers(by_id, finished(cells, measure), table.columns_asked(fields))
