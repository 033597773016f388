"""The bundled skeletons: everybody does everything before every camera, the same numbers every time."""

import dataclasses
import itertools

import torch

from repro.skeleton import DATASETS, data, readers, synthetic

BUNDLED = "b588a5a975f40446e2a819c351b7f4a52ce2c9e70e0fdc430b2020aaf23b631e"


def test_everybody_does_everything_before_every_camera():
    loaded = data.load("synthetic")
    assert loaded.sequences.shape == (1200, 50, 60) and loaded.sequences.dtype == torch.float32
    assert loaded.sequences.isfinite().all() and loaded.sequences.abs().max() == 1
    found = zip(loaded.labels.tolist(), loaded.subjects.tolist(), loaded.views.tolist(), strict=True)
    assert sorted(found) == sorted(4 * [*itertools.product(range(10), range(1, 11), (1, 2, 3))])
    assert torch.equal(loaded.train, loaded.views < 3) and torch.equal(loaded.test, loaded.views == 3)
    body = DATASETS["synthetic"].skeletons
    assert tuple(synthetic.ACTIONS) == readers.UCLA_ACTIONS and len(loaded.actions) == 10
    assert body == dataclasses.replace(DATASETS["ucla"].skeletons, reader="synthetic")
    assert body.bones == synthetic.BONES and body.joints == synthetic.JOINTS
    assert loaded.digest == BUNDLED
