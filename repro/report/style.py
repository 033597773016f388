"""One look for every figure: column width, legible type, colours told apart by colour-blind readers, stable files.

And what several figures share: their heading, what may be compared in them, how ours and printed values are drawn.
"""

import itertools
import json
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike
from pandas import DataFrame

from repro.data import manifest
from repro.data.disk import write_atomically
from repro.recipe import in_words
from repro.report.logs import only

COLUMN = 3.25  # width of a printed column, inches
DOTS = 300  # of a PNG, per inch
POINTS = 7  # size of type
WIDEST = 64  # characters of a heading's line
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"

# Okabe and Ito (2008), Color universal design.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
INK, GREY, PALE = "#222222", "#767676", "#DDDDDD"

STYLE = {
    "font.family": "DejaVu Sans",
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize",
                     "legend.fontsize", "figure.titlesize"), POINTS),
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.axisbelow": True,
    "figure.dpi": 200,
    "ytick.minor.size": 1.5,
    "grid.color": PALE,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.0,
    "lines.markersize": 4,
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
        axes.tick_params(labelsize=POINTS)
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
        path_stem: where to write, without ending; missing folders are made. Files are written whole or not at all.
        caption: what the figure shows, in words.
        provenance: what it was drawn from: cells, seeds, preset, dataset.
    """
    stem = Path(path_stem)
    svg, png = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    metadata = {"Title": stem.name, "Description": caption, "Source": json.dumps(provenance, sort_keys=True)}
    shown = figure.dpi
    with styled():  # `savefig` would draw each twice, to lay out what is settled
        write_atomically(svg, partial(FigureCanvasSVG(figure).print_svg, metadata=metadata | {"Date": None}))
        figure.dpi = DOTS
        write_atomically(png, partial(FigureCanvasAgg(figure).print_png, metadata=metadata))
    figure.dpi = shown
    return svg, png


class Look(NamedTuple):
    """How a method, or whatever else a legend names, appears in every figure."""

    label: str
    colour: str
    marker: str

    def called(self, ending: str) -> "Look":
        """The same with an ending to its label."""
        return self._replace(label=f"{self.label}{ending}")


OURS, PRINTED = Look("ours", BLUE, "o"), Look("printed", VERMILLION, "D")


def panels(
    title: str, height: float, rows: int = 1, columns: int = 1, *, grid: str = "", **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure as wide as a column, with its panels in the order of reading.

    Args:
        title: above all of them.
        height: inches.
        rows, columns: how many panels.
        grid: "x" or "y" for lines behind the data at the ticks of that axis.
        **options: of `Figure.subplots`.
    """
    figure = Figure(figsize=(COLUMN, height), layout="constrained")
    figure.suptitle(title)
    stack = list(figure.subplots(rows, columns, squeeze=False, **options).flat)
    for axes in stack if grid else ():
        axes.grid(axis=grid)
    return figure, stack


def heading(table: DataFrame, seeds: str = "") -> str:
    """Data set, preset, seeds and departures, and what they forbid to conclude.

    Args:
        table: with columns dataset and preset, of one value each, and departures where there are any.
        seeds: in words; by default `seeds_in_words`, for which a table of results has what it takes.
    """
    seeds = seeds or seeds_in_words(table)
    if departures := departures_in_words(table):
        seeds += f"\n{textwrap.fill('; '.join(departures), 62)}"
    return origin(table, seeds)


def departures_in_words(table: DataFrame) -> list[str]:
    """What all rows depart in, then what departs in some row besides: ["td_queue=frozen_noise"], or nothing."""
    departures = [*table.get("departures", ())]
    if not all(isinstance(row, dict) for row in departures):
        return sorted({*map(words, departures)} - {""})
    first, *others = departures or [{}]
    shared = {name: value for name, value in first.items() if all(row.get(name) == value for row in others)}
    further = {in_words({name: value for name, value in row.items() if name not in shared}) for row in departures}
    return [*filter(None, [in_words(shared)]), *sorted(further - {""})]


def words(departures: Any) -> str:
    """What a row departs in as text, also where the table was read from a file: it is text there, NaN without any."""
    return departures if isinstance(departures, str) else in_words(departures) if isinstance(departures, dict) else ""


def origin(table: DataFrame, details: str = "") -> str:
    """Data set, preset and details, and what the first two forbid to conclude.

    Args:
        table: with columns dataset and preset, of one value each.
        details: to stand behind the data set and, unless that is clear, the preset.
    """
    dataset, preset, warning = only(table, "dataset"), only(table, "preset"), forbidden(table)
    parts = [*filter(None, (dataset, "" if preset in warning else f"{preset} recipe", details))]
    first = ", ".join(parts)
    if len(first.partition("\n")[0]) > WIDEST:
        first = ",\n".join(parts)
    return "\n".join(filter(None, (first, warning)))


def forbidden(table: DataFrame) -> str:
    """What a table's data set and presets forbid to conclude, or nothing."""
    dataset, presets = only(table, "dataset"), set(table["preset"])
    if manifest.bundled(dataset):
        return "bundled data: not comparable with the printed numbers"
    if "paper" not in presets:
        return f"{' and '.join(sorted(presets))} recipe: not a reproduction"
    if dataset != manifest.plain(dataset):
        return "not the official data: not a reproduction"
    return "" if presets == {"paper"} else "only the paper recipe is a reproduction"


def comparable(table: DataFrame) -> pd.Series:
    """The printed values, NaN on data that come with the package."""
    return table["published"] * np.nan if manifest.bundled(table["dataset"].iloc[0]) else table["published"]


def seeds_in_words(table: DataFrame) -> str:
    """What our points are: "1 seed", "mean ± std of 2 to 3 seeds", or of "3 seeds, else 1 seed"."""
    counts = table.loc[table["ours"].notna(), "n_seeds"]
    several = counts[counts > 1]
    if several.empty:
        return "not run" if counts.empty else "1 seed"
    number = f"{several.min()} to {several.max()}" if several.nunique() > 1 else f"{several.max()}"
    return f"mean {PLUS_MINUS} std of {number} seeds" + (", else 1 seed" if len(several) < len(counts) else "")


def equally_many_seeds(table: DataFrame) -> bool:
    """Whether all our points are of as many seeds, so that one may be held against another."""
    return table.loc[table["ours"].notna(), "n_seeds"].nunique() < 2


def seeds_named(log: DataFrame) -> str:
    """Which seeds a log or a list of images is of: "seed 0" or "seeds 0, 1"."""
    seeds = sorted(log["seed"].unique())
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def spread_in_words(table: DataFrame) -> str:
    """What a caption says of the deviations that a figure of the table shows; nothing where there are none."""
    counts = table.loc[table["ours"].notna(), "n_seeds"]
    if not (counts > 1).any():
        return ""
    alone = ", where there are several; what has none is of 1 seed" if (counts == 1).any() else ""
    return f"{PLUS_MINUS} and bars with ends: one standard deviation over seeds{alone}."


def draw_ours(
    axes: Axes, places: ArrayLike, rows: DataFrame, look: Look, line: str = "none", *, down: bool = False
) -> None:
    """Filled markers, error bars where there is a standard deviation; their ends tell short ones from markers.

    Args:
        places: across, or where `down` is set, downwards; values are on the other axis.
    """
    points = (rows["ours"], places) if down else (places, rows["ours"])
    axes.plot(*points, color=look.colour, marker=look.marker, linestyle=line, label=look.label)
    bars = {"xerr" if down else "yerr": rows["std"]}
    axes.errorbar(*points, ecolor=look.colour, fmt="none", elinewidth=0.8, capsize=3, **bars)


def draw_published(
    axes: Axes, places: ArrayLike, values: pd.Series, look: Look, line: str = "none", *, down: bool = False
) -> None:
    """Open markers; nothing, not even in the legend, when nothing is printed. `places` as of `draw_ours`."""
    if values.notna().any():
        points = (values, places) if down else (places, values)
        axes.plot(*points, color=look.colour, marker=look.marker, markerfacecolor="white", linestyle=line, zorder=1.9,
                  label=look.label)


def draw_level(axes: Axes, row: Any, colour: str, line: str, label: str) -> None:
    """A line across at our value of a row, with a band of one standard deviation."""
    axes.axhline(row.ours, color=colour, linestyle=line, zorder=1.9, label=label)
    axes.axhspan(row.ours - row.std, row.ours + row.std, color=colour, alpha=0.15, linewidth=0)


def names_down(axes: Axes, names: Sequence[str]) -> None:
    """Names from the top to the bottom, one apart, the values across."""
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)


def ticks_above(axes: Axes, places: Sequence[float], labels: Sequence[str], name: str) -> None:
    """A second axis on top, with labels of its own at places of the one below."""
    above = axes.secondary_xaxis("top")
    above.set_xticks(places, labels=labels)
    above.set_xlabel(name)
    above.spines["top"].set_visible(True)


def legend_above(axes: Axes, columns: int) -> None:
    """Above the axes, where it hides nothing."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2)


def legend_below(figure: Figure, handles: list, columns: int) -> None:
    """Below everything, where it hides nothing."""
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=min(columns, len(handles)))


def looks_of(names: Iterable[str], looks: Mapping[str, Look]) -> dict[str, Look]:
    """Looks with those of names that have none of their own: called as they are, told apart by colour and marker."""
    unknown = [name for name in dict.fromkeys(names) if name not in looks]
    colours, markers = itertools.cycle((ORANGE, SKY, INK)), itertools.cycle("XP*")
    return dict(looks) | {name: Look(str(name), colour, marker)
                          for name, colour, marker in zip(unknown, colours, markers, strict=False)}


def lines_of(table: DataFrame, name: str, looks: Mapping[str, Look]) -> list[tuple[str, DataFrame]]:
    """The rows of every method or sampler, in the order of their looks."""
    return [(value, table[table[name] == value]) for value in looks if (table[name] == value).any()]


def keys_of(
    looks: Mapping[str, Look], names: Iterable[str], *, line: str = "-", marked: bool = True, ending: str = "",
    **options: Any,
) -> list[Line2D]:
    """What the legend says of the methods or samplers that there are."""
    return [
        Line2D([], [], color=look.colour, marker=look.marker if marked else "", linestyle=line, linewidth=1.0,
               label=look.label + ending, **options)
        for name, look in looks.items() if name in set(names)
    ]


def in_order(names: pd.Series, order: Collection[str]) -> list[str]:
    """The distinct names, those of `order` first and in this order, the others as they come."""
    present = list(dict.fromkeys(names))
    return [*(name for name in order if name in present), *(name for name in present if name not in order)]
