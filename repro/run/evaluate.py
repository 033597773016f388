"""Linear probe and nearest neighbour on frozen features.

Features are resident tensors and a batch is an index, so an epoch is a few matrix products.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional


def linear_probe(
    train_features: Tensor,
    train_labels: Tensor,
    test_features: Tensor,
    test_labels: Tensor,
    *,
    classes: int,
    epochs: int,
    batch: int,
    learning_rate: float,
    momentum: float,
    final_rate: float,
    seed: int,
) -> list[float]:
    """Train a linear classifier by SGD with a cosine schedule per epoch; test accuracy after every epoch.

    The last entry is the one to report. Weights start at N(0, 0.01), biases at 0. Accuracy is the exact mean over the
    test samples (the released taxonomy code averages batch means instead).

    Args:
        train_features: (n, H), used as given.
        train_labels: (n,) integers in 0..classes-1.
        test_features: (m, H).
        test_labels: (m,).
        classes: number of classes.
        epochs: passes over the training features, at least 1.
        batch: samples per step; the last batch of an epoch may be smaller.
        learning_rate: of the first epoch.
        momentum: of SGD.
        final_rate: the schedule's floor as a fraction of `learning_rate`.
        seed: of the weights and the order of samples.

    Returns:
        Accuracy in percent after every epoch.

    Source: released taxonomy code, `lincls.py`.
    """
    generator = torch.Generator().manual_seed(seed)
    weight = (torch.randn(classes, train_features.shape[1], generator=generator) * 0.01).to(train_features)
    bias = torch.zeros(classes).to(train_features)
    parameters = [weight.requires_grad_(), bias.requires_grad_()]
    optimiser = torch.optim.SGD(parameters, lr=learning_rate, momentum=momentum)
    accuracies = []
    for epoch in range(epochs):
        fraction = final_rate + (1 - final_rate) * (1 + math.cos(math.pi * epoch / epochs)) / 2
        optimiser.param_groups[0]["lr"] = learning_rate * fraction
        order = torch.randperm(len(train_features), generator=generator).to(train_features.device)
        for index in order.split(batch):
            logits = functional.linear(train_features[index], weight, bias)
            loss = functional.cross_entropy(logits, train_labels[index])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            predicted = functional.linear(test_features, weight, bias).argmax(1)
        accuracies.append(_accuracy(predicted, test_labels))
    return accuracies


def nearest_neighbour(
    train_features: Tensor, train_labels: Tensor, test_features: Tensor, test_labels: Tensor, *, chunk: int = 1024
) -> float:
    """Accuracy in percent of giving each test sample the label of the training sample with the largest cosine.

    Args:
        train_features: (n, H), any scale.
        train_labels: (n,).
        test_features: (m, H).
        test_labels: (m,).
        chunk: test samples compared at a time; memory is chunk x n.
    """
    references = functional.normalize(train_features, dim=1)
    queries = functional.normalize(test_features, dim=1)
    nearest = torch.cat([(part @ references.T).argmax(1) for part in queries.split(chunk)])
    return _accuracy(train_labels[nearest], test_labels)


def _accuracy(predicted: Tensor, labels: Tensor) -> float:
    return 100 * (predicted == labels).sum().item() / len(labels)
