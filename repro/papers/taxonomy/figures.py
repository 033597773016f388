"""The taxonomy's figures, each drawn from one table of stored results or one log."""

import itertools
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from pandas import DataFrame, Series

from repro.data import manifest
from repro.papers.taxonomy import agreement, glm_figures
from repro.papers.taxonomy.glm import printed_by_objective
from repro.report.redraw import Drawing
from repro.report.style import (
    BLUE,
    COLUMN,
    GREEN,
    GREY,
    INK,
    PALE,
    VERMILLION,
    comparable,
    draw_ours,
    draw_published,
    forbidden,
    heading,
    legend_above,
    names_down,
    only,
    origin,
    panels,
    seeds_in_words,
    seeds_named,
    settled,
    styled,
    words,
)
from repro.skeleton.terms import PRINTED


@styled()
def taxonomy(table: DataFrame) -> Figure:
    """Linear-probe accuracy of every subset of the four objectives; the dots below say which objectives it has.

    Random initialisation, the empty subset, comes first and continues as a dashed line; the others follow in the order
    of our accuracy. Printed values stand beside ours, on embedded data in a panel of their own.

    Args:
        table: one row per subset: objectives ("AE+CE", or "random"), AE, CE, AD, CD (0 or 1), ours, std, n_seeds,
            published, preset, dataset; accuracies in percent.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.
    """
    title = heading(table)
    embedded = manifest.embedded(only(table, "dataset"))
    random = table["objectives"] == "random"
    table = pd.concat([table[random], table[~random].sort_values(["ours", "published"])])
    heights = [3.4, *([2.2] if embedded else []), 1.3]
    figure, (top, *middle, bottom) = panels(
        title, 0.55 * sum(heights), len(heights), sharex=True, height_ratios=heights)

    columns = np.arange(len(table))
    draw_ours(top, columns, table, BLUE, "o", "ours", line="none")
    draw_published(top, columns, comparable(table), VERMILLION, "D", "printed", line="none")
    for baseline in table.loc[table["objectives"] == "random", "ours"].dropna():
        top.axhline(baseline, color=GREY, linestyle="--", linewidth=0.8, label="random initialisation")
    top.set_ylabel("linear probe\naccuracy (%)")
    top.grid(axis="y")
    legend_above(top, columns=3)
    for axes in middle:
        _apart(axes, table["objectives"])
    _membership(bottom, table["objectives"])
    return settled(figure)


@styled()
def taxonomy_variants(table: DataFrame) -> Figure:
    """One line per objective trained away from its recipe: what that gives, what the recipe gives, what is printed.

    Args:
        table: objectives, departures ({"td_queue": "frozen_noise"}), ours, std, n_seeds, usual (the recipe's
            accuracy), published, preset, dataset; accuracies in percent.
    """
    table = table.assign(departures=table["departures"].map(words))
    table = table.sort_values(["objectives", "departures", "preset"], ignore_index=True)
    data = f"{table['dataset'].iloc[0]}, {seeds_in_words(table)}"
    title = "\n".join(filter(None, (data, forbidden(table))))
    figure, (axes,) = panels(title, 0.9 + 0.32 * len(table), grid="x")
    places = np.arange(len(table))
    axes.hlines(places, table[["ours", "usual"]].min(axis=1), table[["ours", "usual"]].max(axis=1), color=PALE)
    draw_ours(axes, places, table, BLUE, "o", "changed", line="none", down=True)
    axes.plot(table["usual"], places, color=GREY, marker="o", markerfacecolor="white", linestyle="none", label="recipe")
    draw_published(axes, places, comparable(table), VERMILLION, "D", "printed", line="none", down=True)
    names_down(axes, [f"{row.objectives}, {row.preset}\n{row.departures}" for row in table.itertuples()])
    axes.set_xlabel("linear probe accuracy (%)")
    figure.legend(loc="outside lower center", ncols=3)
    return settled(figure)


@styled()
def encoder_collapse(table: DataFrame) -> Figure:
    """Accuracy, and spread of the embedding, against the depth of an encoder left at random or trained with AE alone.

    Args:
        table: one row per depth and encoder: layers, objectives ("random" or "AE"), ours, std, n_seeds, published,
            linear_standardised (percent; shown where there is one), embedding_spread (dimensionless: standard
            deviation of the unit-length embedding, root mean square over its d coordinates, times sqrt(d); 1 isotropic,
            0 collapsed), preset, dataset.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.
    """
    title = heading(table)
    figure, (top, bottom) = panels(title, 3.3, 2, grid="y", sharex=True, height_ratios=[3, 2])
    table = table.assign(published=comparable(table)).sort_values("layers")
    for name, colour, marker in (("random", BLUE, "o"), ("AE", VERMILLION, "s")):
        rows = table[table["objectives"] == name]
        if rows.empty:
            continue
        draw_ours(top, rows["layers"], rows, colour, marker, f"{name}, ours", line="-")
        draw_published(top, rows["layers"], rows["published"], colour, marker, f"{name}, printed", line="--")
        if rows["linear_standardised"].notna().any():  # what the printed probe does not find
            looks = {"color": colour, "marker": ".", "linestyle": ":"}
            top.plot(rows["layers"], rows["linear_standardised"], label=f"{name}, standardised", **looks)
        bottom.plot(rows["layers"], rows["embedding_spread"], color=colour, marker=marker)
    top.set_ylabel("linear probe\naccuracy (%)")
    legend_above(top, columns=2)
    spread = table["embedding_spread"]
    if spread.max() > 10 * spread.min() > 0:
        bottom.set_yscale("log")
    elif spread.notna().any():
        bottom.set_ylim(0, 1.1 * spread.max())
    bottom.set_ylabel("embedding spread\n(1 isotropic)")
    bottom.set(xlabel="layers of the encoder", xticks=table["layers"].unique())
    figure.align_ylabels()
    return settled(figure)


@styled()
def along_training(log: DataFrame) -> Figure:
    """Accuracy against the epoch of training, a panel per entry, seeds as a band, the printed value as a line.

    Args:
        log: one row per cell, epoch and measure: objectives, entry, seed, epoch (from 1), measure ("linear", and
            "linear_best", the best of the probe's epochs on the test split), value (percent), preset, dataset.

    Raises:
        ValueError: if the log is empty or mixes presets or data sets.
    """
    printed = only(log, "dataset") == "ucla" and only(log, "preset") == "paper"
    names = sorted(log["entry"].unique(), key=lambda name: (name.count("+"), name))
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    counts = log.groupby("entry")["seed"].nunique()
    fewest = f"{counts.min()} to " if counts.min() < counts.max() else ""
    bands = f"mean \N{PLUS-MINUS SIGN} std of {fewest}{counts.max()} seeds"
    title = origin(log, bands if counts.max() > 1 else seeds_named(log))
    figure, stack = panels(title, 0.85 + 0.95 * rows, rows, columns, grid="y", sharex=True, sharey=True)
    looks = {"linear": (BLUE, "-", "last epoch of the probe"), "linear_best": (GREEN, "--", "best epoch on test")}
    for name, axes in zip(names, stack, strict=False):
        entry = log[log["entry"] == name]
        for measure, (colour, line, label) in looks.items():
            chosen = entry[entry["measure"] == measure]
            seaborn.lineplot(
                chosen, x="epoch", y="value", errorbar="sd", color=colour, linestyle=line, label=label, legend=False,
                ax=axes,
            )
        if printed and (entry["objectives"] == name).all():  # it departs in nothing
            value = printed_by_objective()["UCLA"].get(name, np.nan)
            axes.axhline(value, color=VERMILLION, linestyle=":", linewidth=0.9, label="printed")
        axes.set_title(name.replace(", ", "\n"), loc="left")
        axes.set(xlabel="epoch", ylabel="accuracy (%)")
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.label_outer()
    for axes in stack[len(names):]:
        axes.set_visible(False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return settled(figure)


@styled()
def sequence_contrast(log: DataFrame) -> Figure:
    """The contrastive decoder term along training, a panel for each objective; panels of a row share their axis.

    Args:
        log: one row per epoch and run: epoch, CD (nats, mean over the epoch), objectives, td_queue ("live", or
            "frozen_noise", the released code's dictionary, which is never refreshed), seed, sequence_dictionary (K, its
            entries), dataset and preset.

    Raises:
        ValueError: if the log is empty or mixes presets, data sets or dictionaries of several sizes.
    """
    entries = only(log, "sequence_dictionary")
    names = sorted(log["objectives"].unique(), key=lambda name: (name.count("+"), name))
    rows = -(-len(names) // 2)
    title = origin(log, f"one run each, {seeds_named(log)}")
    figure, stack = panels(title, 0.75 + 0.95 * rows, rows, 2, grid="y", sharex=True, sharey="row")
    looks = {"live": (BLUE, "-", "refreshed"), "frozen_noise": (VERMILLION, "--", "never refreshed")}
    for axes, name in zip(stack, names, strict=False):
        for dictionary, (colour, line, label) in looks.items():
            run = log[(log["objectives"] == name) & (log["td_queue"] == dictionary)].sort_values("epoch")
            axes.plot(run["epoch"], run["CD"], color=colour, linestyle=line, label=label)
        axes.axhline(np.log(entries + 1), color=GREY, linestyle=":", linewidth=0.8, label=f"chance, ln {entries + 1}")
        axes.set_title(name, loc="left")
        axes.set(xlabel="epoch", ylabel="CD (nats)")
        axes.set_ylim(bottom=0)
        axes.label_outer()
    for axes in stack[len(names):]:  # an odd number of objectives leaves one empty
        axes.set_visible(False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, title="dictionary of decoded sequences")
    return settled(figure)


@styled()
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
    rows = [_front(sequence, frames) for sequence in sequences.values()]
    width, height = 1.15 * np.concatenate([poses.reshape(-1, 2) for poses in rows]).max(0)
    step = max(2 * width, 0.6 * height)
    figure = Figure(figsize=(COLUMN, COLUMN), layout="constrained")
    axes = figure.subplots()
    for row, poses in enumerate(rows):
        placed = poses + [[[step * column, -height * row]] for column in range(len(poses))]
        segments = placed[:, np.asarray(bones)].reshape(-1, 2, 2)
        axes.add_collection(LineCollection(segments, colors=INK, linewidths=0.7, capstyle="round"))
    axes.update_datalim([(-step / 2, height * (1 - len(rows))), (step * (frames - 0.5), height)])
    axes.margins(0)
    names = [textwrap.fill(action, 12) for action in sequences]
    axes.set(xticks=[], yticks=height * (0.45 - np.arange(len(rows))), yticklabels=names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("time \N{RIGHTWARDS ARROW}")
    figure.draw_without_rendering()
    scale = COLUMN * axes.get_position().width / (step * frames)  # inches per unit of length
    figure.set_figheight(scale * height * len(rows) + 0.25)
    axes.set_aspect("equal", adjustable="datalim")
    return settled(figure)


def _front(sequence: ArrayLike, frames: int) -> np.ndarray:
    """(T, joints, 3) or (T, joints * 3) -> (at most frames, joints, 2): across, centred in each pose, and up from 0."""
    poses = np.asarray(sequence).reshape(len(sequence), -1, 3)[:, :, [0, 2]]
    poses = poses[np.linspace(0, len(poses) - 1, min(frames, len(poses))).round().astype(int)]
    across, up = poses[:, :, 0], poses[:, :, 1]
    middle = (across.min(1, keepdims=True) + across.max(1, keepdims=True)) / 2
    return np.stack([across - middle, up - up.min()], axis=-1)


def _apart(axes: Axes, objectives: Series) -> None:
    """The accuracies printed of objectives on NW-UCLA in an axes of their own."""
    values = printed_by_objective()["UCLA"].reindex(objectives)
    marks = {"color": VERMILLION, "marker": "D", "markerfacecolor": "none", "linestyle": "none"}
    axes.plot(values.to_numpy(), label="UCLA", **marks)
    axes.margins(y=0.15)
    axes.set_ylabel("printed\naccuracy (%)")
    axes.grid(axis="y")
    legend_above(axes, columns=2)


def _membership(axes: Axes, objectives: Series) -> None:
    """Objectives as dots, filled where a term is present, those of one joined by a line; first the printed terms."""
    parts = [[] if name == "random" else name.split("+") for name in objectives]
    terms = list(dict.fromkeys([*PRINTED, *itertools.chain(*parts)]))
    for column, names in enumerate(parts):
        present = [place for place, term in enumerate(terms) if term in names]
        absent = [place for place, term in enumerate(terms) if term not in names]
        axes.plot([column] * len(absent), absent, marker="o", color=PALE, linestyle="none")
        axes.plot([column] * len(present), present, marker="o", color=INK)
    limits = {"xlim": (-0.6, len(parts) - 0.4), "ylim": (len(terms) - 0.4, -0.6)}
    axes.set(**limits, yticks=range(len(terms)), yticklabels=terms, xticks=[])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def of_one_recipe(log: DataFrame) -> DataFrame:
    """Rows of cells that depart from their preset in nothing, of the preset with most of them (paper if equal)."""
    log = log[log["entry"] == log["objectives"]]
    covered = log.groupby("preset")["entry"].nunique()
    best = max(covered.index, key=lambda preset: (covered[preset], preset == "paper"), default=None)
    return log[log["preset"] == best]


FIGURES = {
    "taxonomy": Drawing(
        taxonomy,
        "Linear-probe accuracy of objectives, with the terms that each is the sum of: those of the paper are "
        "attractive or contrastive (A, C), of encoder or decoder (E, D).",
        summary=agreement.summary,
        repeated=PRINTED,
    ),
    "taxonomy_variants": Drawing(
        taxonomy_variants,
        "Linear-probe accuracy of objectives trained away from the recipe, the recipe itself, and the printed value.",
        repeated=PRINTED,
    ),
    "encoder_collapse": Drawing(
        encoder_collapse,
        "Linear-probe accuracy and spread of the embedding by depth of the encoder, at random initialisation and after "
        "training with the attractive encoder term alone; where measured, the probe on standardised readouts too.",
    ),
    "along_training": Drawing(
        along_training,
        "Linear-probe accuracy along training, a panel for each objective: mean over seeds, with a band of one "
        "standard deviation; the best of the probe's epochs on the test split, as the released code reports it; and "
        "the printed value.",
        of_one_recipe,
    ),
    "sequence_contrast": Drawing(
        sequence_contrast,
        "The contrastive decoder term along training, a panel for each objective that has it; dashed, with the "
        "dictionary of noise that the released code never refreshes.",
    ),
}
FURTHER = (glm_figures.redraw,)
