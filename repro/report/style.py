"""One look for every figure: column width, legible type, colours told apart by colour-blind readers, stable files."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

COLUMN = 3.25  # width of a printed column, inches
DOTS = 300  # of a PNG, per inch

# Okabe and Ito (2008), Color universal design.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
INK, GREY, PALE = "#222222", "#767676", "#DDDDDD"

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.titlesize": 7,
    "figure.dpi": 200,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "ytick.minor.size": 1.5,
    "grid.color": PALE,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.0,
    "lines.markersize": 4,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.2,
    "legend.borderpad": 0.2,
    "svg.hashsalt": "repro",
}


def styled():
    """Decorator and context in which this style holds, whatever the reader's own settings, which come back after."""
    return matplotlib.style.context(["default", STYLE])


def settled(figure: Figure) -> Figure:
    """The figure, laid out once and for all, so that showing or saving it again changes nothing."""
    for axes in figure.axes:  # the number of ticks follows from the size of their labels: this one, not the reader's
        axes.tick_params(labelsize=STYLE["font.size"])
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    figure.set_layout_engine("none")
    for axes, which in product(figure.axes, ("original", "active")):
        # The layout's solver orders its unknowns by their addresses in memory: the last bits differ from run to run.
        axes.set_position(np.round(axes.get_position(which == "original").bounds, 9), which)
    return figure


def save(figure: Figure, path_stem: str | Path, caption: str, provenance: dict[str, Any]) -> tuple[Path, Path]:
    """Write `<path_stem>.svg` and `<path_stem>.png` (300 dots per inch) and return both paths.

    The same figure gives the same bytes: no date is written and identifiers are fixed. Both files carry the caption
    as their description and the provenance, as JSON with sorted names, as their source.

    Args:
        path_stem: where to write, without ending; missing folders are made.
        caption: what the figure shows, in words.
        provenance: what it was drawn from: cells, seeds, preset, dataset.
    """
    stem = Path(path_stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    svg, png = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    metadata = {"Title": stem.name, "Description": caption, "Source": json.dumps(provenance, sort_keys=True)}
    shown = figure.dpi
    with styled():  # `savefig` would draw each twice, to lay out what is settled
        FigureCanvasSVG(figure).print_svg(svg, metadata=metadata | {"Date": None})
        figure.dpi = DOTS
        FigureCanvasAgg(figure).print_png(png, metadata=metadata)
    figure.dpi = shown
    return svg, png
