"""What every engine does with cells: claim one, train it, store its result; and show how far all of them are."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from tqdm.auto import tqdm

from repro.run.fit import NonFiniteLoss, load_checkpoint
from repro.run.store import REMEDIES, Cell, Run, Store

Train = Callable[[Run, tqdm], dict[str, Any]]


def settle(run: Run, train: Callable[[], dict[str, Any]]) -> bool | NonFiniteLoss:
    """True once the run needs no more work, False if another process holds it; the error if it diverged."""
    if run.result is not None:
        return True
    with run.claim() as claimed:
        if not claimed:
            return False
        try:
            if run.result is None and not stays(run):
                run.finish(train())
        except NonFiniteLoss as error:
            return error
    return True


def stays(run: Run) -> bool:
    """Whether a result that is to be measured again has lost its checkpoint: then it stays, nothing is trained anew."""
    if not (run.folder / "result.json").exists() or load_checkpoint(run.folder) is not None:
        return False
    (run.folder / "checkpoint.pt").unlink(missing_ok=True)
    return True


def settle_quietly(cell: Cell, train: Train, store: Store) -> bool | NonFiniteLoss | OSError:
    """`settle` as a worker does it, which shows no progress: whoever started it does.

    Returns:
        Also the error of a disk that is full or may not be written: another try would end in the same way.
    """
    run = store.run(cell)
    try:
        with tqdm(disable=True) as steps:
            return settle(run, functools.partial(train, run, steps))
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        return error


def attempt(cells: Sequence[Cell], train: Train, store: Store) -> dict[str, Exception]:
    """Bring every cell to its result in this process, waiting for those of others; returns what failed, by key.

    That is, what diverged or is too large for the memory of the device; any other error ends it.
    """
    failed: dict[str, Exception] = {}
    waiting = [store.run(cell) for cell in cells]
    with tqdm(total=len(cells), desc="cells", unit="cell") as finished, tqdm(unit="step", leave=False) as steps:
        while waiting:
            held = []
            for run in waiting:
                steps.set_description(f"{run.cell.label}, seed {run.cell.seed}")
                outcome: bool | Exception
                try:
                    outcome = settle(run, functools.partial(train, run, steps))
                except (MemoryError, RuntimeError) as error:
                    outcome = _too_large(error)
                if outcome is False:
                    held.append(run)
                    continue
                finished.update()
                if outcome is not True:
                    failed[run.cell.key] = failure(run.cell, outcome)
            if len(held) == len(waiting):
                waiting[0].wait()
            waiting = held
    return failed


def _too_large(error: Exception) -> MemoryError:
    """What to do about memory that is not there; raises other errors. On a CPU, torch has no kind of its own for it."""
    if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and "can't allocate memory" not in str(error):
        raise error
    what = str(error).rpartition("DefaultCPUAllocator: ")[2].partition(". ")[0] or "out of memory"
    return MemoryError(f"{what}; choose a smaller batch, dictionary or network")


def failure(cell: Cell, error: Exception) -> Exception:
    """The error with the name of its cell: a divergence stays one, all else is that of a process."""
    place = f"{cell.label}, seed {cell.seed}"
    if isinstance(error, (NonFiniteLoss, ChildProcessError)):
        return type(error)(f"{place}: {error}")
    return ChildProcessError(f"{place}: {type(error).__name__}: {error}")


def watch(cells: Sequence[Cell], store: Store, ended: Callable[[], bool], description: str) -> None:
    """Show how much of the cells is done, whoever does it, until `ended`."""
    with tqdm(total=len(cells), desc=description, unit="cell", initial=done(cells, store)) as bar:
        while not ended():
            _show(bar, done(cells, store))
            time.sleep(0.5)
        _show(bar, done(cells, store))


def done(cells: Sequence[Cell], store: Store) -> float:
    """Finished cells, and what is trained of the others."""
    return round(sum(store.run(cell).trained for cell in cells), 2)


def _show(bar: tqdm, count: float) -> None:
    bar.n = count  # adding differences would leave a residue of rounding to be seen
    bar.refresh()
