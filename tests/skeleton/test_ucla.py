"""NW-UCLA itself: an untrained encoder reaches the accuracy that the paper prints for it."""

import pytest
import torch

from repro import manifest
from repro.run import device
from repro.skeleton.cell import data_of, evaluate
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper

REAL = manifest.location(manifest.load_manifest("ucla").files[0], manifest.data_root())
pytestmark = [pytest.mark.usefixtures("runs"),
              pytest.mark.skipif(REAL is None, reason="nw_ucla/all_sqe.zip is not below REPRO_DATA")]


def test_random_initialisation_under_the_linear_probe():
    recipe = paper("ucla", "random")
    data = data_of(recipe)
    assert (recipe.layers, recipe.units, int(data.train.sum()), int(data.test.sum())) == (1, 512, 1013, 460)
    with device.threads(recipe.threads):
        result = evaluate(Pretrainer(recipe, data, 0, torch.device("cpu")), data, 0)
    assert result["linear"] == pytest.approx(52.01, abs=4)  # Table 2; one seed varies by about a point
    assert result["select"] == "last"
