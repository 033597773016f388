"""One look for every picture: column width, legible type, colours told apart by colour-blind readers, stable files.

And what pictures share: markers with errors, the finding above, and the legend and what it was drawn from below.
"""

import itertools
import math
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from pandas import DataFrame, Series

from repro.data import manifest
from repro.report.text import PLUS_MINUS

COLUMN = 3.25  # width of a printed column, inches
DOTS = 300  # of a PNG, per inch
POINTS = 7  # size of type
LINE_HEIGHT = 0.14  # of a line of type, inches
TITLE_WIDTH = 56  # characters of a line of a title
WIDEST = 64  # characters of a line below a picture
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
    ("key_head_copied", False): "key head of its own",
    ("view", "characters"): "labels leak: SMoCo's views are other drawings of the same characters",
    ("ad_input", "augmented"): "reconstructing from the augmented view",
    ("select", "best_on_test"): "selected on the test split", ("precision", "float32"): "float32",
    ("frequency", "zipf"): "categories with Zipf's frequencies", ("renewed", False): "keys as the pool has them",
    ("normalised", False): "embeddings of any length",
}

MEASURED = {"ours": "accuracy (%)", "linear_standardised": "accuracy of standardised\nreadouts (%)"}  # labels of axes

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
    "axes.titlelocation": "left",
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


class Look(NamedTuple):
    """How a method, or whatever else a legend names, appears in every figure."""

    label: str
    colour: str
    marker: str


OURS, PRINTED = Look("ours", BLUE, "o"), Look("printed", VERMILLION, "D")


def styled():
    """Decorator and context in which this style holds, whatever the reader's own settings, which come back after."""
    return matplotlib.style.context(["default", STYLE])


def panels(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure as wide as a column, with its panels in the order of reading.

    Args:
        height: inches.
        rows, columns: how many panels.
        **options: of `Figure.subplots`.
    """
    figure = Figure(figsize=(COLUMN, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def finish(figure: Figure, finding: str, provenance: str) -> Figure:
    """Write the finding above a picture, its legend below, and under that, small, what it was drawn from."""
    title = textwrap.fill(finding, TITLE_WIDTH, break_on_hyphens=False)
    figure.suptitle(title, fontweight="bold", x=0.01, ha="left")
    keys: dict[str, Artist] = {}
    for axes in figure.axes:
        for key, label in zip(*axes.get_legend_handles_labels(), strict=True):
            keys.setdefault(label, key)
    columns, below = 1, LINE_HEIGHT * (provenance.count("\n") + 1.5)
    above = below
    if len(keys) > 1:
        columns = min(len(keys), max(1, WIDEST // (max(map(len, keys)) + 8)))  # 8 for a key and its space
        above += LINE_HEIGHT * (math.ceil(len(keys) / columns) + 1)
    height = figure.get_figheight() + above
    figure.set_figheight(height)
    figure.get_layout_engine().set(rect=(0, above / height, 1, 1 - above / height))
    if len(keys) > 1:
        where = {"loc": "lower center", "bbox_to_anchor": (0.5, below / height), "ncols": columns}
        figure.legend(keys.values(), keys, **where).set_in_layout(False)
    figure.text(0.01, 0.03 / height, provenance, color=GREY, verticalalignment="bottom")
    return settled(figure)


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


def heading(table: DataFrame) -> str:
    """Data set, recipe, seeds and changes of rows, and what they forbid to conclude, for the foot of a picture.

    Args:
        table: with columns dataset and preset, and changed where there are any; of one data set.
    """
    dataset, presets = only(table, "dataset"), sorted(set(table["preset"]))
    name, recipe = manifest.plain(dataset), f"{' and '.join(presets)} recipe"
    if manifest.bundled(dataset):
        recipe += ", not comparable with the printed numbers"
    elif name != dataset or presets != ["paper"]:
        recipe += ", not a reproduction"
    part = "" if name == dataset else " (a part or copy)"
    parts = [DATA_NAMES.get(name, name) + part, recipe, seeds_in_words(table)]
    known = table[table["ours"].notna()] if "ours" in table else table
    for changes in known.get("changed", ()):
        if isinstance(changes, dict):
            parts += [spoken(*change) for change in changes.items()]
    return textwrap.fill("; ".join(filter(None, dict.fromkeys(parts))), WIDEST)


def seeds_in_words(table: DataFrame) -> str:
    """What the error bars of rows or of a frame are: "mean ± std of 2 to 3 seeds", "1 seed" where there are none.

    A table whose errors are no deviations says what they are in a column `errors`.
    """
    if "errors" in table:
        return only(table, "errors")
    counts = table.get("n_seeds")
    if counts is None:
        counts = table.groupby(table.get("entry", "dataset"))["seed"].nunique()
    fewest, most = counts[counts > 0].min(), counts.max()
    if not most > 1:
        return "1 seed" if most == 1 else "not run"
    return f"mean {PLUS_MINUS} std of {most if fewest == most else f'{fewest} to {most}'} seeds"


def spoken(name: str, value: Any) -> str:
    """A change for people: ("ad_weight", 25) is "weight of AD 25"."""
    if (name, value) in SPOKEN:
        return SPOKEN[name, value]
    words = SPOKEN.get(name, name.replace("_", " "))
    if value is True:
        return words
    number = isinstance(value, int | float) and value is not False
    text = f"{value:,g}" if number else str(value).replace("_", " ")
    return f"{words} {text}".strip()


def only(table: DataFrame, column: str) -> Any:
    """The one value of a column; raises ValueError if there are several, or none."""
    values = table[column].unique().tolist()
    if len(values) != 1:
        raise ValueError(f"a figure shows one {column}; this table has {sorted(values)}")
    return values[0]


def mark(
    axes: Axes, places: ArrayLike, values: Series, look: Look, deviations: Series | None = None, *,
    hollow: bool = False, joined: bool = False, down: bool = False,
) -> None:
    """Markers of values with error bars, whose caps tell short ones from markers; nothing where there is no value.

    Args:
        places: across, or where `down` is set, downwards; values are on the other axis.
        hollow: as printed values are; these lie below ours.
        joined: by a line.
    """
    if not values.notna().any():
        return
    points = (values, places) if down else (places, values)
    axes.plot(*points, color=look.colour, marker=look.marker, markerfacecolor="white" if hollow else look.colour,
              linestyle="-" if joined else "none", zorder=1.9 if hollow else 2, label=look.label)
    if deviations is not None:
        axes.errorbar(*points, ecolor=look.colour, fmt="none", elinewidth=0.8, capsize=3,
                      **{"xerr" if down else "yerr": deviations})


def span(axes: Axes, direction: str, least: float) -> None:
    """Widen the axis "x" or "y", on both sides alike, until it spans so much; nothing ends at its edge."""
    axes.margins(**{direction: 0.08})
    low, high = axes.get_xlim() if direction == "x" else axes.get_ylim()
    spare = max(0.0, least - (high - low)) / 2
    axes.set(**{f"{direction}lim": (low - spare, high + spare)})


def names_down(axes: Axes, names: Sequence[str]) -> None:
    """Names from the top to the bottom, one apart, the values across."""
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)


def looks_of(names: Iterable[str], looks: Mapping[str, Look]) -> dict[str, Look]:
    """Looks with those of names that have none of their own: called as they are, told apart by colour and marker."""
    unknown = [name for name in dict.fromkeys(names) if name not in looks]
    colours, markers = itertools.cycle((ORANGE, SKY, INK)), itertools.cycle("XP*")
    return dict(looks) | {name: Look(str(name), colour, marker)
                          for name, colour, marker in zip(unknown, colours, markers, strict=False)}


def in_order(names: Series, order: Collection[str]) -> list[str]:
    """The distinct names, those of `order` first and in this order, the others as they come."""
    present = list(dict.fromkeys(names))
    return [*(name for name in order if name in present), *(name for name in present if name not in order)]
