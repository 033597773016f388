"""A learner of images as slow and plain as the papers' definitions, for `repro.image.pretrain` to agree with.

It has plain modules in float64, normalises ghost groups one after the other, and loops over keys and the parameters of
the momentum encoder.
"""

import copy
import math

import numpy as np
import pytest
import torch
from image_learners import DIGITS, by_name
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from repro.contrast import objectives
from repro.image import augment

METHODS = ("supervised", "moco", "ressl", "sce", "jcl", "vanilla")  # those of the papers


class Slow:
    """A learner in the state of a fresh `fast` one, whose seed was `seed`."""

    def __init__(self, fast, network, seed=3):
        recipe, data = fast.recipe, fast.data
        self.recipe, self.data, self.method = recipe, data, recipe.method
        head = [nn.Linear(layer.in_features, layer.out_features, layer.bias is not None)
                if isinstance(layer, nn.Linear) else nn.ReLU() if isinstance(layer, nn.ReLU)
                else nn.BatchNorm1d(layer.num_features) for layer in fast.model.head]
        modules = {"trunk": network(), "head": nn.Sequential(*head)}
        self.network = nn.ModuleDict(modules).double()
        self.network.load_state_dict(fast.model.state_dict())
        self.twin = copy.deepcopy(self.network)
        if self.method != "supervised":
            self.twin.load_state_dict(fast.keys.twin.state_dict())
        self.classifier = copy.deepcopy(fast.classifier).double()
        parameters = [*self.network.parameters(), *self.classifier.parameters()]
        self.optimiser = torch.optim.SGD(parameters, momentum=recipe.sgd_momentum, weight_decay=recipe.weight_decay)
        self.queue, self.oldest = [], 0
        if self.method != "supervised":
            self.queue = list(fast.dictionary.entries.double().clone())
        seeds = np.random.SeedSequence(seed).generate_state(4).tolist()[1:]  # the first is of the dictionary
        self.order, self.shuffle, self.views = (torch.Generator().manual_seed(each) for each in seeds)
        members = data.train if self.method == "supervised" else data.pretrain
        self.members = [place for place, chosen in enumerate(members.tolist()) if chosen]
        self.steps_per_epoch = len(self.members) // recipe.batch
        self.taken, self.waiting = 0, []

    def step(self):
        """The loss of one step."""
        recipe, epoch = self.recipe, self.taken // self.steps_per_epoch
        if self.taken % self.steps_per_epoch == 0:
            permutation = torch.randperm(len(self.members), generator=self.order).tolist()
            self.waiting = [self.members[place] for place in permutation]
        index, self.waiting = self.waiting[: recipe.batch], self.waiting[recipe.batch :]
        images = torch.stack([self.data.images[place] for place in index])
        names = [recipe.query_view] + [recipe.key_view] * (recipe.keys if self.method != "supervised" else 0)
        query_view, *key_views = [
            {"strong": augment.strong, "weak": augment.weak}[name](recipe.size, DIGITS)(images, self.views).double()
            for name in names
        ]
        if self.method == "supervised":
            logits = self.classifier(self.features(self.network, query_view, recipe.groups))
            loss = cross_entropy(logits, torch.tensor([self.data.labels[place] for place in index]))
            self.descend(loss, epoch)
        else:
            groups = 1 if recipe.whole_query else recipe.groups
            query = normalize(self.network["head"](self.features(self.network, query_view, groups)), dim=1)
            keys = self.encoded_keys(torch.cat(key_views)).chunk(recipe.keys)
            strength = recipe.strength * ((epoch + 1) / recipe.epochs if recipe.ramp else 1)
            loss = self.loss(query, torch.stack(keys, dim=1), torch.stack(self.queue), strength)
            self.descend(loss, epoch)
            for key in sum(keys) / recipe.keys:
                self.queue[self.oldest] = key
                self.oldest = (self.oldest + 1) % recipe.dictionary
            for own, other in zip(self.twin.parameters(), self.network.parameters(), strict=True):
                own.data = recipe.momentum * own.data + (1 - recipe.momentum) * other.data
        self.taken += 1
        return loss.item()

    def features(self, network, images, groups):
        """Of sample i in group i mod groups."""
        return torch.stack([network["trunk"](images[group::groups]) for group in range(groups)], dim=1).flatten(0, 1)

    @torch.no_grad()
    def encoded_keys(self, views):
        count = len(views)
        order = torch.randperm(count, generator=self.shuffle) if self.recipe.shuffle else torch.arange(count)
        encoded = normalize(self.twin["head"](self.features(self.twin, views[order], self.recipe.groups)), dim=1)
        keys = torch.empty_like(encoded)
        for row, place in zip(encoded, order.tolist(), strict=True):
            keys[place] = row
        return keys

    def loss(self, query, keys, queue, strength):
        """From queries (N, d), keys (N, M, d) and the queue (K, d); `tests/contrast` holds these against loops."""
        recipe, mean, t = self.recipe, keys.mean(1), self.recipe.temperature
        if self.method == "moco":
            return objectives.info_nce(query, mean, queue, t)
        if self.method == "ressl":
            return objectives.ressl(query, mean, queue, t, recipe.key_temperature)
        if self.method == "sce":
            return objectives.sce(query, mean, queue, t, recipe.key_temperature, recipe.weight, recipe.masked_positive)
        if self.method == "jcl":
            return objectives.jcl(query, keys, queue, t, strength)
        return objectives.vanilla(query, keys, queue, t)

    def descend(self, loss, epoch):
        """SGD at the rate of a cosine."""
        recipe, steps = self.recipe, self.steps_per_epoch
        progress = (self.taken if recipe.schedule == "step" else epoch * steps) / (recipe.epochs * steps)
        self.optimiser.param_groups[0]["lr"] = recipe.learning_rate * (1 + math.cos(math.pi * progress)) / 2
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()


def assert_same_training(fast, slow, steps):
    """Both take some steps; losses, all weights, statistics and the dictionary then agree."""
    for _ in range(steps):
        assert by_name(fast, fast.step())["loss"] == pytest.approx(slow.step(), rel=1e-4)
    pairs = [(fast.model, slow.network), (fast.classifier, slow.classifier)]
    if slow.method != "supervised":
        pairs.append((fast.keys.twin, slow.twin))
        torch.testing.assert_close(fast.dictionary.entries.double(), torch.stack(slow.queue), rtol=0, atol=2e-5)
        assert int(fast.dictionary.pointer) == slow.oldest
    for mine, expected in pairs:
        for (name, own), other in zip(mine.state_dict().items(), expected.state_dict().values(), strict=True):
            if fast.recipe.groups > 1 and ("running" in name or "tracked" in name):
                continue  # the slow learner's groups move them one after the other
            torch.testing.assert_close(own.double(), other.double(), rtol=1e-4, atol=2e-5, msg=f"{name}")
