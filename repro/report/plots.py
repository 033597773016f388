"""Pictures: values with their error over seeds, by what differs, in panels, beside printed values.

Most pictures are declared, `Plot`, and drawn by one engine, `Plot.draw`; the others are functions of rows. What holds
for all, colours, sizes, files and captions, is in `repro.report.style`.
"""

import dataclasses
import inspect
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, Series

from repro.report import style
from repro.report.style import Look

DENSE = 12         # places in a line, from which on its error is a band and its points have no markers
LEAST_SPAN = 5.0   # percentage points that an axis of accuracies spans at least
DODGE = 0.02       # of an axis of numbers, between the places of two lines: no error bar hides another
ABOVE = 0.7        # of the room between two names, for what is drawn beside one another there
LINE = "_line"     # in `Plot.data`, the column by which lines are told apart; "" where there is one


def as_it_is(rows: DataFrame) -> DataFrame:
    """Of plots whose rows need nothing."""
    return rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plot:
    """A picture of rows of a table, or of a frame of several seeds, of which mean and deviation are shown.

    Attributes:
        caption: what it shows, in words, without provenance.
        x: column of numbers across, or of names, which are across or, where `down` is set, from the top downwards.
        y: column of values, on the other axis; of tables with `std` and, where the paper prints some, `published`.
        hue, panel: columns that tell lines and panels apart, if any.
        xlabel, ylabel: of the axes, or by panel.
        looks: of values of `hue`, in their order; one without gets one.
        names: what values of `x` and `panel` are called, in their order; one without is called as it is.
        prepare: makes long rows of those that are given.
        finding: the title, a sentence that is made of the plotted rows; see `leading`.
        reference: column with a value for every panel, such as a closed form, drawn as a dashed line; and its label.
        levels: values of `hue` that are drawn as a line across with a band of their deviation.
        joined: whether points are joined.
        down, logarithmic: of the axes.
        least_span: what the axis of values spans at least, in its unit; or by panel.
        columns: panels beside one another.
        height: inches of a panel, and of a name where these go downwards.
    """

    caption: str
    x: str
    y: str = "ours"
    hue: str | None = None
    panel: str | None = None
    xlabel: str | Mapping[Any, str] = ""
    ylabel: str | Mapping[Any, str] = "accuracy (%)"
    looks: Mapping[str, Look] = dataclasses.field(default_factory=dict)
    names: Mapping[Any, str] = dataclasses.field(default_factory=dict)
    prepare: Callable[[DataFrame], DataFrame] = as_it_is
    finding: Callable[["Plot", DataFrame], str] = dataclasses.field(default=lambda plot, data: leading(plot, data))
    reference: str | None = None
    reference_label: str = ""
    levels: Sequence[str] = ()
    joined: bool = True
    down: bool = False
    logarithmic: bool = False
    least_span: float | Mapping[Any, float] = LEAST_SPAN
    columns: int = 1
    height: float = 1.3

    def data(self, rows: DataFrame) -> DataFrame:
        """What is plotted, a row for each point: panel, line, x, value, std, n_seeds, printed, reference.

        Raises ValueError if there is no row, or rows are of several data sets.
        """
        style.only(rows, "dataset")
        rows = self.prepare(rows)
        data = DataFrame({
            "panel": rows[self.panel] if self.panel else "", LINE: rows[self.hue] if self.hue else "",
            "x": rows[self.x], "value": rows[self.y], "std": rows.get("std", math.nan),
            "n_seeds": rows.get("n_seeds", 1),
            "printed": style.comparable(rows) if "published" in rows else math.nan,
            "reference": rows[self.reference] if self.reference else math.nan,
        })
        if "n_seeds" not in rows:
            groups = data.groupby(["panel", LINE, "x"], sort=False, as_index=False)
            data = groups.agg(value=("value", "mean"), std=("value", "std"), n_seeds=("value", "size"),
                              printed=("printed", "mean"), reference=("reference", "mean"))
        return data.reset_index(drop=True)

    def called(self, value: Any) -> str:
        """What a value of `x` or `panel` is called."""
        return str(self.names.get(value, value))

    @style.styled()
    def draw(self, rows: DataFrame) -> Figure:
        """The picture of rows; see `data` for what is refused."""
        data = self.data(rows)
        panels, present = style.in_order(data["panel"], self.names), set(data[LINE])
        looks = style.looks_of(data[LINE], self.looks) if self.hue else {"": style.OURS}
        lines = {line: look for line, look in looks.items() if line in present}
        places = {panel: self._names(data[data["panel"] == panel]) for panel in panels}
        columns = min(self.columns, len(panels))
        heights = [self.height * (len(places[panel]) if self.down else 1) + (0.7 if self.down else 0.4)
                   for panel in panels[::columns]]
        figure = Figure(figsize=(style.COLUMN, 0.6 + sum(heights)), layout="constrained")
        stack = list(figure.subplots(
            len(heights), columns, squeeze=False, height_ratios=heights,
            sharex=isinstance(self.xlabel, str) and not self.down,
            sharey="row" if columns > 1 else False).flat)
        for axes in stack[len(panels):]:
            axes.set_visible(False)
        for axes, panel in zip(stack, panels, strict=False):
            axes.grid(axis="x" if self.down else "y")
            self._panel(axes, data[data["panel"] == panel], lines, places[panel])
            axes.set_title(self.called(panel) if self.panel else "", loc="left")
            self._label(axes, panel)
        for axes, panel in zip(stack, panels, strict=False):  # once all is drawn that shares an axis
            least = self.least_span.get(panel, 0) if isinstance(self.least_span, Mapping) else self.least_span
            style.span(axes, "x" if self.down else "y", least)
        style.legend_below(figure, style.legend_of(stack))
        style.entitle(figure, self.finding(self, data), style.heading(self.prepare(rows)))
        return style.settled(figure)

    def _names(self, data: DataFrame) -> list[Any]:
        """Names along the axis of `x`, in their order; none where it has numbers."""
        numbers = pd.api.types.is_numeric_dtype(data["x"]) and not self.down
        return [] if numbers else style.in_order(data.loc[~data[LINE].isin(self.levels), "x"], self.names)

    def _panel(self, axes: Axes, data: DataFrame, lines: Mapping[str, Look], places: Sequence[Any]) -> None:
        """Draw what stands in a panel."""
        across = axes.axvline if self.down else axes.axhline
        if data["reference"].notna().any():
            across(data["reference"].mean(), color=style.INK, linestyle="--", linewidth=0.8, zorder=1.8,
                   label=self.reference_label)
        shown = [line for line in lines if line not in self.levels and (data[LINE] == line).any()]
        if self.logarithmic:
            axes.set_xscale("log")
        for line, look in lines.items():
            rows = data[data[LINE] == line]
            if line in self.levels:
                for row in rows.dropna(subset="value").head(1).itertuples():
                    axes.axhline(row.value, color=look.colour, linestyle="-.", zorder=1.9, label=look.label)
                    axes.axhspan(row.value - row.std, row.value + row.std, color=look.colour, alpha=0.15, linewidth=0)
            elif len(rows):
                order = rows["x"].map(places.index) if places else rows["x"]
                rows = rows.loc[order.sort_values(kind="stable").index]
                self._line(axes, rows, look, self._beside(data, rows, shown.index(line), len(shown), places))
        if places and self.down:
            style.names_down(axes, [textwrap.fill(self.called(name), 30) for name in places])
        elif places:
            axes.set(xticks=range(len(places)), xticklabels=[self.called(name) for name in places],
                     xlim=(-0.5, len(places) - 0.5))
        elif data["x"].nunique() <= DENSE:
            values = sorted(data["x"].unique())
            axes.set_xticks(values, labels=[self.names.get(value, f"{value:,g}") for value in values])
            axes.minorticks_off()

    def _beside(
        self, data: DataFrame, rows: DataFrame, number: int, count: int, places: Sequence[Any]
    ) -> Series:
        """Where the points of a line stand along `x`: beside those of the other lines, where they are few."""
        side = number - (count - 1) / 2
        if places:
            return rows["x"].map(places.index) + side * ABOVE / count
        if rows["x"].nunique() > DENSE:
            return rows["x"]
        low, high = data["x"].min(), data["x"].max()
        if self.logarithmic:
            return rows["x"] * max(high / low, 2) ** (DODGE * side)
        return rows["x"] + (high - low or 1) * DODGE * side

    def _line(self, axes: Axes, rows: DataFrame, look: Look, places: Series) -> None:
        """Draw ours with its error and, open, what is printed."""
        if len(rows) > DENSE and not self.down:
            axes.plot(places, rows["value"], color=look.colour, label=look.label)
            axes.fill_between(places, rows["value"] - rows["std"], rows["value"] + rows["std"], color=look.colour,
                              alpha=0.2, linewidth=0)
            return
        if rows["value"].notna().any():
            line = "-" if self.joined and not self.down else "none"
            style.draw_ours(axes, places, rows["value"], rows["std"], look, line, down=self.down)
        printed = Look(f"{look.label}, printed", look.colour, "D") if self.hue else style.PRINTED
        style.draw_published(axes, places, rows["printed"], printed, down=self.down)

    def _label(self, axes: Axes, panel: Any) -> None:
        """Name the axes of a panel; those beside and above others that share them go without a name."""
        across, upwards = (label if isinstance(label, str) else label.get(panel, "")
                           for label in (self.xlabel, self.ylabel))
        axes.set(xlabel=upwards if self.down else across, ylabel=across if self.down else upwards)
        place = axes.get_subplotspec()
        if not place.is_first_col():
            axes.set_ylabel("")
        if isinstance(self.xlabel, str) and not self.down and not place.is_last_row():
            axes.set_xlabel("")


Drawn = Plot | Callable[[DataFrame], Figure]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture of more than the table of one experiment: of a frame, of several experiments, or of linear models.

    Attributes:
        experiments: whose cells are behind it, in this order.
        plot: how it is drawn; None where its rows alone are written.
        frame: that the cells have left, see `repro.run.frames`; "" where it is of no frame.
        fields: of recipes and results, which the frame's rows need beside it.
        rows: makes what is drawn and written of the rows of the frame, or of all stored cells where there is none. No
            rows are no picture.
    """

    experiments: Sequence[str]
    plot: Drawn | None
    frame: str = ""
    fields: Sequence[str] = ()
    rows: Callable[[DataFrame], DataFrame] = as_it_is


def picture(drawn: Drawn, rows: DataFrame) -> Figure:
    """The figure of rows, by its declaration or its function."""
    return drawn.draw(rows) if isinstance(drawn, Plot) else drawn(rows)


def caption_of(drawn: Drawn) -> str:
    """What a picture shows, in words: of a function the first paragraph of what it says of itself."""
    text = drawn.caption if isinstance(drawn, Plot) else inspect.getdoc(drawn) or ""
    return " ".join(text.partition("\n\n")[0].split())


def publish(stem: Path, drawn: Drawn, rows: DataFrame, cells: DataFrame) -> tuple[Path, Path]:
    """Write the picture of rows as SVG and PNG, with a caption that says what it shows and what it was drawn from.

    Args:
        stem: of the files, without ending.
        drawn: how rows are drawn.
        rows: what is drawn.
        cells: stored cells that are behind the rows; of printed numbers alone there are none.
    """
    parts, provenance = [caption_of(drawn)], {}
    if len(cells):
        provenance = {"cells": cells["key"].tolist(), "seeds": sorted({*map(int, cells["seed"])}),
                      "preset": " and ".join(sorted(set(cells["preset"]))), "dataset": style.only(cells, "dataset")}
        count = "1 cell, whose key is" if len(cells) == 1 else f"{len(cells)} cells, whose keys are"
        seeds = ", ".join(map(str, provenance["seeds"]))
        parts += [f"Data set: {provenance['dataset']}. Preset: {provenance['preset']}. Seeds: {seeds}.",
                  f"Drawn from {count} in the source of this file."]
    return style.save(picture(drawn, rows), stem, " ".join(parts), provenance)


def leading(plot: Plot, data: DataFrame) -> str:
    """Which line or name is highest in each panel, where that is more than seeds scatter, as a sentence.

    The highest and the next differ by more than twice the standard error of the difference of their means. Lines are
    taken at the place with the largest value of their own.
    """
    data = data[~data[LINE].isin(plot.levels)].dropna(subset="value")
    by = LINE if data[LINE].nunique() > 1 else "x"
    panels_of: dict[str, list[str]] = {}
    for panel in style.in_order(data["panel"], plot.names):
        rows = data[data["panel"] == panel].sort_values("value", ascending=False).drop_duplicates(by)
        first, second = rows.iloc[0], rows.iloc[min(1, len(rows) - 1)]
        name = plot.looks[first[by]].label if by == LINE and first[by] in plot.looks else plot.called(first[by])
        error = math.hypot(first["std"] / first["n_seeds"] ** 0.5, second["std"] / second["n_seeds"] ** 0.5)
        if len(rows) == 1:
            sentence = f"{first['value']:.1f} %"
        elif math.isnan(error):
            sentence = f"{name} is highest, of one seed"
        elif first["value"] - second["value"] > 2 * error:
            sentence = f"{name} is highest"
        else:
            sentence = "the highest two are closer than seeds scatter"
        panels_of.setdefault(sentence, []).append(plot.called(panel))
    sentences = [*panels_of]
    if len(sentences) > 1:
        sentences = [f"{', '.join(panels)}: {sentence}" for sentence, panels in panels_of.items()]
    finding = "; ".join(sentences)
    return finding[:1].upper() + finding[1:]
