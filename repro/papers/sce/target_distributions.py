"""What SCE and ReSSL ask of a query: their targets over the positive key and a dictionary, beside its prediction."""

import numpy as np
import pandas as pd
import torch
from pandas import DataFrame
from torch import Tensor

POSITIVE, ALIKE, OTHER = "positive key", "same action", "another action"


def distributions(
    query: Tensor, key: Tensor, negatives: Tensor, alike: Tensor, *, temperature: float, key_temperature: float,
    weight: float,
) -> DataFrame:
    """Targets and predictions of one query, whose cross-entropies are `sce` and `ressl` of `contrast.objectives`.

    Args:
        query, key: (1, d) projections of two views.
        negatives: (K, d) dictionary.
        alike: (K,) bool, the entries of the same action.
        temperature, key_temperature, weight: of `sce` and, without the weight, `ressl`.

    Returns:
        objective, key, kind, similarity, target, prediction: a row for the positive key, number 0, of SCE alone, then
        one per entry by falling similarity to the key. Targets and predictions of an objective add up to 1.

    Source: SCE supplement, Alg. 1.
    """
    similarities, order = (negatives @ key[0]).sort(descending=True, stable=True)
    negatives = negatives[order]
    predicted = (query @ torch.cat([key, negatives]).T / temperature).softmax(1)[0].numpy()
    relations = (key @ negatives.T / key_temperature).softmax(1)[0].numpy()
    sce = DataFrame({
        "objective": "SCE",
        "key": range(len(predicted)),
        "kind": [POSITIVE, *np.where(alike[order], ALIKE, OTHER)],
        "similarity": [float(key[0] @ key[0]), *similarities.tolist()],
        "target": [weight, *(1 - weight) * relations],
        "prediction": predicted,
    })
    others = predicted[1:] / predicted[1:].sum()
    return pd.concat([sce, sce[1:].assign(objective="ReSSL", target=relations, prediction=others)])
