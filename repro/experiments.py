"""Experiments: what was trained is a saved command, and what came of it is looked up by the keys of its cells.

`repro/papers/<paper>/experiments.yaml` has an entry for each:

    samplers_with_headroom:
      {table: ohem_vs_active, dataset: multiomniglot, preset: quick, seeds: 0-2, data: {digest: 7de4...},
       fields: {sampler: [random, gradient], batch: 128, dictionary: [256, 1024]},
       says: "Table 3's order where accuracy has room"}

A key holds the digest of the data that a cell was trained on. An entry names it, so that results can be read where
these data are not. The name of a table is an experiment as well: the table with its defaults, on the data at hand.
"""

import contextlib
import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame, Series
from tqdm.auto import tqdm

from repro import papers
from repro.recipe import choose
from repro.report import redraw as drawing
from repro.report.logs import Log, read, write
from repro.report.style import spread_in_words
from repro.report.text import in_text
from repro.run.export import everything
from repro.run.store import Cell
from repro.table import Asked, Table, run_table, studies


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """The arguments of one `repro.run_table`, saved under a name.

    Attributes:
        name: what users type.
        table: name of the table.
        says: what it is for, in one line.
        dataset, preset, seeds, variant: as for `repro.run_table`.
        fields: of the recipe, one value or a list of them, which sweeps.
        version: of the training whose cells are read; today's unless an earlier one is all there is.
        earlier: fields to which the presets of that version gave another value; none departs.
        data: what its committed cells were trained on: "digest", by the values of the field "by" if there is one, and
            "copy", the file that was taken in, if it is not the official one. Without it, the data that are here.
    """

    name: str
    table: str
    says: str
    dataset: str | None = None
    preset: str = "auto"
    seeds: str | int = "0"
    variant: str = "none"
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    version: int | None = None
    earlier: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of `repro.run_table` besides the table."""
        shared = {name: getattr(self, name) for name in ("dataset", "preset", "seeds", "variant")}
        return {**shared, **self.fields}

    @property
    def declared(self) -> Table:
        """Its table."""
        return papers.tables()[self.table]

    def digest(self, recipe: Any) -> str:
        """Of the data that a recipe is trained on; "" where the entry does not say."""
        digests = self.data.get("digest", "")
        return digests.get(getattr(recipe, self.data["by"]), "") if "by" in self.data else digests

    def asked(self) -> dict[str, tuple[Cell, Asked]]:
        """Its cells by key, seed by seed, each with what is asked for."""
        pairs = self.declared.asked_cells(
            digest=self.digest, version=self.version, earlier=self.earlier, device="cpu", **self.arguments)
        return {cell.key: (cell, row) for cell, row in pairs}


@functools.cache
def experiments() -> dict[str, Experiment]:
    """Every experiment by name: those of each paper, then the tables.

    Raises:
        ValueError: if an entry names a table or parameter that there is not, or a name is there twice.
    """
    known = {name: _checked(name, entry) for name, entry in papers.saved().items()}
    return known | {name: Experiment(name=name, table=name, says=line) for name, line in papers.lines().items()}


def _checked(name: str, entry: Mapping[str, Any]) -> Experiment:
    """An entry as an experiment; raises ValueError if it asks for what there is not."""
    try:
        for part in entry:
            choose("parameter", part, [field.name for field in dataclasses.fields(Experiment)][1:])
        choose("table", entry.get("table"), papers.lines())
        return Experiment(name=name, **entry)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the entry {name} of an experiments.yaml: {error}") from error


def find(name: str) -> Experiment:
    """An experiment by name; ValueError names those there are."""
    return experiments()[choose("experiment", name, experiments())]


def results(name: str) -> DataFrame:
    """The table of an experiment, from figures/cells.csv and REPRO_RUNS; trains nothing and needs no real data.

    Columns as of `repro.run_table`; recipes of which no cell is finished have no row. ValueError names the experiments
    if there is none of that name.
    """
    experiment = find(name)
    by_key = {key: row for key, (_, row) in experiment.asked().items()}
    return experiment.declared.numbers(by_key, everything(), experiment.declared.columns_asked(experiment.fields))


def run(name: str, *, tensorboard: bool = False, **choices: Any) -> DataFrame:
    """Train what is missing of an experiment and return its table.

    An experiment that reads cells of an earlier version of the training is read as it is: none can be trained today.

    Args:
        name: of the experiment.
        tensorboard, choices: of `repro.run_table`; those that are given replace the experiment's.
    """
    experiment = find(name)
    where = {option: choices.pop(option) for option in ("device", "engine", "workers") if option in choices}
    table = experiment.declared
    if not choices and experiment.version not in (None, table.study.version):
        tqdm.write(f"{name} reads cells of version {experiment.version} of the training, today's is "
                   f"{table.study.version}; `repro run {experiment.table}` trains today's", file=sys.stderr)
        return results(name)
    arguments = experiment.arguments | choices
    if experiment.data and not choices:
        cells = table.cells(device=where.get("device", "auto"), **arguments)
        if any(cell.digest != experiment.digest(cell.recipe) for cell in cells):
            tqdm.write(f"the data at hand are others than those that the committed cells of {name} were trained on: "
                       "what is trained here stands beside them", file=sys.stderr)
    return run_table(experiment.table, tensorboard=tensorboard, **where, **arguments)


def draw(name: str, rows: DataFrame) -> Any:
    """The figure of a table, as its paper draws it.

    Where rows differ in a field that is not the table's own, as those of a sweep over epochs do, the first of them that
    are otherwise alike are drawn, and a printed line says so.

    Args:
        name: of the table or of an experiment; ValueError if it has no figure of its own.
        rows: as `repro.run_table` or `results` return them.
    """
    tables, drawings = papers.tables(), papers.drawings()
    table = tables[name] if name in tables else find(name).declared
    choose("name", table.name, [known for known in tables if known in drawings])
    first = _of_first_setting(table, rows)
    if len(first) < len(rows):
        print("drawn is the first of several settings; give draw the rows of another to see it")
    return drawings[table.name].draw(first)


def _of_first_setting(table: Table, rows: DataFrame) -> DataFrame:
    """Of rows that differ in fields which are not the table's own, the first."""
    return rows.drop_duplicates([*table.shown, "preset", "dataset"], ignore_index=True)


def redraw(folder: Path, source: Path, names: Iterable[str] = ()) -> tuple[list[Path], dict[str, Exception]]:
    """Write the table of every experiment of which a cell is finished, and draw it, and the logs of figures.

    Args:
        folder: gets `<experiment>.csv`, `.svg` and `.png`, and the figures of logs.
        source: the folder of logs that were exported.
        names: of experiments, logs and what else there is; all by default.

    Returns:
        As `repro.report.redraw.redraw`.

    Raises:
        ValueError: if there is nothing of a name, naming what there is.
    """
    cells, figures, kept = everything(), papers.drawings(), papers.logs()
    drawings: dict[str, Callable[[Path], list[Path]]] = {
        experiment.name: functools.partial(_draw_experiment, experiment, cells, figures) for experiment in _saved()}
    versions = cells.set_index("key")["version"]
    for name in (name for name in figures if name in kept):
        for path in sorted(source.glob(f"{name}_*.csv")):
            drawings[path.stem] = functools.partial(_draw_log, path, figures[name], kept[name], versions)
    placed = cells_by_table(cells)
    for further in papers.further().values():
        drawings |= {name: functools.partial(write, placed, source) for name, write in further.items()}
    chosen = [choose("name", name, drawings) for name in names] or [*drawings]
    return drawing.redraw({name: drawings[name] for name in chosen}, folder)


def _saved() -> list[Experiment]:
    """The experiments that are no tables with their defaults."""
    return [experiment for experiment in experiments().values() if experiment.name not in papers.lines()]


def _draw_experiment(
    experiment: Experiment, cells: DataFrame, figures: Mapping[str, drawing.Drawing], folder: Path
) -> list[Path]:
    """Write the table of an experiment and draw it; of one without a finished cell, nothing."""
    asked = {key: row for key, (_, row) in experiment.asked().items()}
    order = {key: place for place, key in enumerate(asked)}
    cells = cells[cells["key"].isin(asked)].sort_values("key", key=lambda keys: keys.map(order))
    if cells.empty:
        return []
    rows = experiment.declared.numbers(asked, cells, experiment.declared.columns_asked(experiment.fields))
    written = [write(in_text(rows), folder / f"{experiment.name}.csv")]
    drawn = _of_first_setting(experiment.declared, rows)
    if experiment.table in figures and len(drawn) > 1:  # one number is no figure
        written += drawing.publish(folder / experiment.name, figures[experiment.table], drawn,
                                   drawing.provenance_of(cells), spread_in_words(drawn))
    return written


def _draw_log(path: Path, figure: drawing.Drawing, kept: Log, versions: Series, folder: Path) -> list[Path]:
    rows = figure.of(read(path, kept))
    rows = rows.assign(version=rows["key"].map(versions))
    return [*drawing.publish(folder / path.stem, figure, rows, drawing.provenance_of(rows))] if len(rows) else []


def beside_recipe(name: str) -> DataFrame:
    """The rows of an experiment that departs from its recipe, with `usual` before `published`: what the recipe has.

    That is our number over the same seeds, by the same version of the training; NaN where one of them is not finished.
    """
    experiment, rows = find(name), results(name)
    named, table = experiment.declared.study.recipe.named_by, experiment.declared
    kept = {field: value for field, value in experiment.fields.items() if field == named or field in table.printed_by}
    recipe = dataclasses.replace(experiment, fields=kept)
    by_key, seeds = {key: row for key, (_, row) in recipe.asked().items()}, rows["n_seeds"].max()
    plain = table.numbers(by_key, everything(), table.columns_asked(kept))
    columns = [column for column in plain.columns[: plain.columns.get_loc("ours")] if column in rows]
    plain = plain.loc[plain["n_seeds"] == seeds, [*columns, "ours"]].astype({"ours": float})
    usual = rows[columns].merge(plain, how="left", on=columns)["ours"]
    rows.insert(rows.columns.get_loc("published"), "usual", usual)
    return rows


def cells_by_table(cells: DataFrame) -> dict[str, DataFrame]:
    """Stored cells by the table whose experiments ask for them; see `Study.tidy`.

    Returns:
        The cells of each table in the order of its experiments, with what their rows are called, and what they were
        asked to change: `setting` has the fields in which an experiment leaves the presets as a whole, `departures`
        those in which a cell does besides.
    """
    tidy = {name: study.tidy(cells) for name, study in studies(papers.tables().values()).items()}
    parts: dict[str, list[DataFrame]] = {name: [] for name in papers.tables()}
    for experiment in _saved():
        with contextlib.suppress(FileNotFoundError):  # of data that its entry does not name, and which are not here
            parts[experiment.table].append(_placed(experiment, tidy[experiment.declared.study.name]))
    return {name: pd.concat(of_table).drop_duplicates("key").reset_index(drop=True) if of_table
            else tidy[papers.tables()[name].study.name][:0].assign(setting=None, departures=None)
            for name, of_table in parts.items()}


def _placed(experiment: Experiment, tidy: DataFrame) -> DataFrame:
    """The cells of an experiment as `cells_by_table` has them, of all cells of its study."""
    asked, table = {key: row for key, (_, row) in experiment.asked().items()}, experiment.declared
    changed = {key: dict(row.departures) for key, row in asked.items()}
    for (key, row), name in itertools.product(asked.items(), table.printed_by):
        if name in row.changes:
            changed[key][name] = row.changes[name]
    setting: dict[str, Any] = {}
    for name, value in ((name, value) for changes in changed.values() for name, value in changes.items()):
        if not isinstance(experiment.fields[name], list) and table.study.recipe.named_by != name:
            setting[name] = value
    order = {key: place for place, key in enumerate(asked)}
    found = tidy[tidy["key"].isin(asked)].sort_values("key", key=lambda keys: keys.map(order))
    keys, called = found["key"], dict.fromkeys(name for row in asked.values() for name in row.called)
    away = [{name: value for name, value in changed[key].items() if name not in setting} for key in keys]
    return found.assign(
        setting=Series([setting] * len(found), found.index, dtype=object),
        departures=Series(away, found.index, dtype=object),
        **{name: [asked[key].called[name] for key in keys] for name in called},
    )
