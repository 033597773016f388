"""Selecting negatives one by one from a pool in the plane: at random, and actively by the seeding of k-means++."""

from typing import NamedTuple

import pandas as pd
import torch
from pandas import DataFrame
from torch import Tensor

from repro.contrast import active

SIZES = (120, 60, 30, 15, 8, 4, 2, 1)      # members of each category: some are rare, as in real pools
LARGEST = 24                               # candidates that are selected, at most
CANDIDATE, DRAWN = "candidate, as large as its chance", "drawn, the last one larger"
TITLES = {"random": "random", "feature": "active, features", "gradient": "active, gradients"}


class Pool(NamedTuple):
    """Places in the plane, outputs of a last layer that is the identity."""

    candidates: Tensor           # (240, 2) float64
    categories: Tensor           # (240,), of each
    queries: Tensor              # (8, 2), near the middles of the categories


def pool() -> Pool:
    """Eight Gaussian categories on two circles, of very unequal sizes; always the same."""
    generator = torch.Generator().manual_seed(0)
    angles = torch.arange(len(SIZES), dtype=torch.float64) * 3 * torch.pi / 4
    radii = torch.tensor([1.0, 1.7], dtype=torch.float64).repeat(len(SIZES) // 2)
    middles = radii[:, None] * torch.stack([angles.cos(), angles.sin()], dim=1)
    categories = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
    candidates, queries = (places + 0.16 * torch.randn(places.shape, generator=generator, dtype=torch.float64)
                           for places in (middles[categories], middles))
    return Pool(candidates, categories, queries)


def chances(strategy: str, pool: Pool, chosen: Tensor) -> Tensor:
    """The chances of all candidates to be drawn next, once the rows `chosen`, at least one, have been; they sum to 1.

    At random they are equal among those left. The seeding of k-means++ draws in proportion to the squared distance to
    the nearest chosen one, between candidates or between their gradients.
    """
    chance = torch.ones(len(pool.candidates), dtype=torch.float64)
    if strategy != "random":
        a, b = pool.candidates, chance.unsqueeze(1)
        if strategy == "gradient":
            a, b = active.gradient_factors(pool.candidates, pool.queries, pool.queries)
        chance = torch.stack([active.pairwise_sq_distance(a, b, row) for row in chosen.tolist()]).amin(0)
    chance = chance.index_fill(0, chosen, 0)
    return chance / chance.sum()


def steps(seed: int) -> DataFrame:
    """What `contrast.active.select` draws by every strategy, one after the other.

    Returns:
        A row for each strategy (`TITLES`, and how many categories are covered in the end), `drawn` (how many, from 1 to
        `LARGEST`) and candidate: x, y, kind, chance (% to be drawn next), size (chance, or a mark).
    """
    given, parts = pool(), []
    x, y = given.candidates.T.numpy()
    for strategy, title in TITLES.items():
        chosen = active.select(
            strategy, given.candidates, given.queries, given.queries, n_select=LARGEST, excluded=None,
            generator=torch.Generator().manual_seed(seed))
        title += f": {LARGEST} drawn are of {len(given.categories[chosen].unique())} of {len(SIZES)} categories"
        for count in range(1, LARGEST + 1):
            percent = 100 * chances(strategy, given, chosen[:count]).numpy()
            rows = DataFrame({"strategy": title, "drawn": count, "x": x, "y": y, "kind": CANDIDATE, "chance": percent,
                              "size": percent})
            rows.loc[chosen[:count].numpy(), ["kind", "size"]] = DRAWN, 3.0
            rows.loc[int(chosen[count - 1]), "size"] = 9.0
            parts.append(rows)
    return pd.concat(parts)
