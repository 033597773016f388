"""Pre-training on made-up sequences, every step held against a slow one written from the objectives' definitions."""

import copy
import dataclasses
import math

import pytest
import torch
from made_up_skeletons import CPU, learner, made_up, terms_of, tiny
from slow_skeletons import SlowStep
from torch.nn.functional import cosine_similarity

from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import SUBSETS, TERMS, VARIANTS
from repro.skeleton.sequences import Sequences

pytestmark = pytest.mark.usefixtures("one_thread")


def assert_step_is_slow(fast, *, rtol=2e-4):
    """Take a step and compare its terms, their weighted sum and all gradients with the slow ones."""
    slow = SlowStep(fast)
    values = dict(zip(fast.terms, fast.step().tolist(), strict=True))
    assert list(values) == [*terms_of(fast.recipe.objectives), "loss"]
    for term, value in slow.losses.items():
        assert values[term] == pytest.approx(value.item(), rel=rtol, abs=1e-6), term
    assert values["loss"] == pytest.approx(slow.total.item(), rel=rtol)
    slow.total.backward()
    for (name, own), (_, other) in zip(fast.model.named_parameters(), slow.model.named_parameters(), strict=True):
        assert (own.grad is None) == (other.grad is None), name
        if own.grad is not None:
            torch.testing.assert_close(own.grad, other.grad, rtol=1e-3, atol=2e-5 * other.grad.abs().max().item(),
                                       msg=lambda text, name=name: f"{name}: {text}")
    return slow


@pytest.mark.parametrize("objectives", SUBSETS)
def test_a_step_of_every_subset_equals_the_slow_one(objectives):
    fast = learner(objectives, clip=1e6)
    for _ in range(2):  # the second one meets moved keys and dictionaries
        assert_step_is_slow(fast)


@pytest.mark.parametrize("layers", [2, 3])
def test_a_step_of_deeper_models_equals_the_slow_one(layers):
    assert_step_is_slow(learner("AE+CE+AD+CD", layers=layers, clip=1e6))


@pytest.mark.parametrize(
    "changes",
    [
        {"ad_loss": "squared"},
        {"ad_input": "augmented"},
        {"ad_input": "augmented", "ad_loss": "squared", "objectives": "AD"},
        {"td_queue": "frozen_noise"},
        {"td_crop": None},
        {"td_crop": 1},
        {"head": "mlp"},
        {"ema_head_twice": True},
        {"flip": 0.0, "shear": 0.1},  # with none, query and key agree, where L1 has no gradient
        {"flip": 1.0, "shear": 0.2},
        {"temperature": 0.5},
        {"batch": 1},
        {"dictionary": 3, "sequence_dictionary": 2},  # smaller than a batch
        {"ad_input": "augmented", "ad_loss": "squared", "layers": 2},
        {"td_crop": 1, "batch": 1},
        {"ae_weight": 10.0, "ce_weight": 0.5, "ad_weight": 25.0, "cd_weight": 3.0},
        {"ce_weight": 0.0, "cd_weight": 0.0},
        {"objectives": "AD", "ad_weight": 1e-3, "ad_loss": "squared"},
        {"decoder_input": "embedding"},
        {"decoder_input": "embedding", "layers": 2, "head": "mlp", "ad_input": "augmented"},
        {"decoder_input": "embedding", "objectives": "AD", "ad_loss": "squared", "ad_weight": 2.0},
        {"decoder_input": "embedding", "objectives": "CD"},
    ],
    ids=str,
)
def test_a_step_away_from_the_defaults_equals_the_slow_one(changes):
    fast = learner(**({"objectives": "AE+CE+AD+CD", "clip": 1e6} | changes))
    for _ in range(2):
        assert_step_is_slow(fast)


@pytest.mark.parametrize("objectives", ["random", "AE+CE", "AD+CD", "AE+CE+AD+CD"])
def test_padded_training_as_on_a_gpu_differs_by_rounding(objectives, monkeypatch):
    padded, packed = (learner(objectives, clip=1.0) for _ in range(2))
    monkeypatch.setattr(padded, "_packing", lambda lengths: None)
    for _ in range(3 if padded.total_steps else 0):
        torch.testing.assert_close(packed.step(), padded.step(), rtol=1e-4, atol=1e-5)
    for own, other in zip(packed.features(made_up()), padded.features(made_up()), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4)


def test_a_batch_is_cut_to_its_longest_sequence():
    short, long = made_up(frames=5), made_up(samples=1, seed=1)  # a set of 12 frames, 8 of them in the dictionary
    data = dataclasses.replace(short, frames=torch.cat([short.frames, long.frames]), **{
        name: torch.cat([getattr(short, name), getattr(long, name)]) for name in ("lengths", "labels", "test")
    }, train=torch.cat([short.train, torch.tensor([False])]))
    fast = learner("AE+CE+AD+CD", data=data, clip=1e6)
    assert fast.sequence_dictionary.entries.shape[1] == 8
    assert copy.deepcopy(fast)._next_batch()[0].shape[1] <= 5
    assert_step_is_slow(fast)


def test_a_step_is_adam_after_clipping_the_norm_over_all_parameters():
    fast = learner("AE+CE+AD+CD", clip=0.05)
    slow = SlowStep(fast)
    fast.step()
    slow.total.backward()
    norm = math.sqrt(sum(parameter.grad.square().sum().item() for parameter in slow.model.parameters()))
    assert norm > 0.05
    for parameter in slow.model.parameters():
        parameter.grad *= 0.05 / norm
    torch.optim.Adam(slow.model.parameters(), lr=0.01).step()
    for own, other in zip(fast.model.parameters(), slow.model.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4)


# ---------------------------------------------------------------------------------------------- gradients


REACHED = {"AE": {"encoder", "head"}, "CE": {"encoder", "head"}, "AD": {"encoder", "decoder"},
           "CD": {"encoder", "decoder"}}


@pytest.mark.parametrize("objectives", [*TERMS, "AE+CD"])
def test_gradients_reach_the_parts_a_term_uses_and_no_others(objectives):
    fast = learner(objectives)
    before = copy.deepcopy(fast.model.state_dict())
    fast.step()
    expected = set().union(*(REACHED[term] for term in terms_of(objectives)))
    for part in ("encoder", "head", "decoder"):
        for name, parameter in getattr(fast.model, part).named_parameters():
            reached = parameter.grad is not None and bool((parameter.grad != 0).any())
            assert reached == (part in expected), f"{part}.{name}"
            assert torch.equal(parameter, before[f"{part}.{name}"]) != reached, f"{part}.{name}"


def test_keys_and_dictionaries_never_receive_a_gradient():
    fast = learner("AE+CE+AD+CD")
    fast.step()
    constants = [*fast.keys.parameters(), fast.dictionary.entries, fast.sequence_dictionary.entries]
    assert all(not constant.requires_grad and constant.grad is None for constant in constants)
    trained = {id(parameter) for group in fast.optimiser.param_groups for parameter in group["params"]}
    assert trained == {id(parameter) for parameter in fast.model.parameters()}


# ---------------------------------------------------------------------------------------------- devices and precisions


@pytest.mark.parametrize("changes", [{}, {"bidirectional": True, "units": 8}], ids=str)
def test_a_step_reads_no_value(changes, meta, monkeypatch):
    """Views have a test of their own."""
    fast = learner("AE+CE+AD+CD", **changes)
    monkeypatch.setattr(fast, "device", meta)
    monkeypatch.setattr(fast, "sequences", Sequences(fast.data.frames, fast.data.lengths, meta))
    monkeypatch.setattr(fast, "_view", lambda clean, lengths: clean)
    for module in (fast.model, fast.dictionary, fast.sequence_dictionary, fast.keys):
        module.to(meta)
    fast.optimiser = torch.optim.Adam(fast.model.parameters())
    for _ in range(fast.steps_per_epoch + 1):
        assert fast.step().device == meta
    monkeypatch.setattr(fast, "_view", lambda clean, lengths: clean * clean.max().item())
    with pytest.raises(RuntimeError, match="meta"):
        fast.step()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("changes", [{}, {"bidirectional": True, "units": 8}], ids=str)
def test_a_step_on_cuda_does_not_wait_for_the_device(changes):
    fast = Pretrainer(tiny("AE+CE+AD+CD", **changes), made_up(), 0, torch.device("cuda"))
    fast.step()  # cuDNN prepares itself
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        losses = torch.stack([fast.step() for _ in range(2 * fast.steps_per_epoch)])
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    assert losses.isfinite().all()


@pytest.mark.parametrize(("objectives", "layers", "packed"), [("AE+CE", 1, True), ("AE+CE+AD+CD", 2, True),
                                                              ("AE+CE+AD+CD", 1, False)])
def test_bfloat16_is_finite_and_close_to_float32(objectives, layers, packed, monkeypatch):
    exact, rounded = (learner(objectives, layers=layers, precision=name) for name in ("float32", "bfloat16"))
    if not packed:
        monkeypatch.setattr(rounded, "_packing", lambda lengths: None)
    for _ in range(4):
        wide, narrow = exact.step(), rounded.step()
        assert narrow.dtype == torch.float32
        torch.testing.assert_close(narrow, wide, rtol=0.03, atol=0.01)
    assert not torch.equal(narrow, wide)
    for own, other in zip(rounded.model.parameters(), exact.model.parameters(), strict=True):
        assert own.dtype == torch.float32
        assert own.isfinite().all()
        assert cosine_similarity(own.flatten(), other.flatten(), dim=0) > 0.99
    for dictionary in (rounded.dictionary, rounded.sequence_dictionary):
        assert dictionary.entries.dtype == torch.float32
        assert dictionary.entries.isfinite().all()


# ---------------------------------------------------------------------------------------------- variants


CONCERNED = {"sum_of_squares": {"AD"}, "denoising": {"AD"}, "frozen_noise": {"CD"}, "uncropped": {"CD"},
             "mlp_head": {"AE", "CE"}, "bidirectional": set(TERMS), "ema_head_twice": {"CE"}}


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_changes_the_terms_that_it_concerns(variant, term):
    data = made_up(frames=60, shortest=55)
    recipe = tiny(term, td_crop=50, units=8)
    usual, changed = (Pretrainer(each, data, 0, CPU) for each in (recipe, recipe.replace(**VARIANTS[variant])))
    losses = [torch.stack([fast.step() for _ in range(3)]) for fast in (usual, changed)]
    assert torch.equal(*losses) == (term not in CONCERNED[variant])
