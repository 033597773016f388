"""The papers: each subpackage is one, with its tables, printed numbers, figures, claims and discrepancies.

A paper's own `__init__` has `TITLE` (without it the paper is called as its folder) and `TABLES`, the names of its
tables, and imports nothing: help is quick. Its module `tables` declares them, and how each is drawn. It may have more
modules: `figures` with `PICTURES`, what is drawn of frames and of several experiments; `claims` with `DERIVED`, tables
that its claims are held against besides results and printed ones: by name, whose rows they are made of, and the
function that takes these. Those that no run changes are files, `closed_form/NAME.csv` and, of printed numbers,
`rearranged/NAME.csv`.
What it has as data stands beside them: `experiments.yaml`, `claims.yaml` (see `repro.report.claims`),
`words.yaml`, what readers call what these compare, `discrepancies.csv`, `findings.yaml`, the titles of committed
pictures, and `verdicts.csv`, what came of each printed table and figure. The command line and notebooks hand these to
`repro.report`, which knows no paper.
"""

import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.data.disk import made, read_csv, read_yaml
from repro.recipe import choose

if TYPE_CHECKING:
    from pandas import DataFrame

    from repro.report.claims import Claim
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


def titles() -> dict[str, str]:
    """The title of every paper, by the name of its package."""
    titled = offered("TITLE")
    return {paper: titled.get(paper, paper) for paper in folders()}


def table_names() -> list[str]:
    """The names of all tables, which need no import of these."""
    return [name for names in offered("TABLES").values() for name in names]


def files(name: str) -> dict[str, Path]:
    """This file of every paper that has it, by the name of its package."""
    return {paper: path for paper, folder in folders().items() if (path := folder / name).exists()}


def entries(name: str) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The entries of a file of YAML of all papers, by name: file, and what `made` takes.

    Raises:
        ValueError: if a file cannot be read, or two entries have one name.
    """
    declared = {}
    for paper, path in files(name).items():
        of_paper = read_yaml(path)
        if not isinstance(of_paper, dict):
            raise ValueError(f"{path}: it should be entries by name, NAME: {{says: ..., ...}}")
        for entry in of_paper:
            if not (isinstance(entry, str) and entry):
                raise ValueError(f"{path}: {entry!r} is no name of an entry; write text, numbers in quotes")
        declared[paper] = {entry: (path, values) for entry, values in of_paper.items()}
    return joined(f"entry of {name}", declared)


@functools.cache
def saved() -> dict[str, tuple[Path, dict[str, Any]]]:
    """The `entries` of `experiments.yaml`; ValueError if one has the name of a table."""
    found = entries("experiments.yaml")
    for name in found.keys() & {*table_names()}:
        raise ValueError(f"{found[name][0]}: {name} is the name of a table, too; rename the experiment")
    return found


@functools.cache
def tables() -> "dict[str, Table]":
    """Every table of every paper, by name, in the order in which the papers name them.

    Raises:
        ValueError: if a paper names a table that it does not declare, or two papers or tables have one name, or two
            studies, by which runs and their results are told apart.
    """
    declared: dict[str, dict[str, Table]] = {}
    for paper, of_paper in offered("TABLES", "tables").items():
        declared[paper] = {table: of_paper[choose(f"{paper}.tables: table", table, of_paper)]
                           for table in offered("TABLES")[paper]}
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


def claims() -> "dict[str, tuple[str, Claim]]":
    """The claims of all papers by id, each with the title of its paper; entries of discrepancies have no sentence.

    Raises:
        ValueError: as `entries` and `made`, or if an entry without a sentence is of no discrepancy.
    """
    from repro.report.claims import Claim

    known, titled, found = [*discrepancies()["id"]], titles(), {}
    for name, (path, entry) in entries("claims.yaml").items():
        found[name] = titled[path.parent.name], made(Claim, f"{path}, entry {name}", entry, file=str(path))
        if not found[name][1].says:
            choose(f"{path}: an entry without `says` is of a discrepancy; id", name, known)
    return found


def discrepancies() -> "DataFrame":
    """Where papers disagree with themselves or their code: the rows of each paper's `discrepancies.csv`, with its title
    as `paper`.

    Columns: id, place, paper_says, others_say, and here, what we take; ValueError if two have one id.
    """
    rows = _of_every_paper("discrepancies.csv").drop(columns="folder")
    for name in rows.loc[rows["id"].duplicated(), "id"]:
        raise ValueError(f"discrepancies.csv: {name} is the id of two rows; give one another")
    return rows


def verdicts() -> "DataFrame":
    """What came of every printed table and figure: the rows of each paper's `verdicts.csv`, with its title as `paper`.

    Columns: place; items, the numbered tables and figures that it is about ("Table 4; Table 5"), of a formula none;
    size, on what it was run; verdict, reproduced | in part | not reproduced | undecided | not run; says, why,
    in words; notebook, which runs it; folder, of the paper.
    """
    return _of_every_paper("verdicts.csv")


def _of_every_paper(name: str) -> "DataFrame":
    """The rows of a CSV of every paper that has it, texts, with the paper's title as `paper` and its `folder`."""
    import pandas as pd

    titled = titles()
    return pd.concat([read_csv(path, dtype=str, na_values="").assign(paper=titled[paper], folder=paper)
                      for paper, path in files(name).items()], ignore_index=True)


def joined(what: str, of_papers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What all papers declare of a kind, by name; raises ValueError if two papers use one name, naming both."""
    owners: dict[str, str] = {}
    for paper, declared in of_papers.items():
        for name in declared:
            if (other := owners.setdefault(name, paper)) != paper:
                raise ValueError(f"the papers {other} and {paper} both have the {what} {name!r}; rename one of them")
    return {name: of_papers[paper][name] for name, paper in owners.items()}
