"""What sentences of the SCE supplement are held against besides results and printed tables; see
`repro.papers`."""

import torch
from pandas import DataFrame
from torch.nn.functional import normalize

from repro.contrast.objectives import ceil, info_nce, ressl, sce
from repro.papers.sce.tables import printed_grid
from repro.report import statistics


def decomposition() -> DataFrame:
    """The loss minus lambda InfoNCE + (1 - lambda) (ReSSL + Ceil), in nats, for four weights lambda."""
    query, key, negatives = _features()
    soft = ressl(query, key, negatives, 0.1, 0.05) + ceil(query, key, negatives, 0.1)
    rest = {}
    for weight in (0.0, 0.3, 0.5, 1.0):
        parts = weight * info_nce(query, key, negatives, 0.1) + (1 - weight) * soft
        rest[weight] = float(sce(query, key, negatives, 0.1, 0.05, weight) - parts)
    return DataFrame({"weight": rest.keys(), "nats": rest.values()})


def pseudo_code() -> DataFrame:
    """What a similarity of 0 at the positive in the target, as in the pseudo-code, adds to the loss, in nats."""
    query, key, negatives = _features()
    rest = {}
    for temperature in (0.03, 0.05, 0.1):
        formula, as_coded = (sce(query, key, negatives, 0.1, temperature, 0.5, masked_positive=masked)
                             for masked in (True, False))
        rest[temperature] = float(as_coded - formula)
    return DataFrame({"key_temperature": rest.keys(), "nats": rest.values()})


def _features() -> list[torch.Tensor]:
    """Random unit vectors of 256 numbers: 16 queries, their keys, and a dictionary."""
    generator = torch.Generator().manual_seed(0)
    return [normalize(torch.randn(rows, 256, generator=generator, dtype=torch.float64), dim=1)
            for rows in (16, 16, 4096)]


def lead_of_best(rows: DataFrame) -> DataFrame:
    """By how much the best printed accuracy of every data set exceeds the second best, with the error of our grid.

    Two single runs of a deviation s between seeds differ by s sqrt(2).
    """
    runs = rows.pivot_table("ours", ["method", "temperature", "key_temperature"], "seed")
    deviation, leads = statistics.pooled(runs), {}
    for dataset in ("cifar10", "cifar100", "stl10", "tiny_imagenet"):
        best, second = printed_grid(dataset).nlargest(2)
        leads[dataset] = best - second
    return DataFrame({"dataset": leads.keys(), "lead": leads.values(), "lead_error": deviation.value * 2**0.5,
                      "lead_df": deviation.df})


DERIVED = {
    "decomposition": ("", decomposition), "pseudo_code": ("", pseudo_code),
    "lead_of_best": ("temperature_grid_cifar10", lead_of_best),
    "best_temperatures": (
        "printed/sce_best_temperature",
        lambda rows: rows.melt("dataset", ["tau", "tau_m"], var_name="of", value_name="temperature")),
}
