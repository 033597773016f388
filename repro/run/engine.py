"""Many cells: claim one, train it, store its result, go on to the next.

Cells are claimed through the store's locks, so any number of processes that ask for the same table share its work.
"""

import contextlib
import functools
import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pandas as pd
import torch
from tqdm.auto import tqdm

from repro.recipe import choose, parse_number
from repro.run.device import cores, first, from_first, grouped
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
        workers: processes that share the cells; with 1, this process trains them itself, in a process group together
            with the others. A cell's result on a CPU does not depend on it. What a lost worker leaves undone, this
            process does at the end.

    Returns:
        One row per cell: entry, seed, key and the result's floats and strings.

    Raises:
        NonFiniteLoss: after all other cells are done, naming each cell that met a non-finite loss.
    """
    missing = _unfinished(cells, store)
    if missing and first():
        store.require_writable()
        what = f"{missing} of {len(cells)} cells, preset {cells[0].preset} on {cells[0].dataset}"
        tqdm.write(f"training {what}, in {store.root}", file=sys.stderr)
    if grouped():
        diverged = _train_together(cells, train, store)
    else:
        workers = min(workers, missing)
        diverged = _run_workers(cells, train, store, workers) if workers > 1 else {}
        left = [cell for cell in cells if cell.key not in diverged and store.run(cell).result is None]
        diverged |= attempt(left, train, store, alone=True) if left else {}
    if diverged:
        raise NonFiniteLoss("; ".join(diverged.values()))
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
        ValueError: if a name is not one of these, `workers` no whole number of at least 1, or the engine is "local" in
            a process group.
    """
    choose("engine", engine, ("auto", "inline") if grouped() else ("auto", "inline", "local"))
    if grouped():
        return 1
    count = cores() // cells[0].recipe.threads if workers == "auto" else parse_number("workers", workers, least=1)
    if engine == "auto":
        engine = "local" if device.type == "cpu" and cells[0].preset != "smoke" else "inline"
    return max(1, count) if engine == "local" else 1


def _run_workers(cells: Sequence[Cell], train: Train, store: Store, workers: int) -> dict[str, str]:
    """Let processes work on the cells until all have ended, showing how much is done; returns what diverged."""
    job = pickle.dumps((cells, train, store))
    command = [sys.executable, "-m", "repro.run.worker"]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(workers)]
    try:
        for process in processes:
            with contextlib.suppress(BrokenPipeError):  # it died at once: what it leaves is done at the end
                process.stdin.write(job)
                process.stdin.flush()  # and left open: its end tells the worker that we are gone
        bar = functools.partial(tqdm, total=len(cells), desc=f"cells, {workers} workers", unit="cell")
        with bar(initial=_done(cells, store)) as progress:
            while any(process.poll() is None for process in processes):
                _show(progress, _done(cells, store))
                time.sleep(0.5)
            _show(progress, _done(cells, store))
        reports = [process.stdout.read() for process in processes if process.returncode == 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
    return {key: message for report in reports for key, message in json.loads(report).items()}


def attempt(cells: Sequence[Cell], train: Train, store: Store, *, alone: bool) -> dict[str, str]:
    """Train every cell that nobody else holds; returns what diverged, by key, in words.

    Alone, show progress, and wait for the cells that other processes hold. As one of several workers, do neither.
    """
    diverged: dict[str, str] = {}
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


def _train_together(cells: Sequence[Cell], train: Train, store: Store) -> dict[str, str]:
    """Train every cell in all processes of the group at once; the first claims it and writes what comes of it."""
    diverged: dict[str, str] = {}
    bar = functools.partial(tqdm, disable=not first())
    with bar(total=len(cells), desc="cells", unit="cell") as finished, bar(unit="step", leave=False) as steps:
        for run in map(store.run, cells):
            steps.set_description(f"{run.cell.entry}, seed {run.cell.seed}")
            with contextlib.ExitStack() as held:
                missing = from_first(lambda run=run, held=held: _hold(run, store, held, finished.write))
                result = None
                try:
                    result = train(run, steps) if missing else None
                except NonFiniteLoss as error:  # in all processes: they average their losses
                    diverged[run.cell.key] = f"{run.cell.entry}, seed {run.cell.seed}: {error}"
                if result is not None and first():
                    run.finish(result)
            finished.update()
    from_first(lambda: None)  # the others read results that the first has written
    return diverged


def _hold(run: Run, store: Store, held: contextlib.ExitStack, say: Callable[[str], None]) -> bool:
    """Whether the run has to be trained; it is then held until `held` closes."""
    while run.result is None:
        if not held.enter_context(run.claim()):
            run.wait(say)
        elif run.result is None:
            twin = store.twin(run.cell)
            if twin is None:
                return True
            run.finish(twin)
    return False


def _attempt(run: Run, train: Callable[[], dict], store: Store, diverged: dict[str, str]) -> bool:
    """Whether the run needs no more work; False if another process holds it."""
    if run.result is None:
        with run.claim() as claimed:
            if not claimed:
                return False
            try:
                if run.result is None:
                    run.finish(store.twin(run.cell) or train())
            except NonFiniteLoss as error:
                diverged[run.cell.key] = f"{run.cell.entry}, seed {run.cell.seed}: {error}"
    return True


def _show(progress: tqdm, done: float) -> None:
    progress.n = done  # adding differences would leave a residue of rounding to be seen
    progress.refresh()


def _done(cells: Sequence[Cell], store: Store) -> float:
    """Finished cells, and what is trained of the others."""
    return round(sum(store.run(cell).trained for cell in cells), 2)


def _unfinished(cells: Sequence[Cell], store: Store) -> int:
    return sum(store.run(cell).result is None for cell in cells)


def _row(run: Run) -> dict:
    result = {name: value for name, value in run.result.items() if name != "cost"}
    return {"entry": run.cell.entry, "seed": run.cell.seed, "key": run.cell.key} | result
