"""What a finished cell reports: probes, nearest neighbours, spreads and the decoded scale."""

import dataclasses

import numpy as np
import pytest
import torch

from repro.run.evaluate import cosine_rates, linear_probe, nearest_neighbour, standardised
from repro.skeleton import study
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import smoke

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("runs")


def test_the_probe_reports_its_last_epoch_or_its_best_one(data, one_thread, monkeypatch):
    recipe = smoke("synthetic", "random", probe_epochs=3, batch=64)
    pretrainer = Pretrainer(recipe, data, 4, CPU)
    readouts, _ = pretrainer.features(data)
    split = (readouts[data.train], data.labels[data.train], readouts[data.test], data.labels[data.test])
    accuracies = linear_probe(*split, classes=10, batch=128, rates=cosine_rates(3, 2.0, 0.01), momentum=0.9, seed=4)
    assert study.evaluate(pretrainer, data, 4)["linear"] == accuracies[-1]
    labels, place = data.labels[data.test], torch.arange(int(data.test.sum()))
    made_up = torch.stack([labels + (place >= right) for right in (10, 60, 40)])
    monkeypatch.setattr(study, "linear_predictions", lambda *_, **__: made_up)
    last = study.evaluate(pretrainer, data, 4)
    pretrainer.recipe = recipe.replace(select="best_on_test")
    best = study.evaluate(pretrainer, data, 4)
    assert (last["linear"], last["select"]) == (100 * 40 / len(labels), "last")
    assert (best["linear"], best["select"]) == (100 * 60 / len(labels), "best_on_test")
    assert best["knn1"] == last["knn1"] == pretrainer.accuracy_on_test()


def with_repeats(data, count):
    """The set with `count` of its training sequences once more, for testing; none but these if all are repeated."""
    rows, names = data.train.nonzero().flatten()[:count], ("labels", "views", "subjects", "lengths")
    kept = data.train if count == int(data.train.sum()) else torch.ones_like(data.train)
    parts = data.frames.split(data.lengths.tolist())
    again = torch.ones(count, dtype=torch.bool)
    columns = {name: torch.cat([getattr(data, name)[kept], getattr(data, name)[rows]]) for name in names}
    frames = [part for part, wanted in zip(parts, kept.tolist(), strict=True) if wanted] + [parts[row] for row in rows]
    return dataclasses.replace(data, frames=torch.cat(frames), train=torch.cat([data.train[kept], ~again]),
                               test=torch.cat([data.test[kept], again]), **columns)


@pytest.mark.parametrize("select", ["last", "best_on_test"])
def test_accuracies_with_and_without_repeats_are_those_of_probes_of_their_own(data, one_thread, select):
    data = with_repeats(data, 30)
    assert int(data.repeated.sum()) == 30
    pretrainer = Pretrainer(smoke("synthetic", "random", probe_epochs=4, batch=64, select=select), data, 1, CPU)
    readouts, _ = pretrainer.features(data)
    found, scaled = study.evaluate(pretrainer, data, 1), standardised(readouts, readouts[data.train])
    for ending, tested in (("", data.test), ("_unseen", data.test & ~data.repeated)):
        for name, features, rate in (("linear", readouts, 2.0), ("linear_standardised", scaled, 0.1)):
            split = (features[data.train], data.labels[data.train], features[tested], data.labels[tested])
            own = linear_probe(*split, classes=10, batch=128, rates=cosine_rates(4, rate, 0.01), momentum=0.9, seed=1)
            assert found[name + ending] == (max(own) if select == "best_on_test" else own[-1])
        split = (readouts[data.train], data.labels[data.train], readouts[tested], data.labels[tested])
        assert found["knn1" + ending] == nearest_neighbour(*split)


def test_where_all_test_sequences_are_repeated_nothing_is_said_of_the_others(data, one_thread):
    data = with_repeats(data, int(data.train.sum()))
    assert torch.equal(data.repeated, data.test)
    found = study.evaluate(Pretrainer(smoke("synthetic", "random", batch=64), data, 0, CPU), data, 0)
    assert not [name for name in found if name.endswith("_unseen")]
    assert found["knn1"] == 100.0


@pytest.mark.parametrize(("objectives", "decoded"), [("random", False), ("AE+CE", False), ("CD", True), ("AD", True)])
def test_the_decoded_scale_is_measured_where_the_decoder_is_trained(objectives, decoded, data, one_thread):
    pretrainer = Pretrainer(smoke("synthetic", objectives, batch=64), data, 0, CPU)
    found = study.evaluate(pretrainer, data, 0)
    assert ("decoded_scale" in found) == decoded
    if decoded:
        assert found["decoded_scale"] == pretrainer.decoded_scale(data, pretrainer.features(data)[0])


def test_the_spread_is_a_deviation_over_the_test_split(data, one_thread):
    pretrainer = Pretrainer(smoke("synthetic", "random", probe_epochs=1, batch=64), data, 0, CPU)
    embeddings = pretrainer.features(data)[1][data.test].double().numpy()
    deviations = embeddings.std(axis=0)
    expected = np.sqrt((deviations**2).mean()) * np.sqrt(128)
    assert study.evaluate(pretrainer, data, 0)["embedding_spread"] == pytest.approx(expected, rel=1e-5)


def test_the_spread_of_readouts_is_relative_to_their_norm(data, one_thread):
    pretrainer = Pretrainer(smoke("synthetic", "random", probe_epochs=1, batch=64), data, 0, CPU)
    readouts, embeddings = pretrainer.features(data)
    tested = readouts[data.test].double().numpy()
    expected = np.sqrt((tested.std(axis=0) ** 2).mean()) * 4 / np.sqrt((np.linalg.norm(tested, axis=1) ** 2).mean())
    centred = torch.randn(len(readouts), 16, generator=torch.Generator())
    equal, nothing = torch.full_like(readouts, 0.5), torch.zeros_like(readouts)
    cases = ((readouts, expected, 1e-5), (30 * readouts, expected, 1e-5), (equal, 0.0, 1e-6), (nothing, 0.0, 0.0),
             (centred, 1.0, 0.02))
    for points, spread, tolerance in cases:
        pretrainer.features = lambda _, points=points: (points, embeddings)
        assert study.evaluate(pretrainer, data, 0)["readout_spread"] == pytest.approx(spread, abs=tolerance)
