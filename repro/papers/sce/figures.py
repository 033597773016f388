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
from repro.report import style
from repro.report.redraw import Drawing

METHOD_NAMES = {"moco": "MoCo v2", "ressl": "ReSSL", "sce": "SCE", "jcl": "JCL", "vanilla": "vanilla keys"}
HEAT = LinearSegmentedColormap.from_list("pale to blue", ["#EDF4FA", "#6FB1D9"])  # dark text is legible on all of it
BEST = {"edgecolor": style.INK, "linewidth": 1.2}
EQUAL = {"edgecolor": style.VERMILLION, "linewidth": 1.2, "linestyle": "--"}


@style.styled()
def image_methods(table: DataFrame) -> Figure:
    """Linear-probe accuracy of four self-supervised methods in one setting, between random initialisation and
    supervised training.

    Args:
        table: one row per method: method, ours, std (percent), n_seeds, preset, dataset.
    """
    title = style.heading(table)
    lines = {"random": ("random initialisation", style.GREY, "--"), "supervised": ("supervised", style.GREEN, "-")}
    methods = table[~table["method"].isin(lines)]
    figure, (axes,) = style.panels(title, 2.2, grid="y")
    style.draw_ours(axes, np.arange(len(methods)), methods, style.Look("self-supervised, ours", style.BLUE, "o"))
    for row in table[table["method"].isin(lines)].dropna(subset="ours").itertuples():
        label, colour, line = lines[row.method]
        style.draw_level(axes, row, colour, line, label)
    names = [METHOD_NAMES.get(method, method) for method in methods["method"]]
    axes.set(xticks=np.arange(len(methods)), xticklabels=names, xlim=(-0.5, max(len(methods), 1) - 0.5))
    axes.set_ylabel("linear probe\naccuracy (%)")
    figure.legend(loc="outside lower center", ncols=2)
    return style.settled(figure)


@style.styled()
def view_strip(views: dict[str, Tensor]) -> Figure:
    """Images and their views, a row for each kind.

    Args:
        views: by what they are, (n, 3, H, W) in [0, 1], the same images in every row.
    """
    count = max(len(images) for images in views.values())
    figure, stack = style.panels("", style.COLUMN / count * len(views) + 0.1, len(views), count)
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
    says little. Printed, it is the best of all temperatures, also of those that are not drawn. Cells in which both
    temperatures agree are dashed, missing ones hatched. Ours and printed share a colour scale with the paper recipe
    alone; printed values are not shown on bundled data. ReSSL has colours of its own, because a collapse would leave no
    difference between those of SCE.

    Args:
        table: one row per cell: method ("sce" or "ressl"), temperature (tau), key_temperature (tau_m), ours, std,
            n_seeds, published, preset, dataset; accuracies in percent, temperatures without unit.

    Raises:
        ValueError: if the table has a cell twice.

    Source: SCE supplement, Table 2.
    """
    title = f"{style.heading(table)}\nlinear probe accuracy (%)"
    table = table.assign(published=style.comparable(table))
    sce, ressl = (table[table["method"] == method] for method in ("sce", "ressl"))
    together = style.only(table, "preset") == "paper"
    apart = "" if together else " (not comparable: own colours)"
    shared = sce[["ours", "published"]] if together else None
    maps = [
        ("SCE, ours", sce, "ours", shared),
        (f"SCE, printed{apart}", sce.dropna(subset="published"), "published", shared),
        ("ReSSL, ours (own colours)", ressl, "ours", None),
    ]
    maps = [drawn for drawn in maps if not drawn[1].empty]
    heights = [rows["temperature"].nunique() for _, rows, *_ in maps]
    height = 0.85 + 0.2 * len(maps) + 0.3 * sum(heights)
    figure, stack = style.panels(title, height, len(maps), sharex=True, height_ratios=heights)
    key_temperatures = np.unique(table["key_temperature"])
    for axes, (name, rows, column, scale) in zip(stack, maps, strict=True):
        axes.set_title(name, loc="left")
        ours = column == "ours"
        candidates = rows.set_index("temperature")["ours"] if ours else printed_grid(style.only(rows, "dataset"))
        best = candidates.groupby("temperature").max()
        _heat_map(axes, rows, column, rows[column] if scale is None else scale, key_temperatures, best)
    axes.set_xlabel(r"temperature of the target $\tau_m$")
    marks = [
        Patch(facecolor="none", label="best of its row", **BEST),
        Patch(facecolor="none", label=r"$\tau_m = \tau$", **EQUAL),
        Patch(facecolor="white", edgecolor=style.GREY, linewidth=0, hatch="//////", label="no value"),
    ]
    style.legend_below(figure, marks, 3)
    return style.settled(figure)


def _heat_map(
    axes: Axes, rows: DataFrame, column: str, scale: DataFrame | Series, key_temperatures: np.ndarray, best: Series
) -> None:
    """Temperatures downwards, key temperatures across; the values of a column written into the cells, the best framed.

    Args:
        scale: from the lowest to the highest of these values colours reach.
        best: by temperature, the value that has a frame.
    """
    grid = rows.pivot(index="temperature", columns="key_temperature", values=[column, "std"])
    values, deviations = (grid[part].reindex(columns=key_temperatures) for part in (column, "std"))
    texts = values.map("{:.2f}".format)
    if column == "ours":
        texts += deviations.map("\n\N{PLUS-MINUS SIGN}{:.1f}".format).where(deviations.notna(), "")
    axes.patch.set(hatch="//////", edgecolor=style.GREY)
    seaborn.heatmap(values, ax=axes, cmap=HEAT, vmin=scale.min(axis=None), vmax=scale.max(axis=None), cbar=False,
                    annot=texts, fmt="", annot_kws={"color": style.INK, "linespacing": 1.0}, linewidth=0.6,
                    xticklabels=[f"{key:.2f}" for key in key_temperatures],
                    yticklabels=[rf"$\tau$ = {temperature:g}" for temperature in values.index])
    axes.tick_params(length=0, rotation=0)
    axes.set(xlabel="", ylabel="")
    of_one_seed = values.notna() & deviations.isna() & (column == "ours")
    for row, (temperature, accuracies) in enumerate(values.iterrows()):
        if accuracies.count() > 1 and not of_one_seed.loc[temperature].any():
            for place in np.flatnonzero(accuracies == best[temperature])[:1]:
                axes.add_patch(Rectangle((place, row), 1, 1, fill=False, clip_on=False, **BEST))
        for equal in np.flatnonzero(np.isclose(key_temperatures, temperature) & accuracies.notna()):
            # inside the other frame, which the cell may have too
            axes.add_patch(Rectangle((equal + 0.03, row + 0.08), 0.94, 0.84, fill=False, clip_on=False, **EQUAL))


@style.styled()
def objective_parts(log: DataFrame) -> Figure:
    """The terms of the SCE objective during training, and their weighted sum beside the loss.

        L = lambda InfoNCE + (1 - lambda) (ReSSL + Ceil)

    Args:
        log: one row per epoch of one run: epoch, InfoNCE, ReSSL, Ceil, loss (nats), weight (lambda, 0 to 1), seed,
            dataset and preset.

    Source: SCE supplement, the proof of the decomposition.
    """
    weight, seed = style.only(log, "weight"), f"seed {style.only(log, 'seed')}"
    log = log.sort_values("epoch")
    recomposed = weight * log["InfoNCE"] + (1 - weight) * (log["ReSSL"] + log["Ceil"])
    difference = (recomposed - log["loss"]).abs().max()
    title = f"{style.origin(log, seed)}\n"
    title += rf"loss = $\lambda$ InfoNCE + (1 $-$ $\lambda$) (ReSSL + Ceil), $\lambda$ = {weight:g}"
    title += f"\nloss and weighted sum differ by at most {difference:.1g} nats"
    figure, (axes,) = style.panels(title, 2.8, grid="y")
    mark = "" if len(log) > 1 else "_"  # a line through one epoch would not be seen
    looks = {"InfoNCE": (style.BLUE, "--"), "ReSSL": (style.VERMILLION, "-."), "Ceil": (style.GREEN, ":")}
    for term, (colour, line) in looks.items():
        axes.plot(log["epoch"], log[term], color=colour, linestyle=line, marker=mark, label=term)
    axes.plot(log["epoch"], log["loss"], color=style.INK, marker=mark, label="loss")
    axes.plot(log["epoch"], recomposed, color=style.PURPLE, label="weighted sum", marker="o", markerfacecolor="white",
              linestyle="none", markevery=1 + len(log) // 20)
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    axes.set(xlabel="epoch", ylabel="mean over the epoch (nats)")
    style.legend_above(axes, columns=3)
    return style.settled(figure)


FIGURES = {draw.__name__: Drawing(draw) for draw in (image_methods, temperature_grid, objective_parts)}
