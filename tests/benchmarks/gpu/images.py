"""Images per second: training with MoCo v2 in every setting, and making views."""

import functools
import statistics
from collections.abc import Callable
from typing import Any

import torch

from repro.image.augment import normalisation, strong
from tests.benchmarks.image_throughput import ROUNDS, SETTINGS, learner
from tests.benchmarks.stopwatch import operations, seconds, turns, wait

STEMS = {"small": (512, 32), "stock": (256, 224)}  # images of a batch, and pixels of a side of the views
TINY = {"small": (2, 8)}


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name."""
    settings = TINY if tiny else STEMS
    measures = {f"{stem} stem": functools.partial(training, stem, *settings[stem], device, 1 if tiny else 10)
                for stem in settings}
    return measures | {"views": lambda: {
        f"{size} pixels": views(count, size, device) for count, size in settings.values()
    }}


def training(stem: str, batch: int, size: int, device: torch.device, steps: int) -> dict[str, Any]:
    """Images per second in every setting, and how many times those of the first."""
    learners = {name: learner(stem, batch, device, size=size, resize=size, **changes)
                for name, changes in SETTINGS.items()}
    works = {name: lambda learner=learner: (learner.step(), wait(device)) for name, learner in learners.items()}
    rates = {name: batch / statistics.median(rounds) for name, rounds in turns(works, ROUNDS, calls=steps).items()}
    amount = operations(learners["float32"].step)
    return {
        "images a second": rates,
        "times": {name: rate / rates["float32"] for name, rate in rates.items()},
        "work": [{"path": f"images, {size} pixels, {name}", "limit": each.recipe.precision, "amount": amount,
                  "seconds": batch / rates[name]} for name, each in learners.items()],
    }


def views(count: int, size: int, device: torch.device) -> float:
    """Images per second of the strong view, of images somewhat larger than it."""
    side = size * 8 // 7
    images = torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, device=device)
    view, generator = strong(size, normalisation("imagenet")), torch.Generator(device).manual_seed(0)
    return count / seconds(lambda: view(images, generator), device)
