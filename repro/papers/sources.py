"""The claims judged, and what they are held against: results of experiments, printed tables, tables beside the figures,
and derived ones.
"""

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from pandas import DataFrame

from repro import experiments
from repro.data import manifest
from repro.data.disk import read_csv
from repro.papers import joined, lines, listed, offered, saved, titles
from repro.recipe import WORDS, choose
from repro.report.claims import (
    CLOSED,
    COMPARED,
    DRAWN,
    LEVELS,
    PRINTED,
    UNTRAINED,
    VERDICTS,
    Claim,
    Read,
    Results,
    compared,
    difference_in_words,
    judge,
    level_of,
)
from repro.report.printed import printed
from repro.report.text import telling_apart
from repro.run.store import everything

PRINTED_TABLE, LOG = "printed/", "log/"  # before the name of what is no experiment
EARLIER = "earlier/"  # before the name of rows of earlier trainings, which are called as experiments are
SWEEP = "varied"  # column of tables whose rows say which sweep they are of
FROM_SCRATCH = ("scratch", "Scratch")  # of these, whose encoders are probed and not fine-tuned, one that is not trained
NOTHING = Results(DataFrame(), [], "")


def judged(
    paper: str = "all", *, verdict: str = "all", level: str = "all"
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """The claims with their verdicts, the numbers behind these, and the discrepancies with what we measured.

    Args:
        paper: "all" or a title such as "CM-ACC".
        verdict, level: which claims, "all" or one of `repro.report.claims.VERDICTS` and `LEVELS`.

    Returns:
        Claims and numbers as `repro.report.claims.judge` has them, with the sentence as `claim`. Discrepancies: id,
        paper, place, paper_says, others_say, here, and measured, the numbers of ours in one line.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
    """
    choose("paper", paper, ("all", *titles()))
    choose("verdict", verdict, ("all", *VERDICTS))
    choose("level", level, ("all", *LEVELS))
    sentences, contradictions = (table[(table["paper"] == paper) | (paper == "all")].reset_index(drop=True)
                                 for table in map(listed, ("claims", "discrepancies")))
    read = reader()
    claims, numbers = judge(sentences.rename(columns={"says": "claim"}), read)
    for column, value in (("verdict", verdict), ("level", level)):
        claims = claims[(claims[column] == value) | (value == "all")]
    numbers = numbers[numbers["id"].isin(claims["id"])].reset_index(drop=True)
    measured = judge(contradictions, read)[0]["evidence"].replace("", "not measured")
    discrepancies = contradictions.drop(columns=COMPARED).assign(measured=measured)
    return claims.reset_index(drop=True), numbers, discrepancies


def reader() -> Read:
    """What reads the results that some names between spaces stand for, of the runs that are finished now.

    Names are as `repro.report.claims.Claim.experiment` has them. Rows of several experiments are told apart by a column
    `experiment`, and carry as far as the weakest of them; they are none where one of them has none. The reader raises
    ValueError if there is no experiment or printed table of a name, or if two experiments share runs, and so does this
    if a name is of two of these.
    """
    runs = everything()
    derived = joined("derived table", offered("DERIVED", "claims"))
    if both := derived.keys() & {*saved(), *lines()}:
        raise ValueError(f"{min(both)!r} is a derived table and an experiment, or a table; rename the first")

    @functools.cache
    def one(name: str) -> Results:
        if name.startswith(PRINTED_TABLE):
            return Results(printed(name.removeprefix(PRINTED_TABLE)), [], PRINTED)
        if name.startswith(LOG):
            return _log(name.removeprefix(LOG))
        if name not in derived:
            results = by_seed(experiments.find(name), runs)
            if results.rows.empty:
                return results
            return results._replace(rows=results.rows[results.rows["preset"] != "smoke"])  # a few steps say nothing
        source, make = derived[name]
        if not source:
            return Results(make(), [], CLOSED)
        results = one(source)
        return NOTHING if results.rows.empty else results._replace(rows=make(results.rows), apart=[], asked=())

    @functools.cache
    def read(names: str) -> Results:
        known = [name for name in names.split() if name in {*saved(), *lines()}]
        for first, second in itertools.combinations(known, 2):
            if twice := experiments.find(first).asked().keys() & experiments.find(second).asked().keys():
                raise ValueError(f"{first} and {second} have {len(twice)} runs in common, such as {min(twice)}, which "
                                 "errors would count twice; save an experiment of the rows that one of them needs")
        parts = {name: one(name) for name in names.split()}
        return next(iter(parts.values())) if len(parts) == 1 else _joined(parts)

    return read


def _joined(parts: dict[str, Results]) -> Results:
    if any(part.rows.empty for part in parts.values()):
        return NOTHING
    named = {name.removeprefix(f"{LOG}{EARLIER}"): part.rows for name, part in parts.items()}
    rows = pd.concat([rows.assign(experiment=name) for name, rows in named.items()], ignore_index=True)
    columns = ["experiment", *dict.fromkeys(column for part in parts.values() for column in part.apart)]
    level = max((part.level for part in parts.values()), key=LEVELS.index)
    drawn = all(part.paired for part in parts.values())
    return Results(rows, telling_apart(rows, columns), level, drawn, FROM_SCRATCH if drawn else UNTRAINED)


def by_seed(experiment: experiments.Experiment, runs: DataFrame) -> Results:
    """Results of an experiment of stored runs by recipe and seed, NaN where a recipe does not use a field."""
    runs_asked = experiment.asked()
    rows = experiment.rows(runs, ["seed"], runs_asked)
    recipes = {row.recipe: row.called for row in runs_asked.values()}
    asked = []
    for recipe, called in recipes.items():
        values = {**recipe.to_dict(), **called}
        asked.append({column: "none" if value is None else value for column, value in values.items()})
    if rows.empty:
        return NOTHING._replace(asked=asked)
    if SWEEP in rows:  # a recipe that several sweeps share counts once
        known = rows.columns.drop([SWEEP, "changed"], errors="ignore")
        rows = rows.drop_duplicates(subset=known).drop(columns=SWEEP)
    columns = [*rows.columns[: rows.columns.get_loc("ours")].drop(["seed", "changed"], errors="ignore")]
    fields = [column for column in columns if column in experiment.declared.study.fields]
    in_use = {}  # a field that a recipe does not use tells nothing of it
    for recipe, values in zip(recipes, asked, strict=True):
        stored = tuple(values[field] for field in fields)
        values.update({field: math.nan for field in fields if not recipe.uses(field)})
        in_use[stored] = tuple(values[field] for field in fields)
    told_by = [in_use.get(stored, stored) for stored in rows[fields].itertuples(index=False, name=None)]
    rows = rows.assign(**DataFrame(told_by, rows.index, fields))
    whole = DataFrame(asked)  # what follows from other fields in the rows that are finished may not in all
    told = {*telling_apart(rows, columns), *telling_apart(whole, [column for column in columns if column in whole])}
    apart = [column for column in columns if column in told]
    changed = "changed" in rows and bool(rows["changed"].map(bool).any())
    dataset = rows["dataset"].iloc[0]
    level = level_of(dataset, rows["preset"].iloc[0], changed)
    drawn = dataset in DRAWN
    return Results(rows, apart, level, drawn, FROM_SCRATCH if drawn else UNTRAINED, asked)


def differences(experiment: experiments.Experiment, base: Mapping[str, Any]) -> str:
    """Each finished row minus the one of these values, all else equal, a line each, with the errors of claims."""
    second = "; ".join(f"{field}={value}" for field, value in base.items())
    found = compared(Claim(experiment.name, "ours", "", second, "", 0), by_seed(experiment, everything()))
    if not found:
        return "no other row is finished"
    width = max(map(len, found))
    lines = []
    for name, number in found.items():
        lines.append(f"{name:<{width}}  {difference_in_words(number.value, number.error, number.p())}")
    return "\n".join(lines)


def row_named(experiment: experiments.Experiment, values: str) -> dict[str, Any]:
    """The fields and values that `values`, a comma list, names a row by: "random,256"; nothing needs to be finished.

    Raises:
        ValueError: if no row has all of these values, or every row.
    """
    columns = [*experiment.declared.shown, *experiment.declared.columns_asked(experiment.fields)]
    given, known, asked = [_spelt(value) for value in values.split(",")], {}, experiment.rows_asked
    for row in asked:
        fields = {**row.recipe.to_dict(), **row.called}
        places = {_spelt(fields[column]): column for column in columns if column in fields}
        if all(value in places for value in given):
            named = [places[value] for value in given]
            if all(fields[column] == {**other.recipe.to_dict(), **other.called}[column]
                   for other in asked for column in named):
                raise ValueError(f"against={values!r} is what all rows have; name one, or add others")
            return {column: "none" if fields[column] is None else fields[column] for column in named}
        known |= {value: str(fields[column]) for value, column in places.items()}
    for value in values.split(","):
        if _spelt(value) not in known:
            choose("against", value.strip(), known.values())
    raise ValueError(f"against={values!r} names no row: none has all of these values; give those of one")


def _spelt(value: Any) -> str:
    """A value as rows show it, the same of 2, 2.0 and "2", of None and "none", of True and "true"."""
    text = str(value).strip()
    text = text.lower() if text.lower() in WORDS else text
    try:
        return str(float(text))
    except ValueError:
        return text


def _log(name: str) -> Results:
    """A table of figures/; no rows if it is not there. One that names no data set is made of printed numbers.

    Rows of figures/earlier/ are runs, told apart by what stands before `ours`.
    """
    path = manifest.project_root() / "figures" / f"{name}.csv"
    if not path.exists():
        return NOTHING
    rows = read_csv(path, na_values="")
    level = level_of(rows["dataset"].iloc[0], rows["preset"].iloc[0]) if "dataset" in rows else PRINTED
    if not name.startswith(EARLIER):
        return Results(rows, [], level)
    columns = rows.columns[: rows.columns.get_loc("ours")].drop(["seed", "version", "changed"], errors="ignore")
    return Results(rows, telling_apart(rows, [*columns]), level)
