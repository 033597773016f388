"""Every figure, and the table behind it, from finished cells: nothing is trained and no real data is needed."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from pandas import DataFrame

from repro.recipe import in_words
from repro.report import logs
from repro.report.logs import Log, fullest_preset, labels, only, slug
from repro.report.style import save, spread_in_words, words

if TYPE_CHECKING:
    from repro.table import Table  # above this module, which is handed tables


class Drawing(NamedTuple):
    """The figure of a table, of its departures, or of a log."""

    draw: Callable[[DataFrame], Figure]                        # makes it of rows; its docstring begins with a caption
    of: Callable[[DataFrame], DataFrame] = lambda log: log     # which rows of a log are drawn; nothing where none are

    @property
    def caption(self) -> str:
        """What it shows, in words: the first paragraph of what the drawing function says of itself."""
        return " ".join((inspect.getdoc(self.draw) or "").partition("\n\n")[0].split())


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
            that were exported there before are drawn beside their CSV. A number with nothing beside it is not drawn.

    Raises:
        ValueError: if a log does not say which cells it comes from, or seeds of a row cannot be averaged.
    """
    written = []
    for table in tables.values():
        for name, ending, rows, behind in _parts(table, cells[table.name]):
            stem = folder / f"{name}_{slug(only(rows, 'dataset'))}{ending}"
            as_text = rows.assign(departures=rows["departures"].map(words)) if "departures" in rows else rows
            written.append(logs.write(as_text, stem.with_suffix(".csv")))
            compared = rows.filter(items=["usual", "published"]).notna().any(axis=None)
            if name in figures and (len(rows) > 1 or compared):  # one number is no figure
                rows = rows.assign(setting=table.setting_of(rows)) if ending else rows
                rows, versions = _of_versions(rows, behind, table.study.version)
                written += publish(stem, figures[name], rows, provenance_of(behind), spread_in_words(rows), versions)
    for name in [name for name in figures if name in kept]:
        of_table = kept[name].table
        for path in sorted(folder.glob(f"{name}_*.csv")):
            log = figures[name].of(logs.read(path, kept[name]))
            if not log.empty:
                behind = cells[of_table][cells[of_table]["key"].isin(log["key"])]
                log, versions = _of_versions(log, behind, tables[of_table].study.version)
                written += publish(path.with_suffix(""), figures[name], log, provenance_of(log), versions)
    return written


def _parts(table: "Table", cells: DataFrame) -> Iterator[tuple[str, str, DataFrame, DataFrame]]:
    """What is written of a table: name, ending of the files, rows, and the cells that these show."""
    for _, of_dataset in cells[cells["preset"] != "smoke"].groupby("dataset"):
        versioned = table.with_versions(of_dataset)
        listed = ~versioned["departures"].map(bool)
        for ending, group in versioned[listed].groupby(versioned["setting"].map(_ending)):
            best = fullest_preset(group, labels(group)).reset_index(drop=True)
            yield table.name, ending, table.laid_out(best), best
        if not listed.all():
            rows, usual = variants(table, versioned[~listed], versioned)
            yield f"{table.name}_variants", "", rows, pd.concat([versioned[~listed], usual])


def _ending(setting: Mapping[str, Any]) -> str:
    """What a setting adds to the name of a file: {"layers": 3, "redrawn": True} gives "_3layers_redrawn"."""
    return "".join(f"_{value}" if isinstance(value, str) else f"_{'' if value is True else value}{name}"
                   for name, value in setting.items())


def variants(table: "Table", away: DataFrame, cells: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Cells that depart from the rows of their table, laid out beside their recipe.

    Args:
        table: in which they stand.
        away: departing cells, of one data set; an earlier version of the training departs too.
        cells: all that stand in the table on that data set.

    Returns:
        The rows of the table, with `departures`, which has the setting too, before `published` the accuracy `usual` of
        the recipe without them, over the same seeds and by the same version (NaN if one of them has not been run, or
        nothing but the version departs), and that `version`; and the cells of these recipes.
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
        parts.append(rows.assign(version=group["version"].iloc[0]))
    return pd.concat(parts, ignore_index=True), pd.concat(beside).drop_duplicates("key")


def _departing(cells: DataFrame, departures: Mapping[str, Any]) -> DataFrame:
    """The cells with these departures in place of their own, and in no setting."""
    return cells.assign(departures=[departures] * len(cells), setting=[{}] * len(cells))


def publish(
    stem: Path, drawing: Drawing, rows: DataFrame, provenance: dict[str, Any], *sentences: str
) -> tuple[Path, Path]:
    """Write a figure of some rows, as SVG and PNG, with a caption that also says in words what it is drawn from.

    Args:
        provenance: of `provenance_of`, whose keys are in the files' metadata, and what else there is to say.
        sentences: of the caption.
    """
    parts = [drawing.caption, *filter(None, sentences)]
    if "cells" in provenance:
        seeds, count = ", ".join(map(str, provenance["seeds"])), len(provenance["cells"])
        parts.append(f"Data set: {provenance['dataset']}. Preset: {provenance['preset']}.")
        parts += [f"Printed numbers: {provenance['printed']}."] if "printed" in provenance else []
        cells = "1 cell, whose key is" if count == 1 else f"{count} cells, whose keys are"
        parts.append(f"Seed{'s' * (len(provenance['seeds']) > 1)}: {seeds}. Drawn from {cells} in the source of this "
                     "file.")
    return save(drawing.draw(rows), stem, " ".join(parts), provenance)


def provenance_of(rows: DataFrame) -> dict[str, Any]:
    """The cells of one data set that a figure is drawn from, by rows of cells or of a log."""
    return {"cells": list(dict.fromkeys(rows["key"])), "seeds": sorted({int(seed) for seed in rows["seed"]}),
            "preset": " and ".join(sorted(set(rows["preset"]))), "dataset": only(rows, "dataset")}


def _of_versions(rows: DataFrame, cells: DataFrame, newest: int) -> tuple[DataFrame, str]:
    """Rows of a table or log as they are drawn, and what their caption says of versions of the training.

    Where the cells behind them are not all of today's version, each row has its own as a column, which figures name.
    """
    versions = versions_in_words(cells, newest)
    if not versions:
        rows = rows.drop(columns="version", errors="ignore")
    elif "key" in rows:
        rows = rows.assign(version=rows["key"].map(cells.set_index("key")["version"]))
    elif "version" not in rows:
        rows = rows.assign(version=only(cells, "version"))
    return rows, versions


def versions_in_words(cells: DataFrame, newest: int) -> str:
    """Which cells are of which version of the training, where one is not today's: they cannot simply be compared."""
    if {*cells["version"]} <= {newest}:
        return ""
    today, called = f"(today's is {newest})", labels(cells).groupby(cells["version"]).unique()
    if len(called) == 1:
        return f"Cells of version {called.index[0]} of the training {today}."
    usual = max(called.index, key=lambda version: len(called[version]))
    parts = [f"{version} of {' and '.join(names)}" for version, names in called.drop(usual).items()]
    return f"Versions of the training: {'; '.join(parts)}; {usual} of all others {today}."
