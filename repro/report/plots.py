"""Pictures: values with their error over seeds, by what differs, in a grid of seaborn's, beside printed values.

Most are declared, `Plot`; the others are functions of rows. What holds for all is in `repro.report.style`.
"""

import dataclasses
import inspect
import itertools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, Series

from repro.data.disk import write_atomically
from repro.report import statistics, style
from repro.report.claims import DRAWN
from repro.report.text import PLUS_MINUS, telling_apart

DENSE = 12  # places in a line, from which on its error is a band and its points have no markers


def as_it_is(rows: DataFrame) -> DataFrame:
    """Of plots whose rows need nothing."""
    return rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plot:
    """A picture of rows of a table, or of a frame of several seeds, of which mean and deviation are shown.

    Attributes:
        caption: what it shows, in words, without provenance.
        x: column of numbers, which are across and joined by lines, or of names, which go from the top downwards.
        y: column of values, on the other axis; of tables with `std` and, where the paper prints some, `printed`.
        hue, panel: columns that tell lines and panels apart, if any.
        xlabel: of numbers across, which all panels share; without one every panel has numbers of its own.
        ylabel: of values; rows with a column `unit` have this instead, and a panel for each.
        lines: what values of `hue` are called; each has the colour and the marker of its place here, others come last.
        names: what values of `x` and `panel` are called, in their order; one without is called as it is.
        prepare: makes long rows of those that are given.
        reference: column with a value for every panel, such as a closed form, drawn as a dashed line; and its label.
        minus: value of `hue` from which the others differ little: they are drawn less it, in panels below its own.
        logarithmic: of the axis of numbers.
        columns: panels beside one another.
    """

    caption: str
    x: str
    y: str = "ours"
    hue: str | None = None
    panel: str | None = None
    xlabel: str = ""
    ylabel: str = "accuracy (%)"
    lines: Mapping[Any, str] = dataclasses.field(default_factory=dict)
    names: Mapping[Any, str] = dataclasses.field(default_factory=dict)
    prepare: Callable[[DataFrame], DataFrame] = as_it_is
    reference: str | None = None
    reference_label: str = ""
    minus: str | None = None
    logarithmic: bool = False
    columns: int = 1

    def data(self, rows: DataFrame) -> DataFrame:
        """What is plotted, as it is called: unit, panel, line, x, value, std, n_seeds, printed, reference.

        Rows with a column `setting` have a panel for each where they are of numbers, else names of their own. Rows
        with a column `seed` are single runs, whose means and deviations are shown.

        Raises ValueError if there is no row, or rows are of several data sets.
        """
        dataset = style.only(rows, "dataset")
        rows = self.prepare(rows)
        runs = DataFrame({
            "unit": rows.get("unit", self.ylabel), "panel": rows[self.panel].map(self.called) if self.panel else "",
            "line": rows[self.hue].map(self.line_called) if self.hue else "ours", "x": rows[self.x],
            "value": rows[self.y], "std": rows.get("std", math.nan), "n_seeds": rows.get("n_seeds", 1),
            "printed": rows.get("printed", math.nan),
            "reference": rows[self.reference] if self.reference else math.nan,
        })
        if not pd.api.types.is_numeric_dtype(runs["x"]):
            runs = runs.sort_values("x", key=self._order, kind="stable")
            runs["x"] = runs["x"].map(self.called) + (", " + rows["setting"] if "setting" in rows else "")
        elif "setting" in rows:
            runs["panel"] = (runs["panel"] + "\n" + rows["setting"]).str.strip()
        data = runs
        if "n_seeds" not in rows:
            groups = runs.groupby(["unit", "panel", "line", "x"], sort=False, as_index=False)
            data = groups.agg(value=("value", "mean"), std=("value", "std"), n_seeds=("value", "size"),
                              printed=("printed", "mean"), reference=("reference", "mean"))
        data = data.sort_values("panel", key=self._order, kind="stable", ignore_index=True)
        if not self.minus:
            return data
        paired = "seed" in rows and dataset in DRAWN
        return self._differences(data, runs.assign(seed=rows["seed"], of=rows.get(self.panel, "")) if paired else None)

    def _differences(self, data: DataFrame, paired: DataFrame | None) -> DataFrame:
        """The line `minus`, then the others less it, with twice the error; all as they are where it lacks a place.

        With single runs whose seeds share their data, value and error are those of `statistics.paired_contrast`, on
        which verdicts rest.
        """
        base = self.line_called(self.minus)
        alone = data["line"] == base
        pairs = data[~alone].merge(data[alone], on=["panel", "x"], suffixes=("", "_base"))
        if len(pairs) < (~alone).sum():
            return data
        variance = pairs["std"] ** 2 / pairs["n_seeds"] + pairs["std_base"] ** 2 / pairs["n_seeds_base"]
        pairs = pairs.assign(value=pairs["value"] - pairs["value_base"], std=2 * variance**0.5)
        for _, runs in paired.groupby("of") if paired is not None else ():
            seeds = runs.pivot(index=["line", "panel", "x"], columns="seed", values="value")
            blocks = seeds.index.to_frame()[["panel", "x"]].astype(str).agg(" ".join, axis="columns")
            for place, pair in pairs[pairs["panel"].isin(runs["panel"])].iterrows():
                place_of = pair["panel"], pair["x"]
                lead = statistics.paired_contrast(seeds, (pair["line"], *place_of), (base, *place_of), blocks)
                pairs.loc[place, ["value", "std"]] = lead.value, 2 * lead.error
        unit = f"minus {base} (points)\n{PLUS_MINUS} 2 {'un' if paired is None else ''}paired errors"
        return pd.concat([data[alone], pairs.assign(unit=unit)[data.columns]], ignore_index=True)

    def _order(self, values: Series) -> Series:
        """Places of values of `x` or `panel` in `names`; those that are not there come last, and stay as they are."""
        places = {name: place for place, name in enumerate(map(self.called, self.names))}
        return values.map(self.called).map(places).fillna(len(places))

    def called(self, value: Any) -> str:
        """What a value of `x` or `panel` is called."""
        return str(self.names.get(value, value))

    def line_called(self, line: Any) -> str:
        """What a value of `hue` is called."""
        return str(self.lines.get(line, line))

    @style.styled()
    def __call__(self, rows: DataFrame, title: str = "") -> Figure:
        """The picture of rows, with a title that a person wrote of them; see `data` for what is refused."""
        data = self.data(rows)
        looks = {}
        lines = dict.fromkeys([*self.lines.values(), *data["line"]])
        for line, colour, marker in zip(lines, itertools.cycle(style.COLOURS), itertools.cycle(style.MARKERS)):
            looks |= {line: (colour, marker), f"{line}, printed": (colour if self.hue else style.VERMILLION, "D")}
        down = not pd.api.types.is_numeric_dtype(data["x"])
        units, panels = [*data["unit"].unique()], [*data["panel"].unique()]
        columns = 1 if down and self.xlabel else min(self.columns, len(panels))  # settings have long names
        places = data["panel"].map(panels.index)
        rows_of_unit = math.ceil(len(panels) / columns)
        data["row"] = data["unit"].map(units.index) * rows_of_unit + places // columns
        data["column"] = places % columns
        sizes = data.groupby("row").agg(names=("x", "nunique"), lines=("line", "nunique"))
        inches = (0.65 + 0.1 * sizes["names"] * (1 + sizes["lines"]) if down else 1.5 + 0 * sizes["names"]).tolist()
        grid = seaborn.FacetGrid(data, row="row", col="column", sharex=bool(self.xlabel) and not down,
                                 sharey="row" if columns > 1 else False, gridspec_kws={"height_ratios": inches})
        for (row, column), axes in grid.axes_dict.items():
            beside = data[data["row"] == row]
            panel = beside[beside["column"] == column]
            axes.set_visible(len(panel) > 0)
            if len(panel):
                self._panel(axes, panel, looks, [*beside["x"].unique()] if down else None)
                values, first, last = panel["unit"].iloc[0], column == 0, row == data["row"].max()
                axes.set(title=panel["panel"].iloc[0], xlabel=values if down else self.xlabel if last else "",
                         ylabel=values if first and not down else "")
        for (row, _), axes in grid.axes_dict.items():  # once all is drawn that shares an axis
            span(axes, "x" if down else "y", units[row // rows_of_unit])
        return style.finish(grid.figure, sum(inches), title, style.heading(self.prepare(rows)))

    def _panel(self, axes: Axes, data: DataFrame, looks: dict[str, tuple[str, str]], names: list[str] | None) -> None:
        """Draw ours with its error and, open and beside it, what is printed; across numbers, or down these names."""
        theirs = data.dropna(subset="printed")
        theirs = theirs.assign(value=theirs["printed"], std=math.nan, line=theirs["line"] + ", printed")
        points = pd.concat([data, theirs], ignore_index=True)
        spread = points["std"].fillna(0) / 2**0.5  # of two values that have this mean and this deviation
        points = pd.concat([points.assign(value=points["value"] - spread),
                            points.assign(value=points["value"] + spread)[points["std"].notna()]], ignore_index=True)
        looks = {line: look for line, look in looks.items() if line in {*points["line"]}}
        shared: Any = {"data": points, "hue": "line", "hue_order": [*looks], "errorbar": "sd", "legend": False,
                       "palette": {line: colour for line, (colour, _) in looks.items()}, "ax": axes}
        values = sorted(data["x"].unique())
        if self.logarithmic and len(values) > 1 and names is None:
            axes.set_xscale("log")
        if names is None and len(values) > DENSE:
            seaborn.lineplot(x="x", y="value", **shared)
            lines = axes.lines
        else:
            x, y = ("value", "x") if names else ("x", "value")
            seaborn.pointplot(
                x=x, y=y, order=names, native_scale=not names, dodge=min(0.6, 0.15 * (len(looks) - 1)),
                markers=[marker for _, marker in looks.values()],
                linestyles=["none" if names or line.endswith("printed") else "-" for line in looks],
                err_kws={"linewidth": 0.8, "marker": "|" if names else "_", "markersize": 7}, linewidth=1, markersize=4,
                **shared)
            lines = [line for line in axes.lines if line.get_marker() not in "|_"]
            if names is None:
                axes.set_xticks(values, labels=[f"{value:,g}" for value in values],
                                rotation=90 if values[-1] > 9999 else 0)
                axes.minorticks_off()
                axes.margins(x=0.08 if len(values) > 1 else 3)  # beside one number lines are less than one apart
        for drawn, line in zip(lines, looks, strict=True):
            drawn.set_label(line.removeprefix("ours, "))
            if line.endswith("printed"):
                drawn.set_markerfacecolor("white")
        axes.grid(axis="x" if names else "y")
        if data["reference"].notna().any():
            across = axes.axvline if names else axes.axhline
            across(data["reference"].mean(), color=style.INK, linestyle="--", linewidth=0.8, label=self.reference_label)


def span(axes: Axes, values: str, unit: str) -> None:
    """Widen the axis "x" or "y" on both sides, of accuracies until it spans five points; nothing ends at its edge."""
    axes.margins(**{values: 0.08})
    low, high = axes.get_xlim() if values == "x" else axes.get_ylim()
    spare = max(0.0, 5 - (high - low)) / 2 if "%" in unit or "points" in unit else 0
    axes.set(**{f"{values}lim": (low - spare, high + spare)})


Drawn = Callable[..., Figure]  # of rows and a title: a `Plot` or a function


@dataclasses.dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture of more than the table of one experiment: of a frame, of several experiments, or of linear models.

    Attributes:
        experiments: whose runs are behind it, in this order.
        plot: how it is drawn.
        frame: that the runs have left, see `repro.run.store.RunFolder.frame`; "" where it is of no frame.
        fields: of recipes and results, which the frame's rows need beside it.
        rows: makes what is drawn and written of the rows of the frame, or of all stored runs where there is none. No
            rows are no picture.
    """

    experiments: tuple[str, ...]
    plot: Drawn
    frame: str = ""
    fields: tuple[str, ...] = ()
    rows: Callable[[DataFrame], DataFrame] = as_it_is


def in_settings(table: Any, rows: DataFrame) -> tuple[Any, DataFrame]:
    """The drawing of a `repro.table.Table`, and its rows with a column `setting` if other fields than its own differ.

    It says in words which one a row is of, as of a sweep over epochs, and a `Plot` shows them all. Where the field that
    goes across has one value, and these are one field of numbers, this one does, and there is no `setting`. In place of
    a drawing that is no `Plot`, one has a line for every row.
    """
    told = rows.columns[: rows.columns.get_loc("ours")].drop([*table.shown, "changed", "seed"], errors="ignore")
    further = [name for name in telling_apart(rows, [*table.shown, *told]) if name in told]
    drawing = table.drawing
    if not further or not drawing:
        return drawing, rows
    if not isinstance(drawing, Plot):
        named = table.study.recipe.named_by
        drawing = Plot(caption=caption_of(drawing), x=named)
        further = [name for name in telling_apart(rows, [named, *table.shown, *told]) if name != named]
    settings = [", ".join(map(style.spoken, further, values)) for values in rows[further].itertuples(index=False)]
    shared = [{name: value for name, value in row.items() if name not in further}
              for row in rows.get("changed", [{}] * len(rows))]
    one_place = drawing.x in rows and rows[drawing.x].nunique() == 1
    if one_place and len(further) == 1 and pd.api.types.is_numeric_dtype(rows[further[0]]):
        field, shared = further[0], [{**row, drawing.x: rows[drawing.x].iloc[0]} for row in shared]
        drawing = dataclasses.replace(
            drawing, x=field, xlabel=style.spoken(field, ""), logarithmic=rows[field].min() > 0)
    else:
        rows = rows.assign(setting=settings)
    return drawing, rows.assign(changed=Series(shared, rows.index, dtype=object))


def caption_of(drawn: Drawn) -> str:
    """What a picture shows, in words: of a function the first paragraph of what it says of itself."""
    text = drawn.caption if isinstance(drawn, Plot) else inspect.getdoc(drawn) or ""
    return " ".join(text.partition("\n\n")[0].split())


def publish(stem: Path, drawn: Drawn, rows: DataFrame, runs: DataFrame, title: str = "") -> tuple[Path, Path]:
    """Write the picture of rows as `<stem>.svg` and `<stem>.png`, whole or not at all; returns both paths.

    Both carry a caption, and as JSON the ids of the stored runs behind the rows; of printed numbers there are none.
    The same picture gives the same bytes: no date is written and identifiers are fixed.
    """
    caption, source = caption_of(drawn), {}
    if len(runs):
        source = {"runs": runs["id"].tolist(), "seeds": sorted({*map(int, runs["seed"])}),
                  "preset": " and ".join(sorted(set(runs["preset"]))), "dataset": style.only(runs, "dataset")}
        count = "1 run, whose id is" if len(runs) == 1 else f"{len(runs)} runs, whose ids are"
        seeds = ", ".join(map(str, source["seeds"]))
        caption += (f" Data set: {source['dataset']}. Preset: {source['preset']}. Seeds: {seeds}. "
                    f"Drawn from {count} in the source of this file.")
    figure = drawn(rows, title)
    metadata = {"Title": stem.name, "Description": caption, "Source": json.dumps(source, sort_keys=True)}
    svg, png = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    with style.styled():
        undated = metadata | {"Date": None}
        write_atomically(svg, lambda path: figure.savefig(path, format="svg", metadata=undated))
        write_atomically(png, lambda path: figure.savefig(path, format="png", metadata=metadata))
    return svg, png
