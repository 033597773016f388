"""The printed NW-UCLA column under every rule that reads an accuracy off a training, as printed and with two cells
exchanged.

The rules were fixed before the runs: each stopping epoch, choices on the test split, the weights of earlier runs and
squared differences.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from scipy.stats import rankdata

from repro.papers.taxonomy import glm
from repro.recipe import entry_name
from repro.report import statistics
from repro.skeleton.recipe import SKELETONS

LOW, HIGH = "AE+CD", "AE+AD+CD"  # which may have changed places: AE+AD+CD is printed below AE+CD on NW-UCLA alone
TOP = 82.0  # printed accuracies on NW-UCLA from here on are called the highest
BEST_EPOCH, RELEASED = "best epoch on the test split", "best checkpoint by 1-NN, best epoch of its probe, as released"
BEST_OF_BOTH = "best checkpoint and best epoch of its probe, both on the test split"
SQUARED_WEIGHTS = (0.04, 0.004, 0.0004)  # with the last their gradient is about as large as that of absolute ones
DEPARTING: dict[str, dict[str, dict[str, Any]]] = {  # by rule and objective, the fields that depart
    "weights of November 2020": {
        "AD+CD": {"ad_weight": 25.0}, "CE+AD": {"ad_weight": 25.0}, "AE+CE+AD": {"ae_weight": 10.0, "ad_weight": 50.0},
    },
} | {
    f"squared differences, weight {weight:g}": {name: {"ad_loss": "squared", "ad_weight": weight}
                                                for name in ("AD", "AE+CE+AD")}
    for weight in SQUARED_WEIGHTS
}
SCATTERED = ["AE", LOW]  # whose seeds fall apart by 10 points and more: they say nothing of how others scatter
TEST_SAMPLES, SHARED = 460, 6  # of NW-UCLA; means of up to three seeds are multiples of a sixth of one of them
FIRST, REACHED, FALLEN = 20, 75.0, 65.0  # from this epoch on AE+CD that high, or AE+AD+CD that low, speaks against it


def readings(log: DataFrame) -> dict[str, DataFrame]:
    """By rule, what it reads off the runs of the paper's recipe on NW-UCLA: percent by objective and seed.

    An objective is missing where it has not been run so. A stopping epoch counts if every run was probed at it.

    Args:
        log: of the frame "probes" with entries.
    """
    probes = _probes(log)
    if probes.empty:
        return {}
    stopped = probes["linear"].unstack("epoch")
    usual = _usual(stopped)
    nearest = probes["knn1"].groupby(["entry", "seed"]).idxmax()  # of equal ones the first, as released
    chosen = probes.loc[nearest, "linear_best"].droplevel("epoch").loc[usual.index]
    rules = {f"epoch {epoch}": usual[epoch].unstack("seed") for epoch in usual}
    highest = probes["linear_best"].unstack("epoch").loc[usual.index].max(axis=1)
    rules |= {BEST_EPOCH: usual.max(axis=1).unstack("seed"), RELEASED: chosen.unstack("seed"),
              BEST_OF_BOTH: highest.unstack("seed")}
    last = stopped.ffill(axis=1).iloc[:, -1].unstack("seed")
    for rule, fields in DEPARTING.items():
        entries = {_entry(objective, changed): objective for objective, changed in fields.items()}
        rules[rule] = last[last.index.isin([*entries])].rename(index=entries)
    return {rule: values for rule, values in rules.items() if len(values)}


def _probes(log: DataFrame) -> DataFrame:
    """Measures by entry, seed and epoch, of the paper's recipe on NW-UCLA."""
    log = log[(log["dataset"] == "ucla") & (log["preset"] == "paper")]
    return log.pivot(index=["entry", "seed", "epoch"], columns="measure", values="value")


def _usual(stopped: DataFrame) -> DataFrame:
    """Of accuracies by entry and seed, and epoch, those of runs that depart in nothing, at epochs that all have."""
    return stopped[stopped.index.isin(glm.OBJECTIVES, level="entry")].dropna(axis=1)


def _entry(objective: str, fields: Mapping[str, Any]) -> str:
    """What a run of an objective with these fields is called in the log."""
    return entry_name(objective, {name: fields[name] for name in SKELETONS.fields if name in fields})


def compared(log: DataFrame) -> DataFrame:
    """How far the printed column is from ours under every rule; `log` as for `readings`.

    Returns:
        A row for each rule, as printed and with the two cells exchanged: rule, exchanged (0 or 1), objectives (how many
        have a run), runs, absent (which have none); rmse (points) and spearman of means over seeds, each followed by
        the range of 95 % of draws of the seeds with replacement, as `_low` and `_high`; deviation s (points, between
        seeds, pooled over all objectives but those of `SCATTERED`, which have that of their own seeds; that of the last
        epoch where a rule has no objective of several seeds); apart, how many objectives are further from the print
        than 2 s sqrt(1 + 1/n), n seeds being one mean and the print one run; highest, how many of those printed at 82
        and more are no further, by the same, both NA where s is unknown; and highest_gap, the mean of ours minus
        theirs.
    """
    columns, found = {0: printed_column(), 1: exchange(printed_column(), LOW, HIGH)}, readings(log)
    deviations = Series({rule: statistics.pooled(values.drop(index=SCATTERED, errors="ignore")).value
                         for rule, values in found.items()}, dtype=float)
    last = [name for name in found if name.startswith("epoch ")][-1:]
    rows = []
    for rule, deviation in deviations.fillna(deviations[last].sum(min_count=1)).items():
        for exchanged, column in columns.items():
            rows.append({"rule": rule, "exchanged": exchanged} | _distance(found[rule], column, deviation))
    table = DataFrame(rows)
    return table.astype({"apart": "Int64", "highest": "Int64"}) if len(table) else table


def printed_column() -> Series:
    return glm.printed_by_objective()["UCLA"]


def exchange(values: Series, first: str, second: str) -> Series:
    """Values by objective, two of them exchanged."""
    return values.rename({first: second, second: first})[values.index]


def _distance(values: DataFrame, column: Series, deviation: float) -> dict[str, object]:
    """A row of `compared`, of percent by objective and seed, a printed column and the deviation between seeds."""
    column, runs, means = column[values.index], values.count(axis=1), values.mean(axis=1)
    absent = ", ".join(name for name in glm.OBJECTIVES if name not in values.index)
    row: dict[str, object] = {"objectives": len(values), "runs": int(runs.sum()), "absent": absent}
    for name, measure in (("rmse", _rmse), ("spearman", _spearman)):
        low, high = statistics.drawn_range(values, functools.partial(measure, column=column))
        row |= {name: measure(means.to_numpy()[None], column).item(), f"{name}_low": low, f"{name}_high": high}
    spread = values.std(axis=1).where(values.index.isin(SCATTERED), deviation)
    gaps, top, known = means - column, column >= TOP, not np.isnan(deviation)
    far = gaps.abs() > 2 * spread * (1 + 1 / runs) ** 0.5
    return row | {"deviation": deviation, "apart": far.sum() if known else pd.NA,
                  "highest": (~far)[top].sum() if known else pd.NA, "highest_gap": gaps[top].mean()}


def _rmse(rows: np.ndarray, column: Series) -> np.ndarray:
    return np.sqrt(((rows - column.to_numpy()) ** 2).mean(1))


def _spearman(rows: np.ndarray, column: Series) -> np.ndarray:
    """Of every row (draws, objectives) with a column; NaN below three objectives: two give 1 or -1.

    Ranks are those of counts of correct samples: accuracies are logged with two digits, which break ties of means.
    """
    if rows.shape[1] < 3:
        return np.full(len(rows), np.nan)
    counts = np.round(rows * TEST_SAMPLES * SHARED / 100)
    return statistics.correlation(rankdata(counts, axis=1), rankdata(column.to_numpy()))


class Exchange(NamedTuple):
    """Whether two printed cells have changed places, by the rule fixed before the runs.

    Attributes:
        verdict: "supported", "refuted" or "undecided".
        highest: accuracy that AE+CD reaches from epoch `FIRST` on, with any seed.
        lowest: accuracy to which AE+AD+CD falls.
        epoch: at which CD, AE+CD and AE+AD+CD are nearest to the exchanged numbers.
        away: how many deviations of their own seeds the farthest of the three is off then; NaN if unknown.
    """

    verdict: str
    highest: float
    lowest: float
    epoch: float
    away: float


def exchanged(log: DataFrame) -> Exchange | None:
    """`Exchange`, by the runs of the frame "probes" with entries; None if one of the three objectives has none.

    Refuted if AE+CD reaches 75; supported if from epoch 20 on no probe gives that, or AE+AD+CD at most 65, and at one
    common epoch CD, AE+CD and AE+AD+CD are within two deviations of their own seeds of the exchanged numbers.
    """
    probes, names = _probes(log), ["CD", LOW, HIGH]
    if not set(names) <= set(probes.index.get_level_values("entry")):
        return None
    late = _usual(probes["linear"].unstack("epoch")).loc[:, FIRST:]
    seeds = late.groupby("entry")
    numbers = exchange(printed_column(), LOW, HIGH)
    errors = seeds.std().mul((1 + 1 / seeds.size()) ** 0.5, axis=0)
    gaps = seeds.mean().sub(numbers.reindex(errors.index), axis=0).abs()
    away = (gaps / errors).loc[names].max(skipna=False)  # by epoch; unknown where one of them has a single seed
    highest, lowest = late.loc[LOW].max(axis=None), late.loc[HIGH].min(axis=None)
    verdict = "refuted" if highest >= REACHED else "undecided"
    if highest < REACHED and lowest > FALLEN and away.min() <= 2:
        verdict = "supported"
    epoch = away.idxmin() if away.notna().any() else np.nan
    return Exchange(verdict, float(highest), float(lowest), float(epoch), float(away.min()))
