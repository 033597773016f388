"""The linear models of `repro.papers.taxonomy.glm` on our own results, whose seeds are replicates and not rows."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import statsmodels.api as sm
from pandas import DataFrame
from statsmodels.tools.sm_exceptions import ConvergenceWarning

from repro.data import manifest
from repro.papers.taxonomy.glm import (
    COLUMNS,
    MEAN,
    TERMS,
    coefficients,
    design_of,
    fit,
    leave_one_out,
    printed_columns,
    selected,
)
from repro.papers.taxonomy.tables import TABLES
from repro.recipe import choose
from repro.report.logs import stored
from repro.skeleton.recipe import METHODS
from repro.skeleton.study import SKELETONS
from repro.table import require_one_recipe

MEASURES = ("linear", "linear_standardised", "linear_unseen", "knn1")  # of a cell, in percent
BESIDE = {"ucla": "UCLA", "ntu": "NTU_1layer"}  # the printed column of a data set's usual setting
SHOWN = ("unmixed+best", "all")  # row sets of the forest plot


class Replicated(NamedTuple):
    """A model of several seeds, and how far to trust it.

    Attributes:
        results: of statsmodels, of `MixedLM` or OLS.
        freedom: degrees of freedom of its coefficients.
        statement: what was fitted and what it rests on, in words.
    """

    results: Any
    freedom: int
    statement: str


class Analysis(NamedTuple):
    """What the notebook shows of one choice of results, column, rows and model.

    Attributes:
        results: of statsmodels.
        coefficients: see `glm.coefficients`.
        left_out: see `glm.leave_one_out`.
        source: what was fitted, in words.
    """

    results: Any
    coefficients: DataFrame
    left_out: DataFrame
    source: str


def analysis(
    dataset: str = "ucla",
    *,
    preset: str = "auto",
    seeds: str | int = "all",
    results: str = "printed",
    column: str = "auto",
    rows: str | Sequence[str] = "unmixed+best",
    intercept: bool = True,
    model: str = "OLS",
    correction: str = "holm",
) -> Analysis:
    """One linear model, without each of its rows in turn too.

    Args:
        dataset, preset, seeds: which of our cells, as for `our_results`; the printed results have none.
        results: "printed", or "ours": their means over seeds.
        column: of the printed table or, of ours, a measure: "linear", "linear_standardised", "linear_unseen" or
            "knn1"; "auto" is UCLA, or linear.
        rows, intercept, model: as for `glm.fit`.
        correction: as for `glm.coefficients`.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do, or there are no such cells.
    """
    choose("results", results, ("printed", "ours"))
    choose("column", column, ("auto", *((*COLUMNS, MEAN) if results == "printed" else MEASURES)))
    ours = our_results(dataset, preset=preset, seeds=seeds)
    if results == "printed":
        table, outcome, source = printed_columns(), "UCLA" if column == "auto" else column, "printed numbers"
    elif ours.empty:
        raise ValueError(f"no cells of the taxonomy are stored for {dataset}, preset {preset}, seeds {seeds}; run them")
    else:
        table, outcome = means(ours), "linear" if column == "auto" else column
        source = f"our means over seeds on {ours['dataset'].iloc[0]}, {ours['preset'].iloc[0]} recipe"
    fitted = fit(table, outcome, rows, intercept=intercept, model=model)
    without = leave_one_out(table, outcome, rows, intercept=intercept, model=model)
    said = f"{source}, {outcome}, {int(fitted.nobs)} rows, {model}, {'with' if intercept else 'without'} constant"
    return Analysis(fitted, coefficients(fitted, correction=correction), without, said)


def our_results(dataset: str = "ucla", *, preset: str = "auto", seeds: str | int = "all") -> DataFrame:
    """Our cells of the taxonomy's table in its usual setting, from figures/cells.csv and REPRO_RUNS.

    Args:
        dataset: the label of the data set, such as "ucla".
        preset: "paper", "quick", "smoke", or "auto": the one that covers most objectives, smoke runs left out.
        seeds: "all", or a comma list of whole numbers.

    Returns:
        See `usual_cells`.

    Raises:
        ValueError: if a parameter has a value that does not exist, naming those that do.
    """
    cells = stored(manifest.plain(dataset), preset=preset, seeds=seeds)
    return usual_cells(TABLES["taxonomy"].select(SKELETONS.tidy(cells)), dataset)


def usual_cells(cells: DataFrame, dataset: str) -> DataFrame:
    """Those of the table's cells that depart from it in nothing, of one preset and version of the training.

    These are the ones that cover most objectives; of equal ones the paper's, then the newest.

    Args:
        cells: that stand in the taxonomy's table.
        dataset: label of their data set.

    Returns:
        One row per cell: objectives, AE, CE, AD, CD (0 or 1), seed, preset, dataset, version, key and its measures in
        percent.
        None where there are no cells.

    Raises:
        MixedSeeds: if seeds of one objective are of several recipes or data; the message names them.
    """
    found = cells[(cells["dataset"] == dataset) & ~cells["departures"].map(bool) & ~cells["setting"].map(bool)]
    found = found[found["objectives"].isin(METHODS)]
    if found.empty:
        return DataFrame(columns=["objectives", *TERMS, "seed", "preset", "dataset", "version", "key"])
    covered = found.groupby(["preset", "version"])["objectives"].nunique()
    preset, version = max(covered.index, key=lambda at: (covered[at], at[0] == "paper", at[1]))
    found = found[(found["preset"] == preset) & (found["version"] == version)].reset_index(drop=True)
    require_one_recipe(found, SKELETONS)
    parts = found["objectives"].str.split("+")
    for term in TERMS:
        found[term] = [int(term in part) for part in parts]
    measures = [name for name in MEASURES if name in found]
    return found[["objectives", *TERMS, "seed", "preset", "dataset", "version", "key", *measures]]


def means(table: DataFrame) -> DataFrame:
    """The mean over seeds of every objective, for `glm.fit`; a measure that some seed lacks has none there."""
    measures = [name for name in MEASURES if name in table]
    grouped = table.groupby(["objectives", *TERMS], sort=False)[measures]
    return grouped.mean().where(grouped.count().eq(grouped.size(), axis=0)).reset_index()


def replicated(table: DataFrame, outcome: str = "linear", rows: str | Sequence[str] = "unmixed+best") -> Replicated:
    """The four terms from several seeds: a random intercept for every objective.

    Seeds tell how far an accuracy scatters, and are no rows of their own: what separates the terms is the number n of
    objectives, so that the coefficients keep its degrees of freedom, n - 5. Where seeds are few (fewer beyond the first
    of an objective than there are objectives), or the objectives differ no more than their seeds do, in which case the
    model would take seeds for rows, least squares on the means over seeds takes its place, and the statement says so.

    Args:
        table: one row per objective and seed, as of `our_results`.
        outcome: one of its measures.
        rows: as for `glm.fit`.

    Raises:
        ValueError: as `glm.fit`.
    """
    chosen = selected(table, outcome, rows)
    counts = chosen.index.value_counts()
    beyond, runs = int((counts - 1).sum()), f"{len(counts)} objectives, {len(chosen)} runs"
    plain = fit(means(table), outcome, rows)
    freedom, instead = int(plain.df_resid), "least squares on the means over seeds"
    if beyond < len(counts):
        why = f"{beyond} of them repeats, too few for a random intercept"
        return Replicated(plain, freedom, f"{runs}, {why}; {instead}.")
    mixed = _random_intercepts(chosen, outcome)
    if mixed is None:
        why = "objectives differ no more than seeds, which a random intercept would take for rows"
        return Replicated(plain, freedom, f"{runs}; {why}; {instead}.")
    between, within = float(mixed.cov_re.iloc[0, 0]) ** 0.5, float(mixed.scale) ** 0.5
    spread = f"beyond the terms objectives deviate by {between:.1f} points, seeds by {within:.1f}"
    return Replicated(mixed, freedom, f"{runs}, a random intercept for each objective; {spread}.")


def _random_intercepts(chosen: DataFrame, outcome: str) -> Any | None:
    """Results of `MixedLM`; None if it does not converge, or leaves no variance between objectives."""
    model = sm.MixedLM(chosen[outcome], design_of(chosen, True), groups=chosen.index.to_numpy())
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
        table: of `our_results`, of one preset and data set.

    Returns:
        The columns of `glm.coefficients`, after rows, source ("ours" or "printed"), statement (what was fitted), preset
        and dataset; rows of ours are missing where an objective has not been run.
    """
    preset, dataset = table["preset"].iloc[0], table["dataset"].iloc[0]
    column, parts = BESIDE.get(manifest.plain(dataset), "UCLA"), []
    version = table["version"].iloc[0]
    training = "" if version == SKELETONS.version else f"version {version} of the training, "
    for rows in SHOWN:
        printed = fit(printed_columns(), column, rows)
        said = f"{column}, {int(printed.nobs)} objectives, least squares."
        parts.append(coefficients(printed).assign(rows=rows, source="printed", statement=said))
        try:
            ours = replicated(table, "linear", rows)
        except ValueError:  # an objective of these rows has not been run
            continue
        found = coefficients(ours.results, freedom=ours.freedom)
        parts.append(found.assign(rows=rows, source="ours", statement=f"{training}{ours.statement}"))
    joined = pd.concat(parts, ignore_index=True).assign(preset=preset, dataset=dataset)
    first = ["rows", "source", "statement", "preset", "dataset"]
    return joined[[*first, *joined.columns.drop(first)]]
