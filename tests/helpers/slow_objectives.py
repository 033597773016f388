"""Every objective as a loop written from its equation, and inputs for it."""

import torch
from torch.nn.functional import normalize

from repro.contrast.objectives import ceil, info_nce, jcl, ressl, sce, vanilla

SHAPES = [(1, 1, 1), (1, 5, 3), (4, 1, 2), (5, 7, 4)]  # N, K, d
# N, K, T, T', D
SEQUENCE_SHAPES = [(1, 1, 1, 1, 1), (3, 1, 4, 4, 2), (4, 5, 6, 6, 3), (4, 5, 6, 4, 3), (4, 5, 4, 6, 3)]


def projections(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(*shape, generator=generator, dtype=dtype), dim=-1).requires_grad_()


def contrast_inputs(n, k, d, dtype=torch.float64):
    return [projections(size, d, seed=seed, dtype=dtype) for seed, size in enumerate((n, n, k))]


def joint_inputs(n, m, k, d, dtype=torch.float64):
    return [projections(*shape, d, seed=seed, dtype=dtype) for seed, shape in enumerate(((n,), (n, m), (k,)))]


def sequence_inputs(n, k, t, t_entries, d, dtype=torch.float64):
    generator = torch.Generator().manual_seed(n + k + t)
    shapes = [(n, t, d), (n, t, d), (k, t_entries, d)]
    tensors = [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]
    lengths = torch.randint(1, t + 1, (n,), generator=generator)
    lengths[0] = t
    return [*tensors, lengths]


def mean_over(samples, loss):
    """The mean over samples of a loss."""
    losses = [loss(*sample) for sample in samples]
    return sum(losses) / len(losses)


def logs(query, others, temperature):
    """log of each other's share under the softmax of the dot products."""
    exponentials = [torch.exp(query @ other / temperature) for other in others]
    return [torch.log(value / sum(exponentials)) for value in exponentials]


def slow_info_nce(query, key, negatives, temperature):
    return mean_over(zip(query, key.detach(), strict=True),
                     lambda q, k: -logs(q, (k, *negatives), temperature)[0])


def slow_jcl(query, keys, negatives, temperature, strength):
    def loss(q, positives):
        mean = sum(positives) / len(positives)
        covariance = sum(torch.outer(k - mean, k - mean) for k in positives) / len(positives)
        a = q @ mean / temperature
        joint = torch.exp(a + strength * (q @ covariance @ q) / (2 * temperature**2))
        return torch.log(joint + sum(torch.exp(q @ n / temperature) for n in negatives)) - a

    return mean_over(zip(query, keys.detach(), strict=True), loss)


def slow_vanilla(query, keys, negatives, temperature):
    pairs = [(q, k) for q, positives in zip(query, keys.detach(), strict=True) for k in positives]
    return mean_over(pairs, lambda q, k: -logs(q, (k, *negatives), temperature)[0])


def slow_relations(key, negatives, temperature, positive_exponential=0.0):
    """Target weights of [positive, entries]; the positive's exponential is 0 if left out, 1 for a logit of 0."""
    exponentials = [torch.tensor(positive_exponential), *(torch.exp(key @ n / temperature) for n in negatives)]
    return [(value / sum(exponentials)).detach() for value in exponentials]


def slow_sce(query, key, negatives, temperature, key_temperature, weight, masked_positive=True):
    def loss(q, k):
        target = slow_relations(k, negatives, key_temperature, 0.0 if masked_positive else 1.0)
        shares = [weight + (1 - weight) * target[0], *((1 - weight) * share for share in target[1:])]
        return -sum(share * log for share, log in zip(shares, logs(q, (k, *negatives), temperature), strict=True))

    return mean_over(zip(query, key.detach(), strict=True), loss)


def slow_ressl(query, key, negatives, temperature, key_temperature):
    def loss(q, k):
        target = slow_relations(k, negatives, key_temperature)[1:]
        return -sum(share * log for share, log in zip(target, logs(q, negatives, temperature), strict=True))

    return mean_over(zip(query, key.detach(), strict=True), loss)


def slow_ceil(query, key, negatives, temperature):
    return mean_over(zip(query, key.detach(), strict=True),
                     lambda q, k: -torch.log(1 - torch.exp(logs(q, (k, *negatives), temperature)[0])))


def slow_distance(sequence, other, length):
    """Mean over coordinates, then over the first `length` frames both have."""
    length = min(length, len(sequence), len(other))
    return sum((sequence[t] - other[t]).abs().mean() for t in range(length)) / length


def slow_sequence_contrast(decoded, key_decoded, negatives, lengths, temperature):
    def loss(r, k, length):
        exponentials = [torch.exp(-slow_distance(r, other, length) / temperature) for other in (k, *negatives)]
        return -torch.log(exponentials[0] / sum(exponentials))

    return mean_over(zip(decoded, key_decoded.detach(), lengths.tolist(), strict=True), loss)


def assert_same(fast, slow, inputs):
    """Equal values, and equal gradients with respect to `inputs`."""
    torch.testing.assert_close(fast, slow, rtol=1e-12, atol=1e-12)
    gradients = torch.autograd.grad(fast, inputs), torch.autograd.grad(slow, inputs)
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-12)


CONTRASTS = {
    "info_nce": (info_nce, slow_info_nce, {"temperature": 0.2}),
    "ceil": (ceil, slow_ceil, {"temperature": 0.2}),
    "ressl": (ressl, slow_ressl, {"temperature": 0.2, "key_temperature": 0.1}),
    "sce": (sce, slow_sce, {"temperature": 0.2, "key_temperature": 0.1, "weight": 0.3}),
    "sce, leaking": (sce, slow_sce, {
        "temperature": 0.2, "key_temperature": 0.5, "weight": 0.3, "masked_positive": False}),
}
JOINT = {
    "jcl": (jcl, slow_jcl, {"temperature": 0.2, "strength": 1.5}),
    "vanilla": (vanilla, slow_vanilla, {"temperature": 0.2}),
}
