"""Pre-training on made-up sequences, every step held against a slow one written from the objectives' definitions.

The slow step knows no batch: it draws the views with the same generator, then encodes and decodes sequence by
sequence and frame by frame and compares with every entry of the dictionaries in turn.
"""

import copy
import dataclasses
import itertools
import json
import math

import pytest
import torch
from states import assert_equal_states
from torch import nn
from torch.nn.functional import cosine_similarity
from tqdm import tqdm

from repro.run.fit import NonFiniteLoss, fit
from repro.skeleton.augment import apply_shear, shear_matrices, temporal_flip
from repro.skeleton.cell import evaluate
from repro.skeleton.data import SkeletonSet
from repro.skeleton.pretrain import Pretrainer, precision_of
from repro.skeleton.recipe import (
    CONCERNED,
    METHODS,
    PRESETS,
    SUBSETS,
    TERMS,
    VARIANTS,
    SkeletonRecipe,
    paper,
    quick,
)
from repro.skeleton.sequences import Sequences

FRAMES, FEATURES, SAMPLES = 12, 6, 21
TINY = {"units": 7, "projection": 5, "dictionary": 11, "sequence_dictionary": 9, "batch": 4, "td_crop": 8,
        "momentum": 0.9, "epochs": 3, "learning_rate": 0.01, "precision": "float32"}
CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("one_thread")


def made_up(samples=SAMPLES, frames=FRAMES, seed=0, shortest=1):
    """Smooth random sequences of `shortest` to `frames` frames; every sixth belongs to the test split."""
    draws = torch.Generator().manual_seed(seed)
    sequences = torch.randn(samples, frames, FEATURES, generator=draws).cumsum(1) / 3
    lengths = torch.randint(shortest, frames + 1, (samples,), generator=draws)
    lengths[:3] = torch.tensor([frames, shortest, frames - 1])[:samples]
    test = torch.arange(samples) % 6 == 5
    frames = torch.cat([sequence[:length] for sequence, length in zip(sequences, lengths, strict=True)])
    return SkeletonSet(
        name="made-up", frames=frames, lengths=lengths, labels=torch.arange(samples) % 3, train=~test, test=test,
        views=torch.ones(samples, dtype=torch.int64), subjects=torch.ones(samples, dtype=torch.int64),
        actions=("a", "b", "c"), bones=((0, 1),), digest="made up",
    )


def tiny(objectives, **changes):
    return SkeletonRecipe(objectives=objectives, **(TINY | changes))


def learner(objectives, seed=0, data=None, **changes):
    return Pretrainer(tiny(objectives, **changes), data or made_up(), seed, CPU)


def terms_of(name):
    return [term for term in TERMS if term in name.split("+")]


# ---------------------------------------------------------------------------------------------- the slow step


def slow_readout(model, sequence):
    """Top-layer state after the last frame of one unpadded sequence (T, D)."""
    _, final = nn.GRU.forward(model.encoder.gru, sequence)
    return final[-1]


def slow_embedding(model, readout):
    projected = model.head(readout)
    return projected / projected.square().sum().sqrt()


def slow_decoding(model, readout, frames):
    """Frames (T, D) decoded one after the other from one readout."""
    state, decoded = None, []
    for _ in range(frames):
        output, state = nn.GRU.forward(model.decoder.gru, readout.unsqueeze(0), state)
        decoded.append(model.decoder.output(output[0]))
    return torch.stack(decoded)


def slow_l1(first, second, length):
    """Mean over coordinates, then over `length` frames, of the absolute difference."""
    return sum((first[t] - second[t]).abs().mean() for t in range(length)) / length


def slow_nce(positive, negatives):
    """-log of the positive's share among it and the negatives."""
    return -(positive.exp() / (positive.exp() + sum(negative.exp() for negative in negatives))).log()


def slow_view(sequences, lengths, recipe, generator):
    reverse = torch.rand(len(sequences), generator=generator) < recipe.flip
    matrices = shear_matrices(len(sequences), recipe.shear, generator)
    return apply_shear(temporal_flip(sequences, lengths, reverse), matrices)


class SlowStep:
    """The terms, keys and gradients of the step that `fast` is about to take, without touching it."""

    def __init__(self, fast):
        recipe, generator = fast.recipe, copy.deepcopy(fast.generator)
        self.recipe, self.generator = recipe, generator
        self.model, self.twin = copy.deepcopy(fast.model), copy.deepcopy(fast.keys.twin)
        self.negatives = fast.dictionary.entries.clone()
        self.sequence_negatives = fast.sequence_dictionary.entries.clone()
        order, draws = fast.order.clone(), copy.deepcopy(fast.order_generator)
        if len(order) < recipe.batch:
            order = torch.randperm(len(fast.train), generator=draws)
        index = fast.train[order[: recipe.batch]]
        clean, lengths = fast.data.sequences[index], fast.data.lengths[index]
        self.lengths = lengths.tolist()
        contrasts = recipe.has("CE") or recipe.has("CD")
        query = key = [None] * recipe.batch
        if contrasts or recipe.has("AE") or recipe.ad_input == "augmented":
            query = slow_view(clean, lengths, recipe, generator)
        if contrasts:
            key = slow_view(clean, lengths, recipe, generator)
        samples = [self._sample(*views) for views in zip(clean, query, key, self.lengths, strict=True)]
        self.losses = {term: torch.stack([sample[term] for sample in samples]).mean() for term in samples[0]}
        self.total = sum(self.losses.values())
        self.keys = {name: torch.stack([sample[name] for sample in self.found]) for name in self.found[0]}

    def _sample(self, clean, query, key, length):
        recipe, model, losses, keys = self.recipe, self.model, {}, {}
        if recipe.has("AE"):
            z_query = slow_embedding(model, slow_readout(model, query[:length]))
            z_clean = slow_embedding(model, slow_readout(model, clean[:length]))
            losses["AE"] = 2 - 2 * (z_query * z_clean).sum()
        if recipe.has("CE"):
            z_query = slow_embedding(model, slow_readout(model, query[:length]))
            with torch.no_grad():
                keys["CE"] = slow_embedding(self.twin, slow_readout(self.twin, key[:length]))
            similar = [(z_query * other).sum() / recipe.temperature for other in (keys["CE"], *self.negatives)]
            losses["CE"] = slow_nce(similar[0], similar[1:])
        if recipe.has("AD"):
            source = clean if recipe.ad_input == "clean" else query
            decoded = slow_decoding(model, slow_readout(model, source[:length]), length)
            losses["AD"] = slow_l1(decoded, clean, length)
            if recipe.ad_loss == "squared":
                losses["AD"] = sum((decoded[t] - clean[t]).square().sum() for t in range(length))
        if recipe.has("CD"):
            decoded = slow_decoding(model, slow_readout(model, query[:length]), length)
            crop = self.sequence_negatives.shape[1]
            with torch.no_grad():
                keys["CD"] = slow_decoding(self.twin, slow_readout(self.twin, key[:length]), max(length, crop))
            positive = -slow_l1(decoded, keys["CD"], length) / recipe.temperature
            compared = min(length, crop)
            others = [-slow_l1(decoded, entry, compared) / recipe.temperature for entry in self.sequence_negatives]
            losses["CD"] = slow_nce(positive, others)
            keys["CD"] = keys["CD"][:crop]
        self.found = [*getattr(self, "found", []), keys]
        return losses


def assert_step_is_slow(fast, *, rtol=2e-4):
    """Take a step and compare its terms, their sum and all gradients with the slow ones."""
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
    ],
    ids=str,
)
def test_a_step_away_from_the_defaults_equals_the_slow_one(changes):
    fast = learner(**({"objectives": "AE+CE+AD+CD", "clip": 1e6} | changes))
    for _ in range(2):
        assert_step_is_slow(fast)


@pytest.mark.parametrize("objectives", ["random", *SUBSETS])
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


@pytest.mark.parametrize("objectives", SUBSETS)
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


def test_reconstruction_alone_draws_no_view():
    fast = learner("AD")
    before = fast.generator.get_state()
    fast.step()
    assert torch.equal(fast.generator.get_state(), before)


# ---------------------------------------------------------------------------------------------- keys


def test_the_momentum_encoder_starts_as_a_copy_of_all_parts():
    fast = learner("CE+CD", head="mlp")
    twin = fast.keys.twin.state_dict()
    assert any(name.startswith("head.") for name in twin)
    assert list(twin) == list(fast.model.state_dict())
    for name, learned in fast.model.state_dict().items():
        assert torch.equal(twin[name], learned), name
        assert twin[name].data_ptr() != learned.data_ptr(), name


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("objectives", ["CE", "CD", "AE+CE+AD+CD"])
def test_the_momentum_encoder_follows_the_weights_after_the_step(objectives, twice):
    fast = learner(objectives, ema_head_twice=twice, momentum=0.75)
    fast.step()  # from here on twin and model differ
    old = copy.deepcopy(fast.keys.twin.state_dict())
    fast.step()
    for name, learned in fast.model.state_dict().items():
        m = 0.75**2 if twice and name.startswith("head.") else 0.75
        torch.testing.assert_close(fast.keys.twin.state_dict()[name], m * old[name] + (1 - m) * learned)


@pytest.mark.parametrize("objectives", ["random", "AE", "AD", "AE+AD"])
def test_without_contrast_there_are_no_keys(objectives):
    fast = learner(objectives)
    before = copy.deepcopy(fast.state_dict())
    if objectives != "random":
        fast.step()
    for part in ("keys", "dictionary", "sequence_dictionary"):
        for name, value in fast.state_dict()[part].items():
            assert torch.equal(value, before[part][name]), (part, name)


@pytest.mark.parametrize("objectives", [name for name in SUBSETS if "C" in name])
def test_dictionaries_hold_the_keys_of_the_step_and_move_only_where_used(objectives):
    fast = learner(objectives)
    fast.step()
    dictionaries = {"CE": fast.dictionary, "CD": fast.sequence_dictionary}
    before = {name: dictionary.entries.clone() for name, dictionary in dictionaries.items()}
    slow = SlowStep(fast)
    fast.step()
    assert list(slow.keys) == [name for name in dictionaries if fast.recipe.has(name)]
    for name, dictionary in dictionaries.items():
        expected = before[name]
        if fast.recipe.has(name):
            assert not torch.allclose(expected[4:8], slow.keys[name])
            expected[4:8] = slow.keys[name]  # the first batch of four went to the first rows
        torch.testing.assert_close(dictionary.entries, expected, rtol=1e-4, atol=1e-5)
        assert int(dictionary.pointer) == (8 if fast.recipe.has(name) else 0)


def test_entries_of_the_sequence_dictionary_are_as_long_as_the_crop_or_the_data():
    crops = {8: 8, None: FRAMES, FRAMES + 5: FRAMES, 50: FRAMES}
    for crop, frames in crops.items():
        fast = learner("CD", td_crop=crop)
        assert fast.sequence_dictionary.entries.shape == (9, frames, FEATURES)
    assert learner("CD", data=made_up(frames=60), td_crop=50).sequence_dictionary.entries.shape[1] == 50


def test_the_first_dictionaries_are_unit_directions_and_noise_of_norm_one_over_the_entries():
    fast = learner("CE+CD")
    torch.testing.assert_close(fast.dictionary.entries.norm(dim=1), torch.ones(11))
    torch.testing.assert_close(fast.sequence_dictionary.entries.norm(dim=0), torch.ones(8, FEATURES))


def test_a_frozen_sequence_dictionary_never_moves():
    fast = learner("CE+CD", td_queue="frozen_noise")
    before = fast.sequence_dictionary.entries.clone()
    for _ in range(3):
        fast.step()
    assert torch.equal(fast.sequence_dictionary.entries, before)
    assert int(fast.sequence_dictionary.pointer) == 0
    assert int(fast.dictionary.pointer) == 12 % 11


# ---------------------------------------------------------------------------------------------- variants


def trace(recipe, data, steps=3):
    fast = Pretrainer(recipe, data, 0, CPU)
    return torch.stack([fast.step() for _ in range(steps)])


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


@pytest.mark.parametrize(("asked", "device", "expected"), [
    ("bfloat16", "cpu", "bfloat16"), ("float32", "cpu", "float32"), ("bfloat16", "cuda", "float32"),
    ("float32", "cuda", "float32"),
])
def test_precision_is_a_choice_on_a_cpu_alone(asked, device, expected):
    assert precision_of(tiny("CE", precision=asked), torch.device(device)) == expected


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_changes_the_numbers(variant):
    data = made_up(frames=60, shortest=55)
    recipe = tiny("AE+CE+AD+CD", td_crop=50, units=8)
    usual, changed = (trace(chosen, data) for chosen in (recipe, recipe.replace(**VARIANTS[variant])))
    assert changed.isfinite().all()
    assert ((usual - changed).abs() > 1e-5 * usual.abs()).any(1)[-1]


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_changes_the_terms_that_it_concerns(variant, term):
    """With `mlp_head`, which draws more numbers before those of the decoder, the usual decoder."""
    data = made_up(frames=60, shortest=55)
    recipe = tiny(term, td_crop=50, units=8)
    usual, changed = (Pretrainer(each, data, 0, CPU) for each in (recipe, recipe.replace(**VARIANTS[variant])))
    for model, twin in ((usual.model, changed.model), (usual.keys.twin, changed.keys.twin)):
        twin.decoder.load_state_dict(model.decoder.state_dict())
    losses = [torch.stack([fast.step() for _ in range(3)]) for fast in (usual, changed)]
    assert torch.equal(*losses) == (term not in CONCERNED[variant])


def test_variants_are_differences_from_the_defaults():
    defaults = SkeletonRecipe().to_dict()
    assert len(VARIANTS) <= 8
    for changes in VARIANTS.values():
        for name, value in changes.items():
            assert defaults[name] != value


# ---------------------------------------------------------------------------------------------- order and size


def seen(fast, steps):
    """Indices among the training sequences of each step's batch."""
    every, its_lengths = fast.data.sequences[fast.train], fast.data.lengths[fast.train]
    batches = []
    for _ in range(steps):
        sequences, lengths, _ = fast._next_batch()
        found = []
        for sequence, length in zip(sequences, lengths, strict=True):
            frames = sequences.shape[1]
            same = (every[:, :frames] == sequence).flatten(1).all(1) & (its_lengths == length)
            found += same.nonzero().flatten().tolist()
        assert len(found) == len(sequences)
        batches.append(found)
    return batches


def test_an_epoch_shows_every_sequence_at_most_once_and_drops_the_rest():
    fast = learner("AE", data=made_up(24), batch=6)  # 20 training sequences: 3 batches, 2 left over
    assert len(fast.train) == 20
    assert (fast.steps_per_epoch, fast.total_steps) == (3, 9)
    epochs = [list(itertools.chain(*seen(fast, 3))) for _ in range(8)]
    for epoch in epochs:
        assert len(epoch) == len(set(epoch)) == 18
    assert len({tuple(epoch) for epoch in epochs}) == 8
    assert set(itertools.chain(*epochs)) == set(range(20))


def test_training_never_sees_the_test_split():
    data = made_up()
    data.frames[data.test.repeat_interleave(data.lengths)] = float("nan")
    fast = learner("AE+CE+AD+CD", data=data)
    for _ in range(2 * fast.steps_per_epoch):
        assert fast.step().isfinite().all()


def test_a_batch_as_large_as_the_training_split():
    fast = learner("CE", batch=18)
    assert (len(fast.train), fast.steps_per_epoch) == (18, 1)
    assert sorted(seen(fast, 1)[0]) == list(range(18))


def test_a_batch_larger_than_the_training_split_is_an_error():
    with pytest.raises(ValueError, match="batch=19 exceeds the 18 training sequences of made-up"):
        learner("CE", batch=19)


@pytest.mark.parametrize("objectives", ["CE", "AE+CE+AD+CD"])
def test_a_dictionary_larger_than_the_data_keeps_their_earlier_keys(objectives):
    fast = learner(objectives, dictionary=200, sequence_dictionary=150)
    assert len(fast.train) == 18
    before = fast.dictionary.entries.clone()
    steps = 3 * fast.steps_per_epoch
    assert torch.stack([fast.step() for _ in range(steps)]).isfinite().all()
    written = steps * fast.recipe.batch
    assert written > len(fast.train) and int(fast.dictionary.pointer) == written
    changed = (fast.dictionary.entries != before).any(1)
    assert changed[:written].all() and not changed[written:].any()  # of every sample, one key per epoch


def test_a_class_without_training_sequences_is_never_right_for_the_nearest_neighbour():
    data = made_up(60)
    empty = dataclasses.replace(data, train=data.train & (data.labels != 1))
    fast = learner("random", data=empty, probe_epochs=3)
    found = evaluate(fast, empty, 0)
    numbers = [value for value in found.values() if not isinstance(value, str)]
    assert numbers and all(math.isfinite(number) for number in numbers)
    known = (empty.labels[empty.test] != 1).double().mean().item()
    assert 0 <= found["knn1"] <= 100 * known and 0 <= found["linear"] <= 100


def test_labels_out_of_range_and_parts_that_overlap_are_refused():
    data = made_up()
    with pytest.raises(ValueError, match="made-up: label 3 should be from 0 to 2"):
        dataclasses.replace(data, labels=data.labels + 1)
    with pytest.raises(ValueError, match="made-up: 3 samples are for train and for test, the first of them 5"):
        dataclasses.replace(data, train=torch.ones_like(data.train))


def test_random_initialisation_takes_no_step(tmp_path):
    fast = learner("random")
    assert fast.total_steps == 0
    before = copy.deepcopy(fast.model.state_dict())
    assert fit(fast, tmp_path, tqdm(disable=True))["steps"] == 0
    assert_equal_states(before, fast.model.state_dict())
    assert_equal_states(before, learner("AE+CE+AD+CD").model.state_dict())  # what training of any objective starts from


@pytest.mark.parametrize("frames", [1, 30, 12800])
def test_the_decoded_scale_is_that_of_each_test_sequence_decoded_alone(frames):
    fast, data = learner("AD"), made_up()
    readouts, decoded, clean = fast.features(data)[0], [], []
    for index in data.test.nonzero().flatten().tolist():
        length = int(data.lengths[index])
        decoded.append(slow_decoding(fast.model, readouts[index], length).detach().double().flatten())
        clean.append(data.sequences[index, :length].double().flatten())
    expected = (torch.cat(decoded).square().mean() / torch.cat(clean).square().mean()).sqrt().item()
    assert fast.decoded_scale(data, readouts, frames) == pytest.approx(expected, rel=1e-5)
    with torch.no_grad():
        for parameter in fast.model.decoder.output.parameters():
            parameter *= 30
    assert fast.decoded_scale(data, readouts, frames) == pytest.approx(30 * expected, rel=1e-5)


def test_a_perfect_decoder_has_scale_one():
    fast, data = learner("AD"), made_up()
    longest = data.sequences.shape[1]
    whole = dataclasses.replace(data, frames=torch.full_like(data.frames, 0.5))
    fast.model.decoder.forward = lambda readouts, frames: torch.full((len(readouts), frames, FEATURES), -0.5)
    assert fast.decoded_scale(whole, torch.zeros(len(data.lengths), 7)) == pytest.approx(1)
    assert longest > data.lengths[data.test].min()  # there is padding, which was decoded and does not count


@pytest.mark.parametrize("objectives", METHODS)
def test_terms_of_the_decoder_train_it(objectives):
    assert tiny(objectives).trains_decoder == any(term in objectives for term in ("AD", "CD"))


def test_readouts_of_any_chunk_are_the_encoders():
    fast, data = learner("AE"), made_up()
    readouts, embeddings = fast.features(data)
    assert not readouts.requires_grad
    for index, length in enumerate(data.lengths):
        expected = slow_readout(fast.model, data.sequences[index, :length])
        torch.testing.assert_close(readouts[index], expected)
        torch.testing.assert_close(embeddings[index], slow_embedding(fast.model, expected))
    torch.testing.assert_close(fast.features(data, frames=30)[0], readouts)


# ---------------------------------------------------------------------------------------------- seeds and states


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_equal_seeds_give_equal_states(precision):
    first, second = (learner("AE+CE+AD+CD", seed=5, precision=precision) for _ in range(2))
    torch.manual_seed(1)  # the global generator plays no part
    for _ in range(6):
        assert torch.equal(first.step(), second.step())
        torch.rand(1)
    assert_equal_states(first.state_dict(), second.state_dict())


def test_different_seeds_differ_in_weights_dictionaries_order_and_views():
    first, second = learner("AE+CE+AD+CD", seed=0), learner("AE+CE+AD+CD", seed=1)
    for name in ("encoder.gru.weight_hh_l0", "head.weight", "decoder.output.weight"):
        assert not torch.allclose(first.model.state_dict()[name], second.model.state_dict()[name])
    assert not torch.allclose(first.dictionary.entries, second.dictionary.entries)
    assert not torch.allclose(first.sequence_dictionary.entries, second.sequence_dictionary.entries)
    assert seen(first, 3) != seen(second, 3)
    clean, lengths = made_up().sequences, made_up().lengths
    assert not torch.allclose(first._view(clean, lengths), second._view(clean, lengths))


def test_a_learner_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    learner("AE+CE+AD+CD").step()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("taken", [0, 1, 3, 4, 6])  # an epoch has four steps
@pytest.mark.parametrize("objectives", ["AD", "AE+CE+AD+CD"])
def test_a_state_continues_to_the_last_bit(objectives, taken, tmp_path):
    undisturbed = learner(objectives)
    for _ in range(taken):
        undisturbed.step()
    torch.save(undisturbed.state_dict(), tmp_path / "state.pt")
    resumed = learner(objectives, seed=99)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for _ in range(5):
        assert torch.equal(undisturbed.step(), resumed.step())
    assert_equal_states(undisturbed.state_dict(), resumed.state_dict())


def test_a_saved_state_is_everything_that_changes():
    fast = learner("AE+CE+AD+CD")
    state = fast.state_dict()
    assert set(state) == {"model", "keys", "dictionary", "sequence_dictionary", "optimiser", "generator",
                          "order_generator", "order"}
    before = copy.deepcopy(state)
    fast.step()
    for name, value in fast.state_dict().items():
        with pytest.raises(AssertionError):
            assert_equal_states(before[name], value)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("objectives", ["AE+CE", "AD+CD", "AE+CE+AD+CD"])
@pytest.mark.parametrize("layers", [1, 2])
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


# ---------------------------------------------------------------------------------------------- trouble


@pytest.mark.parametrize("objectives", ["AE", "CE", "AD", "CD"])
def test_a_loss_that_is_not_finite_stops_the_training_naming_term_and_step(objectives, tmp_path):
    data = made_up(24)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    poisoned = int(data.train.nonzero()[order[9]])  # among the third batch of four
    data.frames[data.lengths[:poisoned].sum(), 0] = float("nan")
    first = learner(objectives, data=data)
    assert first.step().isfinite().all() and first.step().isfinite().all()
    assert first.step().isnan().all()
    with pytest.raises(NonFiniteLoss, match=f"{objectives} is nan at step 3"):
        fit(learner(objectives, data=data), tmp_path, tqdm(disable=True))
    assert not (tmp_path / "checkpoint.pt").exists()
    assert not (tmp_path / "progress.jsonl").exists()


def test_fit_reports_every_term_and_takes_every_step(tmp_path):
    fast = learner("AE+CE+AD+CD")
    assert fit(fast, tmp_path, tqdm(disable=True))["steps"] == 12
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [4, 8, 12]
    for line in lines:
        assert line["loss"] == pytest.approx(sum(line[term] for term in TERMS), rel=1e-5)


def spread(fast, data):
    """Total standard deviation of the embedding: 0 when collapsed, at most 1."""
    return fast.features(data)[1].var(0, correction=0).sum().sqrt().item()


def test_the_attractive_encoder_alone_collapses_and_contrast_does_not():
    data = made_up(60)
    spreads = {}
    for objectives in ("AE", "AE+CE"):
        fast = learner(objectives, data=data, batch=16, units=16, dictionary=64)
        before = spread(fast, data)
        for _ in range(60):
            fast.step()
        spreads[objectives] = spread(fast, data) / before
    assert spreads["AE"] < 0.2
    assert spreads["AE+CE"] > 0.5


# ---------------------------------------------------------------------------------------------- recipes


def test_there_are_fifteen_subsets_and_random_initialisation():
    expected = ["+".join(chosen) for size in range(1, 5) for chosen in itertools.combinations(TERMS, size)]
    assert sorted(SUBSETS) == sorted(expected)
    assert sorted(METHODS) == sorted(["random", *expected])


def test_the_papers_recipe():
    recipe = SkeletonRecipe()
    printed = {"layers": 1, "units": 512, "projection": 128, "head": "linear", "dictionary": 1024,
               "sequence_dictionary": 640, "temperature": 0.1, "momentum": 0.999, "td_crop": 50, "flip": 0.5,
               "shear": 1.0, "epochs": 150, "batch": 32, "learning_rate": 1e-3, "clip": 25.0, "probe_epochs": 70,
               "probe_batch": 128, "probe_learning_rate": 2.0, "probe_momentum": 0.9, "probe_final_rate": 0.01,
               "td_queue": "live", "ad_loss": "l1", "ad_input": "clean", "ema_head_twice": False, "select": "last"}
    assert {name: recipe.to_dict()[name] for name in printed} == printed
    assert paper("ucla", "CE") == recipe.replace(objectives="CE")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dataset", ["synthetic", "ucla", "ntu"])
def test_presets_take_changes(preset, dataset):
    recipe = PRESETS[preset](dataset, "AD+CD", layers=2, td_crop=None)
    assert (recipe.dataset, recipe.objectives, recipe.layers, recipe.td_crop) == (dataset, "AD+CD", 2, None)


def test_the_papers_recipe_for_ntu():
    released = {"protocol": "xsub", "pipeline": "default", "dictionary": 16384, "sequence_dictionary": 2048,
                "epochs": 80, "batch": 32, "learning_rate": 9e-4, "td_crop": 50, "probe_batch": 512, "select_every": 3,
                "units": 512, "layers": 1, "temperature": 0.1, "momentum": 0.999, "clip": 25.0, "probe_epochs": 70}
    recipe = paper("ntu", "CE")
    assert {name: recipe.to_dict()[name] for name in released} == released
    assert paper("ntu", "CE", layers=3).learning_rate == 9e-4


def test_the_sources_of_ntus_own_values():
    described = {name: source for name, _, source in paper("ntu", "CE", epochs=5).described()}
    assert described["dictionary"] == "released code, NTU_BUTD_CON.yaml"
    assert described["epochs"] == "chosen here (default 80)"
    assert described["units"] == "paper, Table 1"
    described = {name: source for name, _, source in paper("ucla", "CE").described()}
    assert described["epochs"] == "released code, UCLA_BUTD_CON.yaml"


def test_only_the_presets_below_the_paper_change_sizes():
    usual = paper("ucla", "CE").to_dict()
    changed = {name for name, value in quick("ucla", "CE").to_dict().items() if value != usual[name]}
    assert changed == {"epochs"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objectives": "CX"}, "objectives='CX' is not one of: random, AE, CE, AE\\+CE"),
        ({"objectives": "CE+AE"}, "objectives='CE\\+AE' is not one of"),
        ({"objectives": ""}, "objectives='' is not one of"),
        ({"dataset": "nutu"}, "dataset='nutu' is not one of: synthetic, ucla"),
        ({"pipeline": "raww"}, "did you mean 'raw'"),
        ({"head": "conv"}, "head='conv' is not one of: linear, mlp"),
        ({"ad_loss": "l2"}, "ad_loss='l2' is not one of: l1, squared"),
        ({"td_queue": "dead"}, "td_queue='dead' is not one of: live, frozen_noise"),
        ({"select": "best"}, "select='best' is not one of: last, best_on_test"),
        ({"precision": "float16"}, "precision='float16' is not one of: float32, bfloat16"),
        ({"layers": 0}, "layers=0 should be at least 1"),
        ({"units": -512}, "units=-512 should be at least 1"),
        ({"batch": 0}, "batch=0 should be at least 1"),
        ({"epochs": -1}, "epochs=-1 should be at least 0"),
        ({"td_crop": 0}, "td_crop=0 should be at least 1"),
        ({"temperature": 0.0}, "temperature=0.0 should be at least 1e-06"),
        ({"temperature": float("nan")}, "temperature=nan should be finite"),
        ({"temperature": float("inf")}, "temperature=inf should be finite"),
        ({"learning_rate": float("inf")}, "learning_rate=inf should be finite"),
        ({"units": 2**40}, "units=1099511627776 should be at most 4294967295"),
        ({"learning_rate": -1e-3}, "learning_rate=-0.001 should be at least 0"),
        ({"probe_standardised_rate": -1.0}, "probe_standardised_rate=-1.0 should be at least 0"),
    ],
    ids=str,
)
def test_impossible_values_are_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        SkeletonRecipe(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"units": "512"}, "units='512' is of type str; it should be int"),
        ({"units": 512.0}, "units=512.0 is of type float; it should be int"),
        ({"layers": True}, "layers=True is of type bool; it should be int"),
        ({"td_crop": "none"}, "td_crop='none' is of type str; it should be int or NoneType"),
        ({"momentum": "0.9"}, "momentum='0.9' is of type str; it should be float"),
        ({"ema_head_twice": 1}, "ema_head_twice=1 is of type int; it should be bool"),
        ({"objective": "CE"}, "did you mean 'objectives'"),
        ({"learningrate": 0.1}, "did you mean 'learning_rate'"),
    ],
    ids=str,
)
def test_badly_typed_and_unknown_fields_are_errors(changes, message):
    with pytest.raises(TypeError, match=message):
        SkeletonRecipe.from_dict(changes)


def test_membership_is_by_term_and_not_by_letters():
    recipe = SkeletonRecipe(objectives="AE+CD")
    assert [recipe.has(term) for term in TERMS] == [True, False, False, True]
    assert not any(SkeletonRecipe(objectives="random").has(term) for term in TERMS)


def test_two_directions_need_an_even_number_of_units():
    with pytest.raises(ValueError, match="units=7 should be even: each of two directions has half of them"):
        SkeletonRecipe(bidirectional=True, units=7)
    assert '"bidirectional"' not in SkeletonRecipe(units=7).canonical()  # keys from before the field stay
    assert '"bidirectional": true' in SkeletonRecipe(bidirectional=True).canonical()


def test_an_encoder_of_two_directions_trains_with_every_term_and_its_twin_follows():
    fast = learner("AE+CE+AD+CD", bidirectional=True, units=8)
    before = copy.deepcopy(fast.model.encoder.state_dict())
    assert torch.stack([fast.step() for _ in range(3)]).isfinite().all()
    twin = fast.keys.twin.encoder.state_dict()
    for name, weights in fast.model.encoder.state_dict().items():
        assert not torch.equal(weights, before[name]) and not torch.equal(twin[name], before[name]), name
    readouts, embeddings = fast.features(made_up())
    assert readouts.shape == (SAMPLES, 8) and embeddings.shape == (SAMPLES, TINY["projection"])


def test_a_model_has_a_head_of_the_recipes_kind():
    assert isinstance(learner("CE").model.head, nn.Linear)
    assert isinstance(learner("CE", head="mlp").model.head, nn.Sequential)
