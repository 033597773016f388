"""JCL's pictures, of its tables and of what was measured after a training."""

import numpy as np
import pandas as pd
import seaborn
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.report import style
from repro.report.plots import Picture, Plot
from repro.report.text import PLUS_MINUS

VARIED = {
    "keys": "positive keys $M'$ ($M'$ + 3 encodings of an image)",
    "strength": r"strength of the covariance $\lambda$",
    "temperature": r"temperature $\tau$",
}
ERRORS = f"mean {PLUS_MINUS} standard error of draws"
MEANS = {"inside": "mean inside the logarithm", "outside": "mean of $M$ InfoNCE losses"}


def by_sweep(rows: DataFrame) -> DataFrame:
    """Rows of `positive_keys` with their place `at` in the sweep that they are of, and MoCo v2, of one key.

    MoCo v2 has a temperature of its own, so that the sweep of temperatures goes without.
    """
    moco = rows.loc[(rows["varied"] == "keys") & (rows["keys"] == 1), "ours"].mean()
    return rows.assign(at=[row[row["varied"]] for row in rows.to_dict("records")],
                       moco=rows["varied"].map({"keys": moco, "strength": moco}))


POSITIVE_KEYS = Plot(
    caption="Linear-probe accuracy of JCL by the number of positive keys, the strength of their covariance and the "
    "temperature, one of them varied at a time; with one key it is MoCo v2. The supplement prints no values of these "
    "curves, so that there is nothing to compare with. Source: Figure M.2.",
    x="at", panel="varied", prepare=by_sweep, names=VARIED, ylabel="linear probe\naccuracy (%)",
    reference="moco", reference_label="MoCo v2 ($M'$ = 1)",
)


def means_of_draws(rows: DataFrame) -> DataFrame:
    """Both means with their standard errors, `std`, over independent draws."""
    parts = []
    for name in MEANS:
        errors = rows[f"{name}_std"] / np.sqrt(rows["repeats"])
        parts.append(rows.assign(line=name, nats=rows[name], std=errors, n_seeds=1, errors=ERRORS))
    return pd.concat(parts, ignore_index=True)


SAMPLED_KEYS = Plot(
    caption="The JCL loss in closed form, and with M keys drawn from the Gaussian: the mean inside the logarithm tends "
    "to the closed form from below, the mean of M InfoNCE losses stays at the expected InfoNCE. Shaded: one standard "
    "error of each mean over independent draws. Source: supplement, Eq. M.8.",
    x="keys", y="nats", hue="line", prepare=means_of_draws, reference="closed_form",
    reference_label="closed form (Eq. M.8)", xlabel="keys drawn, $M$", ylabel="loss (nats)", logarithmic=True,
    lines=MEANS,
)


@style.styled()
def similarity_variance(table: DataFrame, title: str = "") -> Figure:
    """How closely the augmentations of an image agree: mean cosine similarity a of all pairs, one value per image, and
    above it the mean variance b = (1 - a)/d of the d coordinates, whose histogram is the same mirrored. Vertical lines
    are medians.

    Args:
        table: one row per image and model: model ("JCL", "MoCo v2"), similarity (without unit, as from
            `report.histograms.similarity_and_variance`), d, the number of coordinates, seed, dataset and preset.

    Source: JCL supplement, Figure M.3.
    """
    d = style.only(table, "d")
    colours = {"JCL": style.BLUE, "MoCo v2": style.VERMILLION}
    grid = seaborn.displot(
        table, x="similarity", hue="model", hue_order=[*colours], palette=colours, bins=40, stat="percent",
        common_norm=False, element="step", fill=False, legend=False)
    for model, values in table.groupby("model")["similarity"]:
        grid.ax.axvline(values.median(), color=colours[model], linestyle="--", linewidth=0.8,
                        label=f"{model}, {len(values):,} images, median {values.median():.3f}")
    grid.ax.set(xlabel="mean similarity a of an image's augmentations", ylabel="images (%)")
    grid.ax.grid(axis="y")
    above = grid.ax.secondary_xaxis("top", functions=(lambda a: 1000 * (1 - a) / d, lambda b: 1 - b * d / 1000))
    above.set_xlabel(f"mean variance b = (1 $-$ a)/{d:g}, in thousandths")
    return style.finish(grid.figure, 2.2, title, style.heading(table))


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
