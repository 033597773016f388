"""Readouts in two dimensions: the plane in which they differ most, and the nearest neighbours of one of them."""

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor
from torch.nn import functional

from repro.report.elements import legend_below
from repro.report.style import COLUMN, INK, styled

MARKERS = "o^sDvPX"           # of the groups, ten by ten
NAMED = 12                    # groups that a legend lists


class Plane(NamedTuple):
    """Points in the plane of their largest variance.

    Attributes:
        points: (n, 2) coordinates along the two directions.
        shares: (2,) of the variance, from 0 to 1; 0 where there is none.
    """

    points: Tensor
    shares: Tensor


class Embedding(NamedTuple):
    """What one panel shows.

    Attributes:
        title: above it.
        plane: of the readouts.
        neighbours: (k,) points to mark, the nearest first.
    """

    title: str
    plane: Plane
    neighbours: Tensor


def principal_plane(points: Tensor) -> Plane:
    """Principal component analysis to two components.

    Args:
        points: (n, d) with d at least 2, used as given.

    Returns:
        The plane, in float64 on the CPU. In either direction the coordinate with the largest weight counts upwards.
    """
    centred = points.double().cpu() - points.double().cpu().mean(0)
    values, directions = torch.linalg.eigh(centred.T @ centred)                          # ascending
    directions = directions[:, [-1, -2]]
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    shares = values[[-1, -2]].clamp(min=0) / values.sum().clamp(min=1e-300)
    return Plane(centred @ (directions * largest.sign()), shares)


def neighbours(points: Tensor, chosen: int, count: int) -> Tensor:
    """The nearest points to one of them by cosine, as the 1-NN accuracy compares readouts; itself left out.

    Args:
        points: (n, d), any scale.
        chosen: 0 to n - 1.
        count: at least 1; of fewer others, all.

    Returns:
        (count,) rows, the nearest first, of equally near ones the earlier.
    """
    unit = functional.normalize(points.double().cpu(), dim=1)
    cosines = unit @ unit[chosen]
    order = cosines.argsort(descending=True, stable=True)
    return order[order != chosen][:count]


@styled()
def embedding_planes(
    embeddings: Sequence[Embedding], groups: Tensor, names: Sequence[str], chosen: int, of: str
) -> Figure:
    """Every readout as a point, a panel for each run; one of them and its neighbours there are marked.

    Args:
        embeddings: of the same n sequences.
        groups: (n,) in 0..len(names) - 1, told apart by colour, and by marker where there are more than ten.
        names: of the groups; a legend lists them if they are few.
        chosen: the point to mark, 0 to n - 1.
        of: what a group is, in the singular: "action".
    """
    figure = Figure(figsize=(2 * COLUMN, 4.1 if len(names) <= NAMED else 3.3), layout="constrained")
    colours = matplotlib.color_sequences["petroff10"]
    looks = [(colours[group % 10], MARKERS[group // 10 % len(MARKERS)]) for group in range(len(names))]
    for axes, embedding in zip(figure.subplots(1, len(embeddings), squeeze=False)[0], embeddings, strict=True):
        across, up = embedding.plane.points.numpy().T
        for group in groups.unique().tolist():
            members, (colour, marker) = (groups == group).numpy(), looks[group]
            axes.scatter(across[members], up[members], s=5, color=colour, marker=marker, linewidths=0, alpha=0.7)
        _mark(axes, embedding, chosen)
        alike = int((groups[embedding.neighbours] == groups[chosen]).sum())
        title = "\n".join(textwrap.fill(line, 44) for line in embedding.title.splitlines())
        axes.set_title(f"{title}\n{alike} of {len(embedding.neighbours)} neighbours: same {of}")
        shares = [f"{number}. principal component ({100 * share:.0f} % of variance)"
                  for number, share in enumerate(embedding.plane.shares.tolist(), start=1)]
        axes.set(xlabel=shares[0], ylabel=shares[1])
    if len(names) <= NAMED:
        legend_below(figure, _keys(looks, names), 4)
    return figure


def _mark(axes: Axes, embedding: Embedding, chosen: int) -> None:
    """A star for the chosen point, a ring around each neighbour, and a line that connects them."""
    points = embedding.plane.points.numpy()
    for neighbour in embedding.neighbours.tolist():
        axes.plot(*points[[chosen, neighbour]].T, color=INK, linewidth=0.5)
    near = points[embedding.neighbours]
    axes.scatter(*near.T, s=26, facecolors="none", edgecolors=INK, linewidths=0.9)
    axes.scatter(*points[chosen], s=80, color=INK, edgecolors="white", marker="*", linewidths=0.6, zorder=3)


def _keys(looks: Sequence[tuple[str, str]], names: Sequence[str]) -> list[Line2D]:
    """The groups, and what the marks mean."""
    keys = [Line2D([], [], color=colour, marker=marker, linestyle="none", label=textwrap.shorten(name, 28))
            for (colour, marker), name in zip(looks, names, strict=True)]
    ring = Line2D([], [], color=INK, marker="o", markerfacecolor="none", linestyle="none", label="neighbour")
    star = Line2D([], [], color=INK, marker="*", markersize=8, linestyle="none", label="chosen sequence")
    return [*keys, star, ring]
