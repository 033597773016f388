"""Sentences of the papers as data, and how they are judged.

An entry of a paper's `claims.yaml` is a sentence and how it is held against numbers:

    J10:
      place: supplement, Fig. M.2
      says: M' = 5 is kept in the other ablations (trained here: no other number is better by a point).
      experiment: positive_keys_cifar10
      first: {keys: 5, strength: 4, temperature: 0.2}
      second: {keys: any}
      rule: above
      margin: -1

    experiment     whose results count, one or a list; "printed/NAME" is a printed table, "log/NAME" a table of
                   figures/; the paper's module `claims` derives further ones from these
    measure        column of these results, one or a list; "ours", the main one of an experiment, if none is named
    first, second  which rows are compared, by the values of their fields. A field that `second` does not name is as in
                   the first row; "any" is every other value. A `second` that is a number is compared with itself
    rule, margin   one of `RULES`, and the number it takes; or "not run", or "cannot be checked"
    blocks         of how many seeds at least the verdict is, of those that every recipe of the experiment has, where
                   seeds are blocks: each has an effect on all recipes, which `statistics.paired_contrast` takes away

An entry of the id of a discrepancy, where a paper disagrees with itself or its code, says what we measured about it. It
has no sentence and gets no verdict.
"""

import functools
import itertools
import math
import textwrap
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import pandas as pd
import pydantic
from pandas import DataFrame, Series
from pydantic.dataclasses import dataclass

from repro.data import manifest
from repro.recipe import choose
from repro.report import statistics
from repro.report.statistics import Estimate, holm
from repro.report.text import WIDTH, in_columns
from repro.run import device as devices

VERDICTS = HOLDS, FAILS, CONSISTENT, CONTRADICTS, UNDECIDED, NOT_RUN, CANNOT = (
    "holds", "fails", "self-consistent", "contradicts itself", "undecided", "not run", "cannot be checked")
LEVELS = CLOSED, PRINTED, PAPER, SHORTENED, BUNDLED = (  # of evidence, those that carry furthest first
    "closed form", "printed numbers", "paper recipe, real data", "shortened, real data", "bundled data")

DRAWN = ("multiomniglot",)  # data sets of whose samples a seed draws what is shown, alike for recipes of equal data
ERROR = 0.05  # probability of a wrong verdict that is accepted
ANY = "any"  # every value of a field, on the second side every other one
METHODS = ("objectives", "method", "approach")  # columns that name what a network is trained by
UNTRAINED = ("random",)  # what they call one that is not trained
FROM_SCRATCH = ("scratch", "Scratch")  # the same where results are paired: those encoders are probed, not fine-tuned
LISTED = 5  # comparisons, and numbers without error, that a line of evidence lists at most
BY_CHANCE = "share of permutations as near"  # the number of a column that agrees less than its permutations do

Value = bool | int | float | str
SOME = pydantic.Field(min_length=1)
Names = str | Annotated[list[str], SOME]
Fields = dict[str, Value | Annotated[list[Value], SOME]]  # what a side names, by field


@dataclass(frozen=True, kw_only=True, config=pydantic.ConfigDict(extra="forbid"))
class Claim:
    """How a sentence is held against numbers, an entry of a file; see the head of this module."""

    file: str = "claims.yaml"
    place: str = ""
    says: str = ""
    experiment: Names = ""
    measure: Names = "ours"
    first: Fields = pydantic.Field(default_factory=dict)
    second: pydantic.StrictFloat | Fields | None = None
    rule: str
    margin: pydantic.StrictFloat = 0.0
    blocks: Annotated[int, pydantic.Field(strict=True, ge=0)] = 0


class Results(NamedTuple):
    """What a claim is held against.

    Attributes:
        rows: one for each recipe and seed. Numbers that have no column `seed`, as printed ones, have the error and the
            degrees of freedom of the columns `<measure>_error` and `<measure>_df`, or none.
        apart: columns that tell recipes apart, besides those that a claim names.
        level: how far the rows carry, one of `LEVELS`; "" if nothing is finished.
        paired: whether runs of one seed share more than its number, see `statistics.paired_contrast`.
        unfinished: what tells recipes apart that are asked for and of which no run is finished, a row each.
        blocks: see `Claim`; 0 where seeds are none.
    """

    rows: DataFrame
    apart: list[str]
    level: str
    paired: bool = False
    unfinished: DataFrame = DataFrame()
    blocks: int = 0


Pairs = dict[str, tuple[int, int]]  # the numbers of two recipes, by what their comparison is called
Numbers = dict[str, Estimate]  # by what is compared; value and error NaN where a side is missing
Decision = tuple[str, float]  # the verdict, and the least error at which it would be this one; NaN of undecided ones
MISSING = Estimate(math.nan, math.nan, math.nan, ())


def listed(value: Any) -> list[Any]:
    """The values of an entry that may be one or a list."""
    return value if isinstance(value, list) else [value]


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


def paired(results: Results, first: Fields, second: Fields) -> tuple[DataFrame, Pairs, list[str]]:
    """The recipes that a claim compares; each with itself if `second` names nothing.

    Returns:
        The rows, with the number of their recipe as `recipe`; the comparisons; and what the claim names that is in none
        of them.

    Raises:
        ValueError: if the results lack a field or a value that the claim names, no two recipes of its sides are alike
            in all else, or two rows of one seed are not told apart.
    """
    rows, fields = results.rows, list(dict.fromkeys([*results.apart, *first, *second]))
    if len(results.unfinished):  # which have no seed and no numbers
        rows = pd.concat([rows, results.unfinished], ignore_index=True)
    for field in fields:
        choose("field", field, rows.columns)
    for field, value in (*_named(first), *_named(second)):
        known = rows[field].dropna().unique().tolist()
        if known and value not in known:
            choose(field, value, known)

    rows = rows.assign(recipe=rows.groupby(fields, sort=False, dropna=False).ngroup())
    recipes = rows.drop_duplicates("recipe").set_index("recipe")[fields]
    uses = {number: {field: value for field, value in recipe.items() if pd.notna(value)}
            for number, recipe in recipes.to_dict("index").items()}
    said = {field for side in (first, second) for field, _ in _named(side) if len(listed(side[field])) == 1}
    sides, pairs = [_chosen(recipes, side).index for side in (first, second or first)], {}
    for one, other in itertools.product(*sides):
        row, against = uses[one], uses[other]
        both = [field for field in fields if field in row and field in against]  # others tell nothing
        unlike = [field for field in both if row[field] != against[field]]
        apart = one != other and any(field in unlike or field not in both for field in second)
        if {*unlike} <= {*second} and (apart if second else one == other):
            shared = [field for field in fields if field not in (*unlike, *said)]
            over = f"{_label(row, unlike)} over {_label(against, unlike)}" if unlike else ""
            pairs[", ".join(filter(None, (over, _label(against | row, shared))))] = one, other
    if first and not pairs and all(map(len, sides)):
        raise ValueError(f"first={first} and second={second} name no two recipes alike in all else; name others")

    used = rows[rows["recipe"].isin([*itertools.chain(*pairs.values())])]
    if used.duplicated(["recipe", "seed"] if "seed" in rows else "recipe").any():
        raise ValueError(f"several rows have one {', '.join(fields)}; name what tells them apart")
    lacking = []
    for number, side in enumerate((first, second)):
        there = [uses[pair[number]] for pair in pairs.values()]
        lacking += [f"{field}={value}" for field, value in _named(side)
                    if not any(recipe.get(field) == value for recipe in there)]
    return rows, pairs, lacking


def _named(side: Fields) -> list[tuple[str, Value]]:
    """The values that a side names, with their fields."""
    return [(field, value) for field, values in side.items() if values != ANY for value in listed(values)]


def _chosen(recipes: DataFrame, side: Fields) -> DataFrame:
    """The recipes of a side; "any" is all but networks of random weights."""
    for field, values in side.items():
        if values != ANY:
            recipes = recipes[recipes[field].isin(listed(values))]
        elif field in METHODS:
            recipes = recipes[~recipes[field].isin(UNTRAINED)]
    return recipes


def _label(row: Mapping[str, Any], fields: list[str]) -> str:
    """What a row is called: texts speak for themselves, numbers need their field."""
    return ", ".join(row[field] if isinstance(row[field], str) else f"{field} {row[field]:g}"
                     for field in fields if field in row)


def runs_of(rows: DataFrame, measure: str, names: tuple[str, ...] = UNTRAINED) -> tuple[DataFrame, Series]:
    """A measure by recipe and seed, as `statistics` takes it, and the kind of each recipe, with which it is pooled.

    Recipes are pooled within one target, and untrained networks, which have these names, among themselves.
    """
    runs = rows.groupby(["recipe", "seed"])[measure].mean().unstack("seed").dropna(how="all")
    first = rows.drop_duplicates("recipe").set_index("recipe").loc[runs.index]
    untrained = first[first.columns.intersection(METHODS)].isin(names).any(axis=1)
    target = first["target"] if "target" in first else Series("", first.index)
    return runs, target + untrained.map({True: " untrained", False: " trained"})


def compared(
    results: Results, first: Fields, second: Fields | float, measure: str | list[str] = "ours"
) -> Numbers:
    """The first rows minus the second ones, or minus the number that `second` is, for every measure.

    A value that is named and that no row compared has is a comparison with a missing side.

    Raises:
        ValueError: as `paired`, and if `second` names nothing.
    """
    if second in ({}, None):
        raise ValueError(f"second={second} compares nothing; name other rows there, or a number")
    number, against, others = math.nan, "", second
    if not isinstance(second, dict):
        number, against, others = second, f" minus {second:g}", {}
    rows, pairs, lacking = paired(results, first, others)
    numbers = dict.fromkeys(lacking, MISSING)
    measures, of_pairs = listed(measure), _of_runs if "seed" in rows else _of_numbers
    for name in measures:
        for what, difference in zip(pairs, of_pairs(rows, name, [*pairs.values()], number, results), strict=True):
            named = what if len(measures) == 1 else f"{what}, {name}".removeprefix(", ")
            numbers[(named or name) + against] = difference
    return numbers


def _of_runs(
    rows: DataFrame, measure: str, pairs: list[tuple[int, int]], number: float, results: Results
) -> list[Estimate]:
    """The differences of pairs, or from a number unless that is NaN, with errors as in `statistics`."""
    (runs, kinds), differences = runs_of(rows, measure, FROM_SCRATCH if results.paired else UNTRAINED), []
    judged = statistics.deviations(runs, kinds)
    recipes = rows.drop_duplicates("recipe").set_index("recipe")[results.apart].loc[runs.index]
    for one, other in pairs:
        if not {one, other} <= {*runs.index}:
            differences.append(MISSING)
        elif not math.isnan(number):
            differences.append(statistics.from_number(runs, one, number, judged))
        elif results.blocks:
            whole = runs.dropna(axis="columns")
            enough = len(whole.columns) >= results.blocks and results.unfinished.empty
            differences.append(statistics.paired_contrast(whole, one, other) if enough else MISSING)
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


def _of_numbers(
    rows: DataFrame, measure: str, pairs: list[tuple[int, int]], number: float, results: Results
) -> list[Estimate]:
    """The same of numbers that have no seed, with the errors that stand beside them, if any."""
    table = DataFrame({"value": rows[measure], "error": rows.get(f"{measure}_error", 0.0),
                       "df": rows.get(f"{measure}_df", math.inf)}).set_index(rows["recipe"])
    known = {recipe: Estimate(*row, ()) for recipe, row in zip(table.index, table.to_numpy(float), strict=True)}
    return [known[one].minus(known[other] if math.isnan(number) else exact(number)) for one, other in pairs]


# Which numbers a rule takes


def differences(claim: Claim, results: Results) -> Numbers:
    """The rows that a claim names, compared."""
    return compared(results, claim.first, claim.second, claim.measure)


def steps(claim: Claim, results: Results) -> Numbers:
    """What each value of the field that `first` sweeps gives more than the one before it."""
    field, values, others = swept(claim.first)
    numbers: Numbers = {}
    for low, high in itertools.pairwise(values):
        numbers |= compared(results, {**others, field: high}, {field: low}, claim.measure)
    return numbers


def gaps(claim: Claim, results: Results) -> Numbers:
    """By how much `margin` times `first` minus `second` exceeds the same at the next value that `first` sweeps.

    The four means are of different rows, so that squared errors add.
    """
    field, values, others = swept(claim.first)
    numbers: Numbers = {}
    for low, high in itertools.pairwise(values):
        before, after = (compared(results, {**others, field: value}, claim.second, claim.measure)
                         for value in (low, high))
        for name, gap in before.items():
            scaled = gap._replace(value=claim.margin * gap.value, error=claim.margin * gap.error)
            numbers[f"{name}, {field} {low} to {high}"] = scaled.minus(after.get(name, MISSING))
    return numbers


def swept(first: Fields) -> tuple[str, list[Value], Fields]:
    """The field of which `first` has several values, these, and the rest of `first`."""
    for field, values in first.items():
        if len(listed(values)) > 1:
            return field, listed(values), {other: first[other] for other in first if other != field}
    raise ValueError(f"first={first} names no field with several values, such as FIELD: [1, 3, 5]; write that")


def beside_print(claim: Claim, results: Results) -> Numbers:
    """Our numbers minus printed ones, each of which counts as one more run; only of the paper's recipe on real data.

    Beside them stands what says little, see `statistics.agreement`, of rows that neither scatter nor are refuted.
    """
    if results.level != PAPER:
        return {}
    rows, pairs, lacking = paired(results, claim.first, {})
    names = {recipe: name for name, (recipe, _) in pairs.items()}
    measure, = listed(claim.measure)
    runs, kinds = runs_of(rows, measure)
    own = runs[runs.index.isin([*names])]
    deviations = statistics.deviations(own, kinds)
    printed = rows.groupby("recipe")["printed"].first()[own.index].dropna()
    away = {recipe: statistics.from_printed(own, recipe, number, deviations)
            for recipe, number in printed.items()}
    unfinished = [name for recipe, name in names.items() if recipe not in own.index]
    numbers = {names[recipe]: number for recipe, number in away.items()}
    numbers |= dict.fromkeys([*unfinished, *lacking], MISSING)

    p = holm(Series({recipe: number.p() for recipe, number in away.items()}, dtype=float))
    p = p[~p.index.isin(statistics.scattered(runs.std(axis=1)))]
    kept = p.index[~(p < ERROR)]
    if len(kept) > 2:  # fewer have no correlation to speak of
        deviation = statistics.pooled(runs.loc[p.index]).value
        near = statistics.agreement(runs.loc[kept], printed[kept], deviation=deviation)
        numbers |= {name: exact(value) for name, value in (
            (f"rms from the paper, of {near.rows}", near.rms), ("rms of one number for all", near.constant_rms),
            ("rms of another run", near.ceiling_rms), ("correlation", near.r), (BY_CHANCE, near.shuffled_rms))}
    return numbers


# What a rule says of them


SHOWN_AND_REFUTED: dict[str, tuple[Callable[[Estimate, float], float], Callable[[Estimate, float], float]]] = {
    # the probability of such a number if what is said of it were wrong, and if it were right
    "above": (lambda number, margin: number.p("greater", margin), lambda number, margin: number.p("less", margin)),
    "below": (lambda number, margin: number.p("less", margin), lambda number, margin: number.p("greater", margin)),
    "within": (lambda number, margin: max(number.p("greater", -margin), number.p("less", margin)),
               lambda number, margin: min(1, 2 * min(number.p("less", -margin), number.p("greater", margin)))),
    "different": (lambda number, margin: number.p(bound=margin), lambda number, margin: 1.0),  # equal is never shown
}


def conjunction(rule: str, numbers: Numbers, margin: float = 0.0) -> Decision:
    """The verdict on a sentence that says of each number that it is above, below or within the margin, or different.

    Holds if each is shown at the accepted error: then their conjunction is too. Fails if one is refuted, corrected for
    their number by Holm. What is missing, or of unknown error, is neither.
    """
    shown, refuted = SHOWN_AND_REFUTED[rule]
    against = holm([refuted(number, margin) for number in numbers.values()]).min()
    if against < ERROR:
        return FAILS, against
    least_shown = Series([shown(number, margin) for number in numbers.values()], dtype=float).max(skipna=False)
    return (HOLDS, least_shown) if least_shown < ERROR else (UNDECIDED, math.nan)


def by_reading(rule: str, numbers: Numbers, margin: float) -> Decision:
    """As `conjunction`, of a sentence with several readings, a number each: undecided where these disagree."""
    decisions = [conjunction(rule, {name: number}, margin) for name, number in numbers.items()]
    agree = len({verdict for verdict, _ in decisions}) == 1
    return max(decisions, key=lambda decision: decision[1]) if agree else (UNDECIDED, math.nan)


def agree(numbers: Numbers, margin: float) -> Decision:
    """Whether printed numbers are ones that a further run of ours could give, of the numbers of `beside_print`.

    Fails if one is refuted, corrected by Holm. Holds if none is, all have runs, no prediction interval reaches further
    than the margin, and the column agrees better than a shuffled one does at the accepted error.
    """
    entries = [number for number in numbers.values() if number.error != 0]
    against = holm([number.p() for number in entries]).min()
    if against < ERROR:
        return FAILS, against
    narrow = all(number.reach() <= margin for number in entries)  # of missing ones the reach is NaN
    by_chance = numbers.get(BY_CHANCE, MISSING).value
    return (HOLDS, by_chance) if narrow and by_chance < ERROR else (UNDECIDED, math.nan)


RULES: dict[str, tuple[Callable[[Claim, Results], Numbers], Callable[[Numbers, float], Decision]]] = {
    **{rule: (differences, functools.partial(conjunction, rule)) for rule in SHOWN_AND_REFUTED},
    **{f"{rule} by reading": (differences, functools.partial(by_reading, rule)) for rule in ("above", "below")},
    "rises": (steps, functools.partial(conjunction, "above")),
    "gap shrinks": (gaps, lambda numbers, margin: conjunction("above", numbers)),  # which have the margin in them
    "agrees": (beside_print, agree),
}


# The evaluator


def held(claim: Claim, read: Callable[..., Results]) -> tuple[str, float, str, Numbers]:
    """The verdict on a claim, its p (see `Decision`), the level of its evidence ("" without any), and what it rests on.

    Raises:
        ValueError: if there is no such experiment, rule or measure, or as `compared`.
    """
    if choose("rule", claim.rule, (*RULES, NOT_RUN, CANNOT)) not in RULES:
        return claim.rule, math.nan, "", {}
    if claim.margin < 0 and claim.rule in ("within", "gap shrinks", "agrees"):
        raise ValueError(f"margin={claim.margin:g} should be at least 0 with the rule {claim.rule}")
    results = read(*listed(claim.experiment))._replace(blocks=claim.blocks)
    for name in listed(claim.measure) if len(results.rows) else ():
        choose("measure", name, results.rows.select_dtypes("number").columns)
    numbers_of, decision = RULES[claim.rule]
    numbers = {} if results.rows.empty and results.unfinished.empty else numbers_of(claim, results)
    if all(math.isnan(number.value) for number in numbers.values()):
        return NOT_RUN, math.nan, "", {}
    verdict, p = decision(numbers, claim.margin)
    if results.level == PRINTED:  # of a paper that is held against its own numbers
        verdict = {HOLDS: CONSISTENT, FAILS: CONTRADICTS}.get(verdict, verdict)
    return verdict, p, results.level, numbers


@devices.threads(1)  # what claims compute is small: two threads would wait for each other five times as long
def judge(claims: Mapping[str, Claim], read: Callable[..., Results]) -> tuple[DataFrame, DataFrame]:
    """The verdict on every claim, by id.

    Returns:
        By id: verdict, p (see `Decision`), level and evidence (the numbers in one line). And the numbers, a row for
        each comparison: id, compared, value, error, p (two-sided, of no difference), at_most (the upper
        limit of the one-sided test), detectable (see `statistics.Estimate`), runs.
    """
    verdicts, numbers = {}, []
    for name, claim in claims.items():
        try:
            verdict, p, level, estimates = held(claim, read)
        except ValueError as error:
            raise ValueError(f"{claim.file}, entry {name}: {error}") from error
        evidence = in_words(estimates)
        if evidence and claim.margin and claim.rule.startswith(("above", "below")):
            evidence += f"; tested against {claim.margin:g}"
        verdicts[name] = verdict, p, level, evidence
        numbers += [{"id": name, "compared": what, "value": number.value, "error": number.error, "p": number.p(),
                     "at_most": number.value + number.reach(1 - 2 * ERROR), "detectable": number.detectable(),
                     "runs": " and ".join(map(str, number.runs))} for what, number in estimates.items()]
    judged = DataFrame.from_dict(verdicts, orient="index", columns=["verdict", "p", "level", "evidence"])
    columns = ["id", "compared", "value", "error", "p", "at_most", "detectable", "runs"]
    return judged, DataFrame(numbers, columns=columns)


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
                error = "unknown" if math.isnan(number.error) else f"{number.error:.3g}"
                runs = f" ({' and '.join(map(str, number.runs))} runs)" if number.runs else ""
                texts.append(f"{name}: {number.value:+.3g}, s.e. {error}{runs}")
            else:
                texts.append(f"{name}: {number.value:.4g}")
    missing = len(numbers) - len(known)
    return "; ".join([*texts, *([f"not run: {missing}"] if missing and known else [])])


def verdict_in_words(verdict: str, p: float, level: str) -> str:
    """A verdict with its p (see `Decision`), where runs decide it: "holds, p = 0.031"."""
    return verdict if math.isnan(p) or level not in (PAPER, SHORTENED, BUNDLED) else f"{verdict}, {p_in_words(p)}"


def p_in_words(p: float) -> str:
    """A probability: "p = 0.031", "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def difference_in_words(value: float, error: float, p: float) -> str:
    """A difference with its standard error and two-sided p: "+17.5, s.e. 1.1, p < 0.001"; those that are known."""
    if math.isnan(value):
        return "not finished"
    if math.isnan(error):
        return f"{value:+.1f}, s.e. unknown"
    return f"{value:+.1f}, s.e. {error:.1f}, {p_in_words(p)}"


def table(claims: DataFrame, discrepancies: DataFrame) -> str:
    """Both lists, of `repro.papers.sources.judged`, as text within 100 columns: id; verdict and level; the sentence and
    its numbers.
    """
    rows = []
    for row in claims.itertuples():
        verdict = verdict_in_words(row.verdict, row.p, row.level)
        rows.append((row.id, [verdict, row.level], [f"{row.paper}, {row.place}: {row.claim}", row.evidence]))
    for row in discrepancies.itertuples():
        sentence = f"{row.paper}, {row.place}: {row.paper_says}; but: {row.others_say} [here: {row.here}]"
        rows.append((row.id, ["discrepancy"], [sentence, row.measured]))
    if not rows:
        return "no sentence has this verdict"
    room = WIDTH - max(len(row[0]) for row in rows) - max(map(len, LEVELS)) - 4
    lines: list[tuple[str, ...]] = []
    for name, verdict, texts in rows:
        wrapped = itertools.chain(*(textwrap.wrap(text, room) for text in texts))
        lines += itertools.zip_longest([name], filter(None, verdict), wrapped, fillvalue="")
    return "\n".join(in_columns(lines))
