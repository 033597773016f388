"""The printed NW-UCLA column under every rule that reads an accuracy off a training, as printed and with two cells
exchanged.

All rules but one were fixed before the runs: each stopping epoch, choices on the test split, the weights of earlier
runs and squared differences. `BEST_OF_BOTH` was added when seeds 0 to 2 had run.
"""

import functools

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from scipy.stats import rankdata

from repro.papers.taxonomy import glm
from repro.report import statistics

LOW, HIGH = "AE+CD", "AE+AD+CD"  # which may have changed places: AE+AD+CD is printed below AE+CD on NW-UCLA alone
TOP = 82.0  # printed accuracies on NW-UCLA from here on are called the highest
BEST_EPOCH, RELEASED = "best epoch on the test split", "best checkpoint by 1-NN, best epoch of its probe, as released"
BEST_OF_BOTH = "best checkpoint and best epoch of its probe, both on the test split"
SQUARED_WEIGHTS = (0.04, 0.004, 0.0004)  # with the last their gradient is about as large as that of absolute ones
DEPARTING = {  # by rule, the runs that depart, as logs call them
    "weights of November 2020": [
        "AD+CD, ad_weight=25.0", "CE+AD, ad_weight=25.0", "AE+CE+AD, ae_weight=10.0, ad_weight=50.0"],
    **{f"squared differences, weight {weight:g}": [
        f"{name}, ad_weight={weight:g}, ad_loss=squared" for name in ("AD", "AE+CE+AD")]
       for weight in SQUARED_WEIGHTS},
}
SCATTERED = ["AE", LOW]  # whose seeds fall apart by 10 points and more: they say nothing of how others scatter
TEST_SAMPLES, SHARED = 460, 6  # of NW-UCLA; means of up to three seeds are multiples of a sixth of one of them


def readings(log: DataFrame) -> dict[str, DataFrame]:
    """By rule, what it reads off the runs of the paper's recipe on NW-UCLA: percent by objective and seed.

    An objective is missing where it has not been run so. A stopping epoch counts if every run was probed at it.

    Args:
        log: of the frame "probes" with entries.
    """
    log = log[(log["dataset"] == "ucla") & (log["preset"] == "paper")]
    if log.empty:
        return {}
    probes = log.pivot(index=["entry", "seed", "epoch"], columns="measure", values="value")
    stopped = probes["linear"].unstack("epoch")
    usual = stopped[stopped.index.isin(glm.OBJECTIVES, level="entry")].dropna(axis=1)  # unmodified runs, common epochs
    nearest = probes["knn1"].groupby(["entry", "seed"]).idxmax()  # of equal ones the first, as released
    chosen = probes.loc[nearest, "linear_best"].droplevel("epoch").loc[usual.index]
    rules = {f"epoch {epoch}": usual[epoch].unstack("seed") for epoch in usual}
    highest = probes["linear_best"].unstack("epoch").loc[usual.index].max(axis=1)
    rules |= {BEST_EPOCH: usual.max(axis=1).unstack("seed"), RELEASED: chosen.unstack("seed"),
              BEST_OF_BOTH: highest.unstack("seed")}
    last = stopped.ffill(axis=1).iloc[:, -1].unstack("seed")
    for rule, entries in DEPARTING.items():
        rules[rule] = last[last.index.isin(entries)].rename(index=lambda entry: entry.partition(",")[0])
    return {rule: values for rule, values in rules.items() if len(values)}


def compared(log: DataFrame) -> DataFrame:
    """How far the printed column is from ours under every rule; `log` as for `readings`.

    Returns:
        A row for each rule, as printed and with the two cells exchanged: rule, exchanged (0 or 1), objectives (how many
        have a run); rmse (points) and spearman of means over seeds, each followed by the range of 95 % of draws of the
        seeds with replacement, as `_low` and `_high`; apart, how many objectives are further from the print than
        2 s sqrt(1 + 1/n), n seeds being one mean and the print one run; and highest_gap, the mean of ours minus theirs
        for those printed at 82 and more. s is the deviation between seeds, pooled over all objectives but those of
        `SCATTERED`, which have that of their own seeds. It is that of the last epoch where a rule has no objective of
        several seeds, and where it is unknown so is `apart`, NA.
    """
    column, found = glm.printed_by_objective()["UCLA"], readings(log)
    columns = {0: column, 1: column.rename({LOW: HIGH, HIGH: LOW})[column.index]}
    deviations = Series({rule: statistics.pooled(values.drop(index=SCATTERED, errors="ignore")).value
                         for rule, values in found.items()}, dtype=float)
    last = [name for name in found if name.startswith("epoch ")][-1:]
    rows = []
    for rule, deviation in deviations.fillna(deviations[last].sum(min_count=1)).items():
        for exchanged, column in columns.items():
            rows.append({"rule": rule, "exchanged": exchanged} | _distance(found[rule], column, deviation))
    return DataFrame(rows).astype({"apart": "Int64"} if rows else {})


def _distance(values: DataFrame, column: Series, deviation: float) -> dict[str, object]:
    """A row of `compared`, of percent by objective and seed, a printed column and the deviation between seeds."""
    column, means = column[values.index], values.mean(axis=1)
    row: dict[str, object] = {"objectives": len(values)}
    for name, measure in (("rmse", statistics.rms_of), ("spearman", _spearman)):
        low, high = statistics.drawn_range(values, functools.partial(measure, column=column.to_numpy()))
        known = measure(means.to_numpy()[None], column.to_numpy()).item()
        row |= {name: known, f"{name}_low": low, f"{name}_high": high}
    spread = values.std(axis=1).where(values.index.isin(SCATTERED), deviation)
    gaps = means - column
    far = gaps.abs() > 2 * spread * (1 + 1 / values.count(axis=1)) ** 0.5
    return row | {"apart": pd.NA if np.isnan(deviation) else far.sum(), "highest_gap": gaps[column >= TOP].mean()}


def _spearman(columns: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Of columns (draws, objectives) with a column; NaN below three objectives: two give 1 or -1.

    Ranks are those of counts of correct samples: accuracies are logged with two digits, which break ties of means.
    """
    if columns.shape[1] < 3:
        return np.full(len(columns), np.nan)
    counts = np.round(columns * TEST_SAMPLES * SHARED / 100)
    return statistics.correlation(rankdata(counts, axis=1), rankdata(column))
