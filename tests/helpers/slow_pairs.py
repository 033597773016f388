"""A learner of pairs as slow and plain as the paper's definitions, for `repro.audiovisual.pretrain` to agree with.

It loops over samples, groups, candidates, parameters and keys, makes every gradient embedding by autograd and keeps its
dictionary as a list. Trunks, of one group each, views, and seeding by k-means++ over explicit rows are the package's:
they have tests of their own.
"""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from repro.audiovisual import MODALITIES, augment
from repro.audiovisual.model import Encoder
from repro.audiovisual.pretrain import OTHER
from repro.audiovisual.recipe import SELF_SUPERVISED
from repro.contrast.active import select


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
                picks = self.picks(name, hidden[OTHER[name]].detach(), given[OTHER[name]])
                items, rows = zip(*(self.pools[name][place] for place in picks), strict=True)
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

    def picks(self, name, hidden, given):
        """Places in the pool of as many candidates as the batch has pairs."""
        held, pool = {item for item, _ in self.dictionaries[name]}, self.pools[name]
        free = [place for place, (item, _) in enumerate(pool) if item not in held]
        rows = [row for _, row in pool]
        if self.recipe.sampler in ("gradient", "ohem"):
            losses, rows = zip(*(self.judged(OTHER[name], row, hidden, given) for row in rows), strict=True)
            if self.recipe.sampler == "ohem":
                return sorted(free, key=lambda place: -losses[place])[: self.recipe.batch]
        excluded = torch.tensor([place not in free for place in range(len(pool))])
        strategy = "random" if self.recipe.sampler == "random" else "feature"  # over these rows
        rows = torch.stack(rows)
        return select(strategy, rows, rows[:1], rows[:1], n_select=self.recipe.batch, excluded=excluded,
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
