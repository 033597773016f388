"""Every objective against a loop written from its equation, then its identities, limits and errors."""

import math
from functools import partial

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from repro.contrast.objectives import (
    attraction,
    ceil,
    info_nce,
    jcl,
    prediction,
    reconstruction,
    ressl,
    sce,
    sce_target,
    sequence_contrast,
    vanilla,
)

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


def slow_info_nce(query, key, negatives, temperature):
    losses = []
    for q, k in zip(query, key.detach(), strict=True):
        exponentials = [torch.exp(q @ other / temperature) for other in (k, *negatives)]
        losses.append(-torch.log(exponentials[0] / sum(exponentials)))
    return sum(losses) / len(losses)


def slow_jcl(query, keys, negatives, temperature, strength):
    losses = []
    for q, positives in zip(query, keys.detach(), strict=True):
        mean = sum(positives) / len(positives)
        covariance = sum(torch.outer(k - mean, k - mean) for k in positives) / len(positives)
        a = q @ mean / temperature
        joint = torch.exp(a + strength * (q @ covariance @ q) / (2 * temperature**2))
        losses.append(torch.log(joint + sum(torch.exp(q @ n / temperature) for n in negatives)) - a)
    return sum(losses) / len(losses)


def slow_vanilla(query, keys, negatives, temperature):
    losses = []
    for q, positives in zip(query, keys.detach(), strict=True):
        repulsion = sum(torch.exp(q @ n / temperature) for n in negatives)
        for k in positives:
            positive = torch.exp(q @ k / temperature)
            losses.append(-torch.log(positive / (positive + repulsion)))
    return sum(losses) / len(losses)


def slow_relations(key, negatives, temperature, positive_exponential=0.0):
    """Target weights of [positive, entries]; the positive's exponential is 0 if left out, 1 for a logit of 0."""
    exponentials = [torch.tensor(positive_exponential), *(torch.exp(key @ n / temperature) for n in negatives)]
    return [(value / sum(exponentials)).detach() for value in exponentials]


def slow_sce(query, key, negatives, temperature, key_temperature, weight, masked_positive=True):
    losses = []
    for q, k in zip(query, key.detach(), strict=True):
        target = slow_relations(k, negatives, key_temperature, 0.0 if masked_positive else 1.0)
        target = [(1 - weight) * share for share in target]
        target[0] = target[0] + weight
        exponentials = [torch.exp(q @ other / temperature) for other in (k, *negatives)]
        logs = [torch.log(value / sum(exponentials)) for value in exponentials]
        losses.append(-sum(w * log for w, log in zip(target, logs, strict=True)))
    return sum(losses) / len(losses)


def slow_ressl(query, key, negatives, temperature, key_temperature):
    losses = []
    for q, k in zip(query, key.detach(), strict=True):
        target = slow_relations(k, negatives, key_temperature)[1:]
        exponentials = [torch.exp(q @ n / temperature) for n in negatives]
        logs = [torch.log(value / sum(exponentials)) for value in exponentials]
        losses.append(-sum(w * log for w, log in zip(target, logs, strict=True)))
    return sum(losses) / len(losses)


def slow_ceil(query, key, negatives, temperature):
    losses = []
    for q, k in zip(query, key.detach(), strict=True):
        exponentials = [torch.exp(q @ other / temperature) for other in (k, *negatives)]
        losses.append(-torch.log(1 - exponentials[0] / sum(exponentials)))
    return sum(losses) / len(losses)


def slow_distance(sequence, other, length):
    """Mean over coordinates, then over the first `length` frames both have."""
    length = min(length, len(sequence), len(other))
    return sum((sequence[t] - other[t]).abs().mean() for t in range(length)) / length


def slow_sequence_contrast(decoded, key_decoded, negatives, lengths, temperature):
    losses = []
    for r, k, length in zip(decoded, key_decoded.detach(), lengths.tolist(), strict=True):
        exponentials = [torch.exp(-slow_distance(r, other, length) / temperature) for other in (k, *negatives)]
        losses.append(-torch.log(exponentials[0] / sum(exponentials)))
    return sum(losses) / len(losses)


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
    "sce, leaking": (
        sce,
        slow_sce,
        {"temperature": 0.2, "key_temperature": 0.5, "weight": 0.3, "masked_positive": False},
    ),
}
JOINT = {
    "jcl": (jcl, slow_jcl, {"temperature": 0.2, "strength": 1.5}),
    "vanilla": (vanilla, slow_vanilla, {"temperature": 0.2}),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CONTRASTS)
def test_contrast_equals_its_loop(name, shape):
    fast, slow, settings = CONTRASTS[name]
    query, key, negatives = contrast_inputs(*shape)
    assert_same(fast(query, key, negatives, **settings), slow(query, key, negatives, **settings), (query, negatives))


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (4, 1, 3, 2), (1, 5, 1, 3), (3, 5, 7, 4)])
@pytest.mark.parametrize("name", JOINT)
def test_objective_of_several_keys_equals_its_loop(name, shape):
    fast, slow, settings = JOINT[name]
    query, keys, negatives = joint_inputs(*shape)
    assert_same(fast(query, keys, negatives, **settings), slow(query, keys, negatives, **settings), (query, negatives))


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 4), (5, 3)])
def test_attraction_equals_squared_distance_of_both_sides(n, d):
    query, target = projections(n, d, seed=0), projections(n, d, seed=1)
    slow = sum(((q - t) ** 2).sum() for q, t in zip(query, target, strict=True)) / n
    torch.testing.assert_close(attraction(query, target), slow, rtol=1e-12, atol=1e-12)
    for side, other in ((query, target), (target, query)):
        (gradient,) = torch.autograd.grad(attraction(query, target), side)
        torch.testing.assert_close(gradient, -2 * other / n, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SEQUENCE_SHAPES)
def test_reconstruction_equals_its_loop(shape):
    decoded, sequence, _, lengths = sequence_inputs(*shape)
    distances = [slow_distance(*each) for each in zip(decoded, sequence, lengths.tolist(), strict=True)]
    assert_same(reconstruction(decoded, sequence, lengths), sum(distances) / len(distances), (decoded, sequence))


@pytest.mark.parametrize("shape", [*SEQUENCE_SHAPES, (3, 11, 4, 4, 2)])  # the last: entries three at a time
def test_sequence_contrast_equals_its_loop(shape):
    inputs = sequence_inputs(*shape)
    fast, slow = sequence_contrast(*inputs, 0.3), slow_sequence_contrast(*inputs, 0.3)
    assert_same(fast, slow, (inputs[0], inputs[2]))


@pytest.mark.parametrize("objective", [reconstruction, partial(sequence_contrast, temperature=0.3)])
def test_frames_beyond_the_length_are_ignored_even_if_not_finite(objective):
    decoded, other, negatives, _ = sequence_inputs(2, 3, 5, 5, 2)
    rest = [negatives, torch.tensor([2, 5])] if isinstance(objective, partial) else [torch.tensor([2, 5])]
    broken = decoded.detach().clone()
    broken[0, 2:] = math.nan
    broken.requires_grad_()
    loss = objective(broken, other, *rest)
    torch.testing.assert_close(loss, objective(decoded, other, *rest))
    (gradient,) = torch.autograd.grad(loss, broken)
    assert gradient.isfinite().all()
    assert (gradient[0, 2:] == 0).all()


def test_keys_are_constants():
    query, key, negatives = contrast_inputs(3, 4, 2)
    keys = projections(3, 2, 2, seed=5)
    decoded, key_decoded, entries, lengths = sequence_inputs(3, 4, 5, 5, 2)
    losses = [
        (info_nce(query, key, negatives, 0.2), key),
        (jcl(query, keys, negatives, 0.2, 1.0), keys),
        (vanilla(query, keys, negatives, 0.2), keys),
        (sce(query, key, negatives, 0.2, 0.1, 0.5), key),
        (ressl(query, key, negatives, 0.2, 0.1), key),
        (ceil(query, key, negatives, 0.2), key),
        (sequence_contrast(decoded, key_decoded, entries, lengths, 0.2), key_decoded),
    ]
    for loss, constant in losses:
        assert torch.autograd.grad(loss, constant, allow_unused=True) == (None,)


# Identities of the papers


@pytest.mark.parametrize("strength", [0.0, 0.7, 4.0])
def test_jcl_is_cross_entropy_plus_compensation(strength):
    query, keys, negatives = joint_inputs(4, 5, 6, 3)
    centred = keys - keys.mean(1, keepdim=True)
    covariance = centred.transpose(1, 2) @ centred / keys.shape[1]
    quadratic = torch.einsum("nd,nde,ne->n", query, covariance, query)
    torch.testing.assert_close((query.unsqueeze(1) * keys).sum(2).var(1, correction=0), quadratic)

    compensation = strength * quadratic / (2 * 0.2**2)
    positive = (query * keys.mean(1)).sum(1) / 0.2 + compensation
    logits = torch.cat([positive.unsqueeze(1), query @ negatives.T / 0.2], dim=1)
    expected = cross_entropy(logits, torch.zeros(4, dtype=torch.int64)) + compensation.mean()
    torch.testing.assert_close(jcl(query, keys, negatives, 0.2, strength), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("strength", [0.0, 4.0])
def test_jcl_with_one_key_is_info_nce(strength):
    query, key, negatives = contrast_inputs(4, 5, 3)
    loss = jcl(query, key.unsqueeze(1), negatives, 0.2, strength)
    assert_same(loss, info_nce(query, key, negatives, 0.2), (query, negatives))


def test_jcl_without_strength_is_info_nce_on_mean_keys():
    query, keys, negatives = joint_inputs(4, 5, 6, 3)
    expected = info_nce(query, keys.mean(1), negatives, 0.2)
    assert_same(jcl(query, keys, negatives, 0.2, 0.0), expected, (query, negatives))


def test_jcl_bounds_the_expected_info_nce():
    query, keys, negatives = joint_inputs(4, 5, 6, 3)
    expected = sum(info_nce(query, keys[:, m], negatives, 0.5) for m in range(5)) / 5
    assert_same(vanilla(query, keys, negatives, 0.5), expected, (query, negatives))
    assert info_nce(query, keys.mean(1), negatives, 0.5) < expected < jcl(query, keys, negatives, 0.5, 1.0)


@pytest.mark.parametrize(("n", "k", "d"), SHAPES)
def test_info_nce_leaves_excluded_negatives_out(n, k, d):
    query, key, negatives = contrast_inputs(n, k, d)
    excluded = torch.rand(n, k, generator=torch.Generator().manual_seed(5)) < 0.5
    slow = [slow_info_nce(query[i : i + 1], key[i : i + 1], negatives[~excluded[i]], 0.2) for i in range(n)]
    assert_same(info_nce(query, key, negatives, 0.2, excluded=excluded), sum(slow) / n, (query,))


def test_info_nce_of_a_query_without_negatives_is_zero():
    query, key, negatives = contrast_inputs(1, 3, 4)
    loss = info_nce(query, key, negatives, 0.2, excluded=torch.ones(1, 3, dtype=torch.bool))
    gradient, = torch.autograd.grad(loss, query)
    assert loss.item() == 0 and gradient.eq(0).all()


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_sce_decomposes(shape, weight):
    query, key, negatives = contrast_inputs(*shape)
    parts = ressl(query, key, negatives, 0.1, 0.05) + ceil(query, key, negatives, 0.1)
    expected = weight * info_nce(query, key, negatives, 0.1) + (1 - weight) * parts
    assert_same(sce(query, key, negatives, 0.1, 0.05, weight), expected, (query, negatives))


@pytest.mark.parametrize("masked_positive", [True, False])
def test_sce_of_weight_one_is_info_nce(masked_positive):
    query, key, negatives = contrast_inputs(4, 5, 3)
    loss = sce(query, key, negatives, 0.1, 0.05, 1.0, masked_positive)
    assert_same(loss, info_nce(query, key, negatives, 0.1), (query,))


def test_sce_of_weight_zero_without_positive_is_ressl():
    query, _, negatives = contrast_inputs(4, 5, 3)
    key = -100 * query.detach()  # a logit of -1000: the positive is no candidate any more
    loss = sce(query, key, negatives, 0.1, 0.05, 0.0)
    torch.testing.assert_close(loss, ressl(query, key, negatives, 0.1, 0.05), rtol=1e-12, atol=1e-12)


def test_zero_logit_leaks_weight_to_the_positive():
    query, key, negatives = contrast_inputs(4, 5, 3)
    relations, logits = key @ negatives.T / 0.5, query @ negatives.T / 0.1
    leak = 1 / (1 + relations.exp().sum(1))
    gap = (relations.softmax(1) * logits).sum(1) - (query * key).sum(1) / 0.1
    masked, leaking = (sce(query, key, negatives, 0.1, 0.5, 0.2, masked) for masked in (True, False))
    torch.testing.assert_close(leaking - masked, 0.8 * (leak * gap).mean(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("masked_positive", [True, False])
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n, k, d", SHAPES)
def test_sce_is_the_cross_entropy_of_prediction_and_target(n, k, d, weight, masked_positive):
    query, key, negatives = contrast_inputs(n, k, d)
    target = sce_target(key, negatives, 0.3, weight, masked_positive)
    predicted = prediction(query, key, negatives, 0.2)
    for row, k_i in zip(target, key, strict=True):
        expected = [(1 - weight) * s for s in slow_relations(k_i, negatives, 0.3, 0.0 if masked_positive else 1.0)]
        torch.testing.assert_close(row[0], expected[0] + weight, check_dtype=False)
        torch.testing.assert_close(row[1:], torch.stack(expected[1:]), check_dtype=False)
    for row, q, k_i in zip(predicted, query, key, strict=True):
        exponentials = torch.stack([torch.exp(q @ other / 0.2) for other in (k_i, *negatives)])
        torch.testing.assert_close(row, exponentials / exponentials.sum())
    torch.testing.assert_close(target.sum(1), torch.ones(n, dtype=torch.float64))
    assert not target.requires_grad
    cross_entropy = -(target * predicted.log()).sum(1).mean()
    assert_same(sce(query, key, negatives, 0.2, 0.3, weight, masked_positive), cross_entropy, (query, negatives))


def test_targets_and_predictions_check_what_they_are_given():
    query, key, negatives = contrast_inputs(2, 3, 4)
    with pytest.raises(ValueError, match=r"weight=1\.5 should be between 0"):
        sce_target(key, negatives, 0.1, 1.5)
    with pytest.raises(ValueError, match="key_temperature=0"):
        sce_target(key, negatives, 0.0, 0.5)
    with pytest.raises(ValueError, match="temperature=-1"):
        prediction(query, key, negatives, -1.0)
    with pytest.raises(ValueError, match="d=3 in negatives but d=4 in key"):
        sce_target(key, negatives[:, :3], 0.1, 0.5)
    with pytest.raises(ValueError, match="d=3 in negatives but d=4 in query"):
        prediction(torch.ones(2, 4), torch.ones(2, 4), torch.ones(5, 3), 0.1)


# Values known in advance


@pytest.mark.parametrize("k", [1, 7])
def test_values_when_all_logits_agree(k):
    same = torch.tensor([0.6, 0.8], dtype=torch.float64)
    query, key, negatives = same.expand(3, 2), same.expand(3, 2), same.expand(k, 2)
    zeros, entries, lengths = torch.zeros(3, 4, 2), torch.zeros(k, 4, 2), torch.tensor([1, 4, 2])
    values = {
        info_nce(query, key, negatives, 0.1): math.log(k + 1),
        jcl(query, key.unsqueeze(1).expand(3, 5, 2), negatives, 0.1, 4.0): math.log(k + 1),
        vanilla(query, key.unsqueeze(1).expand(3, 5, 2), negatives, 0.1): math.log(k + 1),
        sce(query, key, negatives, 0.1, 0.05, 0.5): math.log(k + 1),
        ressl(query, key, negatives, 0.1, 0.05): math.log(k),
        ceil(query, key, negatives, 0.1): math.log((k + 1) / k),
        sequence_contrast(zeros, zeros, entries, lengths, 0.1): math.log(k + 1),
    }
    for value, expected in values.items():
        assert value.item() == pytest.approx(expected, abs=1e-6)


def test_values_of_attraction_and_reconstruction():
    x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    assert [attraction(x, other).item() for other in (x, y, -x)] == [0, 2, 4]
    sequence = torch.tensor([[[1.0, -3.0], [4.0, 0.0], [9.0, 9.0]]])
    assert reconstruction(torch.zeros_like(sequence), sequence, torch.tensor([2])).item() == 2


def test_a_positive_of_probability_one_is_exact():
    one = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
    # logits 100 and -100, so that 1 - p rounds to 0
    assert info_nce(one, one, -one, 0.01).item() == pytest.approx(math.log1p(math.exp(-200)), rel=1e-12, abs=0)
    loss = ceil(one, one, -one.detach(), 0.01)
    assert loss.item() == pytest.approx(200, rel=1e-12)
    assert torch.autograd.grad(loss, one)[0].item() == pytest.approx(200, rel=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", [*CONTRASTS, *JOINT, "sequence_contrast"])
def test_huge_logits_do_not_overflow(name, sign):
    query, key, negatives = contrast_inputs(3, 4, 2, dtype=torch.float32)
    if name == "sequence_contrast":
        decoded, other, entries, lengths = sequence_inputs(3, 4, 5, 5, 2, dtype=torch.float32)
        query, loss = decoded, sequence_contrast(decoded, 1e4 * sign * other, 1e4 * entries, lengths, 0.01)
    elif name in JOINT:
        fast, _, settings = JOINT[name]
        keys = 100 * sign * torch.stack([key, negatives[:3]], dim=1)
        loss = fast(query, keys, 100 * negatives, **settings | {"temperature": 0.01})
    else:
        fast, _, settings = CONTRASTS[name]
        loss = fast(query, 100 * sign * key, 100 * negatives, **settings | {"temperature": 0.01})
    assert loss.isfinite()
    assert torch.autograd.grad(loss, query)[0].isfinite().all()


# Precision and memory


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", [*CONTRASTS, *JOINT, "attraction", "reconstruction", "sequence_contrast"])
def test_autocast_leaves_the_loss_in_float32(name, dtype):
    query, key, negatives = (tensor.detach().to(dtype) for tensor in contrast_inputs(8, 40, 16))
    keys = joint_inputs(8, 3, 40, 16)[1].detach().to(dtype)
    *sequences, lengths = sequence_inputs(4, 6, 5, 5, 3)
    sequences = [tensor.detach().to(dtype) for tensor in sequences]
    objective, tensors = {
        "attraction": (attraction, [query, key]),
        "reconstruction": (partial(reconstruction, lengths=lengths), sequences[:2]),
        "sequence_contrast": (partial(sequence_contrast, lengths=lengths, temperature=0.1), sequences),
        **{label: (partial(fast, **given), [query, key, negatives]) for label, (fast, _, given) in CONTRASTS.items()},
        **{label: (partial(fast, **given), [query, keys, negatives]) for label, (fast, _, given) in JOINT.items()},
    }[name]
    tensors[0].requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = objective(*tensors)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, objective(*(tensor.float() for tensor in tensors)))
    (gradient,) = torch.autograd.grad(loss, tensors[0])
    assert gradient.dtype == dtype
    assert gradient.isfinite().all()


def test_float32_stays_accurate_where_most_frames_are_padding():
    inputs = sequence_inputs(4, 16, 50, 50, 20)
    inputs[3] = torch.tensor([1, 2, 3, 50])
    rounded = [tensor.float() for tensor in inputs[:3]]
    value, expected = sequence_contrast(*rounded, inputs[3], 0.1), sequence_contrast(*inputs, 0.1)
    torch.testing.assert_close(value.double(), expected, rtol=1e-4, atol=0)


class LargestTensor(TorchDispatchMode):
    """Records the largest number of elements that an operation returns."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        return result


def largest_tensor(objective, *inputs):
    """Elements of the largest tensor made in the forward and backward pass of an objective."""
    with LargestTensor() as record:
        objective(*inputs).backward()
    return record.elements


def test_sequence_contrast_never_makes_all_differences():
    n, k, t, d = 16, 80, 10, 15
    decoded, key_decoded, negatives, lengths = sequence_inputs(n, k, t, t, d, dtype=torch.float32)
    negatives = negatives.detach()
    broadcast = largest_tensor(lambda r: (r.unsqueeze(1) - negatives).abs().mean(), decoded)
    assert broadcast == n * k * t * d
    used = largest_tensor(sequence_contrast, decoded, key_decoded, negatives, lengths, 0.1)
    assert used <= max(n * k, n * t * d, k * t * d)


def test_sequence_contrast_reads_no_value_back_from_the_device():
    decoded, key_decoded = torch.empty(2, 32, 50, 150, device="meta", requires_grad=True)
    negatives, lengths = torch.empty(2048, 50, 150, device="meta"), torch.empty(32, dtype=torch.int64, device="meta")
    loss = sequence_contrast(decoded, key_decoded, negatives, lengths, 0.1)  # reading a meta tensor raises
    assert torch.autograd.grad(loss, decoded)[0].shape == (32, 50, 150)


@pytest.mark.parametrize("name", CONTRASTS)
def test_contrast_never_joins_positive_and_negatives(name):
    fast, _, settings = CONTRASTS[name]
    query, key, negatives = contrast_inputs(7, 60, 3)
    assert largest_tensor(partial(fast, **settings), query, key, negatives) == 7 * 60


@pytest.mark.parametrize("name", JOINT)
def test_objective_of_several_keys_never_joins_positives_and_negatives(name):
    fast, _, settings = JOINT[name]
    query, keys, negatives = joint_inputs(7, 3, 60, 3)
    assert largest_tensor(partial(fast, **settings), query, keys, negatives) == 7 * 60


def test_jcl_makes_no_covariance():
    query, keys, negatives = joint_inputs(2, 3, 5, 64)
    assert largest_tensor(jcl, query, keys, negatives, 0.2, 4.0) <= 2 * 3 * 64


# Errors


def zeros(*shape):
    return torch.zeros(shape)


def lengths_of(*values):
    return torch.tensor(values)


BAD = [
    (info_nce, [zeros(4, 8), zeros(3, 8), zeros(5, 8), 0.1], "N=3 in key but N=4 in query"),
    (info_nce, [zeros(4, 8), zeros(4, 8), zeros(5, 7), 0.1], "d=7 in negatives but d=8 in query; .* one output size"),
    (info_nce, [zeros(4, 8), zeros(4, 8), zeros(0, 8), 0.1], r"negatives has shape \(0, 8\), so K=0; .* at least one"),
    (info_nce, [zeros(0, 8), zeros(0, 8), zeros(5, 8), 0.1], r"query has shape \(0, 8\), so N=0"),
    (info_nce, [zeros(8), zeros(8), zeros(5, 8), 0.1], r"query has shape \(8,\); it should be \(N, d\)"),
    (info_nce, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.0], "temperature=0.0 should be positive"),
    (partial(info_nce, excluded=zeros(4, 6) > 0), [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1], "K=6 in excluded"),
    (ceil, [zeros(4, 8), zeros(4, 8), zeros(5, 8), -0.1], "temperature=-0.1"),
    (ceil, [zeros(4, 8), zeros(4, 2), zeros(5, 8), 0.1], "d=2 in key but d=8 in query"),
    (ressl, [zeros(4, 8), zeros(4, 8), zeros(5, 8), math.inf, 0.1], "temperature=inf"),
    (ressl, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, math.nan], "key_temperature=nan"),
    (ressl, [zeros(4, 8), zeros(2, 8), zeros(5, 8), 0.1, 0.1], "N=2 in key but N=4 in query"),
    (sce, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, 0.0, 0.5], "key_temperature=0.0"),
    (sce, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, 0.1, 1.5], "weight=1.5 should be between 0"),
    (sce, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, 0.1, math.nan], "weight=nan"),
    (sce, [zeros(4, 8), zeros(4, 8), zeros(5, 3), 0.1, 0.1, 0.5], "d=3 in negatives but d=8 in query"),
    (jcl, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, 1.0], r"keys has shape \(4, 8\); it should be \(N, M, d\)"),
    (jcl, [zeros(4, 8), zeros(4, 0, 8), zeros(5, 8), 0.1, 1.0], "M=0; give at least one positive key"),
    (jcl, [zeros(4, 8), zeros(4, 2, 8), zeros(5, 8), 0.1, -1.0], "strength=-1.0"),
    (jcl, [zeros(4, 8), zeros(4, 2, 8), zeros(5, 8), 0.1, math.inf], "strength=inf"),
    (jcl, [zeros(4, 8), zeros(4, 2, 8), zeros(5, 8), 0.0, 1.0], "temperature=0.0"),
    (vanilla, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1], r"keys has shape \(4, 8\); it should be \(N, M, d\)"),
    (vanilla, [zeros(4, 8), zeros(4, 0, 8), zeros(5, 8), 0.1], "M=0; give at least one positive key"),
    (vanilla, [zeros(4, 8), zeros(3, 2, 8), zeros(5, 8), 0.1], "N=3 in keys but N=4 in query"),
    (vanilla, [zeros(4, 8), zeros(4, 2, 8), zeros(5, 3), 0.1], "d=3 in negatives but d=8 in query"),
    (vanilla, [zeros(4, 8), zeros(4, 2, 8), zeros(5, 8), math.nan], "temperature=nan"),
    (attraction, [zeros(4, 8), zeros(4, 7)], "d=7 in target but d=8 in query"),
    (attraction, [zeros(0, 8), zeros(0, 8)], "N=0; .* non-empty batch"),
    (reconstruction, [zeros(2, 5, 3), zeros(2, 6, 3), lengths_of(1, 2)], "T=6 in sequence but T=5 in decoded"),
    (reconstruction, [zeros(2, 5, 3), zeros(2, 5, 3), lengths_of(1)], "N=1 in lengths but N=2 in decoded"),
    (reconstruction, [zeros(2, 5, 3), zeros(2, 5, 3), lengths_of(0, 4)], "from 0 to 4, but decoded has 5 frames"),
    (reconstruction, [zeros(2, 5, 3), zeros(2, 5, 3), lengths_of(1, 6)], "from 1 to 6, but decoded has 5 frames"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 5, 3), zeros(0, 5, 3), lengths_of(1, 2), 0.1], "K=0"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 5, 3), zeros(4, 0, 3), lengths_of(1, 2), 0.1], "T'=0"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 5, 3), zeros(4, 5, 2), lengths_of(1, 2), 0.1], "D=2 in.* D=3 in"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 4, 3), zeros(4, 5, 3), lengths_of(1, 2), 0.1], "T=4 in key_decoded"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 5, 3), zeros(4, 5, 3), lengths_of(1, 7), 0.1], "1 to 7, .* 5 frames"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 5, 3), zeros(4, 5, 3), lengths_of(1, 2), 0.0], "temperature=0.0"),
]


@pytest.mark.parametrize(("objective", "arguments", "message"), BAD)
def test_impossible_arguments_raise_with_the_numbers(objective, arguments, message):
    with pytest.raises(ValueError, match=message):
        objective(*arguments)
