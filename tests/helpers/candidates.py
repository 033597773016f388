"""Made-up candidates, queries and a last layer, with its gradients by autograd, and a checked selection."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from repro.contrast.active import select


def drawing(seed):
    return torch.Generator().manual_seed(seed)


def pool(rows, classes, d, e, *, seed=0, dtype=torch.float64):
    """Candidates, a last layer and its inputs."""
    generator = drawing(seed)
    candidates = torch.randn(rows, d, generator=generator, dtype=dtype)
    inputs = torch.randn(classes, e, generator=generator, dtype=dtype)
    layer = nn.Linear(e, d).to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=dtype))
    return candidates, layer, inputs


def arguments(rows, classes, d, e, **given):
    candidates, layer, inputs = pool(rows, classes, d, e, **given)
    return candidates, layer(inputs).detach(), inputs


def last_layer_gradients(candidates, layer, inputs, temperature=1.0, normalised=False):
    """Of every candidate, what autograd sends into the weight and into the bias: (P, d, e), (P, d)."""
    weights, biases = [], []
    for key in candidates:
        classes = layer(inputs)
        if normalised:
            classes = normalize(classes, dim=1)
        logits = classes @ key / temperature
        loss = cross_entropy(logits.unsqueeze(0), logits.argmax().view(1))
        weight, bias = torch.autograd.grad(loss, [layer.weight, layer.bias])
        weights.append(weight)
        biases.append(bias)
    return torch.stack(weights), torch.stack(biases)


def slow_distances(rows):
    """Squared distances of all pairs, pair by pair."""
    return torch.stack([torch.stack([(row - other).square().sum() for other in rows]) for row in rows])


def rows_of(strategy, tensors, *, n_select, excluded=None, seed=0, **given):
    """The rows that `select` gives, which are made sure to be distinct and admissible."""
    rows = select(strategy, *tensors, n_select=n_select, excluded=excluded, generator=drawing(seed), **given)
    assert rows.shape == (n_select,) and rows.dtype == torch.int64
    assert len(set(rows.tolist())) == n_select and (excluded is None or not excluded[rows].any())
    return rows.tolist()
