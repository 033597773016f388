"""Cells per hour by engine and number of workers: the same cells, each time in a fresh folder, in turns.

    python3 -m tests.benchmarks.engines [--workers 1,2] [--objectives CE] [--cells 4] [--rounds 3]

Cells of the taxonomy's quick recipe on the embedded skeletons, a seed each, on the CPU with one thread per cell, so
that twice the workers should finish twice the cells an hour while there are cores. Start of the workers, which import
torch, and probes are included: what a user waits for. Printed are the least, the median and the most of the rounds, and
of every round's ratio to this process alone.
"""

import argparse
import functools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from repro.run import device as devices
from repro.run.engine import pool_of, run_cells
from repro.run.store import Cell, Store
from repro.skeleton.study import SKELETONS
from repro.table import find, train
from tests.benchmarks.spread import ratios, spread


def cells_an_hour(cells: Sequence[Cell], engine: str, workers: int) -> float:
    """Rate at which an engine finishes the cells, all of them missing."""
    device = devices.resolve("cpu")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        pool = pool_of(engine, workers, cells, device)
        run_cells(cells, functools.partial(train, study=SKELETONS, device=device), Store(Path(folder)), pool=pool)
        return 3600 * len(cells) / (time.perf_counter() - start)


def main() -> None:
    """Print a line per engine and number of workers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="1,2", help="comma list, of local")
    parser.add_argument("--objectives", default="CE")
    parser.add_argument("--cells", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    seeds = ",".join(map(str, range(options.cells)))
    cells = find("taxonomy").cells("synthetic", preset="quick", objectives=options.objectives, seeds=seeds)
    counts = [int(each) for each in options.workers.split(",")]
    kinds = [("inline", 1), *(("local", count) for count in counts if count > 1)]
    rates: dict[tuple[str, int], list[float]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for engine, workers in kinds:
            rates[engine, workers].append(cells_an_hour(cells, engine, workers))
    print(f"{options.cells} cells, {options.objectives}; {devices.hardware(devices.resolve('cpu'))['device']}, "
          f"{devices.cores()} cores; least / median / most of {options.rounds} rounds")
    print(f"{'engine':<8}{'workers':>8}  {'cells an hour':<26}ratio to one process")
    for (engine, workers), found in rates.items():
        print(f"{engine:<8}{workers:>8}  {spread(found, '.0f'):<26}{ratios(found, rates['inline', 1])}")


if __name__ == "__main__":
    main()
