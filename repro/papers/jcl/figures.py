"""JCL's pictures, of its tables and of what was measured after a training."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.report import style
from repro.report.plots import LINE, Picture, Plot
from repro.report.style import Look
from repro.report.text import PLUS_MINUS

VARIED = {
    "keys": "positive keys $M'$ ($M'$ + 3 encodings of an image)",
    "strength": r"strength of the covariance $\lambda$",
    "temperature": r"temperature $\tau$",
}
ERRORS = f"mean {PLUS_MINUS} standard error of draws"
INSIDE, OUTSIDE = "mean inside the logarithm", "mean of $M$ InfoNCE losses"


def by_sweep(rows: DataFrame) -> DataFrame:
    """Rows of `positive_keys` with their place `at` in the sweep that they are of, and MoCo v2, of one key.

    MoCo v2 has a temperature of its own, so that the sweep of temperatures goes without.
    """
    moco = rows.loc[(rows["varied"] == "keys") & (rows["keys"] == 1), "ours"].mean()
    return rows.assign(at=[row[row["varied"]] for row in rows.to_dict("records")],
                       moco=rows["varied"].map({"keys": moco, "strength": moco}))


def _sweeps(plot: Plot, data: DataFrame) -> str:
    """How far settings lie apart, beside how far seeds do."""
    settings = data.drop_duplicates(["value", "std"])  # one is of all three sweeps
    low, high, deviation = settings["value"].min(), settings["value"].max(), settings["std"].median()
    scatter = "" if math.isnan(deviation) else f", seeds of one deviate by {deviation:.1f} (median)"
    return f"Settings lie between {low:.1f} and {high:.1f} %{scatter}"


POSITIVE_KEYS = Plot(
    caption="Linear-probe accuracy of JCL by the number of positive keys, the strength of their covariance and the "
    "temperature, one of them varied at a time; with one key it is MoCo v2. The supplement prints no values of these "
    "curves, so that there is nothing to compare with. Source: Figure M.2.",
    x="at", panel="varied", prepare=by_sweep, names=VARIED, ylabel="linear probe\naccuracy (%)", finding=_sweeps,
    reference="moco", reference_label="MoCo v2 ($M'$ = 1)",
)


def means_of_draws(rows: DataFrame) -> DataFrame:
    """Both means with their standard errors, `std`, over independent draws."""
    parts = []
    for name, line in (("inside", INSIDE), ("outside", OUTSIDE)):
        errors = rows[f"{name}_std"] / np.sqrt(rows["repeats"])
        parts.append(rows.assign(line=line, nats=rows[name], std=errors, n_seeds=1, errors=ERRORS))
    return pd.concat(parts, ignore_index=True)


def _limits(plot: Plot, data: DataFrame) -> str:
    ends = data.sort_values("x").groupby(LINE).last()
    gaps = (ends["value"] - ends["reference"]).abs()
    return (f"With {ends['x'].iloc[0]:,.0f} keys the mean inside the logarithm is {gaps[INSIDE]:.2g} nats from the "
            f"closed form, the mean of losses {gaps[OUTSIDE]:.2g}")


SAMPLED_KEYS = Plot(
    caption="The JCL loss in closed form, and with M keys drawn from the Gaussian: the mean inside the logarithm tends "
    "to the closed form from below, the mean of M InfoNCE losses stays at the expected InfoNCE. Shaded: one standard "
    "error of each mean over independent draws. Source: supplement, Eq. M.8.",
    x="keys", y="nats", hue="line", prepare=means_of_draws, reference="closed_form",
    reference_label="closed form (Eq. M.8)", xlabel="keys drawn, $M$", ylabel="loss (nats)", logarithmic=True,
    least_span=0, finding=_limits,
    looks={INSIDE: Look(INSIDE, style.BLUE, "o"), OUTSIDE: Look(OUTSIDE, style.VERMILLION, "s")},
)


@style.styled()
def similarity_variance(table: DataFrame) -> Figure:
    """How closely the augmentations of an image agree: mean cosine similarity a of all pairs, one value per image, and
    above it the mean variance b = (1 - a)/d of the d coordinates, whose histogram is the same mirrored. Vertical lines
    are medians.

    Args:
        table: one row per image and model: model ("JCL", "MoCo v2"), similarity (without unit, as from
            `report.histograms.similarity_and_variance`), d, the number of coordinates, seed, dataset and preset.

    Source: JCL supplement, Figure M.3.
    """
    d = style.only(table, "d")
    figure, (axes,) = style.panels(2.4)
    bins = np.histogram_bin_edges(table["similarity"].dropna(), 40)
    medians = table.groupby("model")["similarity"].median()
    for model, colour, line in (("JCL", style.BLUE, "-"), ("MoCo v2", style.VERMILLION, "--")):
        values = table.loc[table["model"] == model, "similarity"].dropna()
        axes.hist(values, bins, weights=np.full(len(values), 100 / max(len(values), 1)), histtype="step", color=colour,
                  linestyle=line)
        axes.axvline(medians.get(model, math.nan), color=colour, linestyle=line, linewidth=0.6,
                     label=f"{model}, {len(values):,} images, median {medians.get(model, math.nan):.3f}")
    axes.set(xlabel="mean cosine similarity a of an image's augmentations", ylabel="images (%)")
    axes.grid(axis="y")
    above = axes.secondary_xaxis("top", functions=(lambda a: 1000 * (1 - a) / d, lambda b: 1 - b * d / 1000))
    above.set_xlabel(f"mean variance b = (1 $-$ a)/{d:g}, in thousandths")
    seeds = table["seed"].nunique()
    finding = "Median similarity of an image's views: " + ", ".join(
        f"{model} {median:.3f}" for model, median in medians.items())
    return style.finish(figure, f"{finding}; {seeds} seed{'s' if seeds > 1 else ''} of each", style.heading(table))


def of_most_keys(rows: DataFrame) -> DataFrame:
    """The run with most positive keys, the first of several."""
    ids = rows.loc[rows["positives"] == rows["positives"].max(), "id"]
    return rows[rows["id"] == ids.iloc[0]].drop(columns="entry")


PICTURES = {
    "similarity_variance_images_cifar10": Picture(
        experiments=("similarity_variance_cifar10",), frame="similarity", plot=similarity_variance),
    "sampled_keys_cifar10": Picture(
        experiments=("positive_keys_cifar10",), frame="sampled_keys", rows=of_most_keys, plot=SAMPLED_KEYS),
}
