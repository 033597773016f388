"""Which of the four terms matters: linear models of the taxonomy's accuracies, printed ones and ours.

    accuracy = constant + AE + CE + AD + CD, each 1 where the objective has the term and 0 where it has not

Seeds of ours are replicates of an objective, and no rows of their own.
"""

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from scipy import special

from repro.data import manifest
from repro.recipe import choose, swept
from repro.report import statistics
from repro.report.printed import printed
from repro.skeleton.terms import PRINTED

TERMS = [*PRINTED]
SPACES = (("AE", "CE"), ("AD", "CD"))  # attraction and contrast of the encoder, and of the decoder
COLUMNS = ["UCLA", "NTU_1layer", "NTU_3layer", "NTU_1024units"]
MEAN = "mean of columns"
BESIDE = {"ucla": "UCLA", "ntu": "NTU_1layer"}  # the printed column of a data set's usual setting
BEST = "AE+CE+AD"  # what the paper calls its best model


def names(table: DataFrame) -> Series:
    """The objective of every row, its terms in the order AE, CE, AD, CD: "AE+CE"; "random" has none."""
    bits = table[TERMS].astype(bool).to_numpy()
    return Series(["+".join(np.array(TERMS)[row]) or "random" for row in bits], table.index, dtype=object)


SUBSETS = DataFrame([row for row in itertools.product((0, 1), repeat=4) if any(row)], columns=TERMS)
OBJECTIVES = names(SUBSETS).tolist()


def mixed(objective: str) -> list[tuple[str, str]]:
    """The spaces in which an objective both attracts and contrasts."""
    return [space for space in SPACES if set(space) <= set(objective.split("+"))]


ROW_SETS = {
    "all": OBJECTIVES,
    "unmixed": [name for name in OBJECTIVES if not mixed(name)],
    "unmixed+best": [name for name in OBJECTIVES if not mixed(name) or name == BEST],
    "unmixed encoder": [name for name in OBJECTIVES if SPACES[0] not in mixed(name)],
    "unmixed decoder": [name for name in OBJECTIVES if SPACES[1] not in mixed(name)],
}


def fit(table: DataFrame, outcome: str, rows: str | Sequence[str] = "unmixed+best") -> Any:
    """Least squares of one column on the four terms and a constant; t has n - 5 degrees of freedom.

    Args:
        table: one row per objective: AE, CE, AD, CD (0 or 1) and the outcome (percent).
        outcome: its column.
        rows: a name in `ROW_SETS`: "all" fifteen objectives, the eight "unmixed" ones that have A and C in no space
            together, "unmixed+best" (these and AE+CE+AD, the nine rows that the paper's main tables are inferred to
            have), "unmixed encoder", "unmixed decoder"; or objectives, as a comma list or a sequence.

    Returns:
        Results of statsmodels, parameters named const, AE, CE, AD, CD.

    Raises:
        ValueError: if something asked for does not exist, an objective has several rows or no number, or the rows
            leave terms that cannot be told apart or no degree of freedom.

    Source: taxonomy supplement, the general linear model in the text; `printed/taxonomy_glm_claim.csv`.
    """
    from statsmodels.regression.linear_model import OLS  # which takes time, as `MixedLM` below

    data = selected(table, outcome, rows)
    if data.index.has_duplicates:
        repeated = sorted(set(data.index[data.index.duplicated()]))
        raise ValueError(f"{', '.join(repeated)} have several rows; give their means")
    design = _design(data)
    if not len(design) > design.shape[1] == np.linalg.matrix_rank(design.to_numpy()):
        raise ValueError(f"rows={rows!r} ({', '.join(data.index)}) do not tell {', '.join(design)} apart with a row to "
                         "spare; add rows")
    return OLS(data[outcome], design).fit()


def selected(table: DataFrame, outcome: str, rows: str | Sequence[str] = "unmixed+best") -> DataFrame:
    """The terms and the outcome of some objectives, by objective; arguments and errors as for `fit`."""
    missing = [str(name) for name in (*TERMS, outcome) if name not in table]
    if missing:
        raise ValueError(f"the table has no column {', '.join(missing)}; its columns are {', '.join(table)}")
    if not table[TERMS].isin([0, 1]).all(axis=None):
        raise ValueError(f"{', '.join(TERMS)} should be 0 or 1 in every row")
    data = table[[*TERMS, outcome]].set_axis(names(table))
    objectives = objectives_of(rows)
    absent = [name for name in objectives if name not in data.index]
    if absent:
        raise ValueError(f"rows={rows!r} need {', '.join(absent)}, which the table lacks; run them or choose others")
    data = data[data.index.isin(objectives)].apply(pd.to_numeric, errors="coerce").astype(float)
    empty = data.index[data[outcome].isna()]
    if len(empty):
        raise ValueError(f"{outcome} has no number for {', '.join(empty)}; choose other rows or another column")
    return data


def objectives_of(rows: str | Sequence[str]) -> list[str]:
    """The objectives of a row set, or those of a list, each once."""
    if isinstance(rows, str) and rows in ROW_SETS:
        return ROW_SETS[rows]
    by_terms = {frozenset(name.split("+")): name for name in OBJECTIVES}
    parts = [str(part).strip() for part in swept(rows)]
    objectives = [by_terms.get(frozenset(part.split("+"))) or choose("rows", part, (*ROW_SETS, *OBJECTIVES))
                  for part in parts]
    return list(dict.fromkeys(objectives))


def coefficients(results: Any, *, freedom: int | None = None) -> DataFrame:
    """The four terms of a fitted model.

    Args:
        results: of `fit`, or another model of statsmodels with these terms.
        freedom: degrees of freedom of t; those of the results by default.

    Returns:
        One row per term: term, estimate and error (percentage points), low and high (its 95 % interval), t, df,
        p_one_tailed (that the term does not raise accuracy), p_two_tailed, and p_corrected, one-tailed by Holm.
    """
    df = freedom or results.df_resid
    estimate, error = results.params[TERMS], results.bse[TERMS]
    t, reach = estimate / error, special.stdtrit(df, 0.975) * error
    table = DataFrame({
        "term": TERMS, "estimate": estimate, "error": error, "low": estimate - reach, "high": estimate + reach,
        "t": t, "df": df, "p_one_tailed": special.stdtr(df, -t), "p_two_tailed": 2 * special.stdtr(df, -abs(t)),
    }).reset_index(drop=True)
    return table.assign(p_corrected=statistics.holm(table["p_one_tailed"]))


def printed_by_objective() -> DataFrame:
    """The printed table by objective, "AE+CE", with one more column, the mean of the four."""
    table = printed("taxonomy")
    return table.set_index(names(table)).assign(**{MEAN: table[COLUMNS].mean(axis=1).to_numpy()})


def specification_curve() -> DataFrame:
    """The printed table's terms under every natural choice of rows and column, by OLS with a constant.

    Natural rows are those of `ROW_SETS`, and the unmixed ones with each other one.

    Returns:
        The columns of `coefficients` but p_corrected, after rows (as in `ROW_SETS`, or "unmixed+AE+CE"), n_rows,
        column.
    """
    table, unmixed = printed_by_objective(), ROW_SETS["unmixed"]
    others = [name for name in OBJECTIVES if name not in ROW_SETS["unmixed+best"]]
    row_sets = ROW_SETS | {f"unmixed+{name}": [*unmixed, name] for name in others}
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
        By term: estimate and error (percentage points), pairs, t, df, p (two-sided) and p_corrected, by Holm for four.
    """
    means, counts, rows = runs.mean(axis=1), runs.count(axis=1), {}
    for term in TERMS:
        weights = Series(0.0, runs.index)
        for name in runs.index:
            with_it = "+".join(part for part in TERMS if part in {*name.split("+"), term})
            if with_it != name and with_it in weights:
                weights[[name, with_it]] += [-1, 1]
        pairs = weights.clip(lower=0).sum()
        error = deviation.value * (weights**2 / counts).sum() ** 0.5 / pairs
        effect = statistics.Estimate((weights * means).sum() / pairs, error, deviation.df, ())
        rows[term] = {"estimate": effect.value, "error": error, "pairs": int(pairs), "t": effect.value / error,
                      "df": effect.df, "p": effect.p()}
    table = DataFrame.from_dict(rows, orient="index")
    return table.assign(p_corrected=statistics.holm(table["p"]))


def _design(data: DataFrame) -> DataFrame:
    """The terms, after a column const of ones."""
    return data.assign(const=1.0)[["const", *TERMS]]


def replicated(
    table: DataFrame, outcome: str = "linear", rows: str | Sequence[str] = "unmixed+best"
) -> tuple[DataFrame, str]:
    """The four terms from several seeds: a random intercept for every objective.

    What separates the terms is the number n of objectives, so that the coefficients keep its degrees of freedom, n - 5.
    Least squares on the means over seeds takes the model's place where seeds are few (fewer beyond the first of an
    objective than there are objectives), or objectives differ no more than their seeds do: it would take these for
    rows.

    Args:
        table: one row per objective and seed, with its terms.
        outcome: one of its measures, in percent.
        rows: as for `fit`, errors too.

    Returns:
        Its `coefficients`; and what was fitted and what that rests on, in words.
    """
    data = selected(table, outcome, rows)
    means = table.groupby(TERMS, as_index=False)[outcome].agg(lambda values: values.mean(skipna=False))
    plain = fit(means, outcome, rows)
    count = data.index.nunique()
    runs = f"{count} objectives, {len(data)} runs"
    model = _random_intercepts(data, outcome) if len(data) >= 2 * count else None
    if model is None:
        return coefficients(plain), f"{runs}; least squares on the means over seeds."
    between, within = float(model.cov_re.iloc[0, 0]) ** 0.5, float(model.scale) ** 0.5
    spread = f"beyond the terms objectives deviate by {between:.1f} points, seeds by {within:.1f}"
    statement = f"{runs}, a random intercept for each objective; {spread}."
    return coefficients(model, freedom=int(plain.df_resid)), statement


def _random_intercepts(data: DataFrame, outcome: str) -> Any | None:
    """Results of `MixedLM`; None if it does not converge, or leaves no variance between objectives."""
    from statsmodels.regression.mixed_linear_model import MixedLM
    from statsmodels.tools.sm_exceptions import ConvergenceWarning

    model = MixedLM(data[outcome], _design(data), groups=data.index.to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            results = model.fit(reml=True)
        except (ConvergenceWarning, np.linalg.LinAlgError):
            return None
    return results if results.converged and results.cov_re.iloc[0, 0] > 1e-6 * results.scale else None


def forest(table: DataFrame) -> DataFrame:
    """The terms in our results beside those in the printed ones, for the nine rows and for all fifteen.

    Args:
        table: one row per objective and seed, with its terms and `linear`, of one preset and data set.

    Returns:
        The columns of `coefficients`, after rows, source ("ours" or "printed"), statement (what was fitted), preset
        and dataset; rows of ours are missing where an objective has not been run.
    """
    preset, dataset = table.iloc[0][["preset", "dataset"]]
    column, parts = BESIDE.get(manifest.plain(dataset), "UCLA"), {}
    for rows in ("unmixed+best", "all"):
        fitted = fit(printed_by_objective(), column, rows)
        said = f"{column}, {int(fitted.nobs)} objectives, least squares."
        parts[rows, "printed", said] = coefficients(fitted)
        if set(ROW_SETS[rows]) <= set(table["objectives"]):
            ours, statement = replicated(table, "linear", rows)
            parts[rows, "ours", statement] = ours
    effects = pd.concat(parts, names=["rows", "source", "statement"]).droplevel(-1).reset_index()
    effects.insert(3, "preset", preset)
    effects.insert(4, "dataset", dataset)
    return effects
