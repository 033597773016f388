"""What verdicts rest on: finished cells by data set and recipe, and the logs beside the figures."""

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from repro.data import manifest
from repro.report import verdicts
from repro.report.logs import Log, labels, read, untrained
from repro.report.verdicts import UNKNOWN, Estimate, Estimates, Finding, level_of, rank

Fields = Mapping[str, object]  # of recipes
ORIGIN = ["dataset", "preset", "version"]  # of cells whose numbers may be compared
NO_CELLS = DataFrame(columns=[*ORIGIN, "away"])


class Setting:
    """The cells of one data set and preset.

    Attributes:
        dataset: its label.
        preset: of the recipes.
        level: how far these carry, one of `verdicts.LEVELS`.
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

    def rows(self, table: str, departing: Fields | None = None, **fields: object) -> DataFrame:
        """Cells of a table whose recipes have these values.

        Args:
            departing: what else they depart in from the rows of the table; nothing by default.
        """
        cells = self._cells(table)
        return cells[_alike(cells, departing, fields)]

    def values(
        self, table: str, measure: str = "linear", departing: Fields | None = None, **fields: object
    ) -> Series:
        """A measure of those cells by seed, without those that lack it."""
        cells = self._cells(table)
        if measure not in cells:
            return Series(dtype=float)
        alike = _alike(cells, departing, fields)  # of the columns needed: rows of a hundred are slow to copy
        return by_seed(cells["seed"].to_numpy()[alike], cells[measure].to_numpy()[alike])

    def _cells(self, table: str) -> DataFrame:
        return self._tables.get(table, NO_CELLS)

    def _deviation(self, *tables: str, measure: str = "linear", of: str = "trained") -> verdicts.Deviation:
        """Between seeds, pooled over the rows of some tables, NaN where none has several seeds.

        Args:
            of: "trained" or "random": untrained encoders scatter for other reasons.
        """
        parts = [DataFrame({measure: Series(dtype=float), "label": "", "key": ""})]
        for cells in (self._cells(table) for table in tables if measure in self._cells(table)):
            alike = _alike(cells) & (untrained(cells) == (of == "random")).to_numpy()
            parts.append(cells.loc[alike, [measure, "label", "key"]].dropna())
        rows = pd.concat([part for part in parts if len(part)] or parts).drop_duplicates("key")
        return verdicts.pooled(rows[measure], rows["label"])  # a cell may stand in several tables

    def difference(
        self, table: str, first: Fields, second: Fields, measure: str = "linear", *, like: tuple[str, ...] = (),
        shared: bool = False,
    ) -> Estimate | None:
        """The first cells minus the second ones, each given by fields of their recipes.

        Args:
            like: other tables whose seeds tell how far those of this one scatter.
            shared: of unknown error unless both sides share two seeds, for encoders that may have collapsed: how far
                others scatter says nothing about them.
        """
        sides = (self.values(table, measure, **fields) for fields in (first, second))
        untrained_both = all("random" in (side.get("objectives"), side.get("method")) for side in (first, second))
        of = "random" if untrained_both else "trained"
        deviation = UNKNOWN if shared else self.deviation(table, *like, measure=measure, of=of)
        return verdicts.difference(*sides, deviation)

    def from_printed(
        self, table: str, published: float, measure: str = "linear", *, of: str = "trained", **fields: object
    ) -> Estimate | None:
        """Our mean of those cells minus a printed number."""
        deviation = self.deviation(table, measure=measure, of=of)
        return verdicts.from_printed(self.values(table, measure, **fields), published, deviation)

    def targets(self, table: str) -> list[str]:
        """Where the encoders of a table were fine-tuned; nowhere where linear probes read them instead."""
        cells = self._cells(table)
        if "linear" in cells and cells["linear"].notna().any():
            return []
        return sorted({name for text in cells.get("targets", ()) for name in text.split(",")} & set(cells.columns))


class Evidence:
    """All that there is.

    Args:
        cells: by table the finished cells that stand in it; smoke runs are passed over.
        folder: of figures, with the logs beside them.
        kept: what logs there may be, by name.
    """

    def __init__(self, cells: Mapping[str, DataFrame], folder: Path, kept: Mapping[str, Log]) -> None:
        self._cells = {table: _named(of_table[of_table["preset"] != "smoke"]) for table, of_table in cells.items()}
        self.folder, self._kept = folder, kept
        self.settings = functools.cache(self._settings)

    def _settings(self, *tables: str) -> list[Setting]:
        """One for every data set, preset and version of the training with cells of one of the tables.

        Those that carry furthest come first, of equal ones those with most of a table's own rows, then the newest:
        numbers of several versions are not compared.
        """
        parts: dict[tuple[str, str, int], dict[str, DataFrame]] = {}
        for table in tables:
            for origin, cells in self._cells.get(table, NO_CELLS).groupby(ORIGIN):
                parts.setdefault(origin, {})[table] = cells
        settings, versions = [], Counter((dataset, preset) for dataset, preset, _ in parts)
        for (dataset, preset, version), of_tables in parts.items():
            entries = sum(cells.loc[~cells["away"].map(bool), "label"].nunique() for cells in of_tables.values())
            setting = Setting(dataset, preset, of_tables, version if versions[dataset, preset] > 1 else None)
            settings.append(((rank(setting.level), dataset, preset, -entries, -version), setting))
        return [setting for _, setting in sorted(settings, key=lambda pair: pair[0])]

    def setting(self, dataset: str, preset: str, *tables: str) -> Setting:
        """That one, without cells if there are none."""
        settings = self.settings(*tables)
        alike = [setting for setting in settings if (setting.dataset, setting.preset) == (dataset, preset)]
        return alike[0] if alike else Setting(dataset, preset, {})

    def logs(self, name: str) -> list[DataFrame]:
        """The logs of a figure, one for every data set, those that carry furthest first; raises as `logs.read`."""
        logs = [read(path, self._kept[name]) for path in sorted(self.folder.glob(f"{name}_*.csv"))]
        return sorted(logs, key=lambda log: rank(level_of_log(log)))

    def figures(self, names: Iterable[str]) -> list[str]:
        """PNG files in the folder that are called by one of the names, or else begin with it and a data set."""
        files = sorted(path.name for path in self.folder.glob("*.png"))
        return [file for name in names for file in files
                if file == f"{name}.png" or (file.startswith(f"{name}_") and f"{name}.png" not in files)]


def _named(cells: DataFrame) -> DataFrame:
    """Cells of a table with what they are called, and what they depart in, the setting they are made in counted."""
    pairs = zip(cells["setting"], cells["departures"], strict=True)
    away = Series([{**setting, **departures} for setting, departures in pairs], cells.index, dtype=object)
    return cells.assign(label=labels(cells), away=away)


def _alike(cells: DataFrame, departing: Fields | None = None, fields: Fields | None = None) -> np.ndarray:
    """Which cells depart so and have these values, (n,) bool."""
    departing = departing or {}
    alike = np.fromiter((away == departing for away in cells["away"]), bool, len(cells))
    for name, value in (fields or {}).items():
        alike &= (cells[name] == value).to_numpy() if name in cells else False
    return alike


def by_seed(seeds: Collection[int], values: Collection[float]) -> Series:
    """A measure by seed, without cells that lack it; of a seed's cells the last."""
    known = {seed: value for seed, value in zip(seeds, values, strict=True) if pd.notna(value)}
    return Series(known, dtype=float).sort_index()


def level_of_log(log: DataFrame) -> str:
    """How far a log carries, see `verdicts.level_of`."""
    return level_of(log["dataset"].iloc[0], log["preset"].iloc[0])


Check = Callable[[Evidence], Finding]
Measure = Callable[[Evidence], str]


def measured(
    tables: tuple[str, ...],
    compare: Callable[[Setting], Estimates],
    judge: Callable[[Estimates], str],
    *,
    datasets: tuple[str, ...] = (),
    numbers: bool = False,
) -> Check:
    """A check of finished cells: the verdict of those that carry furthest, with what the others say.

    Of the versions of a data set and preset that comes first which has most of what is compared, then most runs of it,
    on the side with fewer, then the newest.

    Args:
        tables: whose cells it needs.
        compare: the differences in a setting by name, None where a side is missing; empty if it is not concerned.
        judge: `verdicts.above`, `within` or `reproduced` with its bound.
        datasets: which count, all by default; those that come with the package always do.
        numbers: the claim is on printed numbers, on which only the paper's recipe on real data has a say.
    """

    def check(evidence: Evidence) -> Finding:
        findings = []
        for setting in evidence.settings(*tables):
            bundled = setting.level == verdicts.EMBEDDED
            concerned = not datasets or bundled or manifest.plain(setting.dataset) in datasets
            if concerned and (setting.level == verdicts.PAPER or not numbers):
                estimates = compare(setting)
                if known := [estimate.runs for estimate in estimates.values() if estimate is not None]:
                    most = -len(known), -sum(known), -(setting.version or 0)
                    order = rank(setting.level), setting.dataset, setting.preset, *most
                    findings.append((order, setting, judge(estimates), estimates))
        if not findings:
            where = [" or ".join(tables), " or ".join(datasets), "paper recipe on real data" if numbers else ""]
            said = f"none of the cells compared is finished ({'; '.join(filter(None, where))})"
            return Finding(verdicts.NOT_RUN, "", said)
        (_, first, verdict, estimates), *others = sorted(findings, key=lambda finding: finding[0])
        missing = ", ".join(name for name, estimate in estimates.items() if estimate is None)
        said = "; ".join(filter(None, (verdicts.listed(estimates), f"not run: {missing}" if missing else "")))
        also = "; ".join(f"{setting}: {other}" for _, setting, other, _ in others)
        return Finding(verdict, first.level, f"{first}: {said}" + (f". Also {also}" if also else ""))

    return check
