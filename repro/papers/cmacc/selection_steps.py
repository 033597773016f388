"""Selecting negatives one by one from a pool in the plane: at random, and actively by the seeding of k-means++."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from repro.contrast import negatives
from repro.report.style import COLUMN, INK, VERMILLION, legend_below, styled

SIZES = (120, 60, 30, 15, 8, 4, 2, 1)      # members of each category: some are rare, as in real pools
LARGEST = 24                               # candidates that are selected, at most
TITLES = {"random": "random", "feature": "active, features", "gradient": "active, gradients"}
DRAWN = {"color": VERMILLION, "marker": "o", "linestyle": "none"}


class Pool(NamedTuple):
    """Candidates (240, 2) float64 in the plane, the category of each (240,), and the queries (8, 2) of a batch.

    There is a query near the middle of every category. They are outputs of a last layer that is the identity.
    """

    candidates: Tensor
    categories: Tensor
    queries: Tensor


class Step(NamedTuple):
    """Candidates chosen so far, (n,) in the order in which they were drawn, and the chances of all to be the next."""

    chosen: Tensor
    chances: Tensor


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


def order(strategy: str, pool: Pool, seed: int) -> Tensor:
    """The candidates that `contrast.negatives.select` chooses, (LARGEST,), in its order; a strategy of `TITLES`."""
    generator = torch.Generator().manual_seed(seed)
    return negatives.select(strategy, pool.candidates, pool.queries, pool.queries, n_select=LARGEST, excluded=None,
                            generator=generator)


def step(strategy: str, pool: Pool, chosen: Tensor) -> Step:
    """What has been chosen, (n,) rows, and the chances of all candidates to be drawn next.

    At random these are equal among those left. The seeding of k-means++ draws in proportion to the squared distance to
    the nearest chosen one, between candidates or between their gradients; the first draw is uniform.
    """
    left = torch.ones(len(pool.candidates), dtype=torch.float64).index_fill(0, chosen, 0)
    if strategy == "random" or len(chosen) == 0:
        return Step(chosen, left / left.sum())
    if strategy == "gradient":
        a, b = negatives.gradient_factors(pool.candidates, pool.queries, pool.queries)
    else:
        a, b = pool.candidates, left.new_ones(len(left), 1)
    distances = torch.stack([negatives.pairwise_sq_distance(a, b, row) for row in chosen.tolist()])
    nearest = distances.amin(0) * left
    return Step(chosen, nearest / nearest.sum())


@styled()
def selection_steps(pool: Pool, steps: Mapping[str, Step]) -> Figure:
    """The candidates, coloured by their chance to be drawn next, and those drawn, a panel for each strategy."""
    figure = Figure(figsize=(2 * COLUMN, 2.9), layout="constrained")
    highest = max(float(state.chances.max()) for state in steps.values())
    colours = ScalarMappable(Normalize(0, 100 * highest), "viridis_r")
    panels = figure.subplots(1, len(steps), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (strategy, (chosen, chances)) in zip(panels, steps.items(), strict=True):
        rising, drawn = chances.argsort(), pool.candidates[chosen]                       # the likeliest on top
        axes.scatter(*pool.candidates[rising].T, s=9, c=colours.to_rgba(100 * chances[rising].numpy()), linewidths=0)
        axes.scatter(*pool.queries.T, s=12, color=INK, marker="x", linewidths=0.7)
        axes.scatter(*drawn.T, s=16, color=VERMILLION, linewidths=0)
        axes.scatter(*drawn[-1:].T, s=46, color=VERMILLION, edgecolors=INK, linewidths=0.9)
        categories = len(pool.categories[chosen].unique())
        axes.set_title(f"{TITLES[strategy]}\n{len(chosen)} drawn, {categories} of {len(SIZES)} categories")
        axes.set(xlabel="first feature", aspect="equal")
    panels[0].set_ylabel("second feature")
    figure.colorbar(colours, ax=list(panels), label="chance to be drawn next (%)", shrink=0.8)
    latest = Line2D([], [], **DRAWN, markersize=7, markeredgecolor=INK, label="drawn last")
    query = Line2D([], [], color=INK, marker="x", linestyle="none", label="query of the batch")
    legend_below(figure, [Line2D([], [], **DRAWN, label="drawn"), latest, query])
    return figure
