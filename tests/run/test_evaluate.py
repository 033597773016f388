import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from repro.run.evaluate import cosine_rates, dropping_rates, linear_probe, nearest_neighbour, spread, standardised

USUAL = {"epochs": 3, "batch": 16, "learning_rate": 0.5, "momentum": 0.9, "final_rate": 0.01, "seed": 0}


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other on busy cores make seconds of milliseconds."""
    with threadpool_limits(1):
        yield


def clouds(n, classes=4, features=5, spread=1.5, seed=0, dtype=torch.float64):
    """(n, features) points around one centre a class, with their labels; `seed` draws the points, not the centres."""
    centres = np.random.default_rng(99).normal(0, 1, (classes, features))
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    points = centres[labels] + rng.normal(0, spread, (n, features))
    return torch.from_numpy(points).to(dtype), torch.from_numpy(labels)


def probe(*data, epochs, learning_rate, final_rate, **settings):
    """`linear_probe` with the cosine schedule."""
    return linear_probe(*data, rates=cosine_rates(epochs, learning_rate, final_rate), **settings)


def slow_probe(train, train_labels, test, test_labels, *, classes, epochs, batch, learning_rate, momentum, final_rate,
               seed):
    """Softmax regression by SGD, a sample at a time, from the same draws."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(classes, train.shape[1], generator=generator).numpy().astype(np.float32) * np.float32(0.01)
    weight, bias = weight.astype(np.float64), np.zeros(classes)
    weight_velocity, bias_velocity = np.zeros_like(weight), np.zeros_like(bias)
    train, test, accuracies = train.numpy(), test.numpy(), []
    for epoch in range(epochs):
        floor = final_rate * learning_rate
        rate = floor + (learning_rate - floor) * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        order = torch.randperm(len(train), generator=generator).tolist()
        for start in range(0, len(order), batch):
            errors = []
            for index in (chosen := order[start : start + batch]):
                scores = np.exp(weight @ train[index] + bias)
                errors.append(scores / scores.sum() - (np.arange(classes) == train_labels[index].item()))
            weight_velocity = momentum * weight_velocity + np.transpose(errors) @ train[chosen] / len(chosen)
            bias_velocity = momentum * bias_velocity + np.mean(errors, axis=0)
            weight, bias = weight - rate * weight_velocity, bias - rate * bias_velocity
        accuracies.append(100 * np.mean(np.argmax(test @ weight.T + bias, axis=1) == test_labels.numpy()))
    return accuracies


@pytest.mark.parametrize(
    "change",
    [{}, {"batch": 7}, {"batch": 1000}, {"momentum": 0.0}, {"final_rate": 1.0}, {"seed": 5}, {"epochs": 1},
     {"learning_rate": 2.0}],
)
def test_linear_probe_equals_a_slow_loop(change):
    settings = USUAL | change
    data = (*clouds(50, seed=1), *clouds(500, seed=2))  # 50 = 3 x 16 + 2: the last batch is smaller
    expected = slow_probe(*data, classes=4, **settings)
    assert probe(*data, classes=4, **settings) == pytest.approx(expected, abs=1e-9)


def rates_of_torch(epochs, rate, schedule, **settings):
    """The learning rate of every epoch by a schedule of torch."""
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=rate)
    schedule, rates = schedule(optimiser, **settings), []
    for _ in range(epochs):
        rates += schedule.get_last_lr()
        optimiser.step()
        schedule.step()
    return pytest.approx(rates, rel=1e-12)


@pytest.mark.parametrize(("epochs", "drops"), [(1, []), (5, [3, 4]), (7, [5, 6]), (10, [6, 8]), (100, [60, 80])])
def test_rates_are_those_of_torch(epochs, drops):
    schedules = torch.optim.lr_scheduler
    cosine = rates_of_torch(epochs, 2.0, schedules.CosineAnnealingLR, T_max=epochs, eta_min=0.02)
    assert cosine_rates(epochs, 2.0, 0.01) == cosine
    assert dropping_rates(epochs, 30.0) == rates_of_torch(
        epochs, 30.0, schedules.MultiStepLR, milestones=drops, gamma=0.1)


def test_features_made_anew_every_epoch():
    (train, labels), test = clouds(40, seed=1), clouds(500, seed=2)
    generator, made = torch.Generator().manual_seed(0), []

    def augmented():
        made.append(train + torch.randn(train.shape, generator=generator))
        return made[-1]

    settings = {"classes": 4, "batch": 16, "momentum": 0.9, "seed": 0}
    found = linear_probe(augmented, labels, *test, rates=[0.5, 0.05, 0.05], **settings)
    assert len(made) == 3
    turns = iter(made)
    assert linear_probe(lambda: next(turns), labels, *test, rates=[0.5, 0.05, 0.05], **settings) == found
    assert linear_probe(made[0], labels, *test, rates=[0.5], **settings) == found[:1]
    assert linear_probe(made[0], labels, *test, rates=[0.5, 0.05, 0.05], **settings)[1:] != found[1:]


@pytest.mark.parametrize(("n", "m", "features"), [(1, 1, 1), (1, 9, 3), (40, 1, 2), (200, 150, 16)])
def test_nearest_neighbour_equals_scikit_learn(n, m, features):
    train, test = clouds(n, features=features, seed=1), clouds(m, features=features, seed=2)
    reference = KNeighborsClassifier(n_neighbors=1, metric="cosine").fit(train[0].numpy(), train[1].numpy())
    expected = 100 * reference.score(test[0].numpy(), test[1].numpy())
    assert nearest_neighbour(*train, *test) == pytest.approx(expected, abs=1e-9)


def test_scale_and_chunk_do_not_matter(monkeypatch):
    train, test = clouds(150, features=8, seed=1), clouds(101, features=8, seed=2)
    expected = nearest_neighbour(*train, *test)
    assert 30 < expected < 100
    for chunk in (1, 2, 100, 101, 5000):
        monkeypatch.setattr("repro.run.evaluate.CHUNK", chunk)
        assert nearest_neighbour(*train, *test) == expected
    scales = torch.linspace(0.01, 100, 150, dtype=torch.float64)[:, None]
    assert nearest_neighbour(train[0] * scales, train[1], test[0] * 1e3, test[1]) == expected


def test_standardised_features_are_those_of_scikit_learn():
    """A coordinate that never changes is only shifted."""
    (reference, _), (features, _) = clouds(40, seed=1), clouds(15, seed=2)
    reference[:, 2] = 5.0
    expected = StandardScaler().fit(reference.numpy()).transform(features.numpy())
    np.testing.assert_allclose(standardised(features, reference).numpy(), expected, rtol=1e-12)


def test_points_spread_from_nowhere_to_everywhere():
    opposite = torch.tensor([[0.6, 0.8], [-0.6, -0.8]], dtype=torch.float64)
    assert spread(opposite) == pytest.approx(1) and spread(opposite[:1].expand(7, -1)) == 0
    points, _ = clouds(30)
    assert spread(points) == pytest.approx(np.sqrt((points.numpy().std(axis=0) ** 2).sum()))
