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
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from tests.benchmarks.gpu.limits import operations
from tests.benchmarks.made_up import made_up
from tests.benchmarks.spread import largest
from tests.benchmarks.stopwatch import wait

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
PAPER = Setting(SPREAD, (4, 8, 15), 8, 200, {})
TINY = Setting((WHOLE, "CE"), (1, 2), 2, 4, {"units": 8, "projection": 8, "dictionary": 16, "sequence_dictionary": 8})


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name; the first of them is what others are compared with.

    The profile comes late: what records kernels stays in the process and may slow down what follows.
    """
    column = Column(device, tiny)
    return {
        "one after another": column.one_after_another,
        "processes": column.processes,
        "captured": column.captured,
        "streams": column.streams,
        "profile": column.profiled,
    }


class Column:
    """The cells, and what they took one after another."""

    def __init__(self, device: torch.device, tiny: bool) -> None:
        self.device, self.tiny, self.setting = device, tiny, TINY if tiny else PAPER
        self.data = _data(tiny)
        self.seconds: dict[str, float] = {}
        self.losses: Losses = {}

    def learner(self, objectives: str, kind: type[Pretrainer] = Pretrainer) -> Pretrainer:
        """Ready: libraries have prepared themselves."""
        recipe = paper("ucla", objectives, precision="float32", **self.setting.changes)
        with BUILDING:
            learner = kind(recipe, self.data, 0, self.device)
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
        return self._alone("one after another", self.seconds)

    def captured(self) -> dict[str, Any]:
        """Graphs of several cells in turns, then of each cell alone."""
        learners = {name: self.learner(name, Captured) for name in self.setting.objectives}

        def run(names: Sequence[str]) -> tuple[float, Losses]:
            return self.timed({name: learners[name] for name in names})

        together = self._together("captured", run, self.setting.together, renewed=False)
        seconds = {name: self.timed({name: each})[0] for name, each in learners.items()}
        alone = self._alone("captured, one after another", seconds)
        return together | {"one after another": alone, "work": alone["work"] + together["work"]}

    def streams(self) -> dict[str, Any]:
        """Threads, each with a stream and a cell."""
        return self._together("streams", self._in_threads, (self.setting.threads,))

    def processes(self) -> dict[str, Any]:
        """Processes, each with a cell."""
        with _crew(max(self.setting.together), self.device, self.tiny) as crew:
            return self._together("processes", functools.partial(_in_processes, crew), self.setting.together)

    def profiled(self) -> dict[str, Any]:
        """Where the time of a step with all four terms goes, and for what share of it the device is busy."""
        learner, steps = self.learner(WHOLE), min(10, self.setting.steps)
        on_device = self.device.type == "cuda"
        kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_device else [])]
        with profile(activities=kinds) as profiler:
            for _ in range(steps):
                learner.step()
            wait(self.device)
        events = profiler.key_averages()
        order = "self_device_time_total" if on_device else "self_cpu_time_total"
        found = {"table": events.table(sort_by=order, row_limit=20, max_name_column_width=60)}
        kernels = [each for each in events if each.device_type == DeviceType.CUDA and not each.is_user_annotation]
        if on_device and not kernels:
            return found | {"error": "the profiler saw no kernel, so nothing is known of how busy the device is"}
        step = self.seconds[WHOLE] / self.setting.steps
        busy = sum(each.self_device_time_total for each in kernels) / 1e6 / steps
        return found | {"kernels a step": sum(each.count for each in kernels) / steps, "busy": busy / step}

    def _alone(self, way: str, seconds: dict[str, float]) -> dict[str, Any]:
        steps = self.setting.steps
        whole = sum(seconds.values())
        return {
            "milliseconds a step": {name: 1e3 * each / steps for name, each in seconds.items()},
            "minutes a column, without probes": taxonomy_step.STEPS_OF_A_CELL / steps * whole / 60,
            "times": sum(self.seconds.values()) / whole,
            "work": [self._work(way, seconds, whole)],
        }

    def _together(
        self,
        way: str,
        run: Callable[[Sequence[str]], tuple[float, Losses]],
        counts: Sequence[int],
        renewed: bool = True,
    ) -> dict[str, Any]:
        """How many times as fast several cells are at once, by their number, and how far their losses are off.

        Args:
            way: its name.
            run: what takes their steps.
            counts: of cells, growing.
            renewed: whether it starts from new cells; if not, only the losses of the first run can be compared.
        """
        found, works = {}, []
        for count in reversed(counts):
            names = self.setting.objectives[:count]
            seconds, losses = run(names)
            times = sum(self.seconds[name] for name in names) / seconds
            found[str(count)] = {"seconds": seconds, "times": times, "device MiB": self._used()}
            if renewed or len(found) == 1:
                found[str(count)]["difference"] = largest(self._difference(name, losses[name]) for name in names)
            works.append(self._work(f"{way}, {count} at once", names, seconds))
        return {"at once": found, "work": works}

    def _used(self) -> int:
        """MiB of the device's memory that all processes hold together; 0 on a CPU."""
        free, whole = torch.cuda.mem_get_info() if self.device.type == "cuda" else (0, 0)
        return (whole - free) // 2**20

    def _difference(self, name: str, losses: list[float]) -> float:
        """The largest relative difference from the losses of the cell alone."""
        pairs = zip(losses, self.losses[name], strict=True)
        return largest(abs(each - alone) / max(abs(alone), 1e-6) for each, alone in pairs)

    def _work(self, way: str, names: Iterable[str], seconds: float) -> dict[str, Any]:
        amount = self.setting.steps * sum(_operations(name, self.tiny) for name in names)
        return {"path": f"skeletons, {way}", "limit": "float32", "amount": amount, "seconds": seconds}

    def _in_threads(self, names: Sequence[str]) -> tuple[float, Losses]:
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
            losses = [each.result() for each in running]
            return time.perf_counter() - start, {name: each[name] for name, each in zip(names, losses, strict=True)}


@contextlib.contextmanager
def _crew(count: int, device: torch.device, tiny: bool) -> Iterator[list[Connection]]:
    """Processes that train cells; on a CPU they are forked, which saves the imports."""
    context = multiprocessing.get_context("spawn" if device.type == "cuda" else "fork")
    pipes = [context.Pipe() for _ in range(count)]
    members = [context.Process(target=_work, args=(pipe, device.type, tiny), daemon=True) for _, pipe in pipes]
    try:
        for member in members:
            member.start()
        for _, pipe in pipes:
            pipe.close()  # theirs: so that the end of one is seen
        yield [pipe for pipe, _ in pipes]
    finally:
        for member in members:
            member.terminate()
            member.join()


def _work(pipe: Connection, device: str, tiny: bool) -> None:
    """Of a process: for every name that comes make the cell ready, on a second word train it, and send its losses."""
    column = Column(torch.device(device), tiny)
    with devices.threads(1), devices.full_precision():
        while True:
            name = pipe.recv()
            learner = column.learner(name)
            pipe.send("ready")
            pipe.recv()
            pipe.send(column.timed({name: learner})[1])


def _in_processes(crew: list[Connection], names: Sequence[str]) -> tuple[float, Losses]:
    for pipe, name in zip(crew, names, strict=False):
        pipe.send(name)
    for pipe in crew[: len(names)]:
        pipe.recv()
    start = time.perf_counter()
    for pipe in crew[: len(names)]:
        pipe.send("go")
    losses = [pipe.recv() for pipe in crew[: len(names)]]
    return time.perf_counter() - start, {name: value for each in losses for name, value in each.items()}


@functools.cache
def _operations(objectives: str, tiny: bool) -> int:
    """Of the products in one step, counted where no padding is computed: on a CPU."""
    recipe = paper("ucla", objectives, precision="float32", **(TINY if tiny else PAPER).changes)
    return operations(Pretrainer(recipe, _data(tiny), 0, torch.device("cpu")).step)


@functools.cache
def _data(tiny: bool) -> SkeletonSet:
    if tiny:
        return made_up(torch.arange(4, 10).repeat(8), 6)
    with contextlib.suppress(FileNotFoundError):
        return load("ucla")
    return made_up(taxonomy_step.lengths(False), taxonomy_step.FEATURES)
