"""Finished cells measured again as they are today, from their checkpoints; nothing is trained."""

import torch
from tqdm.auto import tqdm

from repro.run import device as devices
from repro.run.store import Store, evaluation_of, write_json
from repro.skeleton.cell import EVALUATION, data_of, measure, restored
from repro.skeleton.recipe import SkeletonRecipe
from repro.skeleton.tables import TABLES


def evaluate_again(store: Store, device: torch.device) -> int:
    """Measure every finished skeleton cell again that an earlier version has evaluated, smoke runs left as they are.

    Its cost stays as it is. A cell is passed over, with a message, if its data are not here or are other ones, its last
    checkpoint is missing, or another version of the pretrainer has trained it.

    Args:
        store: of the cells.
        device: where to evaluate, which need not be where a cell was trained.

    Returns:
        The number of cells that were evaluated.
    """
    outdated: dict[str, list[dict]] = {}  # by key: of one training, in one of whose folders the checkpoint is
    for cell in store.finished():
        earlier = evaluation_of(cell["result"]) < EVALUATION
        if earlier and cell["table"] in TABLES and cell["preset"] != "smoke":
            outdated.setdefault(cell["key"], []).append(cell)
    given = 0
    with tqdm(outdated.values(), desc="cells to evaluate", unit="cell") as progress:
        for alike in progress:
            try:
                measured = _measured(alike[0], store, device)
            except (ValueError, OSError) as error:
                progress.write(f"{alike[0]['entry']}, seed {alike[0]['seed']} ({alike[0]['key']}) passed over: {error}")
                continue
            for cell in alike:
                path = store.root / cell["table"] / cell["key"] / "result.json"
                write_json(path, measured | {"cost": cell["result"]["cost"], "evaluation": EVALUATION})
            given += len(alike)
    return given


def _measured(cell: dict, store: Store, device: torch.device) -> dict[str, float | str]:
    """Every measure of a finished cell.

    Raises:
        ValueError: if it cannot be evaluated as it was trained, saying why.
        OSError: if its data are not here.
    """
    recipe = SkeletonRecipe.from_dict(cell["recipe"])
    with devices.threads(recipe.threads), devices.full_precision():
        return measure(restored(cell, store, device), data_of(recipe), cell["seed"])
