"""Sentences of the papers as data, and the one evaluator that judges them.

A row of a paper's `claims.csv` is a sentence and how it is held against numbers:

    id, place, says   where the sentence stands, and the sentence in our words
    experiment        whose results count, several between spaces; "printed/NAME" for a printed table, "log/NAME" for a
                      table of figures/, or a table that the paper's module `claims` derives from one of these
    measure           column of these results, several between commas; "ours" is the main one of an experiment
    first, second     which rows are compared: "method=xmoco; characters=1|3|5". A field that `second` does not name is
                      as in the first row; "*" is every other value. A `second` that is a number is compared with itself
    rule, margin      one of `RULES`, and the number it takes; or "not run", or "cannot be checked"

A row of `discrepancies.csv`, where a paper disagrees with itself or its code, has the same columns for what we measured
about it, and no verdict.
"""

import functools
import itertools
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pandas import DataFrame, Series

from repro.data import manifest
from repro.data.disk import read_csv
from repro.recipe import choose
from repro.report import statistics
from repro.report.statistics import Estimate, holm
from repro.run import device as devices

HOLDS, FAILS, UNDECIDED, NOT_RUN, CANNOT = "holds", "fails", "undecided", "not run", "cannot be checked"
CONSISTENT, CONTRADICTS = "self-consistent", "contradicts itself"  # of a paper held against its own numbers
VERDICTS = (HOLDS, FAILS, CONSISTENT, CONTRADICTS, UNDECIDED, NOT_RUN, CANNOT)
CLOSED, PRINTED = "closed form", "printed numbers"
PAPER, SHORTENED, BUNDLED = "paper recipe, real data", "shortened, real data", "bundled data"
LEVELS = (CLOSED, PRINTED, PAPER, SHORTENED, BUNDLED)  # of evidence, those that carry furthest first

DRAWN = ("multiomniglot",)  # data sets of whose samples a seed draws what is shown, alike for recipes of equal data
ERROR = 0.05  # probability of a wrong verdict that is accepted
ANY, OR = "*", "|"
METHODS = ("objectives", "method", "approach")  # columns that name what a network is trained by
UNTRAINED = ("random",)  # what they call one that is not trained
COMPARED = ["experiment", "measure", "first", "second", "rule", "margin"]  # columns of both lists
LISTED = 5  # comparisons, and numbers without error, that a line of evidence lists at most


class Results(NamedTuple):
    """What a claim is held against.

    Attributes:
        rows: one for each recipe and seed. Numbers that have no column `seed`, as printed ones, have the error and the
            degrees of freedom of the columns `<measure>_error` and `<measure>_df`, or none.
        apart: columns that tell recipes apart, besides those that a claim names.
        level: how far the rows carry, one of `LEVELS`.
        paired: whether runs of one seed share more than its number, see `statistics.paired_contrast`.
        untrained: what columns of `METHODS` call a network that is not trained.
        asked: fields of the recipes that are asked for, finished or not, NaN where one does not use a field that tells
            others apart; a claim can name no other values.
    """

    rows: DataFrame
    apart: list[str]
    level: str
    paired: bool = False
    untrained: tuple[str, ...] = UNTRAINED
    asked: Sequence[Mapping[str, Any]] = ()


class Claim(NamedTuple):
    """How a sentence is held against numbers; see the head of this module."""

    experiment: str
    measure: str
    first: str
    second: str
    rule: str
    margin: float

    @property
    def measures(self) -> list[str]:
        """The columns that it is about."""
        return [name.strip() for name in self.measure.split(",")]


class Derived(NamedTuple):
    """A table that a paper makes for its claims, one of `DERIVED` of its module `claims` by name.

    Attributes:
        source: whose rows it is made of; "" for a closed form.
        make: takes these rows, or nothing, and returns those that are compared, for `Results`.
    """

    source: str
    make: Callable[..., DataFrame]


class Pair(NamedTuple):
    """Two recipes that are compared, by their numbers in the rows, and what the comparison is called."""

    first: int
    second: int
    name: str


Fields = Mapping[str, Any]  # of a recipe, or a row of a printed table
Numbers = Mapping[str, Estimate]  # by what is compared; value and error NaN where a side is missing
Decision = tuple[str, float]  # the verdict, and the least error at which it would be this one; NaN of undecided ones
Rule = Callable[[Claim, Results], tuple[Decision, Numbers]]  # and what it rests on
Read = Callable[[str], Results]  # of an experiment; no rows where nothing of it is finished
MISSING = Estimate(math.nan, math.nan, math.nan, ())


def exact(value: float) -> Estimate:
    """A number without error: printed, or of a closed form."""
    return Estimate(float(value), 0.0, math.inf, ())


def level_of(dataset: str, preset: str, changed: bool = False) -> str:
    """How far numbers of ours carry, one of the last three of `LEVELS`.

    Args:
        dataset: its label; a part or copy, "ntu (subset)", is not the official data. ValueError if there is none.
        preset: of the recipe.
        changed: whether the recipe differs from its preset.
    """
    if manifest.bundled(dataset):
        return BUNDLED
    return PAPER if preset == "paper" and dataset == manifest.plain(dataset) and not changed else SHORTENED


# Which rows a claim compares


def parsed(text: str) -> dict[str, list[str]]:
    """The fields of `first` or `second`, each with its values: "method=xmoco; characters=1|3".

    Raises:
        ValueError: if a part has no "=", or a field stands twice.
    """
    terms: dict[str, list[str]] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        field, equals, values = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} in {text!r} is no FIELD=VALUE; write that")
        if field.strip() in terms:
            raise ValueError(f"{text!r} names {field.strip()} twice; write its values once, with {OR} between them")
        terms[field.strip()] = [value.strip() for value in values.split(OR)]
    return terms


def pairs(claim: Claim, results: Results) -> tuple[DataFrame, list[Pair], list[str]]:
    """The recipes that a claim compares.

    Returns:
        The rows, with the number of their recipe as `recipe`; the comparisons; and what the claim names that is in none
        of them.

    Raises:
        ValueError: if the results lack a field or measure that the claim names, or two rows of one seed are not told
            apart.
    """
    first, second = parsed(claim.first), parsed(claim.second)
    said = {field for field, values in [*first.items(), *second.items()] if len(values) == 1 and values != [ANY]}
    columns = list(dict.fromkeys([*results.apart, *first, *second]))
    if lacking := [column for column in columns if column not in results.rows]:
        raise ValueError(f"{claim.experiment} has no {', '.join(lacking)}; its columns are "
                         f"{', '.join(results.rows.columns)}")
    for measure in claim.measures:
        choose("measure", measure, results.rows.columns)
    rows = results.rows.assign(recipe=results.rows.groupby(columns, sort=False, dropna=False).ngroup())
    recipes = rows.drop_duplicates("recipe").set_index("recipe")[columns].to_dict("index")
    firsts, seconds = ([number for number, row in recipes.items() if _fits(row, terms)] for terms in (first, second))
    found: list[Pair] = []
    for one, other in itertools.product(firsts, seconds):
        row, against = recipes[one], recipes[other]
        shared = all(_same(row[column], against[column]) for column in columns if column not in second)
        apart = one != other and any(row[column] != against[column] for column in second)
        if shared and (apart if second else one == other):
            found.append(Pair(one, other, _name(row, against, said)))
    used = rows[rows["recipe"].isin({number for pair in found for number in pair[:2]})]
    if used.duplicated(["recipe", "seed"] if "seed" in rows else "recipe").any():
        raise ValueError(f"several rows of {claim.experiment} have one {', '.join(columns)}; name what tells them "
                         "apart")
    missing = [*_lacking(first, [recipes[pair.first] for pair in found]),
               *_lacking(second, [recipes[pair.second] for pair in found]),
               *_unfinished(first, second, results)]
    return rows, found, missing


def check_values(claim: Claim, results: Results) -> None:
    """Raise ValueError if a claim names a value that no recipe asked for has; it names those that have one."""
    for side in (claim.first, claim.second):
        for field, values in parsed(side).items() if "=" in side else ():
            asked = {row[field] for row in results.asked if field in row and pd.notna(row[field])}
            for value in values:
                if asked and not any(_fits({field: one}, {field: [value]}) for one in asked):
                    choose(field, value, sorted(map(str, asked)))


def _lacking(terms: Mapping[str, list[str]], rows: list[Fields]) -> list[str]:
    """The values of one side of a claim that none of the rows compared has."""
    lacking = []
    for field, values in terms.items():
        for value in values:
            if value != ANY and not any(_fits(row, {field: [value]}) for row in rows):
                lacking.append(f"{field}={value}")
    return lacking


def _unfinished(first: Mapping[str, list[str]], second: Mapping[str, list[str]], results: Results) -> list[str]:
    """Values that a claim is about without naming them, of recipes asked for, and of which nothing is finished.

    They are those of "*", and of columns that tell recipes apart and stand on neither side.
    """
    unfinished = []
    unnamed = [column for column in results.apart if column not in first and column not in second]
    for terms in (first, {**first, **second}):
        columns = [*unnamed, *(field for field, texts in terms.items() if texts == [ANY])]
        for row in results.asked:
            if _fits(row, {field: texts for field, texts in terms.items() if field in row}):
                unfinished += [f"{column}={row[column]}" for column in columns
                               if pd.notna(row.get(column)) and not results.rows[column].isin([row[column]]).any()]
    return list(dict.fromkeys(unfinished))


def _fits(row: Fields, terms: Mapping[str, list[str]]) -> bool:
    """Whether a row has one of the values of each field; "*" is all but networks of random weights."""
    for field, texts in terms.items():
        value = row[field]
        if texts == [ANY]:
            fits = not (field in METHODS and value in UNTRAINED)
        elif isinstance(value, bool | str):
            fits = str(value) in texts
        else:
            fits = any(math.isclose(float(value), pd.to_numeric(text, errors="coerce")) for text in texts)
        if not fits:
            return False
    return True


def _same(value: object, other: object) -> bool:
    """Whether two values agree; a column that only one of two experiments has tells nothing."""
    return bool(value == other or pd.isna(value) or pd.isna(other))


def _name(row: Fields, against: Fields, said: set[str]) -> str:
    """What a comparison is called: what differs between its sides, then what they share that the claim does not say."""
    unlike = [column for column in row if not _same(row[column], against[column])]
    over = [f"{_label(row, unlike)} over {_label(against, unlike)}"] if unlike else []
    both = {column: against[column] if pd.isna(value) else value for column, value in row.items()}
    shared = _label(both, [column for column in row if column not in (*unlike, *said)])
    return ", ".join([*over, *([shared] if shared else [])])


def _label(row: Fields, columns: list[str]) -> str:
    """What a row is called: texts speak for themselves, numbers need their field."""
    return ", ".join(row[column] if isinstance(row[column], str) else f"{column} {row[column]:g}"
                     for column in columns if pd.notna(row[column]))


def runs_of(rows: DataFrame, measure: str, names: Sequence[str] = UNTRAINED) -> tuple[DataFrame, Series]:
    """A measure by recipe and seed, as `statistics` takes it, and the kind of each recipe, with which it is pooled.

    Recipes are pooled within one target, and untrained networks, which have these names, among themselves.
    """
    runs = rows.groupby(["recipe", "seed"])[measure].mean().unstack("seed").dropna(how="all")
    first = rows.drop_duplicates("recipe").set_index("recipe").loc[runs.index]
    untrained = first[first.columns.intersection(METHODS)].isin(names).any(axis=1)
    target = first["target"] if "target" in first else Series("", first.index)
    return runs, target + untrained.map({True: " untrained", False: " trained"})


def compared(claim: Claim, results: Results) -> dict[str, Estimate]:
    """The first rows minus the second ones, or minus the number that `second` is, for every measure.

    A value that the claim names and the results lack is a comparison with a missing side.

    Raises:
        ValueError: as `pairs`, and if `second` is empty.
    """
    if not claim.second.strip(" ;"):
        raise ValueError(f"second={claim.second!r} compares nothing; name other rows there, or a number")
    try:
        number = float(claim.second)
    except ValueError:
        number = math.nan
    against = "" if math.isnan(number) else f" minus {claim.second}"
    rows, found, missing = pairs(claim._replace(second="") if against else claim, results)
    numbers = dict.fromkeys(missing, MISSING)
    for measure in claim.measures:
        differences = _of_runs if "seed" in rows else _of_numbers
        for (_, _, name), difference in zip(found, differences(rows, measure, found, number, results), strict=True):
            named = name if len(claim.measures) == 1 else f"{name}, {measure}".removeprefix(", ")
            numbers[(named or measure) + against] = difference
    return numbers


def _of_runs(rows: DataFrame, measure: str, found: list[Pair], number: float, results: Results) -> list[Estimate]:
    """The differences of pairs, or from a number unless that is NaN, with errors as in `statistics`."""
    (runs, kinds), differences = runs_of(rows, measure, results.untrained), []
    judged = statistics.deviations(runs, kinds)
    recipes = rows.drop_duplicates("recipe").set_index("recipe")[results.apart].loc[runs.index]
    for one, other, _ in found:
        if not {one, other} <= {*runs.index}:
            differences.append(MISSING)
        elif not math.isnan(number):
            differences.append(statistics.from_number(runs, one, number, judged))
        elif results.paired and kinds[one] == kinds[other]:
            alike = [column for column in recipes if str(recipes.at[one, column]) == str(recipes.at[other, column])]
            blocks = Series([str(row) for row in recipes[alike].to_numpy(object).tolist()], recipes.index)
            pooled = kinds == kinds[one]
            if "experiment" in alike:
                pooled &= recipes["experiment"] == recipes.at[one, "experiment"]
            differences.append(statistics.paired_contrast(runs[pooled], one, other, blocks))
        else:
            differences.append(statistics.contrast(runs, one, other, judged))
    return differences


def _of_numbers(rows: DataFrame, measure: str, found: list[Pair], number: float, results: Results) -> list[Estimate]:
    """The same of numbers that have no seed, with the errors that stand beside them, if any."""
    table = DataFrame({"value": rows[measure], "error": rows.get(f"{measure}_error", 0.0),
                       "df": rows.get(f"{measure}_df", math.inf)}).set_index(rows["recipe"])
    known = {recipe: Estimate(*row, ()) for recipe, row in zip(table.index, table.to_numpy(float), strict=True)}
    return [known[one].minus(known[other] if math.isnan(number) else exact(number)) for one, other, _ in found]


# Rules that papers share


def conjunction(
    numbers: Numbers, shown: Callable[[Estimate], float], refuted: Callable[[Estimate], float]
) -> Decision:
    """The verdict on a sentence that says something of each number.

    Holds if each is shown at the accepted error: then their conjunction is too. Fails if one is refuted, corrected for
    their number by Holm. What is missing, or of unknown error, is neither.

    Args:
        shown, refuted: the probability of such a number if what is said of it were wrong, and if it were right.
    """
    against = holm([refuted(number) for number in numbers.values()]).min()
    if against < ERROR:
        return FAILS, against
    least_shown = max((shown(number) for number in numbers.values()), key=lambda p: (math.isnan(p), p), default=0.0)
    return (HOLDS, least_shown) if least_shown < ERROR else (UNDECIDED, math.nan)


def above(numbers: Numbers, margin: float = 0.0) -> Decision:
    """Whether all differences exceed the margin."""
    return conjunction(numbers, lambda number: number.p("greater", margin), lambda number: number.p("less", margin))


def below(numbers: Numbers, margin: float = 0.0) -> Decision:
    """Whether all differences fall short of the margin."""
    return conjunction(numbers, lambda number: number.p("less", margin), lambda number: number.p("greater", margin))


def within(numbers: Numbers, margin: float) -> Decision:
    """Whether all differences lie within the margin on either side, by two one-sided tests each."""
    return conjunction(numbers, lambda number: max(number.p("greater", -margin), number.p("less", margin)),
                       lambda number: min(1, 2 * min(number.p("less", -margin), number.p("greater", margin))))


def different(numbers: Numbers, margin: float = 0.0) -> Decision:
    """Whether all differences are other than the margin, by a two-sided test each; being equal is never shown."""
    return conjunction(numbers, lambda number: number.p(bound=margin), lambda number: 1.0)


def comparison(
    verdict: Callable[[Numbers, float], Decision], claim: Claim, results: Results
) -> tuple[Decision, Numbers]:
    """A rule that compares the rows a claim names and judges the differences by its margin."""
    numbers = compared(claim, results)
    return verdict(numbers, claim.margin), numbers


def by_reading(
    verdict: Callable[[Numbers, float], Decision], claim: Claim, results: Results
) -> tuple[Decision, Numbers]:
    """As `comparison`, of a sentence with several readings, a number each: undecided where these disagree."""
    numbers = compared(claim, results)
    decisions = [verdict({name: number}, claim.margin) for name, number in numbers.items()]
    agree = len({said for said, _ in decisions}) == 1
    return (max(decisions, key=lambda decision: decision[1]) if agree else (UNDECIDED, math.nan)), numbers


def swept(claim: Claim) -> tuple[str, list[tuple[str, str]], str]:
    """The field of which `first` has several values, each of these with the next, and the rest of `first`."""
    fields = parsed(claim.first)
    field = next((name for name, values in fields.items() if len(values) > 1), "")
    if not field:
        raise ValueError(f"first={claim.first!r} names no field with several values, such as FIELD=1|3|5; write that")
    steps = [*itertools.pairwise(fields.pop(field))]
    return field, steps, "".join(f"{name}={OR.join(values)}; " for name, values in fields.items())


def rises(claim: Claim, results: Results) -> tuple[Decision, Numbers]:
    """Whether each value of the field that `first` sweeps gives more than the one before it."""
    (field, steps, others), numbers = swept(claim), {}
    for low, high in steps:
        numbers |= compared(claim._replace(first=f"{others}{field}={high}", second=f"{field}={low}"), results)
    return above(numbers, claim.margin), numbers


def gap_shrinks(claim: Claim, results: Results) -> tuple[Decision, Numbers]:
    """Whether `first` minus `second` shrinks from each value of the field that `first` sweeps to the next.

    What is above zero is `margin` times the gap at one value minus that at the next. The four means are of different
    rows, so that squared errors add.
    """
    (field, steps, others), numbers = swept(claim), {}
    for low, high in steps:
        before, after = (compared(claim._replace(first=f"{others}{field}={value}"), results) for value in (low, high))
        for name, gap in before.items():
            following = after.get(name, MISSING)
            scaled = gap._replace(value=claim.margin * gap.value, error=claim.margin * gap.error)
            numbers[f"{name}, {field} {low} to {high}"] = scaled.minus(following)
    return above(numbers), numbers


def agrees(claim: Claim, results: Results) -> tuple[Decision, Numbers]:
    """Whether printed numbers are ones that a further run of ours could give.

    Fails if one is refuted (`statistics.entries`, corrected by Holm). Holds if none is, all have runs, no prediction
    interval reaches further than the margin, and the column agrees better than a shuffled one does at the accepted
    error. Only the paper's recipe on real data has a say.

    Beside the entries stands what says little, see `statistics.agreement`, of rows that neither scatter nor are
    refuted.
    """
    if results.level != PAPER:
        return (NOT_RUN, math.nan), {}
    rows, found, missing = pairs(claim, results)
    runs, kinds = runs_of(rows, claim.measure)
    names = {pair.first: pair.name for pair in found}
    own = runs[runs.index.isin([*names])]
    table = statistics.entries(own, rows.groupby("recipe")["printed"].first(), kinds[own.index])
    numbers = {names[row.Index]: Estimate(row.difference, row.error, row.df, (int(own.loc[row.Index].count()), 1))
               for row in table.itertuples()} | dict.fromkeys(missing, MISSING)
    narrow = all(entry.reach() <= claim.margin for entry in numbers.values())  # of missing ones the reach is NaN

    judged = table.drop(index=table.index.intersection(statistics.scattered(runs.std(axis=1))))
    kept, by_chance = judged[~(judged["p_holm"] < ERROR)], math.nan
    if len(kept) > 2:  # fewer have no correlation to speak of
        deviation = statistics.pooled(runs.loc[judged.index]).value
        near = statistics.agreement(runs.loc[kept.index], kept["printed"], deviation=deviation)
        by_chance = near.shuffled_rms
        numbers |= {name: exact(value) for name, value in (
            (f"root mean square of {near.rows}", near.rms), ("of the best constant", near.constant_rms),
            ("of a further run", near.ceiling_rms), ("correlation", near.r), ("shuffled columns as near", by_chance))}
    if (against := table["p_holm"].min()) < ERROR:
        return (FAILS, against), numbers
    return ((HOLDS, by_chance) if narrow and by_chance < ERROR else (UNDECIDED, math.nan)), numbers


RULES: dict[str, Rule] = {
    **{rule.__name__: functools.partial(comparison, rule) for rule in (above, below, within, different)},
    **{f"{rule.__name__} by reading": functools.partial(by_reading, rule) for rule in (above, below)},
    "rises": rises, "gap shrinks": gap_shrinks, "agrees": agrees,
}


# The evaluator


def held(claim: Claim, read: Read) -> tuple[str, float, str, Numbers]:
    """The verdict on a claim, its p (see `Decision`), the level of its evidence ("" without any), and what it rests on.

    Raises:
        ValueError: if there is no such rule, or as `check_values` and `pairs`.
    """
    if choose("rule", claim.rule, (*RULES, NOT_RUN, CANNOT)) not in RULES:
        return claim.rule, math.nan, "", {}
    results = read(claim.experiment)
    check_values(claim, results)
    (verdict, p), numbers = RULES[claim.rule](claim, results) if len(results.rows) else ((NOT_RUN, math.nan), {})
    if all(math.isnan(number.value) for number in numbers.values()):
        return NOT_RUN, math.nan, "", {}
    if results.level == PRINTED:
        verdict = {HOLDS: CONSISTENT, FAILS: CONTRADICTS}.get(verdict, verdict)
    return verdict, p, results.level, numbers


def read_list(path: Path) -> DataFrame:
    """A paper's `claims.csv` or `discrepancies.csv`; texts but for the margin, which is 0 where nothing stands.

    Raises:
        ValueError: as `disk.read_csv`, or if a column is missing or a margin is no number, naming the file.
    """
    table = read_csv(path, dtype=str)
    if lacking := [name for name in ("id", "place", *COMPARED) if name not in table]:
        raise ValueError(f"{path} has no column {', '.join(lacking)}; add it")
    try:
        return table.assign(margin=pd.to_numeric(table["margin"].replace("", "0")))
    except ValueError as error:
        raise ValueError(f"{path}: a margin is no number ({error}); leave it empty if the rule takes none") from error


@devices.threads(1)  # what claims compute is small: two threads would wait for each other five times as long
def judge(rows: DataFrame, read: Read) -> tuple[DataFrame, DataFrame]:
    """The verdict on every row of a list, as of `read_list`; where no rule stands nothing is measured.

    Returns:
        The rows with verdict, p (see `Decision`), level and evidence (the numbers in one line); and the numbers, a row
        for each comparison: id, compared, value, error, p (two-sided, of no difference), reach and detectable (see
        `statistics.Estimate`), runs.
    """
    found, numbers = [], []
    for name, claim in zip(rows["id"], rows[COMPARED].itertuples(index=False, name=None), strict=True):
        try:
            verdict, p, level, estimates = held(Claim(*claim), read) if claim[4] else (NOT_RUN, math.nan, "", {})
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        found.append({"verdict": verdict, "p": p, "level": level, "evidence": in_words(estimates)})
        numbers += [{"id": name, "compared": what, "value": number.value, "error": number.error, "p": number.p(),
                     "reach": number.reach(), "detectable": number.detectable(),
                     "runs": " and ".join(map(str, number.runs))} for what, number in estimates.items()]
    judged = rows.join(DataFrame(found, rows.index, columns=["verdict", "p", "level", "evidence"]))
    return judged, DataFrame(numbers, columns=["id", "compared", "value", "error", "p", "reach", "detectable", "runs"])


def would_not_survive(claims: DataFrame) -> list[str]:
    """Ids of sentences that trained runs decide, and would not if all that these judge were corrected by Holm.

    Verdicts are not corrected across sentences; undecided ones count, as they were tested too.

    Args:
        claims: of `judge`.
    """
    trained = claims[claims["level"].isin([PAPER, SHORTENED, BUNDLED])].set_index("id")
    corrected = holm(trained["p"])
    return [*corrected.index[corrected >= ERROR]]


# For readers


def in_words(numbers: Numbers) -> str:
    """The numbers in one line: comparisons, then numbers without error; of many the lowest and the highest."""
    known = {name: number for name, number in numbers.items() if not math.isnan(number.value)}
    texts = []
    for uncertain in (True, False):
        part = [(name, number) for name, number in known.items() if (number.error != 0) == uncertain]
        if len(part) > LISTED:
            part.sort(key=lambda item: item[1].value)
            texts.append(f"{len(part)} numbers, here the lowest and the highest")
            part = [part[0], part[-1]]
        for name, number in part:
            if uncertain:
                error = "unknown" if math.isnan(number.error) else f"{number.error:.3g}, p {number.p():.2g}"
                runs = f" ({' and '.join(map(str, number.runs))} runs)" if number.runs else ""
                texts.append(f"{name} {number.value:+.3g}, s.e. {error}{runs}")
            else:
                texts.append(f"{name} {number.value:.4g}")
    missing = len(numbers) - len(known)
    return "; ".join([*texts, *([f"not run: {missing}"] if missing and known else [])])


def difference_in_words(value: float, error: float, p: float) -> str:
    """A difference with its standard error and two-sided p: "+17.5, s.e. 1.1, p < 0.001"; those that are known."""
    if math.isnan(value):
        return "not finished"
    if math.isnan(error):
        return f"{value:+.1f}, s.e. unknown"
    return f"{value:+.1f}, s.e. {error:.1f}, {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}"


def lines(claims: DataFrame, discrepancies: DataFrame, width: int | None = None) -> list[str]:
    """Both lists as text, one line each; broken at `width` and indented, where there is one."""
    texts = [f"{row.id:<5} {row.verdict:<18} {row.level:<23} {row.paper}, {row.place}: {row.claim} {row.evidence}"
             for row in claims.itertuples()]
    texts += [f"{row.id:<5} {'discrepancy':<18} {'':<23} {row.paper}, {row.place}: {row.paper_says}; but: "
              f"{row.others_say} [here: {row.here}] {row.measured}" for row in discrepancies.itertuples()]
    if width is None:
        return texts
    return [line for text in texts for line in textwrap.wrap(text, width, subsequent_indent=" " * 6)]


class Evidence:
    """Verdicts and numbers of claims that were judged, by their ids, as sentences of a notebook quote them."""

    def __init__(self, claims: DataFrame, numbers: DataFrame) -> None:
        self._verdicts = claims.set_index("id")["verdict"].to_dict()
        self._numbers = numbers.set_index(["id", "compared"]).to_dict("index")

    def verdicts(self, *names: str) -> list[str]:
        """Those of these claims."""
        return [self._verdicts[choose("claim", name, self._verdicts)] for name in names]

    def listed(self, *names: str) -> str:
        """Claims with their verdicts in one line: "S4 holds, S6 undecided"."""
        return ", ".join(f"{name} {verdict}" for name, verdict in zip(names, self.verdicts(*names), strict=True))

    def number(self, name: str, compared: str) -> Mapping[str, float]:
        """A number of a claim, its value, error, p, reach and detectable; ValueError names those that it has."""
        known = [what for claim, what in self._numbers if claim == name]
        return self._numbers[name, choose(f"comparison of {name}", compared, known)]

    def value(self, name: str, compared: str) -> float:
        """The value of a number of a claim; errors as for `number`."""
        return self.number(name, compared)["value"]

    def words(self, name: str, compared: str) -> str:
        """A difference of a claim as `difference_in_words`."""
        number = self.number(name, compared)
        return difference_in_words(number["value"], number["error"], number["p"])
