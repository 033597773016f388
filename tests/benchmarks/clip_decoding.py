"""How fast clips are prepared: the parts of decoding, in one process.

    python3 -m tests.benchmarks.clip_decoding [DATASET, its files below REPRO_DATA]

CPU time of one core per clip, and clips per second, the least, the median and the most of several turns; without a data
set, made-up clips of ten seconds, 340 x 256 at 30 per second, H.264 and AAC, as those of Kinetics often are. Projected
are hours of one core, from the median, for the paper's numbers of clips: 240,000 of Kinetics-700, 1.8 million of
AudioSet.
"""

import argparse
import functools
import io
import math
import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import av
import numpy as np

from repro.audiovisual import decode, prepare, splits
from tests.benchmarks.spread import spread

TURNS, MOST, PAPER = 3, 24, (240_000, 1_800_000)


def made_up() -> bytes:
    """A clip of ten seconds: blurred noise that drifts, and noise that is heard."""
    rng, target = np.random.default_rng(0), io.BytesIO()
    scene = rng.normal(size=(2, 64, 96, 3)).repeat(8, axis=1).repeat(8, axis=2)
    with av.open(target, "w", format="mp4") as container:
        pictures = container.add_stream("libx264", rate=30)
        pictures.width, pictures.height, pictures.pix_fmt = 340, 256, "yuv420p"
        track = container.add_stream("aac", rate=44_100, layout="stereo")
        for number in range(300):
            part = scene[0, number // 2 :][:256, number // 3 :][:, :340] + scene[1, :256, number // 2 :][:, :340]
            frame = av.VideoFrame.from_ndarray(np.clip(128 + 40 * part, 0, 255).astype(np.uint8), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 30)
            container.mux(pictures.encode(frame))
            heard = av.AudioFrame.from_ndarray(rng.normal(0, 0.1, (2, 1470)).astype(np.float32), "fltp", "stereo")
            heard.sample_rate, heard.pts, heard.time_base = 44_100, 1470 * number, Fraction(1, 44_100)
            container.mux(track.encode(heard))
        container.mux(pictures.encode(None))
        container.mux(track.encode(None))
    return target.getvalue()


def real(name: str) -> list[bytes]:
    """Some clips of a data set, evenly spread."""
    items = prepare.find(name, None, subset=True).items
    return [item.entry.read() for item in items[:: max(1, len(items) // MOST)]]


def turns(work: Callable, files: list) -> list[float]:
    """CPU seconds per file of calling `work` on each, of every turn."""
    times = []
    for _ in range(TURNS):
        start = time.process_time()
        for each in files:
            work(each)
        times.append((time.process_time() - start) / len(files))
    return times


def decoded(contents: bytes) -> None:
    """Decode all pictures and keep none: what the format costs at least."""
    with decode.opened(contents) as container:
        for _ in container.decode(video=0):
            pass


def lasts(contents: bytes) -> float:
    """Seconds that a file says it lasts."""
    with decode.opened(contents) as container:
        return container.duration / 10**6


def main() -> None:
    """Time pictures, sound and all of a clip."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", nargs="?", choices=tuple(splits.LAYOUTS), help="made-up clips without one")
    name = parser.parse_args().dataset
    files = real(name) if name else [made_up()] * 4
    needs = "audio" if name == "esc50" else "video"
    decode.log_mel(np.zeros(1600, dtype=np.float32))  # the first use compiles

    def whole(contents: bytes, size: int) -> None:
        decode.decode(contents, needs=needs, size=size, listed=math.nan)

    works: dict[str, Callable] = {}
    if needs == "video":
        works |= {"pictures, decoded": decoded, "pictures, size 128": functools.partial(decode.read_pictures, size=128)}
    works["sound, decoded"] = decode.read_sound
    for size in (128, 256) if needs == "video" else (128,):
        works[f"all, size {size}"] = functools.partial(whole, size=size)
    seconds = sum(map(lasts, files)) / len(files)
    print(f"{name or 'made-up clips'}: {len(files)} clips of {seconds:.1f} s on average, one core, {TURNS} turns")
    for part, work in works.items():
        times = turns(work, files)
        rate = spread([1 / each for each in times], ".1f")
        hours = ", ".join(f"{statistics.median(times) * count / 3600:.1f} h for {count:,}" for count in PAPER)
        print(f"{part:<20}{statistics.median(times) * 1000:8.1f} ms per clip; clips/s {rate}; {hours}")


if __name__ == "__main__":
    main()
