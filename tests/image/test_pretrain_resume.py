"""Pre-training on images taken up again, at any step, to the same bits."""

import copy

import numpy as np
import pytest
import torch
from image_learners import CPU, TRAINED, learner
from PIL import Image
from states import resumed_anywhere

from repro.image import pretrain
from repro.image.data import load
from repro.image.pretrain import Pretrainer
from repro.image.recipe import paper
from repro.run import device

pytestmark = pytest.mark.usefixtures("one_thread", "network")


@pytest.mark.parametrize(
    ("method", "changes"),
    [*((method, {}) for method in TRAINED), ("moco", {"groups": 2}), ("sce", {"precision": "bfloat16",
                                                                           "channels_last": True})],
    ids=str,
)
def test_a_training_resumed_at_any_step_ends_with_the_same_bits(tmp_path, monkeypatch, method, changes):
    monkeypatch.setattr(pretrain, "MONITORED", 3)  # so that most steps log what an earlier one measured
    changes = {"epochs": 2, "warmup": 1, "dictionary": 11, "batch": 4, "learning_rate": 0.3} | changes
    resumed_anywhere(lambda: learner(method, **changes), tmp_path, steps=10)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An ImageNet of two classes, 20 images for training and 4 for test, of various sizes."""
    draws = np.random.default_rng(0)
    for part, count in (("train", 10), ("val", 2)):
        for name, colour in (("n01", 60), ("n02", 180)):
            for number in range(count):
                pixels = draws.normal(colour, 40, (14 + number, 20 - number, 3)).clip(0, 255).astype(np.uint8)
                path = tmp_path / "data" / "imagenet" / part / name / f"{number}.JPEG"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(path)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return load("imagenet", tmp_path / "data", subset=True)


def test_images_in_files_are_trained_on_and_taken_up_again_within_an_epoch(folders):
    recipe = paper("imagenet", "jcl", trunk="resnet18", size=10, resize=12, batch=4, groups=2, epochs=2, keys=2,
                   dictionary=12, projection=6, precision="float32")
    undisturbed, again = (Pretrainer(recipe, folders, 3, CPU) for _ in range(2))
    losses, states = [], []
    for _ in range(7):
        states.append(copy.deepcopy(undisturbed.state_dict()))
        losses.append(undisturbed.step())
    assert undisturbed.steps_per_epoch == 5 and not torch.equal(losses[0], losses[5])
    again.load_state_dict(states[3])
    for expected in losses[3:]:
        assert torch.equal(again.step(), expected)
    for one, other in zip(again.model.parameters(), undisturbed.model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("asked", "begun"), [("auto", "bfloat16"), ("float32", "float32"), ("bfloat16", "bfloat16")])
def test_a_training_goes_on_in_the_precision_it_was_begun_in(asked, begun, monkeypatch):
    """Also one from before states had it, when a recipe that asked for none was of bfloat16 everywhere."""
    monkeypatch.setattr(device, "has_bfloat16", lambda: True)
    begins = learner(precision=asked)
    assert begins.precision == begins.state_dict()["precision"] == begun
    state = copy.deepcopy(begins.state_dict())
    earlier = {name: value for name, value in state.items() if name != "precision"}
    expected = begins.step()
    monkeypatch.setattr(device, "has_bfloat16", lambda: False)  # another processor takes it up
    for kept in (state, earlier):
        resumed = learner(precision=asked)
        resumed.load_state_dict(copy.deepcopy(kept))
        evaluated = learner(precision=asked)
        evaluated.load_weights(kept)
        assert resumed.precision == evaluated.precision == begun
        assert torch.equal(resumed.step(), expected)


def test_another_kind_of_device_is_refused_in_words():
    state = learner().state_dict() | {"generator": torch.zeros(16, dtype=torch.uint8)}  # the size of CUDA's
    with pytest.raises(ValueError, match="of a run on another kind of device than cpu"):
        learner().load_state_dict(state)
