"""Many cells: claim one, train it, store its result, go on to the next.

Cells are claimed through the store's locks, so any number of processes that ask for the same table share its work.
"""

from collections.abc import Callable, Sequence

import pandas as pd
from tqdm.auto import tqdm

from repro.run.fit import NonFiniteLoss
from repro.run.store import Cell, Run, Store


def run_cells(cells: Sequence[Cell], train: Callable[[Run], dict], store: Store) -> pd.DataFrame:
    """Bring every cell to its result; complete cells are read, half-done ones resumed, those of others waited for.

    Args:
        cells: what to run, in order.
        train: trains and evaluates one run and returns its result: finite floats, strings and a dict "cost".
        store: where runs live.

    Returns:
        One row per cell: entry, seed, key and the result's floats and strings.

    Raises:
        NonFiniteLoss: after all other cells are done, naming each cell that met a non-finite loss.
    """
    diverged: list[str] = []
    with tqdm(total=len(cells), desc="cells", unit="cell") as progress:
        waiting = [store.run(cell) for cell in cells]
        while waiting:
            claimed_by_others = [run for run in waiting if not _attempt(run, train, store, progress, diverged)]
            if len(claimed_by_others) == len(waiting):
                waiting[0].wait(progress.write)
            waiting = claimed_by_others
    if diverged:
        raise NonFiniteLoss("; ".join(diverged))
    return pd.DataFrame([_row(run) for run in map(store.run, cells)])


def _attempt(run: Run, train: Callable[[Run], dict], store: Store, progress: tqdm, diverged: list[str]) -> bool:
    """Whether the run needs no more work; False if another process holds it."""
    if run.result is None:
        with run.claim() as claimed:
            if not claimed:
                return False
            try:
                if run.result is None:
                    progress.set_postfix_str(f"{run.cell.entry}, seed {run.cell.seed}")
                    run.finish(store.twin(run.cell) or train(run))
            except NonFiniteLoss as error:
                diverged.append(f"{run.cell.entry}, seed {run.cell.seed}: {error}")
    progress.update()
    return True


def _row(run: Run) -> dict:
    result = {name: value for name, value in run.result.items() if name != "cost"}
    return {"entry": run.cell.entry, "seed": run.cell.seed, "key": run.cell.key} | result
