"""How many categories uniform draws come from, in closed form: what selected negatives are to be compared with."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from pandas import DataFrame


def expected_categories(shares: ArrayLike, draws: int) -> float:
    """Distinct categories among independent draws, in expectation: sum_c 1 - (1 - p_c)^M.

    Args:
        shares: (C,) probability p_c of every category, from 0 to 1; those of no category are left out.
        draws: M, from 0.

    Returns:
        From 0 to min(C, M); C (1 - (1 - 1/C)^M) for C categories that are equally frequent.

    Raises:
        ValueError: if shares are not probabilities, or draws is negative.
    """
    shares = np.asarray(shares, np.float64)
    if not (shares >= 0).all() or shares.sum() > 1 + 1e-9:
        raise ValueError(f"shares={shares} should be probabilities of different categories, with a sum of at most 1")
    if draws < 0:
        raise ValueError(f"draws={draws} should be a number from 0")
    return float((1 - (1 - shares) ** draws).sum())


def uniform_draws(categories: Sequence[int] = (101, 51), draws: Sequence[int] = (32, 64, 128)) -> DataFrame:
    """Distinct categories among M uniform draws from equally frequent ones.

    Args:
        categories: C; UCF101 has 101, of which about half have sound.
        draws: M; by default those of CM-ACC's Figs. 2 and 4.

    Returns:
        One row per pair: categories, draws, expected, and this in percent of the categories and of the draws.
    """
    pairs = [(count, number) for count in categories for number in draws]
    table = DataFrame(pairs, columns=["categories", "draws"])
    table["expected"] = [expected_categories(np.full(count, 1 / count), number) for count, number in pairs]
    table["percent_of_categories"] = 100 * table["expected"] / table["categories"]
    return table.assign(percent_of_draws=100 * table["expected"] / table["draws"])
