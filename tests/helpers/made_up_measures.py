"""Cells as if they had finished, with made-up measures: rows of cells.csv."""

import itertools
import json

from pandas import DataFrame

from repro.run.export import COLUMNS


def finished(cells, **measures):
    """A stored row of each cell; `linear` rises by a quarter from one to the next, `knn1` and the spread with the seed.

    Args:
        cells: of a table.
        measures: others by name, the same for all cells.
    """
    linear, rows = itertools.count(40.0, 0.25), []
    for cell in cells:
        metrics = {"linear": next(linear), "knn1": 30.0 + cell.seed, "embedding_spread": 0.5 + cell.seed / 10}
        texts = {"changes": cell.changes, "recipe": cell.recipe.to_dict(), "metrics": metrics | measures,
                 "cost": {"finished": "2024-05-01T12:00:00+00:00"}}
        row = {name: getattr(cell, name) for name in COLUMNS if hasattr(cell, name) and name not in texts}
        rows.append(row | {"commit": "c"} | {name: json.dumps(value, sort_keys=True) for name, value in texts.items()})
    return DataFrame(rows, columns=COLUMNS)


def laid_out(table, cells, **measures):
    """The rows of a table whose cells have such measures."""
    return table.laid_out(table.select(table.study.tidy(finished(cells, **measures))))
