"""How far a table agrees with the printed column: order, and which entries stand apart."""

import math

from pandas import DataFrame


def rank_correlation(table: DataFrame) -> float:
    """Spearman's correlation of our accuracies with the printed ones, random initialisation left out.

    Args:
        table: of `skeleton.tables.taxonomy`.

    Returns:
        -1 to 1; NaN where fewer than two objectives have both numbers, or all of one side are equal.
    """
    trained = _trained(table)
    return float(trained["ours"].corr(trained["published"], method="spearman"))


def seed_deviation(table: DataFrame) -> float:
    """Standard deviation between seeds in points, pooled over the trained entries (weights: seeds - 1).

    Random initialisation, which scatters for other reasons, is left out. NaN where no entry has two seeds.
    """
    table = _trained(table)
    freedom = (table["n_seeds"] - 1).where(table["std"].notna(), 0)
    if not freedom.sum():
        return math.nan
    return float((table["std"] ** 2 * freedom).sum() / freedom.sum()) ** 0.5


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
    """The above in three sentences."""
    compared = _trained(table)[["ours", "published"]].notna().all(axis=1).sum()
    if not compared:
        return "Nothing is compared: no printed number belongs to this data."
    order = f"Spearman's correlation with the printed column is {rank_correlation(table):.2f} ({compared} objectives)."
    deviation = seed_deviation(table)
    if math.isnan(deviation):
        return f"{order} One seed says nothing about how far numbers scatter."
    found = apart(table)
    names = [f"{row.objectives} ({row.difference:+.1f})" for row in found.itertuples()]
    others = f"{len(found)} of {compared} objectives: {', '.join(names)}" if names else "no objective"
    scatter = f"The standard deviation between seeds is {deviation:.1f} points."
    return f"{order} {scatter} Further from one printed run than two deviations of the difference stands {others}."


def _trained(table: DataFrame) -> DataFrame:
    return table[table["objectives"] != "random"]
