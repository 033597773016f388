"""The taxonomy's pictures of its tables, and of recorded poses."""

import itertools
import math
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from pandas import DataFrame, Series

from repro.report import style
from repro.report.plots import LINE, Plot
from repro.report.style import Look
from repro.skeleton.terms import PRINTED

ACCURACY, SPREAD = "accuracy of a linear probe", "spread of the embedding"
DEPTHS = {
    "random": Look("random initialisation", style.BLUE, "o"), "AE": Look("AE", style.VERMILLION, "s"),
    "random, standardised": Look("random, standardised", style.SKY, "v"),
    "AE, standardised": Look("AE, standardised", style.ORANGE, "^"),
}


@style.styled()
def taxonomy(table: DataFrame) -> Figure:
    """Linear-probe accuracy of objectives, with the terms that each is the sum of: those of the paper are attractive or
    contrastive (A, C), of encoder or decoder (E, D).

    Random initialisation, the empty subset, comes first and continues as a dashed line; the others follow in the order
    of our accuracy. Where printed values may be compared, they stand beside ours, and the differences have a panel of
    their own: the band is twice the standard error of a difference between our mean and one printed run, by the
    median of the deviations between seeds, which a few objectives that scatter do not widen.

    Args:
        table: one row per subset: objectives ("AE+CE", or "random"), AE, CE, AD, CD (0 or 1), ours, std, n_seeds,
            published, preset, dataset; accuracies in percent.
    """
    random = table["objectives"] == "random"
    ordered = pd.concat([table[random], table[~random].sort_values(["ours", "published"])], ignore_index=True)
    published = style.comparable(ordered)
    compared = published.notna().any()
    heights = [3.4, *([2.0] if compared else []), 1.3]
    figure, stack = style.panels(0.5 + 0.55 * sum(heights), len(heights), sharex=True, height_ratios=heights)
    top, *middle, bottom = stack
    style.draw_published(top, ordered.index, published, style.PRINTED)
    style.draw_ours(top, ordered.index, ordered["ours"], ordered["std"], style.OURS)
    for baseline in table.loc[random, "ours"].dropna():
        top.axhline(baseline, color=style.GREY, linestyle="--", linewidth=0.8, label="random initialisation")
    top.set_ylabel("linear probe\naccuracy (%)")
    top.grid(axis="y")
    style.span(top, "y", 5)
    for axes in middle:
        _differences(axes, ordered, published)
    _membership(bottom, ordered["objectives"])
    style.legend_below(figure, style.legend_of(stack))
    style.entitle(figure, _best(ordered, published), style.heading(table))
    return style.settled(figure)


def _differences(axes: Axes, table: DataFrame, published: Series) -> None:
    """Ours minus printed, with a band of twice the error of such a difference."""
    axes.axhline(0, color=style.GREY, linewidth=0.6)
    known = table["std"].notna()
    if known.any():
        errors = 2 * table["std"].median() * (1 + 1 / table["n_seeds"]) ** 0.5
        band = {"color": style.PALE, "linewidth": 0, "step": "mid", "label": "twice the error"}
        axes.fill_between(table.index, -errors, errors, **band)
    axes.plot(table["ours"] - published, color=style.INK, marker="o", linestyle="none", label="ours $-$ printed")
    axes.set_ylabel("ours $-$ printed\n(points)")
    style.span(axes, "y", 5)


def _best(table: DataFrame, published: Series) -> str:
    """Which objective is highest here, and printed."""
    trained = table[table["objectives"] != "random"].dropna(subset="ours")
    if trained.empty:
        return "Random initialisation alone"
    best = trained.loc[trained["ours"].idxmax()]
    baseline = table.loc[table["objectives"] == "random", "ours"]
    above = f", {best['ours'] - baseline.iloc[0]:.1f} points above random initialisation" if len(baseline) else ""
    in_print = table.loc[published.idxmax(), "objectives"] if published.count() > 1 else None
    if in_print == best["objectives"]:
        return f"Highest here and in print is {in_print}{above}"
    return f"Highest here is {best['objectives']}{above}" + (f"; in print {in_print}" if in_print else "")


def _membership(axes: Axes, objectives: Series) -> None:
    """Objectives as dots, filled where a term is present, those of one joined by a line; first the printed terms."""
    parts = [[] if name == "random" else name.split("+") for name in objectives]
    terms = list(dict.fromkeys([*PRINTED, *itertools.chain(*parts)]))
    for column, names in enumerate(parts):
        present = [place for place, term in enumerate(terms) if term in names]
        absent = [place for place, term in enumerate(terms) if term not in names]
        axes.plot([column] * len(absent), absent, marker="o", color=style.PALE, linestyle="none")
        axes.plot([column] * len(present), present, marker="o", color=style.INK)
    axes.set(xlim=(-0.6, len(parts) - 0.4), xticks=[])
    choices_down(axes, terms)


def choices_down(axes: Axes, names: Sequence[str]) -> None:
    """Names from the top to the bottom, without a frame."""
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.4, -0.6), xticks=[])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def by_measure(rows: DataFrame) -> DataFrame:
    """Rows of `encoder_collapse` for each measure: accuracies, those of standardised readouts as lines, and spread."""
    parts = [rows.assign(measure=ACCURACY, line=rows["objectives"])]
    if "linear_standardised" in rows:
        parts.append(rows.assign(measure=ACCURACY, line=rows["objectives"] + ", standardised", std=math.nan,
                                 ours=rows["linear_standardised"], published=math.nan).dropna(subset="ours"))
    parts.append(rows.assign(measure=SPREAD, line=rows["objectives"], ours=rows["embedding_spread"], std=math.nan,
                             published=math.nan).dropna(subset="ours"))
    return pd.concat(parts, ignore_index=True)


def _depth(plot: Plot, data: DataFrame) -> str:
    """How AE stands to random initialisation at the first and the last depth."""
    wide = data[data["panel"] == ACCURACY].pivot_table("value", "x", LINE)
    if not {"AE", "random"} <= {*wide}:
        return "Accuracy by depth of the encoder"
    gaps = (wide["AE"] - wide["random"]).dropna()
    first, last = gaps.index[0], gaps.index[-1]
    return (f"AE is {gaps[first]:+.1f} points from random initialisation with {first} layer{'s' if first > 1 else ''}, "
            f"{gaps[last]:+.1f} with {last}")


ENCODER_COLLAPSE = Plot(
    caption="Linear-probe accuracy and spread of the embedding (standard deviation of the unit-length embedding, root "
    "mean square over its d coordinates, times sqrt(d); 1 isotropic, 0 collapsed) by depth of the encoder, at random "
    "initialisation and after training with the attractive encoder term alone; where measured, the probe on "
    "standardised readouts too. Source: supplement, Table 2.",
    x="layers", hue="line", panel="measure", looks=DEPTHS, prepare=by_measure, xlabel="layers of the encoder",
    least_span={ACCURACY: 5, SPREAD: 0.5},
    ylabel={ACCURACY: "accuracy (%)", SPREAD: "spread\n(1 isotropic)"}, finding=_depth,
)


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
    figure, stack = style.panels(0.75 * len(sequences), len(sequences), frames, sharex=True, sharey=True)
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
