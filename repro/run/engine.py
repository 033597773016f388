"""Many cells: claim one, train it, store its result, go on to the next.

Cells are claimed through the store's locks, so any number of processes that ask for the same table share its work.
"""

import functools
from collections.abc import Callable, Sequence

import pandas as pd
from tqdm.auto import tqdm

from repro.run.fit import NonFiniteLoss
from repro.run.store import Cell, Run, Store

Train = Callable[[Run, tqdm], dict]


def run_cells(cells: Sequence[Cell], train: Train, store: Store) -> pd.DataFrame:
    """Bring every cell to its result; complete cells are read, half-done ones resumed, those of others waited for.

    Args:
        cells: what to run, in order.
        train: trains and evaluates one run, counting steps on the bar given, and returns its result: finite floats,
            strings and a dict "cost".
        store: where runs live.

    Returns:
        One row per cell: entry, seed, key and the result's floats and strings.

    Raises:
        NonFiniteLoss: after all other cells are done, naming each cell that met a non-finite loss.
    """
    diverged: list[str] = []
    waiting = [store.run(cell) for cell in cells]
    with tqdm(total=len(cells), desc="cells", unit="cell") as finished, tqdm(unit="step", leave=False) as steps:
        while waiting:
            claimed_by_others = []
            for run in waiting:
                steps.set_description(f"{run.cell.entry}, seed {run.cell.seed}")
                if _attempt(run, functools.partial(train, run, steps), store, diverged):
                    finished.update()
                else:
                    claimed_by_others.append(run)
            if len(claimed_by_others) == len(waiting):
                waiting[0].wait(finished.write)
            waiting = claimed_by_others
    if diverged:
        raise NonFiniteLoss("; ".join(diverged))
    return pd.DataFrame([_row(run) for run in map(store.run, cells)])


def _attempt(run: Run, train: Callable[[], dict], store: Store, diverged: list[str]) -> bool:
    """Whether the run needs no more work; False if another process holds it."""
    if run.result is None:
        with run.claim() as claimed:
            if not claimed:
                return False
            try:
                if run.result is None:
                    run.finish(store.twin(run.cell) or train())
            except NonFiniteLoss as error:
                diverged.append(f"{run.cell.entry}, seed {run.cell.seed}: {error}")
    return True


def _row(run: Run) -> dict:
    result = {name: value for name, value in run.result.items() if name != "cost"}
    return {"entry": run.cell.entry, "seed": run.cell.seed, "key": run.cell.key} | result
