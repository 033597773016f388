"""Which of the four terms matters: linear models of the taxonomy's accuracies, printed ones and ours.

    accuracy = constant + AE + CE + AD + CD, each 1 where the objective has the term and 0 where it has not

Seeds of ours are replicates of an objective, and no rows of their own: their means are fitted. Where objectives have
equally many, a random intercept for each objective gives the same estimates and errors.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from repro.data import manifest
from repro.recipe import choose, swept
from repro.report import statistics
from repro.report.printed import printed
from repro.skeleton.terms import PRINTED

TERMS = [*PRINTED]
SPACES = ({"AE", "CE"}, {"AD", "CD"})  # attraction and contrast of the encoder, and of the decoder
COLUMNS = ["UCLA", "NTU_1layer", "NTU_3layer", "NTU_1024units"]
MEAN = "mean of columns"
BEST = "AE+CE+AD"  # what the paper calls its best model
OBJECTIVES = ["+".join(itertools.compress(TERMS, bits)) for bits in itertools.product((0, 1), repeat=4) if any(bits)]


def without(*spaces: set[str]) -> list[str]:
    """The objectives that in none of these spaces both attract and contrast."""
    return [name for name in OBJECTIVES if not any(space <= {*name.split("+")} for space in spaces)]


ROW_SETS = {
    "all": OBJECTIVES,
    "unmixed": without(*SPACES),
    "unmixed+best": [name for name in OBJECTIVES if name in (*without(*SPACES), BEST)],
    "unmixed encoder": without(SPACES[0]),
    "unmixed decoder": without(SPACES[1]),
}


def names(table: DataFrame) -> Series:
    """The objective of every row, its terms in the order AE, CE, AD, CD: "AE+CE"; "random" has none."""
    bits = table[TERMS].astype(bool).to_numpy()
    return Series(["+".join(itertools.compress(TERMS, row)) or "random" for row in bits], table.index, dtype=object)


def fit(table: DataFrame, outcome: str, rows: str | Sequence[str] = "unmixed+best") -> Any:
    """Least squares of one column on the four terms and a constant; t has n - 5 degrees of freedom.

    Args:
        table: one row per objective: AE, CE, AD, CD (0 or 1) and the outcome (percent).
        outcome: its column.
        rows: a name in `ROW_SETS` ("unmixed+best" are the nine rows that the paper's main tables are inferred to
            have); or objectives, as a comma list or a sequence.

    Returns:
        Results of statsmodels, parameters named const, AE, CE, AD, CD.

    Raises:
        ValueError: if something asked for does not exist, an objective has several rows or no number, or the rows
            leave terms that cannot be told apart or no degree of freedom.

    Source: taxonomy supplement, the general linear model in the text; `printed/taxonomy_glm_claim.csv`.
    """
    import statsmodels.formula.api as smf  # which takes a second

    for column in (*TERMS, outcome):
        choose("column", column, table.columns)
    if not table[TERMS].isin([0, 1]).all(axis=None):
        raise ValueError(f"{', '.join(TERMS)} should be 0 or 1 in every row")
    if isinstance(rows, str) and rows in ROW_SETS:
        objectives = ROW_SETS[rows]
    else:
        named = {frozenset(name.split("+")): name for name in OBJECTIVES}
        objectives = [named.get(frozenset(part.split("+"))) or choose("rows", part, (*ROW_SETS, *OBJECTIVES))
                      for part in (str(part).strip() for part in swept(rows))]
    data = table[TERMS].assign(const=1, accuracy=pd.to_numeric(table[outcome], errors="coerce"))
    data = data.set_axis(names(table)).astype(float)
    data = data[data.index.isin(objectives)]
    if lacking := [name for name in objectives if name not in data.index or data.loc[[name], "accuracy"].isna().any()]:
        raise ValueError(f"{outcome} has no number for {', '.join(lacking)}; run them or choose other rows")
    if repeated := data.index[data.index.duplicated()].unique().tolist():
        raise ValueError(f"{', '.join(repeated)} have several rows; give their means")
    if not len(data) > np.linalg.matrix_rank(data[["const", *TERMS]]) == len(TERMS) + 1:
        raise ValueError(f"rows={rows!r} do not tell {', '.join(TERMS)} apart with a row to spare; add rows")
    return smf.ols("accuracy ~ const + AE + CE + AD + CD - 1", data).fit()


def coefficients(fitted: Any) -> DataFrame:
    """The four terms of a fitted model.

    Returns:
        One row per term: term, estimate and error (percentage points), low and high (its 95 % interval), t, df,
        p_one_tailed (that the term does not raise accuracy), p_two_tailed, and p_corrected, one-tailed by Holm.
    """
    table = DataFrame({"estimate": fitted.params, "error": fitted.bse})
    table[["low", "high"]] = fitted.conf_int()
    table = table.assign(t=fitted.tvalues, df=fitted.df_resid)
    half = fitted.pvalues / 2
    table = table.assign(p_one_tailed=half.where(table["t"] > 0, 1 - half), p_two_tailed=fitted.pvalues).loc[TERMS]
    return table.assign(p_corrected=statistics.holm(table["p_one_tailed"])).reset_index(names="term")


def printed_by_objective() -> DataFrame:
    """The printed table by objective, "AE+CE", with one more column, the mean of the four."""
    table = printed("taxonomy")
    return table.set_index(names(table)).assign(**{MEAN: table[COLUMNS].mean(axis=1).to_numpy()})


def specification_curve() -> DataFrame:
    """The printed table's terms under every natural choice of rows and column.

    Natural rows are those of `ROW_SETS`, and the unmixed ones with each other one.

    Returns:
        The columns of `coefficients` but p_corrected, after rows (as in `ROW_SETS`, or "unmixed+AE+CE"), n_rows,
        column.
    """
    table, unmixed = printed_by_objective(), ROW_SETS["unmixed"]
    row_sets = ROW_SETS | {f"unmixed+{name}": [*unmixed, name] for name in OBJECTIVES
                           if name not in ROW_SETS["unmixed+best"]}
    parts = {(name, len(rows), column): coefficients(fit(table, column, rows)).drop(columns="p_corrected")
             for name, rows in row_sets.items() for column in (*COLUMNS, MEAN)}
    return pd.concat(parts, names=["rows", "n_rows", "column"]).droplevel(-1).reset_index()


def effects_by_pairs(runs: DataFrame, deviation: statistics.Deviation) -> DataFrame:
    """What each term adds to the accuracy of these objectives, on average over the pairs that differ in it alone.

    It is said of these objectives, whose seeds are all that errs, and not of a sample of others, as `fit` does.

    Args:
        runs: accuracies (percent) by objective, "AE+CE", and seed.
        deviation: of a run, which weighs all objectives alike.

    Returns:
        By term: estimate and error (percentage points), pairs, p (two-sided) and p_corrected, by Holm for four.
    """
    of_terms, rows = {frozenset(name.split("+")): name for name in runs.index}, {}
    means, variances = runs.mean(axis=1), deviation.value**2 / runs.count(axis=1)
    for term in TERMS:
        pairs = {name: of_terms[terms | {term}] for terms, name in of_terms.items()
                 if term not in terms and terms | {term} in of_terms}
        value = means[[*pairs.values()]].mean() - means[[*pairs]].mean()
        error = variances[[*pairs, *pairs.values()]].sum() ** 0.5 / len(pairs)
        p = statistics.Estimate(value, error, deviation.df, ()).p()
        rows[term] = {"estimate": value, "error": error, "pairs": len(pairs), "p": p}
    table = DataFrame.from_dict(rows, orient="index").astype({"pairs": int})
    return table.assign(p_corrected=statistics.holm(table["p"]))


def forest(table: DataFrame) -> DataFrame:
    """The terms in our results beside those in the printed ones, for the nine rows and for all fifteen.

    Args:
        table: one row per objective and seed, with its terms and `linear`, of one preset and data set.

    Returns:
        The columns of `coefficients`, after rows, source ("ours" or "printed"), statement (what was fitted, and on how
        many runs it rests), preset and dataset; rows of ours are missing where an objective has not been run.
    """
    preset, dataset = table.iloc[0][["preset", "dataset"]]
    column, parts = "NTU_1layer" if manifest.plain(dataset) == "ntu" else "UCLA", {}
    seeds = table.groupby(TERMS, as_index=False)["linear"]
    means = seeds.agg(lambda values: values.mean(skipna=False))  # of a seed without a number `fit` says so
    counts = seeds.size().set_axis(names(means))["size"]
    for rows in ("unmixed+best", "all"):
        objectives = ROW_SETS[rows]
        said = f"{column}, {len(objectives)} objectives, least squares."
        parts[rows, "printed", said, preset, dataset] = coefficients(fit(printed_by_objective(), column, rows))
        if {*objectives} <= {*counts.index}:
            runs = counts[objectives]
            each = " to ".join(map(str, dict.fromkeys([runs.min(), runs.max()])))
            said = (f"{len(objectives)} objectives, {runs.sum()} runs, {each} each; "
                    "least squares on the means over seeds.")
            parts[rows, "ours", said, preset, dataset] = coefficients(fit(means, "linear", rows))
    return pd.concat(parts, names=["rows", "source", "statement", "preset", "dataset"]).droplevel(-1).reset_index()
