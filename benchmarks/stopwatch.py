"""Works measured in turns: seconds and memory of each, and how far rounds lie apart; and made-up data."""

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from repro.image.data import ImageSet
from repro.run.device import hardware
from repro.skeleton.data import SkeletonSet

CPU = torch.device("cpu")
Works = Mapping[str, Callable[[], object]]
Clock = Callable[[], float]


class Comparison(NamedTuple):
    """Works that do the same in other ways.

    Attributes:
        title: what all of them do.
        works: by name.
        amount, unit: how much of what a call gets done.
        beside: the work that the others are compared with.
        memory: whether to measure it too, in a further call.
    """

    title: str
    works: Works
    amount: float
    unit: str
    beside: str
    memory: bool = False


def options(doc: str, **defaults: Any) -> argparse.Namespace:
    """What the command line puts in the place of defaults, of whose types it is; `False` is a switch."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, value in defaults.items():
        kind = {"action": "store_true"} if value is False else {"type": type(value), "default": value}
        parser.add_argument(f"--{name.replace('_', '-')}", **kind)
    return parser.parse_args()


def compare(
    doc: str, comparisons: Callable[[argparse.Namespace], Iterator[Comparison]], *, clock: Clock = time.perf_counter,
    threads: int = 2, rounds: int = 5, warm_up: int = 1, **defaults: Any,
) -> None:
    """Print how much works get done a second, how many times as much as the one beside them, and their memory.

    Args:
        doc: of the benchmark; its first line is its help.
        comparisons: makes them of the options of the command line, and goes on when one is measured.
        clock: seconds.
        threads, rounds, warm_up, defaults: options and their defaults.
    """
    settings = options(doc, threads=threads, rounds=rounds, warm_up=warm_up, **defaults)
    torch.set_num_threads(settings.threads)
    print(f"{hardware(CPU)['device']}, {settings.threads} threads; least / median / most of {settings.rounds} rounds")
    for comparison in comparisons(settings):
        print(comparison.title)
        taken = turns(comparison.works, settings.rounds, warm_up=settings.warm_up, clock=clock)
        for name, seconds in taken.items():
            rates = spread([comparison.amount / own for own in seconds], ".4g")
            times = spread([other / own for other, own in zip(taken[comparison.beside], seconds, strict=True)], ".3g")
            print(f"{name:<28} {rates:<28} {comparison.unit} a second, {times} times {comparison.beside}")
            if comparison.memory:
                print(f"{'':<28} {peak(comparison.works[name]):.0f} MiB")


def turns(works: Works, rounds: int, *, warm_up: int = 1, clock: Clock = time.perf_counter) -> dict[str, list[float]]:
    """Seconds of a call of every work in each round; the first rounds, in which libraries get ready, do not count."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number in range(warm_up + rounds):
        for name, work in works.items():
            start = clock()
            work()
            if number >= warm_up:
                taken[name].append(clock() - start)
    return taken


def spread(values: Sequence[float], form: str) -> str:
    """Least, median and most of at least one value."""
    return " / ".join(format(value, form) for value in (min(values), statistics.median(values), max(values)))


def peak(work: Callable[[], object]) -> float:
    """Most MiB of tensors made on the CPU within a call that live at once."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    level = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        level += event.nbytes()
        highest = max(highest, level)
    return highest / 2**20


@functools.cache
def pictures(count: int) -> ImageSet:
    """Noise of 32 pixels a side, of ten classes; a tenth is for the test."""
    images = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    every, test = torch.ones(count, dtype=torch.bool), torch.arange(count) % 10 == 0
    labels = torch.arange(count) // 10 % 10
    return ImageSet("made-up", images, labels, every, ~test, test, tuple("0123456789"), "made up")


def sequences(lengths: Tensor, features: int) -> SkeletonSet:
    """Smooth made-up sequences of these lengths (n,), all for training."""
    draws = torch.Generator().manual_seed(0)
    frames = torch.randn(int(lengths.sum()), features, generator=draws).cumsum(0).sin()
    ones, every = torch.ones_like(lengths), torch.ones(len(lengths), dtype=torch.bool)
    return SkeletonSet(
        name="made-up", frames=frames, lengths=lengths, labels=ones, train=every, test=~every, views=ones,
        subjects=ones, actions=("a", "b"), bones=((0, 1),), digest="made up",
    )
