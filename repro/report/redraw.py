"""Every figure, and the table behind it, from finished cells: nothing is trained and no real data is needed."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.data.disk import write_atomically
from repro.recipe import in_words
from repro.report import logs
from repro.report.elements import only, spread_in_words, words
from repro.report.logs import Log, labels, slug
from repro.report.style import save

if TYPE_CHECKING:
    from repro.table import Table  # above this module, which is handed tables


class Drawing(NamedTuple):
    """The figure of a table, of its departures, or of a log.

    Attributes:
        draw: makes it of the rows.
        caption: what it shows, in words.
        of: of a log, which of its rows are drawn; where there are none, nothing is.
        also: a further sentence of the caption, which follows from the finished cells behind the figure.
        summary: of the rows of a table, what the site says of them beside the figure.
        repeated: columns of a table that only repeat what others say; the site leaves them out.
    """

    draw: Callable[[DataFrame], Figure]
    caption: str
    of: Callable[[DataFrame], DataFrame] = lambda log: log
    also: Callable[[DataFrame], str] = lambda cells: ""
    summary: Callable[[DataFrame], str] = lambda rows: ""
    repeated: tuple[str, ...] = ()


def redraw(
    tables: "Mapping[str, Table]",
    cells: Mapping[str, DataFrame],
    figures: Mapping[str, Drawing],
    kept: Mapping[str, Log],
    folder: Path,
) -> list[Path]:
    """Write every table and draw it, and every log there is, one figure per data set; returns the files written.

    Args:
        tables: by name.
        cells: by table the finished cells that stand in it; smoke runs are passed over.
        figures: by the name of a table, of one followed by "_variants", or of a log.
        kept: what logs there may be, by name.
        folder: gets `<table>_<dataset>.csv`, `.svg` and `.png`. A setting that the paper prints has a table of its own,
            as in `taxonomy_ntu_3layers`. Departures and earlier versions stand in `<table>_variants_<dataset>`. Logs
            that were exported there before are drawn beside their CSV.

    Raises:
        ValueError: if a log does not say which cells it comes from, or seeds of a row cannot be averaged.
    """
    written = []
    for name, table in tables.items():
        chosen = cells[name][cells[name]["preset"] != "smoke"]
        for _, of_dataset in chosen.groupby("dataset"):
            found = table.with_versions(of_dataset)
            listed = ~found["departures"].map(bool)
            for setting, group in found[listed].groupby(found["setting"].map(_ending)):
                best = most_complete(group)
                written += _write(folder, name, table, table.laid_out(best), best, figures.get(name), setting)
            if not listed.all():
                rows, usual = variants(table, found[~listed], found)
                shown = pd.concat([found[~listed], usual])
                away = f"{name}_variants"
                written += _write(folder, away, table, rows, shown, figures.get(away))
    for name in [name for name in figures if name in kept]:
        for path in sorted(folder.glob(f"{name}_*.csv")):
            log = figures[name].of(logs.read(path, kept[name]))
            if not log.empty:
                found = cells[kept[name].table]
                behind = found[found["key"].isin(log["key"])]
                also = _of_cells(figures[name], tables[kept[name].table], behind)
                written += _save(figures[name], path.with_suffix(""), log, also=also)
    return written


def most_complete(cells: DataFrame) -> DataFrame:
    """Of cells of a table those of the preset that covers most of its rows (paper if equal)."""
    covered = labels(cells).groupby(cells["preset"]).nunique()
    best = max(covered.index, key=lambda preset: (covered[preset], preset == "paper"), default=None)
    return cells[cells["preset"] == best].reset_index(drop=True)


def variants(table: "Table", away: DataFrame, cells: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Cells that depart from the rows of their table, laid out beside their recipe.

    Args:
        table: in which they stand.
        away: departing cells, of one data set; an earlier version of the training departs too.
        cells: all that stand in the table on that data set.

    Returns:
        The rows of the table, with `departures`, which has the setting too, and before `published` the accuracy
        `usual` of the recipe without them, over the same seeds and by the same version (NaN if one of them has not been
        run, or nothing but the version departs); and the cells of these recipes.
    """
    parts, beside = [], [cells[:0]]
    plain = cells[[departures.keys() <= {"version"} for departures in cells["departures"]]]
    for _, group in away.groupby(["preset", labels(away), "version"], sort=False):
        departures, setting = group["departures"].iloc[0], group["setting"].iloc[0]
        rows = table.laid_out(_departing(group, {**setting, **departures}))
        columns = list(rows.columns[: rows.columns.get_loc("departures")])
        known = ["preset", "version", *(name for name in columns if name in cells)]  # others follow from these
        alike = (plain[known] == group[known].iloc[0]).all(axis=1) & plain["seed"].isin(group["seed"])
        recipe = plain[alike & (plain["setting"].map(in_words) == in_words(setting))]
        usual = DataFrame(columns=[*columns, "ours"])
        if departures.keys() != {"version"} and set(recipe["seed"]) == set(group["seed"]):
            usual = table.laid_out(_departing(recipe, {}))
            beside.append(recipe)
        usual = rows[columns].merge(usual[[*columns, "ours"]].astype({"ours": float}), how="left", on=columns)["ours"]
        rows.insert(rows.columns.get_loc("published"), "usual", usual)
        parts.append(rows)
    return pd.concat(parts, ignore_index=True), pd.concat(beside).drop_duplicates("key")


def _departing(cells: DataFrame, departures: Mapping[str, Any]) -> DataFrame:
    """The cells, which are said to depart so and to be made in no setting of their own."""
    return cells.assign(departures=[departures] * len(cells), setting=[{}] * len(cells))


def _ending(setting: Mapping[str, Any]) -> str:
    """What a setting adds to the name of a file: {"layers": 3} gives "_3layers"."""
    parts = [f"_{value}" if isinstance(value, str) else f"_{value}{name}" for name, value in setting.items()]
    return "".join(parts)


def _write(
    folder: Path, name: str, table: "Table", rows: DataFrame, cells: DataFrame, figure: Drawing | None,
    setting: str = "",
) -> list[Path]:
    """Rows of a table as CSV, and their figure if there is one; `setting` ends the names of the files."""
    stem = folder / f"{name}_{slug(rows['dataset'].iloc[0])}{setting}"
    write_atomically(stem.with_suffix(".csv"), lambda path: told(rows).to_csv(path, index=False))
    if figure is None:
        return [stem.with_suffix(".csv")]
    also = " ".join(filter(None, (spread_in_words(rows), _of_cells(figure, table, cells))))
    return [stem.with_suffix(".csv"), *_save(figure, stem, cells, rows, also)]


def _of_cells(figure: Drawing, table: "Table", cells: DataFrame) -> str:
    """What follows for a caption from the cells behind a figure, if any are there."""
    sentences = (figure.also(cells), versions_in_words(cells, table.study.version)) if len(cells) else ()
    return " ".join(filter(None, sentences))


def told(rows: DataFrame) -> DataFrame:
    """Rows of a table with their departures as text: "layers=3, td_queue=frozen_noise"."""
    return rows.assign(departures=rows["departures"].map(words)) if "departures" in rows else rows


def _save(
    figure: Drawing, stem: Path, named: DataFrame, rows: DataFrame | None = None, also: str = ""
) -> tuple[Path, Path]:
    """Write a figure with its caption and what it is drawn from.

    Args:
        figure: to draw.
        stem: of the files.
        named: rows of cells or of a log, which name their cells.
        rows: that are drawn; by default these.
        also: a further sentence of the caption.
    """
    caption = " ".join(filter(None, (figure.caption, also)))
    provenance = {
        "cells": list(dict.fromkeys(named["key"])),
        "seeds": sorted(int(seed) for seed in named["seed"].unique()),
        "preset": " and ".join(sorted(named["preset"].unique())),
        "dataset": only(named, "dataset"),
    }
    return save(figure.draw(named if rows is None else rows), stem, captioned(caption, provenance), provenance)


def versions_in_words(cells: DataFrame, newest: int) -> str:
    """Which cells are of which version of the training, where one is not today's: they cannot simply be compared."""
    if set(cells["version"]) <= {newest}:
        return ""
    today, called = f"(today's is {newest})", labels(cells).groupby(cells["version"]).unique()
    if len(called) == 1:
        return f"Cells of version {called.index[0]} of the training {today}."
    usual = max(called.index, key=lambda version: len(called[version]))
    parts = [f"{version} of {' and '.join(names)}" for version, names in called.drop(usual).items()]
    return f"Versions of the training: {'; '.join(parts)}; {usual} of all others {today}."


def captioned(caption: str, provenance: dict[str, Any]) -> str:
    """The caption, and in words what a figure is drawn from; the keys of the cells are in the file's metadata."""
    seeds, count = ", ".join(map(str, provenance["seeds"])), len(provenance["cells"])
    cells = "1 cell, whose key is" if count == 1 else f"{count} cells, whose keys are"
    printed_in = f"Printed numbers: {provenance['printed']}. " if "printed" in provenance else ""
    return (f"{caption} Data set: {provenance['dataset']}. Preset: {provenance['preset']}. {printed_in}"
            f"Seed{'s' * (len(provenance['seeds']) > 1)}: {seeds}. Drawn from {cells} in the source of this file.")
