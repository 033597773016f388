"""Linear probe and nearest neighbour on frozen features.

Features are resident tensors and a batch is an index, so an epoch is a few matrix products.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from repro.run.recorded import Buffers, Recorded

CHUNK = 1024  # test samples that `nearest_labels` compares at a time, each with all of the training


def linear_probe(
    train_features: Tensor | Callable[[], Tensor],
    train_labels: Tensor,
    test_features: Tensor,
    test_labels: Tensor,
    **settings: Any,
) -> list[float]:
    """Test accuracy of a linear classifier after every epoch, in percent; the last entry is the one to report.

    It is the exact mean over the test samples, with labels (m,) (the released taxonomy code averages batch means
    instead). All else is as for `linear_predictions`.
    """
    predictions = linear_predictions(train_features, train_labels, test_features, **settings)
    return [100 * right / len(test_labels) for right in (predictions == test_labels).sum(1).tolist()]


def linear_predictions(
    train_features: Tensor | Callable[[], Tensor],
    train_labels: Tensor,
    test_features: Tensor,
    *,
    classes: int,
    batch: int,
    rates: Sequence[float],
    momentum: float,
    seed: int,
) -> Tensor:
    """Train a linear classifier by SGD. Weights start at N(0, 0.01), biases at 0.

    Args:
        train_features: (n, H), used as given; or what makes them, called once an epoch, where the encoder sees every
            image augmented anew. The encoder being frozen, encoding first and shuffling then changes nothing.
        train_labels: (n,) integers in 0..classes-1.
        test_features: (m, H).
        classes: number of classes.
        batch: samples per step; the last batch of an epoch may be smaller.
        rates: the learning rate of every epoch, at least one; see `cosine_rates` and `dropping_rates`.
        momentum: of SGD.
        seed: of the weights and the order of samples.

    Returns:
        The labels predicted of the test samples after every epoch, (epochs, m).

    Source: released taxonomy code, `lincls.py`; SCE and MoCo, released code.
    """
    generator, device = torch.Generator().manual_seed(seed), test_features.device
    on_gpu = device.type == "cuda"
    weight = (torch.randn(classes, test_features.shape[1], generator=generator) * 0.01).to(test_features)
    bias = torch.zeros(classes).to(test_features)
    parameters = [weight.requires_grad_(), bias.requires_grad_()]
    optimiser = torch.optim.SGD(parameters, lr=rates[0], momentum=momentum, fused=on_gpu)
    given = Buffers(device, stay=on_gpu)

    def compute() -> Tensor:
        index = given.tensor("index")
        features = given.tensor("features") if callable(train_features) else train_features
        logits = functional.linear(features[index], weight, bias)
        loss = functional.cross_entropy(logits, train_labels[index])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.detach()

    step = Recorded(compute, device, optimisers=[optimiser])
    predictions = []
    for rate in rates:
        given["rate"] = rate
        optimiser.param_groups[0]["lr"] = given["rate"]
        if callable(train_features):
            given["features"] = train_features()
        order = torch.randperm(len(train_labels), generator=generator).to(device, non_blocking=True)
        for index in order.split(batch):
            given["index"] = index
            step(len(index))
        with torch.no_grad():
            predictions.append(functional.linear(test_features, weight, bias).argmax(1))
    return torch.stack(predictions)


def cosine_rates(epochs: int, learning_rate: float, final_rate: float) -> list[float]:
    """A cosine per epoch from `learning_rate` towards its fraction `final_rate` (taxonomy, released code)."""
    cosines = [(1 + math.cos(math.pi * epoch / epochs)) / 2 for epoch in range(epochs)]
    return [learning_rate * (final_rate + (1 - final_rate) * cosine) for cosine in cosines]


def dropping_rates(epochs: int, learning_rate: float) -> list[float]:
    """`learning_rate`, a tenth of it from 60 % of the epochs on, and a hundredth from 80 % (SCE, JCL, MoCo)."""
    return [learning_rate * 0.1 ** ((5 * epoch >= 3 * epochs) + (5 * epoch >= 4 * epochs)) for epoch in range(epochs)]


def nearest_neighbour(
    train_features: Tensor, train_labels: Tensor, test_features: Tensor, test_labels: Tensor
) -> float:
    """Accuracy of `nearest_labels` in percent; test_labels (m,), the others as there."""
    right = nearest_labels(train_features, train_labels, test_features) == test_labels
    return 100 * right.sum().item() / len(right)


def nearest_labels(train_features: Tensor, train_labels: Tensor, test_features: Tensor) -> Tensor:
    """The label of the training sample with the largest cosine, for each test sample, (m,).

    Args:
        train_features: (n, H), any scale.
        train_labels: (n,).
        test_features: (m, H).
    """
    references = functional.normalize(train_features, dim=1)
    queries = functional.normalize(test_features, dim=1)
    nearest = torch.cat([(part @ references.T).argmax(1) for part in queries.split(CHUNK)])
    return train_labels[nearest]


def standardised(features: Tensor, reference: Tensor) -> Tensor:
    """Features (n, H) shifted and scaled as those of the reference (m, H) need to have mean 0 and deviation 1.

    A coordinate that is constant in the reference is only shifted.
    """
    deviation, mean = torch.std_mean(reference, dim=0, correction=0)
    return (features - mean) / deviation.where(deviation > 0, 1)


def spread(points: Tensor) -> float:
    """Standard deviation over points (n, d), root mean square over coordinates, times the square root of d.

    Of points of unit length 1 if their mean is zero, 0 if all are equal.
    """
    return points.var(0, correction=0).sum().sqrt().item()
