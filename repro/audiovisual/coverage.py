"""How many categories uniform draws come from, in closed form: what selected negatives are to be compared with."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from pandas import DataFrame


def expected_categories(shares: ArrayLike, draws: int, population: float = math.inf) -> float:
    """Distinct categories among uniform draws without replacement, in expectation:

        sum_c 1 - prod_{i < M} (1 - p_c N / (N - i)),   of infinitely many items sum_c 1 - (1 - p_c)^M

    Args:
        shares: (C,) share p_c of every category among the items, from 0 to 1; those of no category are left out.
        draws: M, from 0 to the population.
        population: N, items there are.

    Returns:
        From 0 to min(C, M).
    """
    shares = np.asarray(shares, np.float64)
    left = 1 - np.arange(draws) / population                                          # (M,) of the items, as a share
    missed = np.prod(np.clip(1 - shares[:, None] / left, 0, None), axis=1)                                      # (C,)
    return float((1 - missed).sum())


def uniform_draws(categories: Sequence[int] = (101, 51), draws: Sequence[int] = (32, 64, 128)) -> DataFrame:
    """Distinct categories among M uniform draws (Figs. 2 and 4) from C equally frequent ones (of UCF101, half audible).

    Returns:
        One row per pair: categories, draws, expected, and this in percent of the categories and of the draws.
    """
    pairs = [(count, number) for count in categories for number in draws]
    table = DataFrame(pairs, columns=["categories", "draws"])
    table["expected"] = [expected_categories(np.full(count, 1 / count), number) for count, number in pairs]
    table["percent_of_categories"] = 100 * table["expected"] / table["categories"]
    return table.assign(percent_of_draws=100 * table["expected"] / table["draws"])
