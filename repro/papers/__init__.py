"""The papers: each subpackage is one, with its tables, printed numbers, figures, claims and discrepancies.

A paper's own `__init__` has `TITLE` and `TABLES`, a line for each table, and imports nothing: help is quick. Its module
`tables` declares them.
"""

import functools
import importlib
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repro.table import Table


def names() -> list[str]:
    """The papers, by the names of their subpackages, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def paper(name: str) -> ModuleType:
    """The subpackage of a paper; nothing of what its tables need is imported."""
    return importlib.import_module(f"{__name__}.{name}")


@functools.cache
def tables() -> "dict[str, Table]":
    """Every table of every paper, by name, in the order in which the papers name them."""
    declared = {}
    for name in names():
        found = importlib.import_module(f"{__name__}.{name}.tables").TABLES
        declared |= {table: found[table] for table in paper(name).TABLES}
    return declared


def lines() -> dict[str, str]:
    """A line for every table, by name."""
    return {table: line for name in names() for table, line in paper(name).TABLES.items()}
