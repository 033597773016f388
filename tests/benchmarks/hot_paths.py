"""How far each hot path is from what bounds it on this CPU: matrix products, or memory; and the parts of its steps.

    python3 -m tests.benchmarks.hot_paths [--threads 2] [--rounds 5] [--steps 3]

The bounds are measured: a product of two matrices of 2,048 x 2,048 in float32 and in bfloat16, and a copy of 256 MB,
which reads and writes them. A training step counts by the additions and multiplications of its matrix products and
convolutions, a selection by the bytes of the factors that each of its rounds reads, a view by those of the images it
reads and writes. Bounds and paths take turns; printed are rates, and the least, the median and the most of the rounds'
shares of the bound. Reading pictures, clips and text has bounds of its own: `image_loading`, `clip_decoding` and
`ntu_parse` measure them.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch

from repro.image.augment import normalisation, strong
from repro.run.device import hardware
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper
from tests.benchmarks import image_throughput, selection, taxonomy_step
from tests.benchmarks.gpu import limits
from tests.benchmarks.made_up import made_up
from tests.benchmarks.spread import ratios, spread
from tests.benchmarks.stopwatch import in_parts

CPU = torch.device("cpu")
SIDE, COPIED = 2048, 2**28       # rows of a matrix, bytes of a copy
VIEWS, PIXELS = 256, 32          # images of a call, pixels of a side


class Path(NamedTuple):
    """A hot path: its bound, how much of that it needs (operations or bytes), a call, and what has steps."""

    bound: str
    amount: float
    work: Callable[[], object]
    learner: object = None
    parts: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def bounds() -> dict[str, Callable[[], dict[str, float]]]:
    """By name, what measures the rate a second: operations, or bytes."""
    kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    products = {name: lambda kind=kind: limits.product(CPU, SIDE, kind) for name, kind in kinds.items()}
    return products | {"copy": lambda: limits.copy(CPU, COPIED)}


def paths() -> dict[str, Path]:
    """Of the three modalities, and selection and views."""
    read = 4 * selection.POOL * (selection.FEATURES + selection.QUERIES) * selection.CHOSEN
    images = torch.randint(0, 256, (VIEWS, 3, PIXELS, PIXELS), dtype=torch.uint8)
    view, draws = strong(PIXELS, normalisation("cifar10")), torch.Generator().manual_seed(0)
    found = {
        "selection of negatives": Path("copy", read, selection.selection(CPU)),
        "strong view": Path("copy", 5 * images.numel(), lambda: view(images, generator=draws)),
    }
    for precision in ("float32", "bfloat16"):
        recipe = paper("ucla", "AE+CE+AD+CD", precision=precision)
        learner = Pretrainer(recipe, made_up(taxonomy_step.lengths(full=True), taxonomy_step.FEATURES), 0, CPU)
        found[f"taxonomy, all terms, {precision}"] = step(learner, precision, taxonomy_step.PARTS)
    for stem, batch in image_throughput.BATCH.items():
        learner = image_throughput.learner(stem, batch, **image_throughput.SETTINGS[image_throughput.BEST])
        found[f"MoCo v2, {stem} stem, bfloat16"] = step(learner, "bfloat16", image_throughput.PARTS)
    return found


def step(learner: object, bound: str, parts: dict[str, tuple[str, ...]]) -> Path:
    """A learner's step, not the first, which also measures nearest neighbours of images."""
    learner.step()
    return Path(bound, limits.operations(learner.step), learner.step, learner, parts)


def rate(path: Path, steps: int) -> float:
    """How much of its bound a path takes in a second."""
    start = time.perf_counter()
    for _ in range(steps):
        path.work()
    return steps * path.amount / (time.perf_counter() - start)


def profile(path: Path, steps: int) -> str:
    """What part of a step goes where."""
    with in_parts(path.learner, path.parts) as watch:
        for _ in range(steps):
            path.work()
    whole = sum(watch.seconds.values())
    return ", ".join(f"{part} {100 * seconds / whole:.0f} %" for part, seconds in watch.seconds.items())


def main() -> None:
    """Print a line per bound and per path, and the parts of steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    limited, hot = bounds(), paths()
    rates: dict[str, list[float]] = {name: [] for name in [*limited, *hot]}
    for _ in range(options.rounds):
        for name, measure in limited.items():
            rates[name].append(measure()["rate"] / 1e9)
        for name, path in hot.items():
            rates[name].append(rate(path, options.steps) / 1e9)
    print(f"{hardware(CPU)['device']}, {options.threads} threads; 10^9 operations or bytes a second, and the share of "
          f"the bound; least / median / most of {options.rounds} rounds")
    for name in limited:
        print(f"{name:<34}{spread(rates[name], '.1f')}")
    for name, path in hot.items():
        share = ratios(rates[name], rates[path.bound])
        print(f"{name:<34}{spread(rates[name], '.1f'):<24}{share} of {path.bound}")
        if path.parts:
            print(f"  {profile(path, options.steps)}")


if __name__ == "__main__":
    main()
