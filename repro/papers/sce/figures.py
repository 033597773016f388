"""SCE's pictures, of its tables and of the terms of its objective along a training."""

import math

import pandas as pd
import seaborn
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.report import style
from repro.report.plots import Picture, Plot
from repro.report.text import PLUS_MINUS

NAMES = {"random": "random initialisation", "moco": "MoCo v2", "ressl": "ReSSL", "jcl": "JCL",
         "vanilla": "vanilla keys", "sce": "SCE", "supervised": "supervised"}
HEAT = LinearSegmentedColormap.from_list("pale to blue", ["#EDF4FA", "#6FB1D9"])  # dark text is legible on all of it
TERMS, REST = "mean over the\nepoch (nats)", "loss less the\nweighted sum (nats)"


IMAGE_METHODS = Plot(
    caption="Linear-probe accuracy of self-supervised methods in one setting, between random initialisation and "
    "supervised training.",
    x="method", names=NAMES,
)


def as_recipes(rows: DataFrame) -> DataFrame:
    """A column `recipe`: what each is called, with the temperatures and the weight that it uses."""
    symbols = {"temperature": r"$\tau$", "key_temperature": r"$\tau_m$", "strength": r"$\lambda$"}
    names = rows["method"].map(NAMES)
    for field, symbol in symbols.items():
        names += rows[field].map(lambda value, symbol=symbol: "" if pd.isna(value) else f", {symbol} = {value:g}")
    return rows.assign(recipe=names)


REGISTERED = Plot(
    caption="Linear-probe accuracy of the twelve recipes whose order was registered, by the temperatures of query and "
    "target, and by the weight lambda of JCL's covariance.",
    x="recipe", prepare=as_recipes,
)


def terms(rows: DataFrame) -> DataFrame:
    """The terms along training and, in a panel of its own, what their weighted sum leaves of the loss."""
    known = ["epoch", "seed", "dataset", "preset"]
    long = rows.melt(known, ["InfoNCE", "ReSSL", "Ceil", "loss"], var_name="term", value_name="nats")
    total = rows["weight"] * rows["InfoNCE"] + (1 - rows["weight"]) * (rows["ReSSL"] + rows["Ceil"])
    rest = rows[known].assign(term="rest", nats=rows["loss"] - total, unit=REST)
    return pd.concat([long.assign(unit=TERMS), rest], ignore_index=True)


OBJECTIVE_PARTS = Plot(
    caption="The terms of the SCE objective during training, and what their weighted sum leaves of the loss: "
    "lambda InfoNCE + (1 - lambda) (ReSSL + Ceil). It is the one run whose losses were kept; no probe was taken along "
    "training. Source: supplement, the proof of the decomposition.",
    x="epoch", y="nats", hue="term", prepare=terms, xlabel="epoch",
    lines={name: name for name in ("InfoNCE", "ReSSL", "Ceil", "loss")} | {"rest": "loss less the weighted sum"},
)


@style.styled()
def temperature_grid(table: DataFrame, title: str = "") -> Figure:
    """Linear-probe accuracy of SCE by the temperature of the query and that of the target, ours and printed, and of
    ReSSL. Each has colours of its own; nothing printed is shown on bundled data.

    Args:
        table: one row per cell: method ("sce" or "ressl"), temperature (tau), key_temperature (tau_m), ours, std,
            n_seeds, printed, preset, dataset; accuracies in percent, temperatures without unit.

    Raises:
        ValueError: if the table has a cell twice.

    Source: SCE supplement, Table 2.
    """
    ours = table.assign(of=table["method"].map(NAMES) + ", ours", value=table["ours"])
    theirs = table[table["method"] == "sce"].assign(of="SCE, printed", value=table["printed"], std=math.nan)
    maps = pd.concat([ours, theirs]).dropna(subset="value")
    names = [name for name in ("SCE, ours", "SCE, printed", "ReSSL, ours") if name in {*maps["of"]}]
    inches = [0.3 + 0.3 * maps.loc[maps["of"] == name, "temperature"].nunique() for name in names]
    grid = seaborn.FacetGrid(maps, row="of", row_order=names, sharey=False, gridspec_kws={"height_ratios": inches})
    grid.map_dataframe(_heat_map, key_temperatures=sorted(table["key_temperature"].unique()))
    grid.set_titles("{row_name}").set_axis_labels(r"temperature of the target $\tau_m$", "")
    return style.finish(grid.figure, 0.4 + sum(inches), title, style.heading(table))


def _heat_map(data: DataFrame, key_temperatures: list[float], **_: object) -> None:
    """Temperatures downwards, key temperatures across; values and deviations written into the cells."""
    written = [f"{mean:.2f}" + ("" if math.isnan(deviation) else f"\n{PLUS_MINUS}{deviation:.1f}")
               for mean, deviation in zip(data["value"], data["std"], strict=True)]
    grid = data.assign(text=written).pivot(index="temperature", columns="key_temperature", values=["value", "text"])
    values, texts = (grid[name].reindex(columns=key_temperatures) for name in ("value", "text"))
    axes = seaborn.heatmap(
        values.astype(float), annot=texts, fmt="", cmap=HEAT, cbar=False, linewidth=0.6,
        annot_kws={"color": style.INK, "linespacing": 1.0}, xticklabels=[f"{key:.2f}" for key in key_temperatures],
        yticklabels=[rf"$\tau$ = {temperature:g}" for temperature in grid.index])
    axes.tick_params(length=0, rotation=0)


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
