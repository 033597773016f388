"""Cells per second by engine and number of workers: the same cells, each time in a fresh folder, in turns.

    python3 -m benchmarks.engines [--workers 1,2] [--objectives CE] [--cells 4] [--rounds 3]

Cells of the taxonomy's quick recipe on the bundled skeletons, a seed each, on the CPU with one thread per cell, so that
twice the workers should finish twice the cells while there are cores. Start of the workers, which import torch,
and probes are included: what a user waits for.
"""

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.stopwatch import options, show, turns
from repro.experiments import find_table
from repro.run import device as devices
from repro.run.engine import pool_of, run_cells
from repro.run.store import Cell, Store
from repro.run.training import train
from repro.skeleton.recipe import SKELETONS


def finish(cells: Sequence[Cell], engine: str, workers: int) -> None:
    """Have an engine finish the cells, all of them missing."""
    device = devices.resolve("cpu")
    with tempfile.TemporaryDirectory() as folder:
        pool = pool_of(engine, workers, cells, device)
        run_cells(cells, functools.partial(train, study=SKELETONS, device=device), Store(Path(folder)), pool=pool)


def main() -> None:
    """Print a line per engine and number of workers."""
    settings = options(__doc__, workers="1,2", objectives="CE", cells=4, rounds=3)
    seeds = ",".join(map(str, range(settings.cells)))
    cells = find_table("taxonomy").cells("synthetic", preset="quick", objectives=settings.objectives, seeds=seeds)
    counts = [int(count) for count in settings.workers.split(",")]
    kinds = [("inline", 1), *(("local", count) for count in counts if count > 1)]
    works = {f"{engine}, {count}": functools.partial(finish, cells, engine, count) for engine, count in kinds}
    print(f"{settings.cells} cells, {settings.objectives}; {devices.hardware(devices.resolve('cpu'))['device']}, "
          f"{devices.cores()} cores; least / median / most of {settings.rounds} rounds")
    show(turns(works, settings.rounds, warm_up=0), settings.cells, "cells", "inline, 1")


if __name__ == "__main__":
    main()
