import itertools

import numpy as np
import pytest
import torch

from repro.report.histograms import similarity_and_variance


def features(images=3, augmentations=4, d=5, spread=1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(images, 1, d, generator=generator, dtype=torch.float64)
    return centres + spread * torch.randn(images, augmentations, d, generator=generator, dtype=torch.float64)


def by_definition(z):
    """All pairs, and the diagonal of the covariance matrix, image by image."""
    similarities, variances = [], []
    for image in z:
        units = [row / row.square().sum().sqrt() for row in image]
        similarities.append(np.mean([float(a @ b) for a, b in itertools.product(units, repeat=2)]))
        mean = sum(units) / len(units)
        covariance = sum(torch.outer(unit - mean, unit - mean) for unit in units) / len(units)
        variances.append(float(covariance.diagonal().mean()))
    return similarities, variances


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1)])
def test_closed_forms_equal_all_pairs_and_the_covariance_matrix(shape):
    z = features(*shape)
    similarity, variance = similarity_and_variance(z)
    expected_similarity, expected_variance = by_definition(z)
    assert similarity.shape == variance.shape == shape[:1]
    np.testing.assert_allclose(similarity, expected_similarity, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(variance, (1 - similarity) / shape[2])


def test_nearly_equal_augmentations_in_float32_keep_their_variance_and_equal_ones_have_none():
    z = features(spread=1e-4).float()
    np.testing.assert_allclose(similarity_and_variance(z)[1], by_definition(z.double())[1], rtol=1e-6)
    similarity, variance = similarity_and_variance(features(50, 1, 7).expand(-1, 32, -1))
    assert (similarity <= 1).all() and (variance >= 0).all() and similarity.allclose(torch.ones(()).double())


def test_lengths_types_and_gradients_do_not_matter():
    z = features()
    similarity, variance = similarity_and_variance(z)
    lengths = torch.arange(1.0, 13.0).reshape(3, 4, 1)
    for same in (z * lengths, z.numpy(), z.tolist(), z.clone().requires_grad_()):
        found = similarity_and_variance(same)
        assert not found[0].requires_grad and found[0].dtype == found[1].dtype == torch.float64
        np.testing.assert_allclose(found[0], similarity)
        np.testing.assert_allclose(found[1], variance)


@pytest.mark.parametrize(("z", "message"), [
    *((torch.ones(shape), r"\(images, augmentations, d\)") for shape in ((3, 4), (0, 4, 5), (3, 0, 5), (3, 4, 0))),
    *((features().index_fill(0, torch.tensor(1), value), "4 of 12 features") for value in (0.0, np.nan, np.inf)),
])
def test_other_shapes_and_features_without_a_direction_are_refused(z, message):
    with pytest.raises(ValueError, match=message):
        similarity_and_variance(z)
