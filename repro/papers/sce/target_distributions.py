"""What SCE and ReSSL ask of a query: their targets over the positive key and a dictionary, beside its prediction."""

import numpy as np
import pandas as pd
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
        objective, key, kind, similarity, target, prediction: of SCE a row for the positive key, number 0, then one per
        entry of the dictionary, by falling similarity to the key; of ReSSL the same but for the positive, which it
        leaves out. Targets and predictions of an objective add up to 1.

    Raises:
        ValueError: as `objectives.sce`.
    """
    similarities, order = (negatives @ key[0]).sort(descending=True, stable=True)
    negatives = negatives[order]
    predicted = objectives.prediction(query, key, negatives, temperature)[0].numpy()
    sce = DataFrame({
        "objective": "SCE",
        "key": range(len(predicted)),
        "kind": [POSITIVE, *np.where(alike[order], ALIKE, OTHER)],
        "similarity": [float(key[0] @ key[0]), *similarities.tolist()],
        "target": objectives.sce_target(key, negatives, key_temperature, weight)[0].numpy(),
        "prediction": predicted,
    })
    relations = objectives.sce_target(key, negatives, key_temperature, weight=0)[0].numpy()
    others = predicted[1:] / predicted[1:].sum()
    return pd.concat([sce, sce[1:].assign(objective="ReSSL", target=relations[1:], prediction=others)])
