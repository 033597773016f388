"""What a table will cost, before it is trained: a few real steps of every recipe, extrapolated to all of its steps."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch
from pandas import DataFrame
from tqdm import tqdm

from repro.run import device as devices
from repro.run.learner import Learner
from repro.run.store import Run, Store, trained

MEASURED = 2.0  # seconds of steps that are measured of everything that is trained, and at least one step
LEFT_OUT = ("Measured here, by one process. Pre-training and fine-tuning are included; loading data, probes along "
            "training and at its end, tests and other evaluation are not; nor is what lanes of a GPU gain.")


def plan(runs: Sequence[Run], study: Any, store: Store, device: torch.device, processes: int) -> str:
    """Runs, steps, time and memory of each recipe of a table, and the time of all in so many processes, as text.

    Nothing is kept. `study` is that of the runs, a `repro.table.Study`.
    """
    if devices.grouped():
        raise ValueError("a plan is made by one process; leave out torchrun")
    by_recipe: dict[str, list[Run]] = {}
    for run in runs:
        if store.folder(run).result is None:
            by_recipe.setdefault(run.recipe.canonical(), []).append(run)
    left = sum(map(len, by_recipe.values()))
    finished = f"{len(runs) - left} of {len(runs)} runs are finished"
    if not left:
        return f"{finished}; nothing is left to train."
    rows, times, counted = [], [], set()
    for alike in by_recipe.values():
        recipe: Any = alike[0].recipe
        devices.begin(device)
        with devices.threads(recipe.threads), devices.enough_memory(alike[0]):
            learners = study.learners(recipe, study.load(recipe), alike[0].seed, device)
            parts = [(learner.total_steps, forecast(learner, device)) for learner in learners]
        (steps, first), after = parts[0], sum(seconds for _, seconds in parts[1:])
        seconds = []
        for folder in (store.folder(run).trained_in for run in alike):
            taken = steps if folder in counted else round(trained(folder) * (steps + 1))
            counted.add(folder)
            seconds.append(first * max(0, steps - taken) / max(1, steps) + after)
        times += seconds
        rows.append({"run": alike[0].label, "runs": len(alike), "steps": steps,
                     "minutes_per_run": (first + after) / 60, "minutes_left": sum(seconds) / 60,
                     "memory_mb": devices.peak_mb(device)})
    table = DataFrame(rows).to_string(index=False, float_format="{:.4g}".format)
    shared = ""
    if (together := min(processes, left)) > 1:
        shared = f", with {together} processes at least {tqdm.format_interval(max(sum(times) / together, *times))}"
    return f"{table}\n{finished}; left are {tqdm.format_interval(sum(times))} of training{shared}.\n{LEFT_OUT}"


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
