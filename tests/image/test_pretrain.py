"""Pre-training on made-up images, its steps held against slow ones written from the papers' definitions.

The slow learner has plain modules in float64. It puts the logits of all candidates side by side, makes covariances of
keys, normalises ghost groups one after the other, and loops over parameters and keys.
"""

import copy
import dataclasses
import itertools
import math

import made_up_images
import numpy as np
import pytest
import torch
import torchvision
from made_up_images import made_up
from PIL import Image
from sklearn.neighbors import KNeighborsClassifier
from states import assert_equal_states, resumed_anywhere
from torch import nn
from torch.nn.functional import cosine_similarity, cross_entropy, log_softmax, normalize, softmax
from tqdm import tqdm

from repro.image import augment, pretrain
from repro.image.augment import NORMALISATION, CentredView, ShiftedView
from repro.image.data import load
from repro.image.model import trunk
from repro.image.pretrain import Pretrainer, learning_rate
from repro.image.recipe import CONCERNED, METHODS, VARIANTS, paper
from repro.run.fit import NonFiniteLoss, fit

CPU = torch.device("cpu")
DIGITS = NORMALISATION["digits"]
TINY = {"size": 8, "resize": 10, "batch": 8, "epochs": 3, "dictionary": 20, "projection": 6, "momentum": 0.9,
        "warmup": 0, "learning_rate": 0.05, "precision": "float32", "channels_last": False, "groups": 1}
TRAINED = [method for method in METHODS if method != "random"]
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def network(request, monkeypatch):
    """What makes the trunk with plain normalisation: a tiny one, unless a test asks for a ResNet-18."""
    kind = getattr(request, "param", "tiny")
    if kind == "tiny":
        made_up_images.use_tiny_trunk(monkeypatch)
        return lambda: made_up_images.tiny_trunk(nn.BatchNorm2d)

    def resnet18():
        trunk = torchvision.models.resnet18()
        trunk.fc = nn.Identity()
        if kind == "small stem":
            trunk.conv1, trunk.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        return trunk

    return resnet18


def tiny(method="moco", **changes):
    return paper("digits", method, **TINY | changes)


def learner(method="moco", *, data=None, seed=3, **changes):
    return Pretrainer(tiny(method, **changes), data or made_up(), seed, CPU)


def trace(fast, steps):
    """The terms of so many steps."""
    return torch.stack([fast.step() for _ in range(steps)])


def by_name(fast, values):
    return dict(zip(fast.terms, values.tolist(), strict=True))


# ---------------------------------------------------------------------------------------------- the slow learner


class Slow:
    """A learner in the state of a fresh `fast` one, whose seed was `seed`."""

    def __init__(self, fast, network, seed=3, method=None):
        recipe, data = fast.recipe, fast.data
        self.recipe, self.data, self.method = recipe, data, method or recipe.method
        head = [nn.Linear(layer.in_features, layer.out_features, layer.bias is not None)
                if isinstance(layer, nn.Linear) else nn.ReLU() if isinstance(layer, nn.ReLU)
                else nn.BatchNorm1d(layer.num_features) for layer in fast.model.head]
        modules = {"trunk": network(), "head": nn.Sequential(*head)}
        self.network = nn.ModuleDict(modules).double()
        self.network.load_state_dict(fast.model.state_dict())
        self.twin = copy.deepcopy(self.network)
        self.classifier = copy.deepcopy(fast.classifier).double()
        self.velocity = {}
        self.queue, self.oldest = list(fast.dictionary.entries.double()), 0
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
            logits = self.classifier(self.features(self.network, query_view))
            loss = cross_entropy(logits, torch.tensor([self.data.labels[place] for place in index]))
            self.descend(loss, epoch)
        else:
            query = normalize(self.network["head"](self.features(self.network, query_view)), dim=1)
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

    def features(self, network, images):
        """Of sample i in group i mod groups."""
        groups = self.recipe.groups
        return torch.stack([network["trunk"](images[group::groups]) for group in range(groups)], dim=1).flatten(0, 1)

    @torch.no_grad()
    def encoded_keys(self, views):
        count = len(views)
        order = torch.randperm(count, generator=self.shuffle) if self.recipe.shuffle else torch.arange(count)
        encoded = normalize(self.twin["head"](self.features(self.twin, views[order])), dim=1)
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

        if self.method in ("moco", "moco on the mean key"):
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


def assert_same_training(fast, slow, steps, *, atol=2e-5):
    """Both take some steps; losses, all weights, statistics and the dictionary then agree."""
    for _ in range(steps):
        assert by_name(fast, fast.step())["loss"] == pytest.approx(slow.step(), rel=1e-4)
    pairs = [(fast.model, slow.network), (fast.keys.twin, slow.twin), (fast.classifier, slow.classifier)]
    for mine, expected in pairs:
        for (name, own), other in zip(mine.state_dict().items(), expected.state_dict().values(), strict=True):
            if fast.recipe.groups > 1 and ("running" in name or "tracked" in name):
                continue  # the slow learner's groups move them one after the other
            torch.testing.assert_close(own.double(), other.double(), rtol=1e-4, atol=atol, msg=f"{name}")
    torch.testing.assert_close(fast.dictionary.entries.double(), torch.stack(slow.queue), rtol=0, atol=atol)
    assert int(fast.dictionary.pointer) == slow.oldest


@pytest.mark.parametrize(
    ("network", "method"),
    [("small stem", "sce"), *(("large stem", method) for method in TRAINED)],
    indirect=["network"],
)
def test_steps_of_a_resnet_are_the_slow_ones(request, network, method):
    """A weight moves by some 0.1 a step; float32 next to a kink of ReLU takes another way for up to 0.001 of it."""
    small = request.node.callspec.params["network"] == "small stem"
    keys = 2 if method in ("jcl", "vanilla") else 1
    fast = learner(method, small=small, keys=keys, batch=16, learning_rate=0.01)
    assert_same_training(fast, Slow(fast, network), 2, atol=1e-3)


@pytest.mark.parametrize("method", TRAINED)
def test_five_steps_over_two_epochs_are_the_slow_ones(network, method):
    fast = learner(method)
    assert fast.steps_per_epoch == 2
    assert_same_training(fast, Slow(fast, network), 5)


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("moco", {"groups": 2}),
        ("sce", {"groups": 4, "shuffle": False}),
        ("jcl", {"groups": 2}),
        ("supervised", {"groups": 2}),
        ("sce", {"weight": 0.0}),
        ("sce", {"weight": 1.0}),
        ("sce", {"masked_positive": False, "key_temperature": 1.0}),
        ("jcl", {"ramp": False}),
        ("jcl", {"strength": 0.0}),
        ("jcl", {"keys": 1}),
        ("vanilla", {"keys": 3}),
        ("moco", {"schedule": "epoch"}),
        ("moco", {"weight_decay": 0.3}),
        ("supervised", {"weight_decay": 0.3}),
        ("moco", {"weight_decay": 0.0, "sgd_momentum": 0.0}),
        ("moco", {"momentum": 0.0}),
        ("moco", {"momentum": 1.0}),
        ("moco", {"dictionary": 3}),  # fewer than a batch
        ("ressl", {"query_view": "weak", "key_view": "strong"}),
        ("moco", {"head": "moco_v2"}),
        ("jcl", {"head": "sce", "size": 12, "resize": 12}),
        ("moco", {"batch": 20}),
        ("supervised", {"query_view": "strong"}),
    ],
    ids=str,
)
def test_steps_away_from_the_defaults_are_the_slow_ones(network, method, changes):
    fast = learner(method, **changes)
    assert_same_training(fast, Slow(fast, network), 3)


def test_shuffling_matters_where_groups_are_normalised_apart():
    for groups, same in ((1, True), (2, False)):
        losses = [trace(learner(groups=groups, shuffle=shuffle), 3) for shuffle in (True, False)]
        assert torch.allclose(*losses, rtol=1e-4) == same


@pytest.mark.parametrize("method", ["moco", "supervised"])
def test_unlabeled_images_are_for_pre_training_and_labelled_ones_for_supervision(network, method):
    fast = learner(method, data=made_up(train=17, unlabeled=25))
    assert fast.steps_per_epoch == {"moco": 3, "supervised": 2}[method]
    assert_same_training(fast, Slow(fast, network), 4)


def test_supervision_leaves_keys_and_head_alone():
    fast = learner("supervised")
    before = copy.deepcopy(fast.state_dict())
    trace(fast, 2)
    after = fast.state_dict()
    for part, prefix in (("keys", ""), ("dictionary", ""), ("model", "head.")):
        for name, value in after[part].items():
            if name.startswith(prefix):
                assert torch.equal(value, before[part][name]), name
    assert not torch.equal(after["classifier"]["weight"], before["classifier"]["weight"])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("method", TRAINED)
def test_a_step_reads_no_value(method, groups, meta, monkeypatch):
    """Views have a test of their own, and the neighbours that are looked at ten times in a training may wait."""
    fast = learner(method, groups=groups)
    images = torch.empty(8, 3, 8, 8, device=meta)
    monkeypatch.setattr(fast, "device", meta)
    monkeypatch.setattr(fast, "_augmented", lambda pictures: [images for _ in pictures])
    monkeypatch.setattr(fast, "_nearest_neighbour", lambda: 0.0)
    for module in (fast.model, fast.classifier, fast.keys, fast.dictionary):
        module.to(meta)
    fast.optimiser = torch.optim.SGD([*fast.model.parameters(), *fast.classifier.parameters()], lr=0.1)
    for _ in range(fast.steps_per_epoch + 1):
        assert fast.step().device == meta
    monkeypatch.setattr(fast, "_augmented", lambda pictures: [images * images.max().item() for _ in pictures])
    with pytest.raises(RuntimeError, match="meta"):
        fast.step()


# ---------------------------------------------------------------------------------------------- relations of methods


@pytest.mark.parametrize("strength", [0.0, 4.0, 100.0])
def test_jcl_of_one_key_is_moco(strength):
    moco, jcl = learner("moco"), learner("jcl", keys=1, strength=strength)
    torch.testing.assert_close(trace(moco, 4), trace(jcl, 4))
    for own, other in zip(moco.model.parameters(), jcl.model.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)


def test_jcl_without_strength_is_moco_on_the_mean_key(network):
    fast = learner("jcl", keys=3, strength=0.0)
    assert_same_training(fast, Slow(fast, network, method="moco on the mean key"), 4)


def test_keys_and_strength_change_jcl():
    losses = [trace(learner("jcl", **changes), 2)[1, 0].item() for changes in ({}, {"keys": 3}, {"strength": 9.0})]
    assert len({round(loss, 4) for loss in losses}) == 3


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_the_logged_parts_of_sce_make_its_loss(weight):
    fast = learner("sce", weight=weight, temperature=0.15, key_temperature=0.06)
    assert fast.terms == ("InfoNCE", "ReSSL", "Ceil", "loss", "knn1")
    for values in trace(fast, 4):
        found = by_name(fast, values)
        expected = weight * found["InfoNCE"] + (1 - weight) * (found["ReSSL"] + found["Ceil"])
        assert found["loss"] == pytest.approx(expected, rel=1e-5)
        assert len({round(found[part], 3) for part in ("InfoNCE", "ReSSL", "Ceil")}) == 3


def test_a_positive_that_is_not_masked_gives_another_loss():
    masked, leaking = (
        trace(learner("sce", masked_positive=value, key_temperature=1.0), 3)[:, 3] for value in (True, False)
    )
    assert ((masked - leaking).abs() > 1e-3).all()


@pytest.mark.parametrize("method", [name for name in TRAINED if name != "sce"])
def test_other_methods_log_their_loss_and_the_nearest_neighbour(method):
    assert learner(method).terms == ("loss", "knn1")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_changes_the_numbers(variant):
    method = "jcl" if variant in ("constant_strength", "four_keys") else "sce"
    common = {"batch": 16, "key_temperature": 1.0}  # with a sharp target the logit of 0 has hardly any weight
    usual, changed = (learner(method, **common | changes) for changes in ({}, VARIANTS[variant]))
    losses = [trace(each, 3)[:, -2] for each in (usual, changed)]
    assert losses[1].isfinite().all()
    assert not torch.allclose(*losses, rtol=1e-4)


@pytest.mark.parametrize("method", TRAINED)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_changes_the_methods_that_it_concerns(variant, method):
    """Of `supervised`, whose classifier is drawn after the projection, with the usual classifier."""
    if variant == "four_keys" and method not in CONCERNED[variant]:
        with pytest.raises(ValueError, match=f"keys=4 needs the method jcl or vanilla; {method} has one key a query"):
            tiny(method, **VARIANTS[variant])
        return
    common = {"batch": 16, "key_temperature": 1.0} if method != "supervised" else {"batch": 16}
    usual, changed = (learner(method, **common | changes) for changes in ({}, VARIANTS[variant]))
    changed.classifier.load_state_dict(usual.classifier.state_dict())
    losses = [trace(each, 3)[:, -2] for each in (usual, changed)]
    assert torch.equal(*losses) == (method not in CONCERNED[variant])


# ---------------------------------------------------------------------------------------------- rates and strengths


def test_the_learning_rate_follows_a_table():
    recipe = tiny(epochs=5, warmup=2, learning_rate=0.3)
    warm = np.linspace(0, 0.3, 8).tolist()  # two epochs of four steps, the last one at the full rate
    cosine = [0.15 + 0.15 * math.cos(math.pi * k / 12) for k in range(12)]
    found = [learning_rate(recipe, step, 4) for step in range(20)]
    assert found == pytest.approx(warm + cosine)
    assert found[0] == 0 and found[7] == found[8] == pytest.approx(0.3)
    assert found[19] > 0 and learning_rate(recipe, 20, 4) == pytest.approx(0)


@pytest.mark.parametrize(("schedule", "every"), [("step", 1), ("epoch", 7)])
def test_without_warm_up_the_learning_rate_is_torchs_cosine(schedule, every):
    epochs, steps = 6, 7
    recipe = tiny(epochs=epochs, learning_rate=0.03, schedule=schedule)
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.03)
    torchs = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=epochs * steps // every)
    for step in range(epochs * steps):
        assert learning_rate(recipe, step, steps) == pytest.approx(torchs.get_last_lr()[0])
        optimiser.step()
        if (step + 1) % every == 0:
            torchs.step()


@pytest.mark.parametrize(("epochs", "warmup", "rates"), [(1, 5, [0, 0.1, 0.2]), (1, 1, [0, 0.5, 1]), (2, 2, [0, 0.2])])
def test_a_training_that_ends_in_its_warm_up(epochs, warmup, rates):
    recipe = tiny(epochs=epochs, warmup=warmup, learning_rate=1.0)
    steps = {5: 3, 1: 3, 2: 3}[warmup]
    expected = {5: 1 / 14, 1: 1 / 2, 2: 1 / 5}[warmup]
    found = [learning_rate(recipe, step, steps) for step in range(epochs * steps)]
    assert found == pytest.approx([expected * step for step in range(epochs * steps)])


def test_a_warm_up_of_one_step_is_a_step_at_rate_zero():
    recipe = tiny(epochs=3, warmup=1, learning_rate=1.0)
    assert [learning_rate(recipe, step, 1) for step in range(3)] == pytest.approx([0, 1, 0.5])


def test_steps_take_the_rate_of_the_schedule():
    fast = learner(epochs=3, warmup=1, learning_rate=0.2)
    before = copy.deepcopy(fast.model.state_dict())
    found = []
    for _ in range(6):
        fast.step()
        found.append(fast.optimiser.param_groups[0]["lr"])
        if len(found) == 1:  # at rate zero
            assert all(torch.equal(own, before[name]) for name, own in fast.model.named_parameters())
    assert found == pytest.approx([0, 0.2, 0.2, *(0.1 + 0.1 * math.cos(math.pi * k / 4) for k in (1, 2, 3))])


def test_the_strength_is_ramped_by_epoch():
    fast = learner("jcl", strength=6.0)
    found = []
    for _ in range(6):
        found.append(fast.strength())
        fast.step()
    assert found == pytest.approx([2, 2, 4, 4, 6, 6])
    fast = learner("jcl", strength=6.0, ramp=False)
    fast.step()
    assert fast.strength() == 6.0


# ---------------------------------------------------------------------------------------------- order and views


def numbered(count, **parts):
    """Images of one colour each, whose red says which image it is."""
    images = torch.zeros(count, 3, 10, 10, dtype=torch.uint8)
    images[:, 0] = torch.arange(count, dtype=torch.uint8)[:, None, None] * 5
    nothing = torch.zeros(count, dtype=torch.bool)
    split = {"pretrain": nothing, "train": nothing, "test": nothing} | parts
    return dataclasses.replace(made_up(), images=images, labels=torch.arange(count) % 3, **split)


def watched(module):
    """The inputs of a module's calls, as they come."""
    seen = []
    module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    return seen


def numbers(views):
    """Which of the numbered images weak views show."""
    return ((views[:, 0].mean((1, 2)) * 0.5 + 0.5) * 255 / 5).round().int().tolist()


@pytest.mark.parametrize("method", ["moco", "supervised"])
def test_every_epoch_is_a_permutation_without_its_rest(method):
    even = torch.arange(42) % 2 == 0
    data = numbered(42, pretrain=even, train=~even, test=even & (torch.arange(42) < 4))
    fast = learner(method, data=data, query_view="weak", key_view="weak")
    members = set(range(0 if method == "moco" else 1, 42, 2))
    queries = watched(fast.model if method == "moco" else fast.model.trunk)
    epochs = []
    for _ in range(3):
        queries.clear()
        trace(fast, fast.steps_per_epoch)
        shown = [numbers(views) for views in queries if fast.model.training and len(views) == 8]
        epochs.append(list(itertools.chain(*shown)))
    for shown in epochs:
        assert len(shown) == len(set(shown)) == 16 and set(shown) < members
    assert len({tuple(shown) for shown in epochs}) == 3
    assert len({frozenset(shown) for shown in epochs}) > 1  # another rest is dropped


def test_query_and_keys_show_the_same_images():
    data = numbered(24, pretrain=torch.ones(24, dtype=torch.bool), train=torch.arange(24) > 3,
                    test=torch.arange(24) < 4)
    fast = learner("jcl", data=data, query_view="weak", key_view="weak", keys=3, shuffle=False)
    queries, keys = watched(fast.model), watched(fast.keys.twin)
    trace(fast, 3)
    assert len(queries) == 3
    for query, key in zip(queries, keys, strict=True):
        assert numbers(key) == 3 * numbers(query)


@pytest.mark.parametrize("method", ["moco", "jcl"])
def test_every_view_of_every_sample_is_drawn_on_its_own(method):
    data = made_up(size=40)  # of a smaller image two crops may be equal
    data = dataclasses.replace(data, images=data.images[:1].repeat(len(data.images), 1, 1, 1))
    fast = learner(method, data=data, shuffle=False)
    queries, keys = watched(fast.model), watched(fast.keys.twin)
    trace(fast, 3)
    views = torch.cat([*queries, *keys])
    assert len(views) == 3 * 8 * (1 + fast.recipe.keys)
    assert len(torch.unique(views.flatten(1), dim=0)) == len(views)


@pytest.mark.parametrize(("query_view", "key_view"), [("strong", "weak"), ("weak", "strong")])
def test_views_go_where_the_recipe_says(query_view, key_view):
    """Weak views of a grey image are grey; some strong ones of a coloured image are, which no weak one is."""
    data = numbered(20, pretrain=torch.ones(20, dtype=torch.bool), train=torch.arange(20) > 3,
                    test=torch.arange(20) < 4)
    fast = learner("moco", data=data, query_view=query_view, key_view=key_view, batch=20)
    seen = {"query": watched(fast.model), "key": watched(fast.keys.twin)}
    trace(fast, 3)
    for name, kind in (("query", query_view), ("key", key_view)):
        views = torch.cat(seen[name])
        unchanged = (views[:, 1:] == -1).flatten(1).all(1)  # green and blue are still black
        assert unchanged.all() == (kind == "weak"), name


# ---------------------------------------------------------------------------------------------- the start


def test_equal_seeds_start_from_equal_weights_whatever_the_method():
    before = torch.get_rng_state()
    usual = copy.deepcopy(learner("random", seed=5).state_dict())
    for method in TRAINED:
        state = learner(method, seed=5).state_dict()
        for part in ("model", "classifier", "keys", "dictionary"):
            for name, value in state[part].items():
                assert torch.equal(value, usual[part][name]), (method, name)
    other = learner("random", seed=6).state_dict()
    for part, name in (("model", "head.0.weight"), ("dictionary", "entries"), ("classifier", "weight")):
        assert not torch.equal(other[part][name], usual[part][name])
    assert torch.equal(torch.get_rng_state(), before)


def test_the_keys_start_as_a_copy_of_the_queries_encoder_and_the_dictionary_as_directions():
    fast = learner()
    for name, value in fast.model.state_dict().items():
        twin = fast.keys.twin.state_dict()[name]
        assert torch.equal(value, twin) and value.data_ptr() != twin.data_ptr(), name
    torch.testing.assert_close(fast.dictionary.entries.norm(dim=1), torch.ones(20))


def test_random_initialisation_takes_no_steps(tmp_path):
    fast = learner("random")
    before = copy.deepcopy(fast.state_dict())
    assert fit(fast, tmp_path, tqdm(disable=True))["steps"] == 0
    assert_equal_states(fast.state_dict(), before)


@pytest.mark.parametrize(("method", "available"), [("sce", 25), ("supervised", 20)])
def test_a_batch_larger_than_the_split_is_refused(method, available):
    data = made_up(train=20, unlabeled=25)
    assert learner(method, data=data, batch=available).steps_per_epoch == 1
    message = rf"batch=26 exceeds the {available} training images of digits; choose a smaller batch"
    with pytest.raises(ValueError, match=message):
        learner(method, data=data, batch=26)


@pytest.mark.parametrize("method", ["moco", "sce", "jcl"])
def test_a_dictionary_larger_than_the_data_keeps_their_earlier_keys(method):
    fast = learner(method, dictionary=200)
    assert len(fast.members) == 20
    before = fast.dictionary.entries.clone()
    assert trace(fast, 3 * fast.steps_per_epoch).isfinite().all()
    written = 3 * fast.steps_per_epoch * fast.recipe.batch
    changed = (fast.dictionary.entries != before).any(1)
    assert written > len(fast.members) and changed[:written].all() and not changed[written:].any()


@pytest.mark.parametrize("method", TRAINED)
def test_images_of_one_pixel_are_trained_on(method):
    fast = learner(method, data=made_up(size=1))
    assert trace(fast, 2).isfinite().all()


def test_labels_out_of_range_and_parts_that_overlap_are_refused():
    data = made_up(unlabeled=3)
    with pytest.raises(ValueError, match="digits: label 3 should be from -1 to 2"):
        dataclasses.replace(data, labels=data.labels.where(data.labels != 2, 3))
    with pytest.raises(ValueError, match="digits: 9 samples are for train and for test"):
        dataclasses.replace(data, train=data.train | data.test)


def test_a_batch_that_processes_cannot_share_is_refused(monkeypatch):
    monkeypatch.setattr(pretrain, "process", lambda: (0, 3))
    with pytest.raises(ValueError, match="batch=8 cannot be shared by 3 processes; choose a multiple"):
        learner()


@pytest.mark.parametrize(("groups", "processes"), [(1, 2), (8, 16)])
def test_ghost_groups_that_processes_cannot_share_are_refused(monkeypatch, groups, processes):
    monkeypatch.setattr(pretrain, "process", lambda: (0, processes))
    message = rf"groups={groups} cannot be divided among {processes} processes.*--variant ghost_groups .* 8 groups"
    with pytest.raises(ValueError, match=message):
        learner(groups=groups, batch=16)


# ---------------------------------------------------------------------------------------------- resuming


@pytest.mark.parametrize(
    ("method", "changes"),
    [*((method, {}) for method in TRAINED), ("moco", {"groups": 2}), ("sce", {"precision": "bfloat16",
                                                                           "channels_last": True})],
    ids=str,
)
def test_a_training_resumed_at_any_step_ends_with_the_same_bits(tmp_path, monkeypatch, method, changes):
    monkeypatch.setattr(pretrain, "MONITORED", 3)  # so that most steps log what an earlier one measured
    changes = {"epochs": 2, "warmup": 1, "dictionary": 11, "batch": 4, "learning_rate": 0.3} | changes
    resumed_anywhere(lambda: learner(method, **changes), tmp_path, steps=10)


@pytest.mark.parametrize("method", TRAINED)
def test_looking_at_the_nearest_neighbour_never_changes_training(method, monkeypatch):
    watching, blind = learner(method, groups=2), learner(method, groups=2)
    monkeypatch.setattr(blind, "_nearest_neighbour", lambda: 0.0)
    losses = [trace(each, 6)[:, :-1] for each in (watching, blind)]
    assert torch.equal(*losses)
    states = [each.state_dict() for each in (watching, blind)]
    assert states[0].pop("knn1") != states[1].pop("knn1")
    assert_equal_states(*states)


def test_the_nearest_neighbour_is_measured_ten_times():
    fast, measured = learner(epochs=23), []
    assert fast.total_steps == 46
    fast._nearest_neighbour = lambda: measured.append(fast.taken) or float(len(measured))
    values = [by_name(fast, fast.step())["knn1"] for _ in range(46)]
    assert len(measured) == 10 and measured[0] == 0
    assert values == [float(sum(at <= step for at in measured)) for step in range(46)]
    assert max(np.diff([*measured, 46])) <= 6  # spread over the training


# ---------------------------------------------------------------------------------------------- features


def centred_images(data, index, recipe):
    return CentredView(recipe.size, DIGITS, recipe.resize)(data.images[index])


def test_features_are_those_of_the_trunk_in_the_order_asked_for(network):
    fast = learner()
    trace(fast, 3)
    index = torch.tensor([7, 3, 3, 28, 0])
    plain = network()
    plain.load_state_dict(fast.model.trunk.state_dict())
    expected = plain.eval()(centred_images(fast.data, index, fast.recipe))
    found = fast.features(index)
    assert found.dtype == torch.float32 and not found.requires_grad
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("batch", [1, 3, 28, 29, 512])
def test_features_do_not_depend_on_how_many_are_encoded_at_a_time(batch):
    fast = learner()
    trace(fast, 2)
    index = torch.arange(29).flip(0)
    torch.testing.assert_close(fast.features(index, batch=batch), fast.features(index))


@pytest.mark.parametrize("view", [ShiftedView(DIGITS), augment.probe(8, DIGITS)], ids=["shifted", "crop"])
def test_features_of_random_views_follow_their_generator(view):
    fast = learner()
    index, draws = torch.arange(20), torch.Generator().manual_seed(1)
    first, second = (fast.features(index, view, generator=draws) for _ in range(2))
    again = fast.features(index, view, generator=torch.Generator().manual_seed(1))
    assert torch.equal(first, again)
    assert not torch.isclose(first, second).all(1).any()
    views = view(fast.data.images[index], torch.Generator().manual_seed(1))
    torch.testing.assert_close(first, fast.model.eval().features(views))


def test_features_and_embeddings_change_nothing():
    fast = learner("sce")
    trace(fast, 2)
    before = copy.deepcopy(fast.state_dict())
    fast.embed(fast.features(torch.arange(29)))
    assert_equal_states(fast.state_dict(), before)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_features_and_embeddings_are_float32(precision):
    fast = learner("sce", precision=precision)
    features = fast.features(torch.arange(29))
    embedded = fast.embed(features)
    assert features.dtype == embedded.dtype == torch.float32
    torch.testing.assert_close(embedded.norm(dim=1), torch.ones(29))
    torch.testing.assert_close(embedded, normalize(fast.model.head(features), dim=1))


def test_the_logged_nearest_neighbour_is_that_of_the_test_split():
    data = made_up(train=40, test=30, unlabeled=20)
    guessed = torch.randint(3, data.labels.shape, generator=torch.Generator().manual_seed(0))
    fast = learner(data=dataclasses.replace(data, labels=guessed), seed=1)
    logged = by_name(fast, fast.step())["knn1"]
    fast = learner(data=fast.data, seed=1)
    train, test = (split.nonzero().flatten() for split in (fast.data.train, fast.data.test))
    references = KNeighborsClassifier(1, metric="cosine").fit(
        fast.features(train), fast.data.labels[train]
    )
    expected = 100 * references.score(fast.features(test), fast.data.labels[test])
    assert 0 < expected < 100
    assert logged == pytest.approx(expected)


# ---------------------------------------------------------------------------------------------- precision, guard


@pytest.mark.parametrize("network", ["small stem"], indirect=True)
@pytest.mark.parametrize("method", ["sce", "supervised"])
def test_bfloat16_channels_last_is_close_to_float32(network, method):
    """A value of bfloat16 is off by up to 2**-9, which 20 layers make about 2**-7 of an embedding, hence of a cosine.

    A temperature of 0.1 makes it 0.08 of a logit, and the way the weights then take adds to it in the next steps.
    """
    choices = {"small": True, "batch": 16, "learning_rate": 1e-3, "projection": 64, "temperature": 0.2,
               "key_temperature": 0.1}
    exact, rounded = (
        learner(method, **choices, precision=precision, channels_last=last)
        for precision, last in (("float32", False), ("bfloat16", True))
    )
    assert rounded.model.trunk.layer1[0].conv1.weight.is_contiguous(memory_format=torch.channels_last)
    for values, others in zip(trace(exact, 3), trace(rounded, 3), strict=True):
        assert others.isfinite().all() and others.dtype == torch.float32
        assert not torch.equal(values, others)
        torch.testing.assert_close(others[:-1], values[:-1], rtol=0, atol=0.1)
    for name, value in rounded.model.state_dict().items():
        assert value.dtype in (torch.float32, torch.int64), name


@pytest.mark.parametrize("small", [True, False], ids=["small stem", "large stem"])
def test_gradients_in_bfloat16_point_where_those_in_float32_do(small):
    """At 32 pixels, where the last maps of the stem for large images are single pixels.

    With values off by up to 2**-9, layer after layer, directions are off too: the worst cosine was 0.85 when written.
    A gradient left out, or of another parameter, has a cosine near 0.
    """
    torch.manual_seed(0)
    network = nn.Sequential(trunk("resnet18", small), nn.Linear(512, 10)).to(memory_format=torch.channels_last)
    images, labels = torch.randn(16, 3, 32, 32).to(memory_format=torch.channels_last), torch.arange(16) % 10
    gradients = []
    for enabled in (False, True):
        network.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            logits = network(images)
        assert logits.dtype == (torch.bfloat16 if enabled else torch.float32)
        cross_entropy(logits.float(), labels).backward()
        gradients.append({name: weight.grad.flatten() for name, weight in network.named_parameters()})
    exact, rounded = gradients
    for name in exact:
        assert cosine_similarity(exact[name], rounded[name], dim=0) > 0.8, name


@pytest.mark.parametrize("method", ["moco", "supervised"])
def test_channels_last_is_a_matter_of_layout_alone(method):
    rows, channels = (learner(method, channels_last=last) for last in (False, True))
    torch.testing.assert_close(trace(rows, 4), trace(channels, 4), rtol=1e-4, atol=1e-5)
    for own, other in zip(rows.model.parameters(), channels.model.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("method", "term"), [("moco", "loss"), ("sce", "InfoNCE"), ("supervised", "loss")])
def test_a_training_that_diverges_names_the_term(tmp_path, method, term):
    fast = learner(method, learning_rate=1e30)
    with pytest.raises(NonFiniteLoss, match=rf"^{term} is (nan|inf) at step [2-6]; lower the learning rate"):
        fit(fast, tmp_path, tqdm(disable=True), checkpoint_seconds=0)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An ImageNet of two classes, 20 images for training and 4 for test, of various sizes."""
    draws = np.random.default_rng(0)
    for part, count in (("train", 10), ("val", 2)):
        for name, colour in (("n01", 60), ("n02", 180)):
            for number in range(count):
                pixels = draws.normal(colour, 40, (14 + number, 20 - number, 3)).clip(0, 255).astype(np.uint8)
                path = tmp_path / "data" / "imagenet" / part / name / f"{number}.JPEG"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(path)
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return load("imagenet", tmp_path / "data", subset=True)


def test_images_in_files_are_trained_on_and_taken_up_again_within_an_epoch(folders):
    recipe = paper("imagenet", "jcl", trunk="resnet18", size=10, resize=12, batch=4, groups=2, epochs=2, keys=2,
                   dictionary=12, projection=6, precision="float32")
    undisturbed, again = (Pretrainer(recipe, folders, 3, CPU) for _ in range(2))
    losses, states = [], []
    for _ in range(7):
        states.append(copy.deepcopy(undisturbed.state_dict()))
        losses.append(undisturbed.step())
    assert undisturbed.steps_per_epoch == 5 and not torch.equal(losses[0], losses[5])
    again.load_state_dict(states[3])
    for expected in losses[3:]:
        assert torch.equal(again.step(), expected)
    for one, other in zip(again.model.parameters(), undisturbed.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_another_kind_of_device_is_refused_in_words():
    state = learner().state_dict() | {"generator": torch.zeros(16, dtype=torch.uint8)}  # the size of CUDA's
    with pytest.raises(ValueError, match="of a run on another kind of device than cpu"):
        learner().load_state_dict(state)
