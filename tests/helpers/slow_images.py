"""A learner of images as slow and plain as the papers' definitions, for `repro.image.pretrain` to agree with.

It has plain modules in float64. It puts the logits of all candidates side by side, makes covariances of keys,
normalises ghost groups one after the other, and loops over parameters and keys.
"""

import copy
import math

import numpy as np
import pytest
import torch
from image_learners import DIGITS, by_name
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax, normalize, softmax

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
        self.velocity = {}
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
        """From queries (N, d), keys (N, M, d) and the queue (K, d)."""
        recipe, t, first = self.recipe, self.recipe.temperature, torch.zeros(len(query), dtype=torch.int64)
        mean = keys.mean(1)

        def logits(key):
            return torch.cat([(query * key).sum(1, keepdim=True), query @ queue.T], dim=1) / t

        if self.method == "moco":
            return cross_entropy(logits(mean), first)
        if self.method == "vanilla":
            return torch.stack([cross_entropy(logits(key), first) for key in keys.unbind(1)]).mean()
        if self.method == "jcl":
            centred = keys - mean.unsqueeze(1)
            covariance = torch.einsum("nmi,nmj->nij", centred, centred) / keys.shape[1]
            spread = strength / (2 * t**2) * torch.einsum("ni,nij,nj->n", query, covariance, query)
            return cross_entropy(logits(mean) + spread.unsqueeze(1) * (torch.arange(len(queue) + 1) == 0), first) + (
                spread.mean()
            )
        relations = mean @ queue.T / recipe.key_temperature
        if self.method == "ressl":
            return -(softmax(relations, 1) * log_softmax(query @ queue.T / t, 1)).sum(1).mean()
        at_positive = torch.full((len(query), 1), -math.inf if recipe.masked_positive else 0.0)
        target = (1 - recipe.weight) * softmax(torch.cat([at_positive, relations], dim=1), 1)
        target[:, 0] += recipe.weight
        return -(target * log_softmax(logits(mean), 1)).sum(1).mean()

    def descend(self, loss, epoch):
        """SGD with momentum and weight decay, at the rate of a cosine."""
        recipe, steps = self.recipe, self.steps_per_epoch
        progress = (self.taken if recipe.schedule == "step" else epoch * steps) / (recipe.epochs * steps)
        rate = recipe.learning_rate * (1 + math.cos(math.pi * progress)) / 2
        parameters = [*self.network.parameters(), *self.classifier.parameters()]
        for parameter in parameters:
            parameter.grad = None
        loss.backward()
        for parameter in parameters:
            if parameter.grad is None:
                continue
            slope = parameter.grad + recipe.weight_decay * parameter.data
            self.velocity[parameter] = recipe.sgd_momentum * self.velocity.get(parameter, 0) + slope
            parameter.data = parameter.data - rate * self.velocity[parameter]


def assert_same_training(fast, slow, steps, *, rtol=1e-4):
    """Both take some steps; losses, all weights, statistics and the dictionary then agree.

    Args:
        rtol: of losses and values; values near zero, weights being of the order of 0.1, may differ by a fifth of it.
    """
    for _ in range(steps):
        assert by_name(fast, fast.step())["loss"] == pytest.approx(slow.step(), rel=rtol)
    pairs = [(fast.model, slow.network), (fast.classifier, slow.classifier)]
    if slow.method != "supervised":
        pairs.append((fast.keys.twin, slow.twin))
        torch.testing.assert_close(fast.dictionary.entries.double(), torch.stack(slow.queue), rtol=0, atol=rtol / 5)
        assert int(fast.dictionary.pointer) == slow.oldest
    for mine, expected in pairs:
        for (name, own), other in zip(mine.state_dict().items(), expected.state_dict().values(), strict=True):
            if fast.recipe.groups > 1 and ("running" in name or "tracked" in name):
                continue  # the slow learner's groups move them one after the other
            torch.testing.assert_close(own.double(), other.double(), rtol=rtol, atol=rtol / 5, msg=f"{name}")
