"""Rules for sentences of the taxonomy's supplement that are more than a comparison of rows; see `repro.report.claims`.

Terms of objectives are compared on accuracies by objective: the printed column that `measure` names, or the means over
seeds of an experiment.
"""

import functools
import itertools
import math
from typing import Any

import numpy as np
from pandas import DataFrame, Series
from scipy import stats

from repro.papers.taxonomy import glm, rules
from repro.report import statistics
from repro.report.claims import (
    ERROR,
    FAILS,
    HOLDS,
    PRINTED,
    UNDECIDED,
    Claim,
    Judged,
    Results,
    Rule,
    above,
    below,
    exact,
    measures_of,
    runs_of,
)
from repro.report.printed import printed
from repro.report.statistics import Estimate

FEWEST = 6  # rows of a linear model of four terms that leaves a degree of freedom
SAME_T = 5e-4  # within which a t is the printed one


def accuracies(claim: Claim, results: Results) -> Series:
    """By objective, percent; of ours those that have a run."""
    if results.level == PRINTED:
        return glm.printed_by_objective()[claim.measure]
    runs, _ = runs_of(results, claim.measure)
    return runs.drop(index="random", errors="ignore").mean(axis=1)


@functools.cache
def nine_rows() -> DataFrame:
    """The terms in the model whose statistic is most likely printed, by term."""
    return glm.coefficients(glm.fit(printed("taxonomy"), "UCLA")).set_index("term")


@functools.cache
def printed_statistics() -> Series:
    """How many subsets of six rows and more, in any one printed column, give a term the printed t; by term."""
    claimed, found = printed("taxonomy_glm_claim").iloc[0]["t"], Series(0, glm.TERMS)
    table = glm.printed_by_objective()
    terms, columns = table[glm.TERMS].to_numpy(float), table[glm.COLUMNS].to_numpy(float)
    for size in range(FEWEST, len(table) + 1):
        subsets = np.array([*itertools.combinations(range(len(table)), size)])
        design = np.concatenate([np.ones((*subsets.shape, 1)), terms[subsets]], axis=2)   # (subsets, size, 5)
        gram = design.transpose(0, 2, 1) @ design
        known = np.linalg.matrix_rank(gram) == design.shape[2]
        design, outcomes, inverse = design[known], columns[subsets[known]], np.linalg.inv(gram[known])
        weights = inverse @ design.transpose(0, 2, 1) @ outcomes                          # (subsets, 5, columns)
        squares = ((outcomes - design @ weights) ** 2).sum(axis=1) / max(size - design.shape[2], 1)
        errors = np.sqrt(np.diagonal(inverse, axis1=1, axis2=2)[:, :, None] * squares[:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            found += (abs(weights / errors - claimed) < SAME_T)[:, 1:].sum(axis=(0, 2))
    return found


def term_of_the_statistic(*_: Any) -> Judged:
    """Whether the printed t can be that of the term the text names.

    Which rows were meant is inferred: those that avoid mixing and AE+CE+AD give it to AD. Of all subsets of six and
    more rows in one column some give it to some term.
    """
    claimed, t = printed("taxonomy_glm_claim").iloc[0], nine_rows()["t"]
    named, found = claimed["component_named_in_text"], printed_statistics()
    numbers = {f"t of {term} in nine rows": exact(value) for term, value in t.items()}
    numbers |= {"subsets that give the printed t": exact(found.sum()), f"of them to {named}": exact(found[named])}
    return bool(found[named]), numbers


def p_of_the_statistic(*_: Any) -> Judged:
    """Whether the printed bound on p fits the printed t with four degrees of freedom, one-tailed.

    With the ten of all fifteen rows, two-tailed, it fits as well.
    """
    claimed = printed("taxonomy_glm_claim").iloc[0]
    p, other = stats.t.sf(claimed["t"], 4), 2 * stats.t.sf(claimed["t"], 10)
    numbers = {"p, one-tailed, 4 degrees": exact(p), "two-tailed, 10 degrees": exact(other)}
    return bool(claimed["p_upper"] - 0.001 <= p < claimed["p_upper"]), numbers


def only_significant_term(*_: Any) -> Judged:
    """Whether the named term, and it alone, is significant in the nine rows, one-tailed and uncorrected as printed."""
    table, named = nine_rows(), printed("taxonomy_glm_claim").iloc[0]["component_named_in_text"]
    numbers = {f"p of {term}": exact(row["p_one_tailed"]) for term, row in table.iterrows()}
    numbers |= {f"corrected, {term}": exact(row["p_corrected"]) for term, row in table.iterrows()}
    return [*table.index[table["p_one_tailed"] < ERROR]] == [named], numbers


def term_is_significant(claim: Claim, results: Results) -> Judged:
    """Whether the term `first` adds accuracy in a linear model of the nine rows, of our means over seeds."""
    ours = accuracies(claim, results)
    missing = {name: claim for name in glm.ROW_SETS["unmixed+best"] if name not in ours.index}
    if missing:
        return UNDECIDED, {name: exact(math.nan) for name in missing}
    table = glm.SUBSETS.assign(linear=ours.reindex(glm.OBJECTIVES).to_numpy())
    row = glm.coefficients(glm.fit(table, "linear")).set_index("term").loc[claim.first]
    numbers = {claim.first: Estimate(row["estimate"], row["error"], row["df"], (len(glm.ROW_SETS["unmixed+best"]),))}
    return above(numbers), numbers


def term_lowers(claim: Claim, results: Results) -> Judged:
    """Whether objectives are less accurate with the term `first` than without it, on average over their pairs."""
    ours, drops = accuracies(claim, results), {}
    for name in ours.index:
        terms = {*name.split("+"), claim.first}
        with_term = "+".join(term for term in glm.TERMS if term in terms)
        if with_term != name and with_term in ours:
            drops[name] = ours[name] - ours[with_term]
    numbers = {f"lowered by, mean of {len(drops)} pairs": statistics.mean(Series(drops, dtype=float))}
    return above(numbers), numbers


def mixing_gains(claim: Claim, results: Results) -> Judged:
    """Whether mixing attraction and contrast in one space gains less than `margin` points.

    Printed: the best objective that mixes over the best that does not, in each column. Ours: each that mixes over the
    best of its parts that do not, on average.
    """
    if results.level == PRINTED:
        table, unmixed = glm.printed_by_objective(), glm.ROW_SETS["unmixed"]
        columns = measures_of(claim)
        gains = table.drop(unmixed)[columns].max() - table.loc[unmixed, columns].max()
        numbers = {str(column): exact(gain) for column, gain in gains.items()}
    else:
        found = gains_of_mixing(accuracies(claim, results))
        numbers = {f"mixing adds, mean of {len(found)} objectives": statistics.mean(found)}
    return below(numbers, claim.margin), numbers


def gains_of_mixing(values: Series) -> Series:
    """Each of the seven objectives that mix minus the best of its unmixed parts, where all of them are known.

    The parts are what is left when one term of every mixed pair goes: AE+CE+AD leaves CE+AD and AE+AD.
    """
    gains = {}
    for name in values.index:
        parts = []
        for gone in itertools.product(*glm.mixed(name)):
            parts.append("+".join(term for term in name.split("+") if term not in gone))
        if glm.mixed(name) and set(parts) <= set(values.index):
            gains[name] = values[name] - values[parts].max()
    return Series(gains, dtype=float)


def cells_were_exchanged(claim: Claim, results: Results) -> Judged:
    """Whether AE+CD and AE+AD+CD have changed places in print, by the rule fixed before the runs."""
    found = rules.exchanged(results.rows)
    if found is None:
        return UNDECIDED, {"runs": exact(math.nan)}
    numbers = {f"highest of {rules.LOW}": found.highest, f"lowest of {rules.HIGH}": found.lowest,
               "deviations away, at the nearest epoch": found.away, "that epoch": found.epoch}
    verdict = {"supported": HOLDS, "refuted": FAILS}.get(found.verdict, UNDECIDED)
    return verdict, {name: exact(value) for name, value in numbers.items()}


def highest_by_rule(claim: Claim, results: Results) -> Judged:
    """How far the entries printed at 82 and more are above ours, on average, by what is read off a training."""
    readings, column = rules.readings(results.rows), rules.printed_column()
    epochs = [name for name in readings if name.startswith("epoch ")]
    numbers = {}
    for name in (*epochs[-1:], rules.BEST_EPOCH, rules.RELEASED, rules.BEST_OF_BOTH):
        gaps = readings[name].mean(axis=1) - column
        numbers[f"ours minus theirs, {name}"] = exact(gaps[column >= rules.TOP].mean())
    return UNDECIDED, numbers | {"readings tried": exact(len(readings))}


def by_objective(results: Results) -> Results:
    """The printed table with the name of every row."""
    return results._replace(rows=glm.printed_by_objective().rename_axis("objectives").reset_index())


PREPARED = {"printed/taxonomy": by_objective}
RULES: dict[str, Rule] = {
    "term of the statistic": term_of_the_statistic, "p of the statistic": p_of_the_statistic,
    "only significant term": only_significant_term, "term is significant": term_is_significant,
    "term lowers": term_lowers, "mixing gains": mixing_gains,
    "cells were exchanged": cells_were_exchanged, "highest by rule": highest_by_rule,
}
