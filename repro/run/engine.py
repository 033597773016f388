"""Many cells: whoever is free claims one, trains it, stores its result, and goes on to the next.

Cells are claimed through the store's locks, so any number of processes that ask for the same table share its work.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from tqdm.auto import tqdm

from repro.recipe import choose, parse_number
from repro.run.cells import Train, attempt, failure, stays
from repro.run.cluster import Cluster, scheduler_address
from repro.run.device import cores, first, from_first, gpu_places, grouped
from repro.run.fit import NonFiniteLoss
from repro.run.local import Local
from repro.run.store import Cell, Run, Store

Work = Callable[[Sequence[Cell], Train, Store], dict[str, Exception]]
ENGINES = ("auto", "inline", "local", "dask")


class Pool(Protocol):
    """Processes that train cells for this one."""

    def count(self) -> int:
        """How many cells are trained at once."""

    def __call__(self, cells: Sequence[Cell], train: Train, store: Store) -> dict[str, Exception]:
        """Bring to their results all cells that no other command holds; returns what failed, by key."""


def run_cells(cells: Sequence[Cell], train: Train, store: Store, *, pool: Pool | None = None) -> None:
    """Bring every cell to its result; complete cells are read, half-done ones resumed, those of others waited for.

    Args:
        cells: what to run, in order.
        train: trains and evaluates one run, counting steps on the bar given, and returns its result: finite floats,
            strings and a dict "cost".
        store: where runs live.
        pool: of processes that share the cells; without one, this process trains them itself, in a process group
            together with the others. A cell's result on a CPU does not depend on it.

    Raises:
        NonFiniteLoss, ChildProcessError: as `complete`.
        KeyboardInterrupt: having said how to go on.
    """
    missing = sum(store.run(cell).result is None for cell in cells)
    if missing and first():
        store.require_writable()
        what = f"{missing} of {len(cells)} cells, preset {cells[0].preset} on {cells[0].dataset}"
        tqdm.write(f"training {what}, in {store.root}", file=sys.stderr)
    try:
        complete(cells, train, store, pool)
    except KeyboardInterrupt:
        tqdm.write(f"asked for again, the table goes on from the last checkpoints in {store.root}", file=sys.stderr)
        raise


def complete(cells: Sequence[Cell], train: Train, store: Store, pool: Pool | None) -> None:
    """Bring every cell to its result; arguments as for `run_cells`.

    Raises:
        NonFiniteLoss: after all other cells are done, naming each cell that met a non-finite loss.
        ChildProcessError: the same where processes of the pool were lost or ended with an error, twice at the same
            cell; what was lost once has been made up for.
    """
    failed = _train_together(cells, train, store) if grouped() else _share(cells, train, store, pool or attempt)
    if failed:
        kind = ChildProcessError if any(isinstance(each, ChildProcessError) for each in failed.values()) else None
        lines = "".join(f"\n  {error}" for error in failed.values())
        raise (kind or NonFiniteLoss)(f"{len(failed)} of {len(cells)} cells failed, the others are done:{lines}\n"
                                      "once the reason is gone, the same command trains them again")


def pool_of(engine: str, workers: str | int, cells: Sequence[Cell], device: torch.device) -> Pool | None:
    """The processes that train the cells, None for this one alone.

    Args:
        engine: "inline"; "local", worker processes of this machine; "dask", those of a dask cluster; or "auto": local
            where several cells are trained at once, unless they are smoke runs, which end sooner than workers start.
        workers: how many; "auto" is the cores this process may use over the threads of a cell, on CUDA `gpu_places`.
            Of "dask" also the address of a scheduler, which "auto" takes from dask's configuration if it is there, such
            as the environment variable DASK_SCHEDULER_ADDRESS; otherwise a cluster of this machine is started.
        cells: to be trained; their recipe says `threads` and `cells_per_gpu`.
        device: to train on.

    Raises:
        ValueError: if a name is not one of these, `workers` neither a whole number of at least 1 nor an address, dask
            is asked for and not installed, an engine other than "inline" in a process group, or several workers there
            or with "inline".
    """
    choose("engine", engine, ("auto", "inline") if grouped() else ENGINES)
    if "://" in str(workers) and engine != "dask":
        raise ValueError(f"workers={workers} is an address; choose engine 'dask' with it")
    if grouped() or engine == "inline":
        if workers != "auto" and parse_number("workers", workers, least=1) > 1:
            alone = "under torchrun" if grouped() else "with engine 'inline'"
            raise ValueError(f"workers={workers} are not started {alone}; leave them out, or choose engine 'local'")
        return None
    address = scheduler_address(workers) if engine == "dask" else None
    recipe = cells[0].recipe
    places = gpu_places(recipe.cells_per_gpu) if device.type == "cuda" else cores() // recipe.threads
    count = max(1, places) if workers == "auto" or address else parse_number("workers", workers, least=1)
    if engine == "dask":
        return Cluster(count, address, device.type)
    small = count == 1 or (workers == "auto" and cells[0].preset == "smoke")
    return None if engine == "auto" and small else Local(count)


def _share(cells: Sequence[Cell], train: Train, store: Store, work: Work) -> dict[str, Exception]:
    """Have what is missing trained, then wait for what other commands hold, and so on; returns what failed."""
    failed: dict[str, Exception] = {}

    def left() -> list[Cell]:
        return [cell for cell in cells if store.run(cell).result is None and cell.key not in failed]

    while missing := left():
        failed |= work(missing, train, store)
        for cell in left()[:1]:
            store.run(cell).wait()
    return failed


def _train_together(cells: Sequence[Cell], train: Train, store: Store) -> dict[str, Exception]:
    """Train every cell in all processes of the group at once; the first claims it and writes what comes of it."""
    failed: dict[str, Exception] = {}
    bar = functools.partial(tqdm, disable=not first())
    with bar(total=len(cells), desc="cells", unit="cell") as finished, bar(unit="step", leave=False) as steps:
        for run in map(store.run, cells):
            steps.set_description(f"{run.cell.label}, seed {run.cell.seed}")
            with contextlib.ExitStack() as held:
                missing = from_first(functools.partial(_hold, run, held))
                result = None
                try:
                    result = train(run, steps) if missing else None
                except NonFiniteLoss as error:  # in all processes: they average their losses
                    failed[run.cell.key] = failure(run.cell, error)
                if result is not None and first():
                    run.finish(result)
            finished.update()
    from_first(lambda: None)  # the others read results that the first has written
    return failed


def _hold(run: Run, held: contextlib.ExitStack) -> bool:
    """Whether the run has to be trained; it is then held until `held` closes."""
    while run.result is None:
        if not held.enter_context(run.claim()):
            run.wait()
        elif run.result is None and not stays(run):
            return True
    return False
