"""A cell of a small recipe, which nothing trains, and the folder that the first edition had for it."""

import dataclasses
import json
from pathlib import Path

from repro.recipe import Recipe, setting
from repro.run.store import Cell, Store, write_json


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small(Recipe):
    method: str = setting("CE", "assumed")
    epochs: int = setting(3, "assumed")
    rate: float = setting(0.5, "assumed")
    threads: int = setting(1, "assumed")


CELL = Cell(
    study="skeletons", recipe=Small(), seed=0, preset="quick", dataset="synthetic", digest="d1", version=1
)


def first_edition(
    store: Store, cell: Cell, table: str, result: dict | None = None, *, checkpoint: bool = False
) -> Path:
    """The folder of a cell in one of its tables, as the first edition wrote it; in "cells", as it is today."""
    folder, described = store.root / table / cell.key, cell.describe()
    if table != "cells":
        described = {name: value for name, value in described.items() if name not in ("study", "changes")}
        described |= {"table": table, "entry": cell.label}
    write_json(folder / "recipe.json", described)
    if result is not None:
        (folder / "result.json").write_text(json.dumps({"cost": {}} | result))
    if checkpoint:
        (folder / "checkpoint.pt").touch()
    return folder
