"""What SCE and ReSSL ask of a query: their targets over the positive key and a dictionary, beside its prediction."""

import numpy as np
import pandas as pd
import torch
from pandas import DataFrame
from torch import Tensor

from repro.contrast import objectives

KINDS = POSITIVE, ALIKE, OTHER = "positive key", "same action", "another action"


def distributions(
    query: Tensor, key: Tensor, negatives: Tensor, alike: Tensor, *, temperature: float, key_temperature: float,
    weight: float,
) -> DataFrame:
    """Targets and predictions of one query, as `contrast.objectives` defines them.

    Args:
        query: (1, d) projection of a view.
        key: (1, d) projection of another view of the same.
        negatives: (K, d) dictionary.
        alike: (K,) bool, the entries of the same action.
        temperature, key_temperature, weight: of `sce` and, without the weight, `ressl`.

    Returns:
        One row for the positive key, then one per entry of the dictionary, in the order of falling similarity to the
        key: kind, similarity (to the key; 1 for the positive of unit length), sce_target, sce_prediction, ressl_target,
        ressl_prediction (NaN for the positive, which ReSSL leaves out). Each of the four adds up to 1.

    Raises:
        ValueError: as `objectives.sce`.
    """
    query, key, negatives = (features.detach().double().cpu() for features in (query, key, negatives))
    similarities, order = (negatives @ key[0]).sort(descending=True, stable=True)
    negatives = negatives[order]
    predicted = objectives.prediction(query, key, negatives, temperature)[0]
    relations = objectives.sce_target(key, negatives, key_temperature, weight=0)[0]
    absent = torch.full((1,), torch.nan, dtype=torch.float64)
    columns = {
        "similarity": torch.cat([(key * key).sum(1), similarities]),
        "sce_target": objectives.sce_target(key, negatives, key_temperature, weight)[0],
        "sce_prediction": predicted,
        "ressl_target": torch.cat([absent, relations[1:]]),
        "ressl_prediction": torch.cat([absent, predicted[1:] / predicted[1:].sum()]),
    }
    kinds = [POSITIVE, *np.where(alike[order].numpy(), ALIKE, OTHER)]
    return DataFrame({"kind": kinds} | {name: column.numpy() for name, column in columns.items()})


def losses(
    query: Tensor, key: Tensor, negatives: Tensor, *, temperature: float, key_temperature: float, weight: float
) -> dict[str, float]:
    """SCE and its three parts, in nats; the arguments are those of `distributions`."""
    features = [tensor.detach().double().cpu() for tensor in (query, key, negatives)]
    return {
        "SCE": objectives.sce(*features, temperature, key_temperature, weight).item(),
        "InfoNCE": objectives.info_nce(*features, temperature).item(),
        "ReSSL": objectives.ressl(*features, temperature, key_temperature).item(),
        "Ceil": objectives.ceil(*features, temperature).item(),
    }


def perplexity(shares: pd.Series) -> float:
    """The exponential of the entropy of shares that add up to 1, NaN left out: over how many keys they are spread."""
    present = shares[shares > 0]
    return float(np.exp(-(present * np.log(present)).sum()))
