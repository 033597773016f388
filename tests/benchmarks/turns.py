"""Works measured in turns within one process: seconds of each, round by round, and how far the rounds lie apart."""

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

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
