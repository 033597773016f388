"""Pre-training on made-up pairs: its steps are the slow ones of `slow_pairs`, in float64; what enters its dictionaries;
taken up again, from memory or streamed, it ends with the same bits; and what a step costs."""

import copy
import dataclasses
import functools
import threading
from collections import Counter

import pytest
import torch
from ended import finish
from made_up_pairs import TRAINED, data_of, learner, made_up, trace
from slow_pairs import Slow, aged, assert_same_training
from states import assert_equal_states
from torch import nn
from tqdm import tqdm
from watched import Watch

from repro.audiovisual import MODALITIES, VIEWS, pretrain, study
from repro.audiovisual.pretrain import OTHER, Pretrainer
from repro.audiovisual.recipe import SELF_SUPERVISED
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


UNIT = {"normalised": True, "posterior_temperature": 0.1}
CASES = [
    *((method, {}) for method in TRAINED),
    *(("cmacc", {"sampler": sampler}) for sampler in ("feature", "random", "ohem")),
    *((method, {"extra_layer": False, "embedding": 32}) for method in SELF_SUPERVISED),
    *((method, {"normalised": True, "temperature": 0.3}) for method in SELF_SUPERVISED),
    *(("cmacc", UNIT | changes) for changes in ({}, {"sampler": "ohem"}, {"extra_layer": False})),
    ("cmacc", {"sampler": "ohem", "extra_layer": False}),
    *((method, {"groups": 2}) for method in TRAINED),
    ("cmacc", {"groups": 4, "shuffle": False}),
    *(("cmacc", {"renewed": True, "groups": groups}) for groups in (1, 2)),
    ("cmacc", {"pool": 64}),  # more than there are pairs
    ("xmoco", {"dictionary": 40}),  # the same
    *((method, {"own_excluded": False}) for method in SELF_SUPERVISED),
    *(("xmoco", {"momentum": momentum}) for momentum in (0.0, 1.0)),
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
    ("cmacc", {"extra_layer": False, "embedding": 32, "normalised": True, "groups": 2}, {}),
]


@pytest.mark.parametrize(("method", "changes", "seen"), GRID_CASES, ids=str)
def test_steps_on_grids_of_characters_are_the_slow_ones(double, method, changes, seen):
    fast = learner(method, "multidigits", data=dataclasses.replace(data_of("multidigits"), **seen), **changes)
    assert fast.towers.trunks["audio"].name == "small_image"
    assert_same_training(fast, Slow(fast), 4)


@pytest.mark.parametrize("missing", MODALITIES)
def test_smoco_trains_with_one_modality_alone(double, missing):
    fast = learner("smoco", data=made_up(without=[missing]))
    assert fast.terms == (OTHER[missing], "loss")
    before = copy.deepcopy(fast.towers.trunks[missing].state_dict())
    assert_same_training(fast, Slow(fast), 4)
    assert_equal_states(fast.towers.trunks[missing].state_dict(), before)


# ---------------------------------------------------------------------------------------------- the start and the end


@pytest.mark.parametrize(("iterations", "steps"), [(0, 9), (5, 5), (9, 9), (20, 9)])
def test_a_training_ends_after_its_epochs_or_iterations(iterations, steps):
    assert learner("smoco", iterations=iterations).total_steps == steps


@pytest.mark.parametrize(("method", "changes"), [
    *((method, {}) for method in TRAINED), ("cmacc", {"sampler": "random"}),
])
def test_a_training_that_diverges_says_so(tmp_path, method, changes):
    fast = learner(method, learning_rate=1e30, **changes)
    with pytest.raises(NonFiniteLoss, match=r"at step [2-6]; lower|^step [2-6]: .* not finite.*; lower the learning"):
        finish(fit(fast, tmp_path, tqdm(disable=True), checkpoint_seconds=0))


@pytest.mark.parametrize("method", TRAINED)
def test_bfloat16_is_close_to_float32_and_all_is_encoded_in_it_but_clips_on_a_cpu(method):
    exact, rounded = (learner(method, precision=precision) for precision in ("float32", "bfloat16"))
    kinds = Counter()
    for module in [*rounded.towers.modules(), *rounded.keys.modules()]:
        if isinstance(module, (nn.Conv1d, nn.Conv3d)):
            axes = module.weight.ndim - 2
            module.register_forward_hook(lambda _, inputs, output, axes=axes: kinds.update([(axes, output.dtype)]))
    place = exact.terms.index("loss")
    for values, others in zip(trace(exact, 2), trace(rounded, 2), strict=True):
        assert others.isfinite().all() and others.dtype == torch.float32 and not torch.equal(values, others)
        torch.testing.assert_close(others[place], values[place], rtol=0.1, atol=0)
    assert set(kinds) == {(1, torch.bfloat16), (3, torch.float32)}
    stored = [*rounded.towers.state_dict().values(), *rounded.dictionaries.state_dict().values()]
    assert {value.dtype for value in stored} == {torch.float32, torch.int64}


# ---------------------------------------------------------------------------------------------- selection


def test_the_released_selection_takes_the_batch_for_candidates_too_and_excludes_nothing(monkeypatch):
    """The slow learner knows the other samplers."""
    seen, batches, own, chosen = [], [], 0, pretrain.select

    def watched(strategy, candidates, queries, inputs, *, excluded, **named):
        assert excluded is None
        picks = chosen(strategy, candidates, queries, inputs, excluded=excluded, **named)
        seen.append((candidates.clone(), picks))
        return picks

    monkeypatch.setattr(pretrain, "select", watched)
    fast = learner(sampler="released")
    take = fast.order.take
    monkeypatch.setattr(fast.order, "take", lambda: batches.append(take()) or batches[-1])
    for _ in range(7):
        before = {name: aged(fast, name) for name in MODALITIES}
        seen.clear()
        values = dict(zip(fast.terms, fast.step().tolist(), strict=True))
        for name, (candidates, picks) in zip(MODALITIES, seen, strict=True):
            pooled = [*batches[-1].tolist(), *fast.pooled[name].tolist()]
            items = [pooled[place] for place in picks]
            assert len(set(picks.tolist())) == len(picks) == 8 and torch.equal(candidates[8:], fast.pools[name])
            after_items, after_keys = aged(fast, name)
            assert after_items == before[name][0][8:] + items
            assert torch.equal(after_keys, torch.cat([before[name][1][8:], candidates[picks]]))
            assert values[f"categories_{name}"] == len({int(fast.data.categories[item]) for item in items})
            own += int((picks < 8).sum())
    assert own > 0


def test_coverage_counts_categories_beyond_the_number_of_items_and_none_of_the_unlabelled():
    data = made_up()
    categories = torch.where(torch.arange(len(data.labels)) % 4 == 0, -1, 700 + data.categories)
    for known in (categories, torch.full_like(categories, -1)):
        fast, expected = learner(data=dataclasses.replace(data, categories=known)), torch.zeros(2)
        for _ in range(4):
            values = fast.step()[-2:]
            for place, name in enumerate(MODALITIES):
                items = aged(fast, name)[0][-8:]
                assert values[place] == len({int(known[item]) for item in items} - {-1})
            expected += values
        assert fast.counted.tolist() == expected.tolist()
        reported = study.coverage(fast)
        assert [reported[f"categories_{name}"] for name in MODALITIES] == pytest.approx((expected / 4).tolist())


# ---------------------------------------------------------------------------------------------- taken up again


@pytest.mark.parametrize(("method", "changes"), [*((method, {}) for method in TRAINED), ("cmacc", {"renewed": True})])
def test_a_streamed_set_is_gathered_by_a_thread_and_changes_no_bit_wherever_it_is_saved(
    tmp_path, method, changes, monkeypatch
):
    make = functools.partial(learner, method, data=made_up(pretrain=16), epochs=2, dictionary=8, pool=16, **changes)
    resident, values, states = make(), [], []
    for _ in range(4):
        values.append(resident.step())
        states.append(copy.deepcopy(resident.state_dict()))
    monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device: False)
    by_main_thread, gathered = [], Pretrainer._gathered_batch
    monkeypatch.setattr(Pretrainer, "_gathered_batch", lambda self: (
        by_main_thread.append(threading.current_thread() is threading.main_thread()), gathered(self))[1])
    for saved in (0, 1, None):  # after this step
        streamed = make()
        assert streamed.data.streamed and not resident.data.streamed
        by_main_thread.clear()
        for step in range(4):
            assert torch.equal(streamed.step(), values[step]), (saved, step)
            if step == saved:
                torch.save(streamed.state_dict(), tmp_path / "state.pt")
                assert_equal_states(torch.load(tmp_path / "state.pt", weights_only=True), states[step])
                streamed = make()
                streamed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
        assert_equal_states(streamed.state_dict(), states[-1])
        assert saved is not None or by_main_thread == [True, False, False, False]  # and none after the last step


# ---------------------------------------------------------------------------------------------- what a step costs


def counted(method, batch, dictionary, pool, **changes):
    """Of a step within an epoch."""
    fast = learner(method, data=made_up(pretrain=140), batch=batch, dictionary=dictionary, pool=pool, **changes)
    trace(fast, 2)
    with Watch() as counts:
        fast.step()
    return counts


@pytest.mark.parametrize(("method", "sampler"), [*((method, "random") for method in TRAINED), ("cmacc", "ohem")])
def test_no_loop_over_samples_candidates_or_entries(method, sampler):
    counts = {counted(method, *sizes, sampler=sampler).count for sizes in ((8, 16, 32), (8, 64, 128), (16, 16, 32))}
    assert max(counts) - min(counts) <= 2
