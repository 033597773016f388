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
    trained = table[table["objectives"] != "random"]
    return float(trained["ours"].corr(trained["published"], method="spearman"))


def seed_deviation(table: DataFrame) -> float:
    """Standard deviation between seeds, pooled over the entries (weights: seeds - 1), in points; NaN without any."""
    freedom = (table["n_seeds"] - 1).where(table["std"].notna(), 0)
    if not freedom.sum():
        return math.nan
    return float((table["std"] ** 2 * freedom).sum() / freedom.sum()) ** 0.5


def apart(table: DataFrame, deviations: float = 2.0) -> DataFrame:
    """The entries whose distance from the printed number exceeds `deviations` pooled standard deviations.

    Returns:
        objectives, ours, published, difference (points) and deviations, the largest distance first; none where the
        deviation between seeds is unknown.
    """
    rows = table.assign(deviations=table["difference"] / seed_deviation(table))
    rows = rows[rows["deviations"].abs() > deviations]
    rows = rows.sort_values("deviations", key=abs, ascending=False)
    return rows[["objectives", "ours", "published", "difference", "deviations"]].reset_index(drop=True)


def summary(table: DataFrame) -> str:
    """The above in two sentences."""
    compared = table[table["objectives"] != "random"][["ours", "published"]].notna().all(axis=1).sum()
    if not compared:
        return "Nothing is compared: no printed number belongs to this data."
    order = f"Spearman's correlation with the printed column is {rank_correlation(table):.2f} ({compared} objectives)."
    deviation = seed_deviation(table)
    if math.isnan(deviation):
        return f"{order} One seed says nothing about how far numbers scatter."
    found = apart(table)
    names = [f"{row.objectives} ({row.difference:+.1f})" for row in found.itertuples()]
    others = f"{len(found)} of {len(table)} entries: {', '.join(names)}" if names else "no entry"
    return f"{order} Further than two standard deviations between seeds ({2 * deviation:.1f} points) stands {others}."
