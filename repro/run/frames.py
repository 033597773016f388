"""What cells leave beside numbers, as frames: curves along training, histograms, choices; files in their folders.

A frame that a learner measures, or that is computed once from its weights, is `<name>.csv`. Three more are read from
the logs of a training: `progress` has a line for every report, `epochs` the means over each epoch, and `probes` what
was measured along training, a row for each measure.
"""

from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame

from repro.data import disk
from repro.data.disk import write_atomically
from repro.run.store import parse_json

LOGS = {"progress": "progress.jsonl", "epochs": "progress.jsonl", "probes": "probes.jsonl"}
REMEDY = "restore it from version control or, in REPRO_RUNS, delete it and run the table again"
CLOCK = ("of", "seconds")  # of a report, which are no measures


def write(frame: DataFrame, path: Path) -> Path:
    """Write a frame as CSV, all of it or nothing; returns the path."""
    write_atomically(path, lambda temporary: frame.to_csv(temporary, index=False))
    return path


def read_csv(path: Path) -> DataFrame:
    """A frame that was written; text stays text.

    Raises:
        ValueError: if the file is damaged: a line is cut, there is no row, or a number is not finite.
    """
    frame = disk.read_csv(path, REMEDY, dtype={"key": str})
    if frame.empty or not np.isfinite(frame.select_dtypes("number").to_numpy(float)).all():
        raise ValueError(f"{path} cannot be read (it has no rows, or other than finite numbers); {REMEDY}")
    return frame


def read(folder: Path, name: str, epochs: int) -> DataFrame:
    """A frame of the cell in a folder; no rows if it has none of that name.

    Args:
        folder: of the cell.
        name: of the frame.
        epochs: of the cell's recipe, by which steps are told.

    Raises:
        ValueError: if the file is damaged.
    """
    path = folder / LOGS.get(name, f"{name}.csv")
    if not path.exists():
        return DataFrame()
    if name not in LOGS:
        return read_csv(path)
    log = DataFrame(lines_of(path))
    if name == "progress":
        return log
    last = lines_of(folder / LOGS["progress"])[-1]["step"]
    if name == "probes":
        log["epoch"] = (log.pop("step") * epochs / last).round().astype(int)
        return log.melt("epoch", var_name="measure").round(2).sort_values(["epoch", "measure"], ignore_index=True)
    log["epoch"] = np.ceil(log.pop("step") * epochs / last).astype(int)
    return log.groupby("epoch").mean().reset_index()


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The numbers in the lines of a log.

    Raises:
        ValueError: if a line is damaged, or lacks a number that the first has.
    """
    rows: list[dict[str, Any]] = []
    try:
        for line in disk.read_file(path).decode("utf-8").splitlines() or [""]:
            numbers = {name: value for name, value in parse_json(line).items() if name not in CLOCK}
            if not {*map(type, numbers.values())} <= {int, float}:
                raise TypeError("a value is no number")
            if "step" not in numbers or (rows and numbers.keys() != rows[0].keys()):
                raise KeyError("a number is missing")
            rows.append(numbers)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} cannot be read beyond line {len(rows)} ({type(error).__name__}: {error}); delete "
                         "that folder and run the table again") from error
    return rows
