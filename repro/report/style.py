"""One look for every figure: column width, legible type, colours told apart by colour-blind readers, stable files.

And what several figures share: their heading, what may be compared in them, how ours and printed values are drawn.
"""

import itertools
import json
import math
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
from numpy.typing import ArrayLike
from pandas import DataFrame, Series

from repro.data import manifest
from repro.data.disk import write_atomically

COLUMN = 3.25  # width of a printed column, inches
DOTS = 300  # of a PNG, per inch
POINTS = 7  # size of type
LINE_HEIGHT = 0.14  # of a line of type, inches
TITLE_WIDTH = 56  # characters of a line of a title
WIDEST = 64  # characters of a heading's line
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
DATA_NAMES = {
    "ucla": "NW-UCLA", "ntu": "NTU RGB+D", "synthetic": "bundled data", "digits": "bundled digits",
    "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "stl10": "STL-10", "tiny_imagenet": "Tiny ImageNet",
    "imagenet": "ImageNet", "imagenet100": "ImageNet-100", "kinetics_sound": "Kinetics-Sound",
    "kinetics700": "Kinetics-700", "audioset": "AudioSet", "ucf101": "UCF101", "hmdb51": "HMDB51", "esc50": "ESC-50",
    "multiomniglot": "grids of characters", "multidigits": "grids of bundled digits",
}
SPOKEN: dict[Any, str] = {  # fields, and fields with a value, as pictures call them
    "ad_weight": "weight of AD", "ae_weight": "weight of AE", "data": "", "targets": "judged on",
    "bidirectional": "encoder in both directions", "pairs": "pairs for training",
    "distinct": "different pairs", "redrawn": "drawn anew in every view", "augmented": "all methods see changed grids",
    ("td_queue", "frozen_noise"): "dictionary never refreshed", ("ad_loss", "squared"): "squared differences",
    ("ad_input", "augmented"): "reconstructing from the augmented view",
    ("select", "best_on_test"): "selected on the test split", ("precision", "float32"): "float32",
    ("frequency", "zipf"): "categories with Zipf's frequencies", ("renewed", False): "keys as the pool has them",
    ("normalised", False): "embeddings of any length",
}

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


OURS, PRINTED = Look("ours", BLUE, "o"), Look("printed", VERMILLION, "D")


def panels(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure as wide as a column, with its panels in the order of reading.

    Args:
        height: inches.
        rows, columns: how many panels.
        **options: of `Figure.subplots`.
    """
    figure = Figure(figsize=(COLUMN, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def only(table: DataFrame, column: str) -> Any:
    """The one value of a column; raises ValueError if there are several, or none."""
    values = table[column].unique().tolist()
    if len(values) != 1:
        raise ValueError(f"a figure shows one {column}; this table has {sorted(values)}")
    return values[0]


def heading(table: DataFrame) -> str:
    """Data set, preset, seeds and departures, and what they forbid to conclude.

    Args:
        table: with columns dataset and preset, and departures where there are any; of one data set.
    """
    warning, presets = forbidden(table), " and ".join(sorted(set(table["preset"])))
    recipe = "" if presets in warning else f"{presets} recipe"
    parts = [called(only(table, "dataset")), recipe, seeds_in_words(table), *departures_in_words(table)]
    return "\n".join(textwrap.fill(text, WIDEST) for text in ("; ".join(filter(None, parts)), warning) if text)


def called(dataset: str) -> str:
    """What readers call a data set; of a part or copy that it is one, instead of its file."""
    name = manifest.plain(dataset)
    return DATA_NAMES.get(name, name) + ("" if name == dataset else " (a part or copy)")


def departures_in_words(table: DataFrame) -> list[str]:
    """What rows that were trained depart in, each once, without names of fields."""
    known = table[table["ours"].notna()] if "ours" in table else table
    rows = [row for row in known.get("departures", ()) if isinstance(row, dict)]
    return list(dict.fromkeys(spoken({name: value}) for row in rows for name, value in row.items()))


def spoken(departures: Mapping[str, Any]) -> str:
    """Departures for people: {"ad_weight": 25} is "weight of AD 25"."""
    parts = []
    for name, value in departures.items():
        if (name, value) in SPOKEN:
            parts.append(SPOKEN[name, value])
        elif value is True:
            parts.append(SPOKEN.get(name, name.replace("_", " ")))
        else:
            number = isinstance(value, int | float) and value is not False
            text = f"{value:,g}" if number else str(value).replace("_", " ")
            parts.append(f"{SPOKEN.get(name, name.replace('_', ' '))} {text}")
    return ", ".join(parts).strip()


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
    """What our points are: "1 seed", "mean ± std of 2 to 3 seeds", or of "3 seeds, else 1 seed"; of a frame too.

    A table whose errors are no deviations says what they are in a column `errors`.
    """
    if "errors" in table:
        return only(table, "errors")
    if "n_seeds" in table:
        counts = table.loc[table["ours"].notna() if "ours" in table else table.index, "n_seeds"]
    elif table["seed"].nunique() == 1:
        return f"seed {table['seed'].iloc[0]}"
    else:
        counts = Series([table["seed"].nunique()])
    several = counts[counts > 1]
    if several.empty:
        return "not run" if counts.empty else "1 seed"
    number = f"{several.min()} to {several.max()}" if several.nunique() > 1 else f"{several.max()}"
    return f"mean {PLUS_MINUS} std of {number} seeds" + (", else 1 seed" if len(several) < len(counts) else "")


def draw_ours(
    axes: Axes, places: ArrayLike, values: Series, deviations: Series, look: Look, line: str = "none", *,
    down: bool = False,
) -> None:
    """Filled markers, error bars above them where there is a deviation; their ends tell short ones from markers.

    Args:
        places: across, or where `down` is set, downwards; values are on the other axis.
    """
    points = (values, places) if down else (places, values)
    axes.plot(*points, color=look.colour, marker=look.marker, linestyle=line, label=look.label)
    bars = {"xerr" if down else "yerr": deviations}
    axes.errorbar(*points, ecolor=look.colour, fmt="none", elinewidth=0.8, capsize=3, **bars)


def draw_published(axes: Axes, places: ArrayLike, values: Series, look: Look, *, down: bool = False) -> None:
    """Open markers; nothing, not even in the legend, when nothing is printed. `places` as of `draw_ours`."""
    if values.notna().any():
        points = (values, places) if down else (places, values)
        axes.plot(*points, color=look.colour, marker=look.marker, markerfacecolor="white", linestyle="none",
                  zorder=1.9, label=look.label)


def span(axes: Axes, direction: str, least: float) -> None:
    """Widen the axis "x" or "y", on both sides alike, until it spans so much; nothing ends at its edge."""
    axes.margins(**{direction: 0.08})
    low, high = axes.get_xlim() if direction == "x" else axes.get_ylim()
    spare = max(0.0, least - (high - low)) / 2
    axes.set(**{f"{direction}lim": (low - spare, high + spare)})


def entitle(figure: Figure, finding: str, provenance: str) -> None:
    """The finding above a picture, and below it, small, what it was drawn from."""
    title = textwrap.fill(finding, TITLE_WIDTH, break_on_hyphens=False)
    figure.suptitle(title, fontweight="bold", x=0.01, ha="left")
    below = LINE_HEIGHT * (provenance.count("\n") + 1.5)
    above = below
    for legend in figure.legends:  # between the panels and the provenance
        lines = sum(text.get_text().count("\n") + 1 for text in legend.get_texts())
        above += LINE_HEIGHT * (math.ceil(lines / legend._ncols) + 1)
    height = figure.get_figheight() + above
    figure.set_figheight(height)
    figure.get_layout_engine().set(rect=(0, above / height, 1, 1 - above / height))
    for legend in figure.legends:
        legend.set_in_layout(False)
        legend.set_bbox_to_anchor((0, below / height, 1, 1), figure.transFigure)
    figure.text(0.01, 0.03 / height, provenance, color=GREY, verticalalignment="bottom")


def names_down(axes: Axes, names: Sequence[str]) -> None:
    """Names from the top to the bottom, one apart, the values across."""
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)


def legend_of(stack: Iterable[Axes]) -> list[Any]:
    """What the legends of some panels say, each thing once."""
    keys: dict[str, Any] = {}
    for axes in stack:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            keys.setdefault(label, handle)
    return list(keys.values()) if len(keys) > 1 else []


def legend_below(figure: Figure, handles: Sequence[Any]) -> None:
    """Below everything, where it hides nothing, in as many columns as the figure's width has room for."""
    if handles:
        longest = max(len(handle.get_label()) for handle in handles)
        columns = max(1, WIDEST // (longest + 8))  # of a key and its space
        figure.legend(handles=handles, loc="outside lower center", ncols=min(columns, len(handles)))


def looks_of(names: Iterable[str], looks: Mapping[str, Look]) -> dict[str, Look]:
    """Looks with those of names that have none of their own: called as they are, told apart by colour and marker."""
    unknown = [name for name in dict.fromkeys(names) if name not in looks]
    colours, markers = itertools.cycle((ORANGE, SKY, INK)), itertools.cycle("XP*")
    return dict(looks) | {name: Look(str(name), colour, marker)
                          for name, colour, marker in zip(unknown, colours, markers, strict=False)}


def in_order(names: pd.Series, order: Collection[str]) -> list[str]:
    """The distinct names, those of `order` first and in this order, the others as they come."""
    present = list(dict.fromkeys(names))
    return [*(name for name in order if name in present), *(name for name in present if name not in order)]
