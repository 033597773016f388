"""Memory of the pass behind the histograms of similarity and variance, as the number of images grows.

    python3 -m tests.benchmarks.similarity_memory [--images 1024,8192,32768] [--augmentations 32]

An untrained ResNet-18 with the stem for large images, made-up images of 8 pixels, which are counted apart: what is
asked is whether the pass itself keeps more than two numbers of an image. Printed is the most memory that this process
has held after each number of images, in ascending order, less that of a first pass over 256.
"""

import torch

from repro.image.data import ImageSet
from repro.image.model import ImageModel
from repro.image.recipe import quick
from repro.papers.jcl.logs import features
from repro.report.histograms import similarity_and_variance
from repro.run.device import peak_mb
from tests.benchmarks.stopwatch import CPU
from tests.benchmarks.turns import options

FIRST = 256


def main() -> None:
    """Print a line per number of images."""
    chosen = options(__doc__, images="1024,8192,32768", augmentations=32)
    counts = [int(count) for count in chosen.images.split(",")]
    recipe = quick("digits", "jcl")
    images = torch.randint(256, (max(counts), 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    every, labels = torch.ones(len(images), dtype=torch.bool), torch.zeros(len(images), dtype=torch.int64)
    data = ImageSet("digits", images, labels, every, every, ~every, ("noise",), "0" * 64)
    torch.set_num_threads(recipe.threads)
    model = ImageModel(recipe.trunk, False, recipe.head, recipe.projection)
    held = []
    for count in (FIRST, *counts):
        rows: list[list[float]] = []
        for z in features(model, recipe, data, count, chosen.augmentations, device=CPU):
            rows += torch.stack(similarity_and_variance(z), dim=1).tolist()
        held.append(peak_mb(CPU))
        print(f"{count:>7,} images x {chosen.augmentations}: {held[-1] - held[0]} MiB more than {FIRST} images")


if __name__ == "__main__":
    main()
