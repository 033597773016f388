"""Measures that came after a cell was finished, taken from its checkpoint; nothing is trained."""

import torch
from tqdm.auto import tqdm

from repro.run import device as devices
from repro.run.store import Store, write_json
from repro.skeleton.cell import data_of, measure, measures, restored
from repro.skeleton.recipe import SkeletonRecipe
from repro.skeleton.tables import TABLES


def evaluate_again(store: Store, device: torch.device) -> int:
    """Give every finished skeleton cell of the store the measures it lacks; smoke runs are left as they are.

    What a cell's result has stays as it is, its cost too. A cell is passed over, with a message, if its data are not
    here or are other ones, its last checkpoint is missing, or another version of the pretrainer has trained it.

    Args:
        store: of the cells.
        device: where to evaluate, which need not be where a cell was trained.

    Returns:
        The number of cells that were given something.
    """
    lacking: dict[str, list[dict]] = {}  # equal keys stand for one training, in one of whose folders the checkpoint is
    for cell in store.finished():
        if cell["table"] in TABLES and cell["preset"] != "smoke" and _lacks(cell):
            lacking.setdefault(cell["key"], []).append(cell)
    given = 0
    with tqdm(lacking.values(), desc="cells to evaluate", unit="cell") as progress:
        for alike in progress:
            try:
                measured = _measured(alike[0], store, device)
            except (ValueError, OSError) as error:
                progress.write(f"{alike[0]['entry']}, seed {alike[0]['seed']} ({alike[0]['key']}) passed over: {error}")
                continue
            gaining = [cell for cell in alike if measured.keys() - cell["result"].keys()]
            for cell in gaining:
                path = store.root / cell["table"] / cell["key"] / "result.json"
                write_json(path, measured | cell["result"])
            given += len(gaining)
    return given


def _lacks(cell: dict) -> bool:
    """Whether a finished cell's result misses a measure that training writes today."""
    return not measures(SkeletonRecipe.from_dict(cell["recipe"])) <= cell["result"].keys()


def _measured(cell: dict, store: Store, device: torch.device) -> dict[str, float | str]:
    """Every measure of a finished cell.

    Raises:
        ValueError: if it cannot be evaluated as it was trained, saying why.
        OSError: if its data are not here.
    """
    recipe = SkeletonRecipe.from_dict(cell["recipe"])
    with devices.threads(recipe.threads), devices.full_precision():
        return measure(restored(cell, store, device), data_of(recipe), cell["seed"])
