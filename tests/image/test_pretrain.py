"""Pre-training on made-up images: its steps held against the slow ones of `slow_images`, and relations of methods."""

import copy
import dataclasses
import math
import multiprocessing

import numpy as np
import pytest
import torch
from image_files import png
from image_learners import CPU, by_name, learner, tiny, trace
from made_up_images import made_up, tiny_trunk, use_tiny_trunk
from packed import write_folder
from sklearn.neighbors import KNeighborsClassifier
from slow_images import METHODS, Slow, assert_same_training
from states import assert_equal_states
from torch import nn
from torchvision.transforms.v2.functional import pil_to_tensor

from repro.image import augment
from repro.image.augment import CentredView
from repro.image.batches import centred
from repro.image.data import load
from repro.image.pretrain import Pretrainer, learning_rate
from repro.image.recipe import paper

pytestmark = pytest.mark.usefixtures("one_thread", "network")


@pytest.fixture
def network(request, monkeypatch):
    """What makes the tiny trunk with plain normalisation, unless a test asks for learners with a ResNet-18."""
    if getattr(request, "param", "tiny") == "resnet18":
        return None
    use_tiny_trunk(monkeypatch)
    return lambda: tiny_trunk(nn.BatchNorm2d)


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        *((method, {}) for method in METHODS),
        ("moco", {"groups": 2}),
        ("sce", {"groups": 4, "shuffle": False}),
        ("sce", {"groups": 4, "whole_query": True}),
        ("ressl", {"groups": 2, "whole_query": True, "momentum_copied": False}),
        ("supervised", {"groups": 2, "query_view": "strong"}),
        ("sce", {"masked_positive": False, "key_temperature": 1.0, "weight": 0.2}),
        ("jcl", {"groups": 2, "ramp": False}),
        ("jcl", {"keys": 1}),
        ("vanilla", {"keys": 3}),
        ("moco", {"schedule": "epoch", "weight_decay": 0.0, "sgd_momentum": 0.0}),
        ("moco", {"weight_decay": 0.3, "dictionary": 3}),  # fewer than a batch
        ("ressl", {"query_view": "weak", "key_view": "strong"}),
        ("moco", {"head": "moco_v2"}),
        ("jcl", {"head": "sce", "size": 12, "resize": 12}),
        ("moco", {"batch": 20}),
        *((method, {"data": made_up(train=17, unlabeled=25)}) for method in ("moco", "supervised")),  # 3 steps and 2
    ],
    ids=str,
)
def test_steps_over_two_epochs_are_the_slow_ones(network, method, changes):
    """Unlabelled images are for pre-training, labelled ones for supervision."""
    fast = learner(method, **changes)
    slow = Slow(fast, network)
    assert fast.steps_per_epoch == slow.steps_per_epoch
    assert_same_training(fast, slow, 3 if changes else 5)


def test_the_logged_parts_of_sce_make_its_loss():
    fast = learner("sce", weight=0.3, temperature=0.15, key_temperature=0.06)
    assert fast.terms == ("InfoNCE", "ReSSL", "Ceil", "loss", "knn1")
    for values in trace(fast, 4):
        terms = by_name(fast, values)
        expected = 0.3 * terms["InfoNCE"] + 0.7 * (terms["ReSSL"] + terms["Ceil"])
        assert terms["loss"] == pytest.approx(expected, rel=1e-5)
        assert len({round(terms[part], 3) for part in ("InfoNCE", "ReSSL", "Ceil")}) == 3


def test_a_momentum_network_with_a_start_of_its_own_changes_nothing_else_of_the_start():
    copied, own, again, other = (learner(momentum_copied=flag, seed=seed).state_dict()
                                 for flag, seed in ((True, 5), (False, 5), (False, 5), (False, 6)))
    assert_equal_states(own, again)
    starts = [state.pop("keys")["twin.trunk.0.weight"] for state in (copied, own, other)]
    assert_equal_states(copied, own)
    assert torch.equal(starts[0], copied["model"]["trunk.0.weight"])
    assert not torch.isclose(starts[0], starts[1]).any() and not torch.isclose(starts[1], starts[2]).any()


@pytest.mark.parametrize(("method", "available"), [("sce", 25), ("supervised", 20)])
def test_a_batch_larger_than_the_split_is_refused(method, available):
    data = made_up(train=20, unlabeled=25)
    assert learner(method, data=data, batch=available).steps_per_epoch == 1
    with pytest.raises(ValueError, match=f"batch=26 exceeds the {available} training images of digits; choose a smal"):
        learner(method, data=data, batch=26)


def test_the_learning_rate_follows_a_table():
    recipe = tiny(epochs=5, warmup=2, learning_rate=0.3)
    warm = np.linspace(0, 0.3, 8).tolist()  # two epochs of four steps, the last one at the full rate
    cosine = [0.15 + 0.15 * math.cos(math.pi * k / 12) for k in range(13)]
    assert [learning_rate(recipe, step, 4) for step in range(21)] == pytest.approx(warm + cosine)
    recipe = tiny(epochs=3, warmup=1, learning_rate=1.0)  # a warm-up of one step is a step at rate zero
    assert [learning_rate(recipe, step, 1) for step in range(3)] == pytest.approx([0, 1, 0.5])


def test_the_nearest_neighbour_of_a_test_image_is_a_training_image():
    data = made_up(test=30)
    fast = learner(data=dataclasses.replace(data, labels=torch.arange(50) % 3))  # which nobody could guess
    train, test = ((fast.features(split.nonzero().flatten()), fast.data.labels[split])
                   for split in (fast.data.train, fast.data.test))
    known = KNeighborsClassifier(1, metric="cosine").fit(*train)
    assert by_name(fast, fast.step())["knn1"] == pytest.approx(100 * known.score(*test))


def test_the_nearest_neighbour_is_measured_ten_times(monkeypatch):
    fast, measured = learner(epochs=23), []
    assert fast.total_steps == 46
    monkeypatch.setattr("repro.image.pretrain.nearest_neighbour",
                        lambda *_: measured.append(fast.taken) or float(len(measured)))
    values = [by_name(fast, fast.step())["knn1"] for _ in range(46)]
    assert len(measured) == 10 and measured[0] == 0
    assert values == [float(sum(at <= step for at in measured)) for step in range(46)]
    assert max(np.diff([*measured, 46])) <= 6  # spread over the training


@pytest.mark.parametrize("network", ["resnet18"], indirect=True)
@pytest.mark.parametrize("method", ["sce", "supervised"])
def test_bfloat16_channels_last_is_close_to_float32(network, method):
    """A value of bfloat16 is off by up to 2**-9, which 20 layers make about 2**-7 of an embedding, hence of a cosine.

    A temperature of 0.1 makes it 0.08 of a logit, and the way the weights then take adds to it in the next steps.
    """
    choices = {"small": True, "batch": 16, "learning_rate": 1e-3, "projection": 64, "temperature": 0.2,
               "key_temperature": 0.1}
    exact, rounded = (
        learner(method, **choices, precision=precision, channels_last=last)
        for precision, last in (("float32", False), ("bfloat16", True))
    )
    assert rounded.model.trunk.layer1[0].conv1.weight.is_contiguous(memory_format=torch.channels_last)
    for values, others in zip(trace(exact, 3), trace(rounded, 3), strict=True):
        assert others.isfinite().all() and others.dtype == torch.float32
        assert not torch.equal(values, others)
        torch.testing.assert_close(others[:-1], values[:-1], rtol=0, atol=0.1)
    assert {value.dtype for value in rounded.model.state_dict().values()} == {torch.float32, torch.int64}


@pytest.fixture
def imagenet(tmp_path, monkeypatch):
    """An ImageNet of two classes, 20 images for training and 4 for test, of various sizes."""
    draws, files = np.random.default_rng(0), {}
    for part, count in (("train", 10), ("val", 2)):
        for name, colour in (("n01", 60), ("n02", 180)):
            for number in range(count):
                pixels = draws.normal(colour, 40, (14 + number, 20 - number, 3)).clip(0, 255).astype(np.uint8)
                files[f"{part}/{name}/{number}.JPEG"] = png(pixels, "JPEG")
    write_folder(tmp_path / "data" / "imagenet", files)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return load("imagenet", tmp_path / "data", subset=True)


def test_images_in_files_are_trained_on_and_taken_up_again_within_an_epoch(imagenet):
    recipe = paper("imagenet", "jcl", trunk="resnet18", size=10, resize=12, batch=4, groups=2, epochs=2, keys=2,
                   dictionary=12, projection=6, precision="float32")
    undisturbed, again = (Pretrainer(recipe, imagenet, 3, CPU) for _ in range(2))
    losses, states, others = [], [], {*multiprocessing.active_children()}
    for _ in range(7):
        states.append(copy.deepcopy(undisturbed.state_dict()))
        losses.append(undisturbed.step())
    assert undisturbed.steps_per_epoch == 5 and not torch.equal(losses[0], losses[5])
    again.load_state_dict(states[3])
    assert all(torch.equal(again.step(), expected) for expected in losses[3:])
    small = [pil_to_tensor(centred(imagenet.images.read(place), augment.centred_view(recipe))) for place in (3, 22)]
    view = CentredView(10, augment.normalisation("imagenet"), resize=10)
    expected = again.model.eval().features(view(torch.stack(small)))
    torch.testing.assert_close(again.features(torch.tensor([3, 22])), expected)
    assert_equal_states(again.model.state_dict(), undisturbed.model.state_dict())
    for each in (undisturbed, again):
        each.release()
    assert {*multiprocessing.active_children()} <= others  # those that have read pictures have ended
