"""Many cells: whoever is free claims one, trains it, stores its result, and goes on to the next.

Cells are claimed through the store's locks, which also count how often a command has tried each. So any number of
processes that go through the same cells share their work: this one, worker processes of this machine, or those of a
dask cluster. There is one process for each GPU, which trains several cells in turns, each in a lane of its own.
"""

import contextlib
import dataclasses
import datetime
import functools
import importlib.util
import itertools
import math
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import torch
from tqdm import tqdm  # not a widget: an executed notebook keeps text alone

from repro.data.disk import REMEDIES, naming
from repro.data.parallel import UNGUARDED, processes
from repro.recipe import choose, parse_number
from repro.run import device as devices
from repro.run.device import cores, first, from_first, gpu_names, grouped
from repro.run.fit import NonFiniteLoss
from repro.run.store import TRIES, Cell, Run, Store

ENGINES = ("auto", "inline", "local", "dask")
ONE_PROCESS = threading.Lock()  # the threads of a worker of dask have one number of CPU threads, part of a CPU result
LOST = ChildProcessError("its process was lost (perhaps for want of memory, unless it says why above)")
Train = Callable[[Run, tqdm], Generator[None, None, dict[str, Any]]]
Say = Callable[[Cell], str]
Ended = Generator[tuple[Run, Exception | None], None, None]  # each run when it has ended, with its error
Errors = dict[str, Exception]  # by key


@dataclasses.dataclass(frozen=True)
class Pool:
    """Who trains: this process, unless there are `workers` of this machine, or an `address` of a dask scheduler.

    On CUDA each worker has a GPU of its own, on which it trains so many cells in turns, its `lanes`. Those of a cluster
    see the same REPRO_RUNS and REPRO_DATA; what is trained on CUDA takes one unit of their resource "GPU".
    """

    workers: int = 0
    lanes: int = 1
    on_gpu: bool = False
    address: str = ""

    def __str__(self) -> str:
        workers = f"{self.workers} worker{'s' * (self.workers > 1)}" if self.workers else ""
        lanes = f"{self.lanes} lanes" if self.lanes > 1 else ""
        return self.address or " of ".join(filter(None, (workers, lanes)))

    def count(self) -> int:
        """How many processes train, at least 1."""
        if not self.address:
            return max(1, self.workers)
        with _connected(self.address) as client:
            return max(1, len(client.nthreads()))


@contextlib.contextmanager
def _local(pool: Pool, cells: Sequence[Cell]) -> Iterator[list[tuple[Executor, Sequence[Cell]]]]:
    """An executor for every worker of this machine, which may lose its process alone, and all cells for each."""
    count = min(pool.workers, len(cells))
    environments = [{"CUDA_VISIBLE_DEVICES": name} for name in gpu_names()] if pool.on_gpu else [{}]
    with contextlib.ExitStack() as started:
        places = itertools.islice(itertools.cycle(environments), count)
        yield [(started.enter_context(processes(1, place)), cells) for place in places]


@contextlib.contextmanager
def _cluster(pool: Pool, cells: Sequence[Cell]) -> Iterator[list[tuple[Executor, Sequence[Cell]]]]:
    """The executor of a cluster for every share of the cells: as many as a worker has lanes, or fewer if there are more
    workers. Of a lost one the cluster gives the share to another. OSError if the scheduler does not answer, or is lost.
    """
    with _connected(pool.address) as client:
        workers = len(client.nthreads())
        if not workers:
            tqdm.write(f"no worker has joined {pool.address} yet", file=sys.stderr)
        shares = max(math.ceil(len(cells) / pool.lanes), min(len(cells), workers))
        executor = client.get_executor(pure=False, resources={"GPU": 1} if pool.on_gpu else None)
        try:
            yield [(executor, cells[number::shares]) for number in range(shares)]
        except CancelledError as error:  # so dask says that the connection is lost
            raise ConnectionError(f"the scheduler at {pool.address} is lost; start it again, then give the same "
                                  "command again, and the table goes on") from error


def _connected(address: str) -> Any:
    from distributed import Client

    try:
        return Client(address)
    except OSError as error:
        raise ConnectionError(f"no scheduler answers at {address} ({error}); start one there with `dask scheduler`, or "
                              "leave out its address for workers of this machine") from error


def pool_of(engine: str, workers: str | int, cells: Sequence[Cell], device: torch.device) -> Pool:
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
        return Pool(0, lanes, on_gpu)
    if engine == "dask" and importlib.util.find_spec("distributed") is None:
        raise ValueError("engine='dask' needs dask.distributed; install it with: pip install '.[cluster]'")
    if "://" in str(workers):
        return Pool(0, lanes, on_gpu, str(workers))
    if ":" in str(workers):
        raise ValueError(f"workers={workers!r} should be a number, or an address such as 'tcp://{workers}'")
    places = torch.cuda.device_count() if on_gpu else cores() // cells[0].recipe.threads
    count = max(1, places) if workers == "auto" else parse_number("workers", workers, least=1)
    if on_gpu and count > places:
        raise ValueError(f"workers={workers} exceeds the number of GPUs here, {places}, of which each trains "
                         f"{lanes} cells at once in one process; leave it out")
    small = count == 1 or (workers == "auto" and cells[0].preset == "smoke")
    return Pool(0 if engine == "auto" and small else count, lanes, on_gpu)


def run_cells(
    cells: Sequence[Cell], train: Train, store: Store, *, pool: Pool = Pool(), say: Say | None = None
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
        ChildProcessError: the same where workers were lost or met errors, twice at the same cell, or a lane met one
            beside others; at once if no worker comes to its first cell.
        OSError: as `Store.require_writable`, before anything is trained.
    """
    command = secrets.token_hex(8)
    failed: Errors = {}

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
        with _Progress(runs, pool, store, say, failed) as progress:
            if pool.workers or pool.address:
                tried = _handed_out(runs, train, store, pool, command, progress)
            else:
                tried = _here(runs, train, pool.lanes, command, progress)
        if not from_first(functools.partial(bool, tried)):  # others hold what is left
            for cell in from_first(left)[:1]:
                from_first(store.run(cell).wait)
    failed = from_first(lambda: failed)  # a process group ends as its first process does
    if failed:
        lost = any(isinstance(error, ChildProcessError) for error in failed.values())
        lines = "".join(f"\n  {error}" for error in failed.values())
        raise (ChildProcessError if lost else NonFiniteLoss)(
            f"{len(failed)} of {len(cells)} cells failed, the others are done:{lines}\n"
            "once the reason is gone, the same command trains them again"
        )


def _here(runs: Sequence[Run], train: Train, lanes: int, command: str, progress: "_Progress") -> bool:
    """Train the cells that no other command holds in this process, or its group at once; whether that was any.

    The steps of a single lane have a bar of their own, and an error of one that is no divergence is raised as it is.
    """
    tried = False
    with tqdm(unit="step", leave=False, disable=None if lanes == 1 and first() else True) as steps:

        def show(run: Run) -> None:
            steps.set_description(f"{run.cell}")
            if lanes > 1:
                progress.show()

        with contextlib.closing(in_lanes(runs, train, lanes, command, steps, show)) as ended:
            for run, error in ended:
                if error and not isinstance(error, NonFiniteLoss):
                    if lanes == 1:
                        raise error
                    traceback.print_exception(error)
                if error:
                    progress.failed[run.cell.key] = _named(run.cell, error)
                tried |= error is not None or run.result is not None
                progress.tell()
    return tried


def _handed_out(
    runs: Sequence[Run], train: Train, store: Store, pool: Pool, command: str, progress: "_Progress"
) -> bool:
    """Have the workers of a pool go through the cells once; whether they have tried any.

    A cell whose process is lost, or that ends with an error of its own, is tried once more by the next process that
    comes to it: one of those that are at work, or of the next round.
    """
    before = {run.cell.key: run.tries(command) for run in runs}
    errors: Errors = {}
    broken: BaseException | None = None
    with (_cluster if pool.address else _local)(pool, [run.cell for run in runs]) as shares:
        lanes = min(pool.lanes, math.ceil(len(runs) / len(shares)))
        waiting = {executor.submit(worked, cells, train, store, lanes, command) for executor, cells in shares}
        while waiting:
            ended, waiting = wait(waiting, timeout=0.5)
            progress.tell()
            for future in ended:
                broken = future.exception() or broken
                errors |= {} if future.exception() else future.result()
    tried = False
    for run in runs:
        key, tries = run.cell.key, run.tries(command)
        tried |= run.result is not None
        if tries == before[key] and key not in errors:
            continue
        tried, error = True, errors.get(key, LOST)
        named, final = _named(run.cell, error), _final(error) or tries == before[key]  # where nothing can be counted
        if run.result is None and (tries >= TRIES or final):
            progress.failed[key] = named if final else ChildProcessError(f"{named} (tried twice)")
        if not before[key] and not final and (run.result is None or tries >= TRIES):
            tqdm.write(f"{named}; trying once more", file=sys.stderr)
    if broken and not tried:
        why = UNGUARDED if isinstance(broken, BrokenProcessPool) else f"{type(broken).__name__}: {broken}"
        raise ChildProcessError(f"no worker came to its first cell; unless it says why above: {why}") from None
    return tried


def worked(cells: Sequence[Cell], train: Train, store: Store, lanes: int, command: str) -> Errors:
    """What a worker does, which shows no progress: whoever started it does. Returns the errors that it met.

    One that is neither a divergence nor of a disk that is full or may not be written may have left the process in any
    state: it begins no further cell.
    """
    errors: Errors = {}
    runs = [store.run(cell) for cell in cells]
    with ONE_PROCESS, tqdm(disable=True) as steps:
        for run, error in in_lanes(runs, train, lanes, command, steps, careful=True):
            if error and not _final(error):
                traceback.print_exception(error)
                error = ChildProcessError(f"{type(error).__name__}: {error}")
            if error:
                errors[run.cell.key] = error
    return errors


def _final(error: BaseException) -> bool:
    """Whether another try would end alike."""
    return isinstance(error, NonFiniteLoss) or (isinstance(error, OSError) and error.errno in REMEDIES)


def in_lanes(
    runs: Sequence[Run], train: Train, lanes: int, command: str, steps: tqdm,
    show: Callable[[Run], None] = lambda run: None, *, careful: bool = False,
) -> Ended:
    """Train runs, so many of them in turns.

    On CUDA each has the stream of its lane: what it has handed to the device runs while others have their turns.

    Args:
        runs: what to train, in order; those that other commands hold are left to them.
        train, steps: see `run_cells`; the bar is that of a single lane.
        lanes: how many runs are trained at once.
        command: by whose tries a run is left alone, see `Run.claim`.
        show: called with a run before each of its turns.
        careful: begin no further run after an error that another process might not meet.
    """
    waiting = [*runs]
    streams = [torch.cuda.Stream() if lanes > 1 and torch.cuda.is_available() else None for _ in range(lanes)]
    running: list[tuple[Run, torch.cuda.Stream | None, Generator[None, None, None]]] = []
    try:
        while waiting or running:
            while waiting and streams:
                run = waiting.pop(0)
                running.append((run, streams.pop(), _settled(run, functools.partial(train, run, steps), command)))
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
                    error = None if isinstance(end, StopIteration) else end
                    if careful and error and not _final(error):
                        waiting.clear()
                    yield run, error
    finally:
        for _, _, training in running:
            training.close()  # lets go of the cells at once: whoever asks for the traceback keeps all that it meets


def _settled(
    run: Run, train: Callable[[], Generator[None, None, dict[str, Any]]], command: str
) -> Generator[None, None, None]:
    """Bring a run to its result, in turns, unless another command holds it.

    In a process group the first claims it and writes what comes of it; all of them diverge, as they average losses.
    """
    with contextlib.ExitStack() as held:

        def to_be_trained() -> bool:
            return run.result is None and held.enter_context(run.claim(command)) and run.result is None

        if from_first(to_be_trained):
            try:
                result = yield from train()
                from_first(functools.partial(run.finish, result))
            except Exception as error:
                if _final(error) and first():
                    with contextlib.suppress(OSError):  # of the disk that is full
                        run.give_up(command)
                raise


class _Progress:
    """A bar of cells, which counts what is trained of each, whoever does it, and a line for each that is finished.

    Attributes:
        failed: the errors of cells that are not tried again, by key.
    """

    def __init__(self, runs: Sequence[Run], pool: Pool, store: Store, say: Say | None, failed: Errors) -> None:
        self.runs, self.untold, self.store, self.say, self.failed = runs, [*runs], store, say, failed
        self.began, done = time.monotonic(), self._done()
        title = ", ".join(filter(None, ("cells", str(pool))))
        self.bar = tqdm(total=len(runs), initial=done, desc=title, unit="cell", disable=None if first() else True)
        self.bar.initial = done  # a hidden bar has none

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def _done(self) -> float:
        return round(sum(run.done for run in self.runs), 2)

    def show(self) -> None:
        """Bring the bar up to date; output that is no terminal has none."""
        self.bar.n = self._done()
        self.bar.refresh()

    def tell(self) -> None:
        """Bring the bar up to date, and say what came of cells that were finished since, and how long others will take
        by what these took.
        """
        self.show()
        for run in [run for run in self.untold if run.result is not None]:
            self.untold.remove(run)
            if self.say and first():
                line, gained = f"{run.cell}: {self.say(run.cell)}", self.bar.n - self.bar.initial
                left = self.bar.total - self.bar.n - len({run.cell.key for run in self.runs} & self.failed.keys())
                if gained > 0 and left > 0:
                    line += f", about {tqdm.format_interval((time.monotonic() - self.began) * left / gained)} left"
                tqdm.write(line, file=sys.stderr)
                now, path = datetime.datetime.now().astimezone(), self.store.root / "finished.log"
                with naming(path), path.open("a") as log:
                    log.write(f"{now.isoformat(timespec='seconds')} {line}\n")


def _named(cell: Cell, error: BaseException) -> Exception:
    """The error with the name of its cell: a divergence stays one, all else is that of a process."""
    if isinstance(error, (NonFiniteLoss, ChildProcessError)):
        return type(error)(f"{cell}: {error}")
    return ChildProcessError(f"{cell}: {type(error).__name__}: {error}")
