"""Pre-training on made-up sequences, every step held against a slow one written from the objectives' definitions."""

import copy
import math

import pytest
import torch
from ended import finish
from made_up_skeletons import learner, made_up
from sklearn.neighbors import KNeighborsClassifier
from slow_skeletons import SlowStep, slow_decoding, slow_embedding, slow_readout
from states import assert_equal_states
from torch.nn.functional import cosine_similarity
from tqdm import tqdm

from repro.run.fit import fit
from repro.skeleton import pretrain
from repro.skeleton.recipe import SkeletonRecipe
from repro.skeleton.terms import TERMS, Term

pytestmark = pytest.mark.usefixtures("one_thread")
ALL = "AE+CE+AD+CD"


def assert_step_is_slow(fast, *, rtol=2e-4):
    """Take a step and compare terms, their sum, gradients, momentum encoder and dictionaries with the slow ones."""
    slow = SlowStep(fast)
    dictionaries = {"CE": fast.dictionary, "CD": fast.sequence_dictionary}
    before = {name: (dictionary.entries.clone(), int(dictionary.pointer)) for name, dictionary in dictionaries.items()}
    values = dict(zip(fast.terms, fast.step().tolist(), strict=True))
    assert list(values) == [*fast.recipe.objectives.split("+"), "loss"]
    for term, value in slow.losses.items():
        assert values[term] == pytest.approx(value.item(), rel=rtol, abs=1e-6), term
    assert values["loss"] == pytest.approx(slow.total.item(), rel=rtol)
    slow.total.backward()
    for (name, own), (_, other) in zip(fast.model.named_parameters(), slow.model.named_parameters(), strict=True):
        assert (own.grad is None) == (other.grad is None), name
        if own.grad is not None:
            torch.testing.assert_close(own.grad, other.grad, rtol=1e-3, atol=2e-5 * other.grad.abs().max().item(),
                                       msg=lambda text, name=name: f"{name}: {text}")
    m = fast.recipe.momentum if fast.recipe.has("CE") or fast.recipe.has("CD") else 1.0
    for name, learned in fast.model.state_dict().items():
        follower = slow.twin.state_dict()[name]
        if fast.recipe.ema_head_twice and name.startswith("head."):  # before the optimiser's step, and after it
            follower = m * follower + (1 - m) * slow.model.state_dict()[name]
        torch.testing.assert_close(fast.keys.twin.state_dict()[name], m * follower + (1 - m) * learned, msg=name)
    for name, dictionary in dictionaries.items():
        expected, pointer = before[name]
        entering = slow.keys.get(name, []) if name == "CE" or fast.recipe.td_queue == "live" else []
        for place, key in enumerate(entering, pointer):
            expected[place % len(expected)] = key
        torch.testing.assert_close(dictionary.entries, expected, rtol=1e-4, atol=1e-5)
    return slow


@pytest.mark.parametrize(("objectives", "changes"), [
    *((objectives, {}) for objectives in ("AE", "CE", "AD", "CD", "AE+CE", "AD+CD", "AE+CE+CD", ALL)),
    (ALL, {"ad_input": "augmented", "ad_loss": "squared", "layers": 2}),
    (ALL, {"td_queue": "frozen_noise", "ad_loss": "squared"}),
    (ALL, {"td_crop": None, "batch": 1}),  # keys are decoded beyond the batch's longest sequence
    (ALL, {"td_crop": 1, "batch": 1}),
    (ALL, {"head": "mlp", "layers": 3}),
    (ALL, {"ema_head_twice": True, "momentum": 0.5, "key_head_copied": False}),
    (ALL, {"flip": 0.0, "shear": 0.1}),  # with none, query and key agree, where L1 has no gradient
    (ALL, {"flip": 1.0, "temperature": 0.5}),
    (ALL, {"dictionary": 3, "sequence_dictionary": 2}),  # smaller than a batch
    (ALL, {"ae_weight": 10.0, "ce_weight": 0.5, "ad_weight": 25.0, "cd_weight": 3.0}),
    (ALL, {"ce_weight": 0.0, "cd_weight": 0.0}),
    (ALL, {"decoder_input": "embedding", "layers": 2, "head": "mlp", "ad_input": "augmented"}),
    ("AD", {"ad_input": "augmented"}),
    ("AD", {"decoder_input": "embedding", "ad_loss": "squared", "ad_weight": 2.0}),
    ("CD", {"decoder_input": "embedding", "td_crop": None}),
], ids=str)
def test_a_step_equals_the_slow_one(objectives, changes):
    fast = learner(objectives, clip=1e6, **changes)
    for _ in range(2):  # the second one meets moved keys and dictionaries
        assert_step_is_slow(fast)
        assert fast.bucket == int(fast.cpu_lengths.max()), "a batch is cut to its longest sequence"


def test_a_step_is_adam_after_clipping_the_norm_over_all_parameters():
    fast = learner(ALL, clip=0.05)
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


@pytest.mark.parametrize(("objectives", "layers", "packed"), [("AE+CE", 1, True), (ALL, 2, True), (ALL, 1, False)])
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
        assert cosine_similarity(own.flatten(), other.flatten(), dim=0) > 0.99
    for dictionary in (rounded.dictionary, rounded.sequence_dictionary):
        assert dictionary.entries.dtype == torch.float32 and dictionary.entries.isfinite().all()


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_a_key_head_that_is_not_copied_changes_nothing_else_of_the_start(head):
    copied, own = (learner("CE", head=head, key_head_copied=flag) for flag in (True, False))
    assert_equal_states(own.model.state_dict(), copied.model.state_dict())
    twins = [fast.keys.twin.state_dict() for fast in (copied, own)]
    for name, start in copied.model.state_dict().items():
        assert torch.equal(twins[0][name], start)
        assert torch.equal(twins[1][name], start) != name.startswith("head."), name
    assert not any(parameter.requires_grad for parameter in own.keys.twin.parameters())


def test_a_term_may_look_at_readouts_and_projections(monkeypatch):
    """Of every input; its keys come from the momentum encoder and go to no dictionary."""
    inputs, seen = ("augmented", "clean", "key"), []

    def loss(batch, recipe):
        seen.append(batch)
        return sum((batch.readout[name].sum() + 2 * batch.projected[name].sum() for name in inputs), start=0.0)

    monkeypatch.setitem(TERMS, "XX", Term("XX", lambda recipe: {"readout": inputs, "projected": inputs}, loss))
    fast = learner("XX", flip=0.0, shear=0.0, momentum=0.5)
    used = ("momentum", "projection", "flip", "dictionary", "temperature")
    assert [fast.recipe.uses(name) for name in used] == [1, 1, 1, 0, 0]
    assert SkeletonRecipe.parse("objectives", "XX+CE,CD+XX") == ["CE+XX", "CD+XX"]
    fast.step()  # from here on twin and model differ
    models, dictionary = copy.deepcopy([fast.model, fast.keys.twin]), fast.dictionary.entries.clone()
    fast.step()
    batch = seen[-1]
    for name, model in zip(inputs, (models[0], *models), strict=True):
        for row, (sequence, length) in enumerate(zip(batch.clean, batch.lengths, strict=True)):
            readout = slow_readout(model, sequence[:length])
            torch.testing.assert_close(batch.readout[name][row], readout)
            torch.testing.assert_close(batch.projected[name][row], model.head(readout))
    assert batch.readout["clean"].requires_grad and not batch.projected["key"].requires_grad
    assert batch.embedded == batch.decoded == {} and torch.equal(fast.dictionary.entries, dictionary)
    assert len(batch.dictionary) == len(batch.sequence_dictionary) == 0, "noise that no key would ever replace"


@pytest.mark.parametrize(("needs", "message"), [
    ({"embeded": ("augmented",)}, "kind that XX needs='embeded' is not one of: readout, projected, embedded, decoded"),
    ({"embedded": ("keys",)}, "did you mean 'key'. input that XX needs='keys' is not one of: augmented, clean"),
])
def test_what_a_term_needs_and_there_is_not_is_named(monkeypatch, needs, message):
    monkeypatch.setitem(TERMS, "XX", Term("XX", lambda recipe: needs, None))
    with pytest.raises(ValueError, match=message):
        learner("XX")


def test_training_never_sees_the_test_split():
    data = made_up()
    data.frames[data.test.repeat_interleave(data.lengths)] = float("nan")
    fast = learner(ALL, data=data)
    assert all(fast.step().isfinite().all() for _ in range(2 * fast.steps_per_epoch))


def test_readouts_of_any_chunk_are_the_encoders(monkeypatch):
    fast, data = learner("AE"), made_up()
    readouts, embeddings = fast.features(data)
    assert not readouts.requires_grad
    for index, length in enumerate(data.lengths):
        expected = slow_readout(fast.model, data.sequences[index, :length])
        torch.testing.assert_close(readouts[index], expected)
        torch.testing.assert_close(embeddings[index], slow_embedding(fast.model, expected))
    monkeypatch.setattr(pretrain, "CHUNK", 30)
    torch.testing.assert_close(fast.features(data)[0], readouts)


@pytest.mark.parametrize("frames", [1, 30, 12800])
def test_the_decoded_scale_is_that_of_each_test_sequence_decoded_alone(frames, monkeypatch):
    monkeypatch.setattr(pretrain, "CHUNK", frames)
    fast = learner("AD")
    data = fast.data
    readouts, decoded, clean = fast.features(data)[0], [], []
    for index in data.test.nonzero().flatten().tolist():
        length = int(data.lengths[index])
        decoded.append(slow_decoding(fast.model, readouts[index], length).detach().double().flatten())
        clean.append(data.sequences[index, :length].double().flatten())
    expected = (torch.cat(decoded).square().mean() / torch.cat(clean).square().mean()).sqrt().item()
    assert fast.decoded_scale(readouts) == pytest.approx(expected, rel=1e-5)


def selecting(**changes):
    return learner("AE+CE", select="best_on_test", data=made_up(60), **changes)


def weights(pretrainer):
    return torch.cat([parameter.detach().flatten() for parameter in pretrainer.model.parameters()])


def test_the_best_checkpoint_on_the_test_split_is_put_back(tmp_path, monkeypatch):
    alone, history, accuracies = selecting(epochs=8), [], iter([30.0, 50.0, 40.0, 50.0])
    for _ in range(4):
        for _ in range(2 * alone.steps_per_epoch):
            alone.step()
        history.append(weights(alone))
    monkeypatch.setattr("repro.skeleton.pretrain.nearest_neighbour", lambda *_: next(accuracies))
    fast = selecting(epochs=8, select_every=2)
    finish(fit(fast, tmp_path, tqdm(disable=True)))
    assert next(accuracies, None) is None and torch.equal(weights(fast), history[3])
    fast.restore()
    assert fast.best == 50.0 and torch.equal(weights(fast), history[1])  # the first of equal ones


def test_selection_looks_at_the_nearest_neighbour_on_the_test_split():
    fast = selecting(epochs=1, select_every=1)
    for _ in range(fast.total_steps):
        fast.step()
    (readouts, _), data = fast.features(fast.data), fast.data
    references = KNeighborsClassifier(1, metric="cosine").fit(readouts[data.train], data.labels[data.train])
    assert fast.best == pytest.approx(100 * references.score(readouts[data.test], data.labels[data.test]))
