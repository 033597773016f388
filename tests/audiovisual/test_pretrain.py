"""Pre-training on made-up pairs, its steps held against the slow ones of `slow_pairs`; both then compute in float64."""

import copy
import dataclasses
from collections import Counter

import pytest
import torch
from made_up_pairs import CPU, TRAINED, data_of, learner, made_up, tiny, trace
from slow_pairs import Slow, assert_same_training
from states import assert_equal_states
from torch import nn
from tqdm import tqdm

from repro.audiovisual import MODALITIES, VIEWS
from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.pretrain import OTHER, Pretrainer
from repro.audiovisual.recipe import SELF_SUPERVISED, VARIANTS
from repro.run.fit import NonFiniteLoss, fit

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def double(monkeypatch):
    """Whatever is trained in the test, is trained in float64."""
    augmented = Pretrainer._augmented
    monkeypatch.setattr(Pretrainer, "_augmented", lambda self, view: augmented(self, view).double())
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


CASES = [
    *((method, {}) for method in TRAINED),
    *(("cmacc", {"sampler": sampler}) for sampler in ("feature", "random", "ohem")),
    *((method, {"extra_layer": False, "embedding": 32}) for method in SELF_SUPERVISED),
    *((method, {"normalised": True, "temperature": 0.3}) for method in SELF_SUPERVISED),
    ("cmacc", {"normalised": True, "posterior_temperature": 0.1}),
    ("cmacc", {"normalised": True, "posterior_temperature": 0.1, "sampler": "ohem"}),
    ("cmacc", {"normalised": True, "posterior_temperature": 0.1, "extra_layer": False}),
    ("cmacc", {"sampler": "ohem", "extra_layer": False}),
    ("cmacc", {"posterior_temperature": 3.0}),
    *((method, {"groups": 2}) for method in TRAINED),
    ("cmacc", {"groups": 4, "shuffle": False}),
    *(("cmacc", {"renewed": True, "groups": groups}) for groups in (1, 2)),
    ("cmacc", {"pool": 64}),  # more than there are pairs
    ("cmacc", {"dictionary": 8}),
    ("xmoco", {"dictionary": 40}),  # more than there are pairs
    *((method, {"own_excluded": False}) for method in SELF_SUPERVISED),
    ("xmoco", {"momentum": 0.0}),
    ("smoco", {"momentum": 1.0}),
    ("xmoco", {"warmup": 0}),
    ("smoco", {"greyscale": 0.5, "size": 9}),
]


@pytest.mark.parametrize(("method", "changes"), CASES, ids=str)
def test_four_steps_over_two_epochs_are_the_slow_ones(double, method, changes):
    fast = learner(method, **changes)
    assert fast.steps_per_epoch == 3
    assert_same_training(fast, Slow(fast), 4)


GRID_CASES = [
    *((method, {}, {}) for method in TRAINED),
    *((method, {}, {"redrawn": True, "augmented": True}) for method in TRAINED),
    *(("smoco", {}, {"other_view": view}) for view in VIEWS),
    ("cmacc", {"extra_layer": False, "embedding": 32}, {}),
    ("cmacc", {"extra_layer": False, "embedding": 32, "normalised": True, "groups": 2}, {}),
]


@pytest.mark.parametrize(("method", "changes", "seen"), GRID_CASES, ids=str)
def test_steps_on_grids_of_characters_are_the_slow_ones(double, method, changes, seen):
    fast = learner(method, "multidigits", data=dataclasses.replace(data_of("multidigits"), **seen), **changes)
    assert fast.towers.trunks["audio"].name == "small_image"
    assert_same_training(fast, Slow(fast), 4)


def test_no_two_streams_of_a_learner_begin_with_equal_draws():
    pretrainer = learner(seed=3)
    for learning in (pretrainer, FineTuner(tiny(), pretrainer.towers.trunks["video"], made_up(), "video", 3, CPU,
                                            target="synthetic_video", split=1)):
        streams = {name: part for name, part in vars(learning).items() if isinstance(part, torch.Generator)}
        streams["initialisation"] = torch.Generator().manual_seed(3)
        draws = {name: tuple(torch.rand(4, generator=stream).tolist()) for name, stream in streams.items()}
        assert len(set(draws.values())) == len(draws) >= 3, draws


@pytest.mark.parametrize("missing", MODALITIES)
def test_smoco_trains_with_one_modality_alone(double, missing):
    fast = learner("smoco", data=made_up(without=[missing]))
    present = OTHER[missing]
    assert fast.terms == (present, "loss")
    before = copy.deepcopy(fast.towers.trunks[missing].state_dict())
    assert_same_training(fast, Slow(fast), 4)
    for name, value in fast.towers.trunks[missing].state_dict().items():
        assert torch.equal(value, before[name]), name
    assert not list(fast.dictionaries[present].parameters()) and missing not in fast.dictionaries


# ---------------------------------------------------------------------------------------------- momentum, warm-up


@pytest.mark.parametrize("extra_layer", [True, False])
@pytest.mark.parametrize("method", TRAINED)
def test_momentum_crosses_the_extra_layers_between_modalities_alone(method, extra_layer):
    fast = learner(method, extra_layer=extra_layer, embedding=32, momentum=0.0)

    def assert_followed():
        crosses = method in ("xmoco", "cmacc")
        for name in MODALITIES:
            heads = fast.towers.heads[OTHER[name] if crosses else name]
            pairs = [(fast.keys.twin.trunks[name], fast.towers.trunks[name]), (fast.keys.twin.heads[name], heads)]
            for own, other in pairs:
                for mine, theirs in zip(own.parameters(), other.parameters(), strict=True):
                    assert torch.equal(mine, theirs) and mine.data_ptr() != theirs.data_ptr()
                    assert not mine.requires_grad

    assert_followed()  # from the start
    if method != "supervised":
        trace(fast, 2)
        assert_followed()
        heads = [fast.keys.twin.heads[name].state_dict() for name in MODALITIES]
        assert not extra_layer or not torch.equal(heads[0]["weight"], heads[1]["weight"])


@pytest.mark.parametrize(("iterations", "steps"), [(0, 9), (5, 5), (9, 9), (20, 9)])
def test_a_training_ends_after_its_epochs_or_iterations(iterations, steps):
    assert learner("smoco", iterations=iterations).total_steps == steps


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_changes_the_numbers(variant):
    common = {"dictionary": 24, "pool": 96, "momentum": 0.99}
    common |= {"groups": 4}  # as the paper's recipe has
    undone = {"any_length": "unit_length", "pooled_keys": "renewed_keys"}  # those that go back to that recipe
    common |= VARIANTS[undone[variant]] if variant in undone else {}
    usual, changed = (trace(learner(**common | changes), 4) for changes in ({}, VARIANTS[variant]))
    assert changed.isfinite().all()
    assert not torch.allclose(usual, changed, rtol=1e-4)


# ---------------------------------------------------------------------------------------------- order and views


# ---------------------------------------------------------------------------------------------- the start


def test_equal_seeds_start_from_equal_weights_whatever_the_method():
    before = torch.get_rng_state()
    usual = copy.deepcopy(learner("scratch", seed=5).towers.state_dict())
    for method in TRAINED:
        for changes in ({}, {"sampler": "random"}):
            state = learner(method, seed=5, **changes).towers.state_dict()
            for name, value in state.items():
                assert torch.equal(value, usual[name]), (method, name)
    plain_towers = learner("xmoco", seed=5, extra_layer=False).towers.state_dict()
    assert all(torch.equal(value, usual[name]) for name, value in plain_towers.items())
    other = learner("scratch", seed=6).towers.state_dict()
    for name in ("heads.video.weight", "trunks.video.layers.1.0.weight", "trunks.audio.layers.1.0.weight"):
        assert not torch.equal(other[name], usual[name])
    assert torch.equal(torch.get_rng_state(), before)


def test_scratch_takes_no_steps(tmp_path):
    fast = learner("scratch")
    before = copy.deepcopy(fast.state_dict())
    assert fit(fast, tmp_path, tqdm(disable=True))["steps"] == 0
    assert_equal_states(fast.state_dict(), before)


# ---------------------------------------------------------------------------------------------- learning


# ---------------------------------------------------------------------------------------------- precision, guard


@pytest.mark.parametrize("method", TRAINED)
def test_bfloat16_is_close_to_float32_and_all_is_encoded_in_it_but_clips_on_a_cpu(method):
    exact, rounded = (learner(method, precision=precision) for precision in ("float32", "bfloat16"))
    for entries in rounded.dictionaries.values():
        assert entries.entries.dtype == torch.float32
    kinds = Counter()
    for module in [*rounded.towers.modules(), *rounded.keys.modules()]:
        if isinstance(module, (nn.Conv1d, nn.Conv3d)):
            axes = module.weight.ndim - 2
            module.register_forward_hook(lambda _, inputs, output, axes=axes: kinds.update([(axes, output.dtype)]))
    for values, others in zip(trace(exact, 2), trace(rounded, 2), strict=True):
        assert others.isfinite().all() and others.dtype == torch.float32
        assert not torch.equal(values, others)
        place = exact.terms.index("loss")
        torch.testing.assert_close(others[place], values[place], rtol=0.1, atol=0)
    assert set(kinds) == {(1, torch.bfloat16), (3, torch.float32)}
    for name, value in rounded.towers.state_dict().items():
        assert value.dtype in (torch.float32, torch.int64), name


@pytest.mark.parametrize(("method", "changes"), [
    *((method, {}) for method in TRAINED), ("cmacc", {"sampler": "random"}),
])
def test_a_training_that_diverges_says_so(tmp_path, method, changes):
    fast = learner(method, learning_rate=1e30, **changes)
    with pytest.raises(NonFiniteLoss, match=r"at step [2-6]; lower|^step [2-6]: .* not finite.*; lower the learning"):
        fit(fast, tmp_path, tqdm(disable=True), checkpoint_seconds=0)
