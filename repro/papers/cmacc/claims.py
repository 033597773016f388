"""What sentences of the CM-ACC paper are held against besides results and printed tables; see
`repro.papers`."""

import numpy as np
import pandas as pd
import torch
from pandas import DataFrame
from torch.nn.functional import normalize

from repro.audiovisual.coverage import expected_categories
from repro.contrast.active import gradient_factors

TARGETS = ["UCF101", "HMDB51", "ESC50"]
CATEGORIES, PICKED = (101, 51), 128  # of UCF101, all and those whose videos have sound; and M
ACTIVE = 0.6  # of the draws of a batch, by which Fig. 4 divides: the least that active selection is printed to cover
EARLY, LATE = 0.1, 0.9  # shares of the iterations: the first tenth, and from where the last one begins


def uniform_coverage() -> DataFrame:
    """What 128 uniform draws from all of UCF101's categories and from those with sound cover, in percent.

    The paper says neither of what, the categories or the draws, nor of how many categories: the method needs sound,
    which half of UCF101 lacks. A row for each reading: classes (101 or 51), of ("categories" or "draws"), percent.
    """
    rows = []
    for classes in CATEGORIES:
        expected = expected_categories(np.full(classes, 1 / classes), PICKED)
        rows.append({"classes": classes, "of": "categories", "percent": 100 * expected / classes})
        rows.append({"classes": classes, "of": "draws", "percent": 100 * expected / PICKED})
    return DataFrame(rows)


def active_coverage() -> DataFrame:
    """By how many categories active selection covers more than uniform draws, for 101 and for 51 classes.

    It covers 60 % of 128 draws, by which Fig. 4 divides. Where there are not as many, the lead is what lacks, below 0.
    """
    covered, rows = ACTIVE * PICKED, []
    for classes in CATEGORIES:
        expected = expected_categories(np.full(classes, 1 / classes), PICKED)
        rows.append({"classes": classes, "lead": min(covered - expected, classes - covered)})
    return DataFrame(rows)


def gains(rows: DataFrame) -> DataFrame:
    """Our rows of Tables 4 and 5 with what they gain over the best other method pre-trained on as many clips.

    Returns:
        The rows with `gained` and `unexplained`, the printed gain minus it, for each target. Both are NaN where a
        method of unknown size, which may be comparable, is better than all of that size, or none has that size.
    """
    targets = [name for name in TARGETS if name in rows]
    ours, best = rows[rows["method"] == "Ours"], _others(rows).groupby("pretrain_size")[targets].max()
    if "N/A" in best.index:
        best = best.where(best.ge(best.loc["N/A"]))
    for target in targets:
        gained = (ours[target] - ours["pretrain_size"].map(best[target])).round(1)
        unexplained = (ours[f"gain_{target}"] - gained).round(1)
        ours = ours.assign(**{f"gained_{target}": gained, f"unexplained_{target}": unexplained})
    return ours


def _others(rows: DataFrame) -> DataFrame:
    """Rows of other self-supervised methods."""
    return rows[~rows["method"].str.startswith(("Ours", "Scratch", "Supervised"))]


def best_of(rows: DataFrame, *by: str) -> DataFrame:
    """The best accuracies of CM-ACC and of other self-supervised methods, of rows that agree in some columns."""
    rows = pd.concat([rows[rows["method"] == "Ours"], _others(rows).assign(method="others")])
    return rows.groupby(["method", *by], as_index=False)[["UCF101", "HMDB51"]].max()


def by_batch(rows: DataFrame) -> DataFrame:
    """The rows of Table 3: accuracy by sampler, batch (M) and target."""
    rows = rows.melt("sampler", value_name="accuracy")
    rows[["target", "batch"]] = rows["variable"].str.split("_M", expand=True)
    return rows.astype({"batch": int})


def over_batches(rows: DataFrame) -> DataFrame:
    """Accuracy by sampler, target and seed, on average over the numbers of negatives; NaN where one is missing."""
    by_batch = rows.pivot_table("ours", ["sampler", "target", "seed"], "batch")
    return by_batch.mean(axis=1, skipna=False).rename("ours").reset_index()


def chosen_post_hoc(rows: DataFrame) -> DataFrame:
    """Categories of what samplers choose from the keys of finished encoders."""
    return rows.query("measure == 'categories' and posterior == 1 and step == step.max()")


def by_tenth(rows: DataFrame) -> DataFrame:
    """Mean categories of video in the first and the last tenth of the iterations."""
    share = rows["step"] / rows["step"].max()
    tenths = pd.concat([rows[share <= EARLY].assign(tenth="first"), rows[share > LATE].assign(tenth="last")])
    apart = ["sampler", "frequency", "batch", "tenth", "seed"]
    return tenths.groupby(apart, as_index=False, sort=False)["categories_video"].mean()


def smaller_than_pseudo_label() -> DataFrame:
    """Percent of simulated candidates in which another label's gradient of Eq. 5 is below that of the pseudo-label.

    The gradient of label y has the norm |k| |H^T (p - e_y)|, for inputs H of the last layer by 128 queries and a
    posterior p over these, whose logits deviate by 1, 3 and 10.
    """
    generator, percent = torch.Generator().manual_seed(0), {}
    for deviation in (1, 3, 10):
        inputs = torch.randn(128, 512, generator=generator, dtype=torch.float64).relu()
        posterior = (deviation * torch.randn(256, 128, generator=generator, dtype=torch.float64)).softmax(dim=1)
        norms = torch.cdist(posterior @ inputs, inputs)                                                # (256, 128)
        pseudo = norms.gather(1, posterior.argmax(1, keepdim=True))
        percent[deviation] = 100 * float((norms < pseudo - 1e-9).any(dim=1).double().mean())
    return DataFrame({"deviation": percent.keys(), "percent": percent.values()})


def gradient_norms() -> DataFrame:
    """Gradient norms of Eq. 4 and 5, of keys near one of 128 queries and between two, in decades over random keys.

    Keys and queries have one length, 1, 4 or 16, of which the paper says nothing: each counts as a run. They have 512
    dimensions. Keys between two are nearer to one by a thousandth, so that rounding does not choose their pseudo-label.
    """
    generator, rows = torch.Generator().manual_seed(0), []
    for length in (1, 4, 16):
        queries, inputs, random = (torch.randn(128, 512, generator=generator, dtype=torch.float64) for _ in range(3))
        queries, random = normalize(queries, dim=1), normalize(random, dim=1)
        norms = []
        for keys in (random, 0.8 * queries + 0.6 * random, queries + 0.999 * queries.roll(1, 0)):
            a, b = gradient_factors(length * normalize(keys, dim=1), length * queries, inputs)
            norms.append((a.norm(dim=1) * b.norm(dim=1)).mean())
        rows += [{"keys": place, "seed": length, "decades": float((norm / norms[0]).log10())}
                 for place, norm in zip(("near one query", "between two"), norms[1:], strict=True)]
    return DataFrame(rows)


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
    "uniform_coverage": ("", uniform_coverage), "active_coverage": ("", active_coverage),
    "gradient_norms": ("", gradient_norms),
    "smaller_than_pseudo_label": ("", smaller_than_pseudo_label),
    "table3_by_batch": ("printed/cmacc_table3", by_batch),
    "table4_gains": ("printed/cmacc_table4", gains), "table5_gains": ("printed/cmacc_table5", gains),
    "table4_best": ("printed/cmacc_table4", best_of),
    "table4_best_by_network": (
        "printed/cmacc_table4", lambda rows: best_of(rows, "architecture", "pretrain_size")),
    "samplers_over_batches": ("samplers_by_batch", over_batches),
    "chosen_post_hoc": ("log/post_hoc_diversity_multiomniglot", chosen_post_hoc),
    "diversity_by_tenth": ("log/category_curves_multiomniglot", by_tenth),
    "pretext_by_category": ("log/pretext_accuracy_synthetic", by_category),
    "picks_beyond_random": ("log/selected_negatives_synthetic", beyond_random),
}
