"""The best epoch on the test split: when it is looked for, what is kept, put back and reported."""


import copy

import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier
from tqdm import tqdm

from repro.run.fit import fit
from repro.skeleton import study
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import smoke

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("runs")


def selecting(data, **changes):
    recipe = smoke("synthetic", "AE+CE", select="best_on_test", learning_rate=0.02, batch=64, **changes)
    return Pretrainer(recipe, data, 0, CPU)


def weights(pretrainer):
    return torch.cat([parameter.detach().flatten() for parameter in pretrainer.model.parameters()])


def test_the_best_checkpoint_on_the_test_split_is_put_back(data, one_thread, tmp_path, monkeypatch):
    alone, history = selecting(data, epochs=8), []
    for _ in range(4):
        for _ in range(2 * alone.steps_per_epoch):
            alone.step()
        history.append(weights(alone))
    accuracies = iter([30.0, 50.0, 40.0, 50.0])
    monkeypatch.setattr(Pretrainer, "accuracy_on_test", lambda *_: next(accuracies))
    learner = selecting(data, epochs=8, select_every=2)
    fit(learner, tmp_path, tqdm(disable=True))
    assert next(accuracies, None) is None
    assert torch.equal(weights(learner), history[3])
    learner.restore()
    assert learner.best == 50.0
    assert torch.equal(weights(learner), history[1])  # the first of equal ones


def test_selection_looks_at_the_nearest_neighbour_on_the_test_split(data, one_thread):
    learner = selecting(data, epochs=1, select_every=1)
    for _ in range(learner.total_steps):
        learner.step()
    readouts, _ = learner.features(data)
    references = KNeighborsClassifier(1, metric="cosine").fit(readouts[data.train], data.labels[data.train])
    assert learner.best == pytest.approx(100 * references.score(readouts[data.test], data.labels[data.test]))


def test_a_selection_continues_where_it_was(data, one_thread, tmp_path):
    undisturbed, first = (selecting(data, epochs=4, select_every=1) for _ in range(2))
    for _ in range(5):
        undisturbed.step(), first.step()
    torch.save(first.state_dict(), tmp_path / "state.pt")
    resumed = selecting(data, epochs=4, select_every=1)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for learner in (undisturbed, resumed):
        for _ in range(5):
            learner.step()
        learner.restore()
    assert (resumed.best, resumed.taken) == (undisturbed.best, undisturbed.taken)
    assert torch.equal(weights(resumed), weights(undisturbed))


def test_a_selected_result_stands_beside_the_last_epoch_of_the_same_training(data, one_thread, monkeypatch):
    last = Pretrainer(smoke("synthetic", "AE+CE", learning_rate=0.02, batch=64, epochs=3), data, 0, CPU)
    learner, accuracies = selecting(data, epochs=3, select_every=1), iter([50.0, 40.0, 30.0])
    monkeypatch.setattr(Pretrainer, "accuracy_on_test", lambda *_: next(accuracies))
    for trained_one in (last, learner):
        for _ in range(trained_one.total_steps):
            trained_one.step()
    expected = study.measure(last)
    assert "linear_last" not in expected
    found = study.measure(learner)
    assert found["linear_last"] == expected["linear"]
    assert found["embedding_spread"] != expected["embedding_spread"]  # read after the first epoch
    assert found == study.evaluate(learner, data, 0) | {"linear_last": expected["linear"]}


def test_a_state_of_before_in_which_the_selection_held_the_pretrainer_is_read(data, one_thread):
    learner, again, evaluated = (selecting(data, epochs=2, select_every=1) for _ in range(3))
    for _ in range(learner.total_steps - 1):
        learner.step()
    state = copy.deepcopy(learner.state_dict())
    before = {name: state.pop(name) for name in ("best", "weights")} | {"taken": state["taken"], "pretrainer": state}
    again.load_state_dict(before)
    evaluated.load_weights(before)
    assert (evaluated.best, evaluated.taken) == (learner.best, learner.taken)
    assert torch.equal(again.step(), learner.step()) and again.best == learner.best
