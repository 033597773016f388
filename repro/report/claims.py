"""Sentences of the papers as data, and the one evaluator that judges them.

A row of a paper's `claims.csv` is a sentence and how it is held against numbers:

    id, place, says   where the sentence stands, and the sentence in our words
    experiment        whose results count, several between spaces; "printed/NAME" for a printed table, "log/NAME" for a
                      table of figures/; empty where a closed form decides
    measure           column of these results, several between commas; "ours" is the main one of an experiment
    first, second     which rows are compared: "method=xmoco; characters=1|3|5". A field that `second` does not name is
                      as in the first row; "*" is every other value. A `second` that is a number is compared with
                      itself, and "measure=NAME" compares two columns of a row
    rule, margin      one of `RULES` or of the paper's own rules, and the number it takes

A row of `discrepancies.csv`, where a paper disagrees with itself or its code, has the same columns for what we measured
about it, and no verdict.
"""

import itertools
import math
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pandas import DataFrame, Series
from scipy import stats

from repro.data import manifest
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

POOLED, PAIRED, OWN = "pooled over rows", "paired by seeds", "each row's own"  # errors of differences
ERROR = 0.05  # probability of a wrong verdict that is accepted
ANY, OR = "*", "|"
UNTRAINED = ("objectives", "method", "approach")  # columns in which "random" is a network that is not trained
COMPARED = ["experiment", "measure", "first", "second", "rule", "margin"]  # columns of both lists
SAME = 0.05  # points, within which numbers of one digit are equal
SHOWN, LISTED = 3, 8  # comparisons, and numbers without error, that a line of evidence lists


class Results(NamedTuple):
    """What a claim is held against.

    Attributes:
        rows: one for each recipe and seed, or of a printed table.
        apart: columns that tell recipes apart, see `independent`; of most printed tables none: a claim names them.
        level: how far the rows carry, one of `LEVELS`.
        errors: of differences, `POOLED`; `PAIRED` where seeds share their data; or `OWN`, each row's, as in Welch's.
    """

    rows: DataFrame
    apart: list[str]
    level: str
    errors: str = POOLED


class Claim(NamedTuple):
    """How a sentence is held against numbers; see the head of this module."""

    experiment: str
    measure: str
    first: str
    second: str
    rule: str
    margin: float


Fields = Mapping[str, Any]  # of a recipe, or a row of a printed table
Numbers = Mapping[str, Estimate]  # by what is compared; value and error NaN where a side is missing
Judged = tuple[str | bool, Numbers]  # a verdict, or whether the sentence follows, and what it rests on
Rule = Callable[[Claim, Results], Judged]
Read = Callable[[str], Results]  # of an experiment; no rows where nothing of it is finished


def level_of(dataset: str, preset: str, changed: bool = False) -> str:
    """How far numbers of ours carry, one of the last three of `LEVELS`.

    Args:
        dataset: its label; a part or copy, "ntu (subset)", is not the official data.
        preset: of the recipe.
        changed: whether the recipe departs from its preset.

    Raises:
        ValueError: if there is no such data set.
    """
    if manifest.bundled(dataset):
        return BUNDLED
    return PAPER if preset == "paper" and dataset == manifest.plain(dataset) and not changed else SHORTENED


def exact(value: float) -> Estimate:
    """A number without error: printed, or of a closed form."""
    return Estimate(float(value), math.nan, math.nan, ())


MISSING = exact(math.nan)


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
            raise ValueError(f"{part!r} in {text!r} is no FIELD=VALUE; write that")
        terms[field.strip()] = [value.strip() for value in values.split(OR)]
    return terms


def measures_of(claim: Claim) -> list[str]:
    """The columns that a claim is about."""
    return [name.strip() for name in claim.measure.split(",")]


def independent(rows: DataFrame, columns: list[str]) -> list[str]:
    """The columns that tell more rows apart than those before them do: not the ones that follow from these."""
    kept: list[str] = []
    count = 1
    for column in columns:
        groups = len(rows[[*kept, column]].drop_duplicates())
        if groups > count:
            kept.append(column)
            count = groups
    return kept


def pairs(claim: Claim, results: Results) -> list[tuple[Fields, Fields]]:
    """The recipes that a claim compares, each by the columns that tell recipes apart.

    Raises:
        ValueError: if the results lack a field that the claim names.
    """
    first, second = parsed(claim.first), parsed(claim.second)
    second.pop("measure", None)
    named = list(dict.fromkeys([*first, *second]))
    if lacking := [field for field in named if field not in results.rows]:
        raise ValueError(f"{claim.experiment} has no {', '.join(lacking)}; its columns are "
                         f"{', '.join(results.rows.columns)}")
    columns = list(dict.fromkeys([*results.apart, *named]))
    known, found = results.rows[columns].drop_duplicates().to_dict("records"), []
    for one in known:
        if not _fits(one, first):
            continue
        for other in known:
            shared = all(_same(one[column], other[column]) for column in columns if column not in second)
            another = not second or any(one[column] != other[column] for column in second)
            if shared and another and _fits(other, second):
                found.append((one, other))
    return found


def _fits(row: Fields, terms: Mapping[str, list[str]]) -> bool:
    """Whether a row has one of the values of each field; "*" is all but networks that are not trained."""
    for field, texts in terms.items():
        value = row[field]
        if texts == [ANY]:
            fits = not (field in UNTRAINED and value == "random")
        elif isinstance(value, bool | str):
            fits = str(value) in texts
        else:
            fits = any(math.isclose(float(value), float(text)) for text in texts)
        if not fits:
            return False
    return True


def _same(value: object, other: object) -> bool:
    """Whether two values agree; a column that only one of two experiments has tells nothing."""
    return bool(value == other or pd.isna(value) or pd.isna(other))


def _lacking(claim: Claim, found: list[tuple[Fields, Fields]]) -> list[str]:
    """Values named in a claim of which no row is compared."""
    missing = []
    for side, text in enumerate((claim.first, claim.second)):
        for field, values in parsed(text).items():
            for value in values:
                named = value != ANY and field != "measure"
                if named and not any(_fits(pair[side], {field: [value]}) for pair in found):
                    missing.append(f"{field}={value}")
    return list(dict.fromkeys(missing))


def _names(found: list[tuple[Fields, Fields]]) -> list[str]:
    """What each comparison is called: what differs between its sides, then what differs between comparisons."""
    columns = [*found[0][0]] if found else []
    varied = [column for column in columns if len({str(one[column]) for one, _ in found}) > 1]
    names = []
    for one, other in found:
        unlike = [column for column in columns if not _same(one[column], other[column])]
        shared = [column for column in varied if column not in unlike]
        over = f"{_label(one, unlike)} over {_label(other, unlike)}" if unlike else ""
        names.append(", ".join(filter(None, [over, _label(one, shared)])))
    return names


def _label(row: Fields, columns: list[str]) -> str:
    """What a row is called: texts speak for themselves, numbers need their field."""
    return ", ".join(row[column] if isinstance(row[column], str) else f"{column} {row[column]:g}"
                     for column in columns if pd.notna(row[column]))


def runs_of(results: Results, measure: str) -> tuple[DataFrame, Series]:
    """A measure by recipe and seed, as `statistics` takes it, and the kind of each recipe, with which it is pooled.

    Recipes are called as `key_of` has it. They are pooled within one target, and untrained networks among themselves.
    """
    rows = results.rows.assign(recipe=[key_of(row, results) for row in results.rows.to_dict("records")])
    runs = rows.groupby(["recipe", "seed"], sort=False)[measure].mean().unstack("seed").dropna(how="all")
    first = rows.drop_duplicates("recipe").set_index("recipe").loc[runs.index]
    if results.errors == OWN:
        return runs, Series(runs.index, runs.index)
    untrained = first[first.columns.intersection(UNTRAINED)].eq("random").any(axis=1)
    target = first["target"] if "target" in first else Series("", first.index)
    return runs, target + untrained.map({True: " untrained", False: " trained"})


def key_of(row: Fields, results: Results) -> str:
    """What `runs_of` calls the recipe of a row: the values that tell it apart."""
    return ", ".join(str(row[column]) for column in results.apart) or "all"


# Rules that papers share


def compared(claim: Claim, results: Results) -> dict[str, Estimate]:
    """The first rows minus the second ones, or minus the number that `second` is, for every measure.

    Errors are those of `statistics.contrast` or `paired_contrast`, as the results say; printed numbers have none. A
    value that the claim names and the results lack is a comparison with a missing side.

    Raises:
        ValueError: as `pairs`; or if rows of a printed table are missing or not told apart.
    """
    try:
        number = float(claim.second)
        claim = claim._replace(second="")
    except ValueError:
        number = math.nan
    found, measures = pairs(claim, results), measures_of(claim)
    if results.level == PRINTED and not found:
        raise ValueError(f"{claim.experiment} has no rows {claim.first!r} and {claim.second!r}")
    numbers = dict.fromkeys(_lacking(claim, found), MISSING)
    for measure in measures:
        if results.level == PRINTED:
            differences = _printed_differences(claim, results, measure, found)
        else:
            differences = _differences(results, measure, found, number)
        for name, difference in zip(_names(found), differences, strict=True):
            if results.level != PRINTED or not math.isnan(difference.value):  # what is not printed is left out
                numbers[", ".join(filter(None, [name, measure if len(measures) > 1 else ""])) or measure] = difference
    return numbers


def _differences(
    results: Results, measure: str, found: list[tuple[Fields, Fields]], number: float
) -> list[Estimate]:
    """Our first rows minus the second ones, or minus a number unless that is NaN."""
    (runs, kinds), differences = runs_of(results, measure), []
    for pair in found:
        one, other = (key_of(row, results) for row in pair)
        if not {one, other} <= {*runs.index}:
            differences.append(MISSING)
        elif not math.isnan(number):
            differences.append(statistics.from_number(runs, one, number, kinds))
        elif results.errors == PAIRED:
            differences.append(statistics.paired_contrast(runs[kinds == kinds[one]], one, other))
        else:
            differences.append(statistics.contrast(runs, one, other, kinds))
    return differences


def _printed_differences(
    claim: Claim, results: Results, measure: str, found: list[tuple[Fields, Fields]]
) -> list[Estimate]:
    """Printed first rows minus the second ones; NaN where one is not printed."""
    columns = measure, parsed(claim.second).get("measure", [measure])[0]
    rows, differences = results.rows.to_dict("records"), []
    for pair in found:
        values = []
        for side, column in zip(pair, columns, strict=True):
            known = [row[column] for row in rows if all(str(row[field]) == str(value) for field, value in side.items())]
            if len(known) != 1:
                raise ValueError(f"{len(known)} printed rows have {side}; name what tells them apart")
            values += known
        differences.append(exact(values[0] - values[1]))
    return differences


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


def below(numbers: Numbers, margin: float = 0.0) -> str | bool:
    """Whether all differences fall short of the margin; as `above`."""
    return above(numbers, margin, alternative="less")


def within(numbers: Numbers, margin: float) -> str | bool:
    """Whether all differences lie within the margin on either side, by two one-sided tests each; as `above`."""
    sides = [above(numbers, -margin), below(numbers, margin)]
    if isinstance(sides[0], bool):
        return all(sides)
    return FAILS if FAILS in sides else HOLDS if sides == [HOLDS, HOLDS] else UNDECIDED


def different(numbers: Numbers, margin: float = 0.0) -> str:
    """Whether all differences are other than the margin, by a two-sided test each; being equal is never shown."""
    return HOLDS if all(number.p(bound=margin) < ERROR for number in numbers.values()) else UNDECIDED


def equals(numbers: Numbers, margin: float) -> bool:
    """Whether all printed differences are the margin, to its one digit."""
    return all(abs(number.value - margin) < SAME for number in numbers.values())


def comparison(judge: Callable[[Numbers, float], str | bool]) -> Rule:
    """A rule that compares the rows a claim names and judges the differences by its margin."""

    def rule(claim: Claim, results: Results) -> Judged:
        numbers = compared(claim, results)
        return judge(numbers, claim.margin) if numbers else NOT_RUN, numbers  # of no printed number nothing is said

    return rule


def swept(claim: Claim) -> tuple[str, list[tuple[str, str]], str]:
    """The field of which `first` has several values, each of these with the next, and the rest of `first`."""
    fields = parsed(claim.first)
    field = next(name for name, values in fields.items() if len(values) > 1)
    steps = [*itertools.pairwise(fields.pop(field))]
    return field, steps, "".join(f"{name}={OR.join(values)}; " for name, values in fields.items())


def rises(claim: Claim, results: Results) -> Judged:
    """Whether each value of the field that `first` sweeps gives more than the one before it."""
    (field, steps, others), numbers = swept(claim), {}
    for low, high in steps:
        numbers |= compared(claim._replace(first=f"{others}{field}={high}", second=f"{field}={low}"), results)
    return above(numbers, claim.margin), numbers


def gap_shrinks(claim: Claim, results: Results) -> Judged:
    """Whether `first` minus `second` shrinks from each value of the field that `first` sweeps to the next.

    What is above zero is `margin` times the gap at one value minus that at the next. The four means are of different
    rows, so that squared errors add.
    """
    (field, steps, others), numbers = swept(claim), {}
    for values in steps:
        before, after = (compared(claim._replace(first=f"{others}{field}={value}"), results) for value in values)
        for name, gap in before.items():
            following = after.get(name, MISSING)
            numbers[f"{name}, {field} {' to '.join(values)}"] = Estimate(
                claim.margin * gap.value - following.value, math.hypot(claim.margin * gap.error, following.error),
                min(gap.df, following.df), gap.runs)
    return above(numbers), numbers


def agrees(claim: Claim, results: Results) -> Judged:
    """Whether printed numbers are ones that a further run of ours could give.

    Fails if one is refuted (`statistics.entries`, corrected by Holm). Holds if none is, all have runs, no prediction
    interval reaches further than the margin, and the column agrees better than a shuffled one does at the accepted
    error. Only the paper's recipe on real data has a say.

    Beside the entries stands what says little, see `statistics.agreement`: rows that scatter are left out, then, for
    distance and correlation, those that are refuted.
    """
    if results.level != PAPER:
        return NOT_RUN, {}
    found = pairs(claim, results)
    called = {key_of(row, results): name for name, (row, _) in zip(_names(found), found, strict=True)}
    runs, kinds = runs_of(results, claim.measure)
    known, counts = [key for key in called if key in runs.index], runs.count(axis=1)
    published = Series({key_of(row, results): row["published"] for row in results.rows.to_dict("records")})
    table = statistics.entries(runs.loc[known], published, kinds[known])
    entries = {called[key]: Estimate(row.difference, row.error, row.df, (int(counts[key]), 1))
               for key, row in zip(table.index, table.itertuples(), strict=True)}
    entries |= dict.fromkeys(_lacking(claim, found), MISSING)

    judged = table.drop(index=table.index.intersection(statistics.scattered(runs)))
    kept = judged[~(judged["p_holm"] < ERROR)]
    numbers, by_chance = dict(entries), math.nan
    if len(kept) > 2:  # fewer have no correlation to speak of
        deviation = statistics.pooled(runs.loc[judged.index]).value
        every = statistics.agreement(runs.loc[judged.index], judged["printed"], deviation=deviation)
        others = statistics.agreement(runs.loc[kept.index], kept["printed"], deviation=deviation)
        beside = {
            f"within two deviations, of {every.rows}": every.near, "of the best constant": every.constant_near,
            "share of shuffled columns with as many": every.shuffled_near,
            f"root mean square of {others.rows} that are not refuted": others.rms,
            "of the best constant's": others.constant_rms, "of a further run": others.ceiling_rms,
            "correlation": others.r, "share of shuffled columns as near": others.shuffled_rms,
        }
        numbers |= {name: exact(value) for name, value in beside.items()}
        by_chance = others.shuffled_rms
    if (table["p_holm"] < ERROR).any():
        return FAILS, numbers
    narrow = all(entry.reach() <= claim.margin for entry in entries.values())  # of missing ones the reach is NaN
    return HOLDS if narrow and by_chance < ERROR else UNDECIDED, numbers


def steadier(claim: Claim, results: Results) -> Judged:
    """Whether the first row scatters less between seeds than each second one: F test of their variances."""
    (runs, _), found = runs_of(results, claim.measure), pairs(claim, results)
    numbers, p = {}, []
    for name, pair in zip(_names(found), found, strict=True):
        values = [runs.loc[key_of(row, results)].dropna() for row in pair]
        ratio = values[0].var() / values[1].var()
        numbers[f"variance of {name}"] = exact(ratio)
        p.append(stats.f.cdf(ratio, *(len(side) - 1 for side in values)))
    if (holm([1 - value for value in p]) < ERROR).any():
        return FAILS, numbers
    return HOLDS if all(value < ERROR for value in p) else UNDECIDED, numbers


RULES: dict[str, Rule] = {
    "above": comparison(above), "below": comparison(below), "within": comparison(within),
    "different": comparison(different), "equals": comparison(equals), "rises": rises, "gap shrinks": gap_shrinks,
    "agrees": agrees, "steadier": steadier,
    **{verdict: lambda claim, results, verdict=verdict: (verdict, {}) for verdict in (NOT_RUN, CANNOT)},
}


# The evaluator


def held(claim: Claim, read: Read, rules: Mapping[str, Rule]) -> tuple[str, str, dict[str, Estimate]]:
    """The verdict on a claim, the level of its evidence ("" without any), and what it rests on.

    Raises:
        ValueError: if there is no such rule, or as `pairs`.
    """
    rule, results = rules[choose("rule", claim.rule, rules)], read(claim.experiment)
    if claim.experiment and results.rows.empty:
        return NOT_RUN, "", {}
    verdict, numbers = rule(claim, results)
    if numbers and all(math.isnan(number.value) for number in numbers.values()):
        verdict = NOT_RUN
    if not isinstance(verdict, str):
        verdict = HOLDS if verdict else FAILS
    if results.level == PRINTED:
        verdict = {HOLDS: CONSISTENT, FAILS: CONTRADICTS}.get(verdict, verdict)
    return verdict, "" if verdict in (NOT_RUN, CANNOT) else results.level, dict(numbers)


def read_list(path: Path) -> DataFrame:
    """A paper's `claims.csv` or `discrepancies.csv`; texts but for the margin, which is 0 where nothing stands.

    Raises:
        ValueError: if a column is missing or a margin is no number, naming the file.
    """
    table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    if lacking := [name for name in ("id", "place", *COMPARED) if name not in table]:
        raise ValueError(f"{path} has no column {', '.join(lacking)}; add it")
    try:
        return table.assign(margin=pd.to_numeric(table["margin"].replace("", "0")))
    except ValueError as error:
        raise ValueError(f"{path}: a margin is no number ({error}); leave it empty if the rule takes none") from error


@devices.threads(1)  # what claims compute is small: two threads would wait for each other five times as long
def judge(rows: DataFrame, read: Read, rules: Mapping[str, Rule]) -> tuple[DataFrame, DataFrame]:
    """The verdict on every row of a list, as of `read_list`.

    Args:
        rows: claims or discrepancies; where no rule stands nothing is measured.
        read: the results of an experiment.
        rules: `RULES` and those of the papers, by name.

    Returns:
        The rows with verdict, level and evidence (the numbers in one line); and the numbers, a row for each comparison:
        id, compared, value, error, p (two-sided, of no difference), runs. Of a number without error only the value is
        known.
    """
    found, numbers = [], []
    for name, claim in zip(rows["id"], rows[COMPARED].itertuples(index=False, name=None), strict=True):
        try:
            verdict, level, estimates = held(Claim(*claim), read, rules) if claim[4] else (NOT_RUN, "", {})
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        found.append({"verdict": verdict, "level": level, "evidence": in_words(estimates)})
        numbers += [{"id": name, "compared": what, "value": number.value, "error": number.error, "p": number.p(),
                     "runs": " and ".join(map(str, number.runs))} for what, number in estimates.items()]
    judged = rows.join(DataFrame(found, rows.index, columns=["verdict", "level", "evidence"]))
    return judged, DataFrame(numbers, columns=["id", "compared", "value", "error", "p", "runs"])


# For readers


def in_words(numbers: Numbers) -> str:
    """The numbers in one line; of many comparisons, or of many numbers without error, the lowest and the highest."""
    known, parts = {name: number for name, number in numbers.items() if not math.isnan(number.value)}, []
    for kind, most in (("comparisons", SHOWN), ("numbers", LISTED)):
        names = [name for name, number in known.items() if bool(number.runs) == (kind == "comparisons")]
        before = ""
        if len(names) > most:
            before = f"{len(names)} {kind}, the lowest and the highest: "
            ordered = sorted(names, key=lambda name: known[name].value)
            names = [ordered[0], ordered[-1]]
        if names:
            parts.append(before + "; ".join(_number_in_words(name, known[name]) for name in names))
    missing = len(numbers) - len(known)
    return "; ".join([*parts, *([f"not run: {missing}"] if missing and known else [])])


def _number_in_words(name: str, number: Estimate) -> str:
    if not number.runs:
        return f"{name} {number.value:.4g}".lstrip()
    error = "unknown" if math.isnan(number.error) else f"{number.error:.3g}"
    runs = " and ".join(map(str, number.runs))
    return f"{name} {number.value:+.3g}, s.e. {error}, p {number.p():.2g} ({runs} runs)".lstrip()


def lines(claims: DataFrame, discrepancies: DataFrame, width: int | None = None) -> list[str]:
    """Both lists as text, one line each; broken at `width` and indented, where there is one."""
    texts = [f"{row.id:<5} {row.verdict:<17} {row.level:<23} {row.paper}, {row.place}: {row.claim} {row.evidence}"
             for row in claims.itertuples()]
    texts += [f"{row.id:<5} {'discrepancy':<17} {'':<23} {row.paper}, {row.place}: {row.paper_says}; but: "
              f"{row.others_say} [here: {row.here}] {row.measured}" for row in discrepancies.itertuples()]
    if width is None:
        return texts
    return [line for text in texts for line in textwrap.wrap(text, width, subsequent_indent=" " * 6)]


class Evidence:
    """Verdicts and numbers of claims by their ids, of `repro.papers.judged`, as sentences of a notebook quote them."""

    def __init__(self, claims: DataFrame, numbers: DataFrame) -> None:
        self._verdicts = claims.set_index("id")["verdict"].to_dict()
        self._numbers = numbers.set_index(["id", "compared"]).to_dict("index")

    def verdicts(self, *names: str) -> list[str]:
        """Those of these claims."""
        return [self._verdicts[choose("claim", name, self._verdicts)] for name in names]

    def value(self, name: str, compared: str) -> float:
        """A number of a claim; ValueError names those that it has."""
        known = [what for claim, what in self._numbers if claim == name]
        return self._numbers[name, choose(f"comparison of {name}", compared, known)]["value"]

    def words(self, name: str, compared: str) -> str:
        """A difference of a claim with its standard error and two-sided p: "+17.5, s.e. 1.1, p < 0.001"."""
        value, number = self.value(name, compared), self._numbers[name, compared]
        p = "p < 0.001" if number["p"] < 0.001 else f"p = {number['p']:.3f}"
        return f"{value:+.1f}, s.e. {number['error']:.1f}, {p}"

    def listed(self, *names: str) -> str:
        """Claims with their verdicts in one line: "S4 holds, S6 undecided"."""
        return ", ".join(f"{name} {verdict}" for name, verdict in zip(names, self.verdicts(*names), strict=True))
