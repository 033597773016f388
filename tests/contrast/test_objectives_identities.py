"""Identities between the objectives, as the papers state or imply them."""

import pytest
import torch
from slow_objectives import SHAPES, assert_same, contrast_inputs, joint_inputs, slow_relations

from repro.contrast.objectives import ceil, info_nce, jcl, prediction, ressl, sce, sce_target, vanilla


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


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_sce_decomposes(shape, weight):
    query, key, negatives = contrast_inputs(*shape)
    parts = ressl(query, key, negatives, 0.1, 0.05) + ceil(query, key, negatives, 0.1)
    expected = weight * info_nce(query, key, negatives, 0.1) + (1 - weight) * parts
    assert_same(sce(query, key, negatives, 0.1, 0.05, weight), expected, (query, negatives))


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
