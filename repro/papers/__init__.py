"""The papers: each subpackage is one, with its tables, printed numbers, figures, claims and discrepancies.

A paper's own `__init__` has `TITLE` and `TABLES`, a line for each table, and imports nothing: help is quick. Its module
`tables` declares them. It may have more modules: `figures` with `FIGURES`, drawings by the name of the table or log
that they are of, and `FURTHER`, what draws from several; `logs` with `LOGS`; `claims` with `CLAIMS` and
`DISCREPANCIES`. The command line and notebooks hand these to `repro.report`, which knows no paper.
"""

import functools
import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

    from repro.report.evidence import Evidence
    from repro.report.logs import Log
    from repro.report.redraw import Drawing
    from repro.report.verdicts import Claim, Discrepancy
    from repro.run.store import Store
    from repro.table import Table


def names() -> list[str]:
    """The papers, by the names of their subpackages, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def paper(name: str) -> ModuleType:
    """The subpackage of a paper; nothing of what its tables need is imported."""
    return importlib.import_module(f"{__name__}.{name}")


@functools.cache
def tables() -> "dict[str, Table]":
    """Every table of every paper, by name, in the order in which the papers name them.

    Raises:
        ValueError: if a paper names a table that it does not declare, or two tables have one name, or two studies, by
            which cells and their results are told apart.
    """
    declared = {}
    for paper_name in names():
        of_paper = importlib.import_module(f"{__name__}.{paper_name}.tables").TABLES
        for name in paper(paper_name).TABLES:
            if name not in of_paper:
                raise ValueError(f"the paper {paper_name} names a table {name!r}, which its module tables lacks "
                                 f"({', '.join(of_paper)}); declare it there, or take its line out")
        declared[paper_name] = {name: of_paper[name] for name in paper(paper_name).TABLES}
    joined = _joined("table", declared)
    first: dict[str, Table] = {}
    for name, table in joined.items():
        other = first.setdefault(table.study.name, table)
        if table.study != other.study:
            raise ValueError(
                f"{other.name} and {name} are tables of two studies called {table.study.name!r}, which would take each "
                "other's results for their own; give one of them another name"
            )
    return joined


def lines() -> dict[str, str]:
    """A line for every table, by name."""
    return {table: line for name in names() for table, line in paper(name).TABLES.items()}


def titles() -> dict[str, list[str]]:
    """The names of the tables of each paper, by its title."""
    return {paper(name).TITLE: [*paper(name).TABLES] for name in names()}


def named() -> set[str]:
    """The fields that name what is trained, of all tables' studies."""
    return {table.study.recipe.named_by for table in tables().values()}


def offered(module: str, name: str) -> dict[str, Any]:
    """What papers call so in a module of theirs, by paper, of those that have it."""
    found = {}
    for paper_name in names():
        place = f"{__name__}.{paper_name}.{module}"
        if importlib.util.find_spec(place) and hasattr(importlib.import_module(place), name):
            found[paper_name] = getattr(importlib.import_module(place), name)
    return found


def drawings() -> "dict[str, Drawing]":
    """How tables and logs are drawn, by name; raises ValueError if two have one."""
    return _joined("figure", offered("figures", "FIGURES"))


def logs() -> "dict[str, Log]":
    """What figures need beside results, by name; raises ValueError if two have one."""
    return _joined("log", offered("logs", "LOGS"))


def claims() -> "list[Claim]":
    """The checkable sentences of all papers."""
    return [claim for of_paper in offered("claims", "CLAIMS").values() for claim in of_paper]


def discrepancies() -> "list[Discrepancy]":
    """Where papers disagree with themselves or with their released code."""
    return [discrepancy for of_paper in offered("claims", "DISCREPANCIES").values() for discrepancy in of_paper]


def evidence(dataset: str = "all", *, preset: str = "auto", seeds: str | int = "all") -> "Evidence":
    """What verdicts rest on: finished cells, and the logs in figures/.

    A table's cells on a data set, by one preset, whose seeds cannot be averaged are no evidence; stderr says so.

    Args:
        dataset, preset, seeds: which cells, as for `repro.report.logs.stored`.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
    """
    from repro.data import manifest
    from repro.report.evidence import Evidence
    from repro.report.logs import stored
    from repro.table import standing, without_mixed

    found = standing(tables().values(), stored(dataset, preset=preset, seeds=seeds))
    cells, left_out = without_mixed(tables().values(), found)
    for line in left_out:
        print(f"repro: left out of the evidence: {line}", file=sys.stderr)
    return Evidence(cells, manifest.project_root() / "figures")


def judged(
    dataset: str = "all",
    *,
    preset: str = "auto",
    seeds: str | int = "all",
    paper: str = "all",
    verdict: str = "all",
    level: str = "all",
) -> "DataFrame":
    """The claims of all papers with their verdicts, see `repro.report.claims.judge`.

    Args:
        dataset, preset, seeds: which finished cells count, as for `evidence`.
        paper, verdict, level: which claims, as for `repro.report.claims.chosen`.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
    """
    from repro.report.claims import chosen, judge

    found = judge(claims(), evidence(dataset, preset=preset, seeds=seeds))
    return chosen(found, paper=paper, verdict=verdict, level=level)


def measured(dataset: str = "all", *, preset: str = "auto", seeds: str | int = "all") -> "DataFrame":
    """The discrepancies of all papers, see `repro.report.claims.measured_discrepancies`; cells as for `evidence`."""
    from repro.report.claims import measured_discrepancies

    return measured_discrepancies(discrepancies(), evidence(dataset, preset=preset, seeds=seeds))


def export_logs(finished: "DataFrame", store: "Store", folder: Path) -> list[Path]:
    """Write the logs that figures need of the store's finished cells to a folder; see `repro.report.logs.export`."""
    from repro.report.logs import export
    from repro.table import standing

    return export(logs(), standing(tables().values(), finished), store, folder)


def redraw(cells: "DataFrame", folder: Path) -> list[Path]:
    """Draw every figure from stored cells and the logs in a folder; see `repro.report.redraw.redraw`."""
    from repro.report.redraw import redraw as drawn
    from repro.table import standing

    standing_cells = standing(tables().values(), cells)
    written = drawn(tables(), standing_cells, drawings(), logs(), folder)
    for further in offered("figures", "FURTHER").values():
        written += [path for draw in further for path in draw(standing_cells, folder)]
    return written


def _joined(what: str, declared: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What papers declare of a kind, by its own names; raises ValueError, naming both papers, if two have one."""
    joined: dict[str, Any] = {}
    for paper_name, of_paper in declared.items():
        for name, value in of_paper.items():
            if name in joined:
                other = next(other for other in declared if name in declared[other])
                raise ValueError(f"the papers {other} and {paper_name} have both a {what} {name!r}; rename one of them")
            joined[name] = value
    return joined
