"""What a finished run reports: probes, nearest neighbours, spreads and the decoded scale."""

import dataclasses

import numpy as np
import pytest
import torch
from made_up_skeletons import CPU, learner

from repro.run.evaluate import cosine_rates, linear_probe, nearest_neighbour, standardised
from repro.skeleton import study
from repro.skeleton.data import data_of
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import smoke

pytestmark = pytest.mark.usefixtures("runs_root", "one_thread")


@pytest.fixture(scope="module")
def data():
    """Every fifth sequence of the bundled data."""
    whole = data_of(smoke("synthetic", "CE"))
    names = ("lengths", "labels", "train", "test", "views", "subjects")
    rows = (torch.arange(len(whole.lengths)) % 5 == 0).repeat_interleave(whole.lengths)
    return dataclasses.replace(whole, frames=whole.frames[rows], **{name: getattr(whole, name)[::5] for name in names})


def untrained(data, objectives="random", seed=0, **changes):
    return Pretrainer(smoke("synthetic", objectives, batch=64, **changes), data, seed, CPU)


def with_repeats(data, count):
    """The set with `count` of its training sequences once more, for testing; none but these if all are repeated."""
    rows, names = data.train.nonzero().flatten()[:count], ("labels", "views", "subjects", "lengths")
    first = data.train if count == int(data.train.sum()) else torch.ones_like(data.train)
    parts, again = data.frames.split(data.lengths.tolist()), torch.ones(count, dtype=torch.bool)
    frames = [parts[row] for row in (*first.nonzero().flatten(), *rows)]
    columns = {name: torch.cat([getattr(data, name)[first], getattr(data, name)[rows]]) for name in names}
    return dataclasses.replace(data, frames=torch.cat(frames), train=torch.cat([data.train[first], ~again]),
                               test=torch.cat([data.test[first], again]), **columns)


def slow_accuracies(pretrainer, data):
    """Every accuracy by a probe of its own, on readouts of sequences that are compared one by one."""
    readouts, parts = pretrainer.features(data)[0], data.frames.split(data.lengths.tolist())
    select = {"last": lambda accuracies: accuracies[-1], "best_on_test": max}[pretrainer.recipe.select]
    trained, tested = (mask.nonzero().flatten().tolist() for mask in (data.train, data.test))
    kept = [row for row in trained if not any(torch.equal(parts[row], parts[other]) for other in tested)]
    new = [row for row in tested if not any(torch.equal(parts[row], parts[other]) for other in trained)]
    scaled = standardised(readouts, readouts[trained])

    def probed(features, known, asked, rate):
        sides = (features[known], data.labels[known], features[asked], data.labels[asked])
        return linear_probe(*sides, classes=10, batch=128, rates=cosine_rates(5, rate, 0.01), momentum=0.9, seed=1)

    found = {"linear_best": max(probed(readouts, trained, tested, 2.0))}
    for ending, asked in (("", tested), ("_without_copies", new)) if new else (("", tested),):
        found[f"linear{ending}"] = select(probed(readouts, trained, asked, 2.0))
        found[f"linear_standardised{ending}"] = select(probed(scaled, trained, asked, 0.1))
        found[f"knn1{ending}"] = nearest_neighbour(readouts[trained], data.labels[trained], readouts[asked],
                                                   data.labels[asked])
        if 0 < len(kept) < len(trained):
            found[f"linear_without_originals{ending}"] = select(probed(readouts, kept, asked, 2.0))
    return found


@pytest.mark.parametrize(("repeats", "alone", "select", "measures"), [
    (0, False, "last", 7), (30, False, "last", 9), (30, False, "best_on_test", 9),
    (20, True, "last", 5),         # all of the test split, and there are others to train on
    (None, False, "last", 4),      # all of both
])
def test_accuracies_are_those_of_probes_of_their_own(data, repeats, alone, select, measures):
    whole = with_repeats(data, int(data.train.sum()) if repeats is None else repeats) if repeats != 0 else data
    whole = dataclasses.replace(whole, test=whole.test & whole.in_both) if alone else whole
    pretrainer = untrained(whole, seed=1, probe_epochs=5, select=select)
    found, expected = study.measure(pretrainer), slow_accuracies(pretrainer, whole)
    others = {"embedding_spread", "readout_spread", "select", "linear_last"}
    assert {name: value for name, value in found.items() if name not in others} == expected
    assert len(expected) == measures and found["select"] == select


@pytest.mark.parametrize(("objectives", "decoded"), [("random", False), ("AE+CE", False), ("CD", True), ("AD", True)])
def test_the_decoded_scale_is_measured_where_the_decoder_is_trained(objectives, decoded, data):
    pretrainer = untrained(data, objectives)
    expected = pretrainer.decoded_scale(pretrainer.features(data)[0])
    assert study.measure(pretrainer).get("decoded_scale") == (expected if decoded else None)


def test_spreads_are_deviations_over_the_test_split_that_of_readouts_relative_to_their_norm(data):
    pretrainer = untrained(data, probe_epochs=1)
    readouts, embeddings = pretrainer.features(data)
    points = embeddings[data.test].double().numpy()
    expected = np.sqrt((points.std(axis=0) ** 2).mean()) * np.sqrt(128)
    assert study.measure(pretrainer)["embedding_spread"] == pytest.approx(expected, rel=1e-5)
    points = readouts[data.test].double().numpy()
    expected = np.sqrt((points.std(axis=0) ** 2).mean()) * 4 / np.sqrt((np.linalg.norm(points, axis=1) ** 2).mean())
    equal, nothing = torch.full_like(readouts, 0.5), torch.zeros_like(readouts)
    for points, spread in ((readouts, expected), (30 * readouts, expected), (equal, 0.0), (nothing, 0.0)):
        pretrainer.features = lambda _, points=points: (points, embeddings)
        assert study.measure(pretrainer)["readout_spread"] == pytest.approx(spread, abs=1e-5)


def test_a_selected_result_stands_beside_the_last_epoch_of_the_same_training(monkeypatch):
    accuracies, probes = iter([50.0, 40.0, 30.0]), {"epochs": 3, "probe_epochs": 3, "probe_batch": 7}
    monkeypatch.setattr("repro.skeleton.pretrain.nearest_neighbour", lambda *_: next(accuracies))
    last = learner("AE+CE", **probes)
    best = learner("AE+CE", select="best_on_test", select_every=1, **probes)
    for fast in (last, best):
        for _ in range(fast.total_steps):
            fast.step()
    expected, found = study.measure(last), study.measure(best)
    assert "linear_last" not in expected and found["linear_last"] == expected["linear"]
    assert found["embedding_spread"] != expected["embedding_spread"]  # read after the first epoch
    best.recipe = best.recipe.replace(select="last")  # its weights are those of the first epoch now
    assert study.measure(best)["knn1"] == found["knn1"]
