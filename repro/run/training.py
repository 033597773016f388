"""One cell from its first step to its result."""

import functools
import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pandas import DataFrame
from tqdm.auto import tqdm

from repro.run import device as devices
from repro.run import frames
from repro.run.fit import fit, load_checkpoint
from repro.run.store import Run

if TYPE_CHECKING:
    from repro.run.learner import Learner


def train(
    run: Run, progress: tqdm, *, study: Any, device: torch.device, tensorboard: Path | None = None
) -> Generator[None, None, dict[str, Any]]:
    """Train the run's cell to its end, from its checkpoints if there are any, and measure it; yields as `fit`.

    A cell that is measured otherwise than its preset is has the training of the preset's cell, in that one's folder.

    Args:
        run: of the cell.
        progress: a bar to count steps on, and the evaluation.
        study: the cell's, a `repro.table.Study`.
        device: to train on.
        tensorboard: gets a folder named after the cell, with what it reports.

    Returns:
        The content of `result.json`: what `study.measure` gives, and "cost", with the seconds of the first learner.

    Raises:
        ValueError: as `Cell.require`; if the recipe does not suit the data, or the weights to be measured are lost.
        NonFiniteLoss: as `fit`.
    """
    devices.begin(device)
    recipe: Any = run.cell.recipe
    data = study.load(recipe)
    run.cell.require(data.digest)
    if run.measured_again and devices.from_first(lambda: load_checkpoint(run.trained_in) is None):
        raise ValueError(f"{run.trained_in} has lost its weights; give the same command again, and {run.cell} is "
                         "trained by itself")
    costs: list[dict[str, Any]] = []
    measured: dict[str, list[Any]] = {}
    for learner in study.learners(recipe, data, run.cell.seed, device):
        costs.append((yield from _fitted(run, learner, progress, study, tensorboard)))
        progress.set_postfix_str("evaluating")
        for name, value in study.measure(learner).items():
            if not isinstance(value, DataFrame):
                measured.setdefault(name, []).append(value)
            elif devices.first():
                frames.write(value, run.folder / f"{name}.csv")
        progress.update()
    means = {name: values[-1] if isinstance(values[-1], str) else sum(values) / len(values)
             for name, values in measured.items()}
    return means | {"cost": devices.cost(device) | {"code": study.code} | costs[0]}


def _fitted(
    run: Run, learner: "Learner", progress: tqdm, study: Any, tensorboard: Path | None
) -> Generator[None, None, dict[str, Any]]:
    """Train one learner of a run's cell to its end in the folder of its name; returns what it cost."""
    if devices.first():
        run.begin()
    recipe: Any = run.cell.recipe
    probe = functools.partial(study.probe, learner) if study.probe and not learner.name else None
    every = recipe.probe_every * learner.steps_per_epoch if probe else 0
    folder = run.folder / learner.name if learner.name else run.trained_in
    folder.mkdir(exist_ok=True)
    title = " ".join([run.cell.dataset, run.cell.preset, str(run.cell), run.cell.key[:4], learner.name])
    board = tensorboard and tensorboard / re.sub(r"[^\w+.=-]+", "_", title.strip())
    cost = yield from fit(learner, folder, progress, probe=probe, probe_steps=every, code=study.code, tensorboard=board)
    return cost | {"precision": learner.precision}
