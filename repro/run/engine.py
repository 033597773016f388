"""Many cells: whoever is free claims one, trains it, stores its result, and goes on to the next.

Cells are claimed through the store's locks, so any number of processes that ask for the same table share its work.
"""

import contextlib
import functools
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

import torch
from tqdm.auto import tqdm

from repro.data.disk import REMEDIES
from repro.run.device import first, from_first, grouped
from repro.run.fit import NonFiniteLoss
from repro.run.pools import Pool
from repro.run.store import Cell, Run, Store, trained

Train = Callable[[Run, tqdm], dict[str, Any]]
ONE_CELL = threading.Lock()  # the threads of a worker of dask have one number of CPU threads, part of a CPU result


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
        ChildProcessError: the same where a cell is too large for the memory of the device, or processes of the pool
            were lost or ended with an error, twice at the same cell; what was lost once has been made up for.
    """
    failed: dict[str, Exception] = {}

    def left() -> list[Cell]:
        return [cell for cell in cells if store.run(cell).result is None and cell.key not in failed]

    while missing := from_first(left):
        failed |= _share(missing, train, store, pool) if pool else _train_here(missing, train, store)
        for cell in from_first(left)[:1]:  # held by another command
            from_first(store.run(cell).wait)
    if failed:
        kind = ChildProcessError if any(isinstance(each, ChildProcessError) for each in failed.values()) else None
        lines = "".join(f"\n  {error}" for error in failed.values())
        raise (kind or NonFiniteLoss)(f"{len(failed)} of {len(cells)} cells failed, the others are done:{lines}\n"
                                      "once the reason is gone, the same command trains them again")


def _train_here(cells: Sequence[Cell], train: Train, store: Store) -> dict[str, Exception]:
    """Train the cells that no other command holds in this process, or its group at once; returns what failed, by key.

    That is, what diverged or, without a group, is too large for the memory of the device; any other error ends it.
    """
    failed: dict[str, Exception] = {}
    bar = functools.partial(tqdm, disable=not first())
    runs = [store.run(cell) for cell in cells]
    done = bar(total=len(cells), desc="cells", unit="cell", initial=_trained(runs))
    with done, bar(unit="step", leave=False) as steps:
        for run in runs:
            steps.set_description(f"{run.cell}")
            error: Exception | None
            try:
                error = _settle(run, functools.partial(train, run, steps))
            except (MemoryError, RuntimeError) as raised:
                error = _too_large(raised)
            if error:
                failed[run.cell.key] = _named(run.cell, error)
            _show(done, _trained(runs))
    return failed


def _settle(run: Run, train: Callable[[], dict[str, Any]]) -> NonFiniteLoss | None:
    """Bring a run to its result unless another command holds it; the error if it diverges.

    In a process group the first claims it and writes what comes of it.
    """
    with contextlib.ExitStack() as held:
        if from_first(functools.partial(_hold, run, held)):
            try:
                result = train()
            except NonFiniteLoss as error:  # in all processes: they average their losses
                return error
            from_first(functools.partial(run.finish, result))
    return None


def _hold(run: Run, held: contextlib.ExitStack) -> bool:
    """Whether the run has to be trained, by us; it is then claimed until `held` closes."""
    return run.result is None and held.enter_context(run.claim()) and run.result is None


def _too_large(error: Exception) -> MemoryError:
    """What to do about memory that is not there; raises other errors. On a CPU, torch has no kind of its own for it."""
    known = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
    if grouped() or not known:  # the others of a group would wait for this process
        raise error
    return MemoryError(f"{str(error) or 'out of memory'}; choose a smaller batch, dictionary or network")


def _share(cells: Sequence[Cell], train: Train, store: Store, pool: Pool) -> dict[str, Exception]:
    """Have the pool train the cells that no other command holds; returns what failed, by key.

    A cell whose process is lost, or ends it with an error, is tried once more.
    """
    failed: dict[str, Exception] = {}
    lost: set[str] = set()
    runs = [store.run(cell) for cell in cells]
    bar = tqdm(total=len(cells), desc=f"cells, {pool}", unit="cell", initial=_trained(runs))
    with pool.started(len(cells)) as executor, bar:

        def submitted(cell: Cell) -> Future[Exception | None]:
            return executor.submit(train_in_worker, cell, train, store)

        waiting = {submitted(cell): cell for cell in cells}
        while waiting:
            _show(bar, _trained(runs))
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
        _show(bar, _trained(runs))
    return failed


def train_in_worker(cell: Cell, train: Train, store: Store) -> Exception | None:
    """What a worker does, which shows no progress: whoever started it does.

    Returns:
        The error of a cell that diverges, or of a disk that is full or may not be written: another try would end alike.

    Raises:
        ChildProcessError: for any other error.
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


def _trained(runs: Sequence[Run]) -> float:
    """Finished cells, and what is trained of the others, whoever does it."""
    return round(sum(trained(run.folder) for run in runs), 2)


def _show(bar: tqdm, count: float) -> None:
    bar.n = count  # adding differences would leave a residue of rounding to be seen
    bar.refresh()


def _named(cell: Cell, error: BaseException) -> Exception:
    """The error with the name of its cell: a divergence stays one, all else is that of a process."""
    if isinstance(error, (NonFiniteLoss, ChildProcessError)):
        return type(error)(f"{cell}: {error}")
    return ChildProcessError(f"{cell}: {type(error).__name__}: {error}")
