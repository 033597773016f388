"""Works measured in turns: seconds and memory of each, and how far rounds lie apart."""

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from repro.image.data import ImageSet
from repro.skeleton.data import SkeletonSet

CPU = torch.device("cpu")
Works = Mapping[str, Callable[[], object]]
Seconds = dict[str, list[float]]


def options(doc: str, **defaults: Any) -> argparse.Namespace:
    """What the command line puts in the place of defaults, of whose types it is; `False` is a switch."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, value in defaults.items():
        kind = {"action": "store_true"} if value is False else {"type": type(value), "default": value}
        parser.add_argument(f"--{name.replace('_', '-')}", **kind)
    return parser.parse_args()


def turns(
    works: Works, rounds: int, *, calls: int = 1, warm_up: int = 1, clock: Callable[[], float] = time.perf_counter
) -> Seconds:
    """Seconds of a call of every work in each round; the first rounds, in which libraries get ready, do not count."""
    taken: Seconds = {name: [] for name in works}
    for number in range(warm_up + rounds):
        for name, work in works.items():
            start = clock()
            for _ in range(calls):
                work()
            if number >= warm_up:
                taken[name].append((clock() - start) / calls)
    return taken


def spread(values: Sequence[float], form: str = ".3g") -> str:
    """Least, median and most of at least one value."""
    return " / ".join(format(value, form) for value in (min(values), statistics.median(values), max(values)))


def show(taken: Seconds, amount: float, unit: str, beside: str) -> None:
    """Print a line for each work: how much it gets done a second, and how many times as much as one of them."""
    for name, seconds in taken.items():
        rates = spread([amount / own for own in seconds], ".4g")
        times = spread([other / own for other, own in zip(taken[beside], seconds, strict=True)], ".2f")
        print(f"{name:<28} {rates:<28} {unit} a second, {times} times {beside}")


def wait(device: torch.device) -> None:
    """Until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], object], device: torch.device, *, repeats: int = 5, warm_up: int = 2) -> float:
    """Time of one call, until the device has done it: the median of several."""
    taken = turns({"work": lambda: (work(), wait(device))}, repeats, warm_up=warm_up)
    return statistics.median(taken["work"])


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


def operations(step: Callable[[], object]) -> int:
    """Additions and multiplications in the matrix products and convolutions of a step."""
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()


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
