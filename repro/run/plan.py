"""What a table will cost, before it is trained: a few real steps of every recipe, extrapolated to all of its steps."""

import functools
import heapq
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from pandas import DataFrame
from tqdm.auto import tqdm

from repro.run import device as devices
from repro.run.cost import begin, peak_mb
from repro.run.engine import complete
from repro.run.learner import Learner
from repro.run.pools import Pool
from repro.run.store import Cell, Run, Store, trained

MEASURED = 2.0  # seconds of steps that are measured of everything that is trained, and at least one step
Learners = Callable[[Cell, torch.device], Iterator[Learner]]
LEFT_OUT = ("Pre-training and fine-tuning are included; loading data, probes along training and at its end, tests and "
            "other evaluation are not.")


def plan(cells: Sequence[Cell], learners: Learners, store: Store, device: torch.device, pool: Pool | None) -> str:
    """Cells, steps, time and memory of each recipe of a table, and the time of all with the processes chosen, as text.

    Nothing is kept: the steps are taken in a scratch folder, by the processes that would train. As many cells as these
    train at once are measured at once, where there are so many: beside others a step takes longer than alone.

    Args:
        cells: of the table.
        learners: what is trained for a cell, one after the other.
        store: where the cells are, finished, begun or not.
        device, pool: to train with, see `repro.run.engine.run_cells`.

    Raises:
        NonFiniteLoss, ChildProcessError: as `complete`, if a recipe does not get through its first steps.
        ValueError: in a process group, whose processes take all steps together.
    """
    if devices.grouped():
        raise ValueError("a plan is made by one process; leave out torchrun")
    unique = list({cell.key: cell for cell in cells}.values())
    missing = [cell for cell in unique if store.run(cell).result is None]
    finished = f"{len(unique) - len(missing)} of {len(unique)} cells are finished"
    if not missing:
        return f"{finished}; nothing is left to train."
    workers = min(len(missing), pool.count() if pool else 1)
    costs = _measured(missing, learners, store, device, pool, workers)
    times = [_seconds_left(store.run(cell), costs[cell.recipe.canonical()]) for cell in missing]
    table = _rows(missing, times, costs).to_string(index=False, float_format="{:.4g}".format)
    who = f"{workers} processes" if workers > 1 else "one process"
    memory = "" if device.type == "cuda" else f", {workers * max(cost['peak_mb'] for cost in costs.values()):.0f} MB"
    total = f"{duration(sum(times))} of training; with {who} about {duration(makespan(times, workers))}{memory}"
    return f"{table}\n{finished}; left are {total}.\n{LEFT_OUT}"


def _measured(
    cells: Sequence[Cell], learners: Learners, store: Store, device: torch.device, pool: Pool | None, workers: int
) -> dict[str, dict[str, float]]:
    """What `calibrate` finds of every recipe of the cells, by its canonical form.

    Where several of its cells are measured, it is the mean of their times and the most memory that one of them takes.
    Of every recipe that is one cell, and further ones only until there are as many as `workers`.
    """
    first: dict[str, Cell] = {}
    further = [cell for cell in cells if first.setdefault(cell.recipe.canonical(), cell) is not cell]
    chosen = [*first.values(), *further[: max(0, workers - len(first))]]
    tqdm.write(f"measuring a few steps of {len(first)} recipes", file=sys.stderr)
    store.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".plan-", dir=store.root) as folder:  # workers elsewhere see it too
        scratch = Store(Path(folder))
        complete(chosen, functools.partial(calibrate, learners=learners, device=device), scratch, pool)
        found = DataFrame([scratch.run(cell).read()["cost"] for cell in chosen])
    found = found.groupby([cell.recipe.canonical() for cell in chosen])
    return found.mean().assign(peak_mb=found["peak_mb"].max()).to_dict("index")


def calibrate(run: Run, progress: tqdm, *, learners: Learners, device: torch.device) -> dict[str, dict[str, float]]:
    """Take a few steps of everything that is trained for the run's cell, in the place of training it.

    Returns:
        A result with nothing but a cost. Of that: steps, of the first learner, whose progress is logged; seconds, what
        they will take; seconds_after, what those of the other learners will take; peak_mb, memory of the process, on
        CUDA of the device, so far in this cell.
    """
    begin(device)
    with devices.threads(run.cell.recipe.threads), devices.full_precision():
        found = [(learner.total_steps, forecast(learner, device)) for learner in learners(run.cell, device)]
    (steps, seconds), *others = found
    after = sum(each for _, each in others)
    cost = {"steps": float(steps), "seconds": seconds, "seconds_after": after, "peak_mb": float(peak_mb(device))}
    return {"cost": cost}


def forecast(learner: Learner, device: torch.device, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that all steps of an untrained learner will take, by a few of its first epoch, which it takes.

    The first step counts as often as there are costly steps; other steps as the mean of those that follow it.
    """
    def step() -> float:
        began = clock()
        learner.step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return clock() - began

    if not learner.total_steps:
        return 0.0
    opening = step()
    others: list[float] = []
    most = min(learner.steps_per_epoch, learner.total_steps) - 1
    while len(others) < most and sum(others) < MEASURED:
        others.append(step())
    usual = sum(others) / len(others) if others else opening
    return learner.costly_steps * opening + (learner.total_steps - learner.costly_steps) * usual


def makespan(times: Sequence[float], workers: int) -> float:
    """Time until all is done if every worker takes the next of the times as soon as it is free."""
    free = [0.0] * workers
    for each in times:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def duration(seconds: float) -> str:
    """A time as one reads it: 45 s, 12 min or 3.5 hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _seconds_left(run: Run, cost: dict[str, float]) -> float:
    return cost["seconds"] * (1 - trained(run.folder)) + cost["seconds_after"]


def _rows(cells: Sequence[Cell], times: Sequence[float], costs: dict[str, dict[str, float]]) -> DataFrame:
    """One row per recipe that is not finished; times in minutes."""
    found = DataFrame({"cell": [cell.label for cell in cells], "left": times})
    found["recipe"] = [cell.recipe.canonical() for cell in cells]
    grouped = found.groupby("recipe", sort=False)
    rows = grouped.agg(cell=("cell", "first"), cells=("cell", "size"), minutes_left=("left", "sum"))
    measured = DataFrame(costs).T.loc[rows.index]
    rows.insert(2, "steps", measured["steps"].astype(int))
    rows.insert(3, "minutes_per_cell", (measured["seconds"] + measured["seconds_after"]) / 60)
    rows["minutes_left"] /= 60
    return rows.assign(memory_mb=measured["peak_mb"].astype(int))
