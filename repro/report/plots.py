"""Pictures: values with their error over seeds, by what differs, in panels, beside printed values.

Most pictures are declared, `Plot`, and drawn by one engine; the others are functions of rows. What holds for all,
colours, sizes and what stands around the panels, is in `repro.report.style`.
"""

import dataclasses
import inspect
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, Series

from repro.data.disk import write_atomically
from repro.report import statistics, style
from repro.report.claims import DRAWN
from repro.report.style import Look
from repro.report.text import PLUS_MINUS, telling_apart

DENSE = 12         # places in a line, from which on its error is a band and its points have no markers
CROWDED = 24       # characters of all numbers below an axis: more are turned
LEAST_SPAN = 5.0   # percentage points that an axis of accuracies spans at least
DODGE = 0.03       # of an axis of numbers, between the places of two lines: no error bar hides another
ABOVE = 0.7        # of the room between two names, for what is drawn beside one another there
NAME_HEIGHT = 0.17  # of a line of a name, inches
LINE = "_line"     # in `Plot.data`, the column by which lines are told apart; "" where there is one


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
        looks: of values of `hue`, in their order; one without gets one.
        names: what values of `x` and `panel` are called, in their order; one without is called as it is.
        prepare: makes long rows of those that are given.
        finding: the title, a sentence that is made of the plotted rows; see `leading`.
        reference: column with a value for every panel, such as a closed form, drawn as a dashed line; and its label.
        minus: value of `hue` from which the others differ little: they are drawn less it, in panels below its own.
        foot: what is to be known of the panels, below them.
        logarithmic: of the axis of numbers.
        least_span: what an axis of values spans at least, in its unit.
        columns: panels beside one another.
    """

    caption: str
    x: str
    y: str = "ours"
    hue: str | None = None
    panel: str | None = None
    xlabel: str = ""
    ylabel: str = "accuracy (%)"
    looks: Mapping[str, Look] = dataclasses.field(default_factory=dict)
    names: Mapping[Any, str] = dataclasses.field(default_factory=dict)
    prepare: Callable[[DataFrame], DataFrame] = as_it_is
    finding: Callable[["Plot", DataFrame], str] = dataclasses.field(default=lambda plot, data: leading(plot, data))
    reference: str | None = None
    reference_label: str = ""
    minus: str | None = None
    foot: str = ""
    logarithmic: bool = False
    least_span: float = LEAST_SPAN
    columns: int = 1

    def data(self, rows: DataFrame) -> DataFrame:
        """What is plotted, a row for each point: unit, panel, line, x, value, std, n_seeds, printed, reference.

        Rows with a column `setting` have a panel for each where they are of several numbers, else names of their own.
        Rows with a column `seed` are single runs, whose means and deviations are shown.

        Raises ValueError if there is no row, or rows are of several data sets.
        """
        style.only(rows, "dataset")
        rows = self.prepare(rows)
        x, panel = rows[self.x], rows[self.panel] if self.panel else Series("", rows.index)
        if "setting" in rows:
            if not pd.api.types.is_numeric_dtype(x):
                x = x.map(self.called) + ", " + rows["setting"]
            elif x.nunique() > 1:
                panel = (panel.map(self.called) + "\n" + rows["setting"]).str.strip()
            else:
                panel = (panel.map(self.called) + f"\n{self.xlabel} {x.iloc[0]:,g}").str.strip()
                x = rows["setting"]
        runs = DataFrame({
            "unit": rows.get("unit", self.ylabel), "panel": panel, LINE: rows[self.hue] if self.hue else "",
            "x": x, "value": rows[self.y], "std": rows.get("std", math.nan),
            "n_seeds": rows.get("n_seeds", 1),
            "printed": rows.get("printed", math.nan),
            "reference": rows[self.reference] if self.reference else math.nan,
        })
        data = runs
        if "n_seeds" not in rows:
            groups = data.groupby(["unit", "panel", LINE, "x"], sort=False, as_index=False)
            data = groups.agg(value=("value", "mean"), std=("value", "std"), n_seeds=("value", "size"),
                              printed=("printed", "mean"), reference=("reference", "mean"))
        order = style.in_order(data["panel"], self.names)
        data = data.sort_values("panel", key=lambda panels: panels.map(order.index), kind="stable", ignore_index=True)
        if not self.minus:
            return data
        paired = "seed" in rows and style.only(rows, "dataset") in DRAWN
        return self._differences(data, runs.assign(seed=rows["seed"]) if paired else None)

    def _differences(self, data: DataFrame, paired: DataFrame | None) -> DataFrame:
        """The line `minus`, then the others less it, with twice the error; all as they are where it lacks a place.

        With single runs whose seeds share their data, value and error are those of `statistics.paired_contrast`, on
        which verdicts rest.
        """
        alone = data[LINE] == self.minus
        pairs = data[~alone].merge(data[alone], on=["panel", "x"], suffixes=("", "_minus"))
        if len(pairs) < (~alone).sum():
            return data
        variance = pairs["std"] ** 2 / pairs["n_seeds"] + pairs["std_minus"] ** 2 / pairs["n_seeds_minus"]
        pairs = pairs.assign(value=pairs["value"] - pairs["value_minus"], std=2 * variance**0.5)
        if paired is not None:
            found = []
            for pair in pairs.itertuples():
                runs = paired[paired["panel"] == pair.panel].pivot(index=[LINE, "x"], columns="seed", values="value")
                places = runs.index.to_frame()["x"]
                lead = statistics.paired_contrast(runs, (pair[pairs.columns.get_loc(LINE) + 1], pair.x),
                                                  (self.minus, pair.x), places)
                found.append((lead.value, 2 * lead.error))
            pairs[["value", "std"]] = found
        unit = (f"minus {self.line_called(self.minus)} (points)\n"
                f"{PLUS_MINUS} twice the {'un' if paired is None else ''}paired error")
        return pd.concat([data[alone], pairs.assign(unit=unit)[data.columns]], ignore_index=True)

    def called(self, value: Any) -> str:
        """What a value of `x` or `panel` is called."""
        return str(self.names.get(value, value))

    def line_called(self, line: Any) -> str:
        """What a value of `hue` is called."""
        return self.looks[line].label if line in self.looks else str(line)

    @style.styled()
    def __call__(self, rows: DataFrame) -> Figure:
        """The picture of rows; see `data` for what is refused."""
        data = self.data(rows)
        down = not pd.api.types.is_numeric_dtype(data["x"])
        looks = style.looks_of(data[LINE], self.looks) if self.hue else {"": style.OURS}
        panels = [panel for _, panel in data.groupby(["unit", "panel"], sort=False)]
        columns = 1 if down and self.xlabel else min(self.columns, data["panel"].nunique())  # settings have long names
        heights = [1.3 if columns == 1 else 1.0] * math.ceil(len(panels) / columns)
        if down:  # a name, and the values beside it, need lines of type
            heights = [NAME_HEIGHT * panel["x"].nunique() * max(1, 0.6 * panel[LINE].nunique())
                       for panel in panels[::columns]]
        figure, stack = style.panels(
            0.6 + sum(heights) + (0.55 if down else 0.3) * len(heights), len(heights), columns, height_ratios=heights,
            sharex=bool(self.xlabel) and not down, sharey="row" if columns > 1 else False)
        for axes in stack[len(panels):]:
            axes.set_visible(False)
        for axes, panel in zip(stack, panels, strict=False):
            place, unit = axes.get_subplotspec(), panel["unit"].iloc[0]
            axes.set_title(self.called(panel["panel"].iloc[0]))
            if down:
                axes.set_xlabel(unit)
            elif place.is_last_row():
                axes.set_xlabel(self.xlabel)
            if place.is_first_col() and not down:
                axes.set_ylabel(unit)
            axes.grid(axis="x" if down else "y")
            self._panel(axes, panel, looks, down)
        for axes in stack[: len(panels)]:  # once all is drawn that shares an axis
            style.span(axes, "x" if down else "y", self.least_span)
        below = [self.foot, style.heading(self.prepare(rows))]
        return style.finish(figure, self.finding(self, data), "\n".join(filter(None, below)))

    def _panel(self, axes: Axes, data: DataFrame, looks: Mapping[str, Look], down: bool) -> None:
        """Draw what stands in a panel."""
        if data["reference"].notna().any():
            across = axes.axvline if down else axes.axhline
            across(data["reference"].mean(), color=style.INK, linestyle="--", linewidth=0.8, zorder=1.8,
                   label=self.reference_label)
        if self.logarithmic and data["x"].nunique() > 1 and not down:
            axes.set_xscale("log")
        names = style.in_order(data["x"], self.names) if down else []
        shown = [line for line in looks if (data[LINE] == line).any()]
        for number, line in enumerate(shown):
            rows, side = data[data[LINE] == line], number - (len(shown) - 1) / 2
            if down:
                self._line(axes, rows, looks[line], rows["x"].map(names.index) + side * ABOVE / len(shown), down)
            else:
                rows = rows.sort_values("x", kind="stable")
                self._line(axes, rows, looks[line], self._beside(rows["x"], data["x"], side), down)
        if down:
            style.names_down(axes, [self.called(name) for name in names])
        elif data["x"].nunique() <= DENSE:
            values = sorted(data["x"].unique())
            labels = [f"{value:,g}" for value in values]
            axes.set_xticks(values, labels=labels, rotation=90 if len("".join(labels)) > CROWDED else 0)
            axes.minorticks_off()
            if len(values) == 1:  # the points of all lines stand at one place, as those of each number of several do
                value, = values
                axes.set_xlim(*((value / 2**0.5, value * 2**0.5) if self.logarithmic else (value - 0.5, value + 0.5)))

    def _beside(self, places: Series, every_place: Series, side: float) -> Series:
        """Numbers moved a little to a side, where they are few, so that points of lines stand beside one another."""
        if len(places) > DENSE:
            return places
        low, high = every_place.min(), every_place.max()
        if self.logarithmic:
            return places * max(high / low, 2) ** (DODGE * side)
        return places + (high - low or 1) * DODGE * side

    def _line(self, axes: Axes, rows: DataFrame, look: Look, places: Series, down: bool) -> None:
        """Draw ours with its error and, open, what is printed."""
        if len(rows) > DENSE and not down:
            axes.plot(places, rows["value"], color=look.colour, label=look.label)
            axes.fill_between(places, rows["value"] - rows["std"], rows["value"] + rows["std"], color=look.colour,
                              alpha=0.2, linewidth=0)
            return
        style.mark(axes, places, rows["value"], look, rows["std"], joined=not down, down=down)
        printed = Look(f"{look.label}, printed", look.colour, "D") if self.hue else style.PRINTED
        style.mark(axes, places, rows["printed"], printed, hollow=True, down=down)


Drawn = Callable[[DataFrame], Figure]  # a `Plot` or a function


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

    It says in words which one a row is of, as of a sweep over epochs, and a `Plot` shows them all. In place of a
    drawing that is none, a `Plot` has a line for every row, of the first measure that these fields change.
    """
    told = rows.columns[: rows.columns.get_loc("ours")].drop([*table.shown, "changed", "seed"], errors="ignore")
    further = [name for name in telling_apart(rows, [*table.shown, *told]) if name in told]
    drawing = table.drawing
    if not further or not drawing:
        return drawing, rows
    if not isinstance(drawing, Plot):
        named = table.study.recipe.named_by
        alike = rows.groupby([named, *(["seed"] if "seed" in rows else [])], dropna=False)
        measures = [name for name in ("ours", *table.measures) if name in rows]
        measure = next((name for name in measures if (alike[name].nunique() > 1).any()), "ours")
        ylabel = style.MEASURED.get(measure, measure.replace("_", " "))
        drawing = Plot(caption=caption_of(drawing), x=named, y=measure, ylabel=ylabel)
        rows = rows if measure == "ours" else rows.drop(columns="printed").assign(std=math.nan)
        further = [name for name in telling_apart(rows, [named, *table.shown, *told]) if name != named]
    settings = [", ".join(map(style.spoken, further, values)) for values in rows[further].itertuples(index=False)]
    shared = [{name: value for name, value in row.items() if name not in further}
              for row in rows.get("changed", [{}] * len(rows))]
    return drawing, rows.assign(setting=settings, changed=Series(shared, rows.index, dtype=object))


def caption_of(drawn: Drawn) -> str:
    """What a picture shows, in words: of a function the first paragraph of what it says of itself."""
    text = drawn.caption if isinstance(drawn, Plot) else inspect.getdoc(drawn) or ""
    return " ".join(text.partition("\n\n")[0].split())


def publish(stem: Path, drawn: Drawn, rows: DataFrame, runs: DataFrame) -> tuple[Path, Path]:
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
    figure = drawn(rows)
    metadata = {"Title": stem.name, "Description": caption, "Source": json.dumps(source, sort_keys=True)}
    svg, png = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    with style.styled():
        undated = metadata | {"Date": None}
        write_atomically(svg, lambda path: figure.savefig(path, format="svg", metadata=undated))
        write_atomically(png, lambda path: figure.savefig(path, format="png", dpi=style.DOTS, metadata=metadata))
    return svg, png


def leading(plot: Plot, data: DataFrame) -> str:
    """Which line or name is highest in each panel, where that is more than seeds scatter, as a sentence.

    The highest and the next differ by more than twice the standard error of the difference of their means. Lines are
    taken at the place with the largest value of their own. Of differences, from where to where they reach.
    """
    if plot.minus and data["unit"].nunique() > 1:
        return _ranges(plot, data[data[LINE] != plot.minus])
    by, sentences = LINE if data[LINE].nunique() > 1 else "x", {}
    for panel, rows in data.dropna(subset="value").groupby("panel", sort=False):
        best = rows.sort_values("value", ascending=False).drop_duplicates(by)
        first, second = best.iloc[0], best.iloc[min(1, len(best) - 1)]
        name = plot.line_called(first[by]) if by == LINE else plot.called(first[by])
        highest = f"{name} is highest"
        if by == "x" and pd.api.types.is_number(first[by]):
            highest = f"highest at {first[by]:,g} ({plot.xlabel})"
        error = math.hypot(first["std"] / first["n_seeds"] ** 0.5, second["std"] / second["n_seeds"] ** 0.5)
        if len(best) == 1:
            sentence = f"{first['value']:.1f} %"
        elif math.isnan(error):
            sentence = f"{highest}, {'of' if math.isnan(first['std']) else 'the next of'} one seed"
        elif first["value"] - second["value"] > 2 * error:
            sentence = highest
        else:
            sentence = "the highest two are closer than seeds scatter"
        sentences[plot.called(panel)] = sentence
    finding = "; ".join(f"{panel}: {sentence}" for panel, sentence in sentences.items())
    if len(set(sentences.values())) == 1:
        finding = sentence
    return finding[:1].upper() + finding[1:]


def _ranges(plot: Plot, differences: DataFrame) -> str:
    """From where to where each line differs from `plot.minus`; whether seeds decide that is for a claim to say."""
    ranges = []
    for line, rows in differences.groupby(LINE, sort=False):
        low, high = rows["value"].min(), rows["value"].max()
        ranges.append(f"{plot.line_called(line)} {low:+.1f} to {high:+.1f}")
    return f"Points from {plot.line_called(plot.minus)}: " + "; ".join(ranges)
