"""The cells of a column on one device: one after another, and what may run them at once.

- processes: what the engine "local" does, every cell in a process of its own;
- streams: threads of one process, each with a CUDA stream;
- captured: every step a CUDA graph, the graphs of several cells replayed in turns, each on a stream of its own.

All take the same steps of the same cells, whose losses must agree in the end. The column is the fifteen objectives at
the paper's size (NW-UCLA, or made-up sequences of its lengths).
"""

import contextlib
import functools
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
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
from tests.benchmarks.stopwatch import CPU, operations, sequences, wait
from tests.benchmarks.turns import largest

Losses = dict[str, list[float]]  # of the last step, by objective
WHOLE = "AE+CE+AD+CD"
BUILDING = threading.Lock()  # weights are drawn from torch's one generator


class Setting(NamedTuple):
    """What is compared: objectives, of which the first few run at once; steps of each; changes of the recipe."""

    objectives: tuple[str, ...]
    together: tuple[int, ...]  # numbers of processes, and of captured steps
    threads: int
    steps: int
    changes: dict[str, Any]


SPREAD = tuple(SUBSETS[7 * place % len(SUBSETS)] for place in range(len(SUBSETS)))  # light and heavy ones mixed
PAPER = Setting(SPREAD, (15, 8, 4), 8, 200, {})
TINY = Setting((WHOLE, "CE"), (2, 1), 2, 4, {"units": 8, "projection": 8, "dictionary": 16, "sequence_dictionary": 8})


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name; the first of them is what others are compared with.

    The profile comes late: what records kernels stays in the process and may slow down what follows.
    """
    column = Column(device, tiny)
    return {
        "one after another": column.one_after_another,
        "processes": column.processes,
        "captured": column.captured,
        "streams": lambda: column.at_once("streams", column.in_threads, (column.setting.threads,)),
        "profile": column.profiled,
    }


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
        with BUILDING:
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

    def captured(self) -> dict[str, Any]:
        """Graphs of several cells in turns, then of each cell alone."""
        learners = {name: self.learner(name, Captured) for name in self.setting.objectives}
        together = self.at_once("captured", lambda names: self.timed({name: learners[name] for name in names}),
                                self.setting.together, renewed=False)
        seconds = {name: self.timed({name: learner})[0] for name, learner in learners.items()}
        alone = self.alone("captured, one after another", seconds)
        return together | {"one after another": alone, "work": alone["work"] + together["work"]}

    def processes(self) -> dict[str, Any]:
        """Processes, each with a cell."""
        with crew(max(self.setting.together), self.device, self.tiny) as pipes:
            return self.at_once("processes", functools.partial(in_processes, pipes), self.setting.together)

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
        found = {"table": events.table(sort_by=order, row_limit=20, max_name_column_width=60)}
        kernels = [event for event in events if event.device_type == DeviceType.CUDA and not event.is_user_annotation]
        if on_device and not kernels:
            return found | {"error": "the profiler saw no kernel, so nothing is known of how busy the device is"}
        step = self.seconds[WHOLE] / self.setting.steps
        busy = sum(event.self_device_time_total for event in kernels) / 1e6 / steps
        return found | {"kernels a step": sum(event.count for event in kernels) / steps, "busy": busy / step}

    def alone(self, way: str, seconds: dict[str, float]) -> dict[str, Any]:
        """What is said of all cells, each by itself."""
        steps, whole = self.setting.steps, sum(seconds.values())
        return {
            "milliseconds a step": {name: 1e3 * taken / steps for name, taken in seconds.items()},
            "minutes a column, without probes": taxonomy_step.STEPS_OF_A_CELL / steps * whole / 60,
            "times": sum(self.seconds.values()) / whole,
            "work": [self.work(way, list(seconds), whole)],
        }

    def at_once(
        self, way: str, run: Callable[[Sequence[str]], tuple[float, Losses]], counts: Sequence[int], *, renewed=True
    ) -> dict[str, Any]:
        """How many times as fast several cells are at once, by their number, and how far their losses are off.

        Args:
            way: its name.
            run: what takes their steps.
            counts: of cells.
            renewed: whether it starts from new cells; if not, only the losses of the first run can be compared.
        """
        found, works = {}, []
        for count in counts:
            names = self.setting.objectives[:count]
            seconds, losses = run(names)
            free, whole = torch.cuda.mem_get_info() if self.device.type == "cuda" else (0, 0)
            times = sum(self.seconds[name] for name in names) / seconds
            found[str(count)] = {"seconds": seconds, "times": times, "device MiB": (whole - free) // 2**20}
            if renewed or len(found) == 1:
                found[str(count)]["difference"] = largest(self.difference(name, losses[name]) for name in names)
            works.append(self.work(f"{way}, {count} at once", names, seconds))
        return {"at once": found, "work": works}

    def difference(self, name: str, losses: list[float]) -> float:
        """The largest relative difference from the losses of the cell alone."""
        pairs = zip(losses, self.losses[name], strict=True)
        return largest(abs(together - alone) / max(abs(alone), 1e-6) for together, alone in pairs)

    def work(self, way: str, names: Sequence[str], seconds: float) -> dict[str, Any]:
        """The products in all steps, counted where no padding is computed: on a CPU."""
        amount = sum(operations(self.made(name, Pretrainer, CPU).step) for name in names)
        return {"path": f"skeletons, {way}", "limit": "float32", "amount": self.setting.steps * amount,
                "seconds": seconds}

    def in_threads(self, names: Sequence[str]) -> tuple[float, Losses]:
        """Threads, each with a stream and a cell."""
        ready = threading.Barrier(len(names) + 1)

        def run(name: str) -> Losses:
            try:
                with torch.cuda.stream(torch.cuda.Stream() if self.device.type == "cuda" else None):
                    learner = self.learner(name)
                    ready.wait()
                    return self.timed({name: learner})[1]
            except BaseException:
                ready.abort()
                raise

        with ThreadPoolExecutor(len(names)) as threads:
            running = [threads.submit(run, name) for name in names]
            with contextlib.suppress(threading.BrokenBarrierError):  # the thread that broke it says why
                ready.wait()
            start = time.perf_counter()
            losses = [thread.result() for thread in running]
            return time.perf_counter() - start, {name: loss for each in losses for name, loss in each.items()}


@contextlib.contextmanager
def crew(count: int, device: torch.device, tiny: bool) -> Iterator[list[Connection]]:
    """Pipes to processes that train cells; on a CPU they are forked, which saves the imports."""
    context = multiprocessing.get_context("spawn" if device.type == "cuda" else "fork")
    pipes = [context.Pipe() for _ in range(count)]
    members = [context.Process(target=member, args=(pipe, device.type, tiny), daemon=True) for _, pipe in pipes]
    try:
        for process, (_, theirs) in zip(members, pipes, strict=True):
            process.start()
            theirs.close()  # so that its end is seen
        yield [ours for ours, _ in pipes]
    finally:
        for process in members:
            process.terminate()
            process.join()


def member(pipe: Connection, device: str, tiny: bool) -> None:
    """A process: makes the cell ready whose name comes, on a second word trains it, and sends its losses."""
    column = Column(torch.device(device), tiny)
    with devices.threads(1), devices.full_precision():
        while True:
            name = pipe.recv()
            learner = column.learner(name)
            pipe.send("ready")
            pipe.recv()
            pipe.send(column.timed({name: learner})[1])


def in_processes(pipes: list[Connection], names: Sequence[str]) -> tuple[float, Losses]:
    """As many processes as names, started at once when all are ready."""
    busy = pipes[: len(names)]
    for pipe, name in zip(busy, names, strict=True):
        pipe.send(name)
    for pipe in busy:
        pipe.recv()
    start = time.perf_counter()
    for pipe in busy:
        pipe.send("go")
    losses = [pipe.recv() for pipe in busy]
    return time.perf_counter() - start, {name: loss for each in losses for name, loss in each.items()}
