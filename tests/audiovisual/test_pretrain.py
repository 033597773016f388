"""Pre-training on made-up pairs: its steps are those of a slow learner, in float64; what enters its dictionaries;
taken up again, from memory or streamed, it ends with the same bits; and what a step costs.

The slow learner loops over samples, groups, candidates, parameters and keys, makes every gradient embedding by autograd
and keeps its dictionary as a list. Trunks, of one group each, views, and seeding by k-means++ over explicit rows are
the package's: they have tests of their own.
"""

import copy
import dataclasses
import functools
import threading
from collections import Counter

import numpy as np
import pytest
import torch
from ended import finish
from made_up_pairs import TRAINED, data_of, learner, made_up, trace
from stand_in import Orders
from states import assert_equal_states
from torch import nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from repro.audiovisual import MODALITIES, VIEWS, augment, study
from repro.audiovisual.model import Encoder
from repro.audiovisual.pretrain import OTHER, Pretrainer
from repro.audiovisual.recipe import SELF_SUPERVISED
from repro.contrast.active import select
from repro.run.fit import NonFiniteLoss, fit

pytestmark = pytest.mark.usefixtures("one_thread")


class Slow:
    """A learner in the state of a fresh `fast` one, whose seed was `seed`."""

    def __init__(self, fast, seed=3):
        recipe, data = self.recipe, self.data = fast.recipe, fast.data
        self.modalities = [name for name in MODALITIES if data.has(name).any()]
        self.trunks, self.classifiers = nn.ModuleDict(), copy.deepcopy(fast.classifiers)
        for name in self.modalities:
            trunk = fast.towers.trunks[name]
            self.trunks[name] = Encoder(trunk.name, recipe.width, channels=trunk.channels)
            self.trunks[name].load_state_dict(trunk.state_dict())
        self.heads = nn.ModuleDict({name: copy.deepcopy(fast.towers.heads[name]) for name in self.modalities})
        crosses = recipe.method in ("xmoco", "cmacc") and recipe.extra_layer
        self.leaders = {name: self.heads[OTHER[name] if crosses else name] for name in self.modalities}
        self.key_trunks = {name: copy.deepcopy(self.trunks[name]) for name in self.modalities}
        self.key_heads = {name: copy.deepcopy(self.leaders[name]) for name in self.modalities}
        self.adam = torch.optim.Adam([*self.trunks.parameters(), *self.heads.parameters(),
                                      *self.classifiers.parameters()], foreach=False)
        draws = np.random.SeedSequence(seed).generate_state(5).tolist()
        self.order, self.shuffle, self.views, self.crops, self.selection = (
            torch.Generator().manual_seed(draw) for draw in draws)
        self.members = [item for item in range(len(data.labels)) if data.pretrain[item]]
        self.steps_per_epoch = len(self.members) // recipe.batch
        self.taken, self.waiting, self.pools, self.dictionaries = 0, [], {}, {}
        for name in self.modalities if recipe.method in SELF_SUPERVISED else ():
            self.dictionaries[name] = self.encoded(name, recipe.dictionary)

    def encoded(self, name, count):
        """[(item, key), ...] of so many members drawn, all of them before any comes again."""
        items, pairs = [], []
        while len(items) < count:
            order = torch.randperm(len(self.members), generator=self.order).tolist()
            items += [self.members[place] for place in order]
        for first in range(0, count, self.recipe.batch):
            part = items[first : min(first + self.recipe.batch, count)]
            pairs += zip(part, self.keys(name, self.view(name, part), shuffle=False), strict=True)
        return pairs

    def view(self, name, items):
        return self.augmented(self.data.view(name, torch.tensor(items), self.views))

    def augmented(self, view):
        recipe = self.recipe
        return augment.at_random(view, recipe.size, recipe.greyscale, generator=self.crops).double()

    def features(self, trunk, view):
        """Of sample i in group i mod groups; keeps what its last layer with weights was given."""
        groups, given = self.recipe.groups, []
        handle = trunk.last_layer.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].detach()))
        features = torch.stack([trunk(view[group::groups]) for group in range(groups)], dim=1).flatten(0, 1)
        handle.remove()
        self.given = torch.stack(given, dim=1).flatten(0, 1)
        return features

    def finished(self, embedding):
        return embedding / embedding.norm(dim=1, keepdim=True) if self.recipe.normalised else embedding

    @torch.no_grad()
    def keys(self, name, view, shuffle=True):
        order = list(range(len(view)))
        if shuffle and self.recipe.shuffle and self.recipe.groups > 1:
            order = torch.randperm(len(view), generator=self.shuffle).tolist()
        rows = self.finished(self.key_heads[name](self.features(self.key_trunks[name], view[order])))
        return torch.stack([rows[order.index(place)] for place in range(len(view))])

    def step(self):
        """Terms of one step, by name."""
        if self.taken % self.steps_per_epoch == 0:
            order = torch.randperm(len(self.members), generator=self.order).tolist()
            self.waiting = [self.members[place] for place in order]
        index, self.waiting = self.waiting[: self.recipe.batch], self.waiting[self.recipe.batch :]
        terms = {"supervised": self.supervised, "smoco": self.within}.get(self.recipe.method, self.across)(index)
        self.taken += 1
        return terms

    def supervised(self, index):
        losses, labels = {}, self.data.labels[index].view(len(index), -1)
        for name in self.modalities:
            logits = self.classifiers[name](self.features(self.trunks[name], self.view(name, index)))
            ends = np.cumsum(self.data.sizes)
            cells = [cross_entropy(logits[:, end - size : end], labels[:, cell])
                     for cell, (size, end) in enumerate(zip(self.data.sizes, ends, strict=True))]
            losses[name] = sum(cells) / len(cells)
        return {"loss": self.descend(losses)}

    def within(self, index):
        losses, keys = {}, {}
        for name in self.modalities:
            first, second = self.data.twins(name, torch.tensor(index), self.views)
            query = self.finished(self.heads[name](self.features(self.trunks[name], self.augmented(first))))
            keys[name] = self.keys(name, self.augmented(second))
            losses[name] = self.contrast(query, keys[name], self.dictionaries[name], index)
        loss = self.descend(losses)
        for name in self.modalities:
            self.enqueue(name, index, keys[name])
        return losses | {"loss": loss}

    def across(self, index):
        pair = self.data.pair(torch.tensor(index), self.views)
        views = {name: self.augmented(view) for name, view in zip(MODALITIES, pair, strict=True)}
        hidden, given, counts = {}, {}, {}
        for name in MODALITIES:
            hidden[name], given[name] = self.features(self.trunks[name], views[name]), self.given
        queries = {name: self.finished(self.heads[name](hidden[name])) for name in MODALITIES}
        keys = {name: self.keys(name, views[name]) for name in MODALITIES}
        if self.recipe.method == "xmoco":
            for name in MODALITIES:
                self.enqueue(name, index, keys[name])
        else:
            if self.taken % self.steps_per_epoch == 0:
                self.pools = {name: self.encoded(name, self.recipe.pool) for name in MODALITIES}
            for name in MODALITIES:
                pool = self.pools[name]
                if self.recipe.sampler == "released":
                    pool = [*zip(index, queries[name].detach(), strict=True), *pool]
                picks = self.picks(name, pool, hidden[OTHER[name]].detach(), given[OTHER[name]])
                items, rows = zip(*(pool[place] for place in picks), strict=True)
                self.enqueue(name, items, self.keys(name, self.view(name, items)) if self.recipe.renewed else rows)
                counts[f"categories_{name}"] = torch.tensor(float(len({int(self.data.categories[i]) for i in items})))
        losses = {name: self.contrast(queries[name], keys[OTHER[name]], self.dictionaries[OTHER[name]], index)
                  for name in MODALITIES}
        return losses | {"loss": self.descend(losses)} | counts

    def contrast(self, queries, keys, dictionary, index):
        """The mean over a batch of the cross-entropy with the key first and the entries of other items after it."""
        losses = []
        for query, key, item in zip(queries, keys, index, strict=True):
            negatives = [row for other, row in dictionary if other != item or not self.recipe.own_excluded]
            if self.recipe.method == "xmoco" and not self.recipe.own_excluded:  # the key itself has entered
                negatives = [row for row in negatives if not torch.equal(row, key)]
            logits = torch.stack([query @ row for row in (key, *negatives)]) / self.recipe.temperature
            losses.append(torch.logsumexp(logits, 0) - logits[0])
        return sum(losses) / len(losses)

    def enqueue(self, name, items, keys):
        self.dictionaries[name] = [*self.dictionaries[name], *zip(items, keys, strict=True)][-self.recipe.dictionary :]

    def picks(self, name, pool, hidden, given):
        """Places in the pool of as many candidates as the batch has pairs."""
        sampler = self.recipe.sampler
        held = {item for item, _ in self.dictionaries[name]} if sampler != "released" else ()
        free = [place for place, (item, _) in enumerate(pool) if item not in held]
        rows = [row for _, row in pool]
        if sampler in ("gradient", "ohem"):
            losses, rows = zip(*(self.judged(OTHER[name], row, hidden, given) for row in rows), strict=True)
            if sampler == "ohem":
                return sorted(free, key=lambda place: -losses[place])[: self.recipe.batch]
        rows = queries = torch.stack(rows)
        if sampler == "released":
            queries = self.heads[OTHER[name]](hidden).detach()
        excluded = torch.tensor([place not in free for place in range(len(pool))])
        strategy = "feature" if sampler == "gradient" else sampler  # over these rows
        return select(strategy, rows, queries, queries, n_select=self.recipe.batch, excluded=excluded,
                      generator=self.selection).tolist()

    def judged(self, name, candidate, hidden, given):
        """Loss of a candidate's pseudo-label by queries of `name`, and its gradient of the last layer, as a flat row.

        Without an extra layer that is the encoder's last one, as if what follows it were an average over positions.
        """
        last = self.trunks[name].last_layer
        layer = [*self.heads[name].parameters()] or [last.weight, torch.zeros(len(last.weight))]
        weight, bias = layer = [part.detach().clone().requires_grad_() for part in layer]
        if self.recipe.extra_layer:
            queries = hidden @ weight.T + bias
        else:
            convolve = {2: torch.nn.functional.linear, 3: torch.conv1d, 4: torch.conv2d, 5: torch.conv3d}[weight.ndim]
            made = convolve(given, weight, *(() if weight.ndim == 2 else (None, last.stride, last.padding)))
            averaged = made.view(*made.shape[:2], -1).mean(2) + bias
            queries = hidden + averaged - averaged.detach()
        logits = torch.stack([candidate @ query for query in self.finished(queries)])
        loss = cross_entropy(logits[None] / self.recipe.posterior_temperature, logits.argmax()[None])
        return loss.item(), torch.cat([part.flatten() for part in torch.autograd.grad(loss, layer)])

    def descend(self, losses):
        """Adam at a rate that rises linearly first, then the exponential moving average; the sum of the losses."""
        loss, recipe, m = sum(losses.values()), self.recipe, self.recipe.momentum
        self.adam.param_groups[0]["lr"] = recipe.learning_rate * min(1, (self.taken + 1) / max(1, recipe.warmup))
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        followed = [(self.key_trunks[name], self.trunks[name]) for name in self.modalities]
        followed += [(self.key_heads[name], self.leaders[name]) for name in self.modalities]
        for own, other in followed if recipe.method in SELF_SUPERVISED else ():
            for mine, theirs in zip(own.parameters(), other.parameters(), strict=True):
                mine.data = m * mine.data + (1 - m) * theirs.data
        return loss.detach()


def assert_same_training(fast, slow, steps):
    """Both take some steps; losses, choices, all weights, statistics and the dictionaries then agree.

    Of the fast learner the cross-entropy of labels alone is in float32.
    """
    rtol, atol = (1e-4, 1e-4) if fast.recipe.method == "supervised" else (1e-6, 1e-8)
    for _ in range(steps):
        terms, expected = dict(zip(fast.terms, fast.step().tolist(), strict=True)), slow.step()
        assert list(terms) == list(expected)
        assert terms == pytest.approx({name: value.item() for name, value in expected.items()}, rel=rtol)
    for name in slow.modalities:
        pairs = [(fast.towers.trunks[name], slow.trunks[name]), (fast.towers.heads[name], slow.heads[name]),
                 (fast.keys.twin.trunks[name], slow.key_trunks[name]),
                 (fast.keys.twin.heads[name], slow.key_heads[name]), (fast.classifiers, slow.classifiers)]
        for mine, other in pairs:
            for (part, own), value in zip(mine.state_dict().items(), other.state_dict().values(), strict=True):
                if fast.recipe.groups == 1 or not ("running" in part or "tracked" in part):  # slow groups move these
                    torch.testing.assert_close(own, value, rtol=rtol, atol=atol, msg=part)
    assert set(fast.dictionaries) == set(slow.dictionaries)
    for name, expected in slow.dictionaries.items():
        items, keys = aged(fast, name)
        assert items == [item for item, _ in expected]
        torch.testing.assert_close(keys, torch.stack([key for _, key in expected]), rtol=rtol, atol=atol)


def aged(fast, name):
    """Items and keys of a dictionary, the oldest first."""
    items, keys = (part.entries.roll(-int(part.pointer), 0) for part in (fast.entries[name], fast.dictionaries[name]))
    return items.flatten().tolist(), keys


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
    *(("cmacc", {"sampler": sampler}) for sampler in ("feature", "random", "ohem", "released")),
    ("smoco", {"extra_layer": False, "embedding": 32, "normalised": True, "temperature": 0.3}),
    ("xmoco", {"extra_layer": False, "embedding": 32, "own_excluded": False}),
    *(("cmacc", UNIT | changes) for changes in ({}, {"sampler": "ohem"}, {"extra_layer": False})),
    ("cmacc", {"sampler": "ohem", "extra_layer": False}),
    ("supervised", {"groups": 2}), ("smoco", {"groups": 2, "own_excluded": False}),
    ("xmoco", {"groups": 2, "normalised": True, "momentum": 0.0}),
    ("cmacc", {"groups": 4, "shuffle": False, "own_excluded": False}), ("cmacc", {"renewed": True, "groups": 2}),
    ("cmacc", {"pool": 64}),  # more than there are pairs
    ("xmoco", {"dictionary": 40, "momentum": 1.0}),  # the same
    ("xmoco", {"warmup": 0, "iterations": 5}),  # which ends a training and changes no step
    ("smoco", {"greyscale": 0.5, "size": 9}),
]


@pytest.mark.parametrize(("method", "changes"), CASES, ids=str)
def test_four_steps_over_two_epochs_are_the_slow_ones(double, method, changes):
    fast = learner(method, **changes)
    assert fast.steps_per_epoch == 3
    assert_same_training(fast, Slow(fast), 4)


GRID_CASES = [
    *((method, {}, {}) for method in ("supervised", "smoco")),
    *((method, {}, {"redrawn": True, "augmented": True}) for method in ("supervised", "xmoco", "cmacc")),
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


@pytest.mark.parametrize(("iterations", "steps"), [(0, 9), (5, 5), (9, 9), (20, 9)])
def test_a_training_ends_after_its_epochs_or_iterations(iterations, steps):
    assert learner("smoco", iterations=iterations).total_steps == steps


@pytest.mark.parametrize(("method", "changes"), [("smoco", {}), ("cmacc", {}), ("cmacc", {"sampler": "random"})])
def test_a_training_that_diverges_says_so(tmp_path, method, changes):
    fast = learner(method, learning_rate=1e30, **changes)
    with pytest.raises(NonFiniteLoss, match=r"at step [2-6]; lower|^step [2-6]: .* not finite.*; lower the learning"):
        finish(fit(fast, tmp_path, tqdm(disable=True), checkpoint_seconds=0))


@pytest.mark.parametrize("method", ["smoco", "cmacc"])
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


@pytest.mark.parametrize(("method", "changes"), [("supervised", {}), ("smoco", {}), ("cmacc", {"renewed": True})])
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


def operations(method, batch, dictionary, pool, **changes):
    """How many there are in a step within an epoch."""
    fast = learner(method, data=made_up(pretrain=140), batch=batch, dictionary=dictionary, pool=pool, **changes)
    trace(fast, 2)
    with Orders(reads=True) as orders:
        fast.step()
    return len(orders.noted)


@pytest.mark.parametrize(("method", "sampler"), [("smoco", "random"), ("cmacc", "random"), ("cmacc", "ohem")])
def test_no_loop_over_samples_candidates_or_entries(method, sampler):
    counts = {operations(method, *sizes, sampler=sampler) for sizes in ((8, 16, 32), (8, 64, 128), (16, 16, 32))}
    assert max(counts) - min(counts) <= 2
