"""The cells of a column on one device: one after another, and what may run them at once.

- processes: what the engine "local" does, every cell in a process of its own;
- captured: every step a CUDA graph, the graphs of several cells replayed in turns, each on a stream of its own.

All take the same steps of the same cells, whose losses must agree in the end. The column is the fifteen objectives at
the paper's size (NW-UCLA, or made-up sequences of its lengths).
"""

import contextlib
import functools
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any, NamedTuple

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from repro.run import device as devices
from repro.skeleton.data import SkeletonSet, load
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import SUBSETS, paper
from tests.benchmarks import taxonomy_step
from tests.benchmarks.gpu.captured import EAGER, Captured
from tests.benchmarks.stopwatch import CPU, largest, operations, sequences, wait

Losses = dict[str, list[float]]  # of the last step, by objective
WHOLE = "AE+CE+AD+CD"


class Setting(NamedTuple):
    """What is compared: objectives, of which the first few run at once; steps of each; changes of the recipe."""

    objectives: tuple[str, ...]
    together: tuple[int, ...]  # numbers of processes, and of captured steps
    steps: int
    changes: dict[str, Any]


SPREAD = tuple(SUBSETS[7 * place % len(SUBSETS)] for place in range(len(SUBSETS)))  # light and heavy ones mixed
PAPER = Setting(SPREAD, (15, 8, 4), 200, {})
TINY = Setting((WHOLE, "CE"), (2, 1), 4, {"units": 8, "projection": 8, "dictionary": 16, "sequence_dictionary": 8})


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name; the first of them is what others are compared with.

    The profile comes last: what records kernels stays in the process and may slow down what follows.
    """
    column = Column(device, tiny)
    return {"one after another": column.one_after_another, "processes": column.processes, "captured": column.captured,
            "profile": column.profiled}


def has_ucla() -> bool:
    """Whether NW-UCLA is at hand."""
    with contextlib.suppress(FileNotFoundError):
        return bool(load("ucla"))
    return False


@functools.cache
def data(tiny: bool) -> SkeletonSet:
    """NW-UCLA, or made-up sequences."""
    if tiny:
        return sequences(torch.arange(4, 10).repeat(8), 6)
    return load("ucla") if has_ucla() else sequences(taxonomy_step.lengths(False), taxonomy_step.FEATURES)


class Column:
    """The cells, and what they took one after another."""

    def __init__(self, device: torch.device, tiny: bool) -> None:
        self.device, self.tiny, self.setting = device, tiny, TINY if tiny else PAPER
        self.seconds: dict[str, float] = {}
        self.losses: Losses = {}

    def made(self, objectives: str, kind: type[Pretrainer], device: torch.device) -> Pretrainer:
        """A new learner."""
        recipe = paper("ucla", objectives, precision="float32", **self.setting.changes)
        return kind(recipe, data(self.tiny), 0, device)

    def learner(self, objectives: str, kind: type[Pretrainer] = Pretrainer) -> Pretrainer:
        """One that is ready: libraries have prepared themselves."""
        learner = self.made(objectives, kind, self.device)
        for _ in range(EAGER + 2):
            learner.step()
        wait(self.device)
        return learner

    def timed(self, learners: dict[str, Pretrainer]) -> tuple[float, Losses]:
        """Seconds of all steps, which the learners take in turns, and their losses."""
        start = time.perf_counter()
        for _ in range(self.setting.steps):
            losses = {name: learner.step() for name, learner in learners.items()}
        wait(self.device)
        return time.perf_counter() - start, {name: values.tolist() for name, values in losses.items()}

    def one_after_another(self) -> dict[str, Any]:
        """Every cell alone; and what all steps of a column would take so."""
        for name in self.setting.objectives:
            self.seconds[name], losses = self.timed({name: self.learner(name)})
            self.losses |= losses
        return self.alone("one after another", self.seconds)

    def processes(self) -> dict[str, Any]:
        """Processes, each with a cell."""
        return self.at_once("processes", functools.partial(in_processes, self.device.type, self.tiny))

    def captured(self) -> dict[str, Any]:
        """Graphs of several cells in turns, then of each cell alone."""
        learners = {name: self.learner(name, Captured) for name in self.setting.objectives}
        together = self.at_once("captured", lambda names: self.timed({name: learners[name] for name in names}))
        seconds = {name: self.timed({name: learner})[0] for name, learner in learners.items()}
        return together | {"one after another": self.alone("captured, one after another", seconds)}

    def profiled(self) -> dict[str, Any]:
        """Where the time of a step with all four terms goes, and for what share of it the device is busy."""
        learner, steps = self.learner(WHOLE), min(10, self.setting.steps)
        on_device = self.device.type == "cuda"
        with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_device else [])]) as profiler:
            for _ in range(steps):
                learner.step()
            wait(self.device)
        events = profiler.key_averages()
        order = "self_device_time_total" if on_device else "self_cpu_time_total"
        kernels = [event for event in events if event.device_type == DeviceType.CUDA and not event.is_user_annotation]
        step = self.seconds[WHOLE] / self.setting.steps
        busy = sum(event.self_device_time_total for event in kernels) / 1e6 / steps / step
        return {"kernels a step": sum(event.count for event in kernels) / steps, "busy": busy,
                "table": events.table(sort_by=order, row_limit=20, max_name_column_width=60)}

    def alone(self, way: str, seconds: dict[str, float]) -> dict[str, Any]:
        """What is said of all cells, each by itself."""
        steps, whole = self.setting.steps, sum(seconds.values())
        return {
            "milliseconds a step": {name: 1e3 * taken / steps for name, taken in seconds.items()},
            "minutes a column, without probes": taxonomy_step.STEPS_OF_A_CELL / steps * whole / 60,
            "times": sum(self.seconds.values()) / whole,
            "work": [self.work(way, list(seconds), whole)],
        }

    def at_once(self, way: str, run: Callable[[Sequence[str]], tuple[float, Losses]]) -> dict[str, Any]:
        """How many times as fast several cells are at once, by their number.

        Of the first run, whose cells are new ones whatever `run` is, also how far losses are off.
        """
        results, works = {}, []
        for count in self.setting.together:
            names = self.setting.objectives[:count]
            seconds, losses = run(names)
            times = sum(self.seconds[name] for name in names) / seconds
            results[str(count)] = {"seconds": seconds, "times": times}
            if len(results) == 1:
                results[str(count)]["difference"] = largest(self.difference(name, losses[name]) for name in names)
            works.append(self.work(f"{way}, {count} at once", names, seconds))
        return {"at once": results, "work": works}

    def difference(self, name: str, losses: list[float]) -> float:
        """The largest relative difference from the losses of the cell alone."""
        pairs = zip(losses, self.losses[name], strict=True)
        return largest(abs(together - alone) / max(abs(alone), 1e-6) for together, alone in pairs)

    def work(self, way: str, names: Sequence[str], seconds: float) -> dict[str, Any]:
        """The products in all steps, counted where no padding is computed: on a CPU."""
        amount = sum(operations(self.made(name, Pretrainer, CPU).step) for name in names)
        return {"path": f"skeletons, {way}", "limit": "float32", "amount": self.setting.steps * amount,
                "seconds": seconds}


def in_processes(device: str, tiny: bool, names: Sequence[str]) -> tuple[float, Losses]:
    """As many processes as names, which begin together; on a CPU they are forked, which saves the imports."""
    context = multiprocessing.get_context("spawn" if device == "cuda" else "fork")
    ready = context.Barrier(len(names))
    with ProcessPoolExecutor(len(names), context, initializer=begin, initargs=(ready,)) as pool:
        ended = list(pool.map(functools.partial(trained, device, tiny), names))
    starts, ends, losses = zip(*ended, strict=True)
    return max(ends) - min(starts), dict(zip(names, losses, strict=True))


def begin(ready: Barrier) -> None:
    """Of a process: where it waits for the others."""
    global all_ready
    all_ready = ready


def trained(device: str, tiny: bool, name: str) -> tuple[float, float, list[float]]:
    """In a process: when the steps of a cell began and ended, on the clock of the machine, and its losses."""
    column = Column(torch.device(device), tiny)
    with devices.threads(1), devices.full_precision():
        learner = column.learner(name)
        all_ready.wait()
        start = time.monotonic()
        _, losses = column.timed({name: learner})
        return start, time.monotonic(), losses[name]
