"""Every objective against a loop written from its equation, then its values known in advance and its errors."""

import math
from functools import partial

import pytest
import torch
from slow_objectives import (
    CONTRASTS,
    JOINT,
    SEQUENCE_SHAPES,
    SHAPES,
    assert_same,
    contrast_inputs,
    joint_inputs,
    projections,
    sequence_inputs,
    slow_distance,
    slow_info_nce,
    slow_sequence_contrast,
)

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


# Errors


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


def zeros(*shape):
    return torch.zeros(shape)


def lengths_of(*values):
    return torch.tensor(values)


BAD = [
    (info_nce, [zeros(4, 8), zeros(4, 8), zeros(5, 7), 0.1], "d=7 in negatives but d=8 in query; .* one output size"),
    (info_nce, [zeros(4, 8), zeros(4, 8), zeros(0, 8), 0.1], r"negatives has shape \(0, 8\), so K=0; .* at least one"),
    (info_nce, [zeros(8), zeros(8), zeros(5, 8), 0.1], r"query has shape \(8,\); it should be \(N, d\)"),
    (info_nce, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.0], "temperature=0.0 should be positive"),
    (partial(info_nce, excluded=zeros(4, 6) > 0), [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1], "K=6 in excluded"),
    (ceil, [zeros(4, 8), zeros(4, 8), zeros(5, 8), -0.1], "temperature=-0.1"),
    (ressl, [zeros(4, 8), zeros(4, 8), zeros(5, 8), math.inf, 0.1], "temperature=inf"),
    (ressl, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, math.nan], "key_temperature=nan"),
    (sce, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, 0.0, 0.5], "key_temperature=0.0"),
    (sce, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, 0.1, 1.5], "weight=1.5 should be between 0"),
    (sce, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, 0.1, math.nan], "weight=nan"),
    (jcl, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1, 1.0], r"keys has shape \(4, 8\); it should be \(N, M, d\)"),
    (jcl, [zeros(4, 8), zeros(4, 0, 8), zeros(5, 8), 0.1, 1.0], "M=0; give at least one positive key"),
    (jcl, [zeros(4, 8), zeros(4, 2, 8), zeros(5, 8), 0.1, -1.0], "strength=-1.0"),
    (jcl, [zeros(4, 8), zeros(4, 2, 8), zeros(5, 8), 0.1, math.inf], "strength=inf"),
    (vanilla, [zeros(4, 8), zeros(4, 8), zeros(5, 8), 0.1], r"keys has shape \(4, 8\); it should be \(N, M, d\)"),
    (vanilla, [zeros(4, 8), zeros(4, 2, 8), zeros(5, 8), math.nan], "temperature=nan"),
    (attraction, [zeros(4, 8), zeros(4, 7)], "d=7 in target but d=8 in query"),
    (reconstruction, [zeros(2, 5, 3), zeros(2, 6, 3), lengths_of(1, 2)], "T=6 in sequence but T=5 in decoded"),
    (reconstruction, [zeros(2, 5, 3), zeros(2, 5, 3), lengths_of(0, 4)], "from 0 to 4, but decoded has 5 frames"),
    (reconstruction, [zeros(2, 5, 3), zeros(2, 5, 3), lengths_of(1, 6)], "from 1 to 6, but decoded has 5 frames"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 5, 3), zeros(0, 5, 3), lengths_of(1, 2), 0.1], "K=0"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 5, 3), zeros(4, 0, 3), lengths_of(1, 2), 0.1], "T'=0"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 5, 3), zeros(4, 5, 2), lengths_of(1, 2), 0.1], "D=2 in.* D=3 in"),
    (sequence_contrast, [zeros(2, 5, 3), zeros(2, 5, 3), zeros(4, 5, 3), lengths_of(1, 2), 0.0], "temperature=0.0"),
]


@pytest.mark.parametrize(("objective", "arguments", "message"), BAD)
def test_impossible_arguments_raise_with_the_numbers(objective, arguments, message):
    with pytest.raises(ValueError, match=message):
        objective(*arguments)
