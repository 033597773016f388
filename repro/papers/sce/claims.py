"""Rules for sentences of the SCE supplement that are more than a comparison of rows; see `repro.report.claims`."""

from typing import Any

import torch
from torch.nn.functional import normalize

from repro.contrast.objectives import ceil, info_nce, ressl, sce
from repro.papers.sce.published import printed_grid
from repro.report import statistics
from repro.report.claims import Claim, Judged, Results, Rule, above, exact, runs_of
from repro.report.printed import printed
from repro.report.statistics import Estimate

SAME = 1e-3  # nats, below which a rest of the loss is called negligible


def best_pairs(claim: Claim, results: Results) -> Judged:
    """Whether the printed best temperatures and accuracies are the maxima of the printed grid."""
    columns, best = ["tau", "tau_m", "top1"], printed("sce_best_temperature").set_index("dataset")
    grid = results.rows
    maxima = grid.loc[grid.groupby("dataset")["top1"].idxmax()].set_index("dataset")
    same = (maxima.loc[best.index, columns] - best[columns]).abs().lt(statistics.ROUNDING).all(axis=1)
    return bool(same.all()), {"data sets": exact(len(best)), "of them as in the grid": exact(same.sum())}


def best_beyond_noise(claim: Claim, results: Results) -> Judged:
    """Whether the best printed accuracy of every data set exceeds the second best by more than seeds scatter.

    Two single runs of a deviation s between seeds differ by s sqrt(2); s is that of our grid.
    """
    runs, _ = runs_of(results, claim.measure)
    deviation, numbers = statistics.pooled(runs), {}
    for dataset in ("cifar10", "cifar100", "stl10", "tiny_imagenet"):
        best, second = printed_grid(dataset).nlargest(2)
        numbers[dataset] = Estimate(best - second, deviation.value * 2**0.5, deviation.df, (1, 1))
    return above(numbers), numbers


def keeps_its_accuracy(claim: Claim, results: Results) -> Judged:
    """Whether accuracies where both temperatures are 0.1 are `margin` times the best at that of the query, or more."""
    rows = results.rows[results.rows["tau"] == 0.1].pivot(index="dataset", columns="tau_m", values="top1")
    shares = rows[0.1] / rows.max(axis=1)
    return bool((shares >= claim.margin).all()), {name: exact(share) for name, share in shares.items()}


def decomposition(*_: Any) -> Judged:
    """Whether L = lambda InfoNCE + (1 - lambda) (ReSSL + Ceil) on random unit vectors, for four weights lambda."""
    query, key, negatives = _features()
    worst = 0.0
    for weight in (0.0, 0.3, 0.5, 1.0):
        soft = ressl(query, key, negatives, 0.1, 0.05) + ceil(query, key, negatives, 0.1)
        parts = weight * info_nce(query, key, negatives, 0.1) + (1 - weight) * soft
        worst = max(worst, float((sce(query, key, negatives, 0.1, 0.05, weight) - parts).abs()))
    return worst < 1e-9, {"largest difference, nats": exact(worst)}


def pseudo_code(*_: Any) -> Judged:
    """Whether a similarity of 0 at the positive in the target, as in the pseudo-code, changes the loss negligibly."""
    query, key, negatives = _features()
    numbers = {}
    for temperature in (0.03, 0.05, 0.1):
        formula, as_coded = (sce(query, key, negatives, 0.1, temperature, 0.5, masked_positive=masked)
                             for masked in (True, False))
        numbers[f"nats at key temperature {temperature:g}"] = exact(abs(float(formula - as_coded)))
    return all(number.value < SAME for number in numbers.values()), numbers


def _features() -> list[torch.Tensor]:
    """Random unit vectors of 256 numbers: 16 queries, their keys, and a dictionary."""
    generator = torch.Generator().manual_seed(0)
    return [normalize(torch.randn(rows, 256, generator=generator, dtype=torch.float64), dim=1)
            for rows in (16, 16, 4096)]


RULES: dict[str, Rule] = {
    "best pairs": best_pairs, "best beyond noise": best_beyond_noise, "keeps its accuracy": keeps_its_accuracy,
    "decomposition": decomposition, "pseudo-code": pseudo_code,
}
