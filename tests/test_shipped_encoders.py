"""Encoders that come along, whose networks are of their real sizes."""

import pytest
import torch

import repro
from repro.data import manifest
from repro.skeleton import synthetic
from repro.skeleton.recipe import SkeletonRecipe

SHIPPED = sorted(manifest.shipped("weights").rglob("*.safetensors"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_an_encoder_that_comes_along_is_a_run_of_its_experiment(path):
    encoder = repro.load(f"{path.parent.name}/{path.stem}")
    run = repro.EXPERIMENTS[path.parent.name].asked()[encoder.provenance["id"]]
    recipe, of_skeletons = run.recipe, isinstance(run.recipe, SkeletonRecipe)
    assert type(recipe).from_dict(encoder.recipe) == recipe
    assert getattr(recipe, recipe.named_by).lower() == path.stem.lower()
    assert (run.seed, run.digest) == (encoder.provenance["seed"], encoder.provenance["digest"])
    recordings = [recording.frames for recording in synthetic.generate()[:9]]
    assert path.stat().st_size < (2.2e6 if of_skeletons else 23e6)
    features = encoder(recordings if of_skeletons else torch.rand(9, 3, 32, 32))
    assert features.shape == (9, encoder.size) and features.isfinite().all()
