"""What the tables of all papers share: cells from recipes, training them, our numbers beside the printed ones."""

import dataclasses
import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from pandas import DataFrame, Series
from tqdm.auto import tqdm

from repro import manifest
from repro.recipe import Recipe, Rows, Values, choose, closest
from repro.run import device as devices
from repro.run.compare import beside
from repro.run.engine import pool_of, run_cells
from repro.run.fit import Learner
from repro.run.plan import plan
from repro.run.store import Cell, Store

Returned = TypeVar("Returned")
Varied = TypeVar("Varied", bound=Recipe)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """A printed table.

    Attributes:
        run: trains what is missing and makes the table.
        cells: lists what it needs.
        learners: of a cell on a device, what is trained, one after the other.
        layout: turns finished cells, the name of their preset and of their data set into its rows.
        methods: values of a recipe's first field below, in the order of rows.
        fields: of the recipes, which place a cell in the table; `layout` finds them as columns.
        varied: those of them that differ between the rows of one method; an entry names them.
        presets: by name, what makes a recipe from a data set and a method.
        example: a data set and a method of the table, to show the recipe of.
        fixed: of a preset, fields that the table sets in the recipes of methods that use them, with their sources.
        constants: of a recipe, what no field of it holds: (name, value, source) of the optimiser and of views.
    """

    run: Callable[..., DataFrame]
    cells: Callable[..., list[Cell]]
    learners: Callable[[Cell, torch.device], Iterator[Learner]]
    layout: Callable[[DataFrame, str, str], DataFrame]
    methods: Sequence[str]
    fields: Sequence[str]
    varied: Sequence[str]
    presets: Mapping[str, Callable[..., Recipe]]
    example: tuple[str, str]
    fixed: Callable[[str], Values] = lambda preset: {}
    constants: Callable[[Any], Rows]

    def described(self, preset: str, dataset: str, method: str, **changes: Any) -> Rows:
        """What the table trains a method with: (name, value, source).

        Raises:
            ValueError: if there is no such preset, data set or method in this table.
        """
        choose("preset", preset, self.presets)
        choose(self.fields[0], method, self.methods)
        usual = self.presets[preset](dataset, method, **changes)
        fixed = {name: value for name, value in self.fixed(preset).items() if usual.uses(name)}
        recipe = usual.replace(**{name: value for name, (value, _) in fixed.items()})
        return [*recipe.described(fixed), *self.constants(recipe)]


def checked_names(recipe: type[Recipe]) -> Callable[[Callable[..., list[Cell]]], Callable[..., list[Cell]]]:
    """A table's function of cells with every field of the recipe that it does not set itself as a parameter.

    "auto" leaves a field as the preset has it. The signature has them all, for whoever asks what may be given.

    Raises:
        TypeError: by the function, if it is given another name; the message has the closest of its parameters.
    """

    def with_fields(cells: Callable[..., list[Cell]]) -> Callable[..., list[Cell]]:
        signature = inspect.signature(cells)
        own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {each.name for each in own} | {recipe.named_by}
        further = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default="auto")
            for field in dataclasses.fields(recipe)
            if field.name not in taken
        ]
        names = [each.name for each in (*own, *further)]

        @functools.wraps(cells)
        def checked(*values: Any, **choices: Any) -> list[Cell]:
            for name in choices:
                if name not in names:
                    known = f"they are {', '.join(names)}{closest(name, names)}"
                    raise TypeError(f"{name!r} is not a parameter of {cells.__name__}; {known}")
            usual = [each.name for each in further if choices.get(each.name) == "auto"]
            return cells(*values, **{name: value for name, value in choices.items() if name not in usual})

        vars(checked)["__signature__"] = signature.replace(parameters=[*own, *further])
        return checked

    return with_fields


def resolved(dataset: str, preset: str, datasets: Collection[str], presets: Collection[str]) -> str:
    """The preset with "auto" resolved: paper on real data, quick on embedded data.

    Raises:
        ValueError: if data set or preset do not exist; the message names those that do.
    """
    choose("dataset", dataset, datasets)
    choose("preset", preset, ("auto", *presets))
    if preset != "auto":
        return preset
    return "quick" if manifest.embedded(dataset) else "paper"


def swept(rows: Sequence[Callable[..., Varied]], fields: Mapping[str, Any], **bundle: Any) -> list[Varied]:
    """The recipes of a table's rows with every combination of the fields asked for, equal ones once.

    A row whose training or evaluation does not use a field keeps it as its preset has it, so that it is the usual cell.

    Args:
        rows: what makes the recipe of a row, given the fields to change.
        fields: by name what is asked for, see `Recipe.parse`.
        **bundle: fields that are changed together, those of a variant.

    Raises:
        TypeError: if there is no such field.
        ValueError: if a value is none of its field's, or no row uses a field; the message says who does.
    """
    usual = [row() for row in rows]
    values = {name: type(usual[0]).parse(name, given) for name, given in fields.items()}
    recipes, used = _combined(rows, values, bundle)
    for name in fields:
        if name not in used:
            _refuse(name, fields[name], usual)
    return recipes


def with_variant(
    rows: Sequence[Callable[..., Varied]], fields: Mapping[str, Any], variant: str, changes: Mapping[str, Any]
) -> list[Varied]:
    """`swept`, with the fields that a variant bundles changed in the rows that use them; "none" has none.

    Raises:
        TypeError, ValueError: as `swept`, and where the variant changes no recipe, naming who uses what it changes.
    """
    varied = swept(rows, fields, **changes)
    if variant == "none":
        return varied
    plain = rows[0]()
    recipes, _ = _combined(rows, {name: plain.parse(name, given) for name, given in fields.items()}, {})
    if varied == recipes:
        chosen = ", ".join(dict.fromkeys(getattr(recipe, plain.named_by) for recipe in recipes))
        users = dict.fromkeys(user for name in changes for user in plain.users(name))
        raise ValueError(
            f"variant={variant!r} changes nothing in the training of {chosen}; leave it out, or choose what it "
            f"changes where the recipe is not so anyway: {', '.join(users)}"
        )
    return varied


def _combined(
    rows: Sequence[Callable[..., Varied]], values: Mapping[str, Sequence[Any]], bundle: Mapping[str, Any]
) -> tuple[list[Varied], set[str]]:
    """The recipes of `swept`, and which of the fields that change are used by any."""
    recipes: list[Varied] = []
    used: set[str] = set()
    for row in rows:
        plain = row()
        for combination in itertools.product(*values.values()):
            asked = {**bundle, **dict(zip(values, combination, strict=True))}
            kept = {name: value for name, value in asked.items() if plain.uses(name, **asked)}
            used |= kept.keys()
            recipes.append(row(**kept))
    return list(dict.fromkeys(recipes)), used


def _refuse(name: str, given: Any, usual: Sequence[Recipe]) -> None:
    """Raise a ValueError on a field that none of the recipes uses."""
    plain = usual[0]
    chosen = ", ".join(dict.fromkeys(getattr(recipe, plain.named_by) for recipe in usual))
    users = plain.users(name)
    whose = f"{', '.join(users)} use it" if users else "nothing that is trained so does"
    raise ValueError(f"{name}={given!r} changes nothing of {chosen}; {whose}: leave it out, or choose these too")


def optimiser(kind: type[torch.optim.Optimizer], source: str) -> tuple[str, Any, str]:
    """An optimiser as a row of `Table.described`, with its parameters that recipes do not set."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}
    kept = {name: defaults[name] for name in ("betas", "eps", "dampening", "nesterov") if name in defaults}
    told = ", ".join(f"{name}={value}" for name, value in kept.items())
    return "optimiser", f"{kind.__name__}({told})", source


def entry_of(name: str, recipe: Recipe, usual: Recipe, shown: Sequence[str] = ()) -> str:
    """The name, the fields shown, and whatever else departs from the usual recipe: "AE, layers=3"."""
    values, expected = recipe.to_dict(), usual.to_dict()
    names = [*shown, *(field for field in values if field not in shown and values[field] != expected[field])]
    return name + "".join(f", {field}={values[field]}" for field in names)


def trained(
    cells: list[Cell],
    table: Table,
    train: Callable[..., dict[str, Any]],
    device: str,
    engine: str,
    workers: str | int,
) -> DataFrame:
    """Bring the cells to their results and lay these out.

    Args:
        cells: of one preset and data set.
        table: which they are for.
        train: trains one run, `train(run, progress, device=...)`; see `repro.run.engine`.
        device, engine, workers: as a table's function takes them.
    """
    where, store = devices.resolve(device), Store(manifest.runs_root())
    pool = pool_of(engine, workers, cells, where)
    missing = any(store.run(cell).result is None for cell in cells)
    if missing and cells[0].recipe.precision == "auto" and devices.first():
        tqdm.write(devices.precision_in_words(cells[0].recipe, where), file=sys.stderr)
    results = run_cells(cells, functools.partial(train, device=where), store, pool=pool)
    placed = results.join(DataFrame([cell.recipe.to_dict() for cell in cells])[list(table.fields)])
    return table.layout(placed, cells[0].preset, cells[0].dataset)


def planned(table: Table, choices: Mapping[str, Any], engine: str, workers: str | int) -> str:
    """What the table would cost, see `repro.run.plan.plan`; nothing of it is trained.

    Args:
        table: of which cells.
        choices: parameters of the table's function, `device` among them.
        engine, workers: as a table's function takes them.
    """
    cells = called(table.cells, choices)
    where = devices.resolve(choices["device"])
    pool = pool_of(engine, workers, cells, where)
    return plan(cells, table.learners, Store(manifest.runs_root()), where, pool)


def called(function: Callable[..., Returned], choices: Mapping[str, Any]) -> Returned:
    """What a function makes of those choices that are its parameters; the device is one only of some tables' cells."""
    accepted = inspect.signature(function).parameters
    return function(**{name: value for name, value in choices.items() if name in accepted})


def with_measures(
    rows: DataFrame,
    results: DataFrame,
    published: Series,
    preset: str,
    dataset: str,
    measures: Sequence[str],
) -> DataFrame:
    """`rows`, by entry, with `linear` beside the printed values (not on embedded data), then means of the measures.

    A measure that some seed of an entry lacks has no mean there: it would be one of other seeds than `ours`. Where
    entries are of several versions of training or evaluation, last columns say of which.
    """
    values = results.rename(columns={"linear": "value"})
    comparable = None if manifest.embedded(dataset) else published
    table = beside(rows, values, comparable, preset=preset, dataset=dataset)
    by_entry = results.reindex(columns=["entry", *measures]).groupby("entry")
    measured = by_entry.mean().where(by_entry.count().eq(by_entry.size(), axis=0))
    return table.join(measured).join(versions_of(results)).reset_index(drop=True)


def versions_of(results: DataFrame) -> DataFrame:
    """The versions of training and evaluation behind each entry, those of the two that are not the same everywhere."""
    given = results.reindex(columns=["version", "evaluation"]).fillna({"evaluation": 1})
    several = [name for name in given if given[name].nunique() > 1]
    named = given[several].map("{:g}".format).groupby(results["entry"])
    return named.agg(lambda column: ", ".join(sorted(set(column))))
