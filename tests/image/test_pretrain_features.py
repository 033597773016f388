"""Features of a learner of images, and the nearest neighbour in them that its log shows."""


import numpy as np
import pytest
import torch
from image_learners import DIGITS, TRAINED, by_name, learner, trace
from states import assert_equal_states
from torch.nn.functional import normalize

from repro.image import augment
from repro.image.augment import CentredView, ShiftedView

pytestmark = pytest.mark.usefixtures("one_thread", "network")


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


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_features_and_embeddings_are_float32(precision):
    fast = learner("sce", precision=precision)
    features = fast.features(torch.arange(29))
    embedded = fast.embed(features)
    assert features.dtype == embedded.dtype == torch.float32
    torch.testing.assert_close(embedded.norm(dim=1), torch.ones(29))
    torch.testing.assert_close(embedded, normalize(fast.model.head(features), dim=1))


# ---------------------------------------------------------------------------------------------- the nearest neighbour


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
