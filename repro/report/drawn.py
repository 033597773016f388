"""What the folder of figures holds: each figure with its caption and provenance, and the table or log behind it."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pandas as pd
from pandas import DataFrame

from repro.report.logs import slug
from repro.report.redraw import Drawing
from repro.report.trust import RESULTS

CELLS = "cells.csv"
ENDINGS = (".csv", ".svg", ".png")
DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"


class Drawn(NamedTuple):
    """The files of one stem.

    Attributes:
        stem: "taxonomy_ucla".
        files: their names, sorted.
        caption: of the figure, "" where none is drawn.
        provenance: what the figure was drawn from: cells, seeds, preset, dataset or log.
        table: where the CSV is a table of results; None for a log and where there is none.
        summary: what its paper says of such a table beside the figure.
    """

    stem: str
    files: list[str]
    caption: str
    provenance: dict[str, Any]
    table: DataFrame | None
    summary: str

    @property
    def title(self) -> str:
        """The stem in words, without the data set of a table, which stands beside it: "taxonomy 3layers"."""
        dataset = "" if self.table is None else f"_{slug(self.table['dataset'].iloc[0])}"
        return self.stem.replace(dataset, "", 1).replace("_", " ")

    @property
    def figure(self) -> str:
        """Name of the file to show, "" where none is drawn."""
        return next((f"{self.stem}{ending}" for ending in (".svg", ".png") if self.stem + ending in self.files), "")


def read(folder: Path, drawings: Mapping[str, Drawing]) -> list[Drawn]:
    """Everything in the folder but the exported cells, sorted by stem; nothing of a folder that does not exist.

    Args:
        folder: of figures.
        drawings: of tables and logs, by name.
    """
    paths = sorted(path for path in folder.glob("*") if path.suffix in ENDINGS and path.name != CELLS)
    stems = dict.fromkeys(path.stem for path in paths)
    files = {stem: [path.name for path in paths if path.stem == stem] for stem in stems}
    return [_drawn(folder, stem, files[stem], drawings.get(belonging(stem, drawings))) for stem in stems]


def belonging(stem: str, names: Collection[str]) -> str:
    """The name that the files of a stem belong to, of these: "taxonomy_variants_ucla" gives "taxonomy"; or ""."""
    return max((name for name in names if stem.startswith(f"{name}_")), key=len, default="")


def _drawn(folder: Path, stem: str, files: list[str], drawing: Drawing | None) -> Drawn:
    caption, provenance = _metadata(folder / f"{stem}.svg") if f"{stem}.svg" in files else ("", {})
    table = _results(folder / f"{stem}.csv") if f"{stem}.csv" in files else None
    if table is None or drawing is None:
        return Drawn(stem, files, caption, provenance, table, "")
    left = table.drop(columns=table.columns.intersection(drawing.repeated))
    return Drawn(stem, files, caption, provenance, left, drawing.summary(table))


def _results(path: Path) -> DataFrame | None:
    """A table of results; None if the file has other columns, is a log.

    Raises:
        ValueError: if the file is damaged, naming it.
    """
    try:
        table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({str(error).strip()}); draw it again with `repro figures`") from error
    return table if set(table.columns) >= RESULTS and len(table) else None


def _metadata(path: Path) -> tuple[str, dict[str, Any]]:
    """Caption and provenance, as `repro.report.style.save` writes them.

    Raises:
        ValueError: if the file is not SVG, naming it.
    """
    try:
        tree = ElementTree.parse(path)
        caption, source = (tree.findtext(f".//{DUBLIN_CORE}{name}", default="") for name in ("description", "source"))
        return caption, json.loads(source) if source else {}
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); draw it again with `repro figures`") from error
