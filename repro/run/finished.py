"""What finished cells leave in their folders: the state of their learner, and what was computed from it once."""

from collections.abc import Callable
from typing import Any

import torch
from pandas import DataFrame

from repro.run import device as devices
from repro.run import frames
from repro.run.fit import load_checkpoint
from repro.run.store import Cell, Store


def checkpoint(key: str, store: Store) -> dict[str, Any]:
    """The state of a finished cell's learner; ValueError if there is no such cell, FileNotFoundError if it has none."""
    if not (store.folder(key) / "result.json").exists():
        raise ValueError(f"key={key!r} is not that of a finished cell in {store.root}; see `repro results list`, whose "
                         "cells of figures/cells.csv have no weights here until `repro run` has trained them")
    folder = store.trained_in(key)
    state = load_checkpoint(folder)
    if state is None:
        raise FileNotFoundError(f"{folder} has no sound checkpoint; delete that folder and run the table again")
    return state["learner"]


def restored(cell: Cell, study: Any, device: torch.device, **changes: Any) -> Any:
    """The learner of a finished cell with its last weights, on any device; what it draws from begins anew.

    Of studies whose cells have several learners it is the main one. Changes of its recipe give it other data.

    Raises:
        ValueError, FileNotFoundError: as `Cell.require`, the study's `load` and `checkpoint`.
    """
    recipe: Any = cell.recipe.replace(**changes)
    data = study.load(recipe)
    if not changes:
        cell.require(data.digest)
    learner = next(study.learners(recipe, data, cell.seed, device))
    learner.load_weights(checkpoint(cell.key, Store()))
    return learner


def kept(cell: Cell, name: str, compute: Callable[[], DataFrame]) -> DataFrame:
    """The file of that name in the cell's folder, made if it is not there, with the cell's data set, preset and seed.

    It says of which version of training and evaluation it is, and is made again where these are others today, unless
    the cell has lost its checkpoint. In a process group all processes compute, as an encoder may need them all, and the
    first writes.
    """
    run = Store().run(cell)
    path = run.folder / name
    versions = {"version": cell.version, "evaluation": cell.evaluation}

    def current() -> bool:
        if not path.exists():
            return False
        rows, remakeable = frames.read_csv(path), (run.trained_in / "checkpoint.pt").exists()
        return not remakeable or all(part in rows and (rows[part] == today).all() for part, today in versions.items())

    if not devices.from_first(current):
        with devices.threads(cell.recipe.threads), devices.full_precision():
            rows = compute().assign(dataset=cell.dataset, preset=cell.preset, **versions)
        devices.from_first(lambda: frames.write(rows, path))
    return frames.read_csv(path).assign(seed=cell.seed)
