"""What sentences of the CM-ACC paper are held against besides results and printed tables; see `repro.papers`."""

import pandas as pd
from pandas import DataFrame


def over_batches(rows: DataFrame) -> DataFrame:
    """Accuracy by sampler, target and seed, on average over the numbers of negatives; NaN where one is missing."""
    by_batch = rows.pivot_table("ours", ["sampler", "target", "seed"], "batch")
    return by_batch.mean(axis=1, skipna=False).rename("ours").reset_index()


def by_tenth(rows: DataFrame) -> DataFrame:
    """Mean categories of video in the first and the last tenth of the iterations."""
    share = rows["step"] / rows["step"].max()
    tenths = pd.concat([rows[share <= 0.1].assign(tenth="first"), rows[share > 0.9].assign(tenth="last")])
    apart = ["sampler", "frequency", "batch", "tenth", "seed"]
    return tenths.groupby(apart, as_index=False, sort=False)["categories_video"].mean()


def by_category(rows: DataFrame) -> DataFrame:
    """By how much chi-squared of the pretext accuracy by category exceeds its expectation, were it one in all of them.

    Of f degrees of freedom it has the expectation f and the deviation sqrt(2 f), and is nearly normal where f is large.
    It is the sum over encoders, a seed each, and kinds of queries. Encoders read the same pairs: the errors of the
    parts add up, as if all were one reading told several times.
    """
    counts, excess, error = rows.assign(right=rows["accuracy"] / 100 * rows["pairs"]), 0.0, 0.0
    for _, part in counts.groupby(["query", "seed"]):
        share, freedom = part["right"].sum() / part["pairs"].sum(), len(part) - 1
        squares = (part["right"] - share * part["pairs"]) ** 2 / (share * (1 - share) * part["pairs"])
        excess, error = excess + squares.sum() - freedom, error + (2 * freedom) ** 0.5
    return DataFrame([{"encoder": "all", "excess": excess, "excess_error": error}])


def beyond_random(rows: DataFrame) -> DataFrame:
    """How much larger gradients a sampler picks than random sampling does from the same pool, in the mean over picks.

    A seed is an encoder, from whose pool and queries all samplers pick.
    """
    means = rows.pivot_table("gradient_norm", ["modality", "seed"], "sampler")
    beyond = means.drop(columns="random").sub(means["random"], axis=0)
    return beyond.melt(value_name="beyond", ignore_index=False).reset_index()


DERIVED = {
    "samplers_over_batches": ("samplers_by_batch", over_batches),
    "chosen_post_hoc": (  # from the keys of finished encoders
        "log/post_hoc_diversity_multiomniglot",
        lambda rows: rows.query("measure == 'categories' and posterior == 1 and step == step.max()")),
    "diversity_by_tenth": ("log/category_curves_multiomniglot", by_tenth),
    "pretext_by_category": ("log/pretext_accuracy_synthetic", by_category),
    "picks_beyond_random": ("log/selected_negatives_synthetic", beyond_random),
}
