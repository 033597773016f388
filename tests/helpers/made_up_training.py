"""Cells of a small recipe, and what stands for training them."""

import dataclasses
from collections.abc import Callable

from repro.recipe import Recipe, setting
from repro.run.store import Cell


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    method: str = setting("CE", "assumed")
    epochs: int = setting(3, "assumed")
    rate: float = setting(0.5, "assumed")
    threads: int = setting(1, "assumed")


def cell(method: str, seed: int = 0) -> Cell:
    recipe = Small(method=method)
    return Cell(
        study="skeletons", recipe=recipe, seed=seed, preset="quick", dataset="synthetic", digest="d1", version=1
    )


CELLS = [cell("CE"), cell("AE"), cell("CE", 1), cell("CD"), cell("AE", 1)]
CELL = CELLS[0]


def value(chosen: Cell) -> float:
    """The accuracy the trainer below gives to a cell."""
    return len(chosen.label) * 10.0 + ord(chosen.label[0]) + chosen.seed


class Trainer:
    """Stands for training a cell, in two turns; remembers its calls, and for some methods does something else first."""

    def __init__(self, **before: Callable):
        self.calls, self.before = [], before

    def __call__(self, run, progress):
        self.calls.append((run.cell.label, run.cell.seed))
        self.before.get(run.cell.label, lambda run: None)(run)
        progress.update()
        yield
        return {"linear": value(run.cell), "select": "last", "cost": {"seconds": 1.0, "commit": "abc"}}
