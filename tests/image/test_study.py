"""How images are trained and measured, also along training, and the model of a state."""

import dataclasses
import itertools

import pytest
import torch
from made_up_images import made_up, use_tiny_trunk

from repro.image import augment, study
from repro.image.augment import CentredView, ShiftedView, normalisation
from repro.image.data import data_of
from repro.image.pretrain import Pretrainer
from repro.image.recipe import IMAGES, paper, smoke
from repro.run import group
from repro.run.evaluate import linear_probe

CPU = torch.device("cpu")
DIGITS = normalisation("digits")
SMALL = {"batch": 8, "epochs": 2, "projection": 6, "dictionary": 20, "warmup": 0, "probe_epochs": 5, "probe_batch": 7,
         "precision": "float32", "channels_last": False}
pytestmark = pytest.mark.usefixtures("tiny_trunk", "one_thread")


@pytest.fixture(scope="module")
def tiny_trunk():
    """All networks of this file have the tiny trunk."""
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_trunk(patch)
        yield


def guessed(**parts):
    """Made-up images whose labels nobody could learn."""
    data = made_up(**parts)
    labels = torch.randint(3, data.labels.shape, generator=torch.Generator().manual_seed(0))
    return dataclasses.replace(data, labels=labels.where(data.labels >= 0, -1))


@pytest.fixture(scope="module")
def data():
    return guessed(train=40, test=30, unlabeled=20)


def learner(data, method="random", seed=4, **changes):
    return Pretrainer(smoke("digits", method, **SMALL | changes), data, seed, CPU)


def plain_features(pretrainer, view, split, *arguments):
    """Features of a whole split at once, by the trunk itself."""
    images = pretrainer.data.images[split]
    with torch.no_grad():
        return pretrainer.model.eval().trunk(view(images, *arguments))


def centred(pretrainer, split):
    return plain_features(pretrainer, CentredView(8, DIGITS, 8), split)


def probed(monkeypatch, accuracies=(10.0, 60.0, 40.0)):
    """What a measurement hands to the linear probe, which gives these accuracies."""
    given = []

    def probe(*positional, **named):
        given.append((positional, named))
        return list(accuracies)

    monkeypatch.setattr(study, "linear_probe", probe)
    return given


def test_the_probe_trains_on_the_train_split_and_tests_on_the_test_split(data):
    pretrainer = learner(data, "moco", seed=9, probe_view="centred", probe_learning_rate=3.0)
    pretrainer.step()
    accuracies = linear_probe(
        centred(pretrainer, data.train), data.labels[data.train], centred(pretrainer, data.test),
        data.labels[data.test], classes=3, batch=7, rates=[3.0, 3.0, 3.0, 0.3, 0.03], momentum=0.9, seed=9,
    )
    assert study.measure(pretrainer)["linear"] == accuracies[-1] and 0 < accuracies[-1] < 100


@pytest.mark.parametrize(("select", "linear"), [("last", 40.0), ("best_on_test", 60.0)])
def test_the_last_epoch_of_the_probe_or_its_best_and_rates_that_drop_at_60_and_80(data, monkeypatch, select, linear):
    given = probed(monkeypatch)
    pretrainer = learner(data, seed=2, probe_epochs=100, probe_learning_rate=30.0, probe_momentum=0.7, select=select)
    measures = study.measure(pretrainer)
    assert (measures["linear"], measures["select"]) == (linear, select)
    assert study.along(pretrainer) == {"linear": 40.0, "linear_best": 60.0, "knn1": measures["knn1"]}
    rates = pytest.approx([30.0] * 60 + [3.0] * 20 + [0.3] * 20)
    for _, named in given:
        assert named == {"classes": 3, "batch": 7, "momentum": 0.7, "seed": 2, "rates": rates}


@pytest.mark.parametrize(
    ("probed_on", "view"),
    [
        ({"probe_view": "shifted"}, ShiftedView(DIGITS)),
        ({"probe_view": "shifted", "probe_padding": 2}, ShiftedView(DIGITS, padding=2)),
        ({"probe_view": "crop"}, augment.probe(8, DIGITS)),
    ],
)
def test_an_augmented_probe_sees_other_views_of_every_image_in_every_epoch(data, monkeypatch, probed_on, view):
    data = dataclasses.replace(data, images=data.images[:, :, :8, :8])  # a shifted view keeps the size
    given = probed(monkeypatch)
    pretrainer = learner(data, seed=6, **probed_on, probe_epochs=4)
    knn1 = study.measure(pretrainer)["knn1"]
    ((make, labels, test, _), _), = given
    draws = torch.Generator().manual_seed(6)
    seen = [make() for _ in range(4)]
    for features in seen:
        torch.testing.assert_close(features, plain_features(pretrainer, view, data.train, draws))
    for first, second in itertools.pairwise(seen):
        assert (first != second).any(1).float().mean() > 0.8  # two crops of so small an image may be equal
    assert torch.equal(labels, data.labels[data.train])
    torch.testing.assert_close(test, centred(pretrainer, data.test))
    assert knn1 == study.measure(learner(data, seed=6, probe_view="centred"))["knn1"]  # of images as they are


def test_the_model_of_a_state_gives_the_features_that_were_evaluated(data):
    pretrainer = learner(data, "moco", channels_last=True, groups=2, head="moco_v2")
    pretrainer.step()
    expected = pretrainer.features(torch.arange(len(data.images)))
    model = study.trained_model(pretrainer.state_dict(), pretrainer.recipe)
    images = CentredView(8, DIGITS, 8)(data.images)
    assert not model.training
    with torch.no_grad():
        torch.testing.assert_close(model.features(images), expected)
        torch.testing.assert_close(model(images), pretrainer.model.embed(expected))


def test_examples_show_an_image_of_every_class_and_two_views():
    shown, data = study.examples("digits"), data_of(smoke("digits", "sce"))
    assert list(shown) == ["image", "weak view", "strong view"]
    assert all(images.shape == (8, 3, 8, 8) and images.min() >= 0 and images.max() <= 1 for images in shown.values())
    firsts = [int((data.train & (data.labels == label)).nonzero()[0]) for label in range(8)]
    torch.testing.assert_close(shown["image"], data.images[firsts] / 255)
    assert torch.equal(shown["strong view"], study.examples("digits")["strong view"])
    assert not torch.equal(shown["strong view"], shown["weak view"])


@pytest.mark.parametrize(("recipe", "processes", "message"), [
    (smoke("digits", "moco"), 2, r"groups=1 cannot be divided among 2 processes.*--groups 8"),
    (smoke("digits", "sce", groups=2, whole_query=True), 2,
     r"whole_query=True normalises .* do not: take one process, or"),
    (paper("imagenet100", "jcl", probe_view="shifted"), 1,
     "probe_view='shifted' needs images of one size; for imagenet100 take crop"),
])
def test_what_cannot_be_trained_is_refused(monkeypatch, recipe, processes, message):
    monkeypatch.setattr(group, "process", lambda: (0, processes))
    with pytest.raises(ValueError, match=message):
        IMAGES.check(recipe, CPU)


def test_what_processes_can_share_is_not_refused(monkeypatch):
    """A query normalised whole can be trained in one process, or where the method has none, or no batches."""
    split, refused = smoke("digits", "sce", groups=2, whole_query=True), []
    for processes in (1, 2):
        monkeypatch.setattr(group, "process", lambda processes=processes: (0, processes))
        for recipe in (split, split.replace(method="moco"), smoke("digits", "random")):
            try:
                IMAGES.check(recipe, CPU)
            except ValueError:
                refused.append((processes, recipe.method))
    assert refused == [(2, "sce")]
