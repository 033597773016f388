"""A cell of a small recipe, which nothing trains."""

import dataclasses

from repro.recipe import Recipe, setting
from repro.run.store import Cell


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    method: str = setting("CE", "assumed")
    epochs: int = setting(3, "assumed")
    rate: float = setting(0.5, "assumed")
    threads: int = setting(1, "assumed")


CELL = Cell(
    study="skeletons", recipe=Small(), seed=0, preset="quick", dataset="synthetic", digest="d1", version=1
)
