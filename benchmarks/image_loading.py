"""How fast pictures of ImageNet's size come out of class folders: images per second by decoding processes, and memory.

    python3 -m benchmarks.image_loading [--workers 1,2] [--images 512] [--rounds 3]

Made-up JPEGs of 500 x 375 pixels, blurred noise at a quality at which they are about as long as ImageNet's, 110 kB.
The training loader decodes every picture once and cuts two random views of 224 pixels out of it. Beside it, in the same
run and in turns, one process that only decodes: what the format costs at least. Memory is the most that this process
has held after the rounds and after four more passes: it must not grow with the images seen.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter

from benchmarks.stopwatch import CPU, Comparison, compare
from repro.image.augment import normalisation, strong
from repro.image.batches import Streamed
from repro.image.readers import Files
from repro.run.device import peak_mb


def made_up(folder: Path, count: int) -> Files:
    """Pictures below the folder."""
    rng = np.random.default_rng(0)
    for number in range(count):
        noise = Image.fromarray(rng.integers(0, 256, (375, 500, 3), dtype=np.uint8))
        noise.filter(ImageFilter.GaussianBlur(1)).save(folder / f"{number}.JPEG", quality=93)
    return Files(folder, np.array([f"{number}.JPEG".encode() for number in range(count)]))


def load(files: Files, workers: int) -> None:
    """Have all pictures decoded and cut."""
    source = Streamed(files, [strong(224, normalisation("imagenet"))] * 2, CPU, workers=workers)
    for _ in source.batches(torch.arange(len(files)), batch=64, seed=(0,)):
        pass


def works(settings: argparse.Namespace) -> Iterator[Comparison]:
    """Decoding alone, and the loader with every number of processes; then memory."""
    with tempfile.TemporaryDirectory() as folder:
        files = made_up(Path(folder), settings.images)
        passes = {"decoding alone": lambda: [files.read(place) for place in range(len(files))]}
        for count in map(int, settings.workers.split(",")):
            passes[f"loader, {count} processes"] = lambda count=count: load(files, count)
        length = sum(path.stat().st_size for path in Path(folder).iterdir()) / settings.images
        title = f"{settings.images} pictures of {length / 1000:.0f} kB"
        yield Comparison(title, passes, settings.images, "images", "decoding alone")
        first = peak_mb(CPU)
        for _ in range(4):
            load(files, 1)
        print(f"memory at most: {first} MB after the rounds, {peak_mb(CPU)} MB after four more passes")


if __name__ == "__main__":
    compare(__doc__, works, rounds=3, warm_up=0, workers="1,2", images=512)
