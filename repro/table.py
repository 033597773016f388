"""A table is a sweep of recipe fields beside printed numbers.

    study   how a recipe is trained and measured (`Study`)
    cell    one recipe and one seed: what is trained, and found again by the hash of all that decides it
    row     a product of fields, such as {"method": ("moco", "sce"), "temperature": 0.2}, which is two recipes
    table   rows, the data sets they can be made on, and what the paper prints of a recipe (`Table`)

`run_table` lists the cells of the rows (`Table.cells`), trains those that are missing (`train`), finds where each
stands (`Table.select`) and puts means over seeds beside printed numbers (`Table.laid_out`). Whoever draws or judges
begins with stored cells: `Study.tidy` makes a frame of them, `standing` says which are those of which table.
"""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import itertools
import json
import math
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import torch
from pandas import DataFrame, Series
from tqdm.auto import tqdm

from repro.data import manifest
from repro.recipe import CHOSEN, Recipe, Rows, choose, closest, entry_name, in_words, parse_numbers, swept
from repro.run import device as devices
from repro.run.engine import pool_of, run_cells
from repro.run.export import everything, rows_of
from repro.run.fit import fit
from repro.run.learner import Learner
from repro.run.plan import plan
from repro.run.store import Cell, Run, Store
from repro.run.tensorboard import followed

Measures = dict[str, float | str]
Fields = Mapping[str, Any]
CHOICES = ("dataset", "preset", "seeds", "variant", "device")  # asked of every table, beside the fields of its recipes
SYMBOLS = {  # what papers and other code call a field
    "lambda": ("strength", "weight"), "tau": ("temperature",), "lr": ("learning_rate",), "batch_size": ("batch",),
}
AS_PRESET = ()  # in the place of a row's values: the field tells rows apart, and is the preset's unless asked for


def nothing(*about: Any) -> Any:
    """Of a study that has nothing to check or to add."""
    return ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """How a recipe is trained and measured. Its functions are of modules, so that worker processes can import them.

    Attributes:
        name: part of the description of every cell.
        recipe: the class of its recipes.
        presets: by name ("paper", "quick", "smoke"), what makes a recipe of a data set, a value of `recipe.named_by`
            and further fields.
        variants: named bundles of fields, where paper and released code disagree.
        load: the data of a recipe, cached by content, with `name` (of the data set, and of the part or copy it is) and
            `digest`; raises FileNotFoundError saying where to get them.
        learners: of a recipe, its data, a seed and a device, what `fit` trains, one after the other.
        measure: finite numbers and texts that a trained learner gives; of what several learners measure, the mean.
        probe: what is measured every `probe_every` epochs along training, if anything; draws from no stream of it.
        version: of the training, raised when the numbers of an unchanged recipe change; part of a cell's key.
        evaluation: of `measure`, raised when it measures more, or otherwise; stands with the result.
        check: raises ValueError unless a recipe can be trained on a device, or in this group of processes.
        constants: of a recipe, what no field of it holds: (name, value, source).
    """

    name: str
    recipe: type[Recipe]
    presets: Mapping[str, Callable[..., Any]]
    variants: Mapping[str, Fields]
    load: Callable[[Any], Any]
    learners: Callable[[Any, Any, int, torch.device], Iterator[Learner]]
    measure: Callable[[Any], Measures]
    probe: Callable[[Any], dict[str, float]] | None = None
    version: int
    evaluation: int
    check: Callable[[Any, torch.device], None] = nothing
    constants: Callable[[Any], Rows] = nothing

    @property
    def fields(self) -> list[str]:
        """The fields of its recipes."""
        return [field.name for field in dataclasses.fields(self.recipe)]

    def cell(self, recipe: Recipe, seed: int, preset: str) -> Cell:
        """The cell of a recipe and a seed, on the data that are here; raises as `load`."""
        data, changes = self.load(recipe), self.changes(recipe, preset)
        return Cell(self.name, recipe, seed, preset, data.name, data.digest, self.version, self.evaluation, changes)

    def changes(self, recipe: Any, preset: str) -> dict[str, Any]:
        """The fewest fields that make the recipe of its preset: all but those whose values follow from others.

        That data are a part is none: it stands in their name.
        """
        named = getattr(recipe, recipe.named_by)
        make = functools.partial(self.presets[preset], recipe.dataset, named, subset=recipe.subset)
        changes = recipe.unlike(make())
        with contextlib.suppress(ValueError):  # that these are impossible without what follows shows below
            changes |= recipe.unlike(make(**changes))  # what the preset derives from them, where the recipe has another
        for name in reversed([*changes]):
            fewer = {other: value for other, value in changes.items() if other != name}
            with contextlib.suppress(ValueError):  # some values are possible beside the left-out one alone
                if make(**fewer) == recipe:
                    changes = fewer
        return changes

    def untrained(self, cell: Cell, device: torch.device) -> Iterator[Learner]:
        """The learners of a cell, one after the other, before their first steps."""
        yield from self.learners(cell.recipe, self.load(cell.recipe), cell.seed, device)

    def tidy(self, cells: DataFrame) -> DataFrame:
        """Stored cells of this study with recipe fields and measures as columns; a field that came later is filled in.

        What is trained stands in `named`, whatever field of the recipe names it. Of cells that are equal in data set,
        preset, version, changes and seed, the one that finished last counts. A measure goes before a field of its name.

        Raises:
            ValueError: if there is no such recipe or preset; the message names the cell.
        """
        known = []
        for cell in cells[cells["study"] == self.name].to_dict("records"):
            recipe = self._stored_recipe(cell)
            changes, cost = json.loads(cell["changes"]), json.loads(cell["cost"])
            if changes is None:  # the first edition does not say
                changes = self.changes(recipe, cell["preset"])
            cell |= {"changes": {name: changes[name] for name in self.fields if name in changes}, "cost": cost}
            cell |= {"finished": cost["finished"], "named": getattr(recipe, recipe.named_by)}
            known.append((recipe, cell | json.loads(cell["metrics"])))
        columns = [*cells, "finished", "named", *(name for _, values in known for name in values)]
        columns = [name for name in dict.fromkeys(columns) if name not in ("recipe", "metrics")]
        fields = [name for name in self.fields if name not in columns]
        rows = [values | {name: getattr(recipe, name) for name in fields} for recipe, values in known]
        objects = DataFrame(rows, columns=[*columns, *fields], dtype=object)
        tidy = DataFrame({  # of a field that is None somewhere the other values stay what they are
            name: column if name in fields and column.isna().any() else column.infer_objects()
            for name, column in objects.items()
        })
        in_time = tidy.assign(changes=tidy["changes"].map(str)).sort_values("finished", kind="stable")
        alike = ["preset", "dataset", "version", "named", "changes", "seed"]
        return tidy.loc[sorted(in_time.drop_duplicates(alike, keep="last").index)].reset_index(drop=True)

    def _stored_recipe(self, cell: Fields) -> Any:
        try:
            choose("preset", cell["preset"], self.presets)
            return self.recipe.from_dict(json.loads(cell["recipe"]))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"the cell {cell['key']} cannot be read ({error}); restore it or delete it, a row of figures/cells.csv "
                "or a folder of that name in REPRO_RUNS, or take the version that wrote it"
            ) from error


def train(
    run: Run, progress: tqdm, *, study: Study, device: torch.device
) -> Generator[None, None, dict[str, Any]]:
    """Train the run's cell to its end, from its checkpoints if there are any, and measure it; yields as `fit`.

    Returns:
        The content of `result.json`: what `study.measure` gives, and "cost", with the seconds of the first learner.

    Raises:
        ValueError: as `Cell.require`, and if the recipe does not suit the data.
        NonFiniteLoss: as `fit`.
    """
    devices.begin(device)
    recipe = run.cell.recipe
    data = study.load(recipe)
    run.cell.require(data.digest)
    costs: list[dict[str, Any]] = []
    measured: dict[str, list[Any]] = {}
    for learner in study.learners(recipe, data, run.cell.seed, device):
        if devices.first():
            run.begin()
        probe = functools.partial(study.probe, learner) if study.probe and not learner.name else None
        every = recipe.probe_every * learner.steps_per_epoch if probe else 0
        folder = run.folder / learner.name
        folder.mkdir(exist_ok=True)
        costs.append((yield from fit(learner, folder, progress, probe=probe, probe_steps=every)))
        costs[-1]["precision"] = learner.precision
        for name, value in study.measure(learner).items():
            measured.setdefault(name, []).append(value)
    means = {name: values[-1] if isinstance(values[-1], str) else sum(values) / len(values)
             for name, values in measured.items()}
    return means | {"cost": costs[0] | devices.cost(device)}


def optimiser(kind: type[torch.optim.Optimizer], source: str) -> tuple[str, Any, str]:
    """An optimiser as a row of `Study.constants`, with its parameters that recipes do not set."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}
    unset = [f"{name}={defaults[name]}" for name in ("betas", "eps", "dampening", "nesterov") if name in defaults]
    return "optimiser", f"{kind.__name__}({', '.join(unset)})", source


def by_preset(*, paper: Any, quick: Any, smoke: Any = None) -> Callable[[str, str], Any]:
    """A value of a row that differs between presets; smoke runs take that of quick ones unless they have their own."""
    values = {"paper": paper, "quick": quick, "smoke": quick if smoke is None else smoke}
    return lambda preset, dataset: values[preset]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """A printed table, or what a figure is drawn from: a union of sweeps beside printed numbers.

    Attributes:
        name: what users type.
        title: one line.
        place: where in the paper.
        study: how its cells are trained and measured.
        rows: each the values of some fields of the study's recipe, the naming field among them. A tuple sweeps, any
            other value holds for the whole row, `AS_PRESET` leaves it to the preset; a function of preset and data set
            gives one of these. A key that is no field of the recipe is a column that says what the row is called.
            Methods that are asked for replace those that a row sweeps; a row of one other method is left out.
        datasets: those it can be made on: the default, which comes with the package, then the paper's, then others.
        methods: values of the naming field that may be asked for; by default those of the rows.
        columns: what tells rows apart, in order; by default what rows are called, and what they sweep.
        printed: the printed number (percent) of a row, which has the fields of its recipe and what `arrange` adds as
            attributes; NaN where the paper prints none.
        settings: of a data set, bundles of fields for which the paper prints a table each. A cell that has the fields
            of a bundle, as far as its method uses them, does not depart in these; of several bundles the first counts.
        measures: what is shown of a row, the first as `ours` unless `arrange` adds a column "value".
        arrange: of finished cells, what is averaged over seeds: what only this table does.
        after: of its finished cells and a device, what is computed from their weights once and kept, for figures.
    """

    name: str
    title: str
    place: str
    study: Study
    rows: Sequence[Fields]
    datasets: Sequence[str]
    methods: Sequence[str] = ()
    columns: Sequence[str] = ()
    printed: Callable[[Any], float] = lambda row: math.nan
    settings: Callable[[str], Sequence[Fields]] = lambda dataset: ()
    measures: Sequence[str] = ("linear",)
    arrange: Callable[[DataFrame], DataFrame] = lambda cells: cells
    after: Callable[[Sequence[Cell], str], Any] = lambda cells, device: None

    @property
    def parameters(self) -> list[str]:
        """What may be asked of it."""
        return list(dict.fromkeys([*CHOICES, *self.study.fields]))

    @property
    def known_methods(self) -> list[str]:
        """Values of the naming field that may be asked for."""
        swept_by_rows = (_several(row[self.study.recipe.named_by]) for row in self._rows(self.datasets[0], "paper"))
        return list(self.methods) or list(dict.fromkeys(itertools.chain(*swept_by_rows)))

    @property
    def shown(self) -> list[str]:
        """What tells rows apart by default: what they are called, then the fields that they sweep."""
        items = [item for row in self.rows for item in row.items()]
        varied = [name for name, value in items if isinstance(value, tuple) or callable(value)]
        return list(dict.fromkeys([*self._names_of_rows, *varied]))

    @property
    def _names_of_rows(self) -> list[str]:
        """The columns that say what rows are called."""
        return list(dict.fromkeys(name for row in self.rows for name in row if name not in self.study.fields))

    def _rows(self, dataset: str, preset: str) -> list[dict[str, Any]]:
        """The fields of every row for a data set and a preset, without what it is called."""
        return [
            {name: value(preset, dataset) if callable(value) else value
             for name, value in row.items() if name in self.study.fields}
            for row in self.rows
        ]

    def cells(
        self, dataset: str | None = None, *, preset: str = "auto", seeds: str | int = "0", device: str = "auto",
        variant: str = "none", **fields: Any,
    ) -> list[Cell]:
        """The cells behind the table, seed by seed, so that one killed half-way has whole columns. Trains nothing.

        Arguments as for `run_table`.

        Raises:
            TypeError: if there is no such field; the message names those there are.
            ValueError: if a value is none of those allowed, which the message names, or changes nothing.
            FileNotFoundError: if data are not here, saying where to get them and where to put them.
        """
        for name in fields:
            require_parameter(name, self.parameters)
        dataset = self.datasets[0] if dataset is None else dataset
        preset = resolved(preset, choose("dataset", dataset, self.datasets))
        numbers = parse_numbers("seeds", seeds)
        recipes = self.recipes(dataset, preset, variant, **fields)
        where = devices.resolve(device)
        for recipe in recipes:
            self.study.check(recipe, where)
        cells = [self.study.cell(recipe, 0, preset) for recipe in recipes]
        return [dataclasses.replace(cell, seed=seed) for seed in numbers for cell in cells]

    def recipes(self, dataset: str, preset: str, variant: str = "none", **fields: Any) -> list[Recipe]:
        """The recipes of the rows with every combination of the fields asked for, equal ones once; raises as `cells`.

        A row whose training or evaluation does not use a field keeps it as its preset has it, so that it is the usual
        cell.
        """
        return [*self._recipes_by_row(dataset, preset, variant, fields)]

    def described(
        self, dataset: str | None = None, preset: str = "paper", variant: str = "none", *, every: bool = False,
        **fields: Any,
    ) -> Rows:
        """What the table trains: (name, value, source) of the fields that a recipe of it uses, or of `every` field.

        The recipe is the one that uses most of the fields asked for; of several it uses most fields, or is the first.
        Arguments as for `run_table`, but the data set is by default the first that does not come with the package.
        """
        chosen_data = dataset is not None
        if dataset is None:
            dataset = next((name for name in self.datasets if not manifest.bundled(name)), self.datasets[0])
        preset = resolved(preset, choose("dataset", dataset, self.datasets))
        by_row = self._recipes_by_row(dataset, preset, variant, fields)
        bundle, asked = self.study.variants.get(variant, {}), [name for name in fields if fields[name] != "auto"]

        def fields_used(recipe: Recipe) -> tuple[int, int]:
            return sum(map(recipe.uses, {*asked, *bundle})), sum(map(recipe.uses, self.study.fields))

        recipe, named = max(by_row, key=fields_used), self.study.recipe.named_by
        row, swept_over = self._rows(dataset, preset)[by_row[recipe]], self._swept(dataset, preset)
        sources = {name: f"varied by this table: {', '.join(map(str, swept_over[name]))}" if len(swept_over[name]) > 1
                   else "fixed by this table" for name, value in row.items() if value != AS_PRESET}
        sources |= dict.fromkeys(bundle, f"variant {variant}")
        sources = {name: source for name, source in sources.items() if recipe.uses(name) and name not in asked}
        usual = self.study.presets[preset](dataset, getattr(recipe, named))
        chosen = [name for name in asked if recipe.uses(name)]
        by_preset = [name for name in self.study.fields if getattr(usual, name) == getattr(recipe, name)]
        deciding = dict.fromkeys(self.study.fields, "follows from others")
        deciding |= dict.fromkeys(by_preset, f"preset {preset}") | dict.fromkeys(chosen, CHOSEN)
        rows = recipe.described(sources, deciding | {"dataset": CHOSEN if chosen_data else "data set of this table"})
        return [*(row for row in rows if every or recipe.uses(row[0])), *self.study.constants(recipe)]

    def _swept(self, dataset: str, preset: str) -> dict[str, list[Any]]:
        """The values that the rows give to each field, those of the longest sweep first."""
        rows, found = self._rows(dataset, preset), {}
        for name in dict.fromkeys(name for row in rows for name in row):
            given = [_several(row[name]) for row in rows if row.get(name, AS_PRESET) != AS_PRESET]
            given.sort(key=len, reverse=True)
            found[name] = list(dict.fromkeys(value for values in given for value in values))
        return found

    def _recipes_by_row(self, dataset: str, preset: str, variant: str, fields: Fields) -> dict[Any, int]:
        """The recipes of `recipes`, each with the number of the first row that it is of."""
        for name in fields:
            require_parameter(name, self.study.fields)
        study, named = self.study, self.study.recipe.named_by
        asked = {name: study.recipe.parse(name, value) for name, value in fields.items() if value != "auto"}
        for method in asked.get(named, ()):
            if method not in self.known_methods:  # named as it was asked for: "all" stands for several
                choose(named, method if method in swept(fields[named]) else fields[named], self.known_methods)
        own = {name for row in self.rows for name in row}
        allowed = [name for name, bundle in study.variants.items() if own.isdisjoint(bundle)]
        bundle = study.variants.get(choose("variant", variant, ("none", *allowed)), {})
        make, used = study.presets[preset], {named}
        recipes: dict[Any, int] = {}
        for number, method, changes in self._combinations(dataset, preset, bundle, asked):
            recipes.setdefault(make(dataset, method, **changes), number)
            used |= changes.keys()
        for name in asked:
            if name not in used:
                raise _changing_nothing(f"{name}={fields[name]!r}", [name], [*recipes])
        if bundle:
            without = {make(dataset, method, **changes)
                       for _, method, changes in self._combinations(dataset, preset, {}, asked)}
            if recipes.keys() == without:
                raise _changing_nothing(f"variant={variant!r}", [*bundle], [*recipes])
        return recipes

    def _combinations(
        self, dataset: str, preset: str, bundle: Fields, asked: Fields
    ) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Every combination of the values of a row, those of a bundle in their place, and in theirs what is asked for.

        Yields the number of the row, the method, and the other fields, as far as the method uses them. A row of one
        method that is not asked for has none.
        """
        named = self.study.recipe.named_by
        for number, row in enumerate(self._rows(dataset, preset)):
            values = {name: _several(value) for name, value in {**row, **bundle}.items() if value != AS_PRESET} | asked
            if not isinstance(row[named], tuple):
                values[named] = [method for method in [row[named]] if method in asked.get(named, [method])]
            for combination in itertools.product(*values.values()):
                changes = dict(zip(values, combination, strict=True))
                method = changes.pop(named)
                usual = self.study.presets[preset](dataset, method)
                yield number, method, {name: changes[name] for name in changes if usual.uses(name, **changes)}

    def select(self, cells: DataFrame) -> DataFrame:
        """Those of finished cells (of `Study.tidy`) that are of the table's methods and data sets, in its rows' order.

        Returns:
            The cells, each with what it is beside the row that it departs from least: `departures`, by name and value,
            but for fields that the row sweeps; `setting`, the bundle of `settings` that it has, in whose fields it does
            not depart; and what the row is called.
        """
        rows_for = functools.cache(self._rows_for)
        nearest = []
        for cell in cells.to_dict("records"):
            rows = rows_for(manifest.plain(cell["dataset"]), cell["preset"], cell["named"])
            places = (row.place(cell) for row in rows)
            nearest.append(min(places, key=lambda place: place["distance"], default=None))
        names = ["rank", "departures", "setting", *self._names_of_rows]
        placed = DataFrame([place for place in nearest if place], columns=names)
        selected = cells.loc[[place is not None for place in nearest]].reset_index(drop=True).join(placed)
        return selected.sort_values(["rank", "seed"], kind="stable", ignore_index=True).drop(columns="rank")

    def _rows_for(self, dataset: str, preset: str, method: str) -> "list[_Row]":
        """The rows that finished cells of a method may stand in, none if the table is not made on the data set."""
        if dataset not in self.datasets:
            return []
        usual, named = self.study.presets[preset](dataset, method), self.study.recipe.named_by

        def used(fields: Fields) -> dict[str, Any]:
            return {name: value for name, value in fields.items() if usual.uses(name)}

        settings = [(dict(bundle), used(bundle)) for bundle in self.settings(dataset) if used(bundle)]
        rows = []
        for number, fields in enumerate(self._rows(dataset, preset)):
            if method in (self.known_methods if isinstance(fields[named], tuple) else [fields[named]]):
                called = {name: value for name, value in self.rows[number].items() if name not in fields}
                fixed = used({name: value for name, value in fields.items() if not isinstance(value, tuple)})
                rows.append(_Row(number, called, fields, fixed, settings))
        return rows

    def laid_out(self, cells: DataFrame, also: Sequence[str] = ()) -> DataFrame:
        """Our numbers beside the printed ones, a row for what seeds have in common; see `run_table`.

        Args:
            cells: of `select`, of one preset and data set.
            also: further fields that tell rows apart.

        Raises:
            ValueError: if seeds of one row are of several recipes or data; the message names them.
        """
        require_one_recipe(cells, self.study)
        rows = self.arrange(self.with_versions(cells))
        measures = [name for name in self.measures if name in rows]
        if "value" not in rows:
            rows, measures = rows.assign(value=rows[measures[0]]), measures[1:]
        setting = list(dict.fromkeys(name for bundle in rows["setting"] for name in bundle))
        for name in setting:  # all rows of a setting have its fields, also those whose method does not use one of them
            rows[name] = [bundle.get(name, own) for bundle, own in zip(rows["setting"], rows[name], strict=True)]
        columns = list(dict.fromkeys([*(self.columns or self.shown), *setting, *also]))
        identity = rows[columns].map(str).agg(", ".join, axis=1) + rows["departures"].map(str)
        groups = rows.groupby(identity, sort=False)
        first = groups.nth(0)
        dataset, preset = first["dataset"].iloc[0], first["preset"].iloc[0]
        if any(first["departures"]):
            columns.append("departures")
        table = first[columns].map(lambda value: "none" if value is None else value).reset_index(drop=True)
        table[["ours", "std", "n_seeds"]] = groups["value"].agg(["mean", "std", "count"]).to_numpy()
        table["n_seeds"] = table["n_seeds"].astype(int)
        bundled = manifest.bundled(dataset)
        table["published"] = math.nan if bundled else [self.printed(row) for row in first.itertuples()]
        comparable = preset == "paper" and dataset == manifest.plain(dataset)
        undeparted = [comparable and not departures for departures in first["departures"]]
        table["difference"] = (table["ours"] - table["published"]).where(undeparted)
        table = table.assign(preset=preset, dataset=dataset)
        means = DataFrame({name: _mean(groups[name]) for name in measures}, index=table.index)
        return table.join(means).join(_versions_of(rows, identity))

    def setting_of(self, rows: DataFrame) -> str:
        """In words, the first of `settings` that one of some rows of `laid_out` has; nothing where none has any."""
        for bundle in self.settings(manifest.plain(rows["dataset"].iloc[0])):
            if {*bundle} <= {*rows} and rows[[*bundle]].eq(Series(bundle)).all(axis=1).any():
                return in_words(bundle)
        return ""

    def outcome(self, cell: Cell, store: Store) -> str:
        """What came of a finished cell, in words: our number, of several targets each, and the printed one if any."""
        selected = self.select(self.study.tidy(rows_of([cell], store)))
        if self.arrange(self.with_versions(selected)).empty:  # no row of the table is about it alone
            return "finished"
        rows = self.laid_out(selected)
        names = rows["target"] if "target" in rows else [self.measures[0]] * len(rows)
        printed = ["" if math.isnan(value) else f" (printed {value:.4g})" for value in rows["published"]]
        numbers = zip(names, rows["ours"], printed, strict=True)
        return ", ".join(dict.fromkeys(f"{name} {ours:.4g}{beside}" for name, ours, beside in numbers))

    def with_versions(self, cells: DataFrame) -> DataFrame:
        """Cells of `select`; the version of their training is a departure where a newer one has trained the same."""
        same = [cells["preset"], cells["dataset"], cells["named"], cells["changes"].map(str)]
        newest = cells.groupby(same)["version"].transform("max")
        away = [
            departures if version == last else {**departures, "version": version}
            for departures, version, last in zip(cells["departures"], cells["version"], newest, strict=True)
        ]
        return cells.assign(departures=Series(away, cells.index, dtype=object))


class _Row(NamedTuple):
    """A row of a table, for finished cells of one method."""

    number: int
    called: Fields                         # by column, what the row is called
    fields: Fields                         # of recipes, a tuple where they are swept
    fixed: Fields                          # those of one value that the method uses
    settings: list[tuple[Fields, Fields]]  # of the table, each with those of its fields that the method uses

    def place(self, cell: Fields) -> dict[str, Any]:
        """What `Table.select` says of a cell in this row, and where: cells are sorted by `rank`.

        Its `distance` from the row is in how many fields it departs, then how many of these have one value there.
        """
        contrary = {name: cell[name] for name, value in self.fixed.items() if cell[name] != value}
        away = {name: value for name, value in cell["changes"].items() if name not in self.fields} | contrary
        setting = next((bundle for bundle, used in self.settings if used.items() <= away.items()), {})
        departures = {name: value for name, value in away.items() if name not in setting}
        order = [_order(values, cell[name]) for name, values in self.fields.items() if isinstance(values, tuple)]
        return {"distance": (len(departures), len(contrary)), "rank": (self.number, *order), "departures": departures,
                "setting": setting, **self.called}


def require_parameter(name: str, allowed: Sequence[str]) -> None:
    """Raise TypeError unless there is such a parameter; it names those there are, and tables with it or the closest."""
    if name not in allowed:
        others = [other for other, table in _tables().items() if name in table.study.fields]
        here = [field for field in SYMBOLS.get(name, ()) if field in allowed]
        hint = f"; {', '.join(others)} have it" if others else closest(name, allowed)
        hint = f"; it is called {' or '.join(here)}" if here else hint
        raise TypeError(f"parameter={name!r} is not one of: {', '.join(allowed)}{hint}")


def _tables() -> dict[str, Table]:
    return importlib.import_module("repro.papers").tables()  # above this module: found when they are asked for


def studies(tables: Iterable[Table] | None = None) -> dict[str, Study]:
    """The studies of tables, by default of all there are, by name."""
    return {table.study.name: table.study for table in (_tables().values() if tables is None else tables)}


def find(name: str) -> Table:
    """A table by name, of whichever paper; ValueError names those there are."""
    return _tables()[choose("table", name, _tables())]


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
    tensorboard: bool = False,
    **fields: Any,
) -> DataFrame:
    """Train what is missing of a table, and put our numbers beside the printed ones.

    Args:
        name: of the table, one of `repro.TABLES`.
        dataset: one of the table's; by default the one that comes with the package.
        preset: "paper", "quick", "smoke", or "auto": paper on real data, quick on data that come with the package.
        seeds: comma list of whole numbers.
        device: "auto", "cpu" or "cuda".
        engine: "inline" trains in this process, "local" in worker processes, "dask" in those of a cluster; "auto" takes
            "local" on a CPU and on several GPUs, except for smoke runs. On a CPU the numbers do not depend on it.
            Workers import the script that starts them, which calls this below `if __name__ == "__main__":` therefore.
        workers: number of worker processes, or the address of dask's scheduler; "auto" as `repro.run.engine.pool_of`.
        variant: a named bundle of fields, where paper and released code disagree, or "none".
        tensorboard: copy the logs of its cells, as they grow, to files for TensorBoard in `tensorboard` of REPRO_RUNS.
        **fields: any field of the recipe, such as layers=3 or epochs="10,30,150", which sweeps. It replaces the field
            in every row whose training or evaluation uses it; "auto" leaves it as the rows have it.

    Returns:
        One row per swept combination: what tells it apart, `departures` by name and value where there are any, then
        ours (mean over seeds), std (sample standard deviation, NaN below two seeds), n_seeds, published, difference
        (ours - published, NaN where these are not comparable: on data that come with the package, parts and copies,
        with another preset than the paper's, with departures), preset, dataset; last the means of the table's measures.
        Accuracies in percent. Seeds of a row are of the newest version of the training; those of an earlier one are a
        row of their own, whose departures name it.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `Table.cells`, before anything is computed.
        NonFiniteLoss, ChildProcessError: if a cell fails, after the others are done.
    """
    table = find(name)
    cells = table.cells(dataset, preset=preset, seeds=seeds, device=device, variant=variant, **fields)
    where, store = devices.resolve(device), Store()
    pool = pool_of(engine, workers, cells, where)
    missing = any(store.run(cell).result is None for cell in cells)
    if missing and cells[0].recipe.precision == "auto" and devices.first():
        tqdm.write(f"matrix products in {devices.precision_of(cells[0].recipe, where)}", file=sys.stderr)
    say = functools.partial(table.outcome, store=store)
    with contextlib.ExitStack() as copying:
        if tensorboard and devices.first():
            copying.enter_context(followed([*map(store.run, cells)], store.root / "tensorboard"))
        run_cells(cells, functools.partial(train, study=table.study, device=where), store, pool=pool, say=say)
    table.after(cells, device)
    finished = table.select(table.study.tidy(rows_of(cells, store)))
    parsed = {name: table.study.recipe.parse(name, given) for name, given in fields.items() if given != "auto"}
    return table.laid_out(finished, [name for name, values in parsed.items() if len(values) > 1])


def plan_table(
    name: str, dataset: str | None = None, *, device: str = "auto", engine: str = "auto", workers: str | int = "auto",
    **choices: Any,
) -> str:
    """What `run_table` would cost with these arguments, see `repro.run.plan.plan`; nothing of it is trained."""
    table = find(name)
    cells, where = table.cells(dataset, device=device, **choices), devices.resolve(device)
    pool = pool_of(engine, workers, cells, where)
    return plan(cells, table.study.untrained, Store(), where, pool)


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


def draw(name: str, rows: DataFrame) -> Any:
    """The figure of a table, as its paper draws it.

    Where rows differ in a field that is not the table's own, as those of a sweep over epochs do, the first of them that
    are otherwise alike are drawn, and a printed line says so.

    Args:
        name: of the table; ValueError if it has no figure of its own.
        rows: as `run_table` returns them.
    """
    table, drawings = find(name), importlib.import_module("repro.papers").drawings()
    choose("name", name, [known for known in _tables() if known in drawings])
    first = rows.drop_duplicates([*(table.columns or table.shown), "preset", "dataset"], ignore_index=True)
    if len(first) < len(rows):
        print("drawn is the first of several settings; give draw the rows of another to see it")
    setting = table.setting_of(first)
    return drawings[name].draw(first.assign(setting=setting) if setting else first)


def resolved(preset: str, dataset: str) -> str:
    """The preset with "auto" resolved: paper on real data, quick on those that come with the package."""
    if choose("preset", preset, ("auto", "paper", "quick", "smoke")) != "auto":
        return preset
    return "quick" if manifest.bundled(dataset) else "paper"


def standing(tables: Collection[Table], cells: DataFrame) -> dict[str, DataFrame]:
    """Stored cells of all studies by table: each where it departs in the fewest fields, which may be several tables.

    Where the cells of a table on a data set, under a preset and in a setting, are only some of those that another table
    has there, the other one was run, and this one has none of them.
    """
    tidy = {name: study.tidy(cells) for name, study in studies(tables).items()}
    selected = {table.name: table.select(tidy[table.study.name]) for table in tables}
    departing = pd.concat([rows.set_index("key")["departures"].map(len) for rows in selected.values()])
    fewest = departing.groupby(level=0).min()
    nearest = {name: rows[rows["departures"].map(len) == rows["key"].map(fewest)] for name, rows in selected.items()}
    keys = {name: rows.groupby(["dataset", "preset"])["key"].agg(set).to_dict() for name, rows in nearest.items()}
    own = {}
    for name, rows in nearest.items():
        elsewhere, of_another = [held for other, held in keys.items() if other != name], []
        for (*place, _), group in rows.groupby([rows["dataset"], rows["preset"], rows["setting"].map(in_words)]):
            run = set(group["key"])
            if any(run < held.get(tuple(place), set()) for held in elsewhere):
                of_another += [*group.index]
        own[name] = rows.drop(index=of_another).reset_index(drop=True)
    return own


def require_one_recipe(cells: DataFrame, study: Study) -> None:
    """Raise ValueError if cells that should differ in their seed alone differ in data or recipe, naming them.

    The precision follows from the kind of device where none is asked for.
    """
    compared = [name for name in ("digest", *study.fields) if name in cells and name not in ("precision", "dataset")]
    alike = [cells["dataset"], cells["preset"], cells["version"], cells["named"], cells["changes"].map(str)]
    mixed = cells[compared].map(repr).groupby(alike).transform("nunique") > 1
    if mixed.any(axis=None):
        first = mixed.any(axis=1).idxmax()
        trained = entry_name(*cells.loc[first, ["named", "changes"]])
        seeds = cells[pd.concat([column == column[first] for column in alike], axis=1).all(axis=1)]
        raise ValueError(
            f"on {cells.loc[first, 'dataset']}, {cells.loc[first, 'preset']} recipe, seeds "
            f"{', '.join(map(str, seeds['seed']))} of {trained} differ in {', '.join(mixed.columns[mixed.loc[first]])} "
            f"(cells {', '.join(seeds['key'])}); they cannot be averaged: run all seeds again, or delete the others, a "
            "row of figures/cells.csv or a folder of that name in REPRO_RUNS"
        )


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _order(values: tuple, value: Any) -> tuple[int, float, str]:
    """The place of a value that a row sweeps: numbers by size, then others as listed, then any that are not listed."""
    if isinstance(value, int | float):
        return -1, float(value), ""
    return values.index(value) if value in values else len(values), 0.0, str(value)


def _versions_of(rows: DataFrame, identity: Series) -> DataFrame:
    """The versions of training and evaluation behind each row, those of the two that are not the same everywhere."""
    versions = rows.reindex(columns=["version", "evaluation"]).fillna({"evaluation": 1})
    several = versions[[name for name in versions if versions[name].nunique() > 1]]
    named = several.map("{:g}".format).groupby(identity, sort=False)
    return named.agg(lambda column: ", ".join(sorted(set(column)))).reset_index(drop=True)


def _mean(groups: Any) -> list[Any]:
    """Means over seeds, NaN where some seed has no value: they would be those of other seeds.

    Of texts the first, of whole numbers rounded.
    """
    if not pd.api.types.is_numeric_dtype(groups.obj):
        return groups.first().tolist()
    if pd.api.types.is_integer_dtype(groups.obj):
        return groups.mean().round().astype(int).tolist()
    return groups.mean().where(groups.count() == groups.size()).tolist()


def _changing_nothing(what: str, names: Sequence[str], recipes: Sequence[Recipe]) -> ValueError:
    """The error of fields that change none of the recipes: who uses them, unless these values stand already."""
    methods = dict.fromkeys(getattr(recipe, recipe.named_by) for recipe in recipes)
    users = dict.fromkeys(user for name in names for user in recipes[0].users(name))
    others = bool(users) and users.keys().isdisjoint(methods)
    hint = f"{', '.join(users)} use it: leave it out, or choose these too" if others else "leave it out"
    return ValueError(f"{what} changes nothing of {', '.join(methods)}; {hint}")
