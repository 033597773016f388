"""How far a table agrees with the printed column: order, and which entries stand apart."""

import math

from pandas import DataFrame, Series

from repro.report.logs import untrained
from repro.report.style import departures_in_words, only


def rank_correlation(table: DataFrame) -> float:
    """Spearman's correlation of our accuracies with the printed ones, random initialisation left out.

    Args:
        table: rows of a table, as `run_table` returns them.

    Returns:
        -1 to 1; NaN where fewer than two objectives have both numbers, or all of one side are equal.
    """
    trained = _trained(table)
    return float(trained["ours"].corr(trained["published"], method="spearman"))


def seed_deviation(table: DataFrame) -> float:
    """Standard deviation between seeds in points, pooled over the trained entries (weights: seeds - 1).

    Random initialisation, which scatters for other reasons, is left out. NaN where no entry has two seeds.
    """
    freedom = degrees_of_freedom(table)
    if not freedom.sum():
        return math.nan
    return float((_trained(table)["std"] ** 2 * freedom).sum() / freedom.sum()) ** 0.5


def degrees_of_freedom(table: DataFrame) -> Series:
    """What each trained entry adds to those of `seed_deviation`: seeds - 1."""
    trained = _trained(table)
    return (trained["n_seeds"] - 1).where(trained["std"].notna(), 0)


def apart(table: DataFrame, deviations: float = 2.0) -> DataFrame:
    """The trained entries further from the printed number than `deviations` standard deviations of that distance.

    Our mean of n seeds has the variance s^2 / n and the printed number, taken for one run, s^2: their difference has
    the standard deviation s sqrt(1 + 1/n), s being `seed_deviation`.

    Returns:
        objectives, ours, published, difference (points) and deviations, the largest distance first; none where the
        deviation between seeds is unknown.
    """
    rows = _trained(table)
    rows = rows.assign(deviations=rows["difference"] / (seed_deviation(table) * (1 + 1 / rows["n_seeds"]) ** 0.5))
    rows = rows[rows["deviations"].abs() > deviations]
    rows = rows.sort_values("deviations", key=abs, ascending=False)
    return rows[["objectives", "ours", "published", "difference", "deviations"]].reset_index(drop=True)


def summary(table: DataFrame) -> str:
    """The above in three sentences, with the preset, what departs from it and what the deviation rests on."""
    compared = _trained(table)[["ours", "published"]].notna().all(axis=1).sum()
    if not compared:
        return "Nothing is compared: no printed number belongs to this data."
    recipe = ", ".join([f"{only(table, 'preset').capitalize()} recipe", *departures_in_words(table)])
    correlation = rank_correlation(table)
    order = f"{recipe}: Spearman's correlation with the printed column is {correlation:.2f} ({compared} objectives)."
    deviation, freedom = seed_deviation(table), degrees_of_freedom(table)
    if math.isnan(deviation):
        return f"{order} One seed says nothing about how far numbers scatter."
    scatter = f"The standard deviation between seeds is {deviation:.1f} points."
    pooled = f"pooled over {(freedom > 0).sum()} objectives, {freedom.sum()} degrees of freedom"
    names = [f"{row.objectives} ({row.difference:+.1f})" for row in apart(table).itertuples()]
    others = f"{len(names)} of {compared} objectives" + (f", {', '.join(names)}" if names else "")
    return f"{order} {scatter} From one printed run more than two standard deviations ({pooled}) away: {others}."


def _trained(table: DataFrame) -> DataFrame:
    return table[~untrained(table, ["objectives"])]
