"""A learner of pairs as slow and plain as the paper's definitions, for `repro.audiovisual.pretrain` to agree with.

It has plain modules, loops over samples, candidates, parameters and keys, makes every gradient embedding by autograd,
keeps its dictionary as a list and its Adam by hand.
"""

import copy
import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from repro.audiovisual import MODALITIES, augment
from repro.audiovisual.pretrain import OTHER
from repro.audiovisual.recipe import SELF_SUPERVISED


class PlainMean(nn.Module):
    def forward(self, maps):
        return maps.flatten(2).mean(2)


def plain(trunk, channels, width=32):
    """The small encoders as their docstrings describe them, of torch's own layers."""
    kinds = {3: (nn.Conv3d, nn.BatchNorm3d), 1: (nn.Conv1d, nn.BatchNorm1d), 2: (nn.Conv2d, nn.BatchNorm2d)}
    axes, widths = {
        "small_video": (3, (width // 16, width // 8, width // 4, width)),
        "small_audio": (1, (width // 4, width // 2, width // 2, width)),
        "small_image": (2, (width // 32, width // 16, width // 8, width // 4)),
    }[trunk]
    convolution, normalisation = kinds[axes]
    stages = []
    for place, (inputs, outputs) in enumerate(itertools.pairwise((channels, *widths))):
        kernel, stride, padding = (3, 2, 1) if place else (5, 2, 2)
        if trunk == "small_video" and place == 0:
            kernel, stride, padding = (1, 5, 5), (1, 2, 2), (0, 2, 2)
        layer = convolution(inputs, outputs, kernel, stride, padding, bias=False)
        stages.append(nn.Sequential(layer, normalisation(outputs), nn.ReLU()))
    if trunk == "small_video":
        return nn.Sequential(PlainMoving(), *stages, PlainMean())
    if trunk == "small_audio":
        return nn.Sequential(nn.BatchNorm1d(channels), *stages, PlainMean())
    read = nn.Linear(9 * widths[-1], width, bias=False)
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(3), nn.Flatten(), read, nn.BatchNorm1d(width), nn.ReLU())


class PlainMoving(nn.Module):
    """Every frame of a clip less the mean of all, frame by frame."""

    def forward(self, clips):
        frames = clips.unbind(2)
        return torch.stack([frame - sum(frames) / len(frames) for frame in frames], dim=2)


def last_of(trunk):
    """The last layer with weights: linear, or a convolution."""
    return [layer for layer in trunk.modules() if isinstance(layer, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d))][-1]


def applied(layer, given, weight):
    """What a layer with this weight makes of its inputs, averaged over positions."""
    if isinstance(layer, nn.Linear):
        return given @ weight.T
    convolve = {3: torch.conv1d, 4: torch.conv2d, 5: torch.conv3d}[weight.ndim]
    return convolve(given, weight, None, layer.stride, layer.padding).flatten(2).mean(2)


class Slow:
    """A learner in the state of a fresh `fast` one, whose seed was `seed`."""

    def __init__(self, fast, seed=3):
        recipe, data = fast.recipe, fast.data
        self.recipe, self.data = recipe, data
        self.modalities = [name for name in MODALITIES if data.has(name).any()]
        self.trunks, self.heads, self.classifiers = {}, {}, {}
        for name in self.modalities:
            trunk = fast.towers.trunks[name]
            self.trunks[name] = plain(trunk.name, trunk.channels, recipe.width)
            self.trunks[name].load_state_dict(trunk.layers.state_dict())
            self.heads[name] = copy.deepcopy(fast.towers.heads[name])
            if recipe.method == "supervised":
                self.classifiers[name] = copy.deepcopy(fast.classifiers[name])
        self.leaders = dict.fromkeys(MODALITIES)
        for name in self.modalities:  # whose last layer the momentum encoder of a modality has
            self.leaders[name] = OTHER[name] if recipe.method in ("xmoco", "cmacc") and recipe.extra_layer else name
        self.key_trunks = copy.deepcopy(self.trunks)
        self.key_heads = {name: copy.deepcopy(self.heads[self.leaders[name]]) for name in self.modalities}
        self.moments = {}
        seeds = np.random.SeedSequence(seed).generate_state(5).tolist()
        draws = [torch.Generator().manual_seed(each) for each in seeds]
        self.order, self.shuffle, self.views, self.crops, self.selection = draws
        self.members = [item for item in range(len(data.labels)) if data.pretrain[item]]
        self.steps_per_epoch = len(self.members) // recipe.batch
        self.taken, self.waiting, self.pools = 0, [], {}
        self.dictionaries = {}
        if recipe.method in SELF_SUPERVISED:
            for name in self.modalities:
                self.dictionaries[name] = self.encoded(name, recipe.dictionary)

    def drawn(self, count):
        """So many members, all of them before any comes again."""
        found = []
        while len(found) < count:
            order = torch.randperm(len(self.members), generator=self.order).tolist()
            found += [self.members[place] for place in order]
        return found[:count]

    def encoded(self, name, count):
        """[(item, key), ...] of so many members drawn."""
        items, pairs = self.drawn(count), []
        for first in range(0, count, self.recipe.batch):
            part = items[first : first + self.recipe.batch]
            keys = self.keys(name, self.augmented(self.data.view(name, torch.tensor(part), self.views)), shuffle=False)
            pairs += zip(part, keys, strict=True)
        return pairs

    def augmented(self, view):
        if view.ndim == 5:
            recipe = self.recipe
            draws = augment.draw(len(view), *view.shape[3:], recipe.size, recipe.greyscale, generator=self.crops)
            view = augment.apply(view, draws, recipe.size)
        return view.double()

    def features(self, trunk, view):
        """Of sample i in group i mod groups; keeps what its last layer with weights was given."""
        groups, given = self.recipe.groups, []
        handle = last_of(trunk).register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].detach()))
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

    def next_batch(self):
        if self.taken % self.steps_per_epoch == 0:
            order = torch.randperm(len(self.members), generator=self.order).tolist()
            self.waiting = [self.members[place] for place in order]
        index, self.waiting = self.waiting[: self.recipe.batch], self.waiting[self.recipe.batch :]
        return index

    def step(self):
        """Terms of one step, by name."""
        index = self.next_batch()
        terms = {"supervised": self.supervised, "smoco": self.within}.get(self.recipe.method, self.across)(index)
        self.taken += 1
        return terms

    def supervised(self, index):
        losses, labels = [], torch.stack([self.data.labels[item] for item in index])
        for name in self.modalities:
            view = self.augmented(self.data.view(name, torch.tensor(index), self.views))
            logits = self.classifiers[name](self.features(self.trunks[name], view))
            if labels.ndim == 1:
                losses.append(cross_entropy(logits, labels))
                continue
            cells, ends = [], np.cumsum(self.data.sizes)
            for cell, (size, end) in enumerate(zip(self.data.sizes, ends, strict=True)):
                cells.append(cross_entropy(logits[:, end - size : end], labels[:, cell]))
            losses.append(sum(cells) / len(cells))
        self.descend(sum(losses))
        return {"loss": sum(losses)}

    def within(self, index):
        losses, keys = {}, {}
        for name in self.modalities:
            first, second = self.data.twins(name, torch.tensor(index), self.views)
            query = self.finished(self.heads[name](self.features(self.trunks[name], self.augmented(first))))
            keys[name] = self.keys(name, self.augmented(second))
            losses[name] = self.contrast(query, keys[name], self.dictionaries[name], index)
        self.descend(sum(losses.values()))
        self.follow()
        for name in self.modalities:
            self.enqueue(name, index, keys[name])
        return losses | {"loss": sum(losses.values())}

    def across(self, index):
        views = {name: self.augmented(view) for name, view in
                 zip(MODALITIES, self.data.pair(torch.tensor(index), self.views), strict=True)}
        hidden, given = {}, {}
        for name in MODALITIES:
            hidden[name] = self.features(self.trunks[name], views[name])
            given[name] = self.given
        outputs = {name: self.heads[name](hidden[name]) for name in MODALITIES}
        keys = {name: self.keys(name, views[name]) for name in MODALITIES}
        counts, active = {}, self.recipe.method == "cmacc"
        if active and self.taken % self.steps_per_epoch == 0:
            self.pools = {name: self.encoded(name, self.recipe.pool) for name in MODALITIES}
        for name in MODALITIES if active else ():
            chosen = self.chosen(name, hidden[OTHER[name]].detach(), given[OTHER[name]])
            items, keys_chosen = zip(*(self.pools[name][place] for place in chosen), strict=True)
            if self.recipe.renewed:
                keys_chosen = self.keys(name, self.augmented(self.data.view(name, torch.tensor(items), self.views)))
            self.enqueue(name, items, keys_chosen)
            kinds = {int(self.data.categories[self.pools[name][place][0]]) for place in chosen}
            counts[f"categories_{name}"] = torch.tensor(float(len(kinds)))
        for name in () if active else MODALITIES:
            self.enqueue(name, index, keys[name])
        losses = {name: self.contrast(self.finished(outputs[name]), keys[OTHER[name]], self.dictionaries[OTHER[name]],
                                      index) for name in MODALITIES}
        self.descend(sum(losses.values()))
        self.follow()
        return losses | {"loss": sum(losses.values())} | counts

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

    def chosen(self, name, hidden, given):
        """Places in the pool of as many candidates as the batch has pairs."""
        recipe, pool = self.recipe, self.pools[name]
        held = {item for item, _ in self.dictionaries[name]}
        free = [place for place, (item, _) in enumerate(pool) if item not in held]
        if recipe.sampler == "random":
            scores = torch.rand(len(pool), generator=self.selection, dtype=torch.float64).tolist()
            return sorted(free, key=lambda place: -scores[place])[: recipe.batch]
        if recipe.sampler == "feature":
            rows = [row for _, row in pool]
        else:
            losses, rows = zip(*(self.judged(OTHER[name], row, hidden, given) for _, row in pool), strict=True)
        if recipe.sampler == "ohem":
            return sorted(free, key=lambda place: -losses[place])[: recipe.batch]
        return self.seeded(rows, free)

    def judged(self, name, candidate, hidden, given):
        """Loss of a candidate's pseudo-label by queries of `name`, and its gradient of the last layer, as a flat row.

        Without an extra layer that is the encoder's last one, as if what follows it were an average over positions.
        """
        last = last_of(self.trunks[name])
        layer = [*self.heads[name].parameters()] or [last.weight, torch.zeros(len(last.weight))]
        layer = [each.detach().clone().requires_grad_() for each in layer]
        if self.recipe.extra_layer:
            queries = hidden @ layer[0].T + layer[1]
        else:
            averaged = applied(last, given, layer[0]) + layer[1]
            queries = hidden + averaged - averaged.detach()
        queries = self.finished(queries)
        logits = torch.stack([candidate @ query for query in queries]) / self.recipe.posterior_temperature
        loss = cross_entropy(logits.unsqueeze(0), logits.argmax().unsqueeze(0))
        gradient = torch.autograd.grad(loss, layer)
        return loss.item(), torch.cat([each.flatten() for each in gradient])

    def seeded(self, rows, free):
        """k-means++ seeding over the rows that are free."""
        uniforms = torch.rand(self.recipe.batch, generator=self.selection, dtype=torch.float64).tolist()
        chosen = []
        for uniform in uniforms:
            weights = [0.0] * len(rows)
            for place in free:
                nearest = [(rows[place] - rows[seed]).square().sum().item() for seed in chosen]
                weights[place] = min(nearest, default=1.0) if place not in chosen else 0.0
            if not any(weights):  # all that are left equal one that was chosen
                weights = [float(place in free and place not in chosen) for place in range(len(rows))]
            passed = np.cumsum(weights) / sum(weights)
            chosen.append(int(np.searchsorted(passed, uniform, side="right")))
        return chosen

    def parameters(self):
        parts = (self.trunks, self.heads, self.classifiers)
        return [each for part in parts for module in part.values() for each in module.parameters()]

    def descend(self, loss):
        """Adam with its usual constants, at a rate that rises linearly first."""
        recipe, t = self.recipe, self.taken + 1
        rate = recipe.learning_rate * (t / recipe.warmup if t < recipe.warmup else 1)
        for parameter, slope in zip(self.parameters(), torch.autograd.grad(loss, self.parameters(), allow_unused=True),
                                    strict=True):
            if slope is None:
                continue
            first, second = self.moments.get(parameter, (0.0, 0.0))
            self.moments[parameter] = first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            parameter.data -= rate * (first / (1 - 0.9**t)) / ((second / (1 - 0.999**t)).sqrt() + 1e-8)

    def follow(self):
        m = self.recipe.momentum
        for name in self.modalities:
            modules = [(self.key_trunks[name], self.trunks[name]),
                       (self.key_heads[name], self.heads[self.leaders[name]])]
            for own, other in modules:
                for mine, theirs in zip(own.parameters(), other.parameters(), strict=True):
                    mine.data = m * mine.data + (1 - m) * theirs.data


def assert_same_training(fast, slow, steps):
    """Both take some steps; losses, choices, all weights, statistics and the dictionaries then agree.

    Of the fast learner the cross-entropy of labels alone is in float32.
    """
    rtol, atol = (1e-4, 1e-4) if fast.recipe.method == "supervised" else (1e-6, 1e-8)
    for _ in range(steps):
        found, expected = dict(zip(fast.terms, fast.step().tolist(), strict=True)), slow.step()
        assert list(found) == list(expected)
        assert found == pytest.approx({name: value.item() for name, value in expected.items()}, rel=rtol)
    pairs = []
    for name in slow.modalities:
        pairs += [(fast.towers.trunks[name].layers, slow.trunks[name]), (fast.towers.heads[name], slow.heads[name]),
                  (fast.keys.twin.trunks[name].layers, slow.key_trunks[name]),
                  (fast.keys.twin.heads[name], slow.key_heads[name])]
        pairs += [(fast.classifiers[name], slow.classifiers[name])] if slow.classifiers else []
    for mine, expected in pairs:
        for (name, own), other in zip(mine.state_dict().items(), expected.state_dict().values(), strict=True):
            if fast.recipe.groups > 1 and ("running" in name or "tracked" in name):
                continue  # the slow learner's groups move them one after the other
            torch.testing.assert_close(own, other, rtol=rtol, atol=atol, msg=name)
    assert set(fast.dictionaries) == set(slow.dictionaries)
    for name, expected in slow.dictionaries.items():
        items, keys = aged(fast, name)
        assert items == [item for item, _ in expected]
        torch.testing.assert_close(keys, torch.stack([key for _, key in expected]), rtol=rtol, atol=atol)


def aged(fast, name):
    """Items and keys of a dictionary, the oldest first."""
    found = []
    for dictionary in (fast.entries[name], fast.dictionaries[name]):
        found.append(dictionary.entries.roll(-int(dictionary.pointer), 0))
    return found[0].flatten().tolist(), found[1]
