"""Pictures: of tables and experiments, and those that a paper draws of frames and of several experiments."""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
from pandas import DataFrame

from repro import experiments, papers
from repro.data.disk import scratch
from repro.recipe import choose
from repro.report.text import in_text, remarks
from repro.run.store import everything, write_frame
from repro.table import NUMBERS


def draw(name: str, rows: DataFrame) -> Any:
    """The figure of a table, as its paper draws it.

    Args:
        name: of the table or an experiment; ValueError if there is none or it is not drawn.
        rows: as `repro.run_table` or `results` return them. ValueError if there are none, or columns are lacking;
            TypeError if they are no DataFrame.
    """
    if not isinstance(rows, DataFrame):
        raise TypeError(f"rows={rows!r} should be a DataFrame, as `repro.results({name!r})` returns it")
    tables = papers.tables()
    table = tables[name] if name in tables else experiments.find(name).declared
    choose("name", table.name, [known for known, declared in tables.items() if declared.plot])
    if rows.empty:
        raise ValueError(f"there are no rows to draw {name} from; `repro run` trains what it can show")
    if lacking := [column for column in (*table.shown, *NUMBERS) if column not in rows]:
        raise ValueError(f"rows to draw {name} from lack {', '.join(lacking)}; draw those of the table {table.name}")
    from repro.report import plots

    drawing, shown = plots.in_settings(table, rows)
    return drawing(shown, finding(name, rows) or table.title)


def finding(name: str, rows: DataFrame) -> str:
    """The title that a person wrote in `findings.yaml` of these rows of an experiment or picture; "" of others."""
    _, entry = papers.entries("findings.yaml").get(name, ("", {}))
    return entry["says"] if entry and entry["rows"] == digest(rows) else ""


def digest(rows: DataFrame) -> str:
    """By which `findings.yaml` names the rows of a title."""
    return hashlib.sha256(in_text(rows).to_csv(index=False).encode()).hexdigest()[:12]


def redraw(folder: Path, names: Iterable[str] = ()) -> tuple[list[Path], dict[str, Exception]]:
    """Write the tables of experiments and the rows of pictures, and draw them; returns the files and errors by name.

    Of experiments that are not named those are drawn that have a title in `findings.yaml`. A picture that
    cannot be drawn leaves the others alone. All files are replaced when all are made.

    Args:
        folder: gets `<name>.csv`, `.svg` and `.png` of all of which a run is finished.
        names: of experiments and pictures, by default all; ValueError names those there are. One of which no run is
            finished is an error.
    """
    matplotlib.use("agg")  # no window is needed
    runs = everything()
    experiments.warn_of_other_code(runs)
    known = [*papers.saved(), *papers.pictures()]
    chosen = [choose("name", name, known) for name in dict.fromkeys(names)] or known
    files: list[Path] = []
    failed: dict[str, Exception] = {}
    with scratch(folder / ".figures") as beside:
        for name in chosen:
            try:
                files += _draw(name, runs, beside / name, bool(names))
            except Exception as error:
                failed[name] = error
        return [path.replace(folder / path.name) for path in files], failed


def _draw(name: str, runs: DataFrame, stem: Path, required: bool) -> list[Path]:
    """Write the rows of an experiment or a picture of stored runs and draw them; returns the files.

    ValueError if nothing is finished of one that is required.
    """
    from repro.report import plots

    asked, usual = {}, ""
    if picture := papers.pictures().get(name):
        for experiment in map(experiments.find, picture.experiments):
            asked |= experiment.asked()
        rows = experiments.frames(asked.values(), picture.frame, picture.fields, runs) if picture.frame else runs
        if len(rows) or not picture.frame:
            rows = picture.rows(rows)
        drawn, shown = picture.plot, rows
        asked = dict.fromkeys(rows.get("id", asked))
    else:
        experiment = experiments.find(name)
        asked, rows, usual = experiment.asked(), experiment.rows(runs), experiment.declared.title
        drawn, shown = plots.in_settings(experiment.declared, rows) if len(rows) else (None, rows)
        if isinstance(drawn, plots.Plot) and drawn.minus:  # whose errors are of single runs
            drawn, shown = plots.in_settings(experiment.declared, _single_runs(experiment, runs))
    if rows.empty:
        if required:
            raise ValueError("none of its runs is finished, or has left what it shows; `repro run` trains them")
        return []
    ids = [*asked]
    behind = runs[runs["id"].isin(ids)].sort_values("id", key=lambda column: column.map(ids.index))
    if not picture and (behind["whose"] != "ours").any():
        for line in remarks(rows):
            print(f"{name}: {line}", file=sys.stderr)
    written = [write_frame(in_text(rows), stem.with_suffix(".csv"))]
    titled, title = name in papers.entries("findings.yaml"), finding(name, rows)
    if drawn and len(shown) > 1 and (titled or picture or required):  # one number is no figure
        if titled and not title:
            line = f"{name}: its title in findings.yaml is of other rows; of these write one, with rows: "
            print(f'{line}"{digest(rows)}"', file=sys.stderr)
        written += plots.publish(stem, drawn, shown, behind, title or usual)
    return written


def _single_runs(experiment: experiments.Experiment, runs: DataFrame) -> DataFrame:
    """The rows of an experiment by seed, with a column `entry` that those share which differ in it alone."""
    rows = experiment.rows(runs, ["seed"]).drop(columns=["std", "n_seeds"])
    apart = [*rows.columns[: rows.columns.get_loc("ours")].drop(["seed", "changed"], errors="ignore")]
    return rows.assign(entry=rows.groupby(apart, dropna=False).ngroup())
