"""Memory of the pass behind the histograms of similarity and variance, as the number of images grows.

    python3 -m tests.benchmarks.similarity_memory [--images 1024,8192,32768] [--augmentations 32]

An untrained ResNet-18 with the stem for large images, made-up images of 8 pixels, which are counted apart: what is
asked is whether the pass itself keeps more than two numbers of an image. Printed is the most memory that this process
has held after each number of images, in ascending order, less that of a first pass over 256.
"""

import argparse
import time

import torch

from repro.image.data import ImageSet
from repro.image.model import ImageModel
from repro.image.recipe import quick
from repro.papers.jcl.logs import features
from repro.report.histograms import similarity_and_variance
from repro.run.cost import peak_mb

FIRST = 256


def made_up(count: int) -> ImageSet:
    """Noise in one class."""
    images = torch.randint(256, (count, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    all_of_them = torch.ones(count, dtype=torch.bool)
    labels = torch.zeros(count, dtype=torch.int64)
    return ImageSet("digits", images, labels, all_of_them, all_of_them, ~all_of_them, ("noise",), "0" * 64)


def main() -> None:
    """Print a line per number of images."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", default="1024,8192,32768", help="comma list, ascending")
    parser.add_argument("--augmentations", type=int, default=32)
    chosen = parser.parse_args()
    counts = [int(count) for count in chosen.images.split(",")]
    data, recipe, device = made_up(max(counts)), quick("digits", "jcl"), torch.device("cpu")
    torch.set_num_threads(recipe.threads)
    model = ImageModel(recipe.trunk, False, recipe.head, recipe.projection)

    def run(images: int) -> None:
        rows: list[list[float]] = []
        for z in features(model, recipe, data, images, chosen.augmentations, device=device):
            rows += torch.stack(similarity_and_variance(z), dim=1).tolist()

    run(FIRST)
    begun = peak_mb(device)
    for count in counts:
        start = time.perf_counter()
        run(count)
        grown, seconds = peak_mb(device) - begun, time.perf_counter() - start
        print(f"{count:>7,} images x {chosen.augmentations}: {grown} MiB more than {FIRST} images, {seconds:.0f} s")


if __name__ == "__main__":
    main()
