"""Pre-training on made-up images: its steps held against the slow ones of `slow_images`, and relations of methods."""

import copy

import pytest
import torch
from image_learners import TRAINED, by_name, in_float64, learner, trace
from made_up_images import made_up
from slow_images import Slow, assert_same_training

from repro.contrast.dictionary import unit_noise
from repro.image.recipe import VARIANTS

pytestmark = pytest.mark.usefixtures("one_thread", "network")


def resnet(request, method, **changes):
    """A learner with the ResNet-18 of the test's network, in float64.

    Such small images make its normalisation divide by the spread of 16 values, which enlarges a rounding error of
    float32 a hundredfold from one step to the next. Of 90,000 values some then cross the kink of their ReLU in one of
    two float32 learners alone, each a sixteenth of a weight's gradient. In float64 none does.
    """
    small = request.node.callspec.params["network"] == "small stem"
    keys = 2 if method in ("jcl", "vanilla") else 1
    fast = learner(method, small=small, keys=keys, batch=16, **{"learning_rate": 0.01} | changes)
    return in_float64(fast, request.getfixturevalue("monkeypatch"))


@pytest.mark.parametrize(
    ("network", "method"),
    [("small stem", "sce"), *(("large stem", method) for method in TRAINED)],
    indirect=["network"],
)
def test_steps_of_a_resnet_are_the_slow_ones(request, network, method):
    fast = resnet(request, method)
    assert_same_training(fast, Slow(fast, network), 2, rtol=1e-9)


@pytest.mark.parametrize("method", TRAINED)
def test_five_steps_over_two_epochs_are_the_slow_ones(network, method):
    fast = learner(method)
    assert fast.steps_per_epoch == 2
    assert_same_training(fast, Slow(fast, network), 5)


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("moco", {"groups": 2}),
        ("sce", {"groups": 4, "shuffle": False}),
        ("jcl", {"groups": 2}),
        ("supervised", {"groups": 2}),
        ("sce", {"weight": 0.0}),
        ("sce", {"weight": 1.0}),
        ("sce", {"masked_positive": False, "key_temperature": 1.0}),
        ("jcl", {"ramp": False}),
        ("jcl", {"strength": 0.0}),
        ("jcl", {"keys": 1}),
        ("vanilla", {"keys": 3}),
        ("moco", {"schedule": "epoch"}),
        ("moco", {"weight_decay": 0.3}),
        ("supervised", {"weight_decay": 0.3}),
        ("moco", {"weight_decay": 0.0, "sgd_momentum": 0.0}),
        ("moco", {"momentum": 0.0}),
        ("moco", {"momentum": 1.0}),
        ("moco", {"dictionary": 3}),  # fewer than a batch
        ("ressl", {"query_view": "weak", "key_view": "strong"}),
        ("moco", {"head": "moco_v2"}),
        ("jcl", {"head": "sce", "size": 12, "resize": 12}),
        ("moco", {"batch": 20}),
        ("supervised", {"query_view": "strong"}),
    ],
    ids=str,
)
def test_steps_away_from_the_defaults_are_the_slow_ones(network, method, changes):
    fast = learner(method, **changes)
    assert_same_training(fast, Slow(fast, network), 3)


def test_shuffling_matters_where_groups_are_normalised_apart():
    for groups, same in ((1, True), (2, False)):
        losses = [trace(learner(groups=groups, shuffle=shuffle), 3) for shuffle in (True, False)]
        assert torch.allclose(*losses, rtol=1e-4) == same


@pytest.mark.parametrize("method", ["moco", "supervised"])
def test_unlabeled_images_are_for_pre_training_and_labelled_ones_for_supervision(network, method):
    fast = learner(method, data=made_up(train=17, unlabeled=25))
    assert fast.steps_per_epoch == {"moco": 3, "supervised": 2}[method]
    assert_same_training(fast, Slow(fast, network), 4)


def test_supervision_leaves_keys_and_head_alone():
    fast = learner("supervised")
    before = copy.deepcopy(fast.state_dict())
    trace(fast, 2)
    after = fast.state_dict()
    for part, prefix in (("keys", ""), ("dictionary", ""), ("model", "head.")):
        for name, value in after[part].items():
            if name.startswith(prefix):
                assert torch.equal(value, before[part][name]), name
    assert not torch.equal(after["classifier"]["weight"], before["classifier"]["weight"])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("method", TRAINED)
def test_a_step_reads_no_value(method, groups, meta, monkeypatch):
    """Views have a test of their own, and the neighbours that are looked at ten times in a training may wait."""
    fast = learner(method, groups=groups)
    images = torch.empty(8, 3, 8, 8, device=meta)
    monkeypatch.setattr(fast, "device", meta)
    monkeypatch.setattr(fast, "_augmented", lambda pictures: [images for _ in pictures])
    monkeypatch.setattr(fast, "_nearest_neighbour", lambda: 0.0)
    for module in (fast.model, fast.classifier, fast.keys, fast.dictionary):
        module.to(meta)
    fast.optimiser = torch.optim.SGD([*fast.model.parameters(), *fast.classifier.parameters()], lr=0.1)
    for _ in range(fast.steps_per_epoch + 1):
        assert fast.step().device == meta
    monkeypatch.setattr(fast, "_augmented", lambda pictures: [images * images.max().item() for _ in pictures])
    with pytest.raises(RuntimeError, match="meta"):
        fast.step()


# ---------------------------------------------------------------------------------------------- relations of methods


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_the_logged_parts_of_sce_make_its_loss(weight):
    fast = learner("sce", weight=weight, temperature=0.15, key_temperature=0.06)
    assert fast.terms == ("InfoNCE", "ReSSL", "Ceil", "loss", "knn1")
    for values in trace(fast, 4):
        found = by_name(fast, values)
        expected = weight * found["InfoNCE"] + (1 - weight) * (found["ReSSL"] + found["Ceil"])
        assert found["loss"] == pytest.approx(expected, rel=1e-5)
        assert len({round(found[part], 3) for part in ("InfoNCE", "ReSSL", "Ceil")}) == 3


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_changes_the_numbers(variant):
    method = "jcl" if variant in ("constant_strength", "four_keys") else "sce"
    common = {"batch": 16, "key_temperature": 1.0}  # with a sharp target the logit of 0 has hardly any weight
    usual, changed = (learner(method, **common | changes) for changes in ({}, VARIANTS[variant]))
    losses = [trace(each, 3)[:, -2] for each in (usual, changed)]
    assert losses[1].isfinite().all()
    assert not torch.allclose(*losses, rtol=1e-4)


# ---------------------------------------------------------------------------------------------- random streams


def test_no_two_streams_of_a_learner_begin_with_equal_draws():
    """The dictionary's noise is drawn before the first step: no other stream would have drawn it."""
    fast = learner("moco", seed=3)
    streams = {name: part for name, part in vars(fast).items() if isinstance(part, torch.Generator)}
    streams["initialisation"] = torch.Generator().manual_seed(3)
    states = {name: stream.get_state() for name, stream in streams.items()}
    draws = {name: tuple(torch.rand(4, generator=stream).tolist()) for name, stream in streams.items()}
    assert len(set(draws.values())) == len(draws) >= 4, draws
    for name, state in states.items():
        noise = unit_noise(*fast.dictionary.entries.shape, generator=torch.Generator().set_state(state))
        assert not torch.equal(noise, fast.dictionary.entries), name
