"""What tables say of stored cells whose keys are made up: each as if it had been asked for."""

import contextlib
import json

from repro.data import manifest
from repro.recipe import swept
from repro.table import Asked


def asked_of(table, cell):
    """What a table was asked for where it has the recipe of a row of cells.csv; None where it cannot have it."""
    study, dataset = table.study, manifest.plain(cell["dataset"])
    recipe = study.recipe.from_dict(json.loads(cell["recipe"]))
    named = study.recipe.named_by
    fields = json.loads(cell["changes"])
    of_rows = {name for row in table.rows for name in row if name in study.fields and recipe.uses(name)}
    others = {name: value for name, value in fields.items() if name not in of_rows}
    for given in (others, fields, fields | {name: getattr(recipe, name) for name in of_rows}):
        asked = {name: [value] for name, value in given.items()} | {named: [getattr(recipe, named)]}
        asked |= {"subset": True} if getattr(recipe, "subset", False) else {}
        with contextlib.suppress(ValueError):
            if dataset in table.datasets:
                found = [row for row in table.asked(dataset, cell["preset"], **asked) if row.recipe == recipe]
                if found:
                    return found[0]
    if dataset not in table.datasets or getattr(recipe, named) not in table.known_methods:
        return None
    number = next((at for at, row in enumerate(table.rows) if getattr(recipe, named) in swept(row[named])), 0)
    called = {name: value for name, value in table.rows[number].items() if name not in study.fields}
    return Asked(recipe, number, called, fields, others)  # made when its preset was another


def changed(study, recipe, preset, changes):
    """Those of the fields that were asked for in which a recipe is another than its preset's."""
    usual = study.presets[preset](recipe.dataset, getattr(recipe, recipe.named_by))
    return {name: getattr(recipe, name) for name in study.fields
            if name in changes and getattr(recipe, name) != getattr(usual, name)}


def laid_out(table, cells, also=()):
    """The rows of a table made of stored cells, in the order of its own rows."""
    asked = {cell["key"]: asked_of(table, cell) for cell in cells.to_dict("records")}
    first = next(iter(cells.to_dict("records")))
    usual = [row.recipe for row in table.asked(manifest.plain(first["dataset"]), first["preset"])]
    methods, named = table.known_methods, table.study.recipe.named_by
    order = {key: (row.row, usual.index(row.recipe) if row.recipe in usual else len(usual),
                   methods.index(getattr(row.recipe, named)))
             for key, row in asked.items() if row}
    printed_by = [name for name in table.printed_by if any(row and name in row.changes for row in asked.values())]
    return table.numbers({key: asked[key] for key in sorted(order, key=order.get)}, cells, [*printed_by, *also])
