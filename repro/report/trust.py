"""What a stored table can be trusted for: its recipe, its seeds, how far it is from print, its level of evidence."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import pandas as pd
from pandas import DataFrame, Series

from repro.report.elements import only, words
from repro.report.levels import PAPER, level_of, rank
from repro.report.stored import untrained

ENOUGH = 3  # seeds from which a mean and a deviation say something
RESULTS = {"ours", "std", "n_seeds", "published", "difference", "preset", "dataset"}  # of every table of results


class Trust(NamedTuple):
    """The entries of a table that share a preset, at a glance.

    Attributes:
        dataset, preset: of all of them.
        changed: whether every entry departs from the recipe, as it says.
        level: of evidence, one of `levels.LEVELS`.
        entries, finished: how many there are, and how many have a number of ours.
        seeds: fewest and most seeds of a finished entry, (0, 0) if none is finished.
        enough: finished entries of `ENOUGH` seeds or more.
        compared: finished entries that have a printed number and may be held against it, see `distances`.
        median: of the absolute differences from these, in points; NaN if there are none.
        farthest: the entry with the largest one, and that difference, signed, in points; None if there are none.
    """

    dataset: str
    preset: str
    changed: bool
    level: str
    entries: int
    finished: int
    seeds: tuple[int, int]
    enough: int
    compared: int
    median: float
    farthest: tuple[str, float] | None

    def recipe_in_words(self) -> str:
        """"paper", or "paper, changed as each entry says"."""
        return f"{self.preset}, changed as each entry says" if self.changed else self.preset

    def seeds_in_words(self) -> str:
        """"3", or "1 to 3, 3 or more in 5 of 16 entries"."""
        fewest, most = self.seeds
        share = f", {ENOUGH} or more in {self.enough} of {self.finished} entries"
        return str(most) if fewest == most else f"{fewest} to {most}{share}"

    def distance_in_words(self) -> str:
        """How far the entries are from the printed numbers."""
        if self.farthest is None:
            return "nothing is printed" if self.level == PAPER else "not comparable"
        name, difference = self.farthest
        if self.compared == 1:
            return f"{difference:+.1f} points ({name}), the one number printed"
        return f"median {self.median:.1f} points, largest {difference:+.1f} ({name}); {self.compared} compared"


class Reproduced(NamedTuple):
    """Trained entries by the paper's recipe on the official data.

    Attributes:
        entries: how many there are.
        enough: how many of them have `ENOUGH` seeds or more.
        compared: how many of them have a printed number.
        median: of the absolute differences from these, in points; NaN if there are none.
    """

    entries: int
    enough: int
    compared: int
    median: float


def at_a_glance(table: DataFrame) -> list[Trust]:
    """What a table of results can be trusted for, once for each of its presets, the strongest evidence first.

    Args:
        table: one row per entry: columns that name it, then at least those of `RESULTS`; numbers in percent. A column
            `usual`, our number with the recipe unchanged, says that every entry departs from it, a column `departures`
            which do, and how.

    Raises:
        ValueError: if the table holds several data sets, or none.
    """
    dataset = only(table, "dataset")
    found = [_trust(rows, dataset, preset) for preset, rows in table.groupby("preset")]
    return sorted(found, key=lambda each: rank(each.level))


def distances(table: DataFrame) -> Series:
    """`difference`, in points, of the entries by the paper's recipe on the official data; NaN for all others."""
    settings = zip(table["dataset"], table["preset"], _changed(table), strict=True)
    return table["difference"].where([level_of(*setting) == PAPER for setting in settings])


def reproduced(tables: Iterable[DataFrame], named: Collection[str]) -> Reproduced | None:
    """All finished entries by the paper's recipe on the official data; None if there are none.

    Untrained networks are left out, as they say nothing about a method: "random" in one of the columns `named`.
    """
    parts = []
    for table in tables:
        rows = table[(table["preset"] == "paper") & table["ours"].notna() & ~untrained(table, named)]
        rows = rows[~_changed(rows)]
        if len(rows) and level_of(only(table, "dataset"), "paper") == PAPER:
            parts.append(rows[["n_seeds", "difference"]].astype(float))
    if not parts:
        return None
    rows = pd.concat(parts)
    distances = rows["difference"].dropna().abs()
    return Reproduced(len(rows), int((rows["n_seeds"] >= ENOUGH).sum()), len(distances), float(distances.median()))


def entry_names(table: DataFrame) -> list[str]:
    """The entries of a table in words, from the columns before `ours`: "AD+CD, td_queue=frozen_noise", "layers 2, AE".
    """
    rows = table.iloc[:, : table.columns.get_loc("ours")].astype(object).to_dict("records")
    return [", ".join(_part(name, value) for name, value in row.items() if _given(value)) for row in rows]


def _trust(rows: DataFrame, dataset: str, preset: str) -> Trust:
    finished, changed = rows[rows["ours"].notna()], bool(_changed(rows).all())
    compared = rows.assign(entry=entry_names(rows), difference=distances(rows)).dropna(subset="difference")
    compared = compared.sort_values("difference", key=abs, ascending=False, kind="stable")
    seeds = finished["n_seeds"].astype(int)
    return Trust(
        dataset, preset, changed, level_of(dataset, preset, changed), len(rows), len(finished),
        seeds=(int(seeds.min()), int(seeds.max())) if len(seeds) else (0, 0),
        enough=int((seeds >= ENOUGH).sum()),
        compared=len(compared),
        median=float(compared["difference"].abs().median()),
        farthest=None if compared.empty else (compared["entry"].iloc[0], float(compared["difference"].iloc[0])),
    )


def _changed(table: DataFrame) -> Series:
    """Which entries depart from their recipe: all of a table of departures, else those that say so."""
    if "usual" in table or "departures" not in table:
        return Series("usual" in table, index=table.index)
    return table["departures"].map(_given)


def _given(value: object) -> bool:
    return value == value and value not in ("", {})  # NaN is not itself


def _part(name: str, value: object) -> str:
    """Text speaks for itself, a number needs its name: "AE", "layers 2"."""
    if name == "departures":
        return words(value)
    return value if isinstance(value, str) else f"{name.replace('_', ' ')} {value:g}"
