"""How fast clips are prepared, in one process: CPU time of one core.

    python3 -m benchmarks.clip_decoding [--dataset NAME, its files below REPRO_DATA]

Without a data set, made-up clips of ten seconds, 340 x 256 at 30 per second, H.264 and AAC, as those of Kinetics often
are: blurred noise that drifts, and noise that is heard.
"""

import argparse
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.stopwatch import Comparison, compare
from repro.audiovisual import decode, prepare
from repro.data.disk import read_file
from tests.helpers.made_clips import write

MOST, RATE, SECONDS = 24, 30, 10


def made_up() -> bytes:
    """A clip."""
    rng, count = np.random.default_rng(0), RATE * SECONDS
    scene = (128 + 40 * rng.normal(size=(64, 96, 3))).clip(0, 255).astype(np.uint8).repeat(8, 0).repeat(8, 1)
    pictures = [scene[number // 2 :][:256, number // 3 :][:, :340] for number in range(count)]
    sound = rng.normal(0, 0.1, (2, 44_100 * SECONDS)).astype(np.float32)
    times = [Fraction(number, RATE) for number in range(count)]
    return write("mp4", pictures, times, sound, 44_100, "libx264", "aac", base=Fraction(1, RATE), rate=RATE)


def works(settings: argparse.Namespace) -> Iterator[Comparison]:
    """Every size of pictures, or sound alone."""
    files, needs = [made_up()] * 4, "audio" if settings.dataset == "esc50" else "video"
    if settings.dataset:
        paths = [*prepare.source(settings.dataset, subset=True).items.values()]
        files = [read_file(path) for path in paths[:: max(1, len(paths) // MOST)]]

    def decoded(size: int) -> None:
        for contents in files:
            decode.decode(contents, needs=needs, size=size)

    sizes = {f"size {size}": lambda size=size: decoded(size) for size in (128, 256)}
    yield Comparison(settings.dataset or "made-up clips", sizes, len(files), "clips", "size 128")


if __name__ == "__main__":
    compare(__doc__, works, clock=time.process_time, threads=1, rounds=3, dataset="")
