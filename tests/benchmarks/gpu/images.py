"""Images per second: training with MoCo v2 beside a plain loop in float32, and making views.

The plain loop has torchvision's ResNet-18 and torch's own parts in float32, one tensor at a time: a momentum update per
parameter, logits of positive and negatives concatenated, a copy of the dictionary. Both take our views of images in
device memory.
"""

import copy
import functools
import itertools
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from repro.image.augment import normalisation, strong
from tests.benchmarks import image_throughput
from tests.benchmarks.stopwatch import operations, seconds, wait
from tests.benchmarks.turns import turns

ENTRIES, TEMPERATURE, MOMENTUM = 4096, 0.2, 0.99
STEMS = {"small": (512, 32), "stock": (256, 224)}  # images of a batch, and pixels of a side of the views
TINY = {"small": (2, 8)}


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name."""
    settings = TINY if tiny else STEMS
    found = {f"{stem} stem": functools.partial(training, stem, *settings[stem], device, 1 if tiny else 10)
             for stem in settings}
    return found | {"views": lambda: {
        f"{size} pixels": views(count, size, device) for count, size in settings.values()
    }}


def training(stem: str, batch: int, size: int, device: torch.device, steps: int) -> dict[str, Any]:
    """Images per second of the plain loop and of ours in every setting."""
    learners = {
        name: image_throughput.learner(stem, batch, device, size=size, resize=size, **changes)
        for name, changes in image_throughput.SETTINGS.items()
    }
    works = {"plain float32": functools.partial(next, plain(stem, batch, size, device))}
    works |= {name: learner.step for name, learner in learners.items()}
    waiting = {name: lambda work=work: (work(), wait(device)) for name, work in works.items()}
    taken = turns(waiting, image_throughput.ROUNDS, calls=steps)
    rates = {name: batch / statistics.median(rounds) for name, rounds in taken.items()}
    amount = operations(learners["float32"].step)
    return {
        "images a second": rates,
        "times": {name: rate / rates["plain float32"] for name, rate in rates.items()},
        "work": [{"path": f"images, {size} pixels, {name}", "limit": learner.recipe.precision, "amount": amount,
                  "seconds": batch / rates[name]} for name, learner in learners.items()],
    }


def views(count: int, size: int, device: torch.device) -> float:
    """Images per second of the strong view, of images somewhat larger than it."""
    side = size * 8 // 7
    images = torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, device=device)
    view, generator = strong(size, normalisation("imagenet")), torch.Generator(device).manual_seed(0)
    return count / seconds(lambda: view(images, generator), device)


def plain(stem: str, batch: int, size: int, device: torch.device) -> Iterator[None]:
    """A step at a time."""
    head = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))
    model = image_throughput.resnet18(stem, head).to(device)
    follower = copy.deepcopy(model).requires_grad_(False)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.06, momentum=0.9, weight_decay=5e-4)
    entries = functional.normalize(torch.randn(ENTRIES, 128, device=device), dim=1)
    images = image_throughput.made_up(4 * batch).images.to(device)
    view, generator = strong(size, normalisation("cifar10")), torch.Generator(device).manual_seed(0)
    for pictures in itertools.cycle(images.split(batch)):
        query = functional.normalize(model(view(pictures, generator)), dim=1)
        with torch.no_grad():
            for own, other in zip(follower.parameters(), model.parameters(), strict=True):
                own.data = MOMENTUM * own.data + (1 - MOMENTUM) * other.data
            key = functional.normalize(follower(view(pictures, generator)), dim=1)
        logits = torch.cat([(query * key).sum(1, keepdim=True), query @ entries.clone().T], dim=1) / TEMPERATURE
        loss = functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64, device=device))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        entries = torch.cat([entries[batch:], key])
        yield
