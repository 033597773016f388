"""Measures that came after a cell was finished, taken from its checkpoint; nothing is trained."""

import torch
from tqdm.auto import tqdm

from repro.run import device as devices
from repro.run.fit import load_checkpoint
from repro.run.store import Store, write_json
from repro.skeleton.cell import data_of, learner_of, measure, measures
from repro.skeleton.pretrain import VERSION, SkeletonRecipe
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
    if cell["version"] != VERSION:
        raise ValueError(f"it was trained by version {cell['version']} of the pretrainer, this one is {VERSION}")
    recipe = SkeletonRecipe.from_dict(cell["recipe"])
    data = data_of(recipe)
    if data.digest != cell["digest"]:
        raise ValueError(f"its data had the digest {cell['digest']}, those here have {data.digest}")
    with devices.threads(recipe.threads), devices.full_precision():
        learner = learner_of(recipe, data, cell["seed"], device)
        states = map(load_checkpoint, sorted(path.parent for path in store.root.glob(f"*/{cell['key']}/checkpoint.pt")))
        state = next((state for state in states if state and state["step"] == learner.total_steps), None)
        if state is None:
            raise ValueError(f"there is no checkpoint of step {learner.total_steps}, its last")
        learner.load_weights(state["learner"])
        return measure(learner, data, cell["seed"])
