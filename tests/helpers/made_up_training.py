"""Five cells, and what stands for training them."""

import dataclasses
from collections.abc import Callable

from repro.recipe import Recipe, setting
from repro.run.store import Cell


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    objectives: str = setting("CE", "assumed")


def cell(objectives: str, seed: int = 0, table: str = "taxonomy") -> Cell:
    recipe = Small(objectives=objectives)
    return Cell(table, objectives, recipe, seed, preset="quick", dataset="synthetic", digest="d1", version=1)


CELLS = [cell("CE"), cell("AE"), cell("CE", 1), cell("CD"), cell("AE", 1)]


def value(chosen: Cell) -> float:
    """The accuracy the trainer below gives to a cell."""
    return len(chosen.entry) * 10.0 + ord(chosen.entry[0]) + chosen.seed


class Trainer:
    """Stands for training a cell; remembers its calls, and for some entries does something else first."""

    def __init__(self, **before: Callable):
        self.calls, self.before = [], before

    def __call__(self, run, progress):
        self.calls.append((run.cell.entry, run.cell.seed))
        self.before.get(run.cell.entry, lambda run: None)(run)
        progress.update()
        return {"linear": value(run.cell), "select": "last", "cost": {"seconds": 1.0, "commit": "abc"}}
