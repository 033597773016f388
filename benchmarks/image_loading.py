"""How fast pictures of ImageNet's size come out of class folders: images per second by decoding processes, and memory.

    python3 -m benchmarks.image_loading [--workers 1,2] [--images 512] [--rounds 3]

Made-up JPEGs of 500 x 375 pixels, blurred noise at a quality at which they are about as long as ImageNet's, 110 kB.
The training loader decodes every picture once and cuts two random views of 224 pixels out of it. Beside it, in the same
run and in turns, one process that only decodes: what the format costs at least. Memory is the most that this process
has held after the rounds and after four more passes: it must not grow with the images seen.
"""

import statistics
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter

from benchmarks.stopwatch import CPU, options, show, turns
from repro.image.augment import normalisation, strong
from repro.image.batches import Streamed
from repro.image.readers import Files
from repro.run.device import peak_mb

SIZE, BATCH, VIEWS, EPOCH = 224, 64, 2, 1_281_167


def made_up(folder: Path, count: int) -> Files:
    """Pictures below the folder."""
    rng = np.random.default_rng(0)
    for number in range(count):
        noise = Image.fromarray(rng.integers(0, 256, (375, 500, 3), dtype=np.uint8))
        noise.filter(ImageFilter.GaussianBlur(1)).save(folder / f"{number}.JPEG", quality=93)
    return Files(folder, np.array([f"{number}.JPEG".encode() for number in range(count)]))


def load(files: Files, workers: int) -> None:
    """Have all pictures decoded and cut."""
    views = [strong(SIZE, normalisation("imagenet"))] * VIEWS
    source = Streamed(files, views, CPU, workers=workers)
    for _ in source.batches(torch.arange(len(files)), batch=BATCH, seed=(0,)):
        pass


def main() -> None:
    """Print images per second, ratios to decoding alone, and memory."""
    settings = options(__doc__, workers="1,2", images=512, rounds=3)
    with tempfile.TemporaryDirectory() as folder:
        files = made_up(Path(folder), settings.images)
        length = sum(path.stat().st_size for path in Path(folder).iterdir()) / settings.images
        works = {"decoding alone": lambda: [files.read(place) for place in range(len(files))]}
        for count in map(int, settings.workers.split(",")):
            works[f"loader, {count} processes"] = lambda count=count: load(files, count)
        taken = turns(works, settings.rounds, warm_up=0)
        first = peak_mb(CPU)
        for _ in range(4):
            load(files, 1)
        last = peak_mb(CPU)
    print(f"{settings.images} pictures of {length / 1000:.0f} kB; least / median / most of {settings.rounds} rounds")
    show(taken, settings.images, "images", "decoding alone")
    for name, seconds in taken.items():
        print(f"{name}: {EPOCH * statistics.median(seconds) / settings.images / 3600:.1f} h for an epoch of ImageNet")
    print(f"memory at most: {first} MB after {settings.rounds} rounds, {last} MB after four more passes")


if __name__ == "__main__":
    main()
