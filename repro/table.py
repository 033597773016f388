"""A table is a sweep of recipe fields beside printed numbers.

    study   how a recipe is trained and measured (`Study`)
    run     one recipe and one seed: what is trained, and found again by the hash of all that decides it
    row     a product of fields, such as {"method": ("moco", "sce"), "temperature": 0.2}, which is two recipes
    table   rows, the data sets they can be made on, and what the paper prints of a recipe (`Table`)

`Table.asked` lists the runs of the rows, of no data yet, `repro.run_table` trains those that are missing, and
`Table.numbers` puts the means over seeds of each recipe beside its printed number. Runs are found by their ids alone.

Tables are declared, described and read without torch, which is imported where something is trained.
"""

import collections
import dataclasses
import importlib
import inspect
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pandas import DataFrame, Series

from repro.data import manifest
from repro.recipe import Recipe, Rows, choose, entry_name, parse_numbers
from repro.report.text import spelt
from repro.run import code
from repro.run.store import (
    AGAIN,
    RESTORE,
    TAKEN,
    Run,
    Store,
    check_parts,
    committed_fields,
    evaluation_of,
    warn_once,
)

if TYPE_CHECKING:
    import torch

    from repro.report.plots import Drawn
    from repro.run.learner import Learner

Fields = Mapping[str, Any]
CHOICES = ("dataset", "preset", "seeds", "variant", "device")  # asked of every table, beside the fields of its recipes
ADDED = ("changed", "evaluation", "recipe_number", "target", "whose")  # columns that tables add to those
NUMBERS = ("ours", "std", "n_seeds", "printed", "difference", "preset", "dataset")  # of a row, in this order
COLUMNS = {*TAKEN, *CHOICES, *NUMBERS, *ADDED} - {"dataset"}  # as no other field of a recipe may be called
FROM_PRESET = ()  # in the place of a row's values: the preset's, and whatever is asked for differs from nothing


def nothing(*about: Any) -> Any:
    """Of a study that has nothing to check or to add."""
    return ()


@dataclasses.dataclass(frozen=True)
class Lazy:
    """What a module has, imported when it is needed: a declaration that names a function needs nothing else of it."""

    module: str
    name: str

    @property
    def value(self) -> Any:
        """The function, or whatever it is."""
        return getattr(importlib.import_module(self.module), self.name)

    def __call__(self, *arguments: Any) -> Any:
        return self.value(*arguments)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """How a recipe is trained and measured. Its functions are of modules, so that worker processes can import them.

    Attributes:
        name: part of the description of every run.
        recipe: the class of its recipes.
        presets: by name ("paper", "quick", "smoke"), what makes a recipe of a data set, a value of `recipe.named_by`
            and further fields.
        variants: named bundles of fields, where paper and released code disagree.
        load: the data of a recipe, cached by content, with `name` (of the data set, and of the part or copy it is) and
            `digest`; raises FileNotFoundError saying where to get them.
        learners: of a recipe, its data, a seed and a device, what `fit` trains, one after the other.
        measure: finite numbers and the text `select` that a trained learner gives. Of numbers that several learners
            give, the mean counts, of the text the last.
        probe: what is measured every `probe_every` epochs along training, if anything; draws from no stream of it.
        version: of the training, raised when the numbers of an unchanged recipe change; part of a run's id.
        evaluation: of `measure`, raised when it measures more, or otherwise; stands with the result. Runs that were
            measured otherwise are never averaged.
        additions: those evaluations that measure more than the one before them, and all else as that one.
        check: raises ValueError unless a recipe can be trained on a device, or in this group of processes.
        shared: whether processes of torchrun can share a run, as `repro.run.group.shared` lets them.
        constants: of a recipe, what no field of it holds: (name, value, source).
    """

    name: str
    recipe: type[Recipe]
    presets: Mapping[str, Callable[..., Any]]
    variants: Mapping[str, Fields]
    load: Callable[[Any], Any]
    learners: "Callable[[Any, Any, int, torch.device], Iterator[Learner]]"
    measure: Callable[[Any], dict[str, float | str]]
    probe: Callable[[Any], dict[str, float]] | None = None
    version: int
    evaluation: int
    additions: Sequence[int] = ()
    check: "Callable[[Any, torch.device], None]" = nothing
    shared: bool = False
    constants: Callable[[Any], Rows] = nothing

    def __post_init__(self) -> None:
        """Raise ValueError if a field of the recipe has the name of a column of tables, or would change ids of
        committed runs, or a variant has a field that the recipe has not.
        """
        if taken := {*self.fields} & COLUMNS:
            raise ValueError(f"{self.recipe.__name__}.{min(taken)} has the name of a column of tables, which "
                             "would hide its values; rename the field")
        for variant, bundle in self.variants.items():
            for name in bundle:
                choose(f"field of variant {variant}", name, self.fields)
        stored = committed_fields().get((self.name, self.version), {*self.fields})
        for field in dataclasses.fields(self.recipe):
            if field.name not in stored and field.metadata.get("before", dataclasses.MISSING) is dataclasses.MISSING:
                raise ValueError(
                    f"{self.recipe.__name__}.{field.name} has come since runs of {self.name} were committed, and "
                    "would change their ids; write before=VALUE in its setting, the value that they were trained "
                    "with, or raise the version of the training"
                )

    @property
    def fields(self) -> list[str]:
        """The fields of its recipes."""
        return [field.name for field in dataclasses.fields(self.recipe)]

    def on_data(self, run: Run, digest: str = "") -> Run:
        """The run on the data of a digest, by default on those that are here, for which this raises as `load`."""
        if digest:
            return dataclasses.replace(run, digest=digest)
        data = self.load(run.recipe)
        return dataclasses.replace(run, dataset=data.name, digest=data.digest)

    def trained(self, recipe: Any, preset: str) -> Recipe | None:
        """The recipe with its preset's settings of the evaluation, if it has others and these can wait for its end."""
        usual = self.presets[preset](recipe.dataset, getattr(recipe, recipe.named_by))
        settings = {name: getattr(usual, name) for name in recipe.evaluation_fields()}
        differs = any(getattr(recipe, name) != value for name, value in settings.items())
        along = self.probe is not None and recipe.probe_every not in (0, usual.probe_every)
        return recipe.replace(**settings) if differs and not along else None

    def averaged(self, evaluations: Series, recipes: Series) -> Series:
        """Which runs may be averaged with others of their recipe: those that its newest evaluation measured.

        An evaluation that only added measures counts as the one before it.
        """
        alike = evaluations.map(lambda number: max({*range(1, number + 1)} - {*self.additions}))
        return alike == alike.groupby(recipes).transform("max")

    @property
    def modules(self) -> set[str]:
        """The modules that its recipe, learners and measures are of."""
        functions = (self.load, self.learners, self.measure)
        named = {part.module if isinstance(part, Lazy) else part.__module__ for part in functions}
        return named | {part.__module__ for part in self.recipe.__mro__}

    @property
    def code(self) -> str:
        """A hash of the code that trains it, see `repro.run.code.identity`."""
        return code.identity(self.modules)

    def tidy(self, runs: DataFrame, tell: Callable[[str], object] = warn_once) -> DataFrame:
        """Stored runs of today's version with recipe fields and measures as columns; later fields are filled in.

        What is trained stands in `named`, whatever field of the recipe names it, in `measure` the name of its main one.
        Of a measure and a field of one name, as "select", the measure stands there. A run that cannot be
        read is left out, and a line says so, by default once.
        """
        rows = []
        for run in runs[(runs["study"] == self.name) & (runs["version"] == self.version)].to_dict("records"):
            try:
                recipe = self.stored_recipe(run)
            except ValueError as error:
                tell(str(error))
                continue
            changes, metrics, cost = (json.loads(run[part]) for part in ("changes", "metrics", "cost"))
            run |= {"changes": {name: changes[name] for name in self.fields if name in changes}, "cost": cost}
            run |= {"finished": cost["finished"], "named": getattr(recipe, recipe.named_by)}
            run["measure"] = next(iter(recipe.main_measures), "")
            run |= metrics | {"evaluation": evaluation_of(metrics)}
            rows.append(run | {name: value for name, value in recipe.to_dict().items() if name not in run})
        columns = [*dict.fromkeys([*runs, "finished", "named", "measure", *self.fields])]  # where there are no rows
        tidied = DataFrame(rows, columns=None if rows else columns, dtype=object).drop(columns=["recipe", "metrics"])
        return DataFrame({  # of a field that is None somewhere the other values stay what they are
            name: column if name in self.fields and column.isna().any() else column.infer_objects()
            for name, column in tidied.items()
        })

    def stored_recipe(self, run: Fields) -> Any:
        """The recipe of a row of runs.csv.

        ValueError names the run and where it is if there is no such recipe, preset, data set or evaluation, it
        lacks a main measure, an accuracy is none, or its preset with its changes, its data set or its id is
        another recipe's: what it says of itself is not what was trained.
        """
        try:
            choose("preset", run["preset"], self.presets)
            dataset = choose("dataset", manifest.plain(run["dataset"]), manifest.names())
            recipe = self.recipe.from_dict(json.loads(run["recipe"]))
            metrics, changes = json.loads(run["metrics"]), json.loads(run["changes"])
            check_parts(metrics, dict.fromkeys(recipe.main_measures, (int, float)))
            for name, value in metrics.items():
                if name.startswith(("linear", "knn1", *recipe.main_measures)) and not 0 <= value <= 100:
                    raise ValueError(f"{name}={value} should be from 0 to 100, in percent")
            if not 1 <= evaluation_of(metrics) <= self.evaluation:
                raise ValueError(f"evaluation={evaluation_of(metrics)} should be from 1 to {self.evaluation}")
            parts = (run[part] for part in ("seed", "preset", "dataset", "digest", "version"))
            if (id := Run(self.name, recipe, *parts).id) != run["id"]:
                raise ValueError(f"its recipe, seed, data and version are those of {id}")
            # Of a part of the data, or a copy, their name says so, and no change.
            subset = {"subset": dataset != run["dataset"]} if "subset" in self.fields else {}
            made = self.presets[run["preset"]](dataset, getattr(recipe, recipe.named_by), **subset | changes)
            for name, value in made.to_dict().items():
                if getattr(recipe, name) != value:
                    raise ValueError(f"preset {run['preset']} with its changes has {name}={value!r}, "
                                     f"and its recipe {name}={getattr(recipe, name)!r}")
            return recipe
        except (ValueError, TypeError, LookupError) as error:
            folder = Store().path(run["id"])
            place, remedy = (folder, AGAIN) if folder.exists() else ("figures/runs.csv", RESTORE)
            raise ValueError(f"the run {run['id']} cannot be read and is left out ({error}); {place}: {remedy}, "
                             "or take the version that wrote it") from error


def optimiser(kind: "type[torch.optim.Optimizer]", source: str) -> tuple[str, Any, str]:
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
        study: how its runs are trained and measured.
        rows: each the values of some fields of the study's recipe, the naming field among them. A tuple sweeps, any
            other value holds for the whole row, `FROM_PRESET` leaves it to the preset; a function of preset and data
            set gives one of these. A key that is no field of the recipe says what the row is called, for `columns`.
            Methods that are asked for replace those that a row sweeps; a row of one other method is left out.
        datasets: those it can be made on: the default, which comes with the package, then the paper's, then others.
        methods: values of the naming field that may be asked for; by default those of the rows; None: whatever the
            recipe takes.
        columns: what tells rows apart, in order; by default what is trained. A field in which two rows differ that
            look alike by these is one more.
        printed: the printed number (percent) of a row, which has the fields of its recipe and what `arrange` adds as
            attributes; NaN where the paper prints none.
        printed_by: fields for whose values the paper prints a table each: columns where they are asked for.
        measures: numbers that are shown of a row, the first as `ours` unless `arrange` adds a column "value".
        arrange: of finished runs, what is averaged over seeds: what only this table does. `recipe_number` tells the
            recipes apart, and where several of them make one row it is that of the first.
        plot: how its rows are drawn, if they are.
        after: of its finished runs and a device, what is computed from their weights once and kept, for figures.
    """

    name: str
    title: str
    place: str
    study: Study
    rows: Sequence[Fields]
    datasets: Sequence[str]
    methods: Sequence[str] | None = ()
    columns: Sequence[str] = ()
    printed: Callable[[Any], float] = lambda row: math.nan
    printed_by: Sequence[str] = ()
    measures: Sequence[str] = ("linear",)
    arrange: Callable[[DataFrame], DataFrame] = lambda runs: runs
    plot: "Lazy | Drawn | None" = None
    after: Callable[[Sequence[Run], str], Any] = lambda runs, device: None

    def __post_init__(self) -> None:
        """Raise ValueError if a key of a row is neither a field of the recipe nor what every row is called, in text."""
        fields = self.study.fields
        for name in dict.fromkeys(itertools.chain(*self.rows)):
            if not all(isinstance(row.get(name), str) for row in self.rows):
                choose(f"what not all rows of {self.name} are called, in text: field", name, fields)

    @property
    def drawing(self) -> "Drawn | None":
        """Its `plot`, imported."""
        return self.plot.value if isinstance(self.plot, Lazy) else self.plot

    @property
    def parameters(self) -> list[str]:
        """What may be asked of it."""
        return list(dict.fromkeys([*CHOICES, *self.study.fields]))

    @property
    def known_methods(self) -> list[str]:
        """Values of the naming field that may be asked for."""
        swept_by_rows = (_several(row[self.study.recipe.named_by]) for row in self._rows(self.datasets[0], "paper"))
        return list(self.methods or dict.fromkeys(itertools.chain(*swept_by_rows)))

    @property
    def shown(self) -> list[str]:
        """What tells rows apart: `columns`, or else what is trained."""
        return list(self.columns or [self.study.recipe.named_by])

    def _rows(self, dataset: str, preset: str) -> list[dict[str, Any]]:
        """The fields of every row for a data set and a preset, without what it is called."""
        return [
            {name: value(preset, dataset) if callable(value) else value
             for name, value in row.items() if name in self.study.fields}
            for row in self.rows
        ]

    def runs(
        self, dataset: str | None = None, *, preset: str = "auto", seeds: str | int = "0", device: str = "auto",
        variant: str = "none", digest: Callable[[Any], str] = lambda recipe: "", **fields: Any,
    ) -> list[Run]:
        """The runs behind the table, seed by seed, so that one killed half-way has whole columns. Trains nothing.

        Arguments as for `run_table`: preset, seeds, device, variant and fields; and `digest`, of a recipe's data, where
        "" takes that of the data that are here.

        Raises:
            TypeError: if there is no such field; the message names those there are.
            ValueError: if a value is none of those allowed, which the message names, or changes nothing.
            FileNotFoundError: if data are not here, saying where to get them and where to put them.
        """
        from repro.run import device as devices
        from repro.run.group import check_alone

        numbers = parse_numbers("seeds", seeds)
        asked = self.asked(dataset, preset, variant, **fields)
        where = devices.resolve(device)
        if not self.study.shared:
            check_alone(self.study.name)
        for run in asked:
            self.study.check(run.recipe, where)
        runs = [self.study.on_data(run, digest(run.recipe)) for run in asked]
        return [dataclasses.replace(run, seed=seed) for seed in numbers for run in runs]

    def described(
        self, dataset: str | None = None, preset: str = "auto", variant: str = "none", **fields: Any
    ) -> Rows:
        """What the table trains: (name, value, source) of the fields that a recipe of it uses.

        The recipe is the one that uses most of the fields asked for; of several it uses most fields, or is the first.
        Arguments as for `run_table`, but the data set is by default the first that does not come with the package.
        """
        real = next((name for name in self.datasets if not manifest.bundled(name)), self.datasets[0])
        asked = [name for name, value in fields.items() if value != "auto"]
        bundle = self.study.variants.get(variant, {})

        def fields_used(run: Run) -> tuple[int, int]:
            return sum(map(run.recipe.uses, {*asked, *bundle})), sum(map(run.recipe.uses, self.study.fields))

        shown = max(self.asked(real if dataset is None else dataset, preset, variant, **fields), key=fields_used)
        recipe, row = shown.recipe, self._rows(shown.dataset, shown.preset)[shown.row]
        usual = self.study.presets[shown.preset](shown.dataset, getattr(recipe, recipe.named_by))
        rows, particular = [], recipe.particular()
        for field in (field for field in dataclasses.fields(recipe) if recipe.uses(field.name)):
            name, value = field.name, getattr(recipe, field.name)
            default, source = particular.get(name, (field.default, field.metadata["source"]))
            decided = ""  # who decided on it in the paper's place
            if name in asked or (name == "dataset" and dataset is not None):
                decided = "chosen here"
            elif name in bundle:
                decided = f"variant {variant}"
            elif name == "dataset" or row.get(name, FROM_PRESET) != FROM_PRESET:
                decided = "this table"
            elif value != default:
                follows = value != getattr(usual, name)
                decided = "follows from others" if follows else f"preset {shown.preset}"
            rows.append((name, value, f"{decided} (default {default})" if decided else source))
        return [*rows, *self.study.constants(recipe)]

    def asked(
        self, dataset: str | None = None, preset: str = "auto", variant: str = "none", **fields: Any
    ) -> list[Run]:
        """The runs of the rows with every combination of the fields asked for, of no data yet; raises as `runs`.

        Of equal recipes there is one, of the row from which it differs least. A row whose training or evaluation does
        not use a field keeps it as its preset has it, so that it is the usual run.
        """
        study, named = self.study, self.study.recipe.named_by
        dataset = choose("dataset", self.datasets[0] if dataset is None else dataset, self.datasets)
        if choose("preset", preset, ("auto", *study.presets)) == "auto":
            preset = "quick" if manifest.bundled(dataset) else "paper"
        for name in fields:
            choose("parameter", name, study.fields, TypeError)
        asked = {name: study.recipe.parse(name, value) for name, value in fields.items() if value != "auto"}
        for method in asked.get(named, ()):
            if self.methods is not None:
                choose(named, method, self.known_methods)
        own = {name for row in self.rows for name in row}
        allowed = [name for name, bundle in study.variants.items() if own.isdisjoint(bundle)]
        bundle = study.variants.get(choose("variant", variant, ("none", *allowed)), {})
        runs: list[Run] = []
        for number in range(len(self.rows)):
            runs += self._of_row(number, dataset, preset, bundle, asked)
        used = [name for name in asked if any(run.recipe.uses(name) for run in runs)]
        unused = {f"{name}={fields[name]!r}": [name] for name in asked if name not in used}
        if bundle and not any(run.changes.keys() & bundle.keys() - asked.keys() for run in runs):
            unused[f"variant={variant!r}"] = [*bundle]
        for what, names in unused.items():
            methods = dict.fromkeys(getattr(run.recipe, named) for run in runs)
            users = dict.fromkeys(user for name in names for user in runs[0].recipe.users(name))
            others = bool(users) and users.keys().isdisjoint(methods)  # else these values stand already
            hint = f"used by {', '.join(users)}: leave it out, or choose these too" if others else "leave it out"
            raise ValueError(f"{what} changes nothing of {', '.join(methods)}; {hint}")

        def distance(run: Run) -> tuple[int, int]:
            """In how many fields a recipe differs, and how many of these its row sets."""
            return len(run.changed), len(run.changed.keys() & self.rows[run.row].keys())

        nearest: dict[Recipe, Run] = {}
        for run in runs:
            if run.recipe not in nearest or distance(run) < distance(nearest[run.recipe]):
                nearest[run.recipe] = run
        return [*nearest.values()]

    def _of_row(self, number: int, dataset: str, preset: str, bundle: Fields, asked: Fields) -> Iterator[Run]:
        """Every combination of the values of a row, those of a bundle in their place, and in theirs what is asked for.

        Of a row of one method that is not asked for there is none.
        """
        study, named = self.study, self.study.recipe.named_by
        row, make = self._rows(dataset, preset)[number], study.presets[preset]
        called = {name: text for name, text in self.rows[number].items() if name not in study.fields}
        values = {name: _several(value) for name, value in {**row, **bundle}.items() if value != FROM_PRESET} | asked
        if not isinstance(row[named], tuple):
            values[named] = [row[named]] if row[named] in asked.get(named, [row[named]]) else []
        for combination in itertools.product(*values.values()):
            wanted = dict(zip(values, combination, strict=True))
            method = wanted.pop(named)
            part = {"subset": wanted["subset"]} if "subset" in wanted else {}  # which has a preset of its own
            usual = make(dataset, method, **part)
            wanted = {name: wanted[name] for name in study.fields if name in wanted and usual.uses(name, **wanted)}
            recipe = make(dataset, method, **wanted)
            changes, changed = {}, {}
            for name in (name for name in wanted if name != "subset"):  # which the name of the data says
                value, of_row = getattr(recipe, name), row.get(name, getattr(usual, name))
                if value != getattr(usual, name):
                    changes[name] = value
                if value != of_row and not isinstance(of_row, tuple) and name not in self.printed_by:
                    changed[name] = value
            yield Run(study.name, recipe, 0, preset, dataset, "", study.version, study.evaluation, changes,
                      study.trained(recipe, preset), number, called, changed)

    def numbers(self, by_id: Mapping[str, Run], runs: DataFrame, also: Sequence[str] = ()) -> DataFrame:
        """Our numbers beside the printed ones, a row for each recipe that is finished; see `run_table`.

        Args:
            by_id: what is asked for, by the ids of its runs; of one data set and preset.
            runs: stored ones, of `run.store`; those of other ids are passed over.
            also: further fields that tell rows apart.
        """
        columns, rows = list(dict.fromkeys([*self.shown, *also])), self._finished(by_id, runs)
        if rows.empty:
            table = DataFrame(columns=[*columns, *NUMBERS, *self.measures])
            table.attrs = rows.attrs
            return table
        measures = self.measures
        if "value" not in rows:
            rows, measures = rows.assign(value=rows.get(measures[0], math.nan)), measures[1:]
        groups = rows.groupby([rows[name].map(str) for name in ("recipe_number", *columns)], sort=False)
        first = groups.nth(0)
        twins = first[first[columns].map(str).duplicated(keep=False)]
        columns += [name for name in self.study.fields if name not in columns and twins[name].map(str).nunique() > 1]
        if any(first["changed"]):
            columns.append("changed")
        table = first[columns].map(lambda value: "none" if value is None else value).reset_index(drop=True)
        table[["ours", "std", "n_seeds"]] = groups["value"].agg(["mean", "std", "count"]).to_numpy()
        table["n_seeds"] = table["n_seeds"].astype(int)
        bundled, described = manifest.bundled(first["dataset"].iloc[0]), [*first.itertuples(index=False)]
        table["printed"] = [math.nan if bundled else self.printed(row) for row in described]
        comparable = [row.preset == "paper" and row.dataset == manifest.plain(row.dataset) and not row.changed
                      for row in described]
        table["difference"] = (table["ours"] - table["printed"]).where(comparable)
        table[["preset", "dataset"]] = first[["preset", "dataset"]].to_numpy()
        for name in (name for name in measures if name in rows):
            means = groups[name].mean().where(groups[name].count() == groups.size())  # else it were of other seeds
            table[name] = (means.round().astype(int) if rows[name].dtype.kind in "iu" else means).to_numpy()
        remarks: dict[str, list[tuple[str, ...]]] = {}
        composed: list[list[dict[str, Any]]] = [[] for _ in table.index]
        told = rows.columns.intersection(["whose", "cost"])
        for number, run in zip(groups.ngroup(), rows[told].to_dict("records"), strict=True):
            composed[number].append(run)
        for row, its_runs in zip(spelt(table[columns]).itertuples(index=False), composed, strict=True):
            for remark in compositions(its_runs):
                remarks.setdefault(remark, []).append(tuple(row))
        table.attrs = {"left_out": rows.attrs["left_out"], "remarks": remarks}
        return table

    def _finished(self, by_id: Mapping[str, Run], runs: DataFrame) -> DataFrame:
        """The finished runs of these ids as `arrange` has them, by recipe and seed, with what is asked for.

        Of a recipe's runs those that may be averaged, see `Study.averaged`; `left_out` in `attrs` tells of the others.
        """
        runs = self.study.tidy(runs[runs["id"].isin([*by_id])])
        if runs.empty:
            return runs
        recipes, asked = dict.fromkeys(row.recipe for row in by_id.values()), [by_id[id] for id in runs["id"]]
        numbered = {recipe: number for number, recipe in enumerate(recipes)}
        runs = runs.assign(
            recipe_number=[numbered[row.recipe] for row in asked], preset=[row.preset for row in asked],
            changed=Series([row.changed for row in asked], runs.index, dtype=object),
            **DataFrame([row.called for row in asked], runs.index))
        averaged = self.study.averaged(runs["evaluation"], runs["recipe_number"])
        rows = runs[averaged].sort_values(["recipe_number", "seed"], kind="stable", ignore_index=True)
        rows = rows if rows.empty else self.arrange(rows)
        store, left_out = Store(), []
        for run in runs[~averaged].to_dict("records"):
            folder = store.path(run["id"]).relative_to(store.root)
            left_out.append(f"{entry_name(run['named'], run['changes'])}, seed {run['seed']} ({folder})")
        rows.attrs["left_out"] = left_out
        return rows

    def columns_asked(self, fields: Fields) -> list[str]:
        """The fields asked for that are columns: those of several values, and those of `printed_by`."""
        parsed = {name: self.study.recipe.parse(name, given) for name, given in fields.items() if given != "auto"}
        return [name for name, values in parsed.items() if len(values) > 1 or name in self.printed_by]


def compositions(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What a reader should know of the mean over these runs: whose they are, and where they differ in how they ran."""
    if replaced := sum(run.get("whose") == "replaces ours" for run in runs):
        yield f"{replaced} of yours in place of ours"
    costs: list[dict[str, Any]] = []
    for run in runs:
        costs += run["cost"] if isinstance(run["cost"], list) else [run["cost"]]  # of several splits
    for preposition, name in (("in", "precision"), ("on", "device")):
        counts = collections.Counter(cost.get(name) or f"an unrecorded {name}" for cost in costs)
        if len(counts) > 1:
            (first, count), *others = counts.most_common()
            yield ", ".join([f"{count} runs {preposition} {first}",
                             *(f"{number} {preposition} {other}" for other, number in others)])


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
