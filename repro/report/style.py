"""One look for every picture, with what stands around its panels: title, keys, and what it was drawn from, in words."""

import contextlib
import textwrap
from collections.abc import Iterator
from typing import Any

import matplotlib.style
import seaborn
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.data import manifest
from repro.report.text import DATA_NAMES, PLUS_MINUS

COLUMN = 3.25  # width of a printed column, inches
WIDEST = 60    # characters of a line below a picture
SPOKEN: dict[Any, str] = {  # fields, and fields with a value, as pictures call them
    "ad_weight": "weight of AD", "ae_weight": "weight of AE", "data": "", "targets": "judged on",
    "bidirectional": "encoder in both directions", "pairs": "pairs for training",
    "distinct": "different pairs", "redrawn": "drawn anew in every view", "augmented": "all methods see changed grids",
    ("td_queue", "frozen_noise"): "dictionary never refreshed", ("ad_loss", "squared"): "squared differences",
    ("key_head_copied", False): "key head of its own",
    ("view", "characters"): "labels leak: SMoCo's views are other drawings of the same characters",
    ("ad_input", "augmented"): "reconstructing from the augmented view",
    ("select", "best_on_test"): "selected on the test split", ("precision", "float32"): "float32",
    ("frequency", "zipf"): "categories with Zipf's frequencies",
    ("renewed", True): "keys encoded again", ("renewed", False): "keys as the pool has them",
    ("normalised", False): "embeddings of any length",
}

# Okabe and Ito (2008), Color universal design.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
INK, GREY, PALE = "#222222", "#767676", "#DDDDDD"
COLOURS, MARKERS = (BLUE, VERMILLION, GREEN, PURPLE, SKY, ORANGE, INK, GREY), "osD^vPX*"  # of lines, in their order
SHEET = {
    **seaborn.axes_style("ticks"), **seaborn.plotting_context("paper", font_scale=0.8),  # no type below 7 points
    "font.family": "DejaVu Sans", "figure.titlesize": 7.5, "figure.titleweight": "bold", "figure.labelsize": 7,
    "figure.dpi": 200, "savefig.dpi": 300, "svg.hashsalt": "repro", "grid.color": PALE, "legend.frameon": False,
    "axes.titlelocation": "left", "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "axes.linewidth": 0.6, "grid.linewidth": 0.4, "lines.markersize": 4, "lines.linewidth": 1,
}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Decorator and context in which this style holds, whatever the reader's own settings, which come back after.

    Figures that were made in it are closed, so that whoever is given one shows it, once; also if a drawing fails.
    """
    before = {*plt.get_fignums()}
    with matplotlib.style.context(["default", SHEET]):
        try:
            yield
        finally:
            for number in {*plt.get_fignums()} - before:
                plt.close(number)


def finish(figure: Figure, inches: float, title: str, provenance: str) -> Figure:
    """Give panels so many inches, a title above and, inside the canvas below, a legend and what they are drawn from."""
    keys: dict[str, Artist] = {}
    for axes in figure.axes:
        axes.tick_params(labelsize=plt.rcParams["xtick.labelsize"])  # of this style, also where it is drawn later
        for key, label in zip(*axes.get_legend_handles_labels(), strict=True):
            keys.setdefault(label, key)
    edge = {"x": 0.01, "horizontalalignment": "left"}
    around: list[Any] = [figure.suptitle(textwrap.fill(title, 46, break_on_hyphens=False), **edge),
                         figure.supxlabel(provenance, color=GREY, y=0.01, **edge)]
    if len(keys) > 1:
        columns = min(len(keys), max(1, WIDEST // (max(map(len, keys)) + 8)))  # 8 for a key and its space
        around.append(figure.legend(keys.values(), keys, loc="lower center", ncols=columns))
    heights = [artist.get_window_extent().height / figure.dpi for artist in around]
    height = inches + sum(heights) + 0.15
    figure.set_size_inches(COLUMN, height)
    if len(keys) > 1:
        figure.legends[0].set_bbox_to_anchor((0.5, (heights[1] + 0.1) / height))
    figure.tight_layout(rect=(0, sum(heights[2:]) / height, 1, 1))
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
