"""SCE's pictures, of its tables and of the terms of its objective along a training."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from pandas import DataFrame, Series
from torch import Tensor

from repro.papers.sce.published import printed_grid
from repro.report import style
from repro.report.plots import Plot
from repro.report.style import Look

NAMES = {"moco": "MoCo v2", "ressl": "ReSSL", "sce": "SCE", "jcl": "JCL", "vanilla": "vanilla\nkeys"}
LEVELS = {"random": "random initialisation", "supervised": "supervised"}
HEAT = LinearSegmentedColormap.from_list("pale to blue", ["#EDF4FA", "#6FB1D9"])  # dark text is legible on all of it
BEST = {"edgecolor": style.INK, "linewidth": 1.2}


def by_kind(rows: DataFrame) -> DataFrame:
    """Rows of `image_methods` with `kind`: what is between random initialisation and supervised training, or these."""
    return rows.assign(kind=rows["method"].map(LEVELS).fillna("self-supervised"))


IMAGE_METHODS = Plot(
    caption="Linear-probe accuracy of self-supervised methods in one setting, between random initialisation and "
    "supervised training.",
    x="method", hue="kind", names=NAMES, prepare=by_kind, levels=tuple(LEVELS.values()), joined=False, height=1.6,
    ylabel="linear probe\naccuracy (%)",
    looks={"self-supervised": Look("self-supervised", style.BLUE, "o"),
           "random initialisation": Look("random initialisation", style.GREY, ""),
           "supervised": Look("supervised", style.GREEN, "")},
)
TERMS, REST = "terms of the objective", "loss minus weighted sum"


def terms(rows: DataFrame) -> DataFrame:
    """The terms along training and, in a panel of its own, what their weighted sum leaves of the loss."""
    names = ["InfoNCE", "ReSSL", "Ceil", "loss"]
    known = ["epoch", "seed", "dataset", "preset"]
    long = rows.melt(known, names, var_name="term", value_name="nats").assign(panel=TERMS)
    total = rows["weight"] * rows["InfoNCE"] + (1 - rows["weight"]) * (rows["ReSSL"] + rows["Ceil"])
    rest = rows[known].assign(term="rest", nats=rows["loss"] - total, panel=REST)
    return pd.concat([long, rest], ignore_index=True)


def _recomposed(plot: Plot, data: DataFrame) -> str:
    rest = data.loc[data["panel"] == REST, "value"].abs().max()
    return rf"The loss is $\lambda$ InfoNCE + (1 $-$ $\lambda$) (ReSSL + Ceil), but for {rest:.0g} nats at most"


OBJECTIVE_PARTS = Plot(
    caption="The terms of the SCE objective during training, and what their weighted sum leaves of the loss: "
    "lambda InfoNCE + (1 - lambda) (ReSSL + Ceil). Source: supplement, the proof of the decomposition.",
    x="epoch", y="nats", hue="term", panel="panel", prepare=terms, xlabel="epoch",
    ylabel="mean over the\nepoch (nats)", least_span=0, finding=_recomposed,
    looks={"InfoNCE": Look("InfoNCE", style.BLUE, "o"), "ReSSL": Look("ReSSL", style.VERMILLION, "s"),
           "Ceil": Look("Ceil", style.GREEN, "^"), "loss": Look("loss", style.INK, "D"),
           "rest": Look("loss minus weighted sum", style.PURPLE, "v")},
)


@style.styled()
def view_strip(views: dict[str, Tensor]) -> Figure:
    """Images and their views, a row for each kind.

    Args:
        views: by what they are, (n, 3, H, W) in [0, 1], the same images in every row.
    """
    count = max(len(images) for images in views.values())
    figure, stack = style.panels(style.COLUMN / count * len(views) + 0.1, len(views), count)
    for row, (name, images) in zip(np.reshape(stack, (-1, count)), views.items(), strict=True):
        row[0].set_ylabel(name.replace(" ", "\n"))
        for axes, image in zip(row, images, strict=True):
            axes.imshow(image.permute(1, 2, 0).clamp(0, 1).numpy(), interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
    return style.settled(figure)


@style.styled()
def temperature_grid(table: DataFrame) -> Figure:
    """Linear-probe accuracy of SCE by the temperature of the query and that of the target, ours and printed, and of
    ReSSL.

    The best cell of each row of several is framed, of ours where all are means over seeds: the best of single seeds
    says little. Printed, it is the best of all temperatures, also of those that are not drawn. Missing cells are
    hatched. Ours and printed share a colour scale with the paper recipe alone; printed values are not shown on bundled
    data. ReSSL has colours of its own, because a collapse would leave no difference between those of SCE.

    Args:
        table: one row per cell: method ("sce" or "ressl"), temperature (tau), key_temperature (tau_m), ours, std,
            n_seeds, published, preset, dataset; accuracies in percent, temperatures without unit.

    Raises:
        ValueError: if the table has a cell twice.

    Source: SCE supplement, Table 2.
    """
    ours = table.assign(value=table["ours"])
    printed = table.assign(value=style.comparable(table), std=math.nan).dropna(subset="value")
    sce, ressl = (ours[ours["method"] == method] for method in ("sce", "ressl"))
    together = style.only(table, "preset") == "paper"
    shared = pd.concat([sce["value"], printed["value"]]) if together else None
    maps = [("SCE, ours", sce, shared, _best_of_rows(sce))]
    if len(printed):
        apart = "" if together else " (not comparable: own colours)"
        best = printed_grid(style.only(table, "dataset")).groupby("temperature").max()
        maps.append((f"SCE, printed{apart}", printed, shared, best))
    if len(ressl):
        maps.append(("ReSSL, ours (own colours)", ressl, None, _best_of_rows(ressl)))
    heights = [rows["temperature"].nunique() for _, rows, *_ in maps]
    height = 0.85 + 0.2 * len(maps) + 0.3 * sum(heights)
    figure, stack = style.panels(height, len(maps), sharex=True, height_ratios=heights)
    for axes, (name, rows, scale, best) in zip(stack, maps, strict=True):
        axes.set_title(name, loc="left")
        _heat_map(axes, rows, rows["value"] if scale is None else scale, np.unique(table["key_temperature"]), best)
    stack[-1].set_xlabel(r"temperature of the target $\tau_m$")
    marks = [
        Patch(facecolor="none", label="best of its row", **BEST),
        Patch(facecolor="white", edgecolor=style.GREY, linewidth=0, hatch="//////", label="no value"),
    ]
    style.legend_below(figure, marks)
    best = sce.loc[sce["ours"].idxmax()]
    scatter = "" if np.isnan(best["std"]) else f" {style.PLUS_MINUS} {best['std']:.1f}"
    finding = f"SCE is highest at {best['ours']:.1f}{scatter} % with temperatures "
    finding += f"{best['temperature']:g} of the query and {best['key_temperature']:g} of the target"
    style.entitle(figure, finding, style.heading(table))
    return style.settled(figure)


def _best_of_rows(rows: DataFrame) -> Series:
    """The highest mean of each temperature of the query whose cells are all means over seeds."""
    groups = rows.groupby("temperature")
    return groups["value"].max()[groups["std"].count() == groups.size()]


def _heat_map(axes: Axes, rows: DataFrame, scale: Series, key_temperatures: np.ndarray, best: Series) -> None:
    """Temperatures downwards, key temperatures across; values and deviations written into the cells.

    Args:
        scale: from the lowest to the highest of these values colours reach.
        best: by temperature, the value that has a frame.
    """
    import seaborn  # which takes a second

    texts = [f"{row.value:.2f}" + ("" if math.isnan(row.std) else f"\n{style.PLUS_MINUS}{row.std:.1f}")
             for row in rows[["value", "std"]].rename_axis(None).itertuples()]
    grid = rows.assign(text=texts).pivot(index="temperature", columns="key_temperature", values=["value", "text"])
    values = grid["value"].reindex(columns=key_temperatures).astype(float)
    axes.patch.set(hatch="//////", edgecolor=style.GREY)
    seaborn.heatmap(values, ax=axes, cmap=HEAT, vmin=scale.min(), vmax=scale.max(), cbar=False,
                    annot=grid["text"].reindex(columns=key_temperatures), fmt="",
                    annot_kws={"color": style.INK, "linespacing": 1.0}, linewidth=0.6,
                    xticklabels=[f"{key:.2f}" for key in key_temperatures],
                    yticklabels=[rf"$\tau$ = {temperature:g}" for temperature in values.index])
    axes.tick_params(length=0, rotation=0)
    axes.set(xlabel="", ylabel="")
    for row, (temperature, accuracies) in enumerate(values.iterrows()):
        if accuracies.count() > 1 and temperature in best:
            for place in np.flatnonzero(accuracies == best[temperature])[:1]:  # none if it is not drawn
                axes.add_patch(Rectangle((place, row), 1, 1, fill=False, clip_on=False, **BEST))
