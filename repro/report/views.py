"""The explorer's pictures: skeletons that move, readouts in the plane in which they differ most, and trainings."""

import io
import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame
from PIL import Image
from torch import Tensor
from torch.nn import functional

from repro.report.style import COLUMN, INK, PALE, legend_below, styled

RESOLUTION = 120              # dots per inch of a moving picture, for a screen
WIDTH = 9                     # inches of a moving picture, unless it has less than three panels
MARKERS = "o^sDvPX"           # of the groups, ten by ten
NAMED = 12                    # groups that a legend lists


class Panel(NamedTuple):
    """One moving skeleton."""

    title: str                          # above it
    joints: np.ndarray                  # (T, J, 2), as of `seen_from`
    colour: str = INK                   # of its bones
    behind: np.ndarray | None = None    # (T, J, 2) of a pale skeleton to compare it with


def seen_from(sequence: np.ndarray, azimuth: float, *, up: int = 2) -> np.ndarray:
    """Parallel projection of a sequence onto an upright plane.

    Args:
        sequence: (T, J, 3) or (T, 3 J) coordinates, of which number `up` (1 or 2) is the vertical.
        azimuth: degrees by which the body is turned about the vertical; 0 is seen from the front.
        up: 2 in the body's own frame of reference, 1 in that of a camera.

    Returns:
        (T, J, 2), horizontal and up. A body that is zero throughout is not there: its joints are NaN.
    """
    joints = np.asarray(sequence, dtype=float).reshape(len(sequence), -1, 3)
    angle = math.radians(azimuth)
    horizontal = math.cos(angle) * joints[..., 0] + math.sin(angle) * joints[..., 3 - up]
    plane = np.stack([horizontal, joints[..., up]], axis=-1)
    plane[:, (joints == 0).all(axis=(0, 2))] = np.nan
    return plane


class Animation:
    """Panels of equally many frames, next to one another.

    What stands still (axes, titles) is drawn once; a frame adds the bones to a copy, fast enough to be played. Every
    panel is drawn to one scale throughout, the first panel's unless its own skeleton is larger.

    Args:
        panels: at least one, of at least one frame each.
        bones: pairs of joints to connect.
        units: of the coordinates, in words.

    Raises:
        ValueError: if there is no panel, or they have different numbers of frames.
    """

    def __init__(self, panels: Sequence[Panel], bones: Sequence[tuple[int, int]], units: str) -> None:
        counts = {len(panel.joints) for panel in panels}
        if len(counts) != 1 or not min(counts):
            raise ValueError(f"panels have {sorted(counts)} frames; they should all have as many, at least one")
        self.frames, = counts
        self._bones = np.asarray(bones)
        self._layers: list[tuple[LineCollection, np.ndarray]] = []  # lines, and the joints that give them their places
        with styled():
            width = min(WIDTH, 3 * len(panels))
            figure = Figure(figsize=(width, width / len(panels) + 0.7), dpi=RESOLUTION, layout="constrained")
            self._canvas = FigureCanvasAgg(figure)
            first_half = _middle_and_half(panels[0].joints)[1]
            for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
                middle, half = _middle_and_half(panel.joints)
                axes.set(title=textwrap.fill(panel.title, 26), aspect="equal", adjustable="box")
                for axis, centre in zip((axes.xaxis, axes.yaxis), middle, strict=True):
                    reach = 1.08 * max(first_half, half)
                    axis.set_view_interval(centre - reach, centre + reach, ignore=True)
                    axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
                for joints, colour in ((panel.behind, PALE), (panel.joints, panel.colour)):
                    if joints is not None:
                        lines = LineCollection([], colors=colour, linewidths=1.3, capstyle="round", animated=True)
                        self._layers.append((axes.add_collection(lines, autolim=False), joints))
            figure.axes[0].set(xlabel=f"horizontal ({units})", ylabel=f"up ({units})")
            self._canvas.draw()
        self._still = self._canvas.copy_from_bbox(figure.bbox)

    def picture(self, frame: int) -> bytes:
        """The PNG of a frame, 0 to frames - 1; beyond these the nearest of them."""
        file = io.BytesIO()
        self._image(frame).save(file, "PNG", compress_level=1)
        return file.getvalue()

    def film(self, interval: int) -> bytes:
        """All frames as one PNG that moves, again and again, with so many milliseconds between them."""
        first, *others = map(self._image, range(self.frames))
        file = io.BytesIO()
        first.save(file, "PNG", save_all=True, append_images=others, duration=interval, loop=0, compress_level=1)
        return file.getvalue()

    def _image(self, frame: int) -> Image.Image:
        self._canvas.restore_region(self._still)
        for lines, joints in self._layers:
            lines.set_segments(joints[min(max(frame, 0), self.frames - 1)][self._bones])
            lines.axes.draw_artist(lines)
        return Image.fromarray(np.asarray(self._canvas.buffer_rgba())).convert("RGB")


def _middle_and_half(joints: np.ndarray) -> tuple[np.ndarray, float]:
    """Of the box around a moving skeleton its middle, and half its larger side; 1 where it is a single point."""
    low, high = (extreme(joints.reshape(-1, 2), axis=0) for extreme in (np.nanmin, np.nanmax))
    extent = (high - low).max()
    return (low + high) / 2, extent / 2 if extent > 0 else 1.0


class Plane(NamedTuple):
    """Points in the plane of their largest variance."""

    points: Tensor      # (n, 2) coordinates along the two directions
    shares: Tensor      # (2,) of the variance, from 0 to 1; 0 where there is none


class Embedding(NamedTuple):
    """What one panel shows."""

    title: str          # above it
    plane: Plane        # of the readouts
    neighbours: Tensor  # (k,) points to mark, the nearest first


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
    order = (unit @ unit[chosen]).argsort(descending=True, stable=True)
    return order[order != chosen][:count]


@styled()
def embedding_planes(
    embeddings: Sequence[Embedding], groups: Tensor, names: Sequence[str], chosen: int, of: str
) -> Figure:
    """Every readout as a point, a panel for each run; a star marks one of them, rings and lines its neighbours there.

    Args:
        embeddings: of the same n sequences.
        groups: (n,) in 0..len(names) - 1, told apart by colour, and by marker where there are more than ten.
        names: of the groups; a legend lists them if they are few.
        chosen: the point to mark, 0 to n - 1.
        of: what a group is, in the singular: "action".
    """
    figure = Figure(figsize=(2 * COLUMN, 4.1 if len(names) <= NAMED else 3.3), layout="constrained")
    colours = matplotlib.color_sequences["petroff10"]
    looks = [{"color": colours[group % 10], "marker": MARKERS[group // 10 % len(MARKERS)]}
             for group in range(len(names))]
    for axes, (title, plane, nearest) in zip(figure.subplots(1, len(embeddings), squeeze=False)[0], embeddings,
                                             strict=True):
        points = plane.points.numpy()
        for group in groups.unique().tolist():
            axes.scatter(*points[groups == group].T, s=5, linewidths=0, alpha=0.7, **looks[group])
        for neighbour in nearest.tolist():
            axes.plot(*points[[chosen, neighbour]].T, color=INK, linewidth=0.5)
        axes.scatter(*points[nearest].T, s=26, facecolors="none", edgecolors=INK, linewidths=0.9)
        axes.scatter(*points[chosen], s=80, color=INK, edgecolors="white", marker="*", linewidths=0.6, zorder=3)
        alike = int((groups[nearest] == groups[chosen]).sum())
        title = "\n".join(textwrap.fill(line, 44) for line in title.splitlines())
        axes.set_title(f"{title}\n{alike} of {len(nearest)} neighbours: same {of}")
        first, second = (f"{number}. principal component ({100 * share:.0f} % of variance)"
                         for number, share in enumerate(plane.shares.tolist(), start=1))
        axes.set(xlabel=first, ylabel=second)
    if len(names) <= NAMED:
        keys = [Line2D([], [], linestyle="none", label=textwrap.shorten(name, 28), **look)
                for look, name in zip(looks, names, strict=True)]
        keys.append(Line2D([], [], color=INK, marker="*", markersize=8, linestyle="none", label="chosen sequence"))
        keys.append(Line2D([], [], color=INK, marker="o", fillstyle="none", linestyle="none", label="neighbour"))
        legend_below(figure, keys)
    return figure


def places(figure: Figure, embeddings: Sequence[Embedding], dots: int) -> np.ndarray:
    """Where `embedding_planes` has drawn the points, (panels, n, 2): pixels from the upper left corner of a picture of
    the figure with so many dots per inch, to the right and down; once it has been drawn.
    """
    drawn = [axes.transData.transform(embedding.plane.points)
             for axes, embedding in zip(figure.axes, embeddings, strict=True)]
    return np.stack(drawn) * dots / figure.dpi * [1, -1] + [0, dots * figure.get_figheight()]


@styled()
def training_curves(cells: Sequence[tuple[str, DataFrame, DataFrame]]) -> Figure:
    """What was logged along the training of cells, a column for each; below its terms, what was measured, if any.

    Args:
        cells: of each its title, the terms of its loss and its measures by step; either may be empty.
    """
    rows = 1 + any(len(measures) for _, _, measures in cells)
    figure = Figure(figsize=(2 * COLUMN, 2.3 * rows), layout="constrained")
    for column, (title, *logs) in zip(figure.subplots(rows, len(cells), squeeze=False, sharey="row").T, cells,
                                      strict=True):
        column[0].set_title(textwrap.fill(title, 44))
        column[-1].set_xlabel("step")
        for axes, log in zip(column, logs, strict=False):
            for number, name in enumerate(log.columns.drop("step", errors="ignore")):
                axes.plot(log["step"], log[name], color=matplotlib.color_sequences["petroff10"][number % 10],
                          label=name, marker="." if log is logs[1] else "", linestyle="--" if name == "loss" else "-")
            if len(log):
                axes.legend()
            else:
                axes.text(0.5, 0.5, "nothing was logged", ha="center", transform=axes.transAxes)
    for axes, label in zip(figure.axes[:: len(cells)], ("terms of the loss", "measured (%)"), strict=False):
        axes.set_ylabel(label)
    return figure
