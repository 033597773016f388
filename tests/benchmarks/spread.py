"""How far the rounds of a measurement lie apart."""

import math
import statistics
from collections.abc import Iterable, Sequence


def spread(values: Sequence[float], form: str) -> str:
    """Least, median and most of at least one value, each in a format such as ".2f"."""
    return " / ".join(format(value, form) for value in (min(values), statistics.median(values), max(values)))


def ratios(above: Sequence[float], below: Sequence[float]) -> str:
    """The same of the quotients of two measurements, round by round."""
    return spread([first / second for first, second in zip(above, below, strict=True)], ".2f")


def largest(differences: Iterable[float]) -> float:
    """The largest; infinite if one is not a number, which `max` may overlook."""
    return max(math.inf if math.isnan(each) else each for each in differences)
