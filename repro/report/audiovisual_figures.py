"""The figures of CM-ACC, each drawn from one table of stored results, or from a log."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame, Series

from repro import manifest
from repro.report.elements import comparable, draw_ours, draw_published, heading, only, origin
from repro.report.printed import printed
from repro.report.state_of_the_art import METHODS as METHOD_NAMES
from repro.report.state_of_the_art import NAMES, NOWHERE, TARGETS, merged, pretrained_on
from repro.report.style import BLUE, COLUMN, GREEN, GREY, INK, PURPLE, VERMILLION, settled, styled

CAPTIONS = {
    "cross_modal": "Accuracy after pre-training within or across modalities, with and without the extra layer (fcl) "
    "and with negatives selected at random or actively, by where the encoder was fine-tuned.",
    "ohem_vs_active": "Accuracy against the number M of negatives selected in a step, by how they are selected.",
    "dictionary_size": "Accuracy against the size of the dictionary. The paper shows this as a curve without its "
    "values, so that there is nothing to compare with.",
    "mutual_information": "Accuracy of probes that read characters from grids, against the number of characters and "
    "the information (nats) that the two grids of a pair share; dashed, drawings never seen in training. The paper "
    "shows this as a curve without its values, so that there is nothing to compare with.",
    "transfer": "Accuracy after fine-tuning, by what was pre-trained on: ours among the numbers that the paper prints "
    "for itself and for others.",
    "category_diversity": "Distinct categories among the M negatives selected in a step, mean over training, as a "
    "share of M; dashed, the closed-form expectation of M uniform draws.",
    "category_curves": "Distinct categories among the M negatives selected in a step, along training; dashed, the "
    "closed-form expectation of M uniform draws.",
}


class Look(NamedTuple):
    """How a method or a sampler appears in every figure."""

    label: str
    colour: str
    marker: str


METHODS = {
    "scratch": Look(METHOD_NAMES["scratch"], GREY, "v"),
    "supervised": Look(METHOD_NAMES["supervised"], PURPLE, "^"),
    "smoco": Look(METHOD_NAMES["smoco"], BLUE, "o"),
    "xmoco": Look(METHOD_NAMES["xmoco"], VERMILLION, "s"),
    "cmacc": Look(METHOD_NAMES["cmacc"], GREEN, "D"),
}
SAMPLERS = {
    "random": Look("random", BLUE, "o"),
    "ohem": Look("OHEM", VERMILLION, "s"),
    "feature": Look("active, features", PURPLE, "^"),
    "gradient": Look("active, gradients", GREEN, "D"),
    "released": Look("released code", GREY, "v"),
}
TARGET_NAMES = NAMES | {"synthetic_video": "synthetic, pictures", "synthetic_audio": "synthetic, sound"}
PRINTED_LOOKS = {"scratch": (GREY, "v"), "others": (GREY, "o"), "supervised": (PURPLE, "^"), "CM-ACC": (GREEN, "D")}
OPEN = {"markerfacecolor": "white"}
CATEGORIES = ("categories_video", "categories_audio")
EXPECTED = Line2D([], [], color=INK, linestyle="--", label="uniform draws, closed form")


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
    table = table.assign(published=comparable(table))
    approaches = list(dict.fromkeys(table["approach"]))
    targets = _in_order(table["target"], TARGET_NAMES)
    height = 0.8 + (0.55 + 0.16 * len(approaches)) * len(targets)
    figure = Figure(figsize=(COLUMN, height), layout="constrained")
    figure.suptitle(title)
    stack = figure.subplots(len(targets), 1, squeeze=False)[:, 0]
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
    _legend(figure, stack[0].get_legend_handles_labels()[0], 2)
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
    for method, rows in _lines(table, "method", METHODS):
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
    _legend(figure, [*_key(METHODS, table["method"]), *kinds], 2)
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
            published (percent), preset, dataset. On embedded data nothing printed is shown.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.

    Source: CM-ACC, Tables 4 to 6.
    """
    title = heading(table)
    targets = _in_order(table["target"], TARGET_NAMES)
    panels = {target: (_printed_of(table, target), table[table["target"] == target]) for target in targets}
    sets = {target: _sets(*rows) for target, rows in panels.items()}
    heights = [0.6 + 0.14 * len(names) for names in sets.values()]
    figure = Figure(figsize=(COLUMN, 0.9 + sum(heights)), layout="constrained")
    figure.suptitle(title)
    stack = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
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
        _accuracy_across(axes, target)
    shown = [kind for kind in PRINTED_LOOKS if any((others["kind"] == kind).any() for others, _ in panels.values())]
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=f"{kind}, printed", **OPEN)
        for kind, (colour, marker) in PRINTED_LOOKS.items() if kind in shown
    ]
    _legend(figure, [*_key(METHODS, table["method"], line="none", ending=", ours"), *handles], 2)
    return settled(figure)


@styled()
def category_diversity(table: DataFrame) -> Figure:
    """Distinct categories among the negatives selected in a step, as a share of their number M; a panel per modality.

    Args:
        table: one row per sampler, batch and modality: sampler, batch (M), target (the modality), ours and std
            (categories), n_seeds, expected (categories of M uniform draws), preset, dataset.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.

    Source: CM-ACC, Fig. 4, where it is called the probability of a unique negative.
    """
    title = heading(table)
    modalities = _in_order(table["target"], ("video", "audio"))
    batches = sorted(set(table["batch"]))
    samplers = [name for name in SAMPLERS if name in set(table["sampler"])]
    width = 0.8 / len(samplers)
    figure = Figure(figsize=(COLUMN, 0.9 + 1.3 * len(modalities)), layout="constrained")
    figure.suptitle(title)
    stack = figure.subplots(len(modalities), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, modality in zip(stack, modalities, strict=True):
        for row in table[table["target"] == modality].itertuples():
            left = batches.index(row.batch) - 0.4 + samplers.index(row.sampler) * width
            share, deviation = 100 * row.ours / row.batch, 100 * row.std / row.batch
            axes.bar(left, share, width, align="edge", color=SAMPLERS[row.sampler].colour)
            axes.errorbar(left + width / 2, share, yerr=deviation, ecolor=INK, fmt="none", elinewidth=0.8)
            expected, edge = 100 * row.expected / row.batch, batches.index(row.batch) - 0.45
            axes.hlines(expected, edge, edge + 0.9, color=INK, linestyle="--", linewidth=0.8)
        axes.set_title(f"negatives of {modality}", loc="left")
        axes.set(ylabel="distinct categories\n(% of M)", xticks=range(len(batches)), xticklabels=batches)
        axes.grid(axis="y")
    stack[-1].set_xlabel("negatives selected in a step, M")
    _legend(figure, [*_key(SAMPLERS, samplers, line="-", width=4, marked=False), EXPECTED], 2)
    return settled(figure)


@styled()
def category_curves(log: DataFrame) -> Figure:
    """Distinct categories among the M negatives selected in a step, along training; M downwards, modalities across.

    Args:
        log: one row per report and run: step, categories_video, categories_audio (mean over the steps since the last
            report), expected (categories of M uniform draws), sampler, batch (M), seed, preset, dataset.

    Raises:
        ValueError: if the log is empty or mixes presets or data sets.

    Source: CM-ACC, Fig. 2.
    """
    seeds = log["seed"].nunique()
    title = origin(log, "1 seed" if seeds == 1 else f"mean of {seeds} seeds")
    batches = sorted(set(log["batch"]))
    figure = Figure(figsize=(COLUMN, 1.0 + 1.15 * len(batches)), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(len(batches), len(CATEGORIES), sharex=True, sharey="row", squeeze=False)
    for row, batch in zip(grid, batches, strict=True):
        chosen = log[log["batch"] == batch]
        for axes, column in zip(row, CATEGORIES, strict=True):
            for sampler, rows in _lines(chosen, "sampler", SAMPLERS):
                means = rows.groupby("step")[column].mean()
                axes.plot(means.index, means, color=SAMPLERS[sampler].colour, linewidth=0.8)
            for expected in chosen["expected"].unique():
                axes.axhline(expected, color=INK, linestyle="--", linewidth=0.8)
            axes.grid(axis="y")
        row[0].set_ylabel(f"distinct categories\nof M = {batch}")
    for axes, column in zip(grid[0], CATEGORIES, strict=True):
        axes.set_title(f"negatives of {column.removeprefix('categories_')}", loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("iteration")
    _legend(figure, [*_key(SAMPLERS, log["sampler"], marked=False), EXPECTED], 2)
    return settled(figure)


def _accuracies(table: DataFrame, across: str, name: str, looks: Mapping[str, Look]) -> tuple[Figure, list[Axes]]:
    """A panel for each target, accuracy against a column on a logarithmic axis, a line for each value of `name`."""
    title = heading(table)
    table = table.assign(published=comparable(table)).sort_values(across)
    targets, values = _in_order(table["target"], TARGET_NAMES), sorted(set(table[across]))
    figure = Figure(figsize=(COLUMN, 1.0 + 1.25 * len(targets)), layout="constrained")
    figure.suptitle(title)
    stack = list(figure.subplots(len(targets), 1, sharex=True, squeeze=False)[:, 0])
    for axes, target in zip(stack, targets, strict=True):
        for each, rows in _lines(table[table["target"] == target], name, looks):
            label, colour, marker = looks[each]
            draw_ours(axes, rows[across], rows, colour, marker, label, line="-")
            draw_published(axes, rows[across], rows["published"], colour, marker, f"{label}, printed", line="--")
        axes.set_xscale("log")
        axes.set_xticks(values, labels=[f"{value:,}" for value in values])
        axes.minorticks_off()
        axes.set_title(f"fine-tuned on {TARGET_NAMES.get(target, target)}", loc="left")
        axes.set_ylabel("accuracy (%)")
        axes.grid(axis="y")
    lines = [Line2D([], [], color=GREY, marker="o", linestyle="--", label="printed", **OPEN)]
    _legend(figure, [*_key(looks, table[name]), *(lines if table["published"].notna().any() else [])], 2)
    return figure, stack


def _accuracy_across(axes: Axes, target: str) -> None:
    """What panels with names downwards share."""
    axes.set_title(f"fine-tuned on {TARGET_NAMES.get(target, target)}", loc="left")
    axes.set_xlabel("accuracy (%)")
    axes.margins(x=0.06)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)


def _printed_of(table: DataFrame, target: str) -> DataFrame:
    """What Tables 4 to 6 print for a target, each number once: pretrain_set, accuracy, kind."""
    column = NAMES.get(target)
    parts = [DataFrame({"pretrain_set": [], "accuracy": [], "kind": []})]
    for number, targets in TARGETS.items():
        if column in targets and not manifest.embedded(only(table, "dataset")):
            rows = merged(number).dropna(subset=column)
            kind = rows["method"].map(_kind)
            parts.append(DataFrame({"pretrain_set": rows["pretrain_set"], "accuracy": rows[column], "kind": kind}))
    return pd.concat(parts[1:] or parts, ignore_index=True).drop_duplicates()


def _kind(method: str) -> str:
    """Which of the printed looks a printed method has."""
    kinds = {"CM-ACC": "CM-ACC", "Supervised": "supervised", "Scratch": "scratch"}
    return kinds.get(method.partition(" (")[0], "others")


def _in_order(names: Series, order: Collection[str]) -> list[str]:
    """The distinct names, those of `order` first and in this order, the others as they come."""
    present = list(dict.fromkeys(names))
    return [*(name for name in order if name in present), *(name for name in present if name not in order)]


def _sets(others: DataFrame, ours: DataFrame) -> list[str]:
    """Pre-training sets of a panel, from none on, in the order of the printed tables."""
    here = [pretrained_on(row.method, row.dataset) for row in ours.itertuples()]
    names = list(dict.fromkeys([*others["pretrain_set"], *here]))
    return sorted(names, key=lambda name: (name != NOWHERE, names.index(name)))


def _lines(table: DataFrame, name: str, looks: Mapping[str, Look]) -> list[tuple[str, DataFrame]]:
    """The rows of every method or sampler, in the order of their looks."""
    return [(each, table[table[name] == each]) for each in looks if (table[name] == each).any()]


def _key(
    looks: Mapping[str, Look],
    names: Series | Iterable[str],
    *,
    line: str = "-",
    width: float = 1.0,
    marked: bool = True,
    ending: str = "",
) -> list[Line2D]:
    """What the legend says of the methods or samplers that there are."""
    return [
        Line2D([], [], color=look.colour, marker=look.marker if marked else "", linestyle=line, linewidth=width,
               label=look.label + ending)
        for name, look in looks.items() if name in set(names)
    ]


def _legend(figure: Figure, handles: list, columns: int) -> None:
    """Below everything, where it hides nothing."""
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=min(columns, len(handles)))
