"""Many cells: claim one, train it, store its result, go on to the next.

Cells are claimed through the store's locks, so any number of processes that ask for the same table share its work.
"""

import functools
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence

import pandas as pd
import torch
from tqdm.auto import tqdm

from repro.recipe import choose, parse_number
from repro.run.device import cores
from repro.run.fit import NonFiniteLoss
from repro.run.store import Cell, Run, Store

Train = Callable[[Run, tqdm], dict]


def run_cells(cells: Sequence[Cell], train: Train, store: Store, *, workers: int = 1) -> pd.DataFrame:
    """Bring every cell to its result; complete cells are read, half-done ones resumed, those of others waited for.

    Args:
        cells: what to run, in order.
        train: trains and evaluates one run, counting steps on the bar given, and returns its result: finite floats,
            strings and a dict "cost".
        store: where runs live.
        workers: processes that share the cells; with 1, this process trains them itself. A cell's result on a CPU does
            not depend on it. What a lost worker leaves undone, this process does at the end.

    Returns:
        One row per cell: entry, seed, key and the result's floats and strings.

    Raises:
        NonFiniteLoss: after all other cells are done, naming each cell that met a non-finite loss.
    """
    workers = min(workers, sum(store.run(cell).result is None for cell in cells))
    if workers > 1:
        _run_workers(cells, train, store, workers)
    diverged = _attempt_all(cells, train, store, alone=True)
    if diverged:
        raise NonFiniteLoss("; ".join(diverged))
    return pd.DataFrame([_row(run) for run in map(store.run, cells)])


def worker_count(engine: str, workers: str | int, cells: Sequence[Cell], device: torch.device) -> int:
    """How many worker processes train the cells; 1 stands for none.

    Args:
        engine: "inline", "local", or "auto": local on a CPU unless the cells are smoke runs, which end sooner than
            workers start.
        workers: of "local"; "auto" is the cores this process may use over the threads of a cell.
        cells: to be trained; their recipe says `threads`.
        device: to train on.

    Raises:
        ValueError: if a name is not one of these, or `workers` no whole number of at least 1.
    """
    choose("engine", engine, ("auto", "inline", "local"))
    count = cores() // cells[0].recipe.threads if workers == "auto" else parse_number("workers", workers, least=1)
    if engine == "auto":
        engine = "local" if device.type == "cpu" and cells[0].preset != "smoke" else "inline"
    return max(1, count) if engine == "local" else 1


def _run_workers(cells: Sequence[Cell], train: Train, store: Store, workers: int) -> None:
    """Let processes work on the cells until all have ended, and show how many cells are finished."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_work, args=(cells, train, store), daemon=True) for _ in range(workers)]
    try:
        for process in processes:
            process.start()
        with tqdm(total=len(cells), desc=f"cells, {workers} workers", unit="cell") as progress:
            while any(process.is_alive() for process in processes):
                progress.update(sum(store.run(cell).result is not None for cell in cells) - progress.n)
                time.sleep(0.5)
            progress.update(sum(store.run(cell).result is not None for cell in cells) - progress.n)
    finally:
        for process in processes:
            process.terminate()


def _work(cells: Sequence[Cell], train: Train, store: Store) -> None:
    """What a worker does. It ends with the process that started it, however that ends."""
    parent = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    _attempt_all(cells, train, store, alone=False)


def _attempt_all(cells: Sequence[Cell], train: Train, store: Store, *, alone: bool) -> list[str]:
    """Train every cell that nobody else holds; returns what diverged, in words.

    Alone, show progress, and wait for the cells that other processes hold. As one of several workers, do neither.
    """
    diverged: list[str] = []
    waiting = [store.run(cell) for cell in cells]
    bar = functools.partial(tqdm, disable=not alone)
    with bar(total=len(cells), desc="cells", unit="cell") as finished, bar(unit="step", leave=False) as steps:
        while waiting:
            claimed_by_others = []
            for run in waiting:
                steps.set_description(f"{run.cell.entry}, seed {run.cell.seed}")
                if _attempt(run, functools.partial(train, run, steps), store, diverged):
                    finished.update()
                else:
                    claimed_by_others.append(run)
            if len(claimed_by_others) == len(waiting):
                if not alone:
                    break
                waiting[0].wait(finished.write)
            waiting = claimed_by_others
    return diverged


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
