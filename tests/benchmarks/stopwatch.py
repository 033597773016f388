"""How long something takes, and where the time of a learner's steps goes, by part."""

import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor


def wait(device: torch.device) -> None:
    """Until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], object], device: torch.device, *, repeats: int = 5, warm_up: int = 2) -> float:
    """Time of one call, until the device has done it: the median of several."""
    taken = []
    for _ in range(warm_up + repeats):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[warm_up:])


class Stopwatch:
    """Time of wrapped functions by part; what a part calls counts for the innermost part alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.inner = [0.0]

    def wrap(self, function: Callable, part: str) -> Callable:
        def timed(*arguments, **named):
            self.inner.append(0.0)
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                whole = time.perf_counter() - start
                self.seconds[part] += whole - self.inner.pop()
                self.inner[-1] += whole

        return timed


@contextlib.contextmanager
def in_parts(learner: Any, parts: Mapping[str, Sequence[str]]) -> Iterator[Stopwatch]:
    """A stopwatch that runs while the learner steps inside the block.

    Args:
        learner: with a method `step`.
        parts: by name, the learner's methods, or those of its members ("optimiser.step"), that are timed together. The
            backward pass and the rest of a step are parts of their own.
    """
    watch = Stopwatch()
    with contextlib.ExitStack() as stack:
        for part, places in parts.items():
            for place in places:
                *owners, name = place.split(".")
                owner = learner
                for each in owners:
                    owner = getattr(owner, each)
                stack.enter_context(mock.patch.object(owner, name, watch.wrap(getattr(owner, name), part)))
        backward = watch.wrap(Tensor.backward, "backward pass")
        stack.enter_context(mock.patch.object(Tensor, "backward", backward))
        stack.enter_context(mock.patch.object(learner, "step", watch.wrap(learner.step, "the rest")))
        yield watch
