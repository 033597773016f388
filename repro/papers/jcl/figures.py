"""JCL's pictures, of its tables and of what was measured after a training."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.report import style
from repro.report.plots import LINE, Plot
from repro.report.style import Look

VARIED = {
    "keys": "positive keys $M'$ ($M'$ + 3 encodings of an image)",
    "strength": r"strength of the covariance $\lambda$",
    "temperature": r"temperature $\tau$",
}
MOCO = "MoCo v2 ($M'$ = 1)"


def by_sweep(rows: DataFrame) -> DataFrame:
    """Rows of `positive_keys` with their place `at` in the sweep that they are of; MoCo v2, of one key, as a level.

    It has a temperature of its own, so that the sweep of temperatures goes without. Of several rows at a place the
    first counts; a sweep of one value is left out where there are others.
    """
    rows = rows.assign(at=[row[row["varied"]] for row in rows.to_dict("records")], line="JCL")
    rows = rows.drop_duplicates(["varied", "at"])
    several = rows.groupby("varied")["at"].transform("nunique") > 1
    rows = rows[several | ~several.any()]
    moco = rows[(rows["varied"] == "keys") & (rows["keys"] == 1)].assign(line=MOCO)
    levels = [moco.assign(varied=varied) for varied in ("keys", "strength") if varied in set(rows["varied"])]
    return pd.concat([rows, *levels], ignore_index=True)


def _sweeps(plot: Plot, data: DataFrame) -> str:
    """The place with the highest accuracy of each sweep."""
    best = data[data[LINE] == "JCL"].sort_values("value").groupby("panel")["x"].last()
    symbols = {"keys": "$M'$", "strength": r"$\lambda$", "temperature": r"$\tau$"}
    places = ", ".join(f"{symbols[name]} = {best[name]:g}" for name in VARIED if name in best)
    return f"Highest at {places}, one of them varied at a time"


POSITIVE_KEYS = Plot(
    caption="Linear-probe accuracy of JCL by the number of positive keys, the strength of their covariance and the "
    "temperature, one of them varied at a time; with one key it is MoCo v2, a line with its standard deviation. The "
    "supplement prints no values of these curves, so that there is nothing to compare with. Source: Figure M.2.",
    x="at", hue="line", panel="varied", prepare=by_sweep, names=dict.fromkeys(VARIED, ""), xlabel=VARIED,
    ylabel="linear probe\naccuracy (%)", levels=(MOCO,), finding=_sweeps,
    looks={"JCL": Look("JCL", style.BLUE, "o"), MOCO: Look(MOCO, style.VERMILLION, "")},
)
MODELS = {"JCL": Look("JCL", style.BLUE, "-"), "MoCo v2": Look("MoCo v2", style.VERMILLION, "--")}  # and its line
ERRORS = f"mean {style.PLUS_MINUS} standard error of draws"
INSIDE, OUTSIDE = "mean inside the logarithm", "mean of $M$ InfoNCE losses"


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
    least_span=0, finding=_limits, height=1.8,
    looks={INSIDE: Look(INSIDE, style.BLUE, "o"), OUTSIDE: Look(OUTSIDE, style.VERMILLION, "s")},
)


@style.styled()
def similarity_variance(table: DataFrame) -> Figure:
    """How closely the augmentations of an image agree: mean cosine similarity a of all pairs and mean variance b of the
    coordinates, one value per image. b = (1 - a)/d: the second histogram mirrors the first.

    Args:
        table: one row per image and model: model ("JCL", "MoCo v2"), similarity, variance (both without unit, as from
            `report.histograms.similarity_and_variance`), d, the number of coordinates, seed, dataset and preset.

    Source: JCL supplement, Figure M.3.
    """
    d = style.only(table, "d")
    figure, stack = style.panels(3.9, 2)
    top, bottom = stack
    for axes, column in zip(stack, ("similarity", "variance"), strict=True):
        bins = np.histogram_bin_edges(table[column].dropna(), 40)
        for model, look in MODELS.items():
            values = table.loc[table["model"] == model, column].dropna()
            label = f"{look.label}, {len(values):,} images, median {values.median():.3f}"
            axes.hist(values, bins, weights=np.full(len(values), 100 / max(len(values), 1)), histtype="step",
                      color=look.colour, linestyle=look.marker)
            axes.axvline(values.median(), color=look.colour, linestyle=look.marker, linewidth=0.6,
                         label=label if axes is top else "")
        axes.grid(axis="y")
        axes.locator_params(axis="x", nbins=5)  # a narrow range has long labels
        axes.set_ylabel("images (%)")
    top.set_xlabel("mean cosine similarity a of an image's augmentations")
    bottom.set_xlabel("mean variance b of a coordinate")
    bottom.ticklabel_format(axis="x", style="sci", scilimits=(-3, 3))
    bottom.set_title(f"b = (1 $-$ a)/d, d = {d:g}: the histogram above, mirrored", loc="left")
    style.legend_below(figure, style.legend_of(stack))
    medians = table.groupby("model")["similarity"].median()
    alike = f"{medians.idxmax()} has the views of an image more alike: median {medians.max():.2f}"
    style.entitle(figure, f"{alike} against {medians.min():.2f}", style.heading(table))
    return style.settled(figure)
