"""Many cells: whoever is free claims one, trains it, stores its result, and goes on to the next.

Cells are claimed through the store's locks, so any number of processes that ask for the same table share its work: this
one (`Here`), or a pool of workers that it hands them to, of this machine (`Local`) or of a dask cluster (`Cluster`).
There is one process for each GPU, which trains several cells in turns, each in a lane of its own.
"""

import contextlib
import dataclasses
import datetime
import functools
import importlib.util
import math
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from typing import Any

import torch
from tqdm import tqdm  # not a widget: an executed notebook keeps text alone

from repro.data.disk import REMEDIES, naming
from repro.data.parallel import Workers
from repro.recipe import choose, parse_number
from repro.run import device as devices
from repro.run.device import cores, first, from_first, gpu_names, grouped
from repro.run.fit import NonFiniteLoss
from repro.run.store import Cell, Run, Store

ENGINES = ("auto", "inline", "local", "dask")
ONE_PROCESS = threading.Lock()  # the threads of a worker of dask have one number of CPU threads, part of a CPU result
Train = Callable[[Run, tqdm], Generator[None, None, dict[str, Any]]]
Say = Callable[[Cell], str]
Ended = Generator[tuple[Run, Exception | None], None, None]  # each run when it has ended, with its error


@dataclasses.dataclass(frozen=True)
class Here:
    """This process, in a process group together with the others, with so many lanes."""

    lanes: int = 1

    def __str__(self) -> str:
        return f"{self.lanes} lanes"

    def count(self) -> int:
        """How many processes train."""
        return 1


@dataclasses.dataclass(frozen=True)
class Local:
    """So many worker processes of this machine; on CUDA each sees a GPU of its own."""

    workers: int
    device: str
    lanes: int = 1

    def __str__(self) -> str:
        return f"{self.workers} worker{'s' * (self.workers > 1)}" + f" of {self.lanes} lanes" * (self.lanes > 1)

    def count(self) -> int:
        """How many processes train."""
        return self.workers

    def started(self, most: int) -> contextlib.AbstractContextManager[Executor]:
        """The processes, at most so many, which end with the context and with this process, whatever they do."""
        names = gpu_names() if self.device == "cuda" else []
        return Workers(min(self.workers, most), [{"CUDA_VISIBLE_DEVICES": name} for name in names] or [{}])


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Workers of a dask cluster, by the address of its scheduler, that see the same REPRO_RUNS and REPRO_DATA.

    What is trained on CUDA takes one unit of the resource "GPU". dask is imported when it is used.
    """

    address: str
    device: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.address

    def count(self) -> int:
        """How many workers there are now, at least 1."""
        with self._connected() as client:
            return max(1, len(client.nthreads()))

    @contextlib.contextmanager
    def started(self, most: int) -> Iterator[Executor]:
        """The workers as they are; of a lost one the cluster gives the cell to another. OSError without a scheduler."""
        with self._connected() as client:
            if not client.nthreads():
                tqdm.write(f"no worker has joined {self.address} yet", file=sys.stderr)
            try:
                yield client.get_executor(pure=False, resources={"GPU": 1} if self.device == "cuda" else None)
            except CancelledError as error:  # so dask says that the connection is lost
                raise ConnectionError(f"the scheduler at {self.address} is lost; start it again, then give the same "
                                      "command again, and the table goes on") from error

    def _connected(self) -> Any:
        from distributed import Client

        try:
            return Client(self.address)
        except OSError as error:
            raise ConnectionError(f"no scheduler answers at {self.address} ({error}); start one there with `dask "
                                  "scheduler`, or leave out its address for workers of this machine") from error


def pool_of(
    engine: str, workers: str | int, cells: Sequence[Cell], device: torch.device
) -> Here | Local | Cluster:
    """The processes that train the cells.

    Args:
        engine: "inline", this process alone; "local", worker processes of this machine; "dask", those of a dask
            cluster; or "auto": local where several processes train at once, unless cells are smoke runs, which end
            sooner than workers start.
        workers: how many; "auto" is the cores this process may use over the threads of a cell, on CUDA the GPUs. Of
            "dask" the address of a scheduler; otherwise workers of this machine are started.
        cells: to be trained; their recipe says `threads`, and how many `lanes` a GPU has at most.
        device: to train on.

    Raises:
        ValueError: if the two are not of these, do not go together, or dask is asked for and not installed; for more
            workers than GPUs; in a process group, which trains as one, for another engine than "inline".
    """
    choose("engine", engine, ("auto", "inline") if grouped() else ENGINES)
    if "://" in str(workers) and engine != "dask":
        raise ValueError(f"workers={workers} is an address; choose engine 'dask' with it")
    on_gpu = device.type == "cuda"
    lanes = devices.lanes(cells[0].recipe.lanes) if on_gpu and not grouped() else 1
    if grouped() or engine == "inline":
        if workers != "auto" and parse_number("workers", workers, least=1) > 1:
            raise ValueError(f"workers={workers} are not started by engine 'inline' or torchrun; leave them out")
        return Here(lanes)
    if engine == "dask" and importlib.util.find_spec("distributed") is None:
        raise ValueError("engine='dask' needs dask.distributed; install it with: pip install '.[cluster]'")
    if "://" in str(workers):
        return Cluster(str(workers), device.type, lanes)
    if ":" in str(workers):
        raise ValueError(f"workers={workers!r} should be a number, or an address such as 'tcp://{workers}'")
    places = torch.cuda.device_count() if on_gpu else cores() // cells[0].recipe.threads
    count = max(1, places) if workers == "auto" else parse_number("workers", workers, least=1)
    if on_gpu and count > places:
        raise ValueError(f"workers={workers} exceeds the number of GPUs here, {places}, of which each trains "
                         f"{lanes} cells at once in one process; leave it out")
    small = count == 1 or (workers == "auto" and cells[0].preset == "smoke")
    return Here(lanes) if engine == "auto" and small else Local(count, device.type, lanes)


def run_cells(
    cells: Sequence[Cell], train: Train, store: Store, *, pool: Here | Local | Cluster = Here(),
    say: Say | None = None,
) -> None:
    """Bring every cell to its result; complete cells are read, half-done ones resumed, those of others waited for.

    Args:
        cells: what to run, in order.
        train: trains and evaluates one run, counting steps on the bar given, and returns its result: finite floats,
            strings and a dict "cost". It yields where another lane may have its turn.
        store: where runs live.
        pool: the processes that share the cells. A cell's result on a CPU does not depend on it.
        say: what came of a finished cell, in words; with the time left, a line for each is printed and added to
            `finished.log` of the store.

    Raises:
        NonFiniteLoss: after all other cells are done, naming each cell that met a non-finite loss.
        ChildProcessError: the same where processes of the pool were lost or ended with an error, twice at the same
            cell, or a lane did beside others.
        OSError: as `Store.require_writable`, before anything is trained.
    """
    failed: dict[str, Exception] = {}

    def left() -> list[Cell]:
        unfinished = []
        for cell in cells:
            run = store.run(cell)
            if run.result is not None:
                run.clear()  # whoever has finished it may have been killed before
            elif cell.key not in failed:
                unfinished.append(cell)
        return unfinished

    while unfinished := from_first(left):
        if first():
            store.require_writable()
        runs = [store.run(cell) for cell in unfinished]
        with _bar(runs, pool) as bar:
            began = time.monotonic()
            ended = _here(runs, train, pool, bar) if isinstance(pool, Here) else _shared(runs, train, store, pool, bar)
            with contextlib.closing(ended):
                for run, error in ended:
                    if error:
                        failed[run.cell.key] = error
                    _show(bar, runs)
                    if say and first() and (run.folder / "result.json").exists():
                        _tell(bar, f"{run.cell}: {say(run.cell)}", store, len(failed), began)
        for cell in from_first(left)[:1]:  # held by another command
            from_first(store.run(cell).wait)
    if failed:
        lost = any(isinstance(error, ChildProcessError) for error in failed.values())
        lines = "".join(f"\n  {error}" for error in failed.values())
        raise (ChildProcessError if lost else NonFiniteLoss)(
            f"{len(failed)} of {len(cells)} cells failed, the others are done:{lines}\n"
            "once the reason is gone, the same command trains them again"
        )


def _here(runs: Sequence[Run], train: Train, pool: Here, bar: tqdm) -> Ended:
    """Train the cells that no other command holds in this process, or its group at once.

    The steps of a single lane have a bar of their own, and an error of one that is no divergence is raised as it is.
    """
    alone = pool.lanes == 1
    with tqdm(unit="step", leave=False, disable=None if alone and first() else True) as steps:

        def show(run: Run) -> None:
            steps.set_description(f"{run.cell}")
            if not alone:
                _show(bar, runs)

        for run, error in in_lanes(runs, train, pool.lanes, steps, show):
            if error and not isinstance(error, NonFiniteLoss):
                if alone:
                    raise error
                traceback.print_exception(error)
            yield run, _named(run.cell, error) if error else None


def _shared(runs: Sequence[Run], train: Train, store: Store, pool: Local | Cluster, bar: tqdm) -> Ended:
    """Have the pool train the cells that no other command holds.

    A job is as many cells as a process has lanes, or fewer where there are processes for more jobs. A cell whose
    process is lost, or that ends with an error of its own, is tried once more, by itself.
    """
    lost: set[str] = set()
    untold = [*runs]
    cells = [run.cell for run in runs]
    with pool.started(len(cells)) as executor:

        def submitted(job: Sequence[Cell]) -> Future[list[tuple[Cell, Exception]]]:
            return executor.submit(train_in_worker, job, train, store, pool.lanes)

        shares = max(math.ceil(len(cells) / pool.lanes), min(len(cells), pool.count()))
        jobs = [cells[number::shares] for number in range(shares)]
        waiting = {submitted(job): job for job in jobs}
        while waiting:
            _show(bar, runs)
            for future in wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED).done:
                job, error = waiting.pop(future), future.exception()
                if isinstance(error, Troubled):
                    met = error.args[0]
                elif error:
                    met = [(cell, error) for cell in job if store.run(cell).result is None]
                else:
                    met = future.result()
                for cell, error in met:
                    if _final(error):
                        yield store.run(cell), _named(cell, error)
                    elif cell.key in lost:
                        yield store.run(cell), ChildProcessError(f"{_named(cell, error)} (tried twice)")
                    else:
                        tqdm.write(f"{_named(cell, error)}; trying once more", file=sys.stderr)
                        lost.add(cell.key)
                        waiting[submitted([cell])] = [cell]
            for run in [run for run in untold if run.result is not None]:
                untold.remove(run)
                yield run, None


class Troubled(ChildProcessError):
    """Of a worker, which such errors may have left in any state; its argument is what `train_in_worker` returns."""


def train_in_worker(cells: Sequence[Cell], train: Train, store: Store, lanes: int) -> list[tuple[Cell, Exception]]:
    """What a worker does, which shows no progress: whoever started it does.

    Returns the cells that end with an error, with these. Where one is neither a divergence nor of a disk that is full
    or may not be written, they are raised, as `Troubled`, so that another process takes the worker's place.
    """
    ended: list[tuple[Cell, Exception]] = []
    troubled = False
    with ONE_PROCESS, tqdm(disable=True) as steps:
        for run, error in in_lanes([store.run(cell) for cell in cells], train, lanes, steps):
            if error is None:
                continue
            if not _final(error):
                traceback.print_exception(error)
                error, troubled = ChildProcessError(f"{type(error).__name__}: {error}"), True
            ended.append((run.cell, error))
    if troubled:
        raise Troubled(ended)
    return ended


def _final(error: BaseException) -> bool:
    """Whether another try would end alike."""
    return isinstance(error, NonFiniteLoss) or (isinstance(error, OSError) and error.errno in REMEDIES)


def in_lanes(
    runs: Sequence[Run], train: Train, lanes: int, steps: tqdm, show: Callable[[Run], None] = lambda run: None
) -> Ended:
    """Train runs, so many of them in turns.

    On CUDA each has the stream of its lane: what it has handed to the device runs while others have their turns.

    Args:
        runs: what to train, in order; those that other commands hold are left to them.
        train, steps: see `run_cells`; the bar is that of a single lane.
        lanes: how many runs are trained at once.
        show: called with a run before each of its turns.
    """
    waiting = [*runs]
    streams = [torch.cuda.Stream() if lanes > 1 and torch.cuda.is_available() else None for _ in range(lanes)]
    running: list[tuple[Run, torch.cuda.Stream | None, Generator[None, None, None]]] = []
    try:
        while waiting or running:
            while waiting and streams:
                run = waiting.pop(0)
                running.append((run, streams.pop(), _settled(run, functools.partial(train, run, steps))))
            for lane in [*running]:
                run, stream, training = lane
                show(run)
                try:
                    with devices.threads(run.cell.recipe.threads), devices.full_precision(), torch.cuda.stream(stream):
                        next(training)
                except Exception as end:
                    running.remove(lane)
                    streams.append(stream)
                    if lanes > 1:  # what it had on the device is for the next
                        traceback.clear_frames(end.__traceback__)
                    yield run, None if isinstance(end, StopIteration) else end
    finally:
        for _, _, training in running:
            training.close()  # lets go of the cells at once: whoever asks for the traceback keeps all that it meets


def _settled(run: Run, train: Callable[[], Generator[None, None, dict[str, Any]]]) -> Generator[None, None, None]:
    """Bring a run to its result, in turns, unless another command holds it.

    In a process group the first claims it and writes what comes of it; all of them diverge, as they average losses.
    """
    with contextlib.ExitStack() as held:

        def to_be_trained() -> bool:
            return run.result is None and held.enter_context(run.claim()) and run.result is None

        if from_first(to_be_trained):
            result = yield from train()
            from_first(functools.partial(run.finish, result))


def _bar(runs: Sequence[Run], pool: Here | Local | Cluster) -> tqdm:
    """A bar of cells, which counts what is trained of each, whoever does it; hidden where output is no terminal."""
    title = "cells" if pool == Here() else f"cells, {pool}"
    done = _done(runs)
    bar = tqdm(total=len(runs), initial=done, desc=title, unit="cell", disable=None if first() else True)
    bar.initial = done  # a hidden bar has none
    return bar


def _done(runs: Sequence[Run]) -> float:
    return round(sum(run.done for run in runs), 2)


def _show(bar: tqdm, runs: Sequence[Run]) -> None:
    """Bring the bar up to date."""
    bar.n = _done(runs)
    bar.refresh()


def _tell(bar: tqdm, line: str, store: Store, failed: int, began: float) -> None:
    """Print what came of a cell, and how long those left will take by what others took so far."""
    gained, left = bar.n - bar.initial, bar.total - bar.n - failed
    if gained > 0 and left > 0:
        line += f", about {tqdm.format_interval((time.monotonic() - began) * left / gained)} left"
    tqdm.write(line, file=sys.stderr)
    now, path = datetime.datetime.now().astimezone().isoformat(timespec="seconds"), store.root / "finished.log"
    with naming(path), path.open("a") as log:
        log.write(f"{now} {line}\n")


def _named(cell: Cell, error: BaseException) -> Exception:
    """The error with the name of its cell: a divergence stays one, all else is that of a process."""
    if isinstance(error, (NonFiniteLoss, ChildProcessError)):
        return type(error)(f"{cell}: {error}")
    return ChildProcessError(f"{cell}: {type(error).__name__}: {error}")
