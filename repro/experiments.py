"""Experiments: what was trained is a saved command, and what came of it is looked up by the ids of its runs.

`repro/papers/<paper>/experiments.yaml` has an entry for each:

    samplers_with_headroom:
      {table: ohem_vs_active, dataset: multiomniglot, preset: quick, seeds: 0-2, data: {digest: 7de4...},
       fields: {sampler: [random, gradient], batch: 128, dictionary: [256, 1024]},
       says: "Table 3's order where accuracy has room"}

An id holds the digest of the data that a run was trained on. An entry names it, so that results can be read where
these data are not. The name of a table is an experiment as well: the table with its defaults, on the data at hand.

Rows that no version of today can make, of earlier trainings or measured once, are in `figures/earlier/`; no entry
reads them.
"""

import dataclasses
import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import pandas as pd
import pydantic
from pandas import DataFrame
from pydantic.dataclasses import dataclass
from tqdm import tqdm

from repro import papers
from repro.data import manifest
from repro.data.disk import made
from repro.recipe import choose, entry_name, parse_numbers
from repro.run import code
from repro.run.store import LOGS, Run, Store, everything, exported, read_frame, rows_of, warn_once, with_owners
from repro.table import Study, Table

BESIDE = "dataset", "preset", "seeds", "variant"  # parameters of tables that are no fields of recipes
ALONE = pydantic.ConfigDict(extra="forbid")
Digest = Annotated[str, pydantic.Field(pattern="^([0-9a-f]{64})?$")]


def studies() -> dict[str, Study]:
    """The studies of all tables, by name."""
    return {table.study.name: table.study for table in papers.tables().values()}


def find_table(name: str) -> Table:
    """A table by name, of whichever paper; ValueError names those there are."""
    return papers.tables()[choose("table", name, papers.tables())]


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
        train: "missing" trains the runs that are not in REPRO_RUNS; "never" trains none and takes those that
            there are, of figures/runs.csv too: where data are missing, those on data of a saved experiment.
        **fields: any field of the recipe, such as layers=3 or epochs="10,30,150", which sweeps. It replaces the field
            in every row whose training or evaluation uses it; "auto" leaves it as the rows have it.

    Returns:
        One row per recipe of which a run is finished: what tells it apart, `changed` by name and value where there
        are any, then ours (mean over seeds), std (sample standard deviation, NaN below two seeds), n_seeds, printed,
        difference (ours - printed, NaN where these are not comparable: on data that come with the package, parts and
        copies, with another preset than the paper's, with changes), preset, dataset; last the means of the table's
        measures. Accuracies in percent.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `Table.runs`, before anything is computed.
        NonFiniteLoss, ChildProcessError: if a run fails, after the others are done.
    """
    find_table(name)  # no experiment is taken for one
    asked_for = {"dataset": dataset, "preset": preset, "seeds": seeds, "variant": variant, **fields}
    return table_of(chosen(name, asked_for, train, device), train, device, engine, workers)


def runs_of(name: str, *, train: str = "missing", device: str = "auto", **arguments: Any) -> list[Run]:
    """The runs that `run_table` of these arguments would train or read; trains nothing, raises as that."""
    return [*chosen(name, arguments, train, device).asked(device).values()]


def table_of(experiment: "Experiment", train: str, device: str, engine: str, workers: str | int) -> DataFrame:
    """Train what is missing of an experiment, unless never, and return its table; arguments as for `run_table`."""
    from repro.run import device as devices
    from repro.run import training
    from repro.run.engine import pool_of, train_runs

    table, asked, store = experiment.declared, experiment.asked(device), Store()
    runs, where = [*asked.values()], devices.resolve(device)
    pool = pool_of(engine, workers, runs, where)  # also where nothing is trained: wrong values are refused
    if train == "missing":
        code.require_as_imported(table.study.modules)
        train_runs(runs, functools.partial(training.train, study=table.study, device=where), store, pool=pool)
        table.after(runs, device)
    stored = everything() if train == "never" else with_owners(rows_of(runs, store), exported())
    warn_of_other_code(stored[stored["id"].isin([*asked])])
    missing = [run for run in runs if run.id not in set(stored["id"])]
    if missing and devices.first():
        tqdm.write(f"{len(missing)} of {len(runs)} runs are not finished, the first is {missing[0]}", file=sys.stderr)
    return experiment.rows(stored, asked=asked)


def warn_of_other_code(runs: DataFrame, tell: Callable[[str], object] = warn_once) -> None:
    """Tell, by default once, which of these stored runs other code has trained; ours are vouched for."""
    from repro.run import device as devices

    for name, study in studies().items():
        own = runs[(runs["whose"] != "ours") & (runs["study"] == name) & (runs["version"] == study.version)]
        now = study.code
        ids = [run.id for run in own.itertuples() if json.loads(run.cost).get("code") != now]
        if ids and devices.first():
            named = ", ".join(ids[:3]) + ", ..." * (len(ids) > 3)
            tell(f"{len(ids)} of {len(own)} of your runs of {name} ({named}) were trained by other code than that at "
                 "hand; if `pytest tests/golden/test_golden.py` fails, delete their folders in REPRO_RUNS")


def finished() -> DataFrame:
    """Every finished run, exported or in REPRO_RUNS, a row each.

    Columns are provenance (id, study, seed, preset, dataset, digest, version, commit, finished), `changes` by field
    and value from its preset, measures and recipe fields; those of other studies are empty.
    """
    return pd.concat([*by_study(of_today(everything())).values()], ignore_index=True)


def of_today(runs: DataFrame, tell: Callable[[str], object] = warn_once) -> DataFrame:
    """Stored runs but those of other versions of a training; how many these are is told, by default once."""
    today = runs["study"].map({name: study.version for name, study in studies().items()})
    for which, others in (("earlier", runs["version"] < today), ("later", runs["version"] > today)):
        if others.any():
            tell(f"{others.sum()} runs of {which} versions of the training are left out")
    return runs[today.isna() | (runs["version"] == today)]


def by_study(runs: DataFrame, tell: Callable[[str], object] = warn_once) -> dict[str, DataFrame]:
    """Stored runs by the name of their study; columns as of `finished`.

    Those that cannot be read are left out, and a line says so of each, by default once.
    """
    for run in runs[~runs["study"].isin([*studies()])].itertuples():
        tell(f"the run {run.id} is of no study, {run.study!r}; take the version that wrote it")
    return {name: study.tidy(runs, tell) for name, study in studies().items()}


@dataclass(frozen=True, kw_only=True, config=ALONE)
class Data:
    """What the committed runs of an experiment were trained on: a digest, or one for each value of the field `by`."""

    digest: Digest | dict[Any, Digest]
    by: str = ""

    def of(self, recipe: Any) -> str:
        """The digest for a recipe; ValueError names the values of `by` that have one."""
        if isinstance(self.digest, str):
            return self.digest
        return self.digest[choose(f"{self.by} of a digest", getattr(recipe, self.by), self.digest)]


@dataclass(frozen=True, kw_only=True, config=ALONE)
class Experiment:
    """The arguments of one `repro.run_table`, saved under a name.

    Attributes:
        name: what users type.
        table: name of the table.
        says: what it is for, in one line.
        dataset, preset, seeds, variant: as for `repro.run_table`.
        fields: of the recipe, one value or a list of them, which sweeps.
        data: what its committed runs were trained on. Without it, the data that are here.
    """

    name: str
    table: str
    says: str
    dataset: Any = None
    preset: Any = "auto"
    seeds: Any = "0"
    variant: Any = "none"
    fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    data: Data | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of `repro.run_table` besides the table."""
        return {**{name: getattr(self, name) for name in BESIDE}, **self.fields}

    @property
    def declared(self) -> Table:
        """Its table."""
        return papers.tables()[self.table]

    def with_choices(self, choices: Mapping[str, Any]) -> "Experiment":
        """The same with other arguments of `repro.run_table` in place of its own.

        With other methods, it keeps those of its fields that one of them uses.
        """
        table = self.declared
        for name in choices:
            choose("parameter", name, [name for name in table.parameters if name != "device"], TypeError)
        own = {name: choices[name] for name in BESIDE if name in choices}
        further = {name: value for name, value in choices.items() if name not in own}
        other, named = dataclasses.replace(self, **own), table.study.recipe.named_by
        fields = self.fields
        if fields and further.get(named, "auto") != "auto":
            methods, recipes = table.study.recipe.parse(named, further[named]), other.recipes
            fields = {name: value for name, value in fields.items()
                      if any(recipe.uses(name, **{named: method}) for recipe in recipes for method in methods)}
        return dataclasses.replace(other, fields={**fields, **further})

    def asked(self, device: str = "cpu") -> dict[str, Run]:
        """Its runs by id, seed by seed; raises ValueError for what cannot be trained on the device."""
        known = {"digest": self.data.of} if self.data else {}
        try:
            return {run.id: run for run in self.declared.runs(device=device, **known, **self.arguments)}
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error}; {committed_of(self.table)}") from error

    @property
    def committed(self) -> "Experiment | None":
        """The same on the data of a saved experiment of its table that has all its recipes, and by its name, if any."""
        recipes = self.recipes
        for saved in experiments().values():
            if saved.data and (saved.table, saved.dataset) == (self.table, self.dataset) and recipes <= saved.recipes:
                return dataclasses.replace(self, name=saved.name, data=saved.data)
        return None

    @property
    def rows_asked(self) -> list[Run]:
        """A run for each of its recipes, of no data: none need be here."""
        return self.declared.asked(self.dataset, self.preset, self.variant, **self.fields)

    @property
    def recipes(self) -> set[Any]:
        """The recipes of its runs."""
        return {run.recipe for run in self.rows_asked}

    @property
    def values(self) -> dict[str, str]:
        """By field the values that its recipes have, as text; "-" of one that none of them uses.

        Of more than four values these are the first ones and the last.
        """
        shown, recipes = {}, [run.recipe for run in self.rows_asked]
        for name in self.declared.study.fields:
            used = dict.fromkeys(getattr(recipe, name) for recipe in recipes if recipe.uses(name))
            values = ["none" if value is None else str(value) for value in used]
            shown[name] = ", ".join(values if len(values) < 5 else [*values[:2], "...", values[-1]]) or "-"
        return shown

    def rows(self, runs: DataFrame, also: Sequence[str] = (), asked: Mapping[str, Run] | None = None) -> DataFrame:
        """Its table of stored runs and its own (`asked`) by id, see `Table.numbers`."""
        return self.declared.numbers(asked or self.asked(), runs, [*self.declared.columns_asked(self.fields), *also])

    def check(self) -> None:
        """Raise ValueError or TypeError for what its table or its recipes have not."""
        choose("table", self.table, papers.table_names())
        for name in self.fields:
            if name in BESIDE:
                raise ValueError(f"{name} stands among fields; write it beside them")
        parse_numbers("seeds", self.seeds)
        recipes, data = self.recipes, self.data
        if data and isinstance(data.digest, dict):
            choose("by", data.by, self.declared.study.fields)
            for recipe in recipes:
                data.of(recipe)


@functools.cache
def experiments() -> dict[str, Experiment]:
    """Every experiment by name: those of each paper, then the tables; raises as `find`."""
    return {name: find(name) for name in (*papers.saved(), *papers.table_names())}


def find(name: str) -> Experiment:
    """An experiment by name: an entry of a paper, whose data need not be here, or a table with its defaults.

    ValueError names those there are, or the file and the entry, with what it lacks or asks for that there is not.
    """
    if choose("experiment", name, (*papers.saved(), *papers.table_names())) in papers.table_names():
        return Experiment(name=name, table=name, says=papers.tables()[name].title)
    file, entry = papers.saved()[name]
    experiment = made(Experiment, f"{file}, entry {name}", entry, name=name)
    try:
        experiment.check()
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file}, entry {name}: {error}") from error
    return experiment


def results(name: str, frame: str = "") -> DataFrame:
    """The table of an experiment, or a frame of its runs, from figures/ and REPRO_RUNS; trains nothing.

    Args:
        name: of the experiment; ValueError names those there are.
        frame: what its runs have left beside numbers, see `frames`; by default the table.

    Returns:
        Columns as of `repro.run_table`; recipes of which no run is finished have no row. Or those of `frames`, with
        the fields that tell the rows of the table apart.
    """
    experiment, stored = find(name), everything()
    asked = experiment.asked()
    warn_of_other_code(stored[stored["id"].isin([*asked])])
    if not frame:
        return experiment.rows(stored, asked=asked)
    also = experiment.declared.columns_asked(experiment.fields)
    fields = [field for field in (*experiment.declared.shown, *also) if field in experiment.declared.study.fields]
    return frames(asked.values(), frame, fields, stored)


def frames(runs: Iterable[Run], name: str, fields: Iterable[str] = (), stored: DataFrame | None = None) -> DataFrame:
    """What finished runs have left beside numbers: of their folders in REPRO_RUNS, else what was committed.

    Args:
        runs: those without such a frame are passed over.
        name: of the frame: see `repro.run.store.RunFolder.frame`.
        fields: of recipes and results, as further columns.
        stored: finished runs, by default all.

    Returns:
        The columns of the frame, these fields, entry (what is trained, in words), id, seed, dataset, preset,
        version; no rows of a frame that only other runs have left.

    Raises:
        ValueError: if a file is damaged, or there is no such frame, naming those there are.
    """
    store, committed = Store(), _committed_frames(name)
    stored = everything() if stored is None else stored
    finished = {row["id"]: row for row in stored.to_dict("records")}
    parts, names = [], {*LOGS, *(declared.frame for declared in papers.pictures().values() if declared.frame)}
    for run in runs:
        if run.id not in finished:
            continue
        row, rows = finished[run.id], store.folder(run).frame(name)
        names |= {path.stem for path in store.path(run.id).glob("*.csv")}
        if rows.empty:
            rows = committed.get(run.id, rows)
        if rows.empty:
            continue
        known = json.loads(row["recipe"]) | json.loads(row["metrics"])
        values = {field: known.get(field, getattr(run.recipe, field, None)) for field in fields}
        values["entry"] = entry_name(getattr(run.recipe, run.recipe.named_by), run.changes)
        values |= {field: row[field] for field in ("version", "id", "seed", "dataset", "preset")}
        parts.append(rows.assign(**{field: value for field, value in values.items() if field not in rows}))
    choose("frame", name, sorted(names))
    return pd.concat(parts, ignore_index=True) if parts else DataFrame()


def _committed_frames(name: str) -> dict[str, DataFrame]:
    """The rows of a frame by the ids of their runs, of the files of the pictures that are drawn of it."""
    found: dict[str, DataFrame] = {}
    for stem, declared in papers.pictures().items():
        path = manifest.project_root() / "figures" / f"{stem}.csv"
        if declared.frame == name and path.exists():
            found |= dict(iter(read_frame(path).groupby("id", sort=False)))
    return found


def committed_of(table: str) -> str:
    """What shows committed results of a table, in words."""
    saved = [entry for entry in experiments().values() if entry.data and entry.table == table]
    if not saved:
        return f"no results of {table} are committed"
    name = min(saved, key=lambda entry: len(entry.fields)).name
    return f"committed results of {table} are shown by `repro run {name} --train never` and repro.results({name!r})"


def chosen(name: str, choices: Mapping[str, Any], train: str, device: str) -> Experiment:
    """The experiment of a name with other arguments of `repro.run_table`, as it is to be trained, or read.

    It is on the data at hand. A saved one that is only read (train="never") can be read where its data are missing,
    whole, narrowed to some of its recipes, and with other seeds, and so can a table, of its recipes.
    """
    choose("train", train, ("missing", "never"))
    experiment = find(name)
    asked_for = experiment.with_choices(choices)
    here = dataclasses.replace(asked_for, data=None)
    if train == "never":
        if experiment.data and asked_for.recipes <= experiment.recipes:
            return asked_for
        committed = here.committed
        try:
            if everything()["id"].isin([*here.asked(device)]).any():
                return here
            lacking = "nothing is trained on the data that are here"
        except FileNotFoundError:
            if not committed:
                raise
            lacking = f"{committed.dataset} is not here"
        if not committed:
            warn_once(committed_of(here.table))
            return here
        warn_once(f"{lacking}: the committed results of {committed.name} are shown")
        return committed
    if experiment.data and not choices and here.asked(device).keys() != experiment.asked().keys():
        tqdm.write(f"the data at hand are others than those that the committed runs of {name} were trained on: "
                   "what is trained here stands beside them", file=sys.stderr)
    return here
