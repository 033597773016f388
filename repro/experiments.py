"""Experiments: what was trained is a saved command, and what came of it is looked up by the keys of its cells.

`repro/papers/<paper>/experiments.yaml` has an entry for each:

    samplers_with_headroom:
      {table: ohem_vs_active, dataset: multiomniglot, preset: quick, seeds: 0-2, data: {digest: 7de4...},
       fields: {sampler: [random, gradient], batch: 128, dictionary: [256, 1024]},
       says: "Table 3's order where accuracy has room"}

A key holds the digest of the data that a cell was trained on. An entry names it, so that results can be read where
these data are not. The name of a table is an experiment as well: the table with its defaults, on the data at hand.
"""

import dataclasses
import functools
import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pandas import DataFrame, Series
from tqdm.auto import tqdm

from repro import papers
from repro.data import manifest
from repro.data.disk import scratch
from repro.data.parallel import Workers
from repro.recipe import choose, parse_numbers, swept
from repro.run import frames as saved_frames
from repro.run.display import in_one_display
from repro.run.export import everything, rows_of
from repro.run.store import Cell, Store, warn_once
from repro.table import NUMBERS, Asked, Study, Table, require_parameter, resolved

if TYPE_CHECKING:
    import torch


BESIDE = "dataset", "preset", "seeds", "variant"  # parameters of tables that are no fields of recipes
AskedCells = dict[str, tuple[Cell, Asked]]  # cells by key, each with what is asked for


def studies() -> dict[str, Study]:
    """The studies of all tables, by name."""
    return {table.study.name: table.study for table in papers.tables().values()}


def find_table(name: str) -> Table:
    """A table by name, of whichever paper; ValueError names those there are."""
    return papers.tables()[choose("table", name, papers.tables())]


def check_parameters(names: Iterable[str], allowed: Sequence[str]) -> None:
    """Raise TypeError unless all of these are parameters of a table; it names tables that have what this one lacks."""
    for name in names:
        others = [other for other, table in papers.tables().items() if name in table.study.fields]
        require_parameter(name, allowed, others)


def run_table(
    name: str,
    dataset: str | None = None,
    *,
    preset: str = "auto",
    seeds: str | int = "0",
    device: str = "auto",
    engine: str = "auto",
    workers: str | int = "auto",
    variant: str = "none",
    train: str = "missing",
    tensorboard: bool = False,
    **fields: Any,
) -> DataFrame:
    """Train what is missing of a table, and put our numbers beside the printed ones.

    Args:
        name: of the table, one of `repro.TABLES`.
        dataset: one of the table's; by default the one that comes with the package.
        preset: "paper", "quick", "smoke", or "auto": paper on real data, quick on data that come with the package.
        seeds: comma list of whole numbers and ranges, such as "0-2,5".
        device: "auto", "cpu" or "cuda".
        engine: "inline" trains in this process, "local" in worker processes, "dask" in those of a cluster; "auto" takes
            "local" on a CPU and on several GPUs, except for smoke runs. On a CPU the numbers do not depend on it.
            Workers import the script that starts them, which calls this below `if __name__ == "__main__":` therefore.
        workers: number of worker processes, or the address of dask's scheduler; "auto" as `repro.run.engine.pool_of`.
        variant: a named bundle of fields, where paper and released code disagree, or "none".
        train: "missing" trains the cells that are not in REPRO_RUNS; "never" trains none and takes those that
            there are, of figures/cells.csv too.
        tensorboard: write what the cells report along training for TensorBoard too, in `tensorboard` of REPRO_RUNS.
        **fields: any field of the recipe, such as layers=3 or epochs="10,30,150", which sweeps. It replaces the field
            in every row whose training or evaluation uses it; "auto" leaves it as the rows have it.

    Returns:
        One row per recipe of which a cell is finished: what tells it apart, `departures` by name and value where there
        are any, then ours (mean over seeds), std (sample standard deviation, NaN below two seeds), n_seeds, published,
        difference (ours - published, NaN where these are not comparable: on data that come with the package, parts and
        copies, with another preset than the paper's, with departures), preset, dataset; last the means of the table's
        measures. Accuracies in percent.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `Table.cells`, before anything is computed.
        NonFiniteLoss, ChildProcessError: if a cell fails, after the others are done.
    """
    choose("train", train, ("missing", "never"))
    check_parameters(fields, find_table(name).parameters)
    asked_for = Experiment(name=name, table=name, says="", dataset=dataset, preset=preset, seeds=seeds, variant=variant,
                           fields=fields)
    return table_of(asked_for, train, device, engine, workers, tensorboard)


def table_of(
    experiment: "Experiment", train: str, device: str, engine: str, workers: str | int, tensorboard: bool
) -> DataFrame:
    """Train what is missing of an experiment, unless never, and return its table; arguments as for `run_table`.

    One that reads cells of an earlier version of the training is read as it is: none can be trained today.
    """
    from repro.run import device as devices

    table, asked = experiment.declared, experiment.asked(device)
    cells = [cell for cell, _ in asked.values()]
    if experiment.pinned:
        train = "never"
        tqdm.write(experiment.pinned, file=sys.stderr)
    if train == "missing":
        with in_one_display():
            _train_missing(table, asked, devices.resolve(device), engine, workers, tensorboard)
            table.after(cells, device)
    stored = everything() if train == "never" else rows_of(cells, Store())
    stored = stored[stored["key"].isin([*asked])]
    warn_of_other_code(stored, [table.study])
    missing = [cell for cell in cells if cell.key not in set(stored["key"])]
    if missing and devices.first():
        tqdm.write(f"{len(missing)} of {len(cells)} cells are not finished, the first is {missing[0].label}, "
                   f"seed {missing[0].seed}", file=sys.stderr)
    return experiment.rows(stored, asked=asked)


def warn_of_other_code(cells: DataFrame, of: Iterable[Study]) -> None:
    """Say on standard error, once, which stored cells of these studies were trained by other code."""
    from repro.run import device as devices

    for line in (study.of_other_code(cells) for study in of):
        if line and devices.first():
            warn_once(line)


def _train_missing(
    table: Table, asked: AskedCells, device: "torch.device", engine: str, workers: str | int, tensorboard: bool
) -> None:
    """Train the cells that are not finished in REPRO_RUNS; arguments and errors as for `run_table`."""
    from repro.run import device as devices
    from repro.run import training
    from repro.run.engine import pool_of, run_cells

    if tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise ValueError("--tensorboard needs the package tensorboard; install it with: pip install tensorboard")
    cells = [cell for cell, _ in asked.values()]
    store, pool = Store(), pool_of(engine, workers, cells, device)
    missing = sum(store.run(cell).result is None for cell in cells)
    if missing and devices.first() and sys.stderr.isatty():
        products = f", matrix products in {devices.precision_of(cells[0].recipe, device)}"
        tqdm.write(f"training {missing} of {len(cells)} cells, preset {cells[0].preset} on {cells[0].dataset}, in "
                   f"{store.root}{products if cells[0].recipe.precision == 'auto' else ''}", file=sys.stderr)
    board = store.root / "tensorboard" if tensorboard else None
    train = functools.partial(training.train, study=table.study, device=device, tensorboard=board)
    run_cells(cells, train, store, pool=pool, say=lambda cell: table.outcome(*asked[cell.key], store))


def finished() -> DataFrame:
    """Every finished cell, exported or in REPRO_RUNS, a row each.

    Columns are provenance (key, study, seed, preset, dataset, digest, version, commit, finished), `changes` by field
    and value from its preset, measures and recipe fields; those of other studies are empty.
    """
    return pd.concat([*by_study().values()], ignore_index=True)


def by_study() -> dict[str, DataFrame]:
    """Every finished cell, exported or in REPRO_RUNS, by the name of its study; columns as of `finished`."""
    cells = everything()
    return {name: study.tidy(cells) for name, study in studies().items()}


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
        data: what its committed cells were trained on: "digest", by the values of the field "by" if there is one.
            Without it, the data that are here.
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
        shared = {name: getattr(self, name) for name in BESIDE}
        return {**shared, **self.fields}

    def changed(self, choices: Mapping[str, Any]) -> "Experiment":
        """The same with other arguments of `repro.run_table` in place of its own.

        One of an earlier version of the training stays so where it is narrowed, or has other seeds; with other recipes
        it is of the data at hand and today's version, as no other can be trained.
        """
        check_parameters(choices, self.declared.parameters)
        own = {name: value for name, value in choices.items() if name in BESIDE}
        further = {name: value for name, value in choices.items() if name not in own}
        fields, table = dict(self.fields), self.declared
        named = table.study.recipe.named_by
        if further.get(named, "auto") != "auto":  # of its fields those stay that one of the methods that are left uses
            other, methods = dataclasses.replace(self, **own), table.study.recipe.parse(named, further[named])
            dataset = other.dataset or table.datasets[0]
            rows = table.asked(dataset, resolved(other.preset, dataset), other.variant, **fields)
            fields = {name: value for name, value in fields.items()
                      if any(row.recipe.uses(name, **{named: method}) for row in rows for method in methods)}
        other = dataclasses.replace(self, **own, fields={**fields, **further})
        return other if not self.pinned or other.recipes <= self.recipes else other.at_hand

    @property
    def declared(self) -> Table:
        """Its table."""
        return papers.tables()[self.table]

    @property
    def pinned(self) -> str:
        """Why none of its cells can be trained: of which earlier version they are; "" where they are of today's."""
        today = self.declared.study.version
        if self.version in (None, today):
            return ""
        options = [f"--{name.replace('_', '-')} {','.join(map(str, swept(value)))}"
                   for name, value in self.arguments.items() if value not in (None, "auto", "none")]
        return (f"{self.name} reads cells of version {self.version} of the training, today's is {today}; "
                f"`{' '.join(['repro run', self.table, *options])}` trains today's")

    def digest(self, recipe: Any) -> str:
        """Of the data that a recipe is trained on; "" where the entry does not say."""
        digests = self.data.get("digest", "")
        return digests.get(getattr(recipe, self.data["by"]), "") if "by" in self.data else digests

    def asked(self, device: str = "cpu") -> AskedCells:
        """Its cells, seed by seed; raises ValueError for what cannot be trained on the device."""
        pairs = self.declared.asked_cells(
            digest=self.digest, version=self.version, earlier=self.earlier, device=device, **self.arguments)
        return {cell.key: (cell, row) for cell, row in pairs}

    @property
    def at_hand(self) -> "Experiment":
        """The same on the data that are here, by today's version of the training."""
        return dataclasses.replace(self, data={}, version=None, earlier={})

    @property
    def recipes(self) -> set[Any]:
        """The recipes of its cells."""
        return {cell.recipe for cell, _ in self.asked().values()}

    def rows(self, cells: DataFrame, also: Sequence[str] = (), asked: AskedCells | None = None) -> DataFrame:
        """Its table of stored cells, see `Table.numbers`.

        Args:
            cells: stored ones.
            also: further fields that tell rows apart.
            asked: its cells, by default those of `asked`.
        """
        by_key = {key: row for key, (_, row) in (asked or self.asked()).items()}
        return self.declared.numbers(by_key, cells, [*self.declared.columns_asked(self.fields), *also])


@functools.cache
def experiments() -> dict[str, Experiment]:
    """Every experiment by name: those of each paper, then the tables; raises as `find`."""
    return {name: find(name) for name in (*papers.saved(), *papers.lines())}


def find(name: str) -> Experiment:
    """An experiment by name: an entry of a paper, whose data need not be here, or a table with its defaults.

    ValueError names those there are, or the file and the entry, with what it lacks or asks for that there is not.
    """
    if choose("experiment", name, (*papers.saved(), *papers.lines())) in papers.lines():
        return Experiment(name=name, table=name, says=papers.lines()[name])
    file, entry = papers.saved()[name]
    try:
        for part in entry:
            choose("parameter", part, [field.name for field in dataclasses.fields(Experiment)][1:])
        for part in ("fields", "earlier", "data"):
            if not isinstance(entry.get(part, {}), Mapping):
                raise ValueError(f"{part}={entry[part]!r} should be values by name, such as {{epochs: 30}}")
        for part in entry.get("data", ()):
            choose("part of data", part, ("digest", "by"))
        if lacking := [part for part in ("table", "says") if part not in entry]:
            raise ValueError(f"lacks {' and '.join(lacking)}; add it")
        choose("table", entry["table"], papers.lines())
        found = Experiment(name=name, **entry)
        table, dataset = found.declared, found.dataset or found.declared.datasets[0]
        if misplaced := [part for part in found.fields if part in BESIDE]:
            raise ValueError(f"{misplaced[0]} stands among fields; write it beside them")
        if "by" in found.data:
            choose("by", found.data["by"], table.study.fields)
        today = table.study.version
        if (found.version or 0) > today:
            raise ValueError(f"version={found.version} should be at most {today}, today's")
        if found.earlier and found.version in (None, today):
            raise ValueError(f"earlier={found.earlier!r} is of cells of a version below {today}, today's; name it as "
                             "version, or write these values among fields")
        parse_numbers("seeds", found.seeds)
        preset = resolved(found.preset, choose("dataset", dataset, table.datasets))
        for row in table.asked(dataset, preset, found.variant, **found.fields):
            recipe = row.recipe.replace(**found.earlier)
            for name in (*found.fields, *row.changes):
                since = type(recipe).__dataclass_fields__[name].metadata.get("since", 0)
                if since > (found.version or today):
                    raise ValueError(f"{name}={getattr(recipe, name)!r} came with version {since} of the training, and "
                                     f"version={found.version} trained without it; leave it out, or name that version")
            if "by" in found.data and (value := getattr(recipe, found.data["by"])) not in found.data["digest"]:
                raise ValueError(f"data has no digest of {found.data['by']}={value!r}, only of "
                                 f"{', '.join(map(str, found.data['digest']))}; add it, or leave the value out")
            digest = found.digest(recipe)
            if not re.fullmatch("([0-9a-f]{64})?", str(digest)):
                raise ValueError(f"digest={digest!r} should be the 64 characters that figures/cells.csv has")
        return found
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{file}, entry {name}: {error}") from error


def results(name: str, frame: str = "") -> DataFrame:
    """The table of an experiment, or a frame of its cells, from figures/ and REPRO_RUNS; trains nothing.

    Args:
        name: of the experiment; ValueError names those there are.
        frame: what its cells have left beside numbers, see `frames`; by default the table.

    Returns:
        Columns as of `repro.run_table`; recipes of which no cell is finished have no row. Or those of `frames`, with
        the fields that tell the rows of the table apart.
    """
    experiment, stored = find(name), everything()
    asked = experiment.asked()
    warn_of_other_code(stored[stored["key"].isin([*asked])], [experiment.declared.study])
    if not frame:
        return experiment.rows(stored, asked=asked)
    also = experiment.declared.columns_asked(experiment.fields)
    fields = [field for field in (*experiment.declared.shown, *also) if field in experiment.declared.study.fields]
    return frames([cell for cell, _ in asked.values()], frame, fields, stored)


def frames(
    cells: Iterable[Cell], name: str, fields: Iterable[str] = (), stored: DataFrame | None = None
) -> DataFrame:
    """What finished cells have left beside numbers: of their folders in REPRO_RUNS, else what was committed.

    Args:
        cells: those without such a frame are passed over.
        name: of the frame: "progress", "epochs" and "probes", see `repro.run.frames`, or what was measured once.
        fields: of recipes and results, as further columns.
        stored: finished cells, by default all.

    Returns:
        The columns of the frame, these fields, entry (what is trained, in words), key, seed, dataset, preset, version.

    Raises:
        ValueError: if a file is damaged.
    """
    store, committed = Store(), _committed_frames(name)
    stored = everything() if stored is None else stored
    finished = {row["key"]: row for row in stored.to_dict("records")}
    parts = []
    for cell in cells:
        if cell.key not in finished:
            continue
        row, folder, rows = finished[cell.key], store.folder(cell.key), DataFrame()
        if (folder / "result.json").exists():  # what is trained again has half a log
            rows = saved_frames.read(folder, name, cell.recipe.epochs)
        if rows.empty:
            rows = committed.get(cell.key, rows)
        if rows.empty:
            continue
        known = json.loads(row["recipe"]) | json.loads(row["metrics"])
        values = {field: known.get(field, getattr(cell.recipe, field, None)) for field in fields}
        values["entry"] = cell.label
        values |= {field: row[field] for field in ("version", "key", "seed", "dataset", "preset")}
        parts.append(rows.assign(**{field: value for field, value in values.items() if field not in rows}))
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()


def _committed_frames(name: str) -> dict[str, DataFrame]:
    """The rows of a frame by the keys of their cells, of the files of the pictures that are drawn of it."""
    found: dict[str, DataFrame] = {}
    for stem, declared in papers.pictures().items():
        path = manifest.project_root() / "figures" / f"{stem}.csv"
        if declared.frame == name and path.exists():
            found |= dict(iter(saved_frames.read_csv(path).groupby("key", sort=False)))
    return found


def chosen(name: str, choices: Mapping[str, Any], train: str, device: str) -> Experiment:
    """The experiment of a name with other arguments of `repro.run_table`, as it is to be trained, or read.

    It is on the data at hand. A saved one that is only read (train="never") can be read where its data are missing,
    whole, narrowed to some of its recipes, and with other seeds.
    """
    choose("train", train, ("missing", "never"))
    experiment = find(name)
    asked_for = experiment.changed(choices)
    read_alone = train == "never" and name in papers.saved() and asked_for.recipes <= experiment.recipes
    if asked_for.pinned or read_alone:
        return asked_for
    here = asked_for.at_hand
    if experiment.data and not choices and here.asked(device).keys() != experiment.asked().keys():
        tqdm.write(f"the data at hand are others than those that the committed cells of {name} were trained on: "
                   "what is trained here stands beside them", file=sys.stderr)
    return here


def plan(experiment: Experiment, *, device: str, engine: str, workers: str | int) -> str:
    """What an experiment would cost, see `repro.run.plan.plan`; nothing of it is trained."""
    from repro.run import device as devices
    from repro.run import plan as planned
    from repro.run.engine import pool_of

    if experiment.pinned:
        return f"{experiment.pinned}; nothing of it can be trained."
    cells = [cell for cell, _ in experiment.asked(device).values()]
    where = devices.resolve(device)
    processes = pool_of(engine, workers, cells, where).count()
    return planned.plan(cells, experiment.declared.study.untrained, Store(), where, processes)


def row_named(experiment: Experiment, values: str) -> dict[str, Any]:
    """The fields and values that `values`, a comma list, names a row by: "random,256"; nothing needs to be finished.

    Raises:
        ValueError: if no row has all of these values.
    """
    columns = [*experiment.declared.shown, *experiment.declared.columns_asked(experiment.fields)]
    given, known = [_spelt(value) for value in values.split(",")], {}
    for _, row in experiment.asked().values():
        fields = {**row.recipe.to_dict(), **row.called}
        places = {_spelt(fields[column]): column for column in columns if column in fields}
        if all(value in places for value in given):
            named = [places[value] for value in given]
            return {column: "none" if fields[column] is None else fields[column] for column in named}
        known |= {value: str(fields[column]) for value, column in places.items()}
    for value in values.split(","):
        if _spelt(value) not in known:
            choose("against", value.strip(), known.values())
    raise ValueError(f"against={values!r} names no row: none has all of these values; give those of one")


def _spelt(value: Any) -> str:
    """A value as rows show it, the same of 2, 2.0 and "2", of None and "none"."""
    text = str(value).strip().replace("None", "none")
    try:
        return str(float(text))
    except ValueError:
        return text


def draw(name: str, rows: DataFrame) -> Any:
    """The figure of a table or a picture, as its paper draws it.

    Args:
        name: of the table, an experiment or a picture; ValueError if there is none or it is not drawn.
        rows: as `repro.run_table` or `results` return them; of a picture of a frame, as `frames` does, and of another
            one all stored cells, as `run.export.everything` does. ValueError if there are none, or columns are lacking.
    """
    tables, pictures = papers.tables(), papers.pictures()
    if name in pictures:
        return pictures[name].plot(pictures[name].rows(rows))
    table = tables[name] if name in tables else find(name).declared
    choose("name", table.name, [known for known, declared in tables.items() if declared.plot])
    if rows.empty:
        raise ValueError(f"there are no rows to draw {name} from; `repro run` trains cells that it can show")
    if lacking := [column for column in (*table.shown, *NUMBERS) if column not in rows]:
        raise ValueError(f"rows to draw {name} from lack {', '.join(lacking)}; draw those of the table {table.name}")
    drawing, shown = _in_settings(table, rows)
    return drawing(shown)


def _in_settings(table: Table, rows: DataFrame) -> tuple[Any, DataFrame]:
    """The drawing of a table, and rows that differ in fields which are not the table's own with a column `setting`.

    It says in words which one a row is of, as of a sweep over epochs, and a `Plot` shows them all. In place of a
    drawing that is none, a `Plot` has a line for every row.
    """
    from repro.report import plots, style
    from repro.report.text import telling_apart

    told = rows.columns[: rows.columns.get_loc("ours")].drop([*table.shown, "departures"], errors="ignore")
    further = [name for name in telling_apart(rows, [*table.shown, *told]) if name in told]
    if not further or not table.drawing:
        return table.drawing, rows
    drawing = table.drawing
    if not isinstance(drawing, plots.Plot):
        named = table.study.recipe.named_by
        drawing = plots.Plot(caption=plots.caption_of(drawing), x=named)
        further = [name for name in telling_apart(rows, [named, *table.shown, *told]) if name != named]
    settings = [", ".join(map(style.spoken, further, values)) for values in rows[further].itertuples(index=False)]
    shared = []
    for departures in rows.get("departures", [{}] * len(rows)):
        shared.append({name: value for name, value in departures.items() if name not in further})
    return drawing, rows.assign(setting=settings, departures=Series(shared, rows.index, dtype=object))


def redraw(folder: Path, names: Iterable[str] = ()) -> tuple[list[Path], dict[str, Exception]]:
    """Write the tables of experiments and the rows of pictures, and draw them; returns the files and errors by name.

    A picture that cannot be drawn leaves the others alone. All files are replaced when all are made.

    Args:
        folder: gets `<name>.csv`, `.svg` and `.png` of all of which a cell is finished.
        names: of experiments and pictures, by default all; ValueError names those there are. One of which no cell is
            finished is an error.
    """
    from repro.run.device import cores

    cells = everything()
    warn_of_other_code(cells, studies().values())
    known = [*papers.saved(), *papers.pictures()]
    chosen = [choose("name", name, known) for name in names] or known
    written: list[Path] = []
    failed: dict[str, Exception] = {}
    with scratch(folder / ".figures") as beside, Workers(min(len(chosen), cores())) as pool:
        drawings = {name: pool.submit(_draw, name, cells, beside / name) for name in chosen}
        for name, drawing in drawings.items():
            try:
                files = drawing.result()
                if names and not files:
                    raise ValueError("none of its cells is finished; `repro run` trains them")
                written += files
            except Exception as error:  # whatever a drawing stumbles over
                failed[name] = error
        return [path.replace(folder / path.name) for path in written], failed


def _draw(name: str, cells: DataFrame, stem: Path) -> list[Path]:
    """Write the rows of an experiment or a picture of stored cells and draw them; returns the files, if any."""
    from repro.report import plots
    from repro.report.text import in_text

    pictures = papers.pictures()
    if name in pictures:
        declared = pictures[name]
        asked: AskedCells = {}
        for experiment in map(find, declared.experiments):
            asked |= experiment.asked()
        rows = cells
        if declared.frame:
            rows = frames([cell for cell, _ in asked.values()], declared.frame, declared.fields, cells)
        if len(rows) or not declared.frame:
            rows = declared.rows(rows)
        drawn, shown, keys = declared.plot, rows, rows.get("key", [*asked])
    else:
        experiment = find(name)
        keys, rows = [*experiment.asked()], experiment.rows(cells)
        drawn, shown = _in_settings(experiment.declared, rows) if len(rows) else (None, rows)
    if rows.empty:
        return []
    written = [saved_frames.write(in_text(rows), stem.with_suffix(".csv"))]
    if drawn and len(shown) > 1:  # one number is no figure
        order = {key: place for place, key in enumerate(keys)}
        behind = cells[cells["key"].isin(order)].sort_values("key", key=lambda column: column.map(order))
        written += plots.publish(stem, drawn, shown, behind)
    return written


def beside_recipe(name: str, cells: DataFrame) -> DataFrame:
    """The rows of an experiment that departs from its recipe, with `usual` before `published`: what the recipe has.

    That is our number over a row's seeds, by the same version of the training, of these stored cells; NaN where one of
    them is not finished.
    """
    experiment = find(name)
    rows, by_seed = experiment.rows(cells), experiment.rows(cells, ["seed"])
    named, table = experiment.declared.study.recipe.named_by, experiment.declared
    kept = {field: value for field, value in experiment.fields.items() if field == named or field in table.printed_by}
    plain = dataclasses.replace(experiment, fields=kept).rows(cells, ["seed"])
    shared = [column for column in plain.columns[: plain.columns.get_loc("ours")] if column in by_seed]
    by_seed = by_seed.merge(plain[[*shared, "ours"]], how="left", on=shared, suffixes=("", "_usual"))
    own = [*rows.columns[: rows.columns.get_loc("ours")].drop("departures", errors="ignore")]
    usual = by_seed.groupby(own, sort=False, dropna=False)["ours_usual"].agg(lambda values: values.mean(skipna=False))
    rows.insert(rows.columns.get_loc("published"), "usual", rows[own].merge(usual, how="left", on=own)["ours_usual"])
    return rows
