import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from repro.contrast.objectives import info_nce, jcl
from repro.papers.jcl.sampled_keys import COUNTS, sampled_keys

TEMPERATURE, STRENGTH = 0.5, 2.0


def features(queries=2, given=3, negatives=6, d=4, spread=0.3):
    generator = torch.Generator().manual_seed(0)

    def noise(*shape):
        return torch.randn(*shape, d, generator=generator, dtype=torch.float64)

    query = normalize(noise(queries), dim=1)
    keys = normalize(query.unsqueeze(1) + spread * noise(queries, given), dim=2)
    return query, keys, normalize(noise(negatives), dim=1)


def sampled(*tensors, seed=0, temperature=TEMPERATURE, strength=STRENGTH, **options):
    return sampled_keys(*tensors, temperature, strength, generator=torch.Generator().manual_seed(seed), **options)


def with_explicit_keys(query, keys, negatives, counts, repeats, seed=0):
    """Both losses, key by key, from the same normal numbers; (repeats, counts) each."""
    generator = torch.Generator().manual_seed(seed)
    inside, outside = np.zeros((2, repeats, len(counts)))
    mean = keys.mean(1)
    for repeat in range(repeats):
        noise = torch.randn(max(counts), *keys.shape[:2], generator=generator, dtype=torch.float64)
        for column, count in enumerate(counts):
            for i, q in enumerate(query):
                factor = math.sqrt(STRENGTH / keys.shape[1]) * (keys[i] - mean[i])
                drawn = [mean[i] + factor.T @ noise[m, i] for m in range(count)]
                repulsion = sum(math.exp(q @ n / TEMPERATURE) for n in negatives)
                attraction = sum(math.exp(q @ k / TEMPERATURE) for k in drawn) / count
                inside[repeat, column] += math.log(attraction + repulsion) - float(q @ mean[i]) / TEMPERATURE
                one = [info_nce(q[None], k[None], negatives, TEMPERATURE).item() for k in drawn]
                outside[repeat, column] += sum(one) / count
    return inside / len(query), outside / len(query)


def test_losses_equal_a_loop_over_explicit_keys():
    tensors, counts = features(), [1, 2, 5]
    table = sampled(*tensors, counts=counts, repeats=3)
    inside, outside = with_explicit_keys(*tensors, counts, repeats=3)
    assert list(table["keys"]) == counts
    np.testing.assert_allclose(table["inside"], inside.mean(0))
    np.testing.assert_allclose(table["inside_std"], inside.std(0, ddof=1))
    np.testing.assert_allclose(table["outside"], outside.mean(0))
    np.testing.assert_allclose(table["outside_std"], outside.std(0, ddof=1))
    np.testing.assert_allclose(table["closed_form"], jcl(*tensors, TEMPERATURE, STRENGTH).item())


def test_the_mean_inside_tends_to_the_closed_form_and_the_mean_outside_stays_below():
    repeats = 400
    table = sampled(*features(), strength=8.0, repeats=repeats)
    error = table[["inside_std", "outside_std"]].to_numpy() / math.sqrt(repeats)
    inside, outside, closed_form = table["inside"], table["outside"], table["closed_form"][0]
    assert tuple(table["keys"]) == COUNTS
    assert (inside < closed_form + 4 * error[:, 0]).all()
    assert abs(inside.iloc[-1] - closed_form) < 4 * error[-1, 0] < 0.01
    # The expectation of the average is the same for every count: the best estimate is that of most keys.
    assert outside.iloc[-1] < closed_form - 10 * error[-1, 1]
    assert (abs(outside - outside.iloc[-1]) < 4 * np.hypot(error[:, 1], error[-1, 1])).all()
    assert abs(inside[0] - outside.iloc[-1]) < 4 * np.hypot(error[0, 0], error[-1, 1])


@pytest.mark.parametrize("changes", [{"strength": 0.0}, {"given": 1}])
def test_without_spread_all_three_are_one_loss(changes):
    tensors = features(given=changes.get("given", 3))
    table = sampled(*tensors, strength=changes.get("strength", STRENGTH), counts=[1, 7], repeats=2)
    expected = info_nce(tensors[0], tensors[1].mean(1), tensors[2], TEMPERATURE).item()
    np.testing.assert_allclose(table[["inside", "outside", "closed_form"]], expected)
    np.testing.assert_allclose(table[["inside_std", "outside_std"]], 0, atol=1e-12)


def test_the_generator_alone_decides_logits_may_be_large_and_impossible_numbers_are_refused():
    tensors = features()
    first, again, other = (sampled(*tensors, seed=seed, counts=[4], repeats=2) for seed in (0, 0, 1))
    assert first.equals(again) and not first.equals(other)
    cold = sampled(*(tensor.float().requires_grad_() for tensor in tensors), temperature=1e-4, counts=[4], repeats=2)
    assert np.isfinite(cold.to_numpy()).all()
    for options in ({"counts": []}, {"counts": [0, 1]}, {"repeats": 1}):
        with pytest.raises(ValueError, match="at least"):
            sampled(*tensors, **options)
