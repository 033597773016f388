"""What holds of every learner of every study: skeletons, images, clips, grids of characters, and fine-tuning.

It is taken up again to the same bits, its streams are apart, equal seeds start alike, what its recipe does not use
changes nothing, nor do probes along its training, and its steps can be recorded, or it says why not.
"""

import copy
import dataclasses
import functools
import itertools

import pytest
import torch
from image_learners import TRAINED as IMAGE_METHODS
from image_learners import learner as images
from image_learners import trace
from made_up_images import use_tiny_trunk
from made_up_pairs import CPU, lacking, made_up, tiny
from made_up_pairs import TRAINED as PAIR_METHODS
from made_up_pairs import learner as pairs
from made_up_skeletons import learner as skeleton_learner
from other_values import others
from stand_in import StandIn, as_recorded
from states import assert_equal_states

from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.recipe import CLIPS
from repro.contrast.dictionary import Dictionary
from repro.image import pretrain
from repro.image.recipe import IMAGES
from repro.run import device
from repro.skeleton.recipe import SKELETONS
from repro.skeleton.terms import PRINTED

pytestmark = pytest.mark.usefixtures("one_thread")
ALL = "AE+CE+AD+CD"


@pytest.fixture(autouse=True)
def small(monkeypatch, small_buckets):
    """Trunks of two convolutions. Most steps of images log what an earlier one measured."""
    use_tiny_trunk(monkeypatch)
    monkeypatch.setattr(pretrain, "MONITORED", 3)


def skeletons(objectives=ALL, **changes):
    return skeleton_learner(objectives, **{"batch": 2, "epochs": 2} | changes)


def partly_silent(seed=2):
    """Of batches of two some have sound for both clips, and some for too few of them."""
    data = made_up(pretrain=14)
    silent = torch.arange(len(data.labels)) % 2 == 1
    return pairs("supervised", seed=seed, data=lacking(data, "audio", silent), batch=2, epochs=2, learning_rate=1e-3)


def tuner(modality="video", seed=2, **changes):
    trunk = pairs("scratch").towers.trunks[modality]
    recipe = tiny(**{"finetune_batch": 5, "finetune_epochs": 6} | changes)
    data = made_up(pretrain=4, train=13, test=7)  # batches of four and of five
    return FineTuner(recipe, trunk, data, modality, seed, CPU, target=f"synthetic_{modality}", split=1)


def named(part):
    return getattr(part, "__name__", getattr(part, "name", str(part)))


SLOWLY = {"epochs": 4, "dictionary": 11, "batch": 6, "learning_rate": 1e-3}  # no method diverges at it
KINDS = [  # whose states have other parts than one another's
    (skeletons, (ALL,), {"layers": 2, "head": "mlp", "ema_head_twice": True, "ad_input": "augmented"}),
    (skeletons, ("AE+CE",), {"select": "best_on_test", "select_every": 1}),
    (images, ("supervised",), SLOWLY), (images, ("jcl",), SLOWLY | {"keys": 2}),
    (images, ("moco",), {"epochs": 6, "groups": 2}),
    (images, ("sce",), {"epochs": 6, "precision": "bfloat16", "channels_last": True}),
    (pairs, ("smoco", "multidigits"), {"epochs": 4, "groups": 2}),
    (pairs, ("cmacc",), {"epochs": 6, "groups": 2, "normalised": True, "posterior_temperature": 0.1}),
    (partly_silent, (), {}), (tuner, ("audio",), {}),
]
RECORDABLE = [
    *KINDS,
    *((skeletons, (objectives,), {}) for objectives in ("AD", "CD", ALL)),
    *((images, (method,), SLOWLY) for method in IMAGE_METHODS if method not in ("supervised", "jcl", "vanilla")),
    (images, ("vanilla",), SLOWLY | {"keys": 2}),
    (images, ("jcl",), {"epochs": 6, "warmup": 1, "learning_rate": 0.3, "keys": 2}),
    *((pairs, (method,), {"epochs": 4}) for method in ("supervised", "smoco", "xmoco")),
    *((pairs, ("cmacc",), {"epochs": 6, "sampler": sampler}) for sampler in ("gradient", "feature", "ohem", "random")),
    (pairs, ("xmoco",), {"epochs": 4, "own_excluded": False}), (pairs, ("cmacc", "multidigits"), {"epochs": 6}),
    (tuner, ("video",), {}),
]
# At a rate that float32 rounds, k-means, which is a matter of ties, would end otherwise after some steps.
RELEASED = {"sampler": "released", "learning_rate": 2**-7, "warmup": 0}
UNRECORDABLE = {
    "made of views that the host draws": (pairs, ("cmacc",), {"renewed": True, "groups": 2, "precision": "bfloat16"}),
    "the sampler released waits for the device": (pairs, ("cmacc",), RELEASED),
    "packs the sequences": (skeletons, (ALL,), {"bidirectional": True, "units": 8}),
}


# ---------------------------------------------------------------------------------------------- taken up again


@pytest.mark.parametrize(("make", "arguments", "changes"), [*KINDS, *UNRECORDABLE.values()], ids=named)
def test_a_state_in_a_file_continues_to_the_last_bit(make, arguments, changes, tmp_path):
    """From the start, within the first epoch, in the middle of the training and before its last step, each to the next
    of these, whose state it comes to.
    """
    make = functools.partial(make, *arguments, **changes)
    undisturbed, values = make(), []
    total = undisturbed.total_steps
    saved = sorted({0, 1, total // 2, total - 1, total})
    for step in range(total + 1):
        if step in saved:
            torch.save(undisturbed.state_dict(), tmp_path / f"{step}.pt")
        if step < total:
            values.append(undisturbed.step())
    assert len({tuple(value.tolist()) for value in values}) == len(values) >= 6
    states = [torch.load(tmp_path / f"{step}.pt", weights_only=True) for step in saved]
    for (step, state), (end, expected) in itertools.pairwise(zip(saved, states, strict=True)):
        resumed = make(seed=99)
        resumed.load_state_dict(copy.deepcopy(state))
        assert_equal_states(resumed.state_dict(), state)
        assert torch.equal(trace(resumed, end - step), torch.stack(values[step:end])), step
        assert_equal_states(resumed.state_dict(), expected)


@pytest.mark.parametrize("make", [skeletons, images])
@pytest.mark.parametrize(("asked", "begun"), [("auto", "bfloat16"), ("float32", "float32"), ("bfloat16", "bfloat16")])
def test_a_training_goes_on_in_the_precision_it_was_begun_in(make, asked, begun, monkeypatch):
    """Of images also one from before states had it, when a recipe that asked for none was of bfloat16 everywhere."""
    monkeypatch.setattr(device, "has_bfloat16", lambda: True)
    begins = make(precision=asked)
    assert begins.precision == begins.state_dict()["precision"] == begun
    state = copy.deepcopy(begins.state_dict())
    earlier = {name: value for name, value in state.items() if name != "precision"}
    expected = begins.step()
    monkeypatch.setattr(device, "has_bfloat16", lambda: False)  # another processor takes it up
    for kept in (state, earlier) if make is images else (state,):
        resumed, evaluated = make(precision=asked), make(precision=asked)
        resumed.load_state_dict(copy.deepcopy(kept))
        evaluated.load_weights(kept)
        assert resumed.precision == evaluated.precision == begun
        assert torch.equal(resumed.step(), expected)


# ---------------------------------------------------------------------------------------------- seeds


@pytest.mark.parametrize("make", [skeletons, images, pairs, tuner])
def test_no_two_streams_begin_with_equal_draws(make):
    """Nor with those of the run's own seed. The noise of a dictionary is drawn by none of them."""
    fast = make(seed=3)
    streams = [part for part in vars(fast).values() if isinstance(part, torch.Generator)]
    starts = {3, *(stream.initial_seed() for stream in streams)}
    assert len(starts) == len(streams) + 1 >= 3
    draws = {tuple(torch.rand(4, generator=torch.Generator().manual_seed(start)).tolist()) for start in starts}
    assert len(draws) == len(starts)
    for part in (getattr(fast, name) for name in fast.parts):
        if isinstance(part, Dictionary):
            for start in starts:  # whose noise keeps the signs of what was drawn
                drawn = torch.randn(part.entries.shape, generator=torch.Generator().manual_seed(start))
                assert not torch.equal(part.entries.sign(), drawn.sign())


@pytest.mark.parametrize(("make", "methods", "parts"), [
    (skeletons, ("random", *PRINTED, ALL), ("model", "keys", "dictionary", "sequence_dictionary")),
    (images, ("moco", "random", *IMAGE_METHODS), ("model", "classifier", "keys", "dictionary")),
    (pairs, ("scratch", *PAIR_METHODS), ("towers",)),
], ids=named)
def test_equal_seeds_start_alike_whatever_the_method_and_others_otherwise(make, methods, parts):
    before = torch.get_rng_state()
    usual, other = (make(methods[0], seed=seed).state_dict() for seed in (5, 6))
    for method in methods[1:]:
        state = make(method, seed=5).state_dict()
        for part in (part for part in parts if part in state):  # not every method has keys
            assert_equal_states(state[part], usual[part])
    for part in parts:
        weights = [name for name, value in usual[part].items() if value.dim() > 1]
        assert weights and not any(torch.equal(usual[part][name], other[part][name]) for name in weights)
    assert torch.equal(torch.get_rng_state(), before)


# ---------------------------------------------------------------------------------------------- probes


PROBED = {"probe_epochs": 3, "probe_batch": 7}


@pytest.mark.parametrize(("study", "make", "arguments", "changes"), [
    *((SKELETONS, skeletons, (objectives,), PROBED | {"epochs": 1}) for objectives in ("AD", ALL)),
    *((IMAGES, images, (method,), PROBED | {"probe_view": "crop"}) for method in ("supervised", "sce", "jcl")),
    *((CLIPS, pairs, (method, "multidigits"), {"epochs": 1}) for method in ("smoco", "cmacc")),
], ids=named)
def test_probes_along_training_change_no_bit_of_it_and_end_with_what_is_reported(study, make, arguments, changes):
    plain, probed = (make(*arguments, **changes) for _ in range(2))
    for _ in range(plain.total_steps):
        assert torch.equal(probed.step(), plain.step())
        found = study.probe(probed)
    assert_equal_states(probed.state_dict(), plain.state_dict())
    result = study.measure(plain)
    assert found.pop("linear_best", 100.0) >= found["linear"] == result["linear"]
    assert found == {name: result[name] for name in found}


# ---------------------------------------------------------------------------------------------- unused fields


SELF_SUPERVISED = [method for method in (*IMAGE_METHODS, *PAIR_METHODS) if method != "supervised"]
UNUSED = [  # a supervised learner draws its classifier after a head of whatever shape, which it does not use
    *((skeletons, (term,), {}) for term in PRINTED), (skeletons, ("AE+AD",), {"decoder_input": "embedding"}),
    *((images if method in IMAGE_METHODS else pairs, (method,), {}) for method in SELF_SUPERVISED),
    (pairs, ("cmacc",), {"sampler": "random"}),
]


@pytest.mark.parametrize(("make", "arguments", "changes"), UNUSED, ids=named)
def test_what_a_recipe_does_not_use_changes_no_bit_of_its_training(make, arguments, changes):
    usual, changed = make(*arguments, **changes), []
    recipe = usual.recipe
    for field in dataclasses.fields(recipe):
        other = None if recipe.uses(field.name) else next(others(recipe, field.name), None)
        if other is not None:
            recipe = other
            changed.append(field.name)
    assert len(changed) >= 3
    assert torch.equal(trace(type(usual)(recipe, usual.data, usual.seed, CPU), 3), trace(usual, 3)), changed


# ---------------------------------------------------------------------------------------------- recorded steps


@pytest.mark.parametrize(("make", "arguments", "changes"), RECORDABLE, ids=named)
def test_a_step_repeats_the_orders_of_the_first_of_its_bucket_and_computes_what_a_plain_one_does(
    make, arguments, changes, monkeypatch
):
    """Also after it is taken up again in the middle of an epoch. What it finds there lies where it lay."""
    plain, fixed = make(*arguments, **changes), as_recorded(make(*arguments, **changes))
    expected = trace(plain, plain.total_steps)
    assert plain.total_steps >= 2 * plain.steps_per_epoch
    monkeypatch.setattr("repro.run.learner.Recorded", StandIn)
    for step, values in enumerate(expected):
        if step == len(expected) // 2 - 1:
            assert fixed.recorded.repeated and not fixed.recorded.reason
            fixed.load_state_dict(copy.deepcopy(fixed.state_dict()))
        torch.testing.assert_close(fixed.step(), values, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert sum(fixed.recorded.repeated.values()) >= 3


@pytest.mark.parametrize("reason", UNRECORDABLE)
def test_what_cannot_be_recorded_says_why_and_computes_the_same_as_it_is(reason):
    make, arguments, changes = UNRECORDABLE[reason]
    plain, fixed = make(*arguments, **changes), as_recorded(make(*arguments, **changes))
    assert reason in fixed.unrecordable()
    for _ in range(fixed.steps_per_epoch + 2):
        torch.testing.assert_close(fixed.step(), plain.step(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [skeletons, images, pairs, tuner])
def test_a_run_that_processes_share_is_not_recorded(make, monkeypatch):
    fast = make()
    assert fast.unrecordable() == ""
    monkeypatch.setattr("repro.run.learner.grouped", lambda: True)
    assert fast.unrecordable() == "processes that share a run wait for one another"
