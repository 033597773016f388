"""Pre-training on made-up pairs, its steps held against the slow ones of `slow_pairs`; both then compute in float64."""

import copy
import dataclasses
import functools
import threading
from collections import Counter

import pytest
import torch
from made_up_pairs import grids, made_up, tiny
from slow_pairs import Slow, aged, assert_same_training
from states import assert_equal_states, resumed_anywhere
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from tqdm import tqdm

from repro.audiovisual import MODALITIES, augment, pretrain
from repro.audiovisual.pretrain import OTHER, Pretrainer
from repro.audiovisual.recipe import METHODS, SELF_SUPERVISED, VARIANTS
from repro.run.fit import NonFiniteLoss, fit

CPU = torch.device("cpu")
TRAINED = [method for method in METHODS if method != "scratch"]
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def double(monkeypatch):
    """Whatever is trained in the test, is trained in float64."""
    augmented = Pretrainer._augmented
    monkeypatch.setattr(Pretrainer, "_augmented", lambda self, view: augmented(self, view).double())
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@functools.cache
def data_of(dataset="synthetic"):
    return grids() if dataset == "multidigits" else made_up()


def learner(method="cmacc", dataset="synthetic", *, data=None, seed=3, **changes):
    return Pretrainer(tiny(method, dataset, **changes), data or data_of(dataset), seed, CPU)


def trace(fast, steps):
    """The terms of so many steps."""
    return torch.stack([fast.step() for _ in range(steps)])


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


@pytest.mark.parametrize("method", SELF_SUPERVISED)
def test_steps_on_grids_of_characters_are_the_slow_ones(double, method):
    fast = learner(method, "multidigits")
    assert fast.towers.trunks["audio"].name == "small_image"
    assert_same_training(fast, Slow(fast), 4)


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


def with_silent(share=3):
    """Pairs of which every third, or another share, has no sound; which they are."""
    data = made_up()
    silent = torch.arange(len(data.labels)) % share == 0
    rows = (data.first_row.diff() * ~silent).cumsum(0)
    kept = (~silent).repeat_interleave(data.first_row.diff())
    first_row = torch.cat([torch.zeros(1, dtype=torch.int64), rows])
    return dataclasses.replace(data, mel=data.mel[kept], first_row=first_row), silent


def test_pairs_without_one_of_the_modalities_are_left_out():
    data, silent = with_silent()
    for method in set(TRAINED) - {"supervised"}:
        fast = learner(method, data=data, pool=16, dictionary=8)
        assert fast.members.tolist() == (data.pretrain & ~silent).nonzero().flatten().tolist()
        assert trace(fast, 2).isfinite().all()


@pytest.mark.parametrize("groups", [1, 2])
def test_supervision_shows_silent_clips_to_the_encoder_of_video_alone(monkeypatch, groups):
    data, silent = with_silent()
    fast = learner("supervised", data=data, groups=groups)
    assert fast.members.tolist() == data.pretrain.nonzero().flatten().tolist()
    asked, view = [], type(data).view
    monkeypatch.setattr(type(data), "view", lambda own, modality, index, generator:
                        asked.append((modality, index)) or view(own, modality, index, generator))
    assert trace(fast, 6).isfinite().all()
    batches = [index for modality, index in asked if modality == "video"]
    assert [len(index) for index in batches] == [8] * 6 and any(silent[index].any() for index in batches)
    audible = [index[~silent[index]] for index in batches]
    expected = [index[: len(index) // groups * groups].tolist() for index in audible if len(index) >= 2 * groups]
    assert [index.tolist() for modality, index in asked if modality == "audio"] == expected != []


def test_supervision_goes_on_where_a_batch_is_nearly_silent():
    """Of a single sound there is nothing to normalise by; the encoder of sound waits."""
    data, silent = with_silent(share=1)
    alone = int(data.pretrain.nonzero()[0])
    rows = torch.zeros(len(silent), dtype=torch.int64)
    rows[alone] = 8
    first_row = torch.cat([torch.zeros(1, dtype=torch.int64), rows.cumsum(0)])
    mel = torch.zeros(8, data.mel.shape[1])
    fast = learner("supervised", data=dataclasses.replace(data, mel=mel, first_row=first_row))
    before = copy.deepcopy(fast.towers.trunks["audio"].state_dict())
    assert trace(fast, 3).isfinite().all()
    for name, value in fast.towers.trunks["audio"].state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_limit_draws_the_same_clips_for_every_method_and_seed():
    whole = learner("smoco", pool=16).members.tolist()
    drawn = [learner(method, seed=seed, clips=17, pool=16, dictionary=8).members.tolist()
             for method in TRAINED for seed in (0, 1)]
    assert all(each == drawn[0] for each in drawn)
    assert len(drawn[0]) == 17 and set(drawn[0]) < set(whole) and drawn[0] == sorted(drawn[0])
    assert drawn[0] != whole[:17]
    assert learner("smoco", clips=1000, pool=16).members.tolist() == whole


# ---------------------------------------------------------------------------------------------- selection


def watched(monkeypatch):
    """Arguments and result of every selection, as they come."""
    seen, select = [], pretrain.select

    def watch(strategy, candidates, queries, inputs, **named):
        copies = [each.clone() for each in (candidates, queries, inputs)]
        chosen = select(strategy, candidates, queries, inputs, **named)
        seen.append((strategy, *copies, named, chosen))
        return chosen

    monkeypatch.setattr(pretrain, "select", watch)
    return seen


@pytest.mark.parametrize("pool", [24, 80])
@pytest.mark.parametrize("sampler", ["gradient", "feature", "random", "ohem"])
def test_what_is_selected_was_not_in_the_dictionary_and_is_its_newest(monkeypatch, sampler, pool):
    fast, seen = learner(sampler=sampler, pool=pool), watched(monkeypatch)
    for _ in range(7):
        before = {name: aged(fast, name) for name in MODALITIES}
        seen.clear()
        values = dict(zip(fast.terms, fast.step().tolist(), strict=True))
        for name, (_, candidates, _, _, named, chosen) in zip(MODALITIES, seen, strict=True):
            items = [int(fast.pooled[name][place]) for place in chosen]
            assert len(set(chosen.tolist())) == len(chosen) == 8
            assert not set(items) & set(before[name][0])
            assert set(items) <= set(fast.members.tolist())
            assert named["excluded"].tolist() == [item in before[name][0] for item in fast.pooled[name].tolist()]
            after_items, after_keys = aged(fast, name)
            assert after_items == before[name][0][8:] + items
            assert torch.equal(after_keys, torch.cat([before[name][1][8:], candidates[chosen]]))
            assert values[f"categories_{name}"] == len({int(fast.data.categories[item]) for item in items})


def test_renewed_keys_are_as_old_as_the_positives(monkeypatch):
    """With embeddings that the age of the encoder alone decides, a dictionary of renewed keys has many ages."""
    for renewed in (False, True):
        fast, age = learner(renewed=renewed, dictionary=24, pool=80), [0.0]
        encode = fast._keys_in_order
        monkeypatch.setattr(fast, "_keys_in_order", lambda name, view, encode=encode, age=age: (
            torch.full_like(encode(name, view), age[0])
        ))
        for step in range(fast.steps_per_epoch):
            age[0] = float(step + 1)
            fast.step()
        for name in MODALITIES:
            ages = aged(fast, name)[1][:, 0].tolist()
            assert ages == ([1.0] * 8 + [2.0] * 8 + [3.0] * 8 if renewed else [1.0] * 24)


def test_the_pool_is_drawn_every_epoch_and_repeats_no_pair_before_all_were_drawn():
    for pool, most in ((24, 1), (80, 3)):
        fast, pools = learner(pool=pool), []
        for step in range(9):
            fast.step()
            for name in MODALITIES:
                pools.append((fast.pooled[name].tolist(), fast.pools[name].clone()))
            items, keys = pools[-2]
            if step % 3:
                assert items == pools[-4][0] and torch.equal(keys, pools[-4][1])
            elif step:
                assert items != pools[-4][0]
        assert len({tuple(items) for items, _ in pools}) == 6  # of each epoch and modality
        for items, keys in pools:
            counts = Counter(items)
            assert len(items) == len(keys) == pool
            assert max(counts.values()) == most and set(counts) <= set(fast.members.tolist())
            if pool > 30:
                assert len(counts) == 30 and set(counts.values()) == {2, 3}


def test_several_clips_of_an_item_in_the_pool_are_other_windows():
    fast = learner(pool=80)
    fast.step()
    for name in MODALITIES:
        assert len(fast.pools[name].unique(dim=0)) > 70  # some clips are as short as a window


def test_candidates_are_judged_by_the_other_modality_before_the_loss_sees_them(monkeypatch):
    fast, seen = learner(normalised=True), watched(monkeypatch)
    outputs = {}
    for name in MODALITIES:
        fast.towers.heads[name].register_forward_hook(
            lambda _, inputs, output, name=name: outputs.update({name: (inputs[0].detach(), output.detach())})
        )
    fast.step()
    for name, (_, candidates, queries, inputs, named, _) in zip(MODALITIES, seen, strict=True):
        hidden, embedding = outputs[OTHER[name]]
        assert torch.equal(inputs, hidden) and torch.equal(queries, embedding)  # not yet of unit length
        torch.testing.assert_close(candidates.norm(dim=1), torch.ones(24))
        assert named["normalised"] and named["n_select"] == 8


def test_the_released_selection_takes_the_batch_for_candidates_too(monkeypatch):
    fast, seen = learner(sampler="released"), watched(monkeypatch)
    batches, next_batch = [], fast._next_batch
    monkeypatch.setattr(fast, "_next_batch", lambda: batches.append(next_batch()) or batches[-1])
    own_items = 0
    for _ in range(6):
        seen.clear()
        fast.step()
        for name, other in zip(MODALITIES, reversed(seen), strict=True):
            strategy, candidates, _, _, named, chosen = seen[MODALITIES.index(name)]
            assert strategy == "released" and named["excluded"] is None
            assert torch.equal(candidates[:8], other[2])  # what judges the other modality's candidates
            assert torch.equal(candidates[8:], fast.pools[name])
            items = [*batches[-1].tolist(), *fast.pooled[name].tolist()]
            found, keys = aged(fast, name)
            assert found[-8:] == [items[place] for place in chosen]
            assert torch.equal(keys[-8:], candidates[chosen])
            own_items += int((chosen < 8).sum())
    assert own_items > 0


def test_coverage_counts_categories_beyond_the_number_of_items_and_none_of_the_unlabelled(monkeypatch):
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


def test_only_cmacc_logs_categories():
    for method in TRAINED:
        losses = MODALITIES if method != "supervised" else ()
        counted = ("categories_video", "categories_audio") if method == "cmacc" else ()
        assert learner(method).terms == (*losses, "loss", *counted)


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


def test_supervision_leaves_keys_and_heads_alone():
    fast = learner("supervised")
    before = copy.deepcopy(fast.state_dict())
    trace(fast, 2)
    after = fast.state_dict()
    for part, prefix in (("keys", ""), ("towers", "heads")):
        for name, value in after[part].items():
            if name.startswith(prefix):
                assert torch.equal(value, before[part][name]), name
    assert not torch.equal(after["classifiers"]["video.weight"], before["classifiers"]["video.weight"])


def test_the_learning_rate_rises_to_its_value():
    for warmup, expected in ((4, [0.25, 0.5, 0.75, 1, 1, 1]), (1, [1] * 6), (0, [1] * 6)):
        fast, found = learner("xmoco", warmup=warmup), []
        for _ in range(6):
            fast.step()
            found.append(fast.optimiser.param_groups[0]["lr"] / 1e-2)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(("iterations", "steps"), [(0, 9), (5, 5), (9, 9), (20, 9)])
def test_a_training_ends_after_its_epochs_or_iterations(iterations, steps):
    assert learner("smoco", iterations=iterations).total_steps == steps


def test_shuffling_matters_where_groups_are_normalised_apart():
    for groups, same in ((1, True), (2, False)):
        losses = [trace(learner("xmoco", groups=groups, shuffle=shuffle), 3) for shuffle in (True, False)]
        assert torch.allclose(*losses) == same


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


@pytest.mark.parametrize("method", TRAINED)
def test_every_epoch_is_a_permutation_without_its_rest(method, monkeypatch):
    fast = learner(method)
    batches, next_batch = [], fast._next_batch
    monkeypatch.setattr(fast, "_next_batch", lambda: batches.append(next_batch()) or batches[-1])
    trace(fast, 9)
    epochs = [torch.cat(batches[first : first + 3]).tolist() for first in (0, 3, 6)]
    for items in epochs:
        assert len(items) == len(set(items)) == 24 and set(items) < set(fast.members.tolist())
    assert len({frozenset(items) for items in epochs}) > 1  # another rest is dropped
    assert fast.data.pretrain[fast.members].all() and len(fast.members) == 30


def test_supervision_leaves_unlabelled_pairs_out():
    data = made_up()
    labels = torch.where(torch.arange(len(data.labels)) % 2 == 0, data.labels, -1)
    fast = learner("supervised", data=dataclasses.replace(data, labels=labels))
    assert (labels[fast.members] >= 0).all() and data.pretrain[fast.members].all()
    assert len(fast.members) == int((data.pretrain & (labels >= 0)).sum())
    assert trace(fast, 2).isfinite().all()


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


def test_equal_seeds_train_equally():
    first, second = learner(), learner()
    assert torch.equal(trace(first, 4), trace(second, 4))
    assert_equal_states(first.state_dict(), second.state_dict())
    assert not torch.equal(trace(learner(seed=4), 4), trace(learner(), 4))


def test_the_first_dictionary_holds_keys_of_members_none_twice_before_all_are_there():
    fast = learner("xmoco", dictionary=40)
    for name in MODALITIES:
        items, keys = aged(fast, name)
        counts = Counter(items)
        assert set(counts) == set(fast.members.tolist()) and set(counts.values()) == {1, 2}
        assert keys.shape == (40, 8) and keys.isfinite().all() and keys.std(0).min() > 0


def test_scratch_takes_no_steps(tmp_path):
    fast = learner("scratch")
    before = copy.deepcopy(fast.state_dict())
    assert fit(fast, tmp_path, tqdm(disable=True))["steps"] == 0
    assert_equal_states(fast.state_dict(), before)


@pytest.mark.parametrize("method", TRAINED)
def test_a_batch_larger_than_the_split_is_refused(method):
    if method != "cmacc":  # which must have some to select beside the dictionary
        assert learner(method, batch=30, dictionary=30, pool=30).steps_per_epoch == 1
    with pytest.raises(ValueError, match="batch=32 exceeds the 30 training pairs of synthetic; lower it"):
        learner(method, batch=32, dictionary=32, pool=64)


@pytest.mark.parametrize(
    ("batch", "dictionary", "pool", "spare"),
    [(8, 24, 24, 0), (8, 16, 16, 0), (8, 24, 64, 12), (8, 32, 96, 0), (4, 24, 28, 4), (4, 28, 32, 2)],
)
def test_a_dictionary_that_may_hold_all_candidates_is_refused(batch, dictionary, pool, spare):
    """With 30 pairs: 64 candidates are two clips of each pair, and of four a third."""
    changes = {"batch": batch, "dictionary": dictionary, "pool": pool}
    if spare >= batch:
        assert trace(learner(**changes, epochs=2), 2 * (30 // batch)).isfinite().all()
        return
    with pytest.raises(ValueError, match=rf"dictionary={dictionary} may hold all but {spare} candidates of pool={pool}"
                                         rf", drawn from 30 pairs, and batch={batch} are selected"):
        learner(**changes)
    assert trace(learner("xmoco", **changes), 1).isfinite().all()


@pytest.mark.parametrize("missing", MODALITIES)
@pytest.mark.parametrize("method", ["xmoco", "cmacc"])
def test_contrast_across_modalities_is_refused_where_one_is_missing(method, missing):
    message = f"method='{method}' needs video and sound; synthetic has {OTHER[missing]} alone; choose smoco"
    with pytest.raises(ValueError, match=message):
        learner(method, data=made_up(without=[missing]))


@pytest.mark.parametrize("missing", MODALITIES)
@pytest.mark.parametrize("method", ["scratch", "supervised"])
def test_baselines_take_one_modality(method, missing):
    fast = learner(method, data=made_up(without=[missing]))
    assert fast.terms == ("loss",)
    assert method == "scratch" or trace(fast, 2).isfinite().all()


def test_supervision_by_grids_is_refused():
    with pytest.raises(ValueError, match=r"supervised' needs one label for every pair; multidigits has .* 2 cells"):
        learner("supervised", "multidigits")


def test_frames_smaller_than_the_crop_are_refused():
    with pytest.raises(ValueError, match="size=12 exceeds the frames of synthetic, 9 x 10 pixels; lower it"):
        learner("smoco", size=12)


# ---------------------------------------------------------------------------------------------- learning


def test_supervision_learns_to_tell_colours_and_pitches():
    losses = trace(fast := learner("supervised", epochs=48, greyscale=0.0), 144)[:, 0]
    assert losses[:3].mean() > 1.5 and losses[-9:].mean() < 0.5
    fast.towers.eval()
    index = torch.arange(len(fast.data.labels))
    for name in MODALITIES:
        view = fast.data.centred(name, index)[:, 0]
        view = augment.centred(view, 8) if name == "video" else view
        predicted = fast.classifiers[name](fast.towers(name, view)[1]).argmax(1)
        assert (predicted == fast.data.labels).float().mean() > 0.9


@pytest.mark.parametrize("method", SELF_SUPERVISED)
def test_contrast_lowers_its_loss(method):
    fast = learner(method, epochs=10, momentum=0.5, normalised=True, temperature=0.2)
    losses = trace(fast, 30)[:, fast.terms.index("loss")]
    assert losses[-6:].mean() < 0.9 * losses[:3].mean()


# ---------------------------------------------------------------------------------------------- resuming


@pytest.mark.parametrize(
    ("method", "dataset", "changes"),
    [
        *((method, "synthetic", {}) for method in TRAINED),
        *(("cmacc", "synthetic", {"sampler": sampler}) for sampler in ("feature", "random", "ohem", "released")),
        ("cmacc", "synthetic", {"groups": 2, "normalised": True, "precision": "bfloat16"}),
        ("cmacc", "synthetic", {"renewed": True}),
        ("cmacc", "multidigits", {}),
        ("smoco", "multidigits", {"groups": 2}),
    ],
    ids=str,
)
def test_a_training_resumed_at_any_step_ends_with_the_same_bits(tmp_path, method, dataset, changes):
    data = grids(train=16) if dataset == "multidigits" else made_up(pretrain=16)
    make = functools.partial(learner, method, dataset, data=data, epochs=2, dictionary=8, pool=16, **changes)
    resumed_anywhere(make, tmp_path, steps=4)


@pytest.mark.parametrize(("method", "changes"), [*((each, {}) for each in TRAINED), ("cmacc", {"renewed": True})])
def test_streaming_changes_no_bit_wherever_the_run_is_saved_and_resumed(tmp_path, method, changes, monkeypatch):
    make = functools.partial(learner, method, data=made_up(pretrain=16), epochs=2, dictionary=8, pool=16, **changes)
    resident, values, states = make(), [], []
    for _ in range(4):
        values.append(resident.step())
        states.append(copy.deepcopy(resident.state_dict()))
    monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device: False)
    for saved in (*range(4), None):  # after this step; else there is nothing to drop on the way
        streamed = make()
        assert streamed.data.streamed and not resident.data.streamed
        for step in range(4):
            assert torch.equal(streamed.step(), values[step]), (saved, step)
            if step == saved:
                torch.save(streamed.state_dict(), tmp_path / "state.pt")
                assert_equal_states(torch.load(tmp_path / "state.pt", weights_only=True), states[step])
                streamed = make()
                streamed.step()  # what is gathered ahead here is dropped
                streamed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
        assert_equal_states(streamed.state_dict(), states[-1])


@pytest.mark.parametrize(("method", "changes"), [*((each, {}) for each in TRAINED), ("cmacc", {"renewed": True})])
def test_the_next_batch_of_a_streamed_set_is_gathered_during_the_step(method, changes, monkeypatch):
    """Before the weights change, by another thread, and none after the last step; never so of a resident set."""
    made, gathered = [], Pretrainer._gathered_batch

    def watched(self):
        made.append(threading.current_thread() is threading.main_thread())
        return gathered(self)

    monkeypatch.setattr(Pretrainer, "_gathered_batch", watched)
    for streamed in (False, True):
        monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device, streamed=streamed: not streamed)
        fast, begun, descend = learner(method, **changes), [], Pretrainer._descend
        made.clear()
        monkeypatch.setattr(
            fast, "_descend", lambda loss, fast=fast, begun=begun, descend=descend: (
                begun.append(fast.batches._begun is not None), descend(fast, loss)
            ),
        )
        trace(fast, fast.total_steps)
        assert begun == [streamed] * (fast.total_steps - 1) + [False]
        assert made == [True] + [not streamed] * (fast.total_steps - 1)


def test_another_kind_of_device_is_refused_in_words():
    state = learner().state_dict() | {"generator": torch.zeros(16, dtype=torch.uint8)}  # the size of CUDA's
    with pytest.raises(ValueError, match="of a run on another kind of device than cpu"):
        learner().load_state_dict(state)


# ---------------------------------------------------------------------------------------------- precision, guard


@pytest.mark.parametrize("method", TRAINED)
def test_bfloat16_is_close_to_float32_and_everything_is_encoded_in_it(method):
    exact, rounded = (learner(method, precision=precision) for precision in ("float32", "bfloat16"))
    for entries in rounded.dictionaries.values():
        assert entries.entries.dtype == torch.float32
    kinds = Counter()
    for module in [*rounded.towers.modules(), *rounded.keys.modules()]:
        if isinstance(module, (nn.Conv1d, nn.Conv3d)):
            module.register_forward_hook(lambda _, inputs, output: kinds.update([output.dtype]))
    for values, others in zip(trace(exact, 2), trace(rounded, 2), strict=True):
        assert others.isfinite().all() and others.dtype == torch.float32
        assert not torch.equal(values, others)
        place = exact.terms.index("loss")
        torch.testing.assert_close(others[place], values[place], rtol=0.1, atol=0)
    assert set(kinds) == {torch.bfloat16}
    for name, value in rounded.towers.state_dict().items():
        assert value.dtype in (torch.float32, torch.int64), name


@pytest.mark.parametrize("sampler", [None, "random", "gradient"])
@pytest.mark.parametrize("method", TRAINED)
def test_a_training_that_diverges_says_so(tmp_path, method, sampler):
    if method != "cmacc" and sampler:
        pytest.skip("of cmacc alone")
    fast = learner(method, learning_rate=1e30, **({"sampler": sampler} if sampler else {}))
    with pytest.raises(NonFiniteLoss, match=r"at step [2-6]; lower|^step [2-6]: .* not finite.*; lower the learning"):
        fit(fast, tmp_path, tqdm(disable=True), checkpoint_seconds=0)


# ---------------------------------------------------------------------------------------------- cost


class Counted(TorchDispatchMode):
    """How many operations torch is asked for, and the most elements of a tensor they make."""

    def __init__(self):
        super().__init__()
        self.count = self.largest = 0

    def __torch_dispatch__(self, function, kinds, arguments=(), named=None):
        made = function(*arguments, **(named or {}))
        self.count += 1
        for each in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(each, torch.Tensor):
                self.largest = max(self.largest, each.numel())
        return made


def counted(method, **changes):
    """Of a step within an epoch."""
    fast = learner(method, data=made_up(pretrain=140), **changes)
    trace(fast, 2)
    with Counted() as counts:
        fast.step()
    return counts


@pytest.mark.parametrize(
    ("method", "sampler"), [*((method, "random") for method in TRAINED), ("cmacc", "ohem")]
)
def test_no_loop_over_samples_candidates_or_entries(method, sampler):
    counts = {counted(method, sampler=sampler, batch=batch, dictionary=dictionary, pool=pool).count
              for batch, dictionary, pool in ((8, 16, 32), (8, 64, 128), (16, 16, 32))}
    assert max(counts) - min(counts) <= 2


@pytest.mark.parametrize("sampler", ["gradient", "feature"])
def test_a_loop_over_the_selected_alone(sampler):
    counts = {changes: counted("cmacc", sampler=sampler, batch=changes[0], dictionary=changes[1], pool=changes[2]).count
              for changes in ((8, 16, 64), (8, 32, 128), (16, 16, 64))}
    assert counts[8, 16, 64] == counts[8, 32, 128]
    assert 0 < counts[16, 16, 64] - counts[8, 16, 64] < 2 * 8 * 40  # some thirty operations each


@pytest.mark.parametrize("sampler", ["gradient", "feature", "random", "ohem"])
def test_nothing_is_materialised_beyond_factors_and_similarities(sampler):
    """Gradients of 120 candidates would be 120 * 32 * 32 numbers; the largest maps of clips are 8 * 2 * 4 * 4 * 4."""
    found = counted("cmacc", sampler=sampler, batch=8, dictionary=16, pool=120, embedding=32).largest
    weights = max(parameter.numel() for parameter in learner(embedding=32).towers.parameters())
    clips = 8 * 3 * 4 * 9 * 10
    assert found <= max(120 * 32, weights, clips)


def first_free(*_, n_select, excluded, **named):
    """Instead of `select`, which waits for what it checks on entry."""
    return excluded.int().argsort(stable=True)[:n_select]


@pytest.mark.parametrize("method", TRAINED)
def test_a_step_reads_no_value(method, meta, monkeypatch):
    """Views have a test of their own; these are not random."""
    def augmented(view):
        return augment.in_the_middle(view.to(meta), fast.recipe.size)

    fast = learner(method, groups=2)
    monkeypatch.setattr(pretrain, "select", first_free)
    monkeypatch.setattr(fast, "device", meta)
    monkeypatch.setattr(fast, "_augmented", augmented)
    for module in (fast.towers, fast.classifiers, fast.keys, fast.dictionaries, fast.entries):
        module.to(meta)
    for name in ("counted", "categories"):
        setattr(fast, name, getattr(fast, name).to(meta))
    fast.optimiser = torch.optim.Adam([*fast.towers.parameters(), *fast.classifiers.parameters()])
    for _ in range(fast.steps_per_epoch + 1):
        assert fast.step().device == meta
    monkeypatch.setattr(fast, "_augmented", lambda view: augmented(view) * augmented(view).max().item())
    with pytest.raises(RuntimeError, match="meta"):
        fast.step()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize(
    ("dataset", "streamed"), [("synthetic", False), ("synthetic", True), ("multidigits", False)]
)
@pytest.mark.parametrize("method", TRAINED)
def test_a_step_on_cuda_does_not_wait_for_the_device(method, dataset, streamed, monkeypatch):
    if (method, dataset) == ("supervised", "multidigits"):
        pytest.skip("refused")
    monkeypatch.setattr(pretrain, "select", first_free)
    monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device: not streamed)
    fast = Pretrainer(tiny(method, dataset, groups=2), data_of(dataset), 0, torch.device("cuda"))
    assert fast.data.streamed == streamed
    fast.step()  # cuDNN prepares itself
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        values = torch.stack([fast.step() for _ in range(2 * fast.steps_per_epoch)])
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    assert values.isfinite().all()
