"""SCE's pictures, of its tables and of the terms of its objective along a training."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.report import style
from repro.report.plots import Picture, Plot
from repro.report.style import Look
from repro.report.text import PLUS_MINUS

NAMES = {"random": "random initialisation", "moco": "MoCo v2", "ressl": "ReSSL", "jcl": "JCL",
         "vanilla": "vanilla keys", "sce": "SCE", "supervised": "supervised"}
HEAT = LinearSegmentedColormap.from_list("pale to blue", ["#EDF4FA", "#6FB1D9"])  # dark text is legible on all of it
TERMS, REST = "mean over the\nepoch (nats)", "loss less the\nweighted sum (nats)"


def _between(plot: Plot, data: DataFrame) -> str:
    """Where the self-supervised methods lie between random initialisation and supervised training."""
    values = data.set_index("x")["value"]
    methods = values.drop(["random", "supervised"], errors="ignore")
    finding = f"Self-supervised methods reach {methods.min():.1f} to {methods.max():.1f} %"
    for name in ("random", "supervised"):
        finding += f", {plot.called(name)} {values[name]:.1f} %" if name in values else ""
    return finding


IMAGE_METHODS = Plot(
    caption="Linear-probe accuracy of self-supervised methods in one setting, between random initialisation and "
    "supervised training.",
    x="method", names=NAMES, finding=_between,
)


def terms(rows: DataFrame) -> DataFrame:
    """The terms along training and, in a panel of its own, what their weighted sum leaves of the loss."""
    known = ["epoch", "seed", "dataset", "preset"]
    long = rows.melt(known, ["InfoNCE", "ReSSL", "Ceil", "loss"], var_name="term", value_name="nats")
    total = rows["weight"] * rows["InfoNCE"] + (1 - rows["weight"]) * (rows["ReSSL"] + rows["Ceil"])
    rest = rows[known].assign(term="rest", nats=rows["loss"] - total, unit=REST)
    return pd.concat([long.assign(unit=TERMS), rest], ignore_index=True)


def _recomposed(plot: Plot, data: DataFrame) -> str:
    rest = data.loc[data["unit"] == REST, "value"].abs().max()
    return rf"The loss is $\lambda$ InfoNCE + (1 $-$ $\lambda$) (ReSSL + Ceil), but for {rest:.0g} nats at most"


OBJECTIVE_PARTS = Plot(
    caption="The terms of the SCE objective during training, and what their weighted sum leaves of the loss: "
    "lambda InfoNCE + (1 - lambda) (ReSSL + Ceil). Source: supplement, the proof of the decomposition.",
    x="epoch", y="nats", hue="term", prepare=terms, xlabel="epoch", least_span=0, finding=_recomposed,
    looks={"InfoNCE": Look("InfoNCE", style.BLUE, "o"), "ReSSL": Look("ReSSL", style.VERMILLION, "s"),
           "Ceil": Look("Ceil", style.GREEN, "^"), "loss": Look("loss", style.INK, "D"),
           "rest": Look("loss less the weighted sum", style.PURPLE, "v")},
)


@style.styled()
def temperature_grid(table: DataFrame) -> Figure:
    """Linear-probe accuracy of SCE by the temperature of the query and that of the target, ours and printed, and of
    ReSSL. Each has colours of its own; nothing printed is shown on bundled data.

    Args:
        table: one row per cell: method ("sce" or "ressl"), temperature (tau), key_temperature (tau_m), ours, std,
            n_seeds, printed, preset, dataset; accuracies in percent, temperatures without unit.

    Raises:
        ValueError: if the table has a cell twice.

    Source: SCE supplement, Table 2.
    """
    table = table.assign(exact=math.nan)
    sce, ressl = (table[table["method"] == method] for method in ("sce", "ressl"))
    maps = [("SCE, ours", sce, "ours", "std"), ("SCE, printed", sce, "printed", "exact"),
            ("ReSSL, ours", ressl, "ours", "std")]
    maps = [(title, rows, value, spread) for title, rows, value, spread in maps if rows[value].notna().any()]
    heights = [rows["temperature"].nunique() for _, rows, *_ in maps]
    figure, stack = style.panels(0.85 + 0.2 * len(maps) + 0.3 * sum(heights), len(maps), sharex=True,
                                 height_ratios=heights)
    for axes, (title, rows, value, spread) in zip(stack, maps, strict=True):
        axes.set_title(title)
        _heat_map(axes, rows, value, spread, np.unique(table["key_temperature"]))
    stack[-1].set_xlabel(r"temperature of the target $\tau_m$")
    best = sce.loc[sce["ours"].idxmax()]
    scatter = "" if np.isnan(best["std"]) else f" {PLUS_MINUS} {best['std']:.1f}"
    finding = f"SCE is highest at {best['ours']:.1f}{scatter} % with temperatures "
    finding += f"{best['temperature']:g} of the query and {best['key_temperature']:g} of the target"
    return style.finish(figure, finding, style.heading(table))


def _heat_map(axes: Axes, rows: DataFrame, value: str, spread: str, key_temperatures: np.ndarray) -> None:
    """Temperatures downwards, key temperatures across; values and deviations written into the cells."""
    import seaborn  # which takes a second

    texts = [f"{mean:.2f}" + ("" if math.isnan(deviation) else f"\n{PLUS_MINUS}{deviation:.1f}")
             for mean, deviation in zip(rows[value], rows[spread], strict=True)]
    grid = rows.assign(text=texts).pivot(index="temperature", columns="key_temperature", values=[value, "text"])
    values = grid[value].reindex(columns=key_temperatures).astype(float)
    seaborn.heatmap(values, ax=axes, cmap=HEAT, cbar=False, annot=grid["text"].reindex(columns=key_temperatures),
                    fmt="", annot_kws={"color": style.INK, "linespacing": 1.0}, linewidth=0.6,
                    xticklabels=[f"{key:.2f}" for key in key_temperatures],
                    yticklabels=[rf"$\tau$ = {temperature:g}" for temperature in values.index])
    axes.tick_params(length=0, rotation=0)
    axes.set(xlabel="", ylabel="")


def of_first_run(rows: DataFrame) -> DataFrame:
    """The first run of SCE that was trained, in the order of the table."""
    rows = rows.dropna(subset=["InfoNCE", "ReSSL", "Ceil"])
    names = ["epoch", "InfoNCE", "ReSSL", "Ceil", "loss", "weight", "entry", "id", "seed", "dataset", "preset"]
    return rows.loc[rows["id"] == rows["id"].iloc[0], names]


PICTURES = {
    "objective_parts_cifar10": Picture(
        experiments=("temperature_grid_cifar10",), frame="epochs", fields=("weight",), rows=of_first_run,
        plot=OBJECTIVE_PARTS),
}
