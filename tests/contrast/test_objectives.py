"""Every objective against a loop written from its equation; precision, memory and errors."""

import itertools
import math
from functools import partial

import pytest
import torch
from stand_in import Orders
from torch.nn.functional import normalize

from repro.contrast import objectives
from repro.contrast.objectives import (
    attraction,
    ceil,
    info_nce,
    jcl,
    reconstruction,
    ressl,
    sce,
    sequence_contrast,
    squared_error,
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
    "jcl, without strength": (jcl, slow_jcl, {"temperature": 0.2, "strength": 0.0}),
    "vanilla": (vanilla, slow_vanilla, {"temperature": 0.2}),
}


# ---------------------------------------------------------------------------------------------- against loops


@pytest.mark.parametrize(("name", "shape"), [
    *itertools.product(CONTRASTS, SHAPES),
    *itertools.product(JOINT, [(1, 1, 1, 1), (4, 1, 3, 2), (1, 5, 1, 3), (3, 5, 7, 4)]),
])
def test_contrast_equals_its_loop(name, shape):
    fast, slow, settings = (CONTRASTS | JOINT)[name]
    query, keys, negatives = contrast_inputs(*shape) if name in CONTRASTS else joint_inputs(*shape)
    loss = fast(query, keys, negatives, **settings)
    assert_same(loss, slow(query, keys, negatives, **settings), (query, negatives))
    assert torch.autograd.grad(loss, keys, allow_unused=True) == (None,)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 4), (5, 3)])
def test_attraction_equals_squared_distance_of_both_sides(n, d):
    query, target = projections(n, d, seed=0), projections(n, d, seed=1)
    slow = sum(((q - t) ** 2).sum() for q, t in zip(query, target, strict=True)) / n
    torch.testing.assert_close(attraction(query, target), slow, rtol=1e-12, atol=1e-12)
    gradients = torch.autograd.grad(attraction(query, target), (query, target))
    torch.testing.assert_close(gradients, (-2 * target / n, -2 * query / n), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SEQUENCE_SHAPES)
def test_reconstructions_equal_their_loops(shape):
    decoded, sequence, _, lengths = sequence_inputs(*shape)
    triples = list(zip(decoded, sequence, lengths.tolist(), strict=True))
    distances = [slow_distance(*triple) for triple in triples]
    assert_same(reconstruction(decoded, sequence, lengths), sum(distances) / len(triples), (decoded, sequence))
    squares = [sum((r[t] - x[t]).square().sum() for t in range(length)) for r, x, length in triples]
    assert_same(squared_error(decoded, sequence, lengths), sum(squares) / len(triples), (decoded, sequence))


@pytest.mark.parametrize("shape", [*SEQUENCE_SHAPES, (3, 11, 4, 4, 2)])  # the last: entries three at a time
def test_sequence_contrast_equals_its_loop(shape):
    inputs = sequence_inputs(*shape)
    loss = sequence_contrast(*inputs, 0.3)
    assert_same(loss, slow_sequence_contrast(*inputs, 0.3), (inputs[0], inputs[2]))
    assert torch.autograd.grad(loss, inputs[1], allow_unused=True) == (None,)


@pytest.mark.parametrize("name", ["reconstruction", "squared_error", "sequence_contrast"])
def test_frames_beyond_the_length_are_ignored_even_if_not_finite(name):
    decoded, other, negatives, _ = sequence_inputs(2, 3, 5, 5, 2)
    lengths, broken = torch.tensor([2, 5]), decoded.detach().clone()
    broken[0, 2:] = math.nan
    broken.requires_grad_()
    given = (negatives, lengths, 0.3) if name == "sequence_contrast" else (lengths,)
    loss = getattr(objectives, name)(broken, other, *given)
    torch.testing.assert_close(loss, getattr(objectives, name)(decoded, other, *given))
    gradient, = torch.autograd.grad(loss, broken)
    assert gradient.isfinite().all() and (gradient[0, 2:] == 0).all()


@pytest.mark.parametrize(("n", "k", "d"), SHAPES)
def test_info_nce_leaves_excluded_negatives_out(n, k, d):
    query, key, negatives = contrast_inputs(n, k, d)
    excluded = torch.rand(n, k, generator=torch.Generator().manual_seed(5)) < 0.5
    slow = [slow_info_nce(query[i : i + 1], key[i : i + 1], negatives[~excluded[i]], 0.2) for i in range(n)]
    assert_same(info_nce(query, key, negatives, 0.2, excluded=excluded), sum(slow) / n, (query,))
    loss = info_nce(query, key, negatives, 0.2, excluded=torch.ones(n, k, dtype=torch.bool))
    assert loss.item() == 0 and torch.autograd.grad(loss, query)[0].eq(0).all()


def test_a_positive_of_probability_one_is_exact():
    one = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
    # logits 100 and -100, so that 1 - p rounds to 0
    assert info_nce(one, one, -one, 0.01).item() == pytest.approx(math.log1p(math.exp(-200)), rel=1e-12, abs=0)
    loss = ceil(one, one, -one.detach(), 0.01)
    assert loss.item() == pytest.approx(200, rel=1e-12)
    assert torch.autograd.grad(loss, one)[0].item() == pytest.approx(200, rel=1e-12)


# ---------------------------------------------------------------------------------------------- precision and memory


def inputs_of(name, dtype):
    """An objective with its settings, and float tensors for it."""
    if name in CONTRASTS | JOINT:
        fast, _, settings = (CONTRASTS | JOINT)[name]
        return partial(fast, **settings), contrast_inputs(8, 40, 16, dtype) if name in CONTRASTS else joint_inputs(
            8, 3, 40, 16, dtype)
    if name == "attraction":
        return attraction, contrast_inputs(8, 40, 16, dtype)[:2]
    *sequences, lengths = sequence_inputs(4, 6, 5, 5, 3, dtype)
    if name == "sequence_contrast":
        return partial(sequence_contrast, lengths=lengths, temperature=0.1), sequences
    return partial(getattr(objectives, name), lengths=lengths), sequences[:2]


NAMES = [*CONTRASTS, *JOINT, "attraction", "reconstruction", "squared_error", "sequence_contrast"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_autocast_leaves_the_loss_in_float32(name, dtype):
    objective, tensors = inputs_of(name, torch.float32)
    tensors = [tensor.detach().to(dtype) for tensor in tensors]
    tensors[0].requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = objective(*tensors)
    assert loss.dtype == torch.float32 and torch.equal(loss, objective(*(tensor.float() for tensor in tensors)))
    gradient, = torch.autograd.grad(loss, tensors[0])
    assert gradient.dtype == dtype and gradient.isfinite().all()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", [*CONTRASTS, *JOINT, "sequence_contrast"])
def test_huge_logits_do_not_overflow(name, sign):
    objective, (query, keys, negatives) = inputs_of(name, torch.float32)
    loss = objective(query, 1e4 * sign * keys, 1e4 * negatives)
    assert loss.isfinite() and torch.autograd.grad(loss, query)[0].isfinite().all()


def test_float32_stays_accurate_where_most_frames_are_padding():
    *tensors, _ = sequence_inputs(4, 16, 50, 50, 20)
    lengths = torch.tensor([1, 2, 3, 50])
    value = sequence_contrast(*(tensor.float() for tensor in tensors), lengths, 0.1)
    torch.testing.assert_close(value.double(), sequence_contrast(*tensors, lengths, 0.1), rtol=1e-4, atol=0)


def largest_tensor(objective, *inputs):
    """Elements of the largest tensor made in the forward and backward pass of an objective."""
    with Orders(reads=True) as orders:
        objective(*inputs).backward()
    return orders.largest()


@pytest.mark.parametrize("name", [*CONTRASTS, *JOINT])
def test_positives_and_negatives_are_never_joined_and_jcl_makes_no_covariance(name):
    objective, tensors = inputs_of(name, torch.float32)
    assert largest_tensor(objective, *tensors) == 40 * 16


def test_sequence_contrast_never_makes_all_differences_and_reads_no_value_back_from_the_device():
    n, k, t, d = 16, 80, 10, 15
    decoded, key_decoded, negatives, lengths = sequence_inputs(n, k, t, t, d, dtype=torch.float32)
    used = largest_tensor(sequence_contrast, decoded, key_decoded, negatives.detach(), lengths, 0.1)
    assert used <= max(n * k, n * t * d, k * t * d)
    decoded, key_decoded = torch.empty(2, 32, 50, 150, device="meta", requires_grad=True)
    negatives, lengths = torch.empty(2048, 50, 150, device="meta"), torch.empty(32, dtype=torch.int64, device="meta")
    loss = sequence_contrast(decoded, key_decoded, negatives, lengths, 0.1)  # reading a meta tensor raises
    assert torch.autograd.grad(loss, decoded)[0].shape == (32, 50, 150)


# ---------------------------------------------------------------------------------------------- errors


def of(*shapes):
    return [torch.zeros(shape) for shape in shapes]


CONTRAST, SEVERAL, PADDED = of((4, 8), (4, 8), (5, 8)), of((4, 8), (4, 2, 8), (5, 8)), of((2, 5, 3), (2, 5, 3))
ONE_TO_TWO = torch.tensor([1, 2])
BAD = [
    (info_nce, [*of((4, 8), (4, 8), (5, 7)), 0.1], "d=7 in negatives but d=8 in query; give both one size"),
    (info_nce, [*of((4, 8), (4, 8), (0, 8)), 0.1], r"negatives has shape \(0, 8\), so K=0; give at least one"),
    (info_nce, [*of((8,), (8,), (5, 8)), 0.1], r"query has shape \(8,\); it should be \(N, d\)"),
    (info_nce, [*CONTRAST, 0.0], "temperature=0.0 should be positive"),
    (partial(info_nce, excluded=torch.zeros(4, 6) > 0), [*CONTRAST, 0.1], "K=6 in excluded"),
    (partial(info_nce, excluded=torch.zeros(1, 5) > 0), [*CONTRAST, 0.1], "N=1 in excluded but N=4 in query"),
    (ceil, [*CONTRAST, -0.1], "temperature=-0.1"),
    (ressl, [*CONTRAST, math.inf, 0.1], "temperature=inf"),
    (ressl, [*CONTRAST, 0.1, math.nan], "key_temperature=nan"),
    (sce, [*CONTRAST, 0.1, 0.0, 0.5], "key_temperature=0.0"),
    (sce, [*CONTRAST, 0.1, 0.1, 1.5], "weight=1.5 should be between 0"),
    (sce, [*CONTRAST, 0.1, 0.1, math.nan], "weight=nan"),
    (jcl, [*CONTRAST, 0.1, 1.0], r"keys has shape \(4, 8\); it should be \(N, M, d\)"),
    (jcl, [*of((4, 8), (4, 0, 8), (5, 8)), 0.1, 1.0], "so M=0; give at least one"),
    (jcl, [*SEVERAL, 0.1, -1.0], "strength=-1.0"),
    (jcl, [*SEVERAL, 0.1, math.inf], "strength=inf"),
    (vanilla, [*CONTRAST, 0.1], r"keys has shape \(4, 8\); it should be \(N, M, d\)"),
    (vanilla, [*SEVERAL, math.nan], "temperature=nan"),
    (attraction, of((4, 8), (4, 7)), "d=7 in target but d=8 in query"),
    (attraction, of((4, 8), (1, 8)), "N=1 in target but N=4 in query"),
    (reconstruction, [*PADDED, torch.tensor([2])], "N=1 in lengths but N=2 in decoded"),
    (squared_error, [*of((2, 5, 3), (2, 6, 3)), ONE_TO_TWO], "T=6 in sequence but T=5 in decoded"),
    (reconstruction, [*PADDED, torch.tensor([0, 4])], "from 0 to 4, but decoded has 5 frames"),
    (reconstruction, [*PADDED, torch.tensor([1, 6])], "from 1 to 6, but decoded has 5 frames"),
    (sequence_contrast, [*PADDED, *of((0, 5, 3)), ONE_TO_TWO, 0.1], "K=0"),
    (sequence_contrast, [*PADDED, *of((4, 0, 3)), ONE_TO_TWO, 0.1], "T'=0"),
    (sequence_contrast, [*PADDED, *of((4, 5, 2)), ONE_TO_TWO, 0.1], "D=2 in.* D=3 in"),
    (sequence_contrast, [*PADDED, *of((4, 5, 3)), ONE_TO_TWO, 0.0], "temperature=0.0"),
]


@pytest.mark.parametrize(("objective", "arguments", "message"), BAD)
def test_impossible_arguments_are_refused_with_the_numbers(objective, arguments, message):
    with pytest.raises(ValueError, match=message):
        objective(*arguments)
