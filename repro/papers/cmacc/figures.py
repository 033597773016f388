"""CM-ACC's figures, by the table or log that each is drawn from."""

import math
import re
import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from repro.audiovisual import synthetic
from repro.data import manifest
from repro.papers.cmacc.comparison import METHODS as METHOD_NAMES
from repro.papers.cmacc.comparison import NAMES, NOWHERE, TARGETS, merged, pretrained_on
from repro.report.printed import printed
from repro.report.redraw import Drawing
from repro.report.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PURPLE,
    VERMILLION,
    Look,
    comparable,
    draw_ours,
    draw_published,
    heading,
    in_order,
    keys_of,
    legend_below,
    lines_of,
    names_down,
    only,
    origin,
    panels,
    settled,
    styled,
)

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
COUNTED = ("categories_video", "categories_audio")
MODALITIES = ("video", "audio")
EXPECTED = Line2D([], [], color=INK, linestyle="--", label="uniform draws, closed form")
RANKED = {"highest": BLUE, "lowest": VERMILLION}
RENEWED = {"color": INK, "marker": "o", "markerfacecolor": "white", "markersize": 3, "linestyle": "none"}
RENEWED |= {"clip_on": False}  # whole at 0 and at 100, too
BEST, WORST = 10, 5  # categories that Fig. 6 shows
SEEN = {"video": "pictures", "audio": "sound"}  # what a network is given of a clip
TILES = 3  # negatives of a row, as in the paper
WITHOUT_REPLACEMENT = 5  # the version of the training whose expectation is of draws as they are made


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
    figure, stack = panels(title, height, len(targets), grid="x")
    for axes, target in zip(stack, targets, strict=True):
        rows = table[table["target"] == target]
        places = rows["approach"].map(approaches.index)
        draw_ours(axes, places, rows, BLUE, "o", "ours", line="none", down=True)
        draw_published(axes, places, rows["published"], VERMILLION, "D", "printed", line="none", down=True)
        names_down(axes, approaches)
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
    figure, (axes,) = panels(title, 3.0, grid="y")
    for method, rows in lines_of(table, "method", METHODS):
        label, colour, marker = METHODS[method]
        draw_ours(axes, rows["characters"], rows, colour, marker, label, line="-")
        looks = {"color": colour, "marker": marker, "markersize": 3, "linestyle": "--", "linewidth": 0.7}
        axes.plot(rows["characters"], rows["linear_held_out"], **looks, **OPEN)
    numbers = sorted(set(table["characters"]))
    axes.set(xlabel="characters in a grid", xticks=numbers, ylabel="accuracy of a character (%)")
    axes.margins(x=0.08)
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
    rows_of_targets = {target: (_printed_of(table, target), table[table["target"] == target]) for target in targets}
    sets = {target: _sets(*rows) for target, rows in rows_of_targets.items()}
    heights = [0.6 + 0.14 * len(names) for names in sets.values()]
    figure, stack = panels(title, 0.9 + sum(heights), len(rows_of_targets), grid="x", height_ratios=heights)
    for axes, (target, (others, ours)) in zip(stack, rows_of_targets.items(), strict=True):
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
        names_down(axes, ["none" if name == NOWHERE else name for name in names])
        axes.set_ylabel("pre-trained on")
        _accuracy_across(axes, target)
    kinds = {kind for others, _ in rows_of_targets.values() for kind in others["kind"]}
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=f"{kind}, printed", **OPEN)
        for kind, (colour, marker) in PRINTED_LOOKS.items() if kind in kinds
    ]
    legend_below(figure, [*keys_of(METHODS, table["method"], line="none", ending=", ours"), *handles], 2)
    return settled(figure)


def _accuracies(table: DataFrame, across: str, name: str, looks: Mapping[str, Look]) -> tuple[Figure, list[Axes]]:
    """A panel for each target, accuracy against a column on a logarithmic axis, a line for each value of `name`."""
    title = heading(table)
    table = with_unseen(table.assign(published=comparable(table))).sort_values(across)
    targets, values = in_order(table["target"], TARGET_NAMES | PROBED), sorted(set(table[across]))
    figure, stack = panels(title, 1.0 + 1.25 * len(targets), len(targets), grid="y", sharex=True)
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
    height = 0.9 + 1.3 * len(modalities)
    figure, stack = panels(title, height, len(modalities), grid="y", sharex=True, sharey=True)
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
    shape = len(batches), len(COUNTED)
    figure, stack = panels(title, 1.0 + 1.15 * len(batches), *shape, grid="y", sharex=True, sharey="row")
    rows_of_panels = np.reshape(stack, shape)
    for row, batch in zip(rows_of_panels, batches, strict=True):
        chosen = log[log["batch"] == batch]
        for axes, column in zip(row, COUNTED, strict=True):
            for sampler, rows in lines_of(chosen, "sampler", SAMPLERS):
                means, look = rows.groupby("step")[column].mean(), SAMPLERS[sampler]
                marker = look.marker if len(means) == 1 else ""  # no line through a single report
                axes.plot(means.index, means, color=look.colour, linewidth=0.8, marker=marker)
            for expected in chosen["expected"].unique():
                axes.axhline(expected, color=INK, linestyle="--", linewidth=0.8)
        row[0].set_ylabel(f"distinct categories\nof M = {batch}")
    for axes, column in zip(rows_of_panels[0], COUNTED, strict=True):
        axes.set_title(f"negatives of {column.removeprefix('categories_')}", loc="left")
    for axes in rows_of_panels[-1]:
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
    ranked = {query: extremes(table[table["query"] == query]) for query in in_order(table["query"], MODALITIES)}
    heights = [0.6 + 0.14 * len(rows) for rows in ranked.values()]
    figure, stack = panels(title, 0.8 + sum(heights), len(ranked), grid="x", sharex=True, height_ratios=heights)
    for axes, (query, rows) in zip(stack, ranked.items(), strict=True):
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
    names_down(axes, names, places)


@styled()
def selected_negatives(table: DataFrame, pictures: Mapping[int, np.ndarray], modality: str = "video") -> Figure:
    """A row for each sampler: a query, and three negatives that are selected for it, with the norms of their gradients.

    Args:
        table: of `audiovisual.figure_data.selected_negatives`, of one seed: modality, sampler, item, category,
            gradient_norm, nearest, nearest_category, seed, preset, dataset.
        pictures: by item, (H, W, 3) uint8, of all in `shown` and their nearest.
        modality: of the negatives; queries are of the other one. Sounds are shown by the picture of their clip.

    Raises:
        ValueError: if the table is empty or mixes seeds, presets or data sets.

    Source: CM-ACC, Fig. 5.
    """
    query, = SEEN.keys() - {modality}
    seed = only(table, "seed")
    given = f"queries of {SEEN[query]}, negatives of {SEEN[modality]} with norms of gradients"
    rows = shown(table[table["modality"] == modality])
    samplers = [name for name in SAMPLERS if name in set(rows["sampler"])]
    names = [_broken(name) for name in {*rows["category"], *rows["nearest_category"]}]
    height = 0.9 + 0.125 * max(len(name.splitlines()) for name in names)
    title, shape = f"{origin(table, f'seed {seed}')}\n{given}", (len(samplers), 1 + TILES)
    figure, stack = panels(title, 0.5 + height * len(samplers), *shape)
    for line, sampler in zip(np.reshape(stack, shape), samplers, strict=True):
        chosen = rows[rows["sampler"] == sampler]
        first, tiles = chosen.iloc[0], line[1:]
        line[0].set_ylabel(SAMPLERS[sampler].label.replace(", ", ",\n").replace(" (", "\n("))
        _tile(line[0], pictures[first["nearest"]], "query", first["nearest_category"])
        line[0].spines[:].set(visible=True, color=BLUE, linewidth=1.5)
        for axes, row in zip(tiles, chosen.itertuples(), strict=False):
            norm = f"{row.gradient_norm:,.0f}" if 100 <= row.gradient_norm < 1e6 else f"{row.gradient_norm:.3g}"
            _tile(axes, pictures[row.item], norm, row.category)
        for axes in tiles[len(chosen):]:
            axes.set_visible(False)
    return settled(figure)


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
    groups = table.assign(same_category=same).groupby(["modality", "sampler"], sort=False)
    return groups.agg(
        picks=("item", "size"),
        categories=("category", "nunique"),
        gradient_norm=("gradient_norm", "median"),
        smaller=("smaller", "median"),
        same_category=("same_category", "mean"),
    ).reset_index()


def drawn_again(table: DataFrame) -> dict[int, np.ndarray]:
    """The pictures of the embedded clips that the figure shows, in the middle of each clip, from their generator."""
    rows = shown(table[table["modality"] == "video"])
    items = sorted({*rows["item"], *rows["nearest"]})
    return dict(zip(items, synthetic.pictures(items)[:, synthetic.FRAMES // 2], strict=True))


def _tile(axes: Axes, picture: np.ndarray, above: str, below: str) -> None:
    """A picture between two texts."""
    axes.imshow(picture, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.set_title(above)
    axes.set_xlabel(_broken(below))
    axes.spines[:].set_visible(False)


def _broken(name: str | int) -> str:
    """A category, such as "rolled, lead", "PlayingGuitar", "ride_bike" or the digit 7, in lines as wide as a tile.

    Parts between commas have lines of their own, three at most.
    """
    parts = re.sub("(?<=[a-z])(?=[A-Z])|_", " ", str(name)).replace(", ", ",\n").splitlines()
    fitting = {"width": 12, "max_lines": 3, "placeholder": " ...", "break_long_words": False}
    return "\n".join(textwrap.fill(part, **fitting) for part in parts)


def of_embedded_clips(log: DataFrame) -> DataFrame:
    """Pictures of real clips are not ours to publish: none of their rows."""
    return log[[only(log, "dataset") == "synthetic"] * len(log)]


def embedded_negatives(log: DataFrame) -> Figure:
    """The picks of clips that come with the package, which are filmed again."""
    return selected_negatives(log, drawn_again(log))


def draws_in_words(cells: DataFrame) -> str:
    """A sentence of the caption: which uniform draws the expectation is of, by the cells' versions of the training."""
    earlier = cells["version"] < WITHOUT_REPLACEMENT
    if earlier.all():
        return "The draws of the expectation are with replacement."
    exception = f", up to version {WITHOUT_REPLACEMENT - 1} of the training with replacement" if earlier.any() else ""
    return f"The draws of the expectation are without replacement{exception}."


FIGURES = {
    "cross_modal": Drawing(
        cross_modal,
        "Accuracy after pre-training within or across modalities, with and without the extra layer (fcl) and with "
        "negatives selected at random or actively, by where the encoder was fine-tuned; of grids of characters, of "
        "linear probes.",
    ),
    "ohem_vs_active": Drawing(
        ohem_vs_active,
        "Accuracy against the number M of negatives selected in a step, by how they are selected: at random, the "
        "keys that are least confident which query they resemble (OHEM as printed), or actively; of grids of "
        "characters, of linear probes.",
    ),
    "dictionary_size": Drawing(
        dictionary_size,
        "Accuracy against the size of the dictionary; of grids of characters, of linear probes. The paper shows this "
        "as a curve without its values, so that there is nothing to compare with.",
    ),
    "mutual_information": Drawing(
        mutual_information,
        "Accuracy of probes that read characters from grids, against the number of characters and the information "
        "(nats) that the two grids of a pair share; dashed, drawings never seen in training. The paper shows this as "
        "a curve without its values, so that there is nothing to compare with.",
    ),
    "transfer": Drawing(
        transfer,
        "Accuracy after fine-tuning, by what was pre-trained on: ours among the numbers that the paper prints for "
        "itself and for others.",
    ),
    "category_diversity": Drawing(
        category_diversity,
        "Distinct categories among the M negatives selected in a step, mean over training, as a share of M; dashed, "
        "the closed-form expectation of M uniform draws.",
        also=draws_in_words,
    ),
    "category_curves": Drawing(
        category_curves,
        "Distinct categories among the M negatives selected in a step, along training; dashed, the closed-form "
        "expectation of M uniform draws.",
        also=draws_in_words,
    ),
    "pretext_accuracy": Drawing(
        pretext_accuracy,
        "How often the positive of a query ranks first among the keys of the dictionary, by category: the categories "
        "in which this succeeds most and least often. Markers: the same among the keys of the dictionary's items "
        "encoded again, which a query cannot tell from its positive by their age.",
    ),
    "selected_negatives": Drawing(
        embedded_negatives,
        "Negatives that every sampler selects from one pool, as pictures, below the norm of the gradient that each "
        "causes in the last layer. A row has the query that is nearest to most of what its sampler selects, and of "
        "these negatives those of the largest, the middle and the smallest gradient.",
        of_embedded_clips,
    ),
}
