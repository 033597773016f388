"""Every figure, and the table behind it, from finished cells: nothing is trained and no real data is needed."""

import inspect
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from pandas import DataFrame

from repro.report.logs import only
from repro.report.style import save


class Drawing(NamedTuple):
    """The figure of a table, of its departures, or of a log."""

    draw: Callable[[DataFrame], Figure]                        # makes it of rows; its docstring begins with a caption
    of: Callable[[DataFrame], DataFrame] = lambda log: log     # which rows of a log are drawn; nothing where none are

    @property
    def caption(self) -> str:
        """What it shows, in words: the first paragraph of what the drawing function says of itself."""
        return " ".join((inspect.getdoc(self.draw) or "").partition("\n\n")[0].split())


def redraw(
    drawings: Mapping[str, Callable[[Path], list[Path]]], folder: Path
) -> tuple[list[Path], dict[str, Exception]]:
    """Make files by drawings that are independent of one another, and put them into a folder when all are made.

    Args:
        drawings: by name, each writes files into the folder that it is given and returns them.
        folder: gets the files of all drawings that do not fail, in place of those of their names.

    Returns:
        The files, and what went wrong, by name of the drawing: a figure that cannot be drawn leaves the others alone.
    """
    written, failed = [], {}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".figures.", dir=folder) as temporary:
        for name, draw in drawings.items():
            try:
                written += draw(Path(temporary))
            except Exception as error:  # whatever a drawing stumbles over
                failed[name] = error
        return [path.replace(folder / path.name) for path in written], failed


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
