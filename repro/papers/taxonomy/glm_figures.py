"""The figures of the linear models on the taxonomy: how they hang on the choice of rows, and ours beside printed."""

import textwrap
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame, Series

from repro.data import manifest
from repro.data.disk import write_atomically
from repro.papers.taxonomy.glm import BEST, MEAN, TERMS, specification_curve
from repro.papers.taxonomy.glm_ours import forest, usual_cells
from repro.report.logs import slug
from repro.report.printed import printed
from repro.report.redraw import captioned, versions_in_words
from repro.report.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PALE,
    PURPLE,
    VERMILLION,
    in_order,
    names_down,
    only,
    origin,
    panels,
    save,
    settled,
    styled,
)
from repro.skeleton.study import SKELETONS

CAPTIONS = {
    "glm_specifications": "t of the four terms in linear models of the printed accuracies, for every natural choice of "
    "rows and column, ordered by that of AD; filled where the one-tailed p is below 0.05. The printed statistic, which "
    "the text gives for CD, is that of AD in the eight unmixed rows and AE+CE+AD, on NW-UCLA (grey).",
    "glm_forest": "What each of the four terms adds to the accuracy (percentage points, 95 % interval of a linear "
    "model), in our results and in the printed ones.",
}
LOOKS = {"AD": (VERMILLION, "D"), "CD": (BLUE, "o"), "CE": (GREEN, "s"), "AE": (PURPLE, "^")}
SOURCES = {"ours": (BLUE, "o", BLUE), "printed": (VERMILLION, "D", "white")}
ROWS_SHORT = {"all": "15, all", "unmixed": "8, unmixed", "unmixed encoder": "11, encoder unmixed",
              "unmixed decoder": "11, decoder unmixed"}
COLUMNS_SHORT = {"NTU_1layer": "NTU", "NTU_3layer": "NTU, 3 layers", "NTU_1024units": "NTU, 1,024 units", MEAN: "mean"}
NINE = ("unmixed+best", "UCLA")  # the model whose AD has the printed t


@styled()
def specifications(curve: DataFrame) -> Figure:
    """t of the four terms for every choice of rows and column, ordered by that of AD; below, which choice it is.

    Args:
        curve: of `glm.specification_curve`.
    """
    ranks = curve[curve["term"] == "AD"].sort_values("t")[["rows", "column"]].reset_index(drop=True)
    places = {tuple(choice): place for place, choice in enumerate(ranks.to_numpy().tolist())}
    curve = curve.assign(place=[places[choice] for choice in zip(curve["rows"], curve["column"], strict=True)])
    title = f"{len(places)} linear models of the printed accuracies"
    figure, stack = panels(title, 5.4, 3, grid="y", sharex=True, height_ratios=[14, 11, 5])
    for axes in stack:
        axes.axvline(places[NINE], color=PALE, linewidth=3)
    _statistics(stack[0], curve)
    rows, columns = list(dict.fromkeys(curve["rows"])), list(dict.fromkeys(curve["column"]))
    _choices(stack[1], ranks["rows"], rows, [ROWS_SHORT.get(name, _nine(name)) for name in rows])
    _choices(stack[2], ranks["column"], columns, [COLUMNS_SHORT.get(name, name) for name in columns])
    stack[1].set_title("rows of Table 1", loc="left")
    stack[2].set_title("its column", loc="left")
    stack[2].set_xlabel("models, by the t of AD")
    figure.legend(handles=_keys(), loc="outside lower center", ncols=4)
    return settled(figure)


def _nine(name: str) -> str:
    """Nine rows in few words: "unmixed+AE+CE" gives "8 + AE+CE"."""
    return f"8 + {BEST}" if name == NINE[0] else name.replace("unmixed+", "8 + ")


def _statistics(axes: Axes, curve: DataFrame) -> None:
    """Markers of every term, and the printed t across."""
    axes.axhline(0, color=GREY, linewidth=0.6)
    axes.axhline(printed("taxonomy_glm_claim").iloc[0]["t"], color=INK, linestyle="--", linewidth=0.8)
    for term, (colour, marker) in LOOKS.items():
        rows = curve[curve["term"] == term]
        sure = rows["p_one_tailed"] < 0.05
        looks = {"color": colour, "marker": marker, "markersize": 2.8, "linestyle": "none", "markeredgewidth": 0.6}
        axes.plot(rows["place"][~sure], rows["t"][~sure], markerfacecolor="white", **looks)
        axes.plot(rows["place"][sure], rows["t"][sure], **looks)
    axes.set_ylabel("t of the term")


def _choices(axes: Axes, chosen: Series, values: list[str], labels: list[str]) -> None:
    """A dot where each model's choice is."""
    axes.plot(chosen.index, chosen.map(values.index), color=INK, marker=".", markersize=3, linestyle="none")
    axes.set(yticks=range(len(values)), yticklabels=labels, ylim=(len(values) - 0.4, -0.6), xticks=[])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _keys() -> list[Line2D]:
    claim = printed("taxonomy_glm_claim").iloc[0]
    terms = [Line2D([], [], color=colour, marker=marker, linestyle="none", label=term)
             for term, (colour, marker) in LOOKS.items()]
    statistic = Line2D([], [], color=INK, linestyle="--", label=f"printed, t = {claim['t']}")
    looks = {"color": INK, "marker": "o", "markersize": 2.8, "linestyle": "none"}
    tails = [Line2D([], [], label=label, markerfacecolor=face, **looks)
             for label, face in (("p < 0.05", INK), ("p \u2265 0.05", "white"))]
    return [*terms, statistic, *tails, Line2D([], [], color=PALE, linewidth=3, label="9 rows, UCLA")]


@styled()
def effects(table: DataFrame) -> Figure:
    """What each term adds to the accuracy, with its 95 % interval; a panel for each row set.

    On embedded data the printed effects, which belong to other data, have panels of their own.

    Args:
        table: of `glm_ours.forest`.

    Raises:
        ValueError: if the table is empty or mixes presets or data sets.
    """
    apart = manifest.embedded(table["dataset"].iloc[0])
    choices = [(rows, source) for rows in in_order(table["rows"], ()) for source in (SOURCES if apart else [""])]
    figure, stack = panels(origin(table), 1.0 + 1.25 * len(choices), len(choices), grid="x", sharex=True)
    for axes, (rows, source) in zip(stack, choices, strict=True):
        chosen = table[(table["rows"] == rows) & ((table["source"] == source) | (not apart))]
        _intervals(axes, chosen)
        axes.set_title(_described(chosen), loc="left")
    stack[-1].set_xlabel("added to the accuracy (percentage points)")
    handles = [
        Line2D([], [], color=colour, marker=marker, markerfacecolor=face, linestyle="-", label=source)
        for source, (colour, marker, face) in SOURCES.items() if (table["source"] == source).any()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return settled(figure)


def _intervals(axes: Axes, chosen: DataFrame) -> None:
    axes.axvline(0, color=GREY, linewidth=0.6)
    sources = in_order(chosen["source"], SOURCES)
    for place, source in enumerate(sources):
        colour, marker, face = SOURCES[source]
        rows = chosen[chosen["source"] == source]
        y = rows["term"].map(TERMS.index) + (place - (len(sources) - 1) / 2) * 0.32
        axes.hlines(y, rows["low"], rows["high"], color=colour, linewidth=0.8)
        axes.plot(rows["estimate"], y, color=colour, marker=marker, markerfacecolor=face, linestyle="none")
    names_down(axes, TERMS)


def _described(chosen: DataFrame) -> str:
    """What a panel's models are, a sentence for each source."""
    said = [f"{row.source.capitalize()}: {row.statement}" for row in chosen.drop_duplicates("source").itertuples()]
    return "\n".join(textwrap.fill(text, 60) for text in said)


def redraw(cells: Mapping[str, DataFrame], folder: Path) -> list[Path]:
    """Draw both figures, and the tables behind them; returns the files written.

    Args:
        cells: by table the finished cells that stand in it; smoke runs are passed over.
        folder: gets `glm_specifications`, of the printed numbers alone, and `glm_forest_<dataset>` for every data set
            whose cells have the nine objectives of the paper's main tables.
    """
    curve = _rounded(specification_curve())
    caption, provenance = CAPTIONS["glm_specifications"], {"printed": "taxonomy.csv"}
    written = _write(folder / "glm_specifications", curve, specifications(curve), caption, provenance)
    trained = cells["taxonomy"][cells["taxonomy"]["preset"] != "smoke"]
    for dataset in sorted(set(trained["dataset"])):
        ours = usual_cells(trained, dataset)
        if ours.empty:
            continue
        table = _rounded(forest(ours))
        if (table["source"] == "ours").any():
            provenance = {"cells": list(ours["key"]), "seeds": sorted(int(seed) for seed in set(ours["seed"]))}
            provenance |= {"dataset": dataset, "preset": only(table, "preset"), "printed": "taxonomy.csv"}
            versions = versions_in_words(trained[trained["key"].isin(ours["key"])], SKELETONS.version)
            caption = captioned(" ".join(filter(None, (CAPTIONS["glm_forest"], versions))), provenance)
            written += _write(folder / f"glm_forest_{slug(dataset)}", table, effects(table), caption, provenance)
    return written


def _rounded(table: DataFrame) -> DataFrame:
    """Five digits, which are the same wherever the models are fitted.

    Least squares differ in their last bits from processor to processor. Estimates from numbers of two decimals often
    end in a 5 right behind the fifth digit, 26.1425, where these bits would decide. So nine digits come first, and a 5
    at the end of them goes to the even digit.
    """
    return table.map(lambda value: float(f"{Decimal(f'{value:.9g}'):.5g}") if isinstance(value, float) else value)


def _write(stem: Path, table: DataFrame, figure: Figure, caption: str, provenance: dict) -> list[Path]:
    write_atomically(stem.with_suffix(".csv"), lambda path: table.to_csv(path, index=False))
    return [stem.with_suffix(".csv"), *save(figure, stem, caption, provenance)]
