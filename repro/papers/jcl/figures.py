"""JCL's figures, each drawn from one table of stored results or one log.

All of them raise ValueError if these are empty, or mix presets, data sets, or what else a figure shows one of.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.report import style
from repro.report.redraw import Drawing

SYMBOLS = {"keys": "$M'$", "strength": r"$\lambda$", "temperature": r"$\tau$"}


@style.styled()
def positive_keys(table: DataFrame) -> Figure:
    """Linear-probe accuracy of JCL by the number of positive keys, the strength of their covariance and the
    temperature, one of them varied at a time; with one key it is MoCo v2. The supplement prints no values of these
    curves, so that there is nothing to compare with.

    One panel per quantity of which there are several values, at least one in all. That of keys also tells the cost of
    each point in forward passes of an encoder. Of several points at one value the first is drawn. Points are joined
    where they are of equally many seeds. MoCo v2 is a dashed line with its standard deviation, which says of how many
    seeds it is; it has one temperature, so the panel that varies it goes without.

    Args:
        table: one row per point: varied ("keys", "strength" or "temperature"), keys (M'), strength (lambda),
            temperature (tau), encoder_forwards (per image: 3 + M'), ours, std (percent), n_seeds, preset, dataset.

    Source: JCL, Figure M.2.
    """
    points = table.assign(at=[row.get(row["varied"]) for row in table.to_dict("records")])
    table = table[~points.duplicated(["varied", "at", "preset", "dataset"])]
    title = style.heading(table)
    moco = table[(table["varied"] == "keys") & (table["keys"] == 1)]
    sweeps = [(varied, rows) for varied in SYMBOLS if not (rows := table[table["varied"] == varied]).empty]
    sweeps = [(varied, rows) for varied, rows in sweeps if rows[varied].nunique() > 1] or sweeps[:1]
    figure, stack = style.panels(title, 0.9 + 1.25 * len(sweeps), len(sweeps), grid="y", sharey=True)
    for axes, (varied, rows) in zip(stack, sweeps, strict=True):
        rows = rows.sort_values(varied)
        line = "-" if style.equally_many_seeds(rows) else "none"  # single seeds scatter more than means
        style.draw_ours(axes, rows[varied], rows, style.Look("JCL, ours", style.BLUE, "o"), line)
        for row in moco.dropna(subset="ours").itertuples() if varied != "temperature" else ():
            seeds = f"{row.n_seeds} seed{'s' * (row.n_seeds > 1)}"
            style.draw_level(axes, row, style.VERMILLION, "--", f"MoCo v2 ($M'$ = 1), ours, {seeds}")
        axes.set(xlabel=_setting(varied, rows), ylabel="linear probe\naccuracy (%)")
        if len(values := rows[varied].unique()) == 1:  # else the axis has ticks of many digits around it
            axes.set_xticks(values)
        if varied == "keys":
            costs = [f"{forwards:g}" for forwards in rows["encoder_forwards"]]
            axes.set_xticks(rows["keys"])
            style.ticks_above(axes, rows["keys"], costs, "cost (encoder forward passes per image)")
    figure.legend(*stack[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return style.settled(figure)


@style.styled()
def sampled_keys(table: DataFrame) -> Figure:
    """The JCL loss in closed form, and with M keys drawn from the Gaussian: the mean inside the logarithm tends to the
    closed form from below, the mean of M InfoNCE losses stays at the expected InfoNCE. Shaded: one standard error of
    each mean over independent draws, cut off by the axes.

    Args:
        table: of `logs.sampled_keys`: keys (M), inside, inside_std, outside, outside_std and closed_form (nats),
            repeats; with dataset, preset, seed, positives (M'), strength and temperature of the cell whose queries and
            keys these are.

    Source: JCL supplement, Eq. M.8.
    """
    closed_form, repeats = style.only(table, "closed_form"), style.only(table, "repeats")
    table = table.sort_values("keys").rename(columns={"keys": "drawn", "positives": "keys"})
    setting = ", ".join(f"{symbol} = {style.only(table, name):g}" for name, symbol in SYMBOLS.items())
    figure, (axes,) = style.panels(f"{style.origin(table, style.seeds_named(table))}\nJCL, {setting}", 2.8, grid="y")
    axes.axhline(closed_form, color=style.INK, linestyle=":", label="closed form (Eq. M.8)")
    looks = (
        ("inside", "mean inside the logarithm", style.BLUE, "o", "-"),
        ("outside", "mean of $M$ InfoNCE losses", style.VERMILLION, "s", "--"),
    )
    for name, label, colour, marker, line in looks:
        mean, error = table[name], table[f"{name}_std"] / np.sqrt(repeats)
        axes.plot(table["drawn"], mean, color=colour, marker=marker, linestyle=line, label=label)
        axes.fill_between(table["drawn"], mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    means = table[["inside", "outside", "closed_form"]].to_numpy()
    margin = 0.3 * max(np.ptp(means), 1e-3)
    axes.set_ylim(means.min() - margin, means.max() + margin)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="keys drawn, $M$", ylabel="loss (nats),\nmean and standard error")
    style.legend_above(axes, columns=1)
    return style.settled(figure)


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
    figure, (top, bottom) = style.panels(style.origin(table, style.seeds_named(table)), 3.6, 2, grid="y")
    _histograms(top, table, "similarity")
    _histograms(bottom, table, "variance")
    top.set_xlabel("mean cosine similarity a of an image's augmentations")
    bottom.set_xlabel("mean variance b of a coordinate")
    bottom.ticklabel_format(axis="x", style="sci", scilimits=(-3, 3))
    bottom.set_title(f"b = (1 $-$ a)/d, d = {d:g}: the histogram above, mirrored", loc="left")
    style.legend_above(top, columns=1)
    return style.settled(figure)


def _setting(varied: str, rows: DataFrame) -> str:
    """What a panel varies, and the values of what it does not."""
    names = {"keys": "positive keys", "strength": "strength of the covariance", "temperature": "temperature"}
    fixed = [name for name in SYMBOLS if name != varied and rows[name].nunique() == 1]
    values = ", ".join(f"{SYMBOLS[name]} = {rows[name].iloc[0]:g}" for name in fixed)
    return f"{names[varied]} {SYMBOLS[varied]}" + (f" ({values})" if values else "")


def _histograms(axes: Axes, table: DataFrame, column: str) -> None:
    """Outlines over common bins, with a line at the median of each model; the images of all its seeds together."""
    known = table.dropna(subset=column)
    low, high = known[column].min(), known[column].max()
    margin = 1e-3 * high  # equal values have a bin, too
    bins = np.linspace(low - margin, high + margin, 41)
    for model, colour, line in (("JCL", style.BLUE, "-"), ("MoCo v2", style.VERMILLION, "--")):
        rows = known[known["model"] == model]
        if rows.empty:
            continue
        values, seeds = rows[column], rows["seed"].nunique()
        shares = 100 * np.histogram(values, bins)[0] / len(values)
        images = f"{seeds} x {len(values) // seeds:,}" if seeds > 1 else f"{len(values):,}"
        label = f"{model}, {images} images, median {values.median():.3g}"
        axes.stairs(shares, bins, color=colour, linestyle=line, label=label)
        axes.axvline(values.median(), color=colour, linestyle=line, linewidth=0.6)
    axes.locator_params(axis="x", nbins=5)  # a narrow range has long labels
    axes.set_ylabel("images (%)")


FIGURES = {
    "positive_keys": Drawing(positive_keys),
    "similarity_variance_images": Drawing(similarity_variance),
    "sampled_keys": Drawing(sampled_keys),
}
