"""How fast pictures of ImageNet's size come out of class folders: images per second by decoding processes, and memory.

    python3 -m tests.benchmarks.image_loading [--workers 1,2] [--images 512] [--rounds 3]

Made-up JPEGs of 500 x 375 pixels, blurred noise at a quality at which they are about as long as ImageNet's, 110 kB.
The training loader decodes every picture once and cuts two random views of 224 pixels out of it. Beside it, in the same
run and in turns, one process that only decodes: what the format costs at least. Memory is the most that this process
has held after one and after four passes: it must not grow with the images seen.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter

from repro.image.augment import normalisation, strong
from repro.image.batches import Streamed
from repro.image.readers import Files
from repro.run.cost import peak_mb
from tests.benchmarks.spread import ratios, spread

SIZE, BATCH, VIEWS, EPOCH = 224, 64, 2, 1_281_167


def made_up(folder: Path, count: int) -> Files:
    """Pictures below the folder."""
    rng = np.random.default_rng(0)
    for number in range(count):
        noise = Image.fromarray(rng.integers(0, 256, (375, 500, 3), dtype=np.uint8))
        noise.filter(ImageFilter.GaussianBlur(1)).save(folder / f"{number}.JPEG", quality=93)
    return Files(folder, np.array([f"{number}.JPEG".encode() for number in range(count)]))


def loaded(files: Files, workers: int) -> None:
    """Have all pictures decoded and cut."""
    views = [strong(SIZE, normalisation("imagenet"))] * VIEWS
    source = Streamed(files, views, torch.device("cpu"), workers=workers)
    for _ in source.batches(torch.arange(len(files)), batch=BATCH, seed=(0,)):
        pass


def decoded(files: Files) -> None:
    """Decode all pictures here."""
    for place in range(len(files)):
        files.read(place)


def rate(work: Callable[[], None], images: int) -> float:
    """Images per second of a call."""
    start = time.perf_counter()
    work()
    return images / (time.perf_counter() - start)


def main() -> None:
    """Print images per second, ratios to decoding alone, and memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="1,2", help="comma list")
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = made_up(Path(folder), options.images)
        length = sum(path.stat().st_size for path in Path(folder).iterdir()) / options.images
        works = {"decoding alone": lambda: decoded(files)}
        for count in map(int, options.workers.split(",")):
            works[f"loader, {count} processes"] = lambda count=count: loaded(files, count)
        rates: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(options.rounds):
            for name, work in works.items():
                rates[name].append(rate(work, options.images))
        first = peak_mb(torch.device("cpu"))
        for _ in range(4):
            loaded(files, 1)
        last = peak_mb(torch.device("cpu"))
    print(f"{options.images} pictures of {length / 1000:.0f} kB; least / median / most of {options.rounds} rounds")
    for name, found in rates.items():
        hours = EPOCH / statistics.median(found) / 3600
        beside = ratios(found, rates["decoding alone"])
        print(f"{name:<22}{spread(found, '.0f'):<20}images/s{beside:>22} x decoding alone"
              f"{hours:6.1f} h for an epoch of ImageNet")
    print(f"memory at most: {first} MB after {options.rounds} rounds, {last} MB after four more passes")


if __name__ == "__main__":
    main()
