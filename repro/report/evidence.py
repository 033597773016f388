"""What verdicts rest on: finished cells by data set and recipe, and the logs beside the figures."""

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from repro.data import manifest
from repro.report.levels import EMBEDDED, PAPER, level_of, rank
from repro.report.printed import names
from repro.report.stored import labels, untrained
from repro.report.verdicts import (
    CANNOT,
    NOT_RUN,
    UNKNOWN,
    Deviation,
    Estimate,
    Finding,
    difference,
    from_printed,
    pooled,
)

Estimates = Mapping[str, Estimate | None]
ORIGIN = ["dataset", "preset", "version"]  # of cells whose numbers may be compared


def by_seed(cells: DataFrame, measure: str) -> Series:
    """A measure of cells by seed, without those that lack it."""
    if measure not in cells:
        return Series(dtype=float)
    values = {seed: value for seed, value in zip(cells["seed"], cells[measure], strict=True) if pd.notna(value)}
    return Series(values, dtype=float).sort_index()


class Setting:
    """The cells of one data set and preset.

    Attributes:
        dataset: its label.
        preset: of the recipes.
        level: how far these carry, one of `levels.LEVELS`.
        version: of their training, where there are cells of another one beside them; else None.
    """

    def __init__(self, dataset: str, preset: str, tables: dict[str, DataFrame], version: int | None = None) -> None:
        self.dataset, self.preset, self.level = dataset, preset, level_of(dataset, preset)
        self.version, self._tables = version, tables
        self.deviation = functools.cache(self._deviation)

    def __str__(self) -> str:
        recipe = f"{self.dataset}, {self.preset} recipe"
        return recipe if self.version is None else f"{recipe}, version {self.version}"

    def among(self, field: str, values: Collection[object]) -> "Setting":
        """That of the cells whose recipes have one of these values of a field."""
        tables = {name: cells[cells[field].isin(values)] for name, cells in self._tables.items()}
        return Setting(self.dataset, self.preset, tables, self.version)

    def rows(self, table: str, departing: Mapping[str, object] | None = None, **fields: object) -> DataFrame:
        """Cells of a table whose recipes have these values.

        Args:
            departing: what else they depart in from the rows of the table; nothing by default.
        """
        cells = self._tables.get(table, DataFrame())
        return cells if cells.empty else cells[self._alike(cells, departing, fields)]

    def values(
        self, table: str, measure: str = "linear", departing: Mapping[str, object] | None = None, **fields: object
    ) -> Series:
        """A measure of those cells by seed, without those that lack it."""
        cells = self._tables.get(table, DataFrame())
        if measure not in cells:
            return Series(dtype=float)
        return by_seed(cells.loc[self._alike(cells, departing, fields), ["seed", measure]], measure)

    @staticmethod
    def _alike(cells: DataFrame, departing: Mapping[str, object] | None, fields: Mapping[str, object]) -> np.ndarray:
        """Which cells depart so and have these values, (n,) bool: rows of a hundred columns are slow to copy."""
        wanted = dict(departing or {})
        alike = np.array([away == wanted for away in cells["away"]], dtype=bool)
        for name, value in fields.items():
            alike &= (cells[name] == value).to_numpy() if name in cells else False
        return alike

    def _deviation(self, *tables: str, measure: str = "linear", of: str = "trained") -> Deviation:
        """Between seeds, pooled over the rows of some tables, NaN where none has several seeds.

        Args:
            of: "trained" or "random": untrained encoders scatter for other reasons.
        """
        parts = [DataFrame(columns=["value", "label", "key"])]
        for table in tables:
            cells = self._tables.get(table, DataFrame())
            if measure in cells:
                chosen = self._alike(cells, None, {}) & (untrained(cells) == (of == "random")).to_numpy()
                part = cells.loc[chosen, [measure, "label", "key"]].dropna(subset=measure)
                parts.append(part.rename(columns={measure: "value"}))
        joined = pd.concat([part for part in parts if len(part)] or parts).drop_duplicates("key")
        return pooled(joined["value"], joined["label"])  # a cell may stand in several tables

    def difference(
        self,
        table: str,
        first: Mapping[str, object],
        second: Mapping[str, object],
        measure: str = "linear",
        *,
        like: tuple[str, ...] = (),
    ) -> Estimate | None:
        """The first cells minus the second ones, each given by fields of their recipes.

        Args:
            like: other tables whose seeds tell how far those of this one scatter.
        """
        sides = (self.values(table, measure, **dict(fields)) for fields in (first, second))
        return difference(*sides, self.deviation(table, *like, measure=measure))

    def paired(
        self, table: str, first: Mapping[str, object], second: Mapping[str, object], measure: str = "linear"
    ) -> Estimate | None:
        """As `difference`, but of unknown error unless two seeds are shared.

        For encoders that may have collapsed: how far others scatter says nothing about them.
        """
        sides = (self.values(table, measure, **dict(fields)) for fields in (first, second))
        return difference(*sides, UNKNOWN)

    def from_printed(
        self, table: str, published: float, measure: str = "linear", *, of: str = "trained", **fields: object
    ) -> Estimate | None:
        """Our mean of those cells minus a printed number."""
        deviation = self.deviation(table, measure=measure, of=of)
        return from_printed(self.values(table, measure, **fields), published, deviation)

    def targets(self, table: str) -> list[str]:
        """Where the encoders of a table were fine-tuned, if they were."""
        found = self.rows(table)
        return sorted({name for text in found.get("targets", ()) for name in text.split(",")} & set(found.columns))


class Evidence:
    """All that there is.

    Args:
        cells: by table the finished cells that stand in it; smoke runs are passed over.
        folder: of figures, with the logs beside them.
    """

    def __init__(self, cells: Mapping[str, DataFrame], folder: Path) -> None:
        self._cells = {table: _named(found[found["preset"] != "smoke"]) for table, found in cells.items()}
        self.folder = folder

    def settings(self, *tables: str) -> list[Setting]:
        """One for every data set, preset and version of the training with cells of one of the tables.

        Those that carry furthest come first, of equal ones those with most cells but for seeds, then the newest:
        numbers of several versions are not compared.
        """
        parts: dict[tuple[str, str, int], dict[str, DataFrame]] = {}
        for table in tables:
            for place, cells in self._cells.get(table, DataFrame(columns=ORIGIN)).groupby(ORIGIN):
                parts.setdefault(place, {})[table] = cells
        found, versions = [], Counter((dataset, preset) for dataset, preset, _ in parts)
        for (dataset, preset, version), of_tables in parts.items():
            entries = sum(cells["label"].nunique() for cells in of_tables.values())
            named = version if versions[dataset, preset] > 1 else None
            found.append((Setting(dataset, preset, of_tables, named), entries, version))
        found.sort(key=lambda each: (rank(each[0].level), each[0].dataset, each[0].preset, -each[1], -each[2]))
        return [setting for setting, *_ in found]

    def setting(self, dataset: str, preset: str, *tables: str) -> Setting:
        """That one, without cells if there are none."""
        found = [each for each in self.settings(*tables) if (each.dataset, each.preset) == (dataset, preset)]
        return found[0] if found else Setting(dataset, preset, {})

    def logs(self, name: str) -> list[DataFrame]:
        """The logs of a figure, one for every data set, those that carry furthest first."""
        found = [pd.read_csv(path) for path in sorted(self.folder.glob(f"{name}_*.csv"))]
        return sorted(found, key=lambda log: rank(level_of(log["dataset"].iloc[0], log["preset"].iloc[0])))

    def figures(self, names: Iterable[str]) -> list[str]:
        """PNG files in the folder that are called by one of the names, or else begin with it and a data set."""
        files = sorted(path.name for path in self.folder.glob("*.png"))
        found = []
        for name in names:
            exact = f"{name}.png"
            found += [exact] if exact in files else [file for file in files if file.startswith(f"{name}_")]
        return found


def _named(cells: DataFrame) -> DataFrame:
    """Cells of a table with what they are called, and what they depart in, the setting they are made in counted."""
    pairs = zip(cells["setting"], cells["departures"], strict=True)
    away = Series([{**setting, **departures} for setting, departures in pairs], cells.index, dtype=object)
    return cells.assign(label=labels(cells), away=away)


Check = Callable[[Evidence], Finding]


def measured(
    tables: tuple[str, ...],
    compare: Callable[[Setting], Estimates],
    judge: Callable[[Estimates], str],
    *,
    datasets: tuple[str, ...] = (),
    numbers: bool = False,
) -> Check:
    """A check of finished cells: the verdict of those that carry furthest, with what the others say.

    Args:
        tables: whose cells it needs.
        compare: the differences in a setting by name, None where a side is missing; empty if it is not concerned.
        judge: `verdicts.above`, `within` or `reproduced` with its bound.
        datasets: which count, all by default; embedded data always do.
        numbers: the claim is on printed numbers, on which only the paper's recipe on real data has a say.
    """

    def check(evidence: Evidence) -> Finding:
        findings = []
        for setting in evidence.settings(*tables):
            concerned = not datasets or setting.level == EMBEDDED or manifest.plain(setting.dataset) in datasets
            if concerned and (setting.level == PAPER or not numbers):
                estimates = compare(setting)
                if any(estimate is not None for estimate in estimates.values()):
                    findings.append((setting, _found(setting, estimates, judge(estimates))))
        if not findings:
            where = [" or ".join(tables), " or ".join(datasets), "paper recipe on real data" if numbers else ""]
            return Finding(NOT_RUN, "", f"none of the cells compared is finished ({'; '.join(filter(None, where))})")
        (_, first), *others = findings
        also = [f"{setting}: {finding.verdict}" for setting, finding in others]
        return first._replace(evidence=". Also ".join(filter(None, (first.evidence, "; ".join(also)))))

    return check


def unprinted(evidence: Evidence, table: str, what: str) -> Finding:
    """For a sentence on numbers of a main paper, which the text we had does not print.

    Raises:
        ValueError: if there is such a printed table by now, and the sentence should have a predicate.
    """
    if table in names():
        raise ValueError(f"{table} is among the printed numbers: compare with it")
    return Finding(CANNOT, "", f"{what} (not in the text we had)")


def of_log(log: DataFrame, verdict: str, told: str) -> Finding:
    """A finding on the log of a figure."""
    dataset, preset = log["dataset"].iloc[0], log["preset"].iloc[0]
    return Finding(verdict, level_of(dataset, preset), f"{dataset}, {preset} recipe: {told}")


def _found(setting: Setting, estimates: Estimates, verdict: str) -> Finding:
    told = [f"{name} {each}" for name, each in estimates.items() if each is not None]
    missing = [name for name, each in estimates.items() if each is None]
    told += [f"not run: {', '.join(missing)}"] if missing else []
    return Finding(verdict, setting.level, f"{setting}: {'; '.join(told)}")
