"""How NTU RGB+D's preparation grows with recordings and cores: megabytes of text per second, and memory.

    python3 -m benchmarks.ntu_preparation [--recordings 8192] [--workers 1,2] [--rounds 3]

Made-up recordings in the official format, in a folder, read afresh each time as `repro data prepare ntu --subset` does
it, in a process of its own: with every number of processes, and by one process also a quarter of the recordings, on
which memory must not depend. Time is that of the whole preparation, imports included. Memory is the most that the
first process has held, without the pages that the system keeps of files (Linux).
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.stopwatch import Comparison, compare
from tests.helpers.ntu_files import FIRST, body, recording, text

DIFFERENT = 40  # recordings made; the others repeat them
PREPARE = """
import sys
from pathlib import Path
from repro.skeleton import ntu
ntu.source(Path(sys.argv[1]), subset=True).prepare(workers=int(sys.argv[2]))
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def made_up(rng: np.random.Generator, seed: int) -> bytes:
    """A recording of about 80 frames, one in five with two bodies."""
    frames, bodies = int(rng.gamma(6, 13)) + 20, 1 + (rng.random() < 0.2)
    return text(recording(*((FIRST + number, 0, body(frames, 2 * seed + number)) for number in range(bodies))))


def write(root: Path, recordings: int) -> int:
    """Write that many recordings where the distribution belongs; returns their bytes."""
    folder = root / "ntu" / "nturgb+d_skeletons"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    contents = [made_up(rng, seed) for seed in range(DIFFERENT)]
    places = product(range(1, 18), range(1, 41), (1, 2), range(1, 61))
    for number, (setup, person, again, action) in zip(range(recordings), places, strict=False):
        name = f"S{setup:03d}C001P{person:03d}R{again:03d}A{action:03d}.skeleton"
        (folder / name).write_bytes(contents[number % DIFFERENT])
    return sum(path.stat().st_size for path in folder.iterdir())


def prepared(root: str, workers: int) -> int:
    """MiB of a preparation in a process of its own, in a fresh folder of runs."""
    with tempfile.TemporaryDirectory() as runs:
        command, environment = [sys.executable, "-c", PREPARE, root, str(workers)], os.environ | {"REPRO_RUNS": runs}
        return int(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def works(settings: argparse.Namespace) -> Iterator[Comparison]:
    """Every number of processes; then memory."""
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as quarter:
        megabytes = write(Path(whole), settings.recordings) / 1e6
        write(Path(quarter), settings.recordings // 4)
        counts = [int(count) for count in settings.workers.split(",")]
        runs = {f"{count} processes": lambda count=count: prepared(whole, count) for count in counts}
        title = f"{settings.recordings} recordings, {megabytes:.0f} MB"
        yield Comparison(title, runs, megabytes, "MB", f"{counts[0]} processes")
        print(f"MiB by one process: {prepared(whole, 1)}, of a quarter of the recordings {prepared(quarter, 1)}")


if __name__ == "__main__":
    compare(__doc__, works, rounds=3, warm_up=0, recordings=8192, workers="1,2")
