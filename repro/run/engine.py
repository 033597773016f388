"""Many runs: whoever is free claims one, trains it, stores its result, and goes on to the next.

Runs are claimed through the store's locks, each once in an attempt of a command to train what is left. So any number
of processes that go through the same runs share their work: this one, worker processes of this machine, or those of a
dask cluster. There is one process for each GPU, which trains several runs in turns, each in a lane of its own.
"""

import contextlib
import dataclasses
import functools
import importlib.util
import itertools
import math
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import torch
from tqdm import tqdm  # never tqdm.auto, whose widgets stand at 0 % in a saved notebook

from repro.data.disk import REMEDIES
from repro.data.parallel import UNGUARDED, processes
from repro.recipe import choose, parse_number
from repro.run import device as devices
from repro.run.device import cores, first, from_first, gpu_names, grouped
from repro.run.fit import NonFiniteLoss
from repro.run.store import Run, RunFolder, Store

ENGINES = ("auto", "inline", "local", "dask")
ONE_PROCESS = threading.Lock()  # the threads of a worker of dask have one number of CPU threads, part of a CPU result
LOST = ChildProcessError("its process was lost (perhaps for want of memory, unless it says why above)")
Train = Callable[[RunFolder, tqdm], Generator[None, None, dict[str, Any]]]
Errors = dict[str, Exception]  # by id
Tell = Callable[[Collection[str]], None]  # of what was finished, and has failed


@dataclasses.dataclass(frozen=True)
class Pool:
    """Who trains: this process, unless there are `workers` of this machine, or an `address` of a dask scheduler.

    On CUDA each worker has a GPU of its own, on which it trains so many runs in turns, its `lanes`. Those of a cluster
    see the same REPRO_RUNS and REPRO_DATA; what is trained on CUDA takes one unit of their resource "GPU".
    """

    workers: int = 0
    lanes: int = 1
    on_gpu: bool = False
    address: str = ""


@contextlib.contextmanager
def _local(pool: Pool, runs: Sequence[Run]) -> Iterator[list[tuple[Executor, Sequence[Run]]]]:
    """An executor for every worker of this machine, which may lose its process alone, and all runs for each."""
    count = min(pool.workers, len(runs))
    environments = [{"CUDA_VISIBLE_DEVICES": name} for name in gpu_names()] if pool.on_gpu else [{}]
    with contextlib.ExitStack() as started:
        places = itertools.islice(itertools.cycle(environments), count)
        yield [(started.enter_context(processes(1, place)), runs) for place in places]


@contextlib.contextmanager
def _cluster(pool: Pool, runs: Sequence[Run]) -> Iterator[list[tuple[Executor, Sequence[Run]]]]:
    """The executor of a cluster for every share of the runs: as many as a worker has lanes, or fewer if there are more
    workers. Of a lost one the cluster gives the share to another. OSError if the scheduler does not answer, or is lost.
    """
    from distributed import Client

    try:
        connected = Client(pool.address)
    except OSError as error:
        raise ConnectionError(f"no scheduler answers at {pool.address} ({error}); start one there with `dask "
                              "scheduler`, or leave out its address for workers of this machine") from error
    with connected as client:
        workers = len(client.nthreads())
        if not workers:
            tqdm.write(f"no worker has joined {pool.address} yet", file=sys.stderr)
        shares = max(math.ceil(len(runs) / pool.lanes), min(len(runs), workers))
        executor = client.get_executor(pure=False, resources={"GPU": 1} if pool.on_gpu else None)
        try:
            yield [(executor, runs[number::shares]) for number in range(shares)]
        except CancelledError as error:  # so dask says that the connection is lost
            raise ConnectionError(f"the scheduler at {pool.address} is lost; start it again, then give the same "
                                  "command again, and the table goes on") from error


def pool_of(engine: str, workers: str | int, runs: Sequence[Run], device: torch.device) -> Pool:
    """The processes that train the runs.

    Args:
        engine: "inline", this process alone; "local", worker processes of this machine; "dask", those of a dask
            cluster; or "auto": local where several processes train at once, unless runs are smoke runs, which end
            sooner than workers start.
        workers: how many; "auto" is the cores this process may use over the threads of a run, on CUDA the GPUs. Of
            "dask" the address of a scheduler; otherwise workers of this machine are started.
        runs: to be trained; their recipe says `threads`, and how many `lanes` a GPU has at most.
        device: to train on.

    Raises:
        ValueError: if the two are not of these, do not go together, or dask is asked for and not installed; for more
            workers than GPUs; in a process group, which trains as one, for another engine than "inline".
    """
    choose("engine", engine, ("auto", "inline") if grouped() else ENGINES)
    threads = max(run.recipe.threads for run in runs)
    if threads > cores() and "://" not in str(workers):  # of a thousand times as many torch ends the process
        raise ValueError(f"threads={threads} should be at most {cores()}, the cores this process may use")
    if "://" in str(workers) and engine != "dask":
        raise ValueError(f"workers={workers} is an address; choose engine 'dask' with it")
    on_gpu = device.type == "cuda"
    lanes = devices.lanes(runs[0].recipe.lanes) if on_gpu and not grouped() else 1
    if grouped() or engine == "inline":
        if workers != "auto" and parse_number("workers", workers, least=1) > 1:
            raise ValueError(f"workers={workers} are not started by engine 'inline' or torchrun; leave them out")
        return Pool(0, lanes, on_gpu)
    if engine == "dask" and importlib.util.find_spec("distributed") is None:
        raise ValueError("engine='dask' needs dask.distributed; install it with: pip install '.[cluster]'")
    if "://" in str(workers):
        return Pool(0, lanes, on_gpu, str(workers))
    places = torch.cuda.device_count() if on_gpu else cores() // runs[0].recipe.threads
    count = max(1, places) if workers == "auto" else parse_number("workers", workers, least=1)
    if on_gpu and count > places:
        raise ValueError(f"workers={workers} exceeds the number of GPUs here, {places}, of which each trains "
                         f"{lanes} runs at once in one process; leave it out")
    small = count == 1 or (workers == "auto" and runs[0].preset == "smoke")
    return Pool(0 if engine == "auto" and small else count, lanes, on_gpu)


def train_runs(runs: Sequence[Run], train: Train, store: Store, *, pool: Pool = Pool()) -> None:
    """Bring every run to its result; complete runs are read, half-done ones resumed, those of others waited for.

    Args:
        runs: what to run, in order.
        train: trains and evaluates one run, counting steps on the bar given, and returns its result: finite floats,
            strings and a dict "cost". It yields where another lane may have its turn.
        store: where runs live.
        pool: the processes that share the runs. A run's result on a CPU does not depend on it.

    Raises:
        NonFiniteLoss: after all other runs are done, naming each run that met a non-finite loss.
        ChildProcessError: the same where workers were lost or met errors, twice at the same run, or a lane met one
            beside others; at once if no worker comes to its first run.
        OSError: as `Store.require_writable`, before anything is trained.
    """
    workers = bool(pool.workers or pool.address)
    again: set[str] = set()  # runs that have failed in a worker once, by id
    failed: dict[str, str] = {}  # what is told of runs that are not tried again, by id
    kind: type[Exception] = NonFiniteLoss

    def left() -> list[Run]:
        unfinished = []
        for folder in map(store.folder, runs):
            if folder.result is not None:
                folder.clear()  # whoever has finished it may have been killed before
            elif folder.run.id not in failed:
                unfinished.append(folder.run)
        return unfinished

    while unfinished := from_first(left):
        if first():
            store.require_writable()
        attempt, folders = secrets.token_hex(8), [store.folder(run) for run in unfinished]
        with _progress(folders) as tell:
            if workers:
                errors, broken = _handed_out(unfinished, train, store, pool, attempt, tell)
            else:
                errors, broken = worked(unfinished, train, store, pool.lanes, attempt, tell), None
        still = [folder for folder in folders if folder.result is None]
        tried = [folder for folder in still if folder.run.id in errors or folder.claimed_in(attempt)]
        for folder in tried:  # others hold the rest
            id, error = folder.run.id, errors.get(folder.run.id, LOST)
            told = f"{folder.run}: {_in_words(error)}"
            if workers and id not in again and not _final(error):
                again.add(id)
                tqdm.write(f"{told}; trying once more", file=sys.stderr)
            else:
                failed[id] = f"{told} (tried twice)" if id in again else told
                kind = kind if isinstance(error, NonFiniteLoss) else ChildProcessError
        idle = not tried and len(still) == len(folders)
        if broken and idle:
            why = UNGUARDED if isinstance(broken, BrokenProcessPool) else _in_words(broken)
            raise ChildProcessError(f"no worker came to its first run; unless it says why above: {why}") from None
        if from_first(functools.partial(bool, idle)):
            for run in from_first(left)[:1]:
                from_first(store.folder(run).wait)
    failed, kind = from_first(lambda: (failed, kind))  # a process group ends as its first process does
    if failed:
        lines = "".join(f"\n  {told}" for told in failed.values())
        raise kind(f"{len(failed)} of {len(runs)} runs failed, the others are done:{lines}\n"
                   "once the reason is gone, the same command trains them again")


def _handed_out(
    runs: Sequence[Run], train: Train, store: Store, pool: Pool, attempt: str, tell: Tell
) -> tuple[Errors, BaseException | None]:
    """Have the workers of a pool go through the runs once; what they have met, and what has broken one."""
    errors: Errors = {}
    broken: BaseException | None = None
    with (_cluster if pool.address else _local)(pool, runs) as shares:
        lanes = min(pool.lanes, math.ceil(len(runs) / len(shares)))
        waiting = {executor.submit(worked, share, train, store, lanes, attempt) for executor, share in shares}
        while waiting:
            ended, waiting = wait(waiting, timeout=0.5)
            tell(errors)
            for future in ended:
                broken = future.exception() or broken
                errors |= {} if future.exception() else future.result()
    return errors, broken


def worked(
    runs: Sequence[Run], train: Train, store: Store, lanes: int, attempt: str, tell: Tell | None = None
) -> Errors:
    """Train the runs that nobody else holds or has claimed in this attempt, so many of them in turns; the errors met.

    On CUDA each has the stream of its lane: what it has handed to the device runs while others have their turns. A
    worker begins no further run after an error that may have left its process in any state: all but a divergence and
    a disk that is full or may not be written. Without workers, where progress is told, a lane of several goes on, and a
    single one raises such an error as it is.
    """
    errors: Errors = {}
    alone, waiting = tell is not None and lanes == 1, [store.folder(run) for run in runs]
    streams = [torch.cuda.Stream() if lanes > 1 and torch.cuda.is_available() else None for _ in range(lanes)]
    running: list[tuple[RunFolder, torch.cuda.Stream | None, Generator[None, None, None]]] = []
    hidden = None if alone and first() else True
    with ONE_PROCESS, contextlib.ExitStack() as begun, tqdm(unit="step", leave=False, disable=hidden) as steps:
        while waiting or running:
            while waiting and streams:
                folder = waiting.pop(0)
                training = _settled(folder, train, steps, attempt)
                begun.callback(training.close)  # lets go of the run at once: a traceback keeps all that it meets
                running.append((folder, streams.pop(), training))
            for lane in [*running]:
                folder, stream, training = lane
                steps.set_description(f"{folder.run}")
                if tell and lanes > 1:
                    tell(errors)
                try:
                    with devices.threads(folder.run.recipe.threads), torch.cuda.stream(stream):
                        next(training)
                    continue
                except StopIteration:
                    pass
                except Exception as error:
                    if alone and not isinstance(error, NonFiniteLoss):
                        raise
                    traceback.clear_frames(error.__traceback__)  # what it had on the device is for the next
                    errors[folder.run.id] = error if _final(error) else ChildProcessError(_in_words(error))
                    if not _final(error):
                        if not (isinstance(error, MemoryError) and error.__cause__):  # which says all
                            traceback.print_exception(error)
                        if not tell:
                            waiting.clear()
                running.remove(lane)
                streams.append(stream)
                if tell:
                    tell(errors)
    return errors


def _final(error: BaseException) -> bool:
    """Whether another try would end alike."""
    return isinstance(error, NonFiniteLoss) or (isinstance(error, OSError) and error.errno in REMEDIES)


def _settled(folder: RunFolder, train: Train, steps: tqdm, attempt: str) -> Generator[None, None, None]:
    """Bring a run to its result, in turns, unless another process holds it, or has claimed it in this attempt.

    In a process group the first claims it and writes what comes of it; all of them diverge, as they average losses.
    """
    with contextlib.ExitStack() as held:

        def to_be_trained() -> bool:
            return folder.result is None and held.enter_context(folder.claim(attempt)) and folder.result is None

        if from_first(to_be_trained):
            with devices.enough_memory(folder.run):
                result = yield from train(folder, steps)
            from_first(functools.partial(folder.finish, result))


@contextlib.contextmanager
def _progress(folders: Sequence[RunFolder]) -> Iterator[Tell]:
    """A bar of runs, which counts what is trained of each, whoever does it; output that is no terminal has none.

    Gives what brings it up to date, and prints the main measures of each run that was finished since, and how long
    others will take by what these took.
    """
    def done() -> float:
        return round(sum(folder.done for folder in folders), 2)

    def tell(failed: Collection[str]) -> None:
        bar.n = done()
        bar.refresh()
        for folder in [*untold]:
            if (result := folder.result) is None:
                continue
            untold.remove(folder)
            measures = [f"{name} {result[name]:.4g}" for name in folder.run.recipe.main_measures if name in result]
            line = f"{folder.run}: {', '.join(measures) or 'finished'}"
            gained, left = bar.n - initial, len(folders) - bar.n - len(failed)
            if gained > 0 and left > 0:
                line += f", about {tqdm.format_interval((time.monotonic() - began) * left / gained)} left"
            if first():
                tqdm.write(line, file=sys.stderr)

    began, initial, untold = time.monotonic(), done(), [*folders]
    hidden = None if first() else True
    with tqdm(total=len(folders), initial=initial, desc="runs", unit="run", disable=hidden) as bar:
        yield tell


def _in_words(error: BaseException) -> str:
    """An error as it is told beside the name of its run."""
    known = isinstance(error, (NonFiniteLoss, ChildProcessError))
    return str(error) if known else f"{type(error).__name__}: {error}"
