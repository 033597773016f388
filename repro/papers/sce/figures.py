"""SCE's figures, each drawn from one table of stored results or one log.

All of them raise ValueError if these are empty, or mix presets, data sets, or what else a figure shows one of.
"""

import numpy as np
import seaborn
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from pandas import DataFrame, Series
from torch import Tensor

from repro.papers.sce.tables import printed_grid
from repro.report.redraw import Drawing
from repro.report.style import (
    BLUE,
    COLUMN,
    GREEN,
    GREY,
    INK,
    PURPLE,
    VERMILLION,
    comparable,
    draw_level,
    draw_ours,
    heading,
    legend_above,
    only,
    origin,
    panels,
    settled,
    styled,
)

METHOD_NAMES = {"moco": "MoCo v2", "ressl": "ReSSL", "sce": "SCE", "jcl": "JCL", "vanilla": "vanilla keys"}
HEAT = LinearSegmentedColormap.from_list("pale to blue", ["#EDF4FA", "#6FB1D9"])  # dark text is legible on all of it
BEST = {"edgecolor": INK, "linewidth": 1.2}
EQUAL = {"edgecolor": VERMILLION, "linewidth": 1.2, "linestyle": "--"}


@styled()
def image_methods(table: DataFrame) -> Figure:
    """Accuracy of every method; random initialisation and supervised training as lines across, with their deviation.

    Args:
        table: one row per method: method, ours, std (percent), n_seeds, preset, dataset.
    """
    title = heading(table)
    lines = {"random": ("random initialisation", GREY, "--"), "supervised": ("supervised", GREEN, "-")}
    methods = table[~table["method"].isin(lines)]
    figure, (axes,) = panels(title, 2.2, grid="y")
    draw_ours(axes, np.arange(len(methods)), methods, BLUE, "o", "self-supervised, ours", line="none")
    for row in table[table["method"].isin(lines)].dropna(subset="ours").itertuples():
        label, colour, line = lines[row.method]
        draw_level(axes, row, colour, line, label)
    names = [METHOD_NAMES.get(method, method) for method in methods["method"]]
    axes.set(xticks=np.arange(len(methods)), xticklabels=names, xlim=(-0.5, max(len(methods), 1) - 0.5))
    axes.set_ylabel("linear probe\naccuracy (%)")
    figure.legend(loc="outside lower center", ncols=2)
    return settled(figure)


@styled()
def view_strip(views: dict[str, Tensor]) -> Figure:
    """Images and their views, a row for each kind.

    Args:
        views: by what they are, (n, 3, H, W) in [0, 1], the same images in every row.
    """
    count = max(len(images) for images in views.values())
    figure = Figure(figsize=(COLUMN, COLUMN / count * len(views) + 0.1), layout="constrained")
    rows = figure.subplots(len(views), count, squeeze=False)
    for row, (name, images) in zip(rows, views.items(), strict=True):
        row[0].set_ylabel(name.replace(" ", "\n"))
        for axes, image in zip(row, images, strict=True):
            axes.imshow(image.permute(1, 2, 0).clamp(0, 1).numpy(), interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
    return settled(figure)


@styled()
def temperature_grid(table: DataFrame) -> Figure:
    """Accuracy for every pair of temperatures, as heat maps with the values written in: SCE, ours and printed, ReSSL.

    The best cell of each row of several is framed; where the best of a printed row is not among the key temperatures
    that were run, the title says where it is. Cells in which both temperatures agree are dashed, missing ones hatched.
    Ours and printed share a colour scale with the paper recipe alone; printed values are not shown on bundled data.
    ReSSL has colours of its own, because a collapse would leave no difference between those of SCE; how far its
    embeddings and SCE's spread where both temperatures agree is in its title.

    Args:
        table: one row per cell: method ("sce" or "ressl"), temperature (tau), key_temperature (tau_m), ours, std,
            n_seeds, published, embedding_spread (0 to 1; may be missing), preset, dataset; accuracies in percent,
            temperatures without unit.

    Raises:
        ValueError: if the table has a cell twice.

    Source: SCE supplement, Table 2.
    """
    title = heading(table)
    table = table.assign(published=comparable(table))
    sce, ressl = (table[table["method"] == method] for method in ("sce", "ressl"))
    together = only(table, "preset") == "paper"
    apart = "" if together else " (not comparable: own colours)"
    shared = sce[["ours", "published"]] if together else None
    maps = [
        ("SCE, ours", sce, "ours", shared),
        (f"SCE, printed{apart}", sce.dropna(subset="published"), "published", shared),
        (f"ReSSL, ours (own colours){_spreads(sce, ressl)}", ressl, "ours", None),
    ]
    maps = [drawn for drawn in maps if not drawn[1].empty]
    heights = [rows["temperature"].nunique() for _, rows, *_ in maps]

    height = 0.85 + 0.2 * len(maps) + 0.3 * sum(heights)
    figure, stack = panels(title, height, len(maps), sharex=True, height_ratios=heights)
    key_temperatures = np.unique(table["key_temperature"])
    for axes, (name, rows, column, scale) in zip(stack, maps, strict=True):
        _heat_map(axes, name, rows, column, rows[column] if scale is None else scale, key_temperatures)
    stack[-1].set_xlabel(r"temperature of the target $\tau_m$")
    marks = [
        Patch(facecolor="none", label="best of its row", **BEST),
        Patch(facecolor="none", label=r"$\tau_m = \tau$", **EQUAL),
        Patch(facecolor="white", edgecolor=GREY, linewidth=0, hatch="//////", label="no value"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks))
    return settled(figure)


def _heat_map(
    axes: Axes, name: str, rows: DataFrame, column: str, scale: DataFrame | Series, key_temperatures: np.ndarray
) -> None:
    """Temperatures downwards, key temperatures across; the values of a column written into the cells, the best framed.

    Args:
        scale: from the lowest to the highest of these values colours reach.
    """
    grid = rows.pivot(index="temperature", columns="key_temperature", values=[column, "std"])
    values, deviations = (grid[part].reindex(columns=key_temperatures) for part in (column, "std"))
    texts = values.map("{:.2f}".format)
    if column == "ours":
        texts += deviations.map("\n\N{PLUS-MINUS SIGN}{:.1f}".format).where(deviations.notna(), "")
    axes.patch.set(hatch="//////", edgecolor=GREY)
    seaborn.heatmap(values, ax=axes, cmap=HEAT, vmin=scale.min(axis=None), vmax=scale.max(axis=None), cbar=False,
                    annot=texts, fmt="", annot_kws={"color": INK, "linespacing": 1.0}, linewidth=0.6,
                    xticklabels=[f"{key:.2f}" for key in key_temperatures],
                    yticklabels=[rf"$\tau$ = {temperature:g}" for temperature in values.index])
    axes.tick_params(length=0, rotation=0)
    axes.set(xlabel="", ylabel="")
    whole = printed_grid(only(rows, "dataset")).unstack() if column == "published" else values
    for row, temperature in enumerate(values.index):
        accuracies = whole.loc[temperature].dropna()
        if len(accuracies) > 1:
            best = int(np.abs(key_temperatures - accuracies.idxmax()).argmin())
            if np.isclose(key_temperatures[best], accuracies.idxmax()):
                axes.add_patch(Rectangle((best, row), 1, 1, fill=False, clip_on=False, **BEST))
            else:
                name += (f"\nbest, not drawn, at $\\tau$ = {temperature:g}: {accuracies.max():.2f} at $\\tau_m$ = "
                         f"{accuracies.idxmax():.2f}")
        for equal in np.flatnonzero(np.isclose(key_temperatures, temperature) & values.loc[temperature].notna()):
            # inside the other frame, which the cell may have too
            axes.add_patch(Rectangle((equal + 0.03, row + 0.08), 0.94, 0.84, fill=False, clip_on=False, **EQUAL))
    axes.set_title(name, loc="left")


def _spreads(sce: DataFrame, ressl: DataFrame) -> str:
    """A line on the embeddings' spread of both methods, for each pair of equal temperatures that has it."""
    pairs = sce.merge(ressl, on=["temperature", "key_temperature"], suffixes=("", "_ressl"))
    if "embedding_spread" not in pairs:
        return ""
    equal = pairs[np.isclose(pairs["temperature"], pairs["key_temperature"])].dropna(subset="embedding_spread")
    spreads = [f"{row.embedding_spread_ressl:.2f}, of SCE {row.embedding_spread:.2f}" for row in equal.itertuples()]
    return "\nspread of embeddings at $\\tau_m = \\tau$: " + "; ".join(spreads) if spreads else ""


@styled()
def objective_parts(log: DataFrame) -> Figure:
    """The terms of SCE during training, and their weighted sum as open markers on the loss.

        L = lambda InfoNCE + (1 - lambda) (ReSSL + Ceil)

    Args:
        log: one row per epoch of one run: epoch, InfoNCE, ReSSL, Ceil, loss (nats), weight (lambda, 0 to 1), seed,
            dataset and preset.

    Source: SCE supplement, the proof of the decomposition.
    """
    weight, seed = only(log, "weight"), f"seed {only(log, 'seed')}"
    log = log.sort_values("epoch")
    recomposed = weight * log["InfoNCE"] + (1 - weight) * (log["ReSSL"] + log["Ceil"])
    difference = (recomposed - log["loss"]).abs().max()
    title = f"{origin(log, seed)}\n"
    title += rf"loss = $\lambda$ InfoNCE + (1 $-$ $\lambda$) (ReSSL + Ceil), $\lambda$ = {weight:g}"
    title += f"\nloss and weighted sum differ by at most {difference:.1g} nats"
    figure, (axes,) = panels(title, 2.8, grid="y")
    mark = "" if len(log) > 1 else "_"  # a line through one epoch would not be seen
    for term, colour, line in (("InfoNCE", BLUE, "--"), ("ReSSL", VERMILLION, "-."), ("Ceil", GREEN, ":")):
        axes.plot(log["epoch"], log[term], color=colour, linestyle=line, marker=mark, label=term)
    axes.plot(log["epoch"], log["loss"], color=INK, marker=mark, label="loss")
    looks = {"marker": "o", "markerfacecolor": "white", "linestyle": "none", "markevery": 1 + len(log) // 20}
    axes.plot(log["epoch"], recomposed, color=PURPLE, label="weighted sum", **looks)
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    axes.set(xlabel="epoch", ylabel="mean over the epoch (nats)")
    legend_above(axes, columns=3)
    return settled(figure)


FIGURES = {
    "image_methods": Drawing(
        image_methods,
        "Linear-probe accuracy of four self-supervised methods in one setting, between random initialisation and "
        "supervised training.",
    ),
    "temperature_grid": Drawing(
        temperature_grid,
        "Linear-probe accuracy of SCE by the temperature of the query and that of the target, ours and printed, and "
        "of ReSSL.",
    ),
    "objective_parts": Drawing(
        objective_parts,
        "The terms of the SCE objective during training, and their weighted sum beside the loss.",
    ),
}
