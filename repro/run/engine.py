"""Many cells: whoever is free claims one, trains it, stores its result, and goes on to the next.

Cells are claimed through the store's locks, so any number of processes that ask for the same table share its work: this
one, or a pool of workers that it hands them to, of this machine (`Local`) or of a dask cluster (`Cluster`).
"""

import contextlib
import dataclasses
import datetime
import functools
import importlib.util
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from typing import Any

import torch
from tqdm.auto import tqdm

from repro.data.disk import REMEDIES, naming
from repro.data.parallel import Workers
from repro.recipe import choose, parse_number
from repro.run.device import cores, first, from_first, gpu_names, gpu_places, grouped
from repro.run.fit import NonFiniteLoss
from repro.run.store import Cell, Run, Store, trained

ENGINES = ("auto", "inline", "local", "dask")
ONE_CELL = threading.Lock()  # the threads of a worker of dask have one number of CPU threads, part of a CPU result
Train = Callable[[Run, tqdm], dict[str, Any]]
Say = Callable[[Cell], str]


@dataclasses.dataclass(frozen=True)
class Local:
    """So many worker processes of this machine; on CUDA they take turns with its GPUs, and each sees one."""

    workers: int
    device: str

    def __str__(self) -> str:
        return f"{self.workers} worker{'s' * (self.workers > 1)}"

    def count(self) -> int:
        """How many cells are trained at once."""
        return self.workers

    def started(self, most: int) -> contextlib.AbstractContextManager[Executor]:
        """The processes, at most so many, which end with the context and with this process, whatever they do."""
        names = gpu_names() if self.device == "cuda" else []
        return Workers(min(self.workers, most), [{"CUDA_VISIBLE_DEVICES": name} for name in names] or [{}])


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Workers of a dask cluster, by the address of its scheduler, that see the same REPRO_RUNS and REPRO_DATA.

    A cell on CUDA takes one unit of the resource "GPU". dask is imported when it is used.
    """

    address: str
    device: str

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


def pool_of(engine: str, workers: str | int, cells: Sequence[Cell], device: torch.device) -> Local | Cluster | None:
    """The processes that train the cells, None for this one alone.

    Args:
        engine: "inline"; "local", worker processes of this machine; "dask", those of a dask cluster; or "auto": local
            where several cells are trained at once, unless they are smoke runs, which end sooner than workers start.
        workers: how many; "auto" is the cores this process may use over the threads of a cell, on CUDA `gpu_places`.
            Of "dask" the address of a scheduler, which "auto" takes from dask's configuration if it is there, such as
            the environment variable DASK_SCHEDULER_ADDRESS; otherwise workers of this machine are started.
        cells: to be trained; their recipe says `threads` and `cells_per_gpu`.
        device: to train on.

    Raises:
        ValueError: if the two are not of these, do not go together, or dask is asked for and not installed; in a
            process group, which trains as one, for another engine than "inline".
    """
    choose("engine", engine, ("auto", "inline") if grouped() else ENGINES)
    if "://" in str(workers) and engine != "dask":
        raise ValueError(f"workers={workers} is an address; choose engine 'dask' with it")
    if grouped() or engine == "inline":
        if workers != "auto" and parse_number("workers", workers, least=1) > 1:
            raise ValueError(f"workers={workers} are not started by engine 'inline' or torchrun; leave them out")
        return None
    if engine == "dask" and (address := scheduler_address(workers)):
        return Cluster(address, device.type)
    recipe = cells[0].recipe
    places = gpu_places(recipe.cells_per_gpu) if device.type == "cuda" else cores() // recipe.threads
    count = max(1, places) if workers == "auto" else parse_number("workers", workers, least=1)
    small = count == 1 or (workers == "auto" and cells[0].preset == "smoke")
    return None if engine == "auto" and small else Local(count, device.type)


def scheduler_address(workers: str | int) -> str | None:
    """The address of a scheduler, as it is given or as dask's configuration has it; None where there is none."""
    if importlib.util.find_spec("distributed") is None:
        raise ValueError("engine='dask' needs dask.distributed; install it with: pip install '.[cluster]'")
    if "://" in str(workers):
        return str(workers)
    if ":" in str(workers):
        raise ValueError(f"workers={workers!r} should be a number, or an address such as 'tcp://{workers}'")
    import dask
    import distributed  # noqa: F401  (its defaults complete dask's configuration)

    return dask.config.get("scheduler-address", None) if workers == "auto" else None


def run_cells(
    cells: Sequence[Cell], train: Train, store: Store, *, pool: Local | Cluster | None = None, say: Say | None = None,
    announced: bool = True,
) -> None:
    """Bring every cell to its result; complete cells are read, half-done ones resumed, those of others waited for.

    Args:
        cells: what to run, in order.
        train: trains and evaluates one run, counting steps on the bar given, and returns its result: finite floats,
            strings and a dict "cost".
        store: where runs live.
        pool: of processes that share the cells; without one, this process trains them itself, in a process group
            together with the others. A cell's result on a CPU does not depend on it.
        say: what came of a finished cell, in words; with the time left, a line for each is printed and added to
            `finished.log` of the store.
        announced: print how many cells there are to train, and where.

    Raises:
        NonFiniteLoss: after all other cells are done, naming each cell that met a non-finite loss.
        ChildProcessError: the same where processes of the pool were lost or ended with an error, twice at the same
            cell.
        OSError: as `Store.require_writable`, before anything is trained.
    """
    missing = sum(store.run(cell).result is None for cell in cells)
    if missing and first():
        store.require_writable()
        if announced:
            what = f"{missing} of {len(cells)} cells, preset {cells[0].preset} on {cells[0].dataset}"
            tqdm.write(f"training {what}, in {store.root}", file=sys.stderr)
    failed: dict[str, Exception] = {}

    def left() -> list[Cell]:
        return [cell for cell in cells if store.run(cell).result is None and cell.key not in failed]

    while unfinished := from_first(left):
        failed |= _share(unfinished, train, store, pool, say) if pool else _train_here(unfinished, train, store, say)
        for cell in from_first(left)[:1]:  # held by another command
            from_first(store.run(cell).wait)
    if failed:
        lost = any(isinstance(error, ChildProcessError) for error in failed.values())
        lines = "".join(f"\n  {error}" for error in failed.values())
        raise (ChildProcessError if lost else NonFiniteLoss)(
            f"{len(failed)} of {len(cells)} cells failed, the others are done:{lines}\n"
            "once the reason is gone, the same command trains them again"
        )


def _train_here(cells: Sequence[Cell], train: Train, store: Store, say: Say | None) -> dict[str, Exception]:
    """Train the cells that no other command holds in this process, or its group at once; what diverged, by key."""
    failed: dict[str, Exception] = {}
    runs = [store.run(cell) for cell in cells]
    bar = functools.partial(tqdm, disable=not first())
    with bar(total=len(runs), desc="cells", unit="cell") as done, bar(unit="step", leave=False) as steps:
        done.initial = _show(done, runs)
        for run in runs:
            steps.set_description(f"{run.cell}")
            if error := _settle(run, functools.partial(train, run, steps)):
                failed[run.cell.key] = _named(run.cell, error)
            _show(done, runs)
            _tell(done, run, store, say, len(failed))
    return failed


def _share(
    cells: Sequence[Cell], train: Train, store: Store, pool: Local | Cluster, say: Say | None
) -> dict[str, Exception]:
    """Have the pool train the cells that no other command holds; what failed, by key.

    A cell whose process is lost, or ends it with an error, is tried once more.
    """
    failed: dict[str, Exception] = {}
    lost: set[str] = set()
    runs = [store.run(cell) for cell in cells]
    with pool.started(len(cells)) as executor, tqdm(total=len(runs), desc=f"cells, {pool}", unit="cell") as bar:

        def submitted(cell: Cell) -> Future[Exception | None]:
            return executor.submit(train_in_worker, cell, train, store)

        bar.initial = _show(bar, runs)
        waiting = {submitted(cell): cell for cell in cells}
        while waiting:
            _show(bar, runs)
            for future in wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED).done:
                cell, error = waiting.pop(future), future.exception()
                if error and cell.key not in lost:
                    tqdm.write(f"{_named(cell, error)}; trying once more", file=sys.stderr)
                    lost.add(cell.key)
                    waiting[submitted(cell)] = cell
                elif error:
                    failed[cell.key] = ChildProcessError(f"{_named(cell, error)} (tried twice)")
                elif error := future.result():
                    failed[cell.key] = _named(cell, error)
                else:
                    _show(bar, runs)
                    _tell(bar, store.run(cell), store, say, len(failed))
        _show(bar, runs)
    return failed


def train_in_worker(cell: Cell, train: Train, store: Store) -> Exception | None:
    """What a worker does, which shows no progress: whoever started it does.

    Returns the error of a cell that diverges, or of a disk that is full or may not be written: another try would end
    alike. Any other is raised as ChildProcessError.
    """
    try:
        with ONE_CELL, tqdm(disable=True) as steps:
            run = store.run(cell)
            return _settle(run, functools.partial(train, run, steps))
    except Exception as error:
        if isinstance(error, OSError) and error.errno in REMEDIES:
            return error
        traceback.print_exc()
        raise ChildProcessError(f"{type(error).__name__}: {error}") from None


def _settle(run: Run, train: Callable[[], dict[str, Any]]) -> NonFiniteLoss | None:
    """Bring a run to its result unless another command holds it; the error if it diverges.

    In a process group the first claims it and writes what comes of it.
    """
    with contextlib.ExitStack() as held:

        def to_be_trained() -> bool:
            return run.result is None and held.enter_context(run.claim()) and run.result is None

        if from_first(to_be_trained):
            try:
                result = train()
            except NonFiniteLoss as error:  # in all processes: they average their losses
                return error
            from_first(functools.partial(run.finish, result))
    return None


def _show(bar: tqdm, runs: Sequence[Run]) -> float:
    """Finished cells, and what is trained of the others, whoever does it."""
    bar.n = round(sum(trained(run.folder) for run in runs), 2)  # differences would leave a residue of rounding
    bar.refresh()
    return bar.n


def _tell(bar: tqdm, run: Run, store: Store, say: Say | None, failed: int) -> None:
    """Print what came of a cell, if it is finished, and how long those left will take by what others took so far."""
    if say is None or not first() or not (run.folder / "result.json").exists():
        return
    gained, left = bar.n - bar.initial, bar.total - bar.n - failed
    line = f"{run.cell}: {say(run.cell)}"
    if gained > 0 and left > 0:
        line += f", about {tqdm.format_interval(bar.format_dict['elapsed'] * left / gained)} left"
    tqdm.write(line, file=sys.stderr)
    now, path = datetime.datetime.now().astimezone().isoformat(timespec="seconds"), store.root / "finished.log"
    with naming(path), path.open("a") as log:
        log.write(f"{now} {line}\n")


def _named(cell: Cell, error: BaseException) -> Exception:
    """The error with the name of its cell: a divergence stays one, all else is that of a process."""
    if isinstance(error, (NonFiniteLoss, ChildProcessError)):
        return type(error)(f"{cell}: {error}")
    return ChildProcessError(f"{cell}: {type(error).__name__}: {error}")
