import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from repro.contrast import objectives
from repro.papers.sce.target_distributions import distributions

SETTINGS = {"temperature": 0.2, "key_temperature": 0.07, "weight": 0.3}


def features(keys=12, d=5):
    generator = torch.Generator().manual_seed(0)
    return [normalize(torch.randn(count, d, generator=generator)) for count in (1, 1, keys)]


def softmax(values):
    exponentials = [math.exp(value) for value in values]
    return [value / sum(exponentials) for value in exponentials]


def by_hand(query, key, negatives, temperature, key_temperature, weight):
    """The four columns from the papers' definitions, one number at a time."""
    q, k, entries = query[0].tolist(), key[0].tolist(), negatives.tolist()

    def product(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    entries.sort(key=lambda entry: -product(k, entry))
    relations = softmax([product(k, entry) / key_temperature for entry in entries])
    return {
        "similarity": [product(k, k), *(product(k, entry) for entry in entries)],
        "sce_target": [weight, *((1 - weight) * share for share in relations)],
        "sce_prediction": softmax([product(q, entry) / temperature for entry in (k, *entries)]),
        "ressl_target": [math.nan, *relations],
        "ressl_prediction": [math.nan, *softmax([product(q, entry) / temperature for entry in entries])],
    }


@pytest.mark.parametrize("changes", [
    {}, {"weight": 0.0}, {"weight": 1.0}, {"temperature": 0.01}, {"key_temperature": 1.0}], ids=str)
def test_distributions_are_those_of_the_definitions_and_their_cross_entropies_the_objectives(changes):
    given, settings = [part.double() for part in features()], SETTINGS | changes
    nearest = (given[2] @ given[1][0]).argmax()
    table, expected = distributions(*given, torch.arange(12) == nearest, **settings), by_hand(*given, **settings)
    kinds = ["positive key", "same action", *["another action"] * 11]
    for name, first in (("sce", 0), ("ressl", 1)):
        rows = table[table["objective"] == {"sce": "SCE", "ressl": "ReSSL"}[name]]
        assert rows["kind"].tolist() == kinds[first:] and rows["key"].tolist() == [*range(first, 13)]
        np.testing.assert_allclose(rows["similarity"], expected["similarity"][first:], rtol=1e-5)
        for column in ("target", "prediction"):
            np.testing.assert_allclose(rows[column], expected[f"{name}_{column}"][first:], rtol=1e-5, atol=1e-12)
        loss = -(rows["target"] * np.log(rows["prediction"])).sum()
        temperatures = settings["temperature"], settings["key_temperature"]
        assert loss == pytest.approx(float({"sce": objectives.sce, "ressl": objectives.ressl}[name](
            *given, *temperatures, *[settings["weight"]][first:])))
