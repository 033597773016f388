"""CM-ACC's figures, by the table or log that each is drawn from.

Those of tables take rows as `run_table` returns them, one for each row and target: what the rows compare, target, ours,
std, n_seeds, published (percent), preset, dataset. The others take what `logs` returns. All raise ValueError if nothing
is given, or rows of several presets or data sets, and show nothing printed beside bundled data.
"""

import itertools
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame, Series

from repro.audiovisual import CHARACTERS, FREQUENCIES, MODALITIES, synthetic
from repro.data import manifest
from repro.papers.cmacc.logs import UNNAMED
from repro.papers.cmacc.tables import COMPARISONS, NAMES, NOWHERE, merged, pretrained_on
from repro.report import style
from repro.report.printed import printed
from repro.report.redraw import Drawing

METHODS = {
    "scratch": style.Look("Scratch", style.GREY, "v"),
    "supervised": style.Look("Supervised", style.PURPLE, "^"),
    "smoco": style.Look("SMoCo", style.BLUE, "o"),
    "xmoco": style.Look("XMoCo", style.VERMILLION, "s"),
    "cmacc": style.Look("CM-ACC", style.GREEN, "D"),
}
SAMPLERS = {
    "random": style.Look("random", style.BLUE, "o"),
    "ohem": style.Look("least confident (OHEM)", style.VERMILLION, "s"),
    "feature": style.Look("active, features", style.PURPLE, "^"),
    "gradient": style.Look("active, gradients", style.GREEN, "D"),
    "released": style.Look("released code", style.GREY, "v"),
}
SAMPLER_NAMES = {name: look.label for name, look in SAMPLERS.items()}
POST_HOC = {name: SAMPLERS[name] for name in ("random", "ohem", "feature")} | {
    f"gradient {posterior}": style.Look(f"gradients, temperature {posterior}", colour, "")
    for posterior, colour in (("1", style.GREEN), ("0.3", style.SKY), ("0.07", style.ORANGE))
}
PRINTED_LOOKS = {  # of the rows of Tables 4 to 6, by how they were trained
    "Scratch": style.Look("scratch, printed", style.GREY, "v"),
    "others": style.Look("others, printed", style.GREY, "o"),
    "Supervised": style.Look("supervised, printed", style.PURPLE, "^"),
    "CM-ACC": style.Look("CM-ACC, printed", style.GREEN, "D"),
}
JUDGED = {target: f"fine-tuned on {name}" for target, name in {
    **NAMES, "esc10": "ESC10", "synthetic_video": "synthetic, pictures", "synthetic_audio": "synthetic, sound",
}.items()}
JUDGED |= {"characters": "characters, new pairs", "unseen": "characters, drawings never seen"}  # by linear probes
FEWER = ("categories", "distinct", "frequency")  # fields with which pairs share other information than printed
OPEN = {"markerfacecolor": "white"}
NARROWEST = 10.0  # percentage points that an axis spans at least: values a hair apart would have ticks of many digits
APART = 0.02     # of an axis, between the places of two lines: no error bar hides another
EXPECTED = Line2D([], [], color=style.INK, linestyle="--", label="uniform draws, closed form")
REPLACED = Line2D([], [], color=style.INK, linestyle="--", label="uniform draws with replacement")
WITH_REPLACEMENT = 4  # the last version of the training whose closed form is of other draws than selection makes
RANKED = {
    "highest": style.Look("highest", style.BLUE, "o"),
    "lowest": style.Look("lowest", style.VERMILLION, "s"),
}
RENEWED = {"color": style.INK, "marker": "o", "markersize": 3, "linestyle": "none", "clip_on": False, **OPEN}
BEST, WORST = 10, 5  # categories that Fig. 6 shows
SEEN = {"video": "pictures", "audio": "sound"}  # what a network is given of a clip
GRIDS = {"video": "grid 1", "audio": "grid 2"}  # of a pair of characters
TILES = 3  # negatives of a row, as in the paper


@style.styled()
def cross_modal(table: DataFrame) -> Figure:
    """Accuracy after pre-training within or across modalities, with and without the extra layer (fcl) and with
    negatives selected at random or actively, by where the encoder was fine-tuned; of grids of characters, of linear
    probes.

    Source: Tables 1 and 2.
    """
    return style.settled(_beside_print(table, "approach", {name: name for name in dict.fromkeys(table["approach"])}))


@style.styled()
def ohem_vs_active(table: DataFrame) -> Figure:
    """Accuracy by how the M negatives of a step are selected: at random, the keys that are least confident which query
    they resemble (OHEM as printed), or actively; against M where there are several. On grids of characters it is that
    of linear probes.

    Source: Table 3.
    """
    if table["batch"].nunique() != 1:
        return style.settled(_accuracies(table, "batch", "negatives selected in a step, M", "sampler", SAMPLERS))
    figure = _beside_print(table, "sampler", SAMPLER_NAMES)
    figure.suptitle(f"{figure.get_suptitle()}\nM = {table['batch'].iloc[0]} negatives selected in a step")
    return style.settled(figure)


@style.styled()
def dictionary_size(table: DataFrame) -> Figure:
    """Accuracy against the size of the dictionary; of grids of characters, of linear probes. The paper shows this as a
    curve without its values, so that there is nothing to compare with.

    Source: Fig. 3b.
    """
    return style.settled(_accuracies(table, "dictionary", "entries of the dictionary", "method", METHODS))


@style.styled()
def mutual_information(table: DataFrame) -> Figure:
    """Accuracy of probes that read characters from grids, of new pairs and of drawings never seen in training, against
    the number of characters and the information (nats) that the two grids of a pair share; without the latter where
    pairs are drawn otherwise than the paper's. The paper shows this as a curve without its values, so that there is
    nothing to compare with.

    Source: Fig. 3a.
    """
    figure = _accuracies(table, "characters", "characters in a grid", "method", METHODS, scale="linear")
    numbers, departures = sorted(set(table["characters"])), " ".join(style.departures_in_words(table))
    if not any(f"{field}=" in departures for field in FEWER):
        shared = [nats(manifest.plain(style.only(table, "dataset")), number) for number in numbers]
        name = "information that a pair shares (nats)"
        style.ticks_above(figure.axes[0], numbers, [f"{value:.1f}" for value in shared], name)
    return style.settled(figure)


def nats(dataset: str, characters: int) -> float:
    """Mutual information of the two grids of a pair: the sum of the logarithms of the sizes of their alphabets."""
    if dataset == "multidigits":
        return characters * math.log(10)
    return float(printed("spatial_multiomniglot_mi").set_index("n_characters").loc[characters, "MI_nats"])


def _beside_print(table: DataFrame, name: str, called: Mapping[str, str]) -> Figure:
    """A panel for each target, accuracy across, a line for each value of `name`; it is not laid out yet."""
    values = style.in_order(table[name], called)
    figure, panels = _panel_each(table, 0.55 + 0.16 * len(values), grid="x")
    for axes, _, rows in panels:
        places = rows[name].map(values.index)
        style.draw_ours(axes, places, rows, style.OURS, down=True)
        style.draw_published(axes, places, rows["published"], style.PRINTED, down=True)
        style.names_down(axes, [called.get(value, value) for value in values])
        _accuracy_across(axes)
    keys = figure.axes[0].get_legend_handles_labels()[0]
    style.legend_below(figure, keys if len(keys) > 1 else [], 2)
    return figure


def _accuracies(
    table: DataFrame, across: str, label: str, name: str, looks: Mapping[str, style.Look], scale: str = "log"
) -> Figure:
    """A panel for each target, accuracy against a column, which `label` names, on an axis that is "log" or "linear"; a
    line for each value of `name`. It is not laid out yet.
    """
    table, values = table.sort_values(across), sorted(set(table[across]))
    looks = style.looks_of(table[name], looks)
    figure, panels = _panel_each(table, 1.3, grid="y", sharex=True)
    for axes, _, target_rows in panels:
        lines = style.lines_of(target_rows, name, looks)
        for number, (value, rows) in enumerate(lines):
            places = _beside(rows[across], values, APART * (number - (len(lines) - 1) / 2), scale)
            style.draw_ours(axes, places, rows, looks[value], "-")
            style.draw_published(axes, places, rows["published"], looks[value].called(", printed"), "--")
        axes.set(xscale=scale, ylabel="accuracy (%)")
        axes.margins(y=0.1)
        axes.set_xticks(values, labels=[f"{value:,}" for value in values])
        axes.minorticks_off()
    axes.set_xlabel(label)
    keys = style.keys_of(looks, table[name])
    if style.comparable(table).notna().any():
        keys.append(Line2D([], [], color=style.GREY, marker="o", linestyle="--", label="printed", **OPEN))
    style.legend_below(figure, keys, 2)
    return figure


def _beside(places: Series, values: Sequence[float], share: float, scale: str) -> Series:
    """Places on an axis of these sorted values, moved by a share of its length; of a single value it has one unit."""
    if scale == "log":
        return places * max(values[-1] / values[0], 2) ** share
    return places + max(values[-1] - values[0], 1) * share


def _panel_each(
    table: DataFrame, height: float | Sequence[float], **options: Any
) -> tuple[Figure, list[tuple[Axes, str, DataFrame]]]:
    """Panels of targets in their order, `height` inches each: axes, target, and its rows with what may be compared."""
    title = style.heading(table)
    table = table.assign(published=style.comparable(table)) if "published" in table else table
    targets = style.in_order(table["target"], JUDGED)
    heights = [height] * len(targets) if isinstance(height, float) else height
    figure, stack = style.panels(title, 0.9 + sum(heights), len(targets), height_ratios=heights, **options)
    for axes, target in zip(stack, targets, strict=True):
        axes.set_title(JUDGED.get(target, target), loc="left")
    return figure, [(axes, target, table[table["target"] == target])
                    for axes, target in zip(stack, targets, strict=True)]


@style.styled()
def transfer(table: DataFrame) -> Figure:
    """Accuracy after fine-tuning, by what was pre-trained on: ours among the numbers that the paper prints for itself
    and for others.

    A panel for each target; nothing printed is shown beside a part of a set. Methods of ours that were pre-trained on
    the same stand below one another. Source: Tables 4 to 6.
    """
    beside = [pretrained_on(*names) for names in zip(table["method"], table["dataset"], strict=True)]
    table, dataset, shown = table.assign(pretrain_set=beside), style.only(table, "dataset"), {}
    for target in style.in_order(table["target"], JUDGED):  # printed rows, and all sets: none first, then as printed
        others, ours = _printed_rows(dataset, target), table[table["target"] == target]
        sets = dict.fromkeys([*others["pretrain_set"], *ours["pretrain_set"]])
        shown[target] = others, sorted(sets, key=lambda name: name != NOWHERE)
    row, methods = [table["target"], table["pretrain_set"]], style.looks_of(table["method"], METHODS)
    ranks = table["method"].map([*methods].index).groupby(row).rank("dense")  # of the methods in a row
    middle, most = (ranks.groupby(row).transform("max") + 1) / 2, ranks.max()
    table = table.assign(lower=(ranks - middle) / (most + 0.5))
    heights = [0.6 + (0.05 + 0.09 * most) * len(sets) for _, sets in shown.values()]
    figure, panels = _panel_each(table, heights, grid="x")
    for axes, target, ours in panels:
        others, sets = shown[target]
        for kind, rows in style.lines_of(others, "kind", PRINTED_LOOKS):
            places = rows["pretrain_set"].map(sets.index)
            style.draw_published(axes, places, rows["accuracy"], PRINTED_LOOKS[kind], down=True)
        for method, rows in style.lines_of(ours, "method", methods):
            places = rows["pretrain_set"].map(sets.index) + rows["lower"]
            style.draw_ours(axes, places, rows, methods[method], down=True)
        style.names_down(axes, ["none" if name == NOWHERE else name for name in sets])
        axes.set_ylabel("pre-trained on")
        _accuracy_across(axes)
    kinds = pd.concat([others["kind"] for others, _ in shown.values()])
    keys = style.keys_of(PRINTED_LOOKS, kinds, line="none", markerfacecolor="white")
    style.legend_below(figure, [*style.keys_of(methods, table["method"], line="none", ending=", ours"), *keys], 2)
    return style.settled(figure)


def _printed_rows(dataset: str, target: str) -> DataFrame:
    """What Tables 4 to 6 print for a target, each number once: pretrain_set, accuracy, kind; of a part, nothing."""
    column, whole = NAMES.get(target), dataset == manifest.plain(dataset) and not manifest.bundled(dataset)
    parts = [merged(number)[["method", "pretrain_set", column]].set_axis(["kind", "pretrain_set", "accuracy"], axis=1)
             for number, targets in COMPARISONS.items() if column in targets and whole]
    rows = pd.concat([DataFrame({"kind": [], "pretrain_set": [], "accuracy": []}, dtype=object), *parts]).dropna()
    kinds = rows["kind"].str.partition(" (")[0] if len(rows) else rows["kind"]
    return rows.assign(kind=kinds.where(kinds.isin([*PRINTED_LOOKS]), "others")).drop_duplicates()


def _accuracy_across(axes: Axes) -> None:
    """An axis of accuracies whose ticks have few digits."""
    axes.set_xlabel("accuracy (%)")
    axes.margins(x=0.06)
    low, high = axes.get_xlim()
    spare = max(0.0, NARROWEST - (high - low)) / 2
    axes.set_xlim(low - spare, high + spare)


@style.styled()
def category_diversity(table: DataFrame) -> Figure:
    """Distinct categories among the M negatives selected in a step, mean over training, as a share of M; dashed, the
    closed-form expectation of M uniform draws (up to version 4 of the training with replacement).

    `target` is the modality, ours and std count categories, and expected those of M uniform draws. M downwards,
    modalities across. Source: Fig. 4, where it is called the probability of a unique negative.
    """
    shares = table.assign(**{name: 100 * table[name] / table["batch"] for name in ("ours", "std", "expected")})
    title, samplers = style.heading(table), style.in_order(table["sampler"], SAMPLERS)
    batches, modalities = sorted(set(table["batch"])), style.in_order(table["target"], MODALITIES)
    height = 0.9 + len(batches) * (0.6 + 0.16 * len(samplers))
    figure, stack = style.panels(title, height, len(batches), len(modalities), grid="x", sharex="row", sharey=True)
    for axes, (batch, modality) in zip(stack, itertools.product(batches, modalities), strict=True):
        rows = shares[(shares["target"] == modality) & (shares["batch"] == batch)]
        style.draw_ours(axes, rows["sampler"].map(samplers.index), rows, style.OURS, down=True)
        axes.axvline(rows["expected"].mean(), color=style.INK, linestyle="--", linewidth=0.8)
        style.names_down(axes, [SAMPLER_NAMES.get(name, name) for name in samplers])
        axes.set_title(_side(modality, table) if batch == batches[0] else "", loc="left")
        axes.set_xlabel(f"categories,\n% of M = {batch}")
        axes.margins(x=0.1)
    style.legend_below(figure, [figure.axes[0].get_legend_handles_labels()[0][0], _expected(table)], 2)
    return style.settled(figure)


def _expected(rows: DataFrame) -> Line2D:
    """What the legend says of the closed form that was stored with some rows."""
    return REPLACED if min(rows.get("version", ()), default=math.inf) <= WITH_REPLACEMENT else EXPECTED


def _side(modality: str, rows: DataFrame) -> str:
    """What the negatives of a modality are of; of pairs of grids the two are no pictures and sounds."""
    characters = manifest.plain(style.only(rows, "dataset")) in CHARACTERS
    return f"negatives of {GRIDS[modality] if characters else modality}"


@style.styled()
def category_curves(log: DataFrame) -> Figure:
    """Distinct categories among the M negatives selected in a step, along training: means over seeds, with a band of
    one standard deviation; dashed, the closed-form expectation of M uniform draws (up to version 4 of the training with
    replacement).

    Takes what `logs.category_curves` returns; M and how frequent categories are downwards, modalities across. Source:
    Fig. 2.
    """
    counts = log.groupby("frequency")["seed"].nunique()
    fewest = f"{counts.min()} to " if counts.min() < counts.max() else ""
    seeds = "1 seed" if counts.max() == 1 else f"mean {style.PLUS_MINUS} std of {fewest}{counts.max()} seeds"
    looks = style.looks_of(log["sampler"], SAMPLERS)
    samplers = [name for name, _ in style.lines_of(log, "sampler", looks)]
    pools = [*log.groupby(["frequency", "batch"])]
    single = log["step"].nunique() == 1  # a line through one report would not be seen
    figure, stack = style.panels(style.heading(log, seeds), 1.0 + 1.4 * len(pools), len(pools), len(MODALITIES),
                                 grid="y", sharex=True, sharey="row")
    for axes, (((frequency, batch), rows), modality) in zip(stack, itertools.product(pools, MODALITIES), strict=True):
        seaborn.lineplot(rows, x="step", y=f"categories_{modality}", hue="sampler", hue_order=samplers, errorbar="sd",
                         palette=[looks[name].colour for name in samplers], legend=False, linewidth=0.8, ax=axes,
                         marker="o" if single else "", markeredgewidth=0, err_kws={"linewidth": 0})
        axes.axhline(rows["expected"].mean(), color=style.INK, linestyle="--", linewidth=0.8)
        kind = "" if len(counts) == 1 and frequency in (FREQUENCIES[0], UNNAMED) else f" ({frequency})"
        axes.set(xlabel="iteration", ylabel=f"distinct categories\nof M = {batch}{kind}")
        axes.set_title(_side(modality, log) if rows is pools[0][1] else "", loc="left")
        axes.set_ylim(bottom=max(0, axes.get_ylim()[0]))  # a band may reach below
        axes.locator_params(axis="y", nbins=6)
        axes.locator_params(axis="x", integer=True, min_n_ticks=1)
        axes.label_outer()
    style.legend_below(figure, [_expected(log), *style.keys_of(looks, samplers, marked=False)], 2)
    return style.settled(figure)


@style.styled()
def post_hoc_diversity(log: DataFrame) -> Figure:
    """Distinct categories among M negatives chosen with an encoder of XMoCo along its training, by how they are chosen,
    from pools in which categories are equally frequent (left) and have Zipf's frequencies (right); dashed, uniform
    draws in closed form. Below, for every M and encoder, how many more than these are counted, against what is
    predicted of choices by distance from how far apart a category lies, within over between.

    Takes what `logs.post_hoc_diversity` returns; mean and standard deviation over seeds. Source: Figs. 2 and 4.
    """
    log, colours = log.assign(choice=_choices(log)), {name: look.colour for name, look in POST_HOC.items()}
    batches, frequencies, seeds = sorted(set(log["batch"])), sorted(set(log["frequency"])), log["seed"].nunique()
    title = style.origin(log, style.seeds_named(log) if seeds == 1 else f"mean {style.PLUS_MINUS} std of {seeds} seeds")
    shape = len(batches) + 1, len(frequencies)
    figure, stack = style.panels(title, 1.3 + 1.2 * shape[0], *shape, grid="y")
    places = zip(stack, itertools.product(batches, frequencies), strict=False)
    for axes, (batch, frequency) in places:
        rows = log[(log["frequency"] == frequency) & (log["batch"] == batch)]
        seaborn.pointplot(rows[rows["measure"] == "categories"], x="step", y="value", hue="choice", palette=colours,
                          hue_order=[*POST_HOC], errorbar="sd", dodge=0.4, legend=False, linewidth=0.8, marker=".",
                          markersize=3, ax=axes)
        axes.axhline(rows.loc[rows["measure"] == "expected", "value"].mean(), color=style.INK, linestyle="--",
                     linewidth=0.8)
        axes.set_title(frequency if batch == batches[0] else "", loc="left")
        axes.set(xlabel="step of training" if batch == batches[-1] else "",
                 ylabel=f"distinct categories\nof M = {batch}" if frequency == frequencies[0] else "")
    wide = log.pivot_table("value", ["frequency", "choice", "batch", "step", "seed"], "measure").dropna()
    gains = wide.sub(wide["expected"], axis=0)
    for axes, frequency in zip(stack[-len(frequencies):], frequencies, strict=True):
        for choice, points in gains.loc[frequency].groupby("choice"):
            axes.plot(points["predicted"], points["categories"], ".", color=colours[choice], markersize=3)
        axes.axline((0, 0), slope=1, color=style.GREY, linewidth=0.6)
        axes.set(xlabel="categories above\nchance, predicted",
                 ylabel="categories above\nchance, counted" if frequency == frequencies[0] else "")
    equal = Line2D([], [], color=style.GREY, linewidth=0.6, label="as predicted")
    style.legend_below(figure, [*style.keys_of(POST_HOC, log["choice"], marked=False), EXPECTED, equal], 2)
    return style.settled(figure)


def _choices(log: DataFrame) -> list[str]:
    """What samplers are called with the temperature of their posterior, in `POST_HOC`."""
    pairs = zip(log["sampler"], log["posterior"], strict=True)
    return [f"{sampler} {posterior:g}" if sampler == "gradient" else sampler for sampler, posterior in pairs]


@style.styled()
def pretext_accuracy(table: DataFrame) -> Figure:
    """How often the positive of a query ranks first among the keys of the dictionary, by category: the categories in
    which this succeeds most and least often (filled markers). Open ones: the same among the keys of the dictionary's
    items encoded again, which a query cannot tell from its positive by their age.

    Takes what `logs.pretext_accuracy` returns, of one method; of several seeds mean and deviation are shown. Source:
    Fig. 6.
    """
    seeds, method = table["seed"].nunique(), style.looks_of(table["method"], METHODS)[style.only(table, "method")].label
    number = "1 seed" if seeds == 1 else f"mean {style.PLUS_MINUS} std of {seeds} seeds"
    ranked = {query: extremes(table[table["query"] == query])
              for query in style.in_order(table["query"], MODALITIES)}
    heights = [0.6 + 0.14 * len(rows) for rows in ranked.values()]
    figure, stack = style.panels(style.origin(table, f"{method}, {number}"), 0.8 + sum(heights), len(ranked), grid="x",
                                 sharex=True, height_ratios=heights)
    for axes, (query, rows) in zip(stack, ranked.items(), strict=True):
        for rank, of_rank in style.lines_of(rows.rename(columns={"accuracy": "ours"}), "rank", RANKED):
            style.draw_ours(axes, of_rank.index, of_rank, RANKED[rank], down=True)
        axes.plot(rows["accuracy_renewed"], rows.index, **RENEWED)
        style.names_down(axes, [textwrap.shorten(str(name), 30, placeholder=" ...") for name in rows["category"]])
        axes.set_title(f"queries of {query}", loc="left")
    axes.set_xlabel("positive ranks first (% of queries)")
    kinds = style.keys_of(RANKED, RANKED, line="none")
    style.legend_below(figure, [*kinds, Line2D([], [], label="among keys encoded again", **RENEWED)], 3)
    return style.settled(figure)


def extremes(table: DataFrame) -> DataFrame:
    """The 10 categories of highest and 5 of lowest accuracy, mean over seeds, best first and then by name; none twice.

    Returns:
        category, accuracy, std (over seeds), accuracy_renewed, rank ("highest" or "lowest").
    """
    means = table.groupby("category", as_index=False).agg(
        accuracy=("accuracy", "mean"), std=("accuracy", "std"), accuracy_renewed=("accuracy_renewed", "mean"))
    means = means.sort_values(["accuracy", "category"], ascending=[False, True], ignore_index=True)
    best = means.head(BEST).assign(rank="highest")
    return pd.concat([best, means[BEST:].tail(WORST).assign(rank="lowest")], ignore_index=True)


@style.styled()
def selected_negatives(table: DataFrame, pictures: Mapping[int, np.ndarray], modality: str = "video") -> Figure:
    """A row for each sampler: a query, and three negatives that are selected for it, with the norms of their gradients.

    Args:
        table: of `logs.selected_negatives`, of one seed.
        pictures: by item, (H, W, 3) uint8, of all in `shown` and their nearest.
        modality: of the negatives; queries are of the other one. Sounds are shown by the picture of their clip.

    Source: Fig. 5.
    """
    query, = SEEN.keys() - {modality}
    seed, rows = style.only(table, "seed"), shown(table[table["modality"] == modality])
    looks = style.looks_of(rows["sampler"], SAMPLERS)
    samplers = [name for name, _ in style.lines_of(rows, "sampler", looks)]
    title = (f"{style.origin(table, f'seed {seed}')}\n"
             f"queries of {SEEN[query]}, negatives of {SEEN[modality]} with norms of gradients")
    shape = len(samplers), 1 + TILES
    figure, stack = style.panels(title, 0.5 + 1.3 * len(samplers), *shape)
    for line, sampler in zip(np.reshape(stack, shape), samplers, strict=True):
        picks = rows[rows["sampler"] == sampler]
        line[0].set_ylabel(textwrap.fill(looks[sampler].label, 16))
        _tile(line[0], pictures[picks["nearest"].iloc[0]], "query", picks["nearest_category"].iloc[0])
        line[0].spines[:].set(visible=True, color=style.BLUE, linewidth=1.5)
        for axes, row in zip(line[1:], picks.itertuples(), strict=False):
            _tile(axes, pictures[row.item], f"{row.gradient_norm:.3g}", row.category)
        for axes in line[1 + len(picks):]:
            axes.set_visible(False)
    return style.settled(figure)


def shown(table: DataFrame) -> DataFrame:
    """What the figure shows of the picks of one modality.

    Returns:
        Of every sampler the rows of the query that most of its picks are nearest to, the first one of equals: those of
        the largest, the middle and the smallest gradient, in this order; of fewer each once.
    """
    parts = []
    for _, picks in table.groupby("sampler", sort=False):
        query = picks["nearest"].mode().min()
        ranked = picks[picks["nearest"] == query].sort_values(["gradient_norm", "item"], ascending=[False, True])
        parts.append(ranked.iloc[sorted({0, len(ranked) // 2, len(ranked) - 1})])
    return pd.concat(parts, ignore_index=True)


def by_sampler(table: DataFrame) -> DataFrame:
    """What tells the samplers' picks apart, one row per modality and sampler.

    Returns:
        modality, sampler, picks, their distinct categories, the median of gradient_norm and of smaller (percent of the
        candidates whose gradient is smaller), and same_category: percent of the picks of the category of the query
        that they are nearest to.
    """
    same = 100.0 * (table["category"] == table["nearest_category"])
    groups = table.assign(same_category=same).groupby(["modality", "sampler"], sort=False, as_index=False)
    return groups.agg(
        picks=("item", "size"), categories=("category", "nunique"), gradient_norm=("gradient_norm", "median"),
        smaller=("smaller", "median"), same_category=("same_category", "mean"),
    )


def _tile(axes: Axes, picture: np.ndarray, above: str, category: str | int) -> None:
    """A picture between two texts; categories such as "PlayingGuitar" and "ride_bike" are broken into words."""
    words = re.sub("(?<=[a-z])(?=[A-Z])|_", " ", str(category))
    below = textwrap.fill(words, 12, max_lines=3, placeholder=" ...", break_long_words=False)
    axes.imshow(picture, interpolation="nearest")
    axes.set(xticks=[], yticks=[], title=above, xlabel=below)
    axes.spines[:].set_visible(False)


def bundled_negatives(log: DataFrame) -> Figure:
    """Negatives that every sampler selects from one pool, as pictures, below the norm of the gradient that each causes
    in the last layer. A row has the query that is nearest to most of what its sampler selects, and of these negatives
    those of the largest, the middle and the smallest gradient.

    Of clips that come with the package, whose frames in the middle are filmed again.
    """
    rows = shown(log[log["modality"] == "video"])
    items = sorted({*rows["item"], *rows["nearest"]})
    middle = synthetic.pictures(items)[:, synthetic.FRAMES // 2]
    return selected_negatives(log, dict(zip(items, middle, strict=True)))


def of_bundled_clips(log: DataFrame) -> DataFrame:
    """Pictures of real clips are not ours to publish: none of their rows."""
    return log[[style.only(log, "dataset") == "synthetic"] * len(log)]


FIGURES = {draw.__name__: Drawing(draw) for draw in (
    cross_modal, ohem_vs_active, dictionary_size, mutual_information, transfer, category_diversity, category_curves,
    post_hoc_diversity, pretext_accuracy,
)} | {"selected_negatives": Drawing(bundled_negatives, of_bundled_clips)}
