"""What a drawn figure shows: its lines, its texts, and whether these can be read."""

import itertools

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text

from repro.report import style


def lines(figure: Figure, axes: int) -> dict[str, np.ndarray]:
    """Plotted values by label in the legend."""
    found = {line.get_label(): np.asarray(line.get_ydata(), float) for line in figure.axes[axes].lines}
    return {label: values for label, values in found.items() if not label.startswith("_")}


def error_bars(figure: Figure, axes: int) -> list[list[float]]:
    """Both ends of the error bars up and down, the lowest first."""
    bars = [line.get_xydata() for line in figure.axes[axes].lines if line.get_marker() == "_"]
    return sorted(sorted(bar[:, 1]) for bar in bars if np.isfinite(bar).all())


def _visible_texts(figure: Figure) -> list[Text]:
    """Every text that is drawn: tick labels outside their axis are not."""
    hidden = set()
    stack = [*figure.axes, *(child for axes in figure.axes for child in axes.child_axes)]
    for axis in (axis for axes in stack for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low <= tick.get_loc() <= high:
                hidden |= {tick.label1, tick.label2}
    texts = figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_visible() and artist.get_text())
    return [text for text in texts if text not in hidden]


def assert_legible(figure: Figure) -> None:
    """The figure is a column wide, its lower half not empty; its texts are large enough, inside it and apart."""
    assert figure.get_figwidth() == style.COLUMN
    assert min(axes.get_position().y0 for axes in figure.axes) < 0.5
    figure.draw_without_rendering()  # which places the texts of legends
    texts = _visible_texts(figure)
    boxes = [text.get_window_extent() for text in texts]
    assert len(texts) >= 3 and all(text.get_fontsize() >= 7 for text in texts)
    for text, box in zip(texts, boxes, strict=True):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, text
    for (first, a), (second, b) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        assert not a.overlaps(b), (first, second)
