"""Which of the four terms matters: linear models of the taxonomy's accuracies, printed ones and ours.

    accuracy = constant + AE + CE + AD + CD, each 1 where the objective has the term and 0 where it has not
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from pandas import DataFrame, Series
from pandas.io.formats.style import Styler
from scipy import stats
from statsmodels.stats.multitest import multipletests

from repro.recipe import choose
from repro.report.printed import printed

TERMS = ["AE", "CE", "AD", "CD"]
COLUMNS = ["UCLA", "NTU_1layer", "NTU_3layer", "NTU_1024units"]
MEAN = "mean of columns"
SUBSETS = DataFrame([row for row in itertools.product((0, 1), repeat=4) if any(row)], columns=TERMS)
BEST = "AE+CE+AD"  # what the paper calls its best model
MODELS = ("OLS", "GLM")
CORRECTIONS = ("bonferroni", "sidak", "holm", "holm-sidak", "simes-hochberg", "hommel", "fdr_bh", "fdr_by")


def _mixed(table: DataFrame, *pair: str) -> Series:
    return table[list(pair)].all(axis=1)


ROW_SETS: dict[str, Callable[[DataFrame], Series]] = {
    "all": lambda table: table[TERMS].any(axis=1),
    "unmixed": lambda table: table[TERMS].any(axis=1) & ~_mixed(table, "AE", "CE") & ~_mixed(table, "AD", "CD"),
    "unmixed+best": lambda table: ROW_SETS["unmixed"](table) | (names(table) == BEST),
    "unmixed encoder": lambda table: table[TERMS].any(axis=1) & ~_mixed(table, "AE", "CE"),
    "unmixed decoder": lambda table: table[TERMS].any(axis=1) & ~_mixed(table, "AD", "CD"),
}


def fit(
    table: DataFrame,
    outcome: str,
    rows: str | Sequence[str] = "unmixed+best",
    *,
    intercept: bool = True,
    model: str = "OLS",
) -> Any:
    """Least squares of one column on the four terms.

    Args:
        table: one row per objective: AE, CE, AD, CD (0 or 1) and the outcome (percent).
        outcome: its column.
        rows: a name in `ROW_SETS`: "all" fifteen objectives, the eight "unmixed" ones that have A and C in no space
            together, "unmixed+best" (these and AE+CE+AD, the nine rows that the paper's main tables are inferred to
            have), "unmixed encoder", "unmixed decoder"; or objectives, as a comma list or a sequence.
        intercept: whether the model has a constant.
        model: "OLS", whose t has n - 5 degrees of freedom, or "GLM" (Gaussian), which takes the same t for a z.

    Returns:
        Results of statsmodels, parameters named const, AE, CE, AD, CD.

    Raises:
        ValueError: if a column or objective is missing, an objective has several rows or no number, the rows leave
            terms that cannot be told apart or no degree of freedom, or there is no such model or intercept.

    Source: taxonomy supplement, the general linear model in the text; `printed/taxonomy_glm_claim.csv`.
    """
    choose("model", model, MODELS)
    choose("intercept", intercept, (True, False))
    chosen = selected(table, outcome, rows)
    if chosen.index.has_duplicates:
        repeated = sorted(set(chosen.index[chosen.index.duplicated()]))
        raise ValueError(f"{', '.join(repeated)} have several rows; give their means, see `glm_ours`")
    design = design_of(chosen, intercept)
    if not identifiable(design.to_numpy()):
        told = ", ".join(chosen.index)
        raise ValueError(f"rows={rows!r} ({told}) do not tell {', '.join(design)} apart with a row to spare; add rows")
    family = {"OLS": sm.OLS, "GLM": sm.GLM}[model]
    return family(chosen[outcome], design).fit()


def selected(table: DataFrame, outcome: str, rows: str | Sequence[str] = "unmixed+best") -> DataFrame:
    """The terms and the outcome of some objectives, by objective; arguments and errors as for `fit`."""
    missing = [name for name in (*TERMS, outcome) if name not in table]
    if missing:
        raise ValueError(f"the table has no column {', '.join(missing)}; its columns are {', '.join(table)}")
    if not table[TERMS].isin([0, 1]).all(axis=None):
        raise ValueError(f"{', '.join(TERMS)} should be 0 or 1 in every row")
    found = table[[*TERMS, outcome]].set_axis(names(table)).astype(dict.fromkeys(TERMS, float))
    wanted = objectives_of(rows)
    absent = [name for name in wanted if name not in found.index]
    if absent:
        raise ValueError(f"rows={rows!r} need {', '.join(absent)}, which the table lacks; run them or choose others")
    found = found[found.index.isin(wanted)]
    empty = found.index[pd.to_numeric(found[outcome], errors="coerce").isna()]
    if len(empty):
        raise ValueError(f"{outcome} has no number for {', '.join(empty)}; choose other rows or another column")
    return found.astype(float)


def names(table: DataFrame) -> Series:
    """The objective of every row, its terms in the order AE, CE, AD, CD: "AE+CE"; "random" has none."""
    bits = table[TERMS].astype(bool).to_numpy()
    return Series(["+".join(np.array(TERMS)[row]) or "random" for row in bits], table.index, dtype=object)


def objectives_of(rows: str | Sequence[str]) -> list[str]:
    """The objectives of a row set, or those of a list, each once."""
    known = names(SUBSETS)
    if isinstance(rows, str) and rows in ROW_SETS:
        return known[ROW_SETS[rows](SUBSETS)].tolist()
    parts = rows.split(",") if isinstance(rows, str) else rows
    ordered = ["+".join(term for term in TERMS if term in str(part).strip().split("+")) for part in parts]
    for part, name in zip(parts, ordered, strict=True):
        if sorted(name.split("+")) != sorted(str(part).strip().split("+")):
            choose("rows", part, (*ROW_SETS, *known))
    return list(dict.fromkeys(ordered))


def coefficients(results: Any, *, correction: str | None = "holm", freedom: int | None = None) -> DataFrame:
    """The four terms of a fitted model.

    Args:
        results: of `fit`, or `Replicated.results`.
        correction: how the four one-tailed p are corrected, a name in `CORRECTIONS`, of statsmodels' `multipletests`;
            None leaves them as they are.
        freedom: degrees of freedom of t; those of the results by default (infinitely many for a GLM).

    Returns:
        One row per term: term, estimate and error (percentage points), low and high (its 95 % interval), t, df,
        p_one_tailed (that the term does not raise accuracy), p_two_tailed, p_corrected unless there is no correction.
    """
    choose("correction", correction, (None, *CORRECTIONS))
    df = freedom or (results.df_resid if results.use_t else np.inf)
    estimate, error = results.params[TERMS], results.bse[TERMS]
    t, reach = estimate / error, stats.t.ppf(0.975, df) * error
    upper = stats.t.sf(t, df)
    table = DataFrame({"term": TERMS, "estimate": estimate, "error": error, "low": estimate - reach})
    table = table.assign(high=estimate + reach, t=t, df=df, p_one_tailed=upper, p_two_tailed=2 * stats.t.sf(abs(t), df))
    if correction is not None:
        table["p_corrected"] = multipletests(upper, method=correction)[1]
    return table.reset_index(drop=True)


def shown(table: DataFrame) -> Styler:
    """The terms, as `coefficients` gives them, for a notebook: points to two digits, t (of a GLM z) to three."""
    statistic = "t" if np.isfinite(table["df"]).all() else "z"
    named = {"estimate": "points", "error": "standard error", "low": "95 % from", "high": "95 % to", "t": statistic}
    named |= {name: name.replace("_", " ", 1).replace("_", "-") for name in table if name.startswith("p_")}
    digits = {"points": 2, "standard error": 2, "95 % from": 2, "95 % to": 2, statistic: 3, "df": 0}
    formats = {name: f"{{:.{digits.get(name, 4)}f}}" for name in table.rename(columns=named) if name != "term"}
    return table.rename(columns=named).style.hide(axis="index").format(formats)


def printed_by_objective() -> DataFrame:
    """The printed table by objective: "AE+CE"."""
    table = printed("taxonomy")
    return table.set_index(names(table))


def printed_columns() -> DataFrame:
    """The printed table with one more column, the mean of the four."""
    table = printed("taxonomy")
    return table.assign(**{MEAN: table[COLUMNS].mean(axis=1)})


def natural_row_sets() -> dict[str, Sequence[str]]:
    """Row sets one might have meant: those of `ROW_SETS`, and the unmixed rows with each other one."""
    unmixed = objectives_of("unmixed")
    others = [name for name in objectives_of("all") if name not in (*unmixed, BEST)]
    return {name: objectives_of(name) for name in ROW_SETS} | {f"unmixed+{name}": [*unmixed, name] for name in others}


def specification_curve() -> DataFrame:
    """The printed table's terms under every natural choice of rows and column, by OLS with a constant.

    Returns:
        The columns of `coefficients`, uncorrected, after rows (as in `natural_row_sets`), n_rows and column.
    """
    table, parts = printed_columns(), []
    for label, rows in natural_row_sets().items():
        for column in (*COLUMNS, MEAN):
            found = coefficients(fit(table, column, rows), correction=None)
            parts.append(found.assign(rows=label, n_rows=len(rows), column=column))
    curve = pd.concat(parts, ignore_index=True)
    return curve[["rows", "n_rows", "column", *curve.columns.drop(["rows", "n_rows", "column"])]]


def leave_one_out(
    table: DataFrame, outcome: str, rows: str | Sequence[str] = "unmixed+best", *, intercept: bool = True,
    model: str = "OLS",
) -> DataFrame:
    """The terms without each of the rows in turn; arguments as for `fit`.

    Returns:
        The columns of `coefficients`, uncorrected, after left_out, the objective; rows whose absence leaves the terms
        indistinguishable, or no degree of freedom, do not appear.
    """
    chosen, parts = selected(table, outcome, rows), []
    for name in chosen.index:
        others = chosen.drop(name)
        if identifiable(design_of(others, intercept).to_numpy()):
            results = fit(table, outcome, list(others.index), intercept=intercept, model=model)
            parts.append(coefficients(results, correction=None).assign(left_out=name))
    if not parts:
        return DataFrame(columns=["left_out"])
    found = pd.concat(parts, ignore_index=True)
    return found[["left_out", *found.columns.drop("left_out")]]


def every_subset(table: DataFrame, outcome: str) -> DataFrame:
    """t of the four terms for every choice of at least six rows, by OLS with a constant.

    Returns:
        One row per choice that tells the terms apart: n_rows, then t of AE, CE, AD, CD.
    """
    chosen = selected(table, outcome, "all")
    design, values = design_of(chosen, True).to_numpy(), chosen[outcome].to_numpy()
    bits = np.arange(2 ** len(chosen))[:, None] >> np.arange(len(chosen)) & 1
    bits = bits[bits.sum(1) > len(TERMS) + 1].astype(float)                                      # (choices, rows)
    gram = np.einsum("cr,ri,rj->cij", bits, design, design)                              # (choices, 5, 5)
    apart = np.linalg.matrix_rank(gram) == design.shape[1]
    bits, gram = bits[apart], gram[apart]
    moments = (bits * values) @ design                                                   # (choices, 5)
    inverse = np.linalg.inv(gram)
    estimates = np.einsum("cij,cj->ci", inverse, moments)
    residual = (bits * (values - estimates @ design.T) ** 2).sum(1)
    variance = residual / (bits.sum(1) - design.shape[1])
    errors = np.sqrt(variance[:, None] * np.diagonal(inverse, axis1=1, axis2=2))
    return DataFrame(estimates[:, 1:] / errors[:, 1:], columns=TERMS).assign(n_rows=bits.sum(1).astype(int))


def design_of(chosen: DataFrame, intercept: bool) -> DataFrame:
    """The terms, after a column const of ones where there is an intercept."""
    terms = chosen[TERMS]
    return sm.add_constant(terms, has_constant="add") if intercept else terms


def identifiable(design: np.ndarray) -> bool:
    """Whether the rows tell the columns apart, and are more than these."""
    return len(design) > design.shape[1] == np.linalg.matrix_rank(design)
