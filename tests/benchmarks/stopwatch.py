"""Works measured in turns: seconds and memory of each, how far rounds lie apart, where the time of steps goes."""

import argparse
import contextlib
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

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


def ratios(above: Sequence[float], below: Sequence[float]) -> str:
    """The same of the quotients of two measurements, round by round."""
    return spread([first / second for first, second in zip(above, below, strict=True)], ".2f")


def show(taken: Seconds, amount: float, unit: str, beside: str) -> None:
    """Print a line for each work: how much it gets done a second, and how many times as much as one of them."""
    for name, seconds in taken.items():
        rates = spread([amount / each for each in seconds], ".4g")
        print(f"{name:<28} {rates:<28} {unit} a second, {ratios(taken[beside], seconds)} times {beside}")


def largest(differences: Iterable[float]) -> float:
    """The largest; infinite if one is not a number, which `max` may overlook."""
    return max(math.inf if math.isnan(each) else each for each in differences)


def wait(device: torch.device) -> None:
    """Until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], object], device: torch.device, *, repeats: int = 5, warm_up: int = 2) -> float:
    """Time of one call, until the device has done it: the median of several."""
    taken = turns({"work": lambda: (work(), wait(device))}, repeats, warm_up=warm_up)
    return statistics.median(taken["work"])


def peak(work: Callable[[], object], device: torch.device = CPU) -> float:
    """Most MiB of tensors made within a call that live at once."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return (torch.cuda.max_memory_allocated(device) - before) / 2**20
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


@contextlib.contextmanager
def in_parts(learner: Any, parts: Mapping[str, Sequence[str]]) -> Iterator[dict[str, float]]:
    """Seconds by part, while the learner steps inside the block; what a part calls counts for the innermost alone.

    Args:
        learner: with a method `step`.
        parts: by name, the learner's methods, or those of its members ("optimiser.step"), that are timed together. The
            backward pass and the rest of a step are parts of their own.
    """
    taken, inner = defaultdict(float), [0.0]

    def timed(owner: Any, name: str, part: str) -> Any:
        function = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            inner.append(0.0)
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                whole = time.perf_counter() - start
                taken[part] += whole - inner.pop()
                inner[-1] += whole

        return mock.patch.object(owner, name, call)

    with contextlib.ExitStack() as stack:
        for part, places in parts.items():
            for place in places:
                owner, _, name = place.rpartition(".")
                stack.enter_context(timed(attrgetter(owner)(learner) if owner else learner, name, part))
        stack.enter_context(timed(Tensor, "backward", "backward pass"))
        stack.enter_context(timed(learner, "step", "the rest"))
        yield taken


def shares(learner: Any, parts: Mapping[str, Sequence[str]], steps: int) -> str:
    """What part of a step goes where."""
    with in_parts(learner, parts) as taken:
        for _ in range(steps):
            learner.step()
    whole = sum(taken.values())
    return ", ".join(f"{part} {100 * seconds / whole:.0f} %" for part, seconds in taken.items())


def sequences(lengths: Tensor, features: int) -> SkeletonSet:
    """Smooth made-up sequences of these lengths (n,), all for training."""
    draws = torch.Generator().manual_seed(0)
    frames = torch.randn(int(lengths.sum()), features, generator=draws).cumsum(0).sin()
    ones, every = torch.ones_like(lengths), torch.ones(len(lengths), dtype=torch.bool)
    return SkeletonSet(
        name="made-up", frames=frames, lengths=lengths, labels=ones, train=every, test=~every, views=ones,
        subjects=ones, actions=("a", "b"), bones=((0, 1),), digest="made up",
    )
