"""What a table will cost, before it is trained: a few real steps of every recipe, extrapolated to all of its steps."""

import dataclasses
import functools
import heapq
import statistics
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence

import torch
from pandas import DataFrame
from tqdm.auto import tqdm

from repro.data.disk import scratch
from repro.run import device as devices
from repro.run.engine import Cluster, Here, Local, run_cells
from repro.run.learner import Learner
from repro.run.store import Cell, Run, Store, trained

MEASURED = 2.0  # seconds of steps that are measured of everything that is trained, and at least one step
Learners = Callable[[Cell, torch.device], Iterator[Learner]]
LEFT_OUT = ("Pre-training and fine-tuning are included; loading data, probes along training and at its end, tests and "
            "other evaluation are not; nor is what lanes of a GPU gain.")


def plan(
    cells: Sequence[Cell], learners: Learners, store: Store, device: torch.device, pool: Here | Local | Cluster
) -> str:
    """Cells, steps, time and memory of each recipe of a table, and the time of all with the processes chosen, as text.

    Nothing is kept: the steps are taken in a scratch folder, by the processes that would train. `learners` are what is
    trained for a cell, one after the other. Raises as `run_cells`, if a recipe does not get through its first steps.
    """
    if devices.grouped():
        raise ValueError("a plan is made by one process; leave out torchrun")
    unique = list({cell.key: cell for cell in cells}.values())
    runs = [run for run in map(store.run, unique) if run.result is None]
    finished = f"{len(unique) - len(runs)} of {len(unique)} cells are finished"
    if not runs:
        return f"{finished}; nothing is left to train."
    by_recipe = {run.cell.recipe.canonical(): run.cell for run in reversed(runs)}  # the first of each
    costs = _measured([*by_recipe.values()], learners, store, device, pool)
    rows = DataFrame([{"cell": run.cell.label} | costs[run.cell.recipe.canonical()] for run in runs])
    rows["minutes_per_cell"] = (rows["seconds"] + rows["seconds_after"]) / 60
    share_left = [1 - trained(run.folder) for run in runs]
    rows["minutes_left"] = (rows["seconds"] * share_left + rows["seconds_after"]) / 60
    recipes = rows.groupby([run.cell.recipe.canonical() for run in runs], sort=False)
    table = recipes.agg(
        cell=("cell", "first"), cells=("cell", "size"), steps=("steps", "first"),
        minutes_per_cell=("minutes_per_cell", "first"), minutes_left=("minutes_left", "sum"),
        memory_mb=("peak_mb", "first"),
    ).to_string(index=False, float_format="{:.4g}".format)
    workers = min(len(runs), pool.count())
    who = f"{workers} processes" if workers > 1 else "one process"
    times = [60 * minutes for minutes in rows["minutes_left"]]
    memory = "" if device.type == "cuda" else f", {workers * rows['peak_mb'].max()} MB"
    total = f"{duration(sum(times))} of training; with {who} about {duration(makespan(times, workers))}{memory}"
    return f"{table}\n{finished}; left are {total}.\n{LEFT_OUT}"


def _measured(
    cells: Sequence[Cell], learners: Learners, store: Store, device: torch.device, pool: Here | Local | Cluster
) -> dict[str, dict[str, float]]:
    """What `calibrate` finds of cells of different recipes, by the canonical form of these."""
    tqdm.write(f"measuring a few steps of {len(cells)} recipes", file=sys.stderr)
    with scratch(store.root / ".plan") as folder:  # workers elsewhere see it too
        measured = Store(folder)
        measure = functools.partial(calibrate, learners=learners, device=device)
        run_cells(cells, measure, measured, pool=dataclasses.replace(pool, lanes=1), announced=False)
        return {cell.recipe.canonical(): measured.run(cell).read()["cost"] for cell in cells}


def calibrate(
    run: Run, progress: tqdm, *, learners: Learners, device: torch.device
) -> Generator[None, None, dict[str, dict[str, float]]]:
    """Take a few steps of everything that is trained for the run's cell, in the place of training it.

    Returns:
        A result with nothing but a cost: steps and forecast seconds of the first learner, whose progress is logged;
        seconds_after, of the others; peak_mb, memory of the process, on CUDA of the device, so far in this cell.
    """
    devices.begin(device)
    forecasts = []
    for learner in learners(run.cell, device):
        forecasts.append((learner.total_steps, forecast(learner, device)))
        yield
    (steps, seconds), *others = forecasts
    after = sum(seconds for _, seconds in others)
    return {"cost": {"steps": steps, "seconds": seconds, "seconds_after": after, "peak_mb": devices.peak_mb(device)}}


def forecast(learner: Learner, device: torch.device) -> float:
    """Seconds that all steps of an untrained learner will take, by a few of its first epoch, which it takes.

    The first step counts as often as there are costly steps; other steps as the median of those that follow it, some of
    which are recorded.
    """
    def step() -> float:
        began = time.perf_counter()
        learner.step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - began

    if not learner.total_steps:
        return 0.0
    opening = step()
    others: list[float] = []
    most = min(learner.steps_per_epoch, learner.total_steps) - 1
    while len(others) < most and sum(others) < MEASURED:
        others.append(step())
    usual = statistics.median(others) if others else opening
    return learner.costly_steps * opening + (learner.total_steps - learner.costly_steps) * usual


def makespan(times: Sequence[float], workers: int) -> float:
    """Time until all is done if every worker takes the next of the times as soon as it is free."""
    free = [0.0] * workers
    for seconds in times:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def duration(seconds: float) -> str:
    """A time as one reads it: 45 s, 12 min or 3.5 hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
