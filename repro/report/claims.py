"""Sentences of the papers as data, and the one evaluator that judges them.

A row of a paper's `claims.csv` is a sentence and how it is held against numbers:

    id, place, says   where the sentence stands, and the sentence in our words
    experiment        whose results count, several between spaces; "printed/NAME" for a printed table; empty where a
                      closed form decides
    measure           column of these results, several between commas; "ours" is the main one of an experiment
    first, second     which rows are compared: "method=xmoco; characters=1|3|5". A field that `second` does not name is
                      as in the first row; "*" is every other value, and alone every other row. A `second` that is a
                      number is compared with itself, and "measure=NAME" compares two columns of a row
    rule, margin      one of `RULES` or of the paper's own rules, and the number it takes

A row of `discrepancies.csv`, where a paper disagrees with itself or its code, has the same columns for what we measured
about it, and no verdict.
"""

import math
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from pandas import DataFrame, Series
from pandas.io.formats.style import Styler

from repro.recipe import choose
from repro.report import printed, statistics
from repro.report.statistics import Estimate, holm
from repro.report.verdicts import (
    CANNOT,
    CLOSED,
    CONSISTENT,
    CONTRADICTS,
    FAILS,
    HOLDS,
    LEVELS,
    NOT_MEASURED,
    NOT_RUN,
    PAPER,
    PRINTED,
    UNDECIDED,
    VERDICTS,
    level_of,
    rank,
)
from repro.run import device as devices

ERROR = 0.05  # probability of a wrong verdict that is accepted
ANY, OR = "*", "|"
UNTRAINED = ("objectives", "method", "approach")  # columns in which "random" is a network that is not trained
COMPARED = ["experiment", "measure", "first", "second", "rule", "margin"]  # columns of both lists
SHOWN = 3  # comparisons that a line of evidence lists
SENTENCES = ["claim", "evidence", "the paper", "but"]  # columns of a notebook's tables that need some width


class Results(NamedTuple):
    """What a claim is held against.

    Attributes:
        rows: one for each recipe and seed, or of a printed table.
        apart: columns that tell recipes apart.
        level: how far the rows carry, one of `verdicts.LEVELS`.
    """

    rows: DataFrame
    apart: list[str]
    level: str


class Claim(NamedTuple):
    """How a sentence is held against numbers; see the head of this module."""

    experiment: str
    measure: str
    first: str
    second: str
    rule: str
    margin: float


Numbers = Mapping[str, Estimate]  # by what is compared; value and error NaN where a side is missing
Judged = tuple[str | bool, Numbers]  # a verdict, or whether the sentence follows, and what it rests on
Rule = Callable[[Claim, Results], Judged]
Read = Callable[[str], Results]  # of an experiment; no rows where nothing of it is finished


def exact(value: float) -> Estimate:
    """A number without error: printed, or of a closed form."""
    return Estimate(float(value), math.nan, math.nan, ())


MISSING = Estimate(math.nan, math.nan, math.nan, ())


# Which rows a claim compares


def parsed(text: str) -> dict[str, list[str]]:
    """The fields of `first` or `second`, each with its values: "method=xmoco; characters=1|3".

    Raises:
        ValueError: if a part has no "=".
    """
    terms = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        field, equals, values = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} in {text!r} is no FIELD=VALUE; write that, or * for every other row")
        terms[field.strip()] = [value.strip() for value in values.split(OR)]
    return terms


def _matches(value: object, texts: list[str], field: str) -> bool:
    """Whether a value of a row is one of these texts; "*" is all but networks that are not trained."""
    if texts == [ANY]:
        return not (field in UNTRAINED and value == "random")
    if isinstance(value, bool | str):
        return str(value) in texts
    return any(math.isclose(float(value), float(text)) for text in texts)


def independent(rows: DataFrame, columns: list[str]) -> list[str]:
    """The columns that tell more rows apart than those before them do: not the ones that follow from these."""
    kept: list[str] = []
    for column in columns:
        if len(rows[[*kept, column]].drop_duplicates()) > (len(rows[kept].drop_duplicates()) if kept else 1):
            kept.append(column)
    return kept


def pairs(claim: Claim, results: Results) -> list[tuple[Series, Series]]:
    """The recipes that a claim compares, each as a row of the columns that tell them apart.

    Raises:
        ValueError: if the results lack a field that the claim names.
    """
    first, second = parsed("" if claim.first == ANY else claim.first), parsed("" if claim.second == ANY else claim.second)
    second.pop("measure", None)
    named = list(dict.fromkeys([*first, *second]))
    if lacking := [field for field in named if field not in results.rows]:
        raise ValueError(f"{claim.experiment} has no {', '.join(lacking)}; its columns are "
                         f"{', '.join(results.rows.columns)}")
    columns = list(dict.fromkeys([*independent(results.rows, results.apart), *named]))
    known = [row for _, row in results.rows[columns].drop_duplicates().iterrows()]
    found = []
    for one in known:
        if not all(_matches(one[field], texts, field) for field, texts in first.items()):
            continue
        for other in known:
            differs = any(one[column] != other[column] for column in columns)
            if claim.second == ANY or claim.first == ANY:
                fits = differs and all(_matches(other[field], texts, field) for field, texts in second.items())
            else:
                fits = all(_matches(other[column], second[column], column) if column in second
                           else _same(one[column], other[column]) for column in columns)
                fits = fits and (differs or not second)
            if fits:
                found.append((one, other))
    return found


def _same(value: object, other: object) -> bool:
    """Whether two values agree; a column that only one of two experiments has tells nothing."""
    return bool(value == other or pd.isna(value) or pd.isna(other))


def _label(row: Series, columns: list[str]) -> str:
    """What a row is called: texts speak for themselves, numbers need their field."""
    return ", ".join(row[column] if isinstance(row[column], str) else f"{column} {row[column]:g}"
                     for column in columns if pd.notna(row[column]))


def _names(found: list[tuple[Series, Series]]) -> list[str]:
    """What each comparison is called: what differs between its sides, then what differs between comparisons."""
    if not found:
        return []
    ones, columns = DataFrame([one for one, _ in found]), list(found[0][0].index)
    names = []
    for one, other in found:
        unlike = [column for column in columns if not _same(one[column], other[column])]
        shared = [column for column in columns if column not in unlike and ones[column].nunique() > 1]
        over = f"{_label(one, unlike)} over {_label(other, unlike)}" if unlike else ""
        names.append(", ".join(filter(None, [over, _label(one, shared)])))
    return names


def runs_of(results: Results, measure: str) -> tuple[DataFrame, Series]:
    """A measure by recipe and seed, as `statistics` takes it, and the kind of each recipe, with which it is pooled.

    Recipes are called by the values of the independent columns. They are pooled within one target, and untrained
    networks among themselves.
    """
    columns = independent(results.rows, results.apart)
    keys = results.rows[columns].map(str).agg("; ".join, axis=1) if columns else Series("all", results.rows.index)
    table = results.rows.assign(recipe=keys).pivot_table(measure, "recipe", "seed", sort=False)
    first = results.rows.assign(recipe=keys).drop_duplicates("recipe").set_index("recipe").loc[table.index]
    untrained = first[first.columns.intersection(UNTRAINED)].eq("random").any(axis=1)
    target = first["target"] if "target" in first else Series("", first.index)
    return table, target + untrained.map({True: " untrained", False: " trained"})


def key_of(row: Series, results: Results) -> str:
    """What `runs_of` calls the recipe of a row."""
    return "; ".join(str(row[column]) for column in independent(results.rows, results.apart)) or "all"


# Rules that several papers use


def compared(claim: Claim, results: Results, *, paired: bool = False) -> dict[str, Estimate]:
    """The first rows minus the second ones; see `statistics.contrast`, or `statistics.paired_contrast` if `paired`.

    A value that the claim names and the results lack is a comparison with a missing side.
    """
    measures = [name.strip() for name in claim.measure.split(",")]
    if results.level == PRINTED:
        return _printed_differences(claim, results, measures)
    found, numbers = pairs(claim, results), {}
    for measure in measures:
        runs, kinds = runs_of(results, measure)
        for name, (one, other) in zip(_names(found), found, strict=True):
            sides, kind = [key_of(row, results) for row in (one, other)], kinds[key_of(one, results)]
            name = name if len(measures) == 1 else f"{name}, {measure}"
            if not set(sides) <= set(runs.index):
                numbers[name] = MISSING
            elif paired:
                numbers[name] = statistics.paired_contrast(runs[kinds == kind], *sides)
            else:
                numbers[name] = statistics.contrast(runs, *sides, kinds)
    return numbers | dict.fromkeys(_lacking(claim, found), MISSING)


def _lacking(claim: Claim, found: list[tuple[Series, Series]]) -> list[str]:
    """Values named in a claim of which no row is compared."""
    missing = []
    for side, text in enumerate((claim.first, claim.second)):
        for field, texts in ({} if text == ANY else parsed(text)).items():
            for value in texts:
                if value != ANY and field != "measure" and not any(
                        _matches(pair[side][field], [value], field) for pair in found):
                    missing.append(f"{field}={value}")
    return list(dict.fromkeys(missing))


def _printed_differences(claim: Claim, results: Results, measures: list[str]) -> dict[str, Estimate]:
    """The same of printed numbers, which have no error; what is not printed is left out."""
    second, numbers = parsed("" if claim.second == ANY else claim.second), {}
    named = [*dict.fromkeys([*parsed("" if claim.first == ANY else claim.first), *second])]
    found = pairs(claim, results._replace(apart=[name for name in named if name != "measure"]))
    if not found:
        raise ValueError(f"{claim.experiment} has no rows {claim.first!r} and {claim.second!r}")
    for measure in measures:
        other_measure = second.get("measure", [measure])[0]
        for name, (one, other) in zip(_names(found), found, strict=True):
            value, against = (_only(results.rows, row, column) for row, column in ((one, measure), (other, other_measure)))
            if not math.isnan(value - against):
                numbers[", ".join(filter(None, [name, measure if len(measures) > 1 else ""]))] = exact(value - against)
    return numbers


def _only(rows: DataFrame, row: Series, column: str) -> float:
    """The one number of a column in the rows with these values; raises ValueError if there are several."""
    values = rows.loc[(rows[row.index] == row).all(axis=1), column]
    if len(values) != 1:
        raise ValueError(f"{len(values)} printed rows have {dict(row)}; name what tells them apart")
    return float(values.iloc[0])


def above(numbers: Numbers, margin: float = 0.0, *, alternative: str = "greater") -> str | bool:
    """Whether all differences exceed the margin, or with "less" fall short of it.

    Holds if each does at the accepted error: then their conjunction does too. Fails if the contrary of one is shown,
    corrected for their number by Holm. What is missing, or of unknown error, leaves it undecided unless another one
    fails. Numbers without any error are compared as they are.
    """
    sign = 1 if alternative == "greater" else -1
    if all(math.isnan(number.df) for number in numbers.values() if not math.isnan(number.value)):
        return all(sign * (number.value - margin) > 0 for number in numbers.values())
    opposite = "less" if alternative == "greater" else "greater"
    if (holm([number.p(opposite, margin) for number in numbers.values()]) < ERROR).any():
        return FAILS
    shown = all(number.p(alternative, margin) < ERROR for number in numbers.values())
    return HOLDS if shown else UNDECIDED


def within(numbers: Numbers, margin: float) -> str | bool:
    """Whether all differences lie within the margin on either side, by two one-sided tests each; as `above`."""
    sides = [above(numbers, -margin), above(numbers, margin, alternative="less")]
    if isinstance(sides[0], bool):
        return all(sides)
    return FAILS if FAILS in sides else HOLDS if sides == [HOLDS, HOLDS] else UNDECIDED


def different(numbers: Numbers) -> str:
    """Whether all differences are other than 0, by a two-sided test each; being equal is never shown."""
    return HOLDS if all(number.p() < ERROR for number in numbers.values()) else UNDECIDED


def _is_above(claim: Claim, results: Results) -> Judged:
    numbers = compared(claim, results)
    return above(numbers, claim.margin), numbers


def _is_below(claim: Claim, results: Results) -> Judged:
    numbers = compared(claim, results)
    return above(numbers, claim.margin, alternative="less"), numbers


def _is_within(claim: Claim, results: Results) -> Judged:
    numbers = compared(claim, results)
    return within(numbers, claim.margin), numbers


def _is_different(claim: Claim, results: Results) -> Judged:
    numbers = compared(claim, results)
    return different(numbers), numbers


def _paired_above(claim: Claim, results: Results) -> Judged:
    """As "above", for runs whose seeds share their data."""
    numbers = compared(claim, results, paired=True)
    return above(numbers, claim.margin), numbers


def _paired_below(claim: Claim, results: Results) -> Judged:
    numbers = compared(claim, results, paired=True)
    return above(numbers, claim.margin, alternative="less"), numbers


def _paired_within(claim: Claim, results: Results) -> Judged:
    numbers = compared(claim, results, paired=True)
    return within(numbers, claim.margin), numbers


def _against_number(claim: Claim, results: Results) -> Numbers:
    """The mean of the first rows minus the number in `second`."""
    measures, numbers = [name.strip() for name in claim.measure.split(",")], {}
    found = pairs(claim._replace(second=""), results)
    for measure in measures:
        runs, kinds = runs_of(results, measure)
        judged = statistics.deviations(runs, kinds)
        for one, _ in found:
            key = key_of(one, results)
            values = runs.loc[key].dropna()
            deviation = judged.loc[key]
            estimate = Estimate(float(values.mean()) - float(claim.second), deviation["value"] / math.sqrt(len(values)),
                                deviation["df"], (len(values),))
            columns = [column for column in one.index if DataFrame([row for row, _ in found])[column].nunique() > 1]
            numbers[_label(one, columns) or measure] = estimate
    return numbers | dict.fromkeys(_lacking(claim._replace(second=""), found), MISSING)


def _number_below(claim: Claim, results: Results) -> Judged:
    """Whether the means of the first rows are below the number in `second`."""
    numbers = _against_number(claim, results)
    return above(numbers, alternative="less"), numbers


def _number_within(claim: Claim, results: Results) -> Judged:
    """Whether the means of the first rows are within the margin of the number in `second`."""
    numbers = _against_number(claim, results)
    return within(numbers, claim.margin), numbers


def _rises(claim: Claim, results: Results) -> Judged:
    """Whether each value of the field that `first` sweeps gives more than the one before it, or measure if none."""
    swept = {field: values for field, values in parsed(claim.first).items() if len(values) > 1}
    measures, numbers = [name.strip() for name in claim.measure.split(",")], {}
    for field, values in swept.items():
        for low, high in zip(values, values[1:], strict=False):
            fixed = [f"{name}={OR.join(texts)}" for name, texts in parsed(claim.first).items() if name != field]
            step = claim._replace(first="; ".join([*fixed, f"{field}={high}"]), second=f"{field}={low}")
            numbers |= compared(step, results)
    for low, high in zip(measures, measures[1:], strict=False) if not swept else ():
        step = compared(claim._replace(measure=high, second=f"measure={low}"), results)
        numbers |= {f"{name}, {high} over {low}": number for name, number in step.items()}
    return above(numbers, claim.margin), numbers


def _agrees(claim: Claim, results: Results) -> Judged:
    """Whether printed numbers are ones that a further run of ours could give.

    Fails if one is refuted (`statistics.entries`, corrected by Holm). Holds if none is, all have runs, no prediction
    interval reaches further than the margin, and the column agrees better than a shuffled one does at the accepted
    error. Only the paper's recipe on real data has a say.
    """
    if results.level != PAPER:
        return NOT_RUN, {}
    rows = [key_of(row, results) for row, _ in pairs(claim._replace(second=""), results)]
    runs, kinds = runs_of(results, claim.measure)
    known = [key for key in rows if key in runs.index]
    printed_numbers = results.rows.groupby(
        results.rows.apply(key_of, axis=1, results=results), sort=False)["published"].first()
    table = statistics.entries(runs, printed_numbers, kinds).reindex(known).dropna(subset="printed")
    counts = runs.count(axis=1)
    numbers = {str(key): Estimate(row.difference, row.error, row.df, (int(counts[key]), 1))
               for key, row in zip(table.index, table.itertuples(), strict=True)}
    numbers |= dict.fromkeys(_lacking(claim, pairs(claim._replace(second=""), results)), MISSING)
    judged = [key for key in table.index if key not in statistics.scattered(runs)]
    alike = statistics.agreement(runs.loc[judged], table.loc[judged, "printed"])
    numbers |= {"root mean square": exact(alike.rms), "that of a constant": exact(alike.constant_rms),
                "correlation": exact(alike.r), "share of shuffled columns as near": exact(alike.shuffled_rms),
                "root mean square of a further run": exact(alike.ceiling_rms)}
    if (holm([numbers[str(key)].p() for key in table.index]) < ERROR).any():
        return FAILS, numbers
    narrow = all(numbers[str(key)].reach() <= claim.margin for key in table.index)
    complete = not any(math.isnan(number.value) for number in numbers.values())
    return HOLDS if narrow and complete and alike.shuffled_rms < ERROR else UNDECIDED, numbers


def _steadier(claim: Claim, results: Results) -> Judged:
    """Whether the first row scatters less between seeds than each second one: F test of their variances."""
    from scipy import stats

    runs, _ = runs_of(results, claim.measure)
    found, numbers, p = pairs(claim, results), {}, []
    for name, (one, other) in zip(_names(found), found, strict=True):
        values = [runs.loc[key_of(row, results)].dropna() for row in (one, other)]
        ratio = values[0].var() / values[1].var()
        numbers[f"variance of {name}"] = exact(ratio)
        p.append(stats.f.cdf(ratio, *(len(side) - 1 for side in values)))
    verdict = HOLDS if all(value < ERROR for value in p) else UNDECIDED
    return FAILS if (holm([1 - value for value in p]) < ERROR).any() else verdict, numbers


RULES: dict[str, Rule] = {
    "above": _is_above, "below": _is_below, "within": _is_within, "different": _is_different,
    "paired above": _paired_above, "paired below": _paired_below, "paired within": _paired_within,
    "number below": _number_below, "number within": _number_within, "rises": _rises, "agrees": _agrees,
    "steadier": _steadier,
    "cannot be checked": lambda claim, results: (CANNOT, {}), "not run": lambda claim, results: (NOT_RUN, {}),
}
