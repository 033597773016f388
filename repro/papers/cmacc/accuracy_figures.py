"""The figures of CM-ACC's accuracies, each drawn from one table of stored results."""

import math
from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from repro.data import manifest
from repro.papers.cmacc.comparison import METHODS as METHOD_NAMES
from repro.papers.cmacc.comparison import NAMES, NOWHERE, TARGETS, pretrained_on
from repro.papers.cmacc.state_of_the_art import merged
from repro.report.elements import (
    Look,
    comparable,
    draw_ours,
    draw_published,
    heading,
    in_order,
    keys_of,
    legend_below,
    lines_of,
    only,
    stacked,
)
from repro.report.printed import printed
from repro.report.style import BLUE, COLUMN, GREEN, GREY, INK, PURPLE, VERMILLION, settled, styled

METHODS = {
    "scratch": Look(METHOD_NAMES["scratch"], GREY, "v"),
    "supervised": Look(METHOD_NAMES["supervised"], PURPLE, "^"),
    "smoco": Look(METHOD_NAMES["smoco"], BLUE, "o"),
    "xmoco": Look(METHOD_NAMES["xmoco"], VERMILLION, "s"),
    "cmacc": Look(METHOD_NAMES["cmacc"], GREEN, "D"),
}
SAMPLERS = {
    "random": Look("random", BLUE, "o"),
    "ohem": Look("least confident (OHEM)", VERMILLION, "s"),
    "feature": Look("active, features", PURPLE, "^"),
    "gradient": Look("active, gradients", GREEN, "D"),
    "released": Look("released code", GREY, "v"),
}
TARGET_NAMES = NAMES | {
    "esc10": "ESC10", "synthetic_video": "synthetic, pictures", "synthetic_audio": "synthetic, sound"
}
PROBED = {"characters": "characters, new pairs", "unseen": "characters, drawings never seen"}  # by linear probes
PRINTED_LOOKS = {"scratch": (GREY, "v"), "others": (GREY, "o"), "supervised": (PURPLE, "^"), "CM-ACC": (GREEN, "D")}
OPEN = {"markerfacecolor": "white"}
NARROWEST = 10.0  # percentage points that an axis spans at least
APART = 1.03     # factor between the places of two lines on a logarithmic axis, so that no error bar hides another


@styled()
def cross_modal(table: DataFrame) -> Figure:
    """Accuracy of every approach, one panel for each target; printed values beside ours, except on embedded data.

    Args:
        table: one row per approach and target: approach, target, ours, std, n_seeds, published (percent), preset,
            dataset.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.

    Source: CM-ACC, Tables 1 and 2.
    """
    title = heading(table)
    table = with_unseen(table.assign(published=comparable(table)))
    approaches = list(dict.fromkeys(table["approach"]))
    targets = in_order(table["target"], TARGET_NAMES | PROBED)
    height = 0.8 + (0.55 + 0.16 * len(approaches)) * len(targets)
    figure, stack = stacked(title, height, len(targets))
    for axes, target in zip(stack, targets, strict=True):
        rows = table[table["target"] == target]
        places = rows["approach"].map(approaches.index)
        axes.errorbar(rows["ours"], places, xerr=rows["std"], ecolor=BLUE, fmt="none", elinewidth=0.8)
        axes.plot(rows["ours"], places, color=BLUE, marker="o", linestyle="none", label="ours")
        if rows["published"].notna().any():
            looks = {"color": VERMILLION, "marker": "D", "linestyle": "none", "zorder": 1.9}
            axes.plot(rows["published"], places, label="printed", **looks, **OPEN)
        axes.set(yticks=range(len(approaches)), yticklabels=approaches, ylim=(len(approaches) - 0.5, -0.5))
        _accuracy_across(axes, target)
    legend_below(figure, stack[0].get_legend_handles_labels()[0], 2)
    return settled(figure)


@styled()
def ohem_vs_active(table: DataFrame) -> Figure:
    """Accuracy against the number of negatives selected, a line for each sampler and a panel for each target.

    Args:
        table: one row per sampler, batch and target: sampler, batch (M), target, ours, std, n_seeds, published
            (percent), preset, dataset.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.

    Source: CM-ACC, Table 3.
    """
    figure, stack = _accuracies(table, "batch", "sampler", SAMPLERS)
    stack[-1].set_xlabel("negatives selected in a step, M")
    return settled(figure)


@styled()
def dictionary_size(table: DataFrame) -> Figure:
    """Accuracy against the size of the dictionary, a line for each method and a panel for each target.

    Args:
        table: one row per method, size and target: method, dictionary, target, ours, std, n_seeds, published
            (percent), preset, dataset.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.

    Source: CM-ACC, Fig. 3b.
    """
    figure, stack = _accuracies(table, "dictionary", "method", METHODS)
    stack[-1].set_xlabel("entries of the dictionary")
    return settled(figure)


@styled()
def mutual_information(table: DataFrame) -> Figure:
    """Accuracy against the number of characters, which above is told in nats; dashed, drawings never seen.

    Args:
        table: one row per method and number of characters: method, characters, ours, std, linear_held_out (percent),
            n_seeds, preset, dataset.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.

    Source: CM-ACC, Fig. 3a.
    """
    title, table = heading(table), table.sort_values("characters")
    figure = Figure(figsize=(COLUMN, 3.0), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots()
    for method, rows in lines_of(table, "method", METHODS):
        label, colour, marker = METHODS[method]
        draw_ours(axes, rows["characters"], rows, colour, marker, label, line="-")
        looks = {"color": colour, "marker": marker, "markersize": 3, "linestyle": "--", "linewidth": 0.7}
        axes.plot(rows["characters"], rows["linear_held_out"], **looks, **OPEN)
    numbers = sorted(set(table["characters"]))
    axes.set(xlabel="characters in a grid", xticks=numbers, ylabel="accuracy of a character (%)")
    axes.margins(x=0.08)
    axes.grid(axis="y")
    above = axes.secondary_xaxis("top")
    shared = [nats(manifest.plain(only(table, "dataset")), number) for number in numbers]
    above.set_xticks(numbers, labels=[f"{value:.1f}" for value in shared])
    above.set_xlabel("information that a pair shares (nats)")
    above.spines["top"].set_visible(True)
    lines = {"color": INK, "linewidth": 0.7, "markersize": 3, "marker": "o"}
    kinds = [Line2D([], [], linestyle="--", label="drawings never seen", **lines, **OPEN)]
    legend_below(figure, [*keys_of(METHODS, table["method"]), *kinds], 2)
    return settled(figure)


def nats(dataset: str, characters: int) -> float:
    """Mutual information of the two grids of a pair: the sum of the logarithms of the sizes of their alphabets."""
    if dataset == "multidigits":
        return characters * math.log(10)
    known = printed("spatial_multiomniglot_mi").set_index("n_characters")
    return float(known.loc[characters, "MI_nats"])


@styled()
def transfer(table: DataFrame) -> Figure:
    """Accuracy by what was pre-trained on, a panel for each target: ours among the printed numbers of Tables 4 to 6.

    Args:
        table: one row per method, encoder, split and target: method, video_trunk, split, target, ours, std, n_seeds,
            published (percent), preset, dataset. On embedded data, and on a part of a set, nothing printed is shown.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.

    Source: CM-ACC, Tables 4 to 6.
    """
    title, table = heading(table), with_unseen(table)
    targets = in_order(table["target"], TARGET_NAMES | PROBED)
    panels = {target: (_printed_of(table, target), table[table["target"] == target]) for target in targets}
    sets = {target: _sets(*rows) for target, rows in panels.items()}
    heights = [0.6 + 0.14 * len(names) for names in sets.values()]
    figure, stack = stacked(title, 0.9 + sum(heights), len(panels), height_ratios=heights)
    for axes, (target, (others, ours)) in zip(stack, panels.items(), strict=True):
        names = sets[target]
        for kind, (colour, marker) in PRINTED_LOOKS.items():
            rows = others[others["kind"] == kind]
            places = [names.index(name) for name in rows["pretrain_set"]]
            looks = {"color": colour, "marker": marker, "linestyle": "none", "zorder": 1.9}
            axes.plot(rows["accuracy"], places, **looks, **OPEN)
        for row in ours.itertuples():
            _, colour, marker = METHODS[row.method]
            place = names.index(pretrained_on(row.method, row.dataset))
            axes.errorbar(row.ours, place, xerr=row.std, color=colour, marker=marker, markersize=5, elinewidth=0.8)
        named = ["none" if name == NOWHERE else name for name in names]
        axes.set(yticks=range(len(names)), yticklabels=named, ylim=(len(names) - 0.5, -0.5))
        axes.set_ylabel("pre-trained on")
        _accuracy_across(axes, target)
    shown = [kind for kind in PRINTED_LOOKS if any((others["kind"] == kind).any() for others, _ in panels.values())]
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=f"{kind}, printed", **OPEN)
        for kind, (colour, marker) in PRINTED_LOOKS.items() if kind in shown
    ]
    legend_below(figure, [*keys_of(METHODS, table["method"], line="none", ending=", ours"), *handles], 2)
    return settled(figure)


def _accuracies(table: DataFrame, across: str, name: str, looks: Mapping[str, Look]) -> tuple[Figure, list[Axes]]:
    """A panel for each target, accuracy against a column on a logarithmic axis, a line for each value of `name`."""
    title = heading(table)
    table = with_unseen(table.assign(published=comparable(table))).sort_values(across)
    targets, values = in_order(table["target"], TARGET_NAMES | PROBED), sorted(set(table[across]))
    figure, stack = stacked(title, 1.0 + 1.25 * len(targets), len(targets), sharex=True)
    for axes, target in zip(stack, targets, strict=True):
        lines = lines_of(table[table["target"] == target], name, looks)
        for number, (each, rows) in enumerate(lines):
            label, colour, marker = looks[each]
            places = rows[across] * APART ** (number - (len(lines) - 1) / 2)
            draw_ours(axes, places, rows, colour, marker, label, line="-")
            draw_published(axes, places, rows["published"], colour, marker, f"{label}, printed", line="--")
        axes.set_xscale("log")
        axes.set_xticks(values, labels=[f"{value:,}" for value in values])
        axes.minorticks_off()
        axes.set_title(_judged(target), loc="left")
        axes.set_ylabel("accuracy (%)")
        axes.grid(axis="y")
    printed = [Line2D([], [], color=GREY, marker="o", linestyle="--", label="printed", **OPEN)]
    legend_below(figure, [*keys_of(looks, table[name]), *(printed if table["published"].notna().any() else [])], 2)
    return figure, stack


def with_unseen(table: DataFrame) -> DataFrame:
    """The rows of a table, those of characters again as target "unseen": on drawings never seen, of which only means
    over seeds are known."""
    if "linear_held_out" not in table:
        return table
    rows = table[table["target"] == "characters"]
    return pd.concat([table, rows.assign(target="unseen", ours=rows["linear_held_out"], std=math.nan)])


def _judged(target: str) -> str:
    """How encoders were judged, as the title of a panel."""
    return PROBED.get(target) or f"fine-tuned on {TARGET_NAMES.get(target, target)}"


def _accuracy_across(axes: Axes, target: str) -> None:
    """What panels with names downwards share."""
    axes.set_title(_judged(target), loc="left")
    axes.set_xlabel("accuracy (%)")
    axes.margins(x=0.06)
    low, high = axes.get_xlim()
    spare = max(0.0, NARROWEST - (high - low)) / 2  # values a hair apart would have ticks of many digits
    axes.set_xlim(low - spare, high + spare)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)


def _printed_of(table: DataFrame, target: str) -> DataFrame:
    """What Tables 4 to 6 print for a target, each number once: pretrain_set, accuracy, kind; of a part, nothing."""
    column, dataset = NAMES.get(target), only(table, "dataset")
    whole = dataset == manifest.plain(dataset) and not manifest.embedded(dataset)
    parts = [DataFrame({"pretrain_set": [], "accuracy": [], "kind": []})]
    for number, targets in TARGETS.items():
        if column in targets and whole:
            rows = merged(number).dropna(subset=column)
            kind = rows["method"].map(_kind)
            parts.append(DataFrame({"pretrain_set": rows["pretrain_set"], "accuracy": rows[column], "kind": kind}))
    return pd.concat(parts[1:] or parts, ignore_index=True).drop_duplicates()


def _kind(method: str) -> str:
    """Which of the printed looks a printed method has."""
    kinds = {"CM-ACC": "CM-ACC", "Supervised": "supervised", "Scratch": "scratch"}
    return kinds.get(method.partition(" (")[0], "others")


def _sets(others: DataFrame, ours: DataFrame) -> list[str]:
    """Pre-training sets of a panel, from none on, in the order of the printed tables."""
    here = [pretrained_on(row.method, row.dataset) for row in ours.itertuples()]
    names = list(dict.fromkeys([*others["pretrain_set"], *here]))
    return sorted(names, key=lambda name: (name != NOWHERE, names.index(name)))
