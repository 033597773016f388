"""One run from its first step to its result, and what its weights are asked for later."""

import functools
from collections.abc import Callable, Generator
from typing import Any

import torch
from pandas import DataFrame
from tqdm import tqdm

from repro.run import device as devices
from repro.run.code import identity
from repro.run.fit import fit, load_checkpoint, taking_over
from repro.run.store import Run, RunFolder, Store, read_frame, write_frame


def train(
    folder: RunFolder, progress: tqdm, *, study: Any, device: torch.device
) -> Generator[None, None, dict[str, Any]]:
    """Train a run to its end, from its checkpoints if there are any, and measure it; yields as `fit`.

    A run that is measured otherwise than its preset is has the training of the preset's run, in that one's folder.

    Args:
        folder: of the run.
        progress: a bar to count steps on, and the evaluation.
        study: the run's, a `repro.table.Study`.
        device: to train on.

    Returns:
        The content of `result.json`: what `study.measure` gives, and "cost", with the seconds of the first learner.

    Raises:
        ValueError: as `Run.require`; if the recipe does not suit the data, or the weights to be measured are lost.
        NonFiniteLoss: as `fit`.
    """
    devices.begin(device)
    run = folder.run
    recipe: Any = run.recipe
    data = study.load(recipe)
    run.require(data.digest)
    if folder.measured_again and devices.from_first(lambda: load_checkpoint(folder.trained_in) is None):
        raise ValueError(f"{folder.trained_in} has lost its weights; give the same command again, and {run} is "
                         "trained by itself")
    costs: list[dict[str, Any]] = []
    measured: dict[str, list[Any]] = {}
    for learner in study.learners(recipe, data, run.seed, device):
        if devices.first():
            folder.begin()
        place = folder.path / learner.name if learner.name else folder.trained_in
        place.mkdir(exist_ok=True)
        probe = functools.partial(study.probe, learner) if study.probe and not learner.name else None
        cost = yield from fit(
            learner, place, progress, code=study.code, probe=probe,
            probe_steps=recipe.probe_every * learner.steps_per_epoch if probe else 0)
        costs.append(cost | {"precision": learner.precision})
        progress.set_postfix_str("evaluating")
        for name, value in study.measure(learner).items():
            measured.setdefault(name, []).append(value)
        progress.update()
    means = {name: values[-1] if isinstance(values[-1], str) else sum(values) / len(values)
             for name, values in measured.items()}
    return means | {"cost": devices.cost(device) | {"code": study.code} | costs[0]}


def checkpoint(id: str) -> dict[str, Any]:
    """The state of a finished run's learner; ValueError if there is no such run, FileNotFoundError if it has none."""
    store = Store()
    if not (store.path(id) / "result.json").exists():
        raise ValueError(f"id={id!r} is not that of a finished run in {store.root}; see `repro results list`, whose "
                         "runs of figures/runs.csv have no weights here until `repro run` has trained them")
    folder = store.trained_in(id)
    state = load_checkpoint(folder)
    if state is None:
        raise FileNotFoundError(f"{folder} has no sound checkpoint; delete that folder and run the table again")
    return state["learner"]


def restored(run: Run, study: Any, device: torch.device, **changes: Any) -> Any:
    """The learner of a finished run with its last weights, on any device; what it draws from begins anew.

    Of studies whose runs have several learners it is the main one. Changes of its recipe give it other data.

    Raises:
        ValueError, FileNotFoundError: as `Run.require`, the study's `load` and `checkpoint`.
    """
    recipe: Any = run.recipe.replace(**changes)
    data = study.load(recipe)
    if not changes:
        run.require(data.digest)
    learner, state = next(study.learners(recipe, data, run.seed, device)), checkpoint(run.id)
    with taking_over(Store().trained_in(run.id)):
        learner.load_weights(state)
    return learner


def kept(run: Run, name: str, compute: Callable[[], DataFrame]) -> DataFrame:
    """The frame of that name that was computed once from a finished run, with its data set, preset and seed.

    `compute` is a function of a module, or such a one with arguments (`functools.partial`).

    It says of which version of training and evaluation it is, and by which code it was made: of the recipe's
    modality, of the paper whose function `compute` is, and of `repro.report`. It is made again where these
    are others today, unless the run has lost its checkpoint. In a process group all processes compute, as an
    encoder may need them all, and the first writes.
    """
    folder = Store().folder(run)
    path = folder.path / name
    makers = type(run.recipe).__module__, getattr(compute, "func", compute).__module__, "repro.report"
    today = {"version": run.version, "evaluation": run.evaluation, "code": identity(makers)}

    def current() -> bool:
        if not path.exists():
            return False
        rows, remakeable = read_frame(path), (folder.trained_in / "checkpoint.pt").exists()
        alike = all(name in rows and (rows[name] == now).all() for name, now in today.items())
        return alike or not remakeable

    if not devices.from_first(current):
        with devices.threads(run.recipe.threads):
            rows = compute().assign(dataset=run.dataset, preset=run.preset, **today)
        devices.from_first(lambda: write_frame(rows, path))
    return read_frame(path).drop(columns="code", errors="ignore").assign(seed=run.seed)
