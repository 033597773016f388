"""The papers: each subpackage is one, with its tables, printed numbers, figures, claims and discrepancies.

A paper's own `__init__` has `TITLE` and `TABLES`, a line for each table, and imports nothing: help is quick. Its module
`tables` declares them, and how each is drawn. It may have more modules: `figures` with `PICTURES`, what is drawn of
frames and of several experiments; `claims` with `DERIVED`, tables that sentences of its `claims.csv` and
`discrepancies.csv` are held against besides results and printed ones; `verdicts.csv` says what came of each printed
table and figure; `findings.yaml` the titles of committed pictures. The command line and notebooks hand
these to `repro.report`, which knows no paper.
"""

import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from repro.data.disk import read_csv, read_yaml

if TYPE_CHECKING:
    from pandas import DataFrame

    from repro.report.plots import Picture
    from repro.table import Table


def folders() -> dict[str, Path]:
    """Where each paper lies, by the name of its package, sorted."""
    places = {package.name: Path(package.module_finder.path) / package.name
              for package in pkgutil.iter_modules(__path__) if package.ispkg}
    return dict(sorted(places.items()))


def offered(name: str, module: str = "") -> dict[str, Any]:
    """The value of that name in every paper's package, or in a module of it, where there is one; papers are sorted."""
    values = {}
    for paper in folders():
        place = ".".join(filter(None, (__name__, paper, module)))
        if importlib.util.find_spec(place) and hasattr(declared := importlib.import_module(place), name):
            values[paper] = getattr(declared, name)
    return values


def lines() -> dict[str, str]:
    """A line for every table, by name."""
    return {table: line for of_paper in offered("TABLES").values() for table, line in of_paper.items()}


@functools.cache
def saved() -> dict[str, tuple[Path, dict[str, Any]]]:
    """The entries of `experiments.yaml` of all papers, each with its file, by name; see `repro.experiments`.

    Raises:
        ValueError: if a file cannot be read, two entries have one name, or one has that of a table.
    """
    entries: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in (folder / "experiments.yaml" for folder in folders().values()):
        if not path.exists():
            continue
        try:
            declared = read_yaml(path)
            if not isinstance(declared, dict):
                raise yaml.YAMLError("it should be experiments by name, NAME: {table: ..., says: ...}")
        except yaml.YAMLError as error:
            told = " ".join(str(error).split())
            raise ValueError(f"{path}: {told}; mend it, or restore it from version control") from error
        for name, entry in declared.items():
            if name in entries or name in lines():
                raise ValueError(f"{path}: {name} is the name of two experiments, or of a table; rename one")
            entries[name] = path, entry
    return entries


def titles() -> dict[str, list[str]]:
    """The names of the tables of each paper, by its title."""
    named_tables = offered("TABLES")
    return {title: [*named_tables[paper]] for paper, title in offered("TITLE").items()}


@functools.cache
def tables() -> "dict[str, Table]":
    """Every table of every paper, by name, in the order in which the papers name them.

    Raises:
        ValueError: if a paper names a table that it does not declare, or two papers or tables have one name, or two
            studies, by which runs and their results are told apart.
    """
    declared: dict[str, dict[str, Table]] = {}
    for paper, of_paper in offered("TABLES", "tables").items():
        if missing := [table for table in offered("TABLES")[paper] if table not in of_paper]:
            raise ValueError(f"the paper {paper} names a table {missing[0]!r}, which its module tables lacks "
                             f"({', '.join(of_paper)}); declare it there, or take its line out")
        declared[paper] = {table: of_paper[table] for table in offered("TABLES")[paper]}
    every, first = joined("table", declared), {}
    for table in every.values():
        other = first.setdefault(table.study.name, table)
        if table.study != other.study:
            raise ValueError(
                f"{other.name} and {table.name} are tables of two studies called {table.study.name!r}, which would "
                "take each other's results for their own; give one of them another name"
            )
    return every


def pictures() -> "dict[str, Picture]":
    """What is drawn of frames and of several experiments, by name; raises ValueError if two have one."""
    return joined("picture", offered("PICTURES", "figures"))


def listed(name: str) -> "DataFrame":
    """The rows of all papers' "claims" or "discrepancies", with the title as `paper`; ValueError if an id is twice."""
    from repro.report.claims import read_list

    rows = _of_every_paper(f"{name}.csv", read_list)
    for row in rows[rows["id"].duplicated()].itertuples():
        raise ValueError(f"{folders()[row.folder] / name}.csv: {row.id} is the id of two rows; give one another")
    return rows.drop(columns="folder")


def verdicts() -> "DataFrame":
    """What came of every printed table and figure: the rows of each paper's `verdicts.csv`, with its title as `paper`.

    Columns: place; items, the numbered tables and figures that it is about ("Table 4; Table 5"), of a formula none;
    size, on what it was run; verdict, reproduced | partly | not | undecided | not run; says, why, in
    words; notebook, which runs it; folder, of the paper.
    """
    return _of_every_paper("verdicts.csv", lambda path: read_csv(path, dtype=str, na_values=""))


def _of_every_paper(file: str, read: "Callable[[Path], DataFrame]") -> "DataFrame":
    """The rows of a file of every paper that has it, with the paper's title as `paper` and its `folder`.

    ValueError if such a paper has no title, or that of another one, whose rows would take the place of its own.
    """
    import pandas as pd

    titled = offered("TITLE")
    paths = {paper: path for paper, folder in folders().items() if (path := folder / file).exists()}
    if lacking := [path for paper, path in paths.items() if not titled.get(paper)]:
        raise ValueError(f"{lacking[0]} is of a paper without TITLE; write one into its __init__.py")
    joined("title", {paper: {titled[paper]: paper} for paper in paths})
    return pd.concat([read(path).assign(paper=titled[paper], folder=paper) for paper, path in paths.items()],
                     ignore_index=True)


def joined(what: str, of_papers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What all papers declare of a kind, by name; raises ValueError if two papers use one name, naming both."""
    owners: dict[str, str] = {}
    for paper, declared in of_papers.items():
        for name in declared:
            if (other := owners.setdefault(name, paper)) != paper:
                raise ValueError(f"the papers {other} and {paper} have both a {what} {name!r}; rename one of them")
    return {name: of_papers[paper][name] for name, paper in owners.items()}
