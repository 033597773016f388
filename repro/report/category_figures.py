"""The figures of CM-ACC's categories: how many of them the negatives cover, and which are hard to tell."""

import textwrap

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame, Series

from repro.report.audiovisual_figures import METHODS, SAMPLERS
from repro.report.elements import heading, in_order, keys_of, legend_below, lines_of, only, origin, stacked
from repro.report.style import BLUE, COLUMN, INK, VERMILLION, settled, styled

CAPTIONS = {
    "category_diversity": "Distinct categories among the M negatives selected in a step, mean over training, as a "
    "share of M; dashed, the closed-form expectation of M uniform draws.",
    "category_curves": "Distinct categories among the M negatives selected in a step, along training; dashed, the "
    "closed-form expectation of M uniform draws.",
    "pretext_accuracy": "How often the positive of a query ranks first among the keys of the dictionary, by category: "
    "the categories in which this succeeds most and least often. Markers: the same among the keys of the dictionary's "
    "items encoded again, which a query cannot tell from its positive by their age.",
}
WITHOUT_REPLACEMENT = 5  # the version of the training whose expectation is of draws as they are made
COUNTED = ("categories_video", "categories_audio")
MODALITIES = ("video", "audio")
EXPECTED = Line2D([], [], color=INK, linestyle="--", label="uniform draws, closed form")
RANKED = {"highest": BLUE, "lowest": VERMILLION}
RENEWED = {"color": INK, "marker": "o", "markerfacecolor": "white", "markersize": 3, "linestyle": "none"}
RENEWED |= {"clip_on": False}  # whole at 0 and at 100, too
BEST, WORST = 10, 5  # categories that Fig. 6 shows


def draws_in_words(versions: Series) -> str:
    """A sentence of the caption: which uniform draws the expectation is of, by the cells' versions of the training."""
    earlier = versions < WITHOUT_REPLACEMENT
    if earlier.all():
        return "The draws of the expectation are with replacement."
    exception = f", up to version {WITHOUT_REPLACEMENT - 1} of the training with replacement" if earlier.any() else ""
    return f"The draws of the expectation are without replacement{exception}."


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
    modalities = in_order(table["target"], MODALITIES)
    batches = sorted(set(table["batch"]))
    samplers = [name for name in SAMPLERS if name in set(table["sampler"])]
    width = 0.8 / len(samplers)
    figure, stack = stacked(title, 0.9 + 1.3 * len(modalities), len(modalities), sharex=True, sharey=True)
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
    legend_below(figure, [*keys_of(SAMPLERS, samplers, line="-", width=4, marked=False), EXPECTED], 2)
    return settled(figure)


@styled()
def category_curves(log: DataFrame) -> Figure:
    """Distinct categories among the M negatives selected in a step, along training; M downwards, modalities across.

    Args:
        log: one row per report and run: step, categories_video, categories_audio (mean over the steps since the last
            report), expected (categories of M uniform draws), sampler, batch (M), seed, preset, dataset, and
            departures where there are any.

    Raises:
        ValueError: if the log is empty or mixes presets or data sets.

    Source: CM-ACC, Fig. 2.
    """
    seeds = log["seed"].nunique()
    title = heading(log, "1 seed" if seeds == 1 else f"mean of {seeds} seeds")
    batches = sorted(set(log["batch"]))
    figure = Figure(figsize=(COLUMN, 1.0 + 1.15 * len(batches)), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(len(batches), len(COUNTED), sharex=True, sharey="row", squeeze=False)
    for row, batch in zip(grid, batches, strict=True):
        chosen = log[log["batch"] == batch]
        for axes, column in zip(row, COUNTED, strict=True):
            for sampler, rows in lines_of(chosen, "sampler", SAMPLERS):
                means, look = rows.groupby("step")[column].mean(), SAMPLERS[sampler]
                marker = look.marker if len(means) == 1 else ""  # no line through a single report
                axes.plot(means.index, means, color=look.colour, linewidth=0.8, marker=marker)
            for expected in chosen["expected"].unique():
                axes.axhline(expected, color=INK, linestyle="--", linewidth=0.8)
            axes.grid(axis="y")
        row[0].set_ylabel(f"distinct categories\nof M = {batch}")
    for axes, column in zip(grid[0], COUNTED, strict=True):
        axes.set_title(f"negatives of {column.removeprefix('categories_')}", loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("iteration")
        axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    single = log["step"].nunique() == 1
    legend_below(figure, [*keys_of(SAMPLERS, log["sampler"], marked=single), EXPECTED], 2)
    return settled(figure)


@styled()
def pretext_accuracy(table: DataFrame) -> Figure:
    """The categories in which a query finds its positive most often, and least often; a panel for queries of each kind.

    Args:
        table: of `audiovisual.figure_data.pretext_accuracy`: query ("video" or "audio"), category, accuracy and
            accuracy_renewed (percent), method, seed, preset, dataset. Of several seeds mean and standard deviation are
            shown.

    Raises:
        ValueError: if the table is empty or mixes methods, presets or data sets.

    Source: CM-ACC, Fig. 6.
    """
    seeds, method = table["seed"].nunique(), METHODS[only(table, "method")].label
    shown = "1 seed" if seeds == 1 else f"mean \N{PLUS-MINUS SIGN} std of {seeds} seeds"
    title = origin(table, f"{method}, {shown}")
    panels = {query: extremes(table[table["query"] == query]) for query in in_order(table["query"], MODALITIES)}
    heights = [0.6 + 0.14 * len(rows) for rows in panels.values()]
    figure, stack = stacked(title, 0.8 + sum(heights), len(panels), sharex=True, height_ratios=heights)
    for axes, (query, rows) in zip(stack, panels.items(), strict=True):
        _ranked(axes, rows)
        axes.set_title(f"queries of {query}", loc="left")
    stack[-1].set_xlabel("positive ranks first (% of queries)")
    kinds = [Line2D([], [], color=colour, linewidth=4, label=name) for name, colour in RANKED.items()]
    legend_below(figure, [*kinds, Line2D([], [], label="among keys encoded again", **RENEWED)], 3)
    return settled(figure)


def extremes(table: DataFrame) -> DataFrame:
    """The categories of highest and of lowest accuracy, mean over seeds, those equal in the order of their names.

    Args:
        table: category, accuracy; of one kind of queries.

    Returns:
        category, accuracy, std (over seeds), accuracy_renewed, rank ("highest" or "lowest"), best first: 10 and 5
        categories, of fewer each once.
    """
    means = table.groupby("category").agg(
        accuracy=("accuracy", "mean"), std=("accuracy", "std"), accuracy_renewed=("accuracy_renewed", "mean")
    ).reset_index()
    means = means.sort_values(["accuracy", "category"], ascending=[False, True], ignore_index=True)
    best = means.head(BEST).assign(rank="highest")
    worst = means.iloc[len(best):].tail(WORST).assign(rank="lowest")
    return pd.concat([best, worst], ignore_index=True)


def _ranked(axes: Axes, rows: DataFrame) -> None:
    """Bars downwards, the lowest after a gap."""
    places = rows.index + 0.6 * (rows["rank"] == "lowest")
    axes.barh(places, rows["accuracy"], height=0.75, color=rows["rank"].map(RANKED))
    axes.errorbar(rows["accuracy"], places, xerr=rows["std"], ecolor=INK, fmt="none", elinewidth=0.8)
    axes.plot(rows["accuracy_renewed"], places, **RENEWED)
    names = [textwrap.shorten(str(name), 30, placeholder=" ...") for name in rows["category"]]
    axes.set(yticks=places, yticklabels=names, ylim=(places.max() + 0.7, -0.7))
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
