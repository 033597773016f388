import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.functional import normalize

from repro.papers.sce.target_distributions import distributions, losses, perplexity

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
def test_distributions_are_those_of_the_definitions_and_losses_their_cross_entropies(changes):
    given, settings = features(), SETTINGS | changes
    nearest = (given[2] @ given[1][0]).argmax()
    table = distributions(*given, torch.arange(12) == nearest, **settings)
    for name, expected in by_hand(*given, **settings).items():
        np.testing.assert_allclose(table[name], expected, rtol=1e-5, atol=1e-12, err_msg=name)
    assert table["kind"].tolist() == ["positive key", "same action", *["another action"] * 11]
    found, keys, weight = losses(*given, **settings), table[1:], settings["weight"]
    assert found["SCE"] == pytest.approx(-(table["sce_target"] * np.log(table["sce_prediction"])).sum())
    assert found["InfoNCE"] == pytest.approx(-np.log(table["sce_prediction"][0]))
    assert found["ReSSL"] == pytest.approx(-(keys["ressl_target"] * np.log(keys["ressl_prediction"])).sum())
    assert found["Ceil"] == pytest.approx(-np.log(1 - table["sce_prediction"][0]))
    assert found["SCE"] == pytest.approx(weight * found["InfoNCE"] + (1 - weight) * (found["ReSSL"] + found["Ceil"]))


@pytest.mark.parametrize(("shares", "expected"), [
    ([0.25] * 4, 4), ([1.0, 0.0], 1), ([math.nan, 0.5, 0.5], 2), ([0.5, 0.25, 0.25], 2**1.5),
])
def test_perplexity(shares, expected):
    assert perplexity(pd.Series(shares)) == pytest.approx(expected)
