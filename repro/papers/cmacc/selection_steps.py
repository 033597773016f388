"""Selecting negatives one by one from a pool in the plane: at random, and actively by the seeding of k-means++."""

from typing import NamedTuple

import torch
from matplotlib.axes import Axes
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


class Pool(NamedTuple):
    """Candidates in the plane, and the queries of a batch.

    Attributes:
        candidates: (240, 2) float64.
        categories: (240,) the category of each.
        queries: (8, 2) one near the middle of every category. They are outputs of a last layer that is the identity.
    """

    candidates: Tensor
    categories: Tensor
    queries: Tensor


class Step(NamedTuple):
    """The state of a selection.

    Attributes:
        chosen: (n,) rows of the candidates, in the order in which they were drawn.
        chances: (240,) each candidate's probability to be drawn next.
    """

    chosen: Tensor
    chances: Tensor


def pool(seed: int = 0) -> Pool:
    """Eight Gaussian categories on two circles, of very unequal sizes."""
    generator = torch.Generator().manual_seed(seed)

    def noise(count: int) -> Tensor:
        return 0.16 * torch.randn(count, 2, generator=generator, dtype=torch.float64)

    angles = torch.arange(len(SIZES), dtype=torch.float64) * 3 * torch.pi / 4
    radii = torch.tensor([1.0, 1.7], dtype=torch.float64).repeat(len(SIZES) // 2)
    middles = radii[:, None] * torch.stack([angles.cos(), angles.sin()], dim=1)
    categories = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
    return Pool(middles[categories] + noise(sum(SIZES)), categories, middles + noise(len(SIZES)))


def order(strategy: str, pool: Pool, seed: int) -> Tensor:
    """The candidates that `contrast.negatives.select` chooses, (LARGEST,), in its order.

    Args:
        strategy: "random", "feature" or "gradient".
        pool: of `pool`.
        seed: of the draws.
    """
    generator = torch.Generator().manual_seed(seed)
    given = (pool.candidates, pool.queries, pool.queries)
    return negatives.select(strategy, *given, n_select=LARGEST, excluded=None, generator=generator)


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
def selection_steps(pool: Pool, steps: dict[str, Step]) -> Figure:
    """The candidates, coloured by their chance to be drawn next, and those drawn, a panel for each strategy.

    Args:
        pool: of `pool`.
        steps: by strategy, equally many draws each.
    """
    figure = Figure(figsize=(2 * COLUMN, 2.9), layout="constrained")
    highest = max(float(each.chances.max()) for each in steps.values())
    colours = ScalarMappable(Normalize(0, 100 * highest), "viridis_r")
    panels = figure.subplots(1, len(steps), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (strategy, each) in zip(panels, steps.items(), strict=True):
        _draw(axes, pool, each, colours)
        found = len(pool.categories[each.chosen].unique())
        axes.set_title(f"{TITLES[strategy]}\n{len(each.chosen)} drawn, {found} of {len(SIZES)} categories")
        axes.set(xlabel="first feature", aspect="equal")
    panels[0].set_ylabel("second feature")
    figure.colorbar(colours, ax=list(panels), label="chance to be drawn next (%)", shrink=0.8)
    drawn = Line2D([], [], color=VERMILLION, marker="o", linestyle="none", label="drawn")
    latest = Line2D([], [], color=VERMILLION, marker="o", markersize=7, markeredgecolor=INK, linestyle="none",
                    label="drawn last")
    query = Line2D([], [], color=INK, marker="x", linestyle="none", label="query of the batch")
    legend_below(figure, [drawn, latest, query], 3)
    return figure


def _draw(axes: Axes, pool: Pool, each: Step, colours: ScalarMappable) -> None:
    rising = each.chances.argsort()                                                      # the likeliest on top
    shades = colours.to_rgba(100 * each.chances[rising].numpy())
    axes.scatter(*pool.candidates[rising].T, s=9, c=shades, linewidths=0)
    axes.scatter(*pool.queries.T, s=12, color=INK, marker="x", linewidths=0.7)
    chosen = pool.candidates[each.chosen]
    axes.scatter(*chosen.T, s=16, color=VERMILLION, linewidths=0)
    axes.scatter(*chosen[-1:].T, s=46, color=VERMILLION, edgecolors=INK, linewidths=0.9)
