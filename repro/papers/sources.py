"""The claims judged, and what they are held against: results of experiments, printed tables, tables beside the figures,
and derived ones.
"""

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from repro import experiments, papers
from repro.data import manifest
from repro.data.disk import read_csv, read_yaml
from repro.recipe import choose
from repro.report.claims import (
    CLOSED,
    DRAWN,
    LEVELS,
    PRINTED,
    VERDICTS,
    Results,
    compared,
    difference_in_words,
    judge,
    level_of,
    listed,
)
from repro.report.printed import printed
from repro.report.text import DATA_NAMES, in_columns, telling_apart
from repro.run.store import Run, everything

PRINTED_TABLE, LOG = "printed/", "log/"  # before the name of what is no experiment
EARLIER = "earlier/"  # before the name of rows of earlier trainings, which are called as experiments are
SWEEP = "varied"  # column of tables whose rows say which sweep they are of
FIXED = {"closed_form": CLOSED, "rearranged": PRINTED}  # folders of papers, with tables that no run changes
NOTHING = Results(DataFrame(), [], "")


def judged(
    paper: str = "all", *, verdict: str = "all", level: str = "all"
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """The claims with their verdicts, the numbers behind these, and the discrepancies with what we measured.

    Args:
        paper: "all" or a title such as "CM-ACC".
        verdict, level: which claims, "all" or one of `repro.report.claims.VERDICTS` and `LEVELS`.

    Returns:
        Claims: id, paper, place, claim (the sentence), experiment, and what `repro.report.claims.judge` says of them,
        whose numbers are the second table. Discrepancies: the columns of `repro.papers.discrepancies`, and measured,
        the numbers of ours in one line.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
    """
    choose("paper", paper, ("all", *papers.titles().values()))
    choose("verdict", verdict, ("all", *VERDICTS))
    choose("level", level, ("all", *LEVELS))
    asked = {name: (title, claim) for name, (title, claim) in papers.claims().items() if paper in ("all", title)}
    verdicts, numbers = judge({name: claim for name, (_, claim) in asked.items()}, reader())
    verdicts["evidence"] = verdicts["evidence"].map(in_terms)
    claims = DataFrame([{"id": name, "paper": title, "place": claim.place, "claim": claim.says,
                         "experiment": ", ".join(listed(claim.experiment))} for name, (title, claim) in asked.items()])
    claims = claims.join(verdicts, on="id")
    claims = claims[claims["claim"] != ""]
    for column, value in (("verdict", verdict), ("level", level)):
        claims = claims[(claims[column] == value) | (value == "all")]
    discrepancies = papers.discrepancies()
    discrepancies = discrepancies[(discrepancies["paper"] == paper) | (paper == "all")]
    measured = discrepancies["id"].map(verdicts["evidence"]).fillna("").replace("", "not measured")
    return (claims.reset_index(drop=True), numbers[numbers["id"].isin(claims["id"])].reset_index(drop=True),
            discrepancies.assign(measured=measured).reset_index(drop=True))


def in_terms(compared: str) -> str:
    """What was compared, with the numbers if they stand there, in words of readers: those of every `words.yaml`."""
    text = compared.replace(" minus 0:", ":").removesuffix(" minus 0").replace(", ours", ", accuracy")
    meant, known = [*words().values()], "|".join(f"({word})" for word in words())
    text = re.sub(rf"(?<![\w/])(?:{known})(?![\w/])", lambda match: meant[match.lastindex - 1], text)
    return text.replace("_", " ")


@functools.cache
def words() -> dict[str, str]:
    """What readers call data sets, and what claims compare; a key is a regular expression without groups."""
    found = dict(DATA_NAMES)
    for path in papers.files("words.yaml").values():
        found |= read_yaml(path)
    return found


def reader() -> Callable[..., Results]:
    """What reads the results that some names stand for, of the runs that are finished now.

    Names are as in `repro.report.claims`. Rows of several experiments are told apart by a column `experiment`, and
    carry as far as the weakest of them; they are none where one of them has none. The reader raises ValueError if there
    is no experiment or printed table of a name, or if two experiments share runs, and so does this if a name is of two
    of these.
    """
    runs, known, made = everything(), {*papers.saved(), *papers.table_names()}, papers.offered("DERIVED", "claims")
    derived = papers.joined("derived table", {
        paper: {path.stem: path for kind in FIXED for path in folder.glob(f"{kind}/*.csv")} | made.get(paper, {})
        for paper, folder in papers.folders().items()})
    if both := derived.keys() & known:
        raise ValueError(f"{min(both)!r} is a derived table and an experiment, or a table; rename the first")

    @functools.cache
    def one(name: str) -> Results:
        if name.startswith(PRINTED_TABLE):
            return Results(printed(name.removeprefix(PRINTED_TABLE)), [], PRINTED)
        if name.startswith(LOG):
            return _log(name.removeprefix(LOG))
        if name not in derived:
            results = by_seed(experiments.find(name), runs)
            return results._replace(rows=results.rows[results.rows["preset"] != "smoke"])  # a few steps say nothing
        if isinstance(derived[name], Path):
            return Results(read_csv(derived[name], na_values=""), [], FIXED[derived[name].parent.name])
        source, make = derived[name]
        results = one(source)
        if results.rows.empty or not results.unfinished.empty:  # it is made of all, or not at all
            return NOTHING
        return results._replace(rows=make(results.rows), apart=[])

    @functools.cache
    def read(*names: str) -> Results:
        for first, second in itertools.combinations([name for name in names if name in known], 2):
            if twice := experiments.find(first).asked().keys() & experiments.find(second).asked().keys():
                raise ValueError(f"{first} and {second} have {len(twice)} runs in common, such as {min(twice)}, which "
                                 "errors would count twice; save an experiment of the rows that one of them needs")
        return one(names[0]) if len(names) == 1 else _joined({name: one(name) for name in names})

    return read


def _joined(parts: dict[str, Results]) -> Results:
    if any(part.rows.empty for part in parts.values()):
        return NOTHING
    named = {name.removeprefix(f"{LOG}{EARLIER}"): part for name, part in parts.items()}
    rows, unfinished = (pd.concat([getattr(part, attribute).assign(experiment=name) for name, part in named.items()],
                                  ignore_index=True) for attribute in ("rows", "unfinished"))
    columns = ["experiment", *dict.fromkeys(column for part in parts.values() for column in part.apart)]
    level = max((part.level for part in parts.values()), key=LEVELS.index)
    drawn = all(part.paired for part in parts.values())
    return Results(rows, telling_apart(rows, columns), level, drawn, unfinished)


def by_seed(experiment: experiments.Experiment, runs: DataFrame) -> Results:
    """Results of an experiment of stored runs by recipe and seed, NaN where a recipe does not use a field."""
    asked = experiment.asked()
    rows = experiment.rows(runs, ["seed"], asked)
    if SWEEP in rows:  # a recipe that several sweeps share counts once
        rows = rows.drop_duplicates(rows.columns.drop([SWEEP, "changed"], errors="ignore")).drop(columns=SWEEP)
    columns = [*rows.columns[: rows.columns.get_loc("ours")].drop(["seed", "changed"], errors="ignore")]
    fields = [column for column in columns if column in experiment.declared.study.fields]
    recipes, in_use = {}, {}  # a field that a recipe does not use tells nothing of it
    for run in asked.values():
        known = _shown(run, columns)
        used = known | {field: math.nan for field in fields if not run.recipe.uses(field)}
        recipes[run.recipe] = used
        in_use[tuple(known[field] for field in fields)] = tuple(used[field] for field in fields)
    told_by = [in_use.get(stored, stored) for stored in rows[fields].itertuples(index=False, name=None)]
    rows = rows.assign(**DataFrame(told_by, rows.index, fields))
    whole = DataFrame([*recipes.values()])  # what follows from other fields in finished rows may not in all
    told = {*telling_apart(rows, columns), *telling_apart(whole, whole)}
    apart = [column for column in columns if column in told]

    finished = {asked[name].recipe for name in runs["id"] if name in asked}
    unfinished = whole.loc[[recipe not in finished for recipe in recipes], whole.columns.intersection(apart)]
    if rows.empty:
        return Results(rows, apart, "", unfinished=unfinished)
    for column in apart:  # such as the target, of which every run has all
        if column not in unfinished:
            unfinished = unfinished.merge(rows[[column]].drop_duplicates(), how="cross")
    changed = "changed" in rows and bool(rows["changed"].map(bool).any())
    dataset = rows["dataset"].iloc[0]
    level = level_of(dataset, rows["preset"].iloc[0], changed)
    return Results(rows, apart, level, dataset in DRAWN, unfinished)


def _shown(run: Run, columns: Iterable[str]) -> dict[str, Any]:
    """What a row of a run has in these columns, as far as its recipe and its row of the table say it."""
    values = {**run.recipe.to_dict(), **run.called}
    return {column: "none" if values[column] is None else values[column] for column in columns if column in values}


def differences(experiment: experiments.Experiment, base: Mapping[str, Any]) -> str:
    """Each finished row minus the one of these values, all else equal, a line each, with the errors of claims."""
    found = compared(by_seed(experiment, everything()), {}, dict(base))
    rows = [(name, difference_in_words(number.value, number.error, number.p())) for name, number in found.items()]
    return "\n".join(in_columns(rows)) or "no other row is finished that differs in this alone"


def row_named(experiment: experiments.Experiment, values: str) -> dict[str, Any]:
    """The fields and values that `values`, a comma list, names a row by: "random,256"; nothing needs to be finished.

    ValueError if no row has all of these values.
    """
    columns = [*experiment.declared.shown, *experiment.declared.columns_asked(experiment.fields)]
    rows = [_shown(run, columns) for run in experiment.rows_asked]
    places = [{str(value).removesuffix(".0"): column for column, value in row.items()} for row in rows]
    given = [value.strip().removesuffix(".0") for value in values.split(",")]
    for value in given:
        choose("against", value, dict.fromkeys(itertools.chain(*places)))
    for row, place in zip(rows, places, strict=True):
        if {*given} <= {*place}:
            return {place[value]: row[place[value]] for value in given}
    raise ValueError(f"against={values!r} names no row: none has all of these values; give those of one")


def _log(name: str) -> Results:
    """A table of figures/; no rows if it is not there. One that names no data set is made of printed numbers.

    Rows of figures/earlier/ are runs, told apart by what stands before `ours`. ValueError if no table is called so.
    """
    folder = manifest.project_root() / "figures"
    path = folder / f"{name}.csv"
    if not path.exists():
        if manifest.checkout():  # elsewhere only runs come along
            there = [other.relative_to(folder).with_suffix("").as_posix() for other in folder.rglob("*.csv")]
            known = sorted({*papers.saved(), *papers.pictures(), *there})
            choose("experiment", f"{LOG}{name}", [f"{LOG}{table}" for table in known])
        return NOTHING
    rows = read_csv(path, na_values="")
    level = level_of(rows["dataset"].iloc[0], rows["preset"].iloc[0]) if "dataset" in rows else PRINTED
    if not name.startswith(EARLIER):
        return Results(rows, [], level)
    columns = rows.columns[: rows.columns.get_loc("ours")].drop(["seed", "version", "changed"], errors="ignore")
    return Results(rows, telling_apart(rows, [*columns]), level)
