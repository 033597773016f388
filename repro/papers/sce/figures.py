"""SCE's pictures, of its tables and of the terms of its objective along a training."""

import math

import pandas as pd
from pandas import DataFrame

from repro.report.plots import Picture, Plot

NAMES = {"random": "random initialisation", "moco": "MoCo v2", "ressl": "ReSSL", "jcl": "JCL",
         "vanilla": "vanilla keys", "sce": "SCE", "supervised": "supervised"}
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


def by_temperatures(rows: DataFrame) -> DataFrame:
    """Rows of `temperature_grid` as lines over the target's temperature, ours and printed ones in panels."""
    lines = rows.assign(line=rows["method"].map(NAMES) + rows["temperature"].map(r", $\tau$ = {:g}".format))
    theirs = lines.assign(ours=lines["printed"], std=math.nan, unit="accuracy, printed (%)")
    both = pd.concat([lines.assign(unit="accuracy, ours (%)"), theirs])
    return both.assign(printed=math.nan).dropna(subset="ours")


TEMPERATURE_GRID = Plot(
    caption="Linear-probe accuracy of SCE by the temperatures of query and target, and of ReSSL; ours, and where they "
    "may be shown the printed ones. Source: SCE supplement, Table 2.",
    x="key_temperature", hue="line", prepare=by_temperatures, xlabel=r"temperature of the target $\tau_m$",
)


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
