"""Experiments: what was trained is a saved command, and what came of it is looked up by the keys of its cells.

`repro/papers/<paper>/experiments.yaml` has an entry for each:

    samplers_with_headroom:
      {table: ohem_vs_active, dataset: multiomniglot, preset: quick, seeds: 0-2, data: {digest: 7de4...},
       fields: {sampler: [random, gradient], batch: 128, dictionary: [256, 1024]},
       says: "Table 3's order where accuracy has room"}

A key holds the digest of the data that a cell was trained on. An entry names it, so that results can be read where these
data are not. The name of a table is an experiment as well: the table with its defaults, on the data that are here.
"""

import dataclasses
import functools
import importlib
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pandas import DataFrame, Series

from repro import papers
from repro.recipe import choose
from repro.run.export import everything
from repro.run.store import Cell
from repro.table import Asked, Table, require_parameter

FILES = "*/experiments.yaml"  # below the papers


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
        data: what its committed cells were trained on: "digest", by the values of the field "by" if there is one, and
            "copy", the file that was taken in, if it is not the official one. Without it, the data that are here.
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
        shared = {name: getattr(self, name) for name in ("dataset", "preset", "seeds", "variant")}
        return {**shared, **self.fields}

    @property
    def declared(self) -> Table:
        """Its table."""
        return papers.tables()[self.table]

    def digest(self, recipe: Any) -> str:
        """Of the data that a recipe is trained on; "" where the entry does not say."""
        digests = self.data.get("digest", "")
        return digests.get(getattr(recipe, self.data["by"]), "") if "by" in self.data else digests

    def asked(self) -> dict[str, tuple[Cell, Asked]]:
        """Its cells by key, seed by seed, each with what is asked for."""
        pairs = self.declared.asked_cells(
            digest=self.digest, version=self.version, earlier=self.earlier, device="cpu", **self.arguments)
        return {cell.key: (cell, row) for cell, row in pairs}


@functools.cache
def experiments() -> dict[str, Experiment]:
    """Every experiment by name: those of each paper, then the tables.

    Raises:
        ValueError: if an entry names a table or parameter that there is not, or a name is there twice.
    """
    known: dict[str, Experiment] = {}
    for path in sorted(Path(papers.__file__).parent.glob(FILES)):
        for name, entry in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            if name in known or name in papers.lines():
                raise ValueError(f"{path}: {name} is the name of two experiments, or of a table; rename one")
            known[name] = _checked(path, name, entry)
    return known | {name: Experiment(name=name, table=name, says=line) for name, line in papers.lines().items()}


def _checked(path: Path, name: str, entry: Mapping[str, Any]) -> Experiment:
    """An entry as an experiment; raises ValueError naming the file if it asks for what there is not."""
    try:
        for part in entry:
            choose("parameter", part, [field.name for field in dataclasses.fields(Experiment)][1:])
        choose("table", entry.get("table"), papers.lines())
        return Experiment(name=name, **entry)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}, {name}: {error}") from error


def find(name: str) -> Experiment:
    """An experiment by name; ValueError names those there are."""
    return experiments()[choose("experiment", name, experiments())]


def results(name: str) -> DataFrame:
    """The table of an experiment, from figures/cells.csv and REPRO_RUNS; trains nothing and needs no real data.

    Columns as of `repro.run_table`; recipes of which no cell is finished have no row. ValueError names the experiments
    if there is none of that name.
    """
    experiment = find(name)
    by_key = {key: row for key, (_, row) in experiment.asked().items()}
    return experiment.declared.numbers(by_key, everything(), experiment.declared.columns_asked(experiment.fields))
