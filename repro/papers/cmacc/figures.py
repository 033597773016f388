"""CM-ACC's figures, by the table or log that each is drawn from.

Those of tables take rows as `run_table` returns them, one for each row and target: what the rows compare, target, ours,
std, n_seeds, published (percent), preset, dataset. The others take what `logs` returns. All raise ValueError if nothing
is given, or rows of several presets or data sets, and show nothing printed beside bundled data.
"""

import math
import re
import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from repro.audiovisual import MODALITIES, synthetic
from repro.data import manifest
from repro.papers.cmacc.tables import COMPARISONS, NAMES, NOWHERE, PRINTED_METHODS, merged, pretrained_on
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
    name: Look(PRINTED_METHODS[name], colour, marker)
    for name, colour, marker in (("scratch", GREY, "v"), ("supervised", PURPLE, "^"), ("smoco", BLUE, "o"),
                                 ("xmoco", VERMILLION, "s"), ("cmacc", GREEN, "D"))
}
SAMPLERS = {
    "random": Look("random", BLUE, "o"),
    "ohem": Look("least confident (OHEM)", VERMILLION, "s"),
    "feature": Look("active, features", PURPLE, "^"),
    "gradient": Look("active, gradients", GREEN, "D"),
    "released": Look("released code", GREY, "v"),
}
PRINTED_LOOKS = {  # of the rows of Tables 4 to 6, by how they were trained
    "Scratch": Look("scratch, printed", GREY, "v"), "others": Look("others, printed", GREY, "o"),
    "Supervised": Look("supervised, printed", PURPLE, "^"), "CM-ACC": Look("CM-ACC, printed", GREEN, "D"),
}
JUDGED = {target: f"fine-tuned on {name}" for target, name in {
    **NAMES, "esc10": "ESC10", "synthetic_video": "synthetic, pictures", "synthetic_audio": "synthetic, sound",
}.items()}
JUDGED |= {"characters": "characters, new pairs", "unseen": "characters, drawings never seen"}  # by linear probes
OPEN = {"markerfacecolor": "white"}
NARROWEST = 10.0  # percentage points that an axis spans at least: values a hair apart would have ticks of many digits
APART = 1.03     # factor between the places of two lines on a logarithmic axis, so that no error bar hides another
EXPECTED = Line2D([], [], color=INK, linestyle="--", label="uniform draws, closed form")
COUNTED = [f"categories_{modality}" for modality in MODALITIES]
RANKED = {"highest": BLUE, "lowest": VERMILLION}
RENEWED = {"color": INK, "marker": "o", "markersize": 3, "linestyle": "none", "clip_on": False, **OPEN}
BEST, WORST = 10, 5  # categories that Fig. 6 shows
SEEN = {"video": "pictures", "audio": "sound"}  # what a network is given of a clip
TILES = 3  # negatives of a row, as in the paper
WITHOUT_REPLACEMENT = 5  # the version of the training whose expectation is of draws as they are made


@styled()
def cross_modal(table: DataFrame) -> Figure:
    """Accuracy of every approach, ours beside the printed one, a panel for each target. Source: Tables 1 and 2."""
    title, table = heading(table), with_unseen(table.assign(published=comparable(table)))
    approaches, targets = list(dict.fromkeys(table["approach"])), in_order(table["target"], JUDGED)
    figure, stack = panels(title, 0.8 + (0.55 + 0.16 * len(approaches)) * len(targets), len(targets), grid="x")
    for axes, target in zip(stack, targets, strict=True):
        rows = table[table["target"] == target]
        places = rows["approach"].map(approaches.index)
        draw_ours(axes, places, rows, BLUE, "o", "ours", line="none", down=True)
        draw_published(axes, places, rows["published"], VERMILLION, "D", "printed", line="none", down=True)
        names_down(axes, approaches)
        _accuracy_across(axes, target)
    legend_below(figure, stack[0].get_legend_handles_labels()[0], 2)
    return settled(figure)


def ohem_vs_active(table: DataFrame) -> Figure:
    """Accuracy against the negatives selected, a line for each sampler, a panel for each target. Source: Table 3."""
    return _accuracies(table, "batch", "negatives selected in a step, M", "sampler", SAMPLERS)


def dictionary_size(table: DataFrame) -> Figure:
    """Accuracy against the size of the dictionary, a line for each method, a panel for each target. Source: Fig. 3b."""
    return _accuracies(table, "dictionary", "entries of the dictionary", "method", METHODS)


@styled()
def _accuracies(table: DataFrame, across: str, called: str, name: str, looks: Mapping[str, Look]) -> Figure:
    """A panel for each target, accuracy against a column on a logarithmic axis, a line for each value of `name`."""
    title, table = heading(table), with_unseen(table.assign(published=comparable(table))).sort_values(across)
    targets, values = in_order(table["target"], JUDGED), sorted(set(table[across]))
    figure, stack = panels(title, 1.0 + 1.25 * len(targets), len(targets), grid="y", sharex=True)
    for axes, target in zip(stack, targets, strict=True):
        lines = lines_of(table[table["target"] == target], name, looks)
        for number, (value, rows) in enumerate(lines):
            label, colour, marker = looks[value]
            places = rows[across] * APART ** (number - (len(lines) - 1) / 2)
            draw_ours(axes, places, rows, colour, marker, label, line="-")
            draw_published(axes, places, rows["published"], colour, marker, f"{label}, printed", line="--")
        axes.set(xscale="log", ylabel="accuracy (%)")
        axes.set_xticks(values, labels=[f"{value:,}" for value in values])
        axes.minorticks_off()
        axes.set_title(JUDGED.get(target, target), loc="left")
    stack[-1].set_xlabel(called)
    beside = [Line2D([], [], color=GREY, marker="o", linestyle="--", label="printed", **OPEN)]
    legend_below(figure, [*keys_of(looks, table[name]), *(beside if table["published"].notna().any() else [])], 2)
    return settled(figure)


@styled()
def mutual_information(table: DataFrame) -> Figure:
    """Accuracy against the number of characters, which above is told in nats; dashed, on drawings never seen.

    Source: Fig. 3a.
    """
    title, table = heading(table), table.sort_values("characters")
    figure, (axes,) = panels(title, 3.0, grid="y")
    for method, rows in lines_of(table, "method", METHODS):
        label, colour, marker = METHODS[method]
        draw_ours(axes, rows["characters"], rows, colour, marker, label, line="-")
        axes.plot(rows["characters"], rows["linear_held_out"], color=colour, marker=marker, markersize=3,
                  linestyle="--", linewidth=0.7, **OPEN)
    numbers = sorted(set(table["characters"]))
    axes.set(xlabel="characters in a grid", xticks=numbers, ylabel="accuracy of a character (%)")
    axes.margins(x=0.08)
    above = axes.secondary_xaxis("top")
    shared = [nats(manifest.plain(only(table, "dataset")), number) for number in numbers]
    above.set_xticks(numbers, labels=[f"{value:.1f}" for value in shared])
    above.set_xlabel("information that a pair shares (nats)")
    above.spines["top"].set_visible(True)
    unseen = Line2D([], [], linestyle="--", label="drawings never seen", color=INK, linewidth=0.7, markersize=3,
                    marker="o", **OPEN)
    legend_below(figure, [*keys_of(METHODS, table["method"]), unseen], 2)
    return settled(figure)


def nats(dataset: str, characters: int) -> float:
    """Mutual information of the two grids of a pair: the sum of the logarithms of the sizes of their alphabets."""
    if dataset == "multidigits":
        return characters * math.log(10)
    return float(printed("spatial_multiomniglot_mi").set_index("n_characters").loc[characters, "MI_nats"])


@styled()
def transfer(table: DataFrame) -> Figure:
    """Accuracy by what was pre-trained on, a panel for each target: ours among the printed numbers of Tables 4 to 6.

    Nothing printed is shown beside a part of a set.
    """
    title, table = heading(table), with_unseen(table)
    beside = [pretrained_on(*names) for names in zip(table["method"], table["dataset"], strict=True)]
    table = table.assign(pretrain_set=beside)
    shown = {}  # the printed rows of a target, ours, and the sets of both: none first, then as printed
    for target in in_order(table["target"], JUDGED):
        others, ours = _printed_rows(only(table, "dataset"), target), table[table["target"] == target]
        sets = dict.fromkeys([*others["pretrain_set"], *ours["pretrain_set"]])
        shown[target] = others, ours, sorted(sets, key=lambda name: name != NOWHERE)
    heights = [0.6 + 0.14 * len(sets) for _, _, sets in shown.values()]
    figure, stack = panels(title, 0.9 + sum(heights), len(shown), grid="x", height_ratios=heights)
    for axes, (target, (others, ours, sets)) in zip(stack, shown.items(), strict=True):
        for kind, rows in lines_of(others, "kind", PRINTED_LOOKS):
            _, colour, marker = PRINTED_LOOKS[kind]
            axes.plot(rows["accuracy"], rows["pretrain_set"].map(sets.index), color=colour, marker=marker,
                      linestyle="none", zorder=1.9, **OPEN)
        for row in ours.itertuples():
            _, colour, marker = METHODS[row.method]
            axes.errorbar(row.ours, sets.index(row.pretrain_set), xerr=row.std, color=colour, marker=marker,
                          markersize=5, elinewidth=0.8)
        names_down(axes, ["none" if name == NOWHERE else name for name in sets])
        axes.set_ylabel("pre-trained on")
        _accuracy_across(axes, target)
    kinds = pd.concat([others["kind"] for others, _, _ in shown.values()])
    keys = [Line2D([], [], color=look.colour, marker=look.marker, linestyle="none", label=look.label, **OPEN)
            for kind, look in PRINTED_LOOKS.items() if kind in set(kinds)]
    legend_below(figure, [*keys_of(METHODS, table["method"], line="none", ending=", ours"), *keys], 2)
    return settled(figure)


def _printed_rows(dataset: str, target: str) -> DataFrame:
    """What Tables 4 to 6 print for a target, each number once: pretrain_set, accuracy, kind; of a part, nothing."""
    column, whole = NAMES.get(target), dataset == manifest.plain(dataset) and not manifest.bundled(dataset)
    parts = [merged(number)[["method", "pretrain_set", column]].set_axis(["kind", "pretrain_set", "accuracy"], axis=1)
             for number, targets in COMPARISONS.items() if column in targets and whole]
    rows = pd.concat(parts).dropna() if parts else DataFrame({"kind": [], "pretrain_set": [], "accuracy": []})
    kinds = rows["kind"].str.partition(" (")[0] if len(rows) else rows["kind"]
    return rows.assign(kind=kinds.where(kinds.isin([*PRINTED_LOOKS]), "others")).drop_duplicates()


def with_unseen(table: DataFrame) -> DataFrame:
    """The rows of a table, those of characters again as target "unseen": on drawings never seen, of which only means
    over seeds are known."""
    if "linear_held_out" not in table:
        return table
    rows = table[table["target"] == "characters"]
    return pd.concat([table, rows.assign(target="unseen", ours=rows["linear_held_out"], std=math.nan)])


def _accuracy_across(axes: Axes, target: str) -> None:
    """What panels with names downwards share."""
    axes.set_title(JUDGED.get(target, target), loc="left")
    axes.set_xlabel("accuracy (%)")
    axes.margins(x=0.06)
    low, high = axes.get_xlim()
    spare = max(0.0, NARROWEST - (high - low)) / 2
    axes.set_xlim(low - spare, high + spare)


@styled()
def category_diversity(table: DataFrame) -> Figure:
    """Distinct categories among the negatives selected in a step, as a share of their number M; a panel per modality.

    `target` is the modality, ours and std count categories, and expected those of M uniform draws.

    Source: Fig. 4, where it is called the probability of a unique negative.
    """
    title, modalities = heading(table), in_order(table["target"], MODALITIES)
    batches, samplers = sorted(set(table["batch"])), [name for name in SAMPLERS if name in set(table["sampler"])]
    shares = table.assign(**{name: 100 * table[name] / table["batch"] for name in ("ours", "std", "expected")})
    width = 0.8 / len(samplers)
    figure, stack = panels(title, 0.9 + 1.3 * len(modalities), len(modalities), grid="y", sharex=True, sharey=True)
    for axes, modality in zip(stack, modalities, strict=True):
        rows = shares[shares["target"] == modality]
        for number, sampler in enumerate(samplers):
            bars, left = rows[rows["sampler"] == sampler], -0.4 + number * width
            axes.bar(bars["batch"].map(batches.index) + left, bars["ours"], width, align="edge", yerr=bars["std"],
                     color=SAMPLERS[sampler].colour, error_kw={"ecolor": INK, "elinewidth": 0.8})
        for batch, expected in rows[["batch", "expected"]].drop_duplicates().itertuples(index=False):
            place = batches.index(batch)
            axes.hlines(expected, place - 0.45, place + 0.45, color=INK, linestyle="--", linewidth=0.8)
        axes.set_title(f"negatives of {modality}", loc="left")
        axes.set(ylabel="distinct categories\n(% of M)", xticks=range(len(batches)), xticklabels=batches)
    stack[-1].set_xlabel("negatives selected in a step, M")
    legend_below(figure, [*keys_of(SAMPLERS, samplers, line="-", width=4, marked=False), EXPECTED], 2)
    return settled(figure)


@styled()
def category_curves(log: DataFrame) -> Figure:
    """Distinct categories among the M negatives selected in a step, along training; M downwards, modalities across.

    Takes what `logs.category_curves` returns; the curves are means over seeds. Source: Fig. 2.
    """
    seeds = log["seed"].nunique()
    title = heading(log, "1 seed" if seeds == 1 else f"mean of {seeds} seeds")
    batches, samplers = sorted(set(log["batch"])), [name for name, _ in lines_of(log, "sampler", SAMPLERS)]
    single, shape = log["step"].nunique() == 1, (len(batches), len(COUNTED))  # no line through a single report
    figure, stack = panels(title, 1.0 + 1.15 * len(batches), *shape, grid="y", sharex=True, sharey="row")
    for row, batch in zip(np.reshape(stack, shape), batches, strict=True):
        of_batch = log[log["batch"] == batch]
        for axes, column in zip(row, COUNTED, strict=True):
            for name in samplers:
                seaborn.lineplot(
                    of_batch[of_batch["sampler"] == name], x="step", y=column, errorbar=None, ax=axes, linewidth=0.8,
                    color=SAMPLERS[name].colour, marker=SAMPLERS[name].marker if single else "", markeredgewidth=0,
                )
            for expected in of_batch["expected"].unique():
                axes.axhline(expected, color=INK, linestyle="--", linewidth=0.8)
            axes.set(xlabel="iteration" if batch == batches[-1] else "", ylabel="")
            axes.locator_params(axis="x", integer=True, min_n_ticks=1)
        row[0].set_ylabel(f"distinct categories\nof M = {batch}")
    for axes, modality in zip(stack, MODALITIES, strict=False):
        axes.set_title(f"negatives of {modality}", loc="left")
    legend_below(figure, [*keys_of(SAMPLERS, samplers, marked=single), EXPECTED], 2)
    return settled(figure)


@styled()
def pretext_accuracy(table: DataFrame) -> Figure:
    """The categories in which a query finds its positive most often, and least often; a panel for queries of each kind.

    Takes what `logs.pretext_accuracy` returns, of one method. Of several seeds mean and deviation are shown. Source:
    Fig. 6.
    """
    seeds, method = table["seed"].nunique(), METHODS[only(table, "method")].label
    number = "1 seed" if seeds == 1 else f"mean \N{PLUS-MINUS SIGN} std of {seeds} seeds"
    title = origin(table, f"{method}, {number}")
    ranked = {query: extremes(table[table["query"] == query]) for query in in_order(table["query"], MODALITIES)}
    heights = [0.6 + 0.14 * len(rows) for rows in ranked.values()]
    figure, stack = panels(title, 0.8 + sum(heights), len(ranked), grid="x", sharex=True, height_ratios=heights)
    for axes, (query, rows) in zip(stack, ranked.items(), strict=True):
        places = rows.index + 0.6 * (rows["rank"] == "lowest")  # after a gap
        axes.barh(places, rows["accuracy"], height=0.75, color=rows["rank"].map(RANKED), xerr=rows["std"],
                  error_kw={"ecolor": INK, "elinewidth": 0.8})
        axes.plot(rows["accuracy_renewed"], places, **RENEWED)
        names_down(axes, [textwrap.shorten(str(name), 30, placeholder=" ...") for name in rows["category"]], places)
        axes.set_title(f"queries of {query}", loc="left")
    stack[-1].set_xlabel("positive ranks first (% of queries)")
    kinds = [Line2D([], [], color=colour, linewidth=4, label=name) for name, colour in RANKED.items()]
    legend_below(figure, [*kinds, Line2D([], [], label="among keys encoded again", **RENEWED)], 3)
    return settled(figure)


def extremes(table: DataFrame) -> DataFrame:
    """The 10 categories of highest and 5 of lowest accuracy, mean over seeds, best first and then by name; none twice.

    Returns:
        category, accuracy, std (over seeds), accuracy_renewed, rank ("highest" or "lowest").
    """
    groups = table.groupby("category", as_index=False)
    means = groups.agg(accuracy=("accuracy", "mean"), std=("accuracy", "std"),
                       accuracy_renewed=("accuracy_renewed", "mean"))
    means = means.sort_values(["accuracy", "category"], ascending=[False, True], ignore_index=True)
    best = means.head(BEST).assign(rank="highest")
    return pd.concat([best, means[BEST:].tail(WORST).assign(rank="lowest")], ignore_index=True)


@styled()
def selected_negatives(table: DataFrame, pictures: Mapping[int, np.ndarray], modality: str = "video") -> Figure:
    """A row for each sampler: a query, and three negatives that are selected for it, with the norms of their gradients.

    Args:
        table: of `logs.selected_negatives`, of one seed.
        pictures: by item, (H, W, 3) uint8, of all in `shown` and their nearest.
        modality: of the negatives; queries are of the other one. Sounds are shown by the picture of their clip.

    Source: Fig. 5.
    """
    query, = SEEN.keys() - {modality}
    seed, rows = only(table, "seed"), shown(table[table["modality"] == modality])
    samplers = [name for name, _ in lines_of(rows, "sampler", SAMPLERS)]
    lines = max(_broken(name).count("\n") + 1 for name in {*rows["category"], *rows["nearest_category"]})
    title = (f"{origin(table, f'seed {seed}')}\nqueries of {SEEN[query]}, negatives of {SEEN[modality]} with norms of "
             "gradients")
    shape = len(samplers), 1 + TILES
    figure, stack = panels(title, 0.5 + (0.9 + 0.125 * lines) * len(samplers), *shape)
    for line, sampler in zip(np.reshape(stack, shape), samplers, strict=True):
        picks = rows[rows["sampler"] == sampler]
        line[0].set_ylabel(SAMPLERS[sampler].label.replace(", ", ",\n").replace(" (", "\n("))
        _tile(line[0], pictures[picks["nearest"].iloc[0]], "query", picks["nearest_category"].iloc[0])
        line[0].spines[:].set(visible=True, color=BLUE, linewidth=1.5)
        for axes, row in zip(line[1:], picks.itertuples(), strict=False):
            norm = f"{row.gradient_norm:,.0f}" if 100 <= row.gradient_norm < 1e6 else f"{row.gradient_norm:.3g}"
            _tile(axes, pictures[row.item], norm, row.category)
        for axes in line[1 + len(picks):]:
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
        picks=("item", "size"), categories=("category", "nunique"), gradient_norm=("gradient_norm", "median"),
        smaller=("smaller", "median"), same_category=("same_category", "mean"),
    ).reset_index()


def _tile(axes: Axes, picture: np.ndarray, above: str, below: str) -> None:
    """A picture between two texts."""
    axes.imshow(picture, interpolation="nearest")
    axes.set(xticks=[], yticks=[], title=above, xlabel=_broken(below))
    axes.spines[:].set_visible(False)


def _broken(name: str | int) -> str:
    """A category, such as "rolled, lead", "PlayingGuitar", "ride_bike" or the digit 7, in lines as wide as a tile.

    Parts between commas have lines of their own, three at most.
    """
    parts = re.sub("(?<=[a-z])(?=[A-Z])|_", " ", str(name)).replace(", ", ",\n").splitlines()
    fitting = {"width": 12, "max_lines": 3, "placeholder": " ...", "break_long_words": False}
    return "\n".join(textwrap.fill(part, **fitting) for part in parts)


def bundled_negatives(log: DataFrame) -> Figure:
    """The picks of clips that come with the package, whose frames in the middle are filmed again."""
    rows = shown(log[log["modality"] == "video"])
    items = sorted({*rows["item"], *rows["nearest"]})
    middle = synthetic.pictures(items)[:, synthetic.FRAMES // 2]
    return selected_negatives(log, dict(zip(items, middle, strict=True)))


def of_bundled_clips(log: DataFrame) -> DataFrame:
    """Pictures of real clips are not ours to publish: none of their rows."""
    return log[[only(log, "dataset") == "synthetic"] * len(log)]


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
        bundled_negatives,
        "Negatives that every sampler selects from one pool, as pictures, below the norm of the gradient that each "
        "causes in the last layer. A row has the query that is nearest to most of what its sampler selects, and of "
        "these negatives those of the largest, the middle and the smallest gradient.",
        of_bundled_clips,
    ),
}
