"""The taxonomy's figures: each is drawn from one table of stored results, one log, or linear models of either.

All of them raise ValueError if these are empty, or mix presets, data sets, or what else a figure shows one of.
"""

import itertools
import math
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from pandas import DataFrame, Series

from repro.data import manifest
from repro.experiments import beside_recipe, find
from repro.papers.taxonomy import glm, rules
from repro.report import style
from repro.report.logs import fullest_preset, slug, untrained, write
from repro.report.printed import printed
from repro.report.redraw import Drawing, provenance_of, publish
from repro.report.text import in_text

LOOKS = {"AD": (style.VERMILLION, "D"), "CD": (style.BLUE, "o"), "CE": (style.GREEN, "s"), "AE": (style.PURPLE, "^")}
DEPTHS = {"random": style.Look("random", style.BLUE, "o"), "AE": style.Look("AE", style.VERMILLION, "s")}
APART = 0.11  # layers between two lines of points: none covers another
SOURCES = {"ours": (style.BLUE, "o", style.BLUE), "printed": (style.VERMILLION, "D", "white")}
NINE = ("unmixed+best", "UCLA")  # rows and column of the model whose AD has the printed t
DEPARTING = (  # experiments that leave the recipe on NW-UCLA
    "frozen_noise_ucla", "selected_on_test_ucla", "float32_ucla", "higher_rate_ucla", "bidirectional_ucla",
    "denoising_ucla", "decoder_weight_2020_ucla", "both_weights_2020_ucla", "squared_differences_ucla",
    "squared_differences_alone_ucla", "three_layers_rates_ucla",
)
SHORT = {
    "all": "15, all", "unmixed": "8, unmixed", "unmixed encoder": "11, encoder unmixed",
    "unmixed decoder": "11, decoder unmixed", NINE[0]: f"8 + {glm.BEST}",
    "NTU_1layer": "NTU", "NTU_3layer": "NTU, 3 layers", "NTU_1024units": "NTU, 1,024 units", glm.MEAN: "mean",
}


@style.styled()
def taxonomy(table: DataFrame) -> Figure:
    """Linear-probe accuracy of objectives, with the terms that each is the sum of: those of the paper are attractive or
    contrastive (A, C), of encoder or decoder (E, D).

    Random initialisation, the empty subset, comes first and continues as a dashed line; the others follow in the order
    of our accuracy. Printed values stand beside ours, on bundled data in a panel of their own.

    Args:
        table: one row per subset: objectives ("AE+CE", or "random"), AE, CE, AD, CD (0 or 1), ours, std, n_seeds,
            published, preset, dataset; accuracies in percent.
    """
    title = style.heading(table)
    random = table["objectives"] == "random"
    table = pd.concat([table[random], table[~random].sort_values(["ours", "published"])], ignore_index=True)
    heights = [3.4, *([2.2] if manifest.bundled(style.only(table, "dataset")) else []), 1.3]
    figure, (top, *middle, bottom) = style.panels(
        title, 0.55 * sum(heights), len(heights), sharex=True, height_ratios=heights)

    columns = np.arange(len(table))
    style.draw_ours(top, table.index, table, style.OURS)
    style.draw_published(top, columns, style.comparable(table), style.PRINTED)
    for baseline in table.loc[table["objectives"] == "random", "ours"].dropna():
        top.axhline(baseline, color=style.GREY, linestyle="--", linewidth=0.8, label="random initialisation")
    top.set_ylabel("linear probe\naccuracy (%)")
    top.grid(axis="y")
    style.legend_above(top, columns=3)
    for axes in middle:
        values = glm.printed_by_objective()["UCLA"].reindex(table["objectives"])
        marks = {"color": style.VERMILLION, "marker": "D", "markerfacecolor": "none", "linestyle": "none"}
        axes.plot(values.to_numpy(), label="printed, NW-UCLA", **marks)
        axes.margins(y=0.15)
        axes.set_ylabel("printed\naccuracy (%)")
        axes.grid(axis="y")
        style.legend_above(axes, columns=2)
    _membership(bottom, table["objectives"])
    return style.settled(figure)


def _membership(axes: Axes, objectives: Series) -> None:
    """Objectives as dots, filled where a term is present, those of one joined by a line; first the printed terms."""
    parts = [[] if name == "random" else name.split("+") for name in objectives]
    terms = list(dict.fromkeys([*glm.TERMS, *itertools.chain(*parts)]))
    for column, names in enumerate(parts):
        present = [place for place, term in enumerate(terms) if term in names]
        absent = [place for place, term in enumerate(terms) if term not in names]
        axes.plot([column] * len(absent), absent, marker="o", color=style.PALE, linestyle="none")
        axes.plot([column] * len(present), present, marker="o", color=style.INK)
    axes.set(xlim=(-0.6, len(parts) - 0.4), xticks=[])
    _choices_down(axes, terms)


def _choices_down(axes: Axes, names: Sequence[str]) -> None:
    """Names from the top to the bottom, without a frame."""
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.4, -0.6), xticks=[])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


@style.styled()
def taxonomy_variants(table: DataFrame) -> Figure:
    """Linear-probe accuracy of objectives trained away from the recipe, the recipe itself, and the printed value.

    A panel for each preset, that of the paper first.

    Args:
        table: objectives, departures ({"td_queue": "frozen_noise"}), ours, std, n_seeds, usual (the recipe's
            accuracy), published, preset, dataset; accuracies in percent.
    """
    table = table.assign(departures=table["departures"].map(style.words))
    table = table.sort_values(["objectives", "departures"])
    data = f"{table['dataset'].iloc[0]}, {style.seeds_in_words(table)}"
    title = "\n".join(filter(None, (data, style.forbidden(table))))
    panel_rows = [rows.reset_index(drop=True) for _, rows in table.groupby("preset")]
    heights = [0.4 + 0.32 * len(rows) for rows in panel_rows]
    figure, stack = style.panels(title, 0.6 + sum(heights), len(heights), grid="x", height_ratios=heights)
    for axes, rows in zip(stack, panel_rows, strict=True):
        axes.hlines(rows.index, rows[["ours", "usual"]].min(axis=1), rows[["ours", "usual"]].max(axis=1),
                    color=style.PALE)
        style.draw_ours(axes, rows.index, rows, style.Look("changed", style.BLUE, "o"), down=True)
        style.draw_published(axes, rows.index, rows["usual"], style.Look("recipe", style.GREY, "o"), down=True)
        style.draw_published(axes, rows.index, style.comparable(rows), style.PRINTED, down=True)
        style.names_down(axes, [*(rows["objectives"] + "\n" + rows["departures"])])
        axes.set_title(f"{style.only(rows, 'preset')} recipe", loc="left")
        axes.set_xlabel("linear probe accuracy (%)")
    keys = {label: handle for axes in stack for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    style.legend_below(figure, [*keys.values()], 3)
    return style.settled(figure)


@style.styled()
def encoder_collapse(table: DataFrame) -> Figure:
    """Linear-probe accuracy and spread of the embedding by depth of the encoder, at random initialisation and after
    training with the attractive encoder term alone; where measured, the probe on standardised readouts too.

    Args:
        table: one row per depth and encoder: layers, objectives ("random" or "AE"), ours, std, n_seeds, published,
            linear_standardised (percent; shown where there is one), embedding_spread (dimensionless: standard
            deviation of the unit-length embedding, root mean square over its d coordinates, times sqrt(d); 1 isotropic,
            0 collapsed), preset, dataset.
    """
    figure, (top, bottom) = style.panels(style.heading(table), 3.3, 2, grid="y", sharex=True, height_ratios=[3, 2])
    table = table.assign(published=style.comparable(table)).sort_values("layers")
    for side, (name, of_name) in zip((-1, 1), style.lines_of(table, "objectives", DEPTHS), strict=False):
        look, layers = DEPTHS[name], of_name["layers"]
        style.draw_ours(top, layers + side * 1.5 * APART, of_name, look.called(", ours"), "-")
        standardised = of_name.get("linear_standardised", Series(dtype=float))  # what the printed probe does not find
        if standardised.notna().any():
            dotted = {"color": look.colour, "marker": ".", "linestyle": ":"}
            top.plot(layers, standardised, label=f"{name}, standardised", **dotted)
        bottom.plot(layers, of_name["embedding_spread"], color=look.colour, marker=look.marker)
        places, printed_look = layers + side * APART / 2, look.called(", printed")
        style.draw_published(top, places, of_name["published"], printed_look, "--")
    top.set_ylabel("linear probe\naccuracy (%)")
    style.legend_above(top, columns=2)
    spread = table["embedding_spread"]
    if spread.max() > 10 * spread.min() > 0:
        bottom.set_yscale("log")
    elif spread.notna().any():
        bottom.set_ylim(0, 1.1 * spread.max())
    bottom.set_ylabel("embedding spread\n(1 isotropic)")
    bottom.set(xlabel="layers of the encoder", xticks=table["layers"].unique())
    figure.align_ylabels()
    return style.settled(figure)


@style.styled()
def along_training(log: DataFrame) -> Figure:
    """Linear-probe accuracy along training, a panel for each objective: mean over seeds, with a band of one standard
    deviation; the mean accuracy of the best of the probe's epochs on the test split, which the released code reports;
    and the printed value.

    Args:
        log: one row per cell, epoch and measure: objectives, entry, seed, epoch (from 1), measure ("linear", and
            "linear_best", the best of the probe's epochs on the test split), value (percent), preset, dataset.
    """
    is_printed = style.only(log, "dataset") == "ucla" and style.only(log, "preset") == "paper"
    counts = log.groupby("entry")["seed"].nunique()
    fewest = f"{counts.min()} to " if counts.min() < counts.max() else ""
    bands = f"mean \N{PLUS-MINUS SIGN} std of {fewest}{counts.max()} seeds"
    title = style.origin(log, bands if counts.max() > 1 else style.seeds_named(log))
    figure, places = _panel_each(log["entry"], title, 0.85, min(3, len(counts)), sharey=True)
    looks = {"linear": (style.BLUE, "-", "sd", "last epoch of the probe"),
             "linear_best": (style.GREEN, "--", None, "best epoch on test")}
    for name, axes in places.items():
        entry = log[log["entry"] == name]
        for measure, (colour, line, band, label) in looks.items():
            seaborn.lineplot(entry[entry["measure"] == measure], x="epoch", y="value", errorbar=band, color=colour,
                             linestyle=line, label=label, legend=False, ax=axes, err_kws={"linewidth": 0})
        if is_printed and (entry["objectives"] == name).all():  # it departs in nothing
            value = glm.printed_by_objective()["UCLA"].get(name, np.nan)
            axes.axhline(value, color=style.VERMILLION, linestyle=":", linewidth=0.9, label="printed")
        axes.set_title(name.replace(", ", "\n"), loc="left")
        axes.set(xlabel="epoch", ylabel="accuracy (%)")
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True, steps=[1, 5, 10]))
        axes.label_outer()
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return style.settled(figure)


@style.styled()
def sequence_contrast(log: DataFrame) -> Figure:
    """The contrastive decoder term along training, a panel for each objective that has it; dashed, with the dictionary
    of noise that the released code never refreshes.

    Args:
        log: one row per epoch and run: epoch, CD (nats, mean over the epoch), objectives, td_queue ("live", or
            "frozen_noise", the released code's dictionary, which is never refreshed), seed, sequence_dictionary (K, its
            entries), dataset and preset.
    """
    entries, seeds = style.only(log, "sequence_dictionary"), style.seeds_named(log)
    figure, places = _panel_each(log["objectives"], style.origin(log, f"one run each, {seeds}"), 0.75, 2, sharey=True)
    looks = {"live": (style.BLUE, "-", "refreshed"), "frozen_noise": (style.VERMILLION, "--", "never refreshed")}
    for name, axes in places.items():
        for dictionary, (colour, line, label) in looks.items():
            run = log[(log["objectives"] == name) & (log["td_queue"] == dictionary)].sort_values("epoch")
            axes.plot(run["epoch"], run["CD"], color=colour, linestyle=line, label=label)
        chance = f"chance, ln {entries + 1}"
        axes.axhline(np.log(entries + 1), color=style.GREY, linestyle=":", linewidth=0.8, label=chance)
        axes.set_title(name, loc="left")
        axes.set(xlabel="epoch", ylabel="CD (nats)")
        axes.label_outer()
    figure.axes[0].set_ylim(bottom=0)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2,
                  title="dictionary of decoded sequences")
    return style.settled(figure)


def _panel_each(
    names: Collection[str], title: str, height: float, columns: int, **options: bool | str
) -> tuple[Figure, dict[str, Axes]]:
    """Panels by name, those of fewest terms first, `height` inches of title and legend; none is drawn in vain."""
    ordered = sorted(set(names), key=lambda name: (name.count("+"), name))
    rows = -(-len(ordered) // columns)
    figure, stack = style.panels(title, height + 0.95 * rows, rows, columns, grid="y", sharex=True, **options)
    for axes in stack[len(ordered):]:
        axes.set_visible(False)
    return figure, dict(zip(ordered, stack, strict=False))


def of_one_recipe(log: DataFrame) -> DataFrame:
    """Rows of cells that depart from their preset in nothing, of the preset with most of them (paper if equal)."""
    log = log[log["entry"] == log["objectives"]]
    return fullest_preset(log, log["entry"])


@style.styled()
def pose_strip(sequences: dict[str, ArrayLike], bones: Sequence[tuple[int, int]], frames: int = 6) -> Figure:
    """One row per action: poses at evenly spaced frames, first to last, seen from the front and at one scale.

    Each pose is centred horizontally on itself and each row stands on its own lowest point, so that the strip shows
    posture and not the walk through the room.

    Args:
        sequences: by action, valid frames (T, joints, 3) or (T, joints * 3), in metres or scaled; the first
            coordinate runs across the body and the last up the spine.
        bones: pairs of joints to connect.
        frames: poses per row; a shorter sequence shows each of its frames once.
    """
    figure, stack = style.panels("", 0.75 * len(sequences), len(sequences), frames, sharex=True, sharey=True)
    for row, (action, sequence) in zip(np.reshape(stack, (-1, frames)), sequences.items(), strict=True):
        poses = np.asarray(sequence).reshape(len(sequence), -1, 3)[:, :, [0, 2]]
        poses = poses[np.linspace(0, len(poses) - 1, min(frames, len(poses))).round().astype(int)]
        middle = (poses[:, :, 0].min(1) + poses[:, :, 0].max(1)) / 2
        for axes, pose, centre in zip(row, poses, middle, strict=False):
            segments = (pose - [centre, poses[:, :, 1].min()])[np.asarray(bones)]
            axes.add_collection(LineCollection(segments, colors=style.INK, linewidths=0.7, capstyle="round"))
        for axes in row:
            axes.set(xticks=[], yticks=[], aspect="equal")
            axes.spines[:].set_visible(False)
        row[0].set_ylabel(textwrap.fill(action, 12))
    figure.supxlabel("time \N{RIGHTWARDS ARROW}")
    return style.settled(figure)


@style.styled()
def specifications(curve: DataFrame) -> Figure:
    """t of the four terms in linear models of the printed accuracies, for every natural choice of rows and column,
    ordered by that of AD; filled where the one-tailed p is below 0.05. The printed statistic, which the text gives for
    CD, is that of AD in the eight unmixed rows and AE+CE+AD, on NW-UCLA (grey).

    Args:
        curve: of `glm.specification_curve`.
    """
    ranks = curve[curve["term"] == "AD"].sort_values("t")[["rows", "column"]].reset_index(drop=True)
    places = ranks.reset_index(names="place")
    curve = curve.merge(places, on=["rows", "column"])
    title = f"{len(places)} linear models of the printed accuracies"
    figure, stack = style.panels(title, 5.4, 3, grid="y", sharex=True, height_ratios=[14, 11, 5])
    nine = places.set_index(["rows", "column"]).loc[NINE, "place"]
    for axes in stack:
        axes.axvline(nine, color=style.PALE, linewidth=3)

    top, claimed = stack[0], printed("taxonomy_glm_claim")["t"].item()
    top.axhline(0, color=style.GREY, linewidth=0.6)
    top.axhline(claimed, color=style.INK, linestyle="--", linewidth=0.8)
    small = {"markersize": 2.8, "linestyle": "none"}
    for term, (colour, marker) in LOOKS.items():
        rows = curve[curve["term"] == term]
        for face, some in (("white", rows["p_one_tailed"] >= 0.05), (colour, rows["p_one_tailed"] < 0.05)):
            top.plot(rows["place"][some], rows["t"][some], color=colour, marker=marker, markerfacecolor=face,
                     markeredgewidth=0.6, **small)
    top.set_ylabel("t of the term")
    for axes, choice, what in zip(stack[1:], ("rows", "column"), ("rows of Table 1", "its column"), strict=True):
        values = style.in_order(curve[choice], ())
        axes.plot(ranks[choice].map(values.index), color=style.INK, marker=".", markersize=3, linestyle="none")
        _choices_down(axes, [SHORT.get(name, name.replace("unmixed+", "8 + ")) for name in values])
        axes.set_title(what, loc="left")
    stack[2].set_xlabel("models, by the t of AD")

    keys = [Line2D([], [], color=colour, marker=marker, linestyle="none", label=term)
            for term, (colour, marker) in LOOKS.items()]
    keys.append(Line2D([], [], color=style.INK, linestyle="--", label=f"printed, t = {claimed}"))
    keys += [Line2D([], [], color=style.INK, marker="o", label=label, markerfacecolor=face, **small)
             for label, face in (("p < 0.05", style.INK), ("p \u2265 0.05", "white"))]
    keys.append(Line2D([], [], color=style.PALE, linewidth=3, label="9 rows, UCLA"))
    figure.legend(handles=keys, loc="outside lower center", ncols=4)
    return style.settled(figure)


@style.styled()
def effects(table: DataFrame) -> Figure:
    """What each of the four terms adds to the accuracy (percentage points, 95 % interval of a linear model), in our
    results and in the printed ones.

    A panel for each row set. On bundled data the printed effects, which belong to other data, have panels of their own.

    Args:
        table: of `glm.forest`.
    """
    panel_rows = [rows for _, rows in table.groupby("rows", sort=False)]
    if manifest.bundled(table["dataset"].iloc[0]):
        panel_rows = [rows[rows["source"] == source] for rows in panel_rows for source in SOURCES]
    height, title = 1.0 + 1.25 * len(panel_rows), style.origin(table)
    figure, stack = style.panels(title, height, len(panel_rows), grid="x", sharex=True)
    for axes, panel in zip(stack, panel_rows, strict=True):
        axes.axvline(0, color=style.GREY, linewidth=0.6)
        sources = style.in_order(panel["source"], SOURCES)
        for place, source in enumerate(sources):
            colour, marker, face = SOURCES[source]
            rows = panel[panel["source"] == source]
            y = rows["term"].map(glm.TERMS.index) + (place - (len(sources) - 1) / 2) * 0.32
            axes.hlines(y, rows["low"], rows["high"], color=colour, linewidth=0.8)
            axes.plot(rows["estimate"], y, color=colour, marker=marker, markerfacecolor=face, linestyle="none")
        said = [f"{row.source.capitalize()}: {row.statement}" for row in panel.drop_duplicates("source").itertuples()]
        style.names_down(axes, glm.TERMS)
        axes.set_title("\n".join(textwrap.fill(text, 60) for text in said), loc="left")
    stack[-1].set_xlabel("added to the accuracy (percentage points)")
    keys = [Line2D([], [], color=colour, marker=marker, markerfacecolor=face, linestyle="-", label=source)
            for source, (colour, marker, face) in SOURCES.items() if (table["source"] == source).any()]
    figure.legend(handles=keys, loc="outside lower center", ncols=2)
    return style.settled(figure)


def redraw_specifications(cells: Mapping[str, DataFrame], source: Path, folder: Path) -> list[Path]:
    """Write and draw `glm_specifications`, of the printed numbers alone; returns the files written."""
    return _write_model(folder / "glm_specifications", specifications, glm.specification_curve(), {})


def redraw_forests(cells: Mapping[str, DataFrame], source: Path, folder: Path) -> list[Path]:
    """Write and draw `glm_forest_<dataset>` for every data set with the nine objectives of the paper's main tables.

    Args:
        cells: by table, of `repro.experiments.cells_by_table`.
        source: passed over.
        folder: gets the files, which are returned.
    """
    written = []
    for dataset in sorted(set(cells["taxonomy"]["dataset"])):
        ours = glm.usual_cells(cells["taxonomy"], dataset)
        if set(glm.ROW_SETS["unmixed+best"]) <= set(ours["objectives"]):
            stem = folder / f"glm_forest_{slug(dataset)}"
            written += _write_model(stem, effects, glm.forest(ours), provenance_of(ours))
    return written


def _write_model(
    stem: Path, draw: Callable[[DataFrame], Figure], table: DataFrame, provenance: dict[str, Any]
) -> list[Path]:
    table = _rounded(table)
    files = publish(stem, Drawing(draw), table, provenance | {"printed": "taxonomy.csv"})
    return [write(table, stem.with_suffix(".csv")), *files]


def redraw_variants(cells: Mapping[str, DataFrame], source: Path, folder: Path) -> list[Path]:
    """Write and draw `taxonomy_variants_ucla`, the experiments of `DEPARTING` beside their recipe.

    Arguments as for `redraw_forests`.
    """
    parts = [beside_recipe(name) for name in DEPARTING]
    rows = pd.concat([part for part in parts if len(part)], ignore_index=True)
    keys = {key for name in DEPARTING for key in find(name).asked()}
    behind = cells["taxonomy"][cells["taxonomy"]["key"].isin(keys)]
    stem, spread = folder / "taxonomy_variants_ucla", style.spread_in_words(rows)
    files = publish(stem, Drawing(taxonomy_variants), rows, provenance_of(behind), spread)
    return [write(in_text(rows), stem.with_suffix(".csv")), *files]


def _rounded(table: DataFrame) -> DataFrame:
    """Five digits, which are the same wherever the models are fitted.

    Least squares differ in their last bits from processor to processor. Estimates from numbers of two decimals often
    end in a 5 right behind the fifth digit, 26.1425, where these bits would decide. So nine digits come first, and a 5
    at the end of them goes to the even digit.
    """
    return table.map(lambda value: float(f"{Decimal(f'{value:.9g}'):.5g}") if isinstance(value, float) else value)


def agreement(table: DataFrame) -> str:
    """How far a table agrees with the printed column, in words; random initialisation is left out.

    Spearman's correlation with it; the standard deviation s between seeds in points, pooled over the objectives
    (weights: seeds - 1) but those of `rules.SCATTERED`, which have that of their own seeds; and which objectives stand
    further from it than twice s sqrt(1 + 1/n), the farthest first: our mean of n seeds has the variance s^2 / n and the
    printed number, taken for one run, s^2.

    Args:
        table: rows of a table, as `run_table` returns them.
    """
    table = table[~untrained(table, ["objectives"])]
    compared = table[["ours", "published"]].notna().all(axis=1).sum()
    if not compared:
        return "Nothing is compared: no printed number belongs to this data."
    recipe = ", ".join([f"{style.only(table, 'preset').capitalize()} recipe", *style.departures_in_words(table)])
    correlation = table["ours"].corr(table["published"], method="spearman")
    order = f"{recipe}: Spearman's correlation with the printed column is {correlation:.2f} ({compared} objectives)."
    scattered = table["objectives"].isin(rules.SCATTERED)
    freedom = (table["n_seeds"] - 1).where(table["std"].notna() & ~scattered, 0)
    if not freedom.any():
        return f"{order} One seed says nothing about how far numbers scatter."
    deviation = math.sqrt((table["std"] ** 2 * freedom).sum() / freedom.sum())
    distances = table["difference"].abs() / table["std"].where(scattered, deviation) / (1 + 1 / table["n_seeds"]) ** 0.5
    apart = table.loc[distances[distances > 2].sort_values(ascending=False).index]
    names = [f"{row.objectives} ({row.difference:+.1f})" for row in apart.itertuples()]
    own = f"; {' and '.join(table['objectives'][scattered])} by their own seeds" if scattered.any() else ""
    return (f"{order} The standard deviation between seeds is {deviation:.1f} points ({freedom.sum()} degrees of "
            f"freedom{own}). More than two of them away from one printed run: "
            f"{', '.join([f'{len(names)} of {compared} objectives', *names])}.")


FIGURES = {
    "taxonomy": Drawing(taxonomy),
    "encoder_collapse": Drawing(encoder_collapse),
    "along_training": Drawing(along_training, of_one_recipe),
    "sequence_contrast": Drawing(sequence_contrast),
}
FURTHER = {
    "glm_specifications": redraw_specifications,
    "glm_forest": redraw_forests,
    "taxonomy_variants_ucla": redraw_variants,
    "printed_column_ucla": rules.write,
}
