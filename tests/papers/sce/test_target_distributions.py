import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from repro.contrast import objectives
from repro.papers.sce.target_distributions import distributions

SETTINGS = {"temperature": 0.2, "key_temperature": 0.07, "weight": 0.3}


@pytest.mark.parametrize("changes", [
    {}, {"weight": 0.0}, {"weight": 1.0}, {"temperature": 0.01}, {"key_temperature": 1.0}], ids=str)
def test_distributions_have_the_objectives_as_cross_entropies(changes):
    draws = torch.Generator().manual_seed(0)
    query, key, negatives = (normalize(torch.randn(count, 5, generator=draws)).double() for count in (1, 1, 12))
    settings, similarities = SETTINGS | changes, (negatives @ key[0]).sort(descending=True).values
    alike = negatives @ key[0] == similarities[0]
    table, weights = distributions(query, key, negatives, alike, **settings), settings.pop("weight")
    kinds = ["positive key", "same action", *["another action"] * 11]
    for name, loss, first in (("SCE", lambda *tensors: objectives.sce(*tensors, weights), 0),
                              ("ReSSL", objectives.ressl, 1)):
        rows = table[table["objective"] == name]
        assert rows["kind"].tolist() == kinds[first:] and rows["key"].tolist() == [*range(first, 13)]
        np.testing.assert_allclose(rows["similarity"], [1.0, *similarities][first:])
        assert rows["target"].sum() == pytest.approx(1) and rows["prediction"].sum() == pytest.approx(1)
        assert (rows["target"].iloc[1 - first:].diff().dropna() <= 0).all()
        entropy = -(rows["target"] * np.log(rows["prediction"])).sum()
        assert entropy == pytest.approx(float(loss(query, key, negatives, *settings.values())))
