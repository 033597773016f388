"""How many categories uniform draws come from, in closed form: what selected negatives are to be compared with."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq


def expected_categories(shares: ArrayLike, draws: int, population: float = math.inf) -> float:
    """Distinct categories among uniform draws without replacement, in expectation, from 0 to min(C, M):

        sum_c 1 - prod_{i < M} (1 - p_c N / (N - i)),   of infinitely many items sum_c 1 - (1 - p_c)^M

    Args:
        shares: (C,) share p_c of every category among the items, from 0 to 1; those of no category are left out.
        draws: M, from 0 to the population.
        population: N, items there are.
    """
    shares = np.asarray(shares, np.float64)
    left = 1 - np.arange(draws) / population                                          # (M,) of the items, as a share
    missed = np.prod(np.clip(1 - shares[:, None] / left, 0, None), axis=1)                                      # (C,)
    return float((1 - missed).sum())


def seeded_categories(counts: ArrayLike, draws: int, rho: float) -> float:
    """Distinct categories among weighted draws without replacement, in expectation.

    An item's weight is rho if its category has been drawn, else 1. The seeding of k-means++ comes to that if the
    squared distance to the nearest seed is rho within every drawn category and 1 elsewhere.

    In the time in which every item of weight w is drawn at the rate w, categories are drawn independently. At t

        sum_c h_c + (n_c - 1) (h_c - n_c (e^(-rho t) - e^(-n_c t)) / (n_c - rho)),   h_c = 1 - e^(-n_c t)

    draws are expected; t is where they are M, and sum_c h_c is returned, which is right to a third of a category.

    Args:
        counts: (C,) items n_c of every category.
        draws: M, from 0 to less than all items.
        rho: above 0, and of whole numbers 1 alone, which gives uniform draws, see `expected_categories`.
    """
    counts = np.asarray(counts, np.float64)
    counts = counts[counts > 0]
    apart = np.where(counts == 1, 1, counts - rho)  # of a single item nothing is left

    def drawn(time: float) -> float:
        first = -np.expm1(-counts * time)
        missed = counts * (np.exp(-rho * time) - np.exp(-counts * time)) / apart
        return float((first + (counts - 1) * (first - missed)).sum())

    time = brentq(lambda time: drawn(time) - draws, 0, 1e3 / min(rho, 1))
    return float(-np.expm1(-counts * time).sum())
