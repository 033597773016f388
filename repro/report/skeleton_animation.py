"""Skeletons that move side by side: a picture of every frame, drawn fast enough to be played."""

import io
import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from repro.report.style import INK, PALE, styled

RESOLUTION = 120              # dots per inch, for a screen
WIDTH = 9                     # inches


class Panel(NamedTuple):
    """One moving skeleton.

    Attributes:
        title: above it.
        joints: (T, J, 2), as of `seen_from`.
        colour: of its bones.
        behind: (T, J, 2) of a pale skeleton to compare it with, None for no such.
    """

    title: str
    joints: np.ndarray
    colour: str = INK
    behind: np.ndarray | None = None


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

    What stands still (axes, titles) is drawn once; a frame adds the bones to a copy. Every panel is drawn to one scale
    throughout, the first panel's unless its own skeleton is larger.

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
        self._panels, self._bones, self._pictures = panels, np.asarray(bones), {}
        with styled():
            figure = Figure(figsize=(WIDTH, WIDTH / len(panels) + 0.7), dpi=RESOLUTION, layout="constrained")
            self._canvas = FigureCanvasAgg(figure)
            least = _half_extent(panels[0].joints)
            self._drawn = []
            for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
                _prepare(axes, panel, least)
                self._drawn.append([_bones(axes, PALE), _bones(axes, panel.colour)])
            figure.axes[0].set(xlabel=f"horizontal ({units})", ylabel=f"up ({units})")
            self._canvas.draw()
        self._still = self._canvas.copy_from_bbox(figure.bbox)

    def picture(self, frame: int) -> bytes:
        """The PNG of a frame, 0 to frames - 1; beyond these the nearest of them."""
        frame = min(max(frame, 0), self.frames - 1)
        if frame not in self._pictures:
            self._pictures[frame] = self._draw(frame)
        return self._pictures[frame]

    def _draw(self, frame: int) -> bytes:
        self._canvas.restore_region(self._still)
        for panel, (behind, front) in zip(self._panels, self._drawn, strict=True):
            for bones, joints in ((behind, panel.behind), (front, panel.joints)):
                bones.set_segments([] if joints is None else joints[frame][self._bones])
                bones.axes.draw_artist(bones)
        file = io.BytesIO()
        Image.fromarray(np.asarray(self._canvas.buffer_rgba())).convert("RGB").save(file, "PNG", compress_level=1)
        return file.getvalue()


def _prepare(axes: Axes, panel: Panel, least: float) -> None:
    """Title and limits of a panel: square, about the middle of its skeleton, `least` or more to every side."""
    points = panel.joints.reshape(-1, 2)
    middle = (np.nanmin(points, axis=0) + np.nanmax(points, axis=0)) / 2
    half = 1.08 * max(least, _half_extent(panel.joints))
    axes.set(title=textwrap.fill(panel.title, 26), aspect="equal", adjustable="box")
    for axis, centre in zip((axes.xaxis, axes.yaxis), middle, strict=True):
        axis.set_view_interval(centre - half, centre + half, ignore=True)
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))


def _bones(axes: Axes, colour: str) -> LineCollection:
    """Lines that a frame gives their places."""
    lines = LineCollection([], colors=colour, linewidths=1.3, capstyle="round", animated=True)
    axes.add_collection(lines, autolim=False)
    return lines


def _half_extent(joints: np.ndarray) -> float:
    """Half the larger side of the box around a moving skeleton; 1 where it is a single point."""
    points = joints.reshape(-1, 2)
    extent = (np.nanmax(points, axis=0) - np.nanmin(points, axis=0)).max()
    return extent / 2 if extent > 0 else 1.0
