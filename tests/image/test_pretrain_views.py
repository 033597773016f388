"""Which images the steps of pre-training show, in what order, and in which views."""

import dataclasses
import itertools

import pytest
import torch
from image_learners import learner, trace
from made_up_images import made_up

pytestmark = pytest.mark.usefixtures("one_thread", "network")


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
