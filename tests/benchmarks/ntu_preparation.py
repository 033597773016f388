"""How NTU RGB+D's preparation grows with recordings and cores: megabytes of text per second, and memory.

    python3 -m tests.benchmarks.ntu_preparation [--recordings 8192] [--workers 1,2] [--rounds 3]

Made-up recordings in the official format, in a folder, read afresh each time as `repro data prepare ntu --subset` does
it, in a process of its own: with every number of processes, and by one process also a quarter of the recordings, on
which memory must not depend. Time is that of the whole preparation, the start of further processes included; nothing
here imports torch, since every one of them would do so too. Memory is the most that the first process has held, without
the pages that the system keeps of files (Linux).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from repro.skeleton import ntu
from tests.benchmarks.ntu_parse import written
from tests.benchmarks.spread import spread

DIFFERENT = 40  # recordings made; the others repeat them


def write(root: Path, recordings: int) -> int:
    """Write that many recordings where the distribution belongs; returns their bytes."""
    folder = root / "ntu" / "nturgb+d_skeletons"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    contents = [written(rng) for _ in range(DIFFERENT)]
    places = [(s, p, r, a) for s in range(1, 18) for p in range(1, 41) for r in (1, 2) for a in range(1, 61)]
    for number, (setup, person, again, action) in enumerate(places[:recordings]):
        name = f"S{setup:03d}C001P{person:03d}R{again:03d}A{action:03d}.skeleton"
        (folder / name).write_bytes(contents[number % DIFFERENT])
    return sum(path.stat().st_size for path in folder.iterdir())


def prepared(root: Path, workers: int) -> dict[str, float]:
    """Seconds and MiB of a preparation in a process of its own, in a fresh folder of runs."""
    command = [sys.executable, "-m", "tests.benchmarks.ntu_preparation", "--prepare", str(root)]
    command += ["--workers", str(workers)]
    with tempfile.TemporaryDirectory() as runs:
        environment = os.environ | {"REPRO_RUNS": runs}
        process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(process.stdout)


def prepare_here(root: Path, workers: int) -> None:
    """Prepare and print what it took."""
    start = time.perf_counter()
    ntu.prepare(root, subset=True, workers=workers)
    seconds = time.perf_counter() - start
    with open("/proc/self/status") as lines:
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    print(json.dumps({"seconds": seconds, "peak_mb": peak / 1024}))


def main() -> None:
    """Print rates by number of processes, ratios to one, and memory by number of recordings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=8192)
    parser.add_argument("--workers", default="1,2", help="comma list")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prepare", help=argparse.SUPPRESS)
    options = parser.parse_args()
    counts = [int(each) for each in options.workers.split(",")]
    if options.prepare:
        prepare_here(Path(options.prepare), *counts)
        return
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as quarter:
        megabytes = write(Path(whole), options.recordings) / 1e6
        write(Path(quarter), options.recordings // 4)
        rounds = [{count: prepared(Path(whole), count) for count in counts} for _ in range(options.rounds)]
        small = prepared(Path(quarter), 1)
    print(f"{options.recordings} recordings, {megabytes:.0f} MB; least / median / most of {options.rounds} rounds")
    for count in counts:
        rates = [megabytes / each[count]["seconds"] for each in rounds]
        ratios = [each[counts[0]]["seconds"] / each[count]["seconds"] for each in rounds]
        peak = statistics.median(each[count]["peak_mb"] for each in rounds)
        print(f"{count} processes  {spread(rates, '.0f')} MB/s  {spread(ratios, '.2f')} x {counts[0]}  {peak:.0f} MiB")
    print(f"1 process, a quarter of the recordings: {small['peak_mb']:.0f} MiB")


if __name__ == "__main__":
    main()
