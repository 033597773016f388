"""Gradients and their distances against autograd on a real last layer and distances pair by pair."""

import math

import pytest
import torch
from candidates import arguments, drawing, last_layer_gradients, pool, slow_distances

from repro.contrast.negatives import gradient_factors, gradient_norms, kmeans_plusplus, pairwise_sq_distance, select

SHAPES = [(1, 1, 1, 1), (7, 4, 3, 5), (9, 6, 5, 2), (8, 1, 3, 4), (6, 5, 1, 1)]  # P, M, d, e


@pytest.mark.parametrize("temperature", [1.0, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_have_the_inner_products_and_distances_of_autograds_gradients(shape, temperature):
    candidates, layer, inputs = pool(*shape)
    weights, biases = last_layer_gradients(candidates, layer, inputs, temperature)
    a, b = gradient_factors(candidates, layer(inputs), inputs, temperature=temperature)
    assert a.shape == candidates.shape and b.shape == (shape[0], min(shape[1], shape[3]))
    torch.testing.assert_close((a @ a.T) * (b @ b.T), weights.flatten(1) @ weights.flatten(1).T)
    assert biases.abs().max() < 1e-12 and (shape[1] == 1 or weights.abs().max() > 1e-3)
    expected = slow_distances(weights.flatten(1))
    for index in range(shape[0]):
        distances = pairwise_sq_distance(a, b, index)
        torch.testing.assert_close(distances, expected[index])
        assert distances[index] == 0 and torch.equal(pairwise_sq_distance(a, b, torch.tensor(index)), distances)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.07])
@pytest.mark.parametrize("shape", SHAPES)
def test_norms_are_those_of_autograds_gradients_of_weight_and_bias(shape, temperature, normalised):
    candidates, layer, inputs = pool(*shape)
    weights, biases = last_layer_gradients(candidates, layer, inputs, temperature, normalised)
    expected = torch.cat([weights.flatten(1), biases], dim=1).norm(dim=1)
    found = gradient_norms(candidates, layer(inputs), inputs, temperature=temperature, normalised=normalised)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    single = [tensor.detach().float() for tensor in (candidates, layer(inputs), inputs)]
    rounded = gradient_norms(*single, temperature=temperature, normalised=normalised)
    torch.testing.assert_close(rounded, expected.float(), rtol=1e-3, atol=1e-4)


def test_a_confident_posterior_keeps_its_small_gradient_in_float32():
    """The label's probability rounds to 1 in float32, so that p - onehot would lose the residual."""
    candidates, queries, inputs = arguments(50, 4, 6, 6)
    queries = queries * 12
    _, exact = gradient_factors(candidates, queries, inputs)
    _, b = gradient_factors(candidates.float(), queries.float(), inputs.float())
    expected = exact.norm(dim=1)
    assert ((expected > 1e-20) & (expected < 1e-8)).sum() > 10
    torch.testing.assert_close(b.norm(dim=1).double(), expected, rtol=1e-3, atol=1e-20)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e15])
def test_pairwise_distances_of_huge_and_tiny_factors(scale):
    """The norms of a alone would leave float32, although the distances do not."""
    a, b = torch.randn(2, 6, 3, generator=drawing(0)).unbind()
    expected = slow_distances(torch.einsum("pd,pe->pde", a, b).flatten(1).double())
    found = torch.stack([pairwise_sq_distance(a * scale**2, b / scale**2 * 8, index) for index in range(6)])
    torch.testing.assert_close(found.double(), 64 * expected, rtol=1e-4, atol=1e-4)
    beyond = pairwise_sq_distance(a * 1e15, b * 1e15, 2)
    assert beyond.tolist() == [math.inf] * 2 + [0.0] + [math.inf] * 3


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_selection_equals_seeding_over_autograds_gradients(shape, temperature, normalised):
    """The same uniforms choose the same rows: every distance on the way agrees with the materialised one."""
    candidates, layer, inputs = pool(*shape)
    weights, biases = last_layer_gradients(candidates, layer, inputs, temperature, normalised)
    materialised = torch.cat([weights.flatten(1), biases], dim=1)
    materialised[materialised.abs() < 1e-13] = 0  # all of it if d = 1 and normalised, up to autograd's rounding
    for seed in range(5):
        found = select("gradient", candidates, layer(inputs), inputs, n_select=shape[0], excluded=None,
                       generator=drawing(seed), temperature=temperature, normalised=normalised)
        expected = kmeans_plusplus(materialised, n_select=shape[0], generator=drawing(seed))
        assert found.tolist() == expected.tolist()
