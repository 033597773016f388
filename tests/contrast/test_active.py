"""What is selected, and gradients and distances, against slow loops and autograd; sizes of values, wrong arguments."""

import itertools
import math

import numpy as np
import pytest
import torch
from candidates import arguments, drawing, last_layer_gradients, pool, rows_of, slow_distances
from scipy.stats import chisquare
from stand_in import Orders
from torch.nn.functional import cross_entropy, normalize

from repro.contrast import SAMPLERS, active
from repro.contrast.active import gradient_factors, gradients, kmeans_plusplus, moderated, pairwise_sq_distance, select

NORMALISED = pytest.mark.parametrize("normalised", [False, True])
STRATEGIES = pytest.mark.parametrize("strategy", SAMPLERS)
SHAPES = pytest.mark.parametrize("shape", [  # P, M, d, e
    (1, 1, 1, 1), (7, 4, 3, 5), (9, 6, 5, 2), (8, 1, 3, 4), (6, 5, 1, 1)])


@NORMALISED
@STRATEGIES
def test_rows_are_distinct_and_admissible_up_to_the_last(strategy, normalised):
    tensors = arguments(30, 5, 4, 3, dtype=torch.float32)
    tensors[0][10:20] = tensors[0][3]
    excluded = torch.rand(30, generator=drawing(1)) < 0.4
    remaining = (~excluded).nonzero().squeeze(1).tolist()
    for n_select in (0, 1, 2, len(remaining) - 1, len(remaining)):
        for seed in range(3):
            rows = rows_of(strategy, tensors, n_select=n_select, excluded=excluded, seed=seed, normalised=normalised)
    assert sorted(rows) == remaining


def test_fifo_takes_the_first_admissible_candidates():
    tensors = arguments(8, 3, 4, 2)
    excluded = torch.tensor([True, False, False, True, False, True, False, False])
    assert rows_of("fifo", tensors, n_select=5, excluded=excluded) == [1, 2, 4, 6, 7]
    assert rows_of("fifo", tensors, n_select=8) == list(range(8))
    assert rows_of("fifo", STILL, n_select=8, normalised=True) == list(range(8))  # it looks at no query


@NORMALISED
@pytest.mark.parametrize("strategy", ["gradient", "feature", "ohem"])
def test_excluded_candidates_weigh_as_if_they_were_not_there(strategy, normalised):
    tensors = arguments(30, 5, 4, 3)
    excluded = torch.rand(30, generator=drawing(1)) < 0.4
    remaining = (~excluded).nonzero().squeeze(1)
    given = {"n_select": 8, "seed": 4, "normalised": normalised}
    rows = rows_of(strategy, tensors, excluded=excluded, **given)
    assert rows == remaining[rows_of(strategy, (tensors[0][remaining], *tensors[1:]), **given)].tolist()


def test_the_active_strategies_are_kmeans_plusplus():
    tensors = arguments(30, 5, 4, 3)
    factors = gradient_factors(*tensors, temperature=0.4)
    by_gradient = kmeans_plusplus(*factors, n_select=9, generator=drawing(3)).tolist()
    by_feature = kmeans_plusplus(tensors[0], n_select=9, generator=drawing(3)).tolist()
    assert by_gradient != by_feature
    for strategy, expected in (("gradient", by_gradient), ("active", by_gradient), ("feature", by_feature)):
        assert rows_of(strategy, tensors, n_select=9, seed=3, temperature=0.4) == expected


def test_random_rows_are_uniform_over_ordered_pairs_of_the_admissible():
    tensors, generator = arguments(6, 3, 2, 2), drawing(0)
    excluded = torch.tensor([False, True, False, False, False, True])
    counts = dict.fromkeys(itertools.permutations((0, 2, 3, 4), 2), 0)
    for _ in range(2000):
        rows = select("random", *tensors, n_select=2, excluded=excluded, generator=generator)
        counts[tuple(rows.tolist())] += 1
    assert chisquare(list(counts.values())).pvalue > 0.01


@NORMALISED
@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_ohem_takes_the_largest_losses_and_the_earlier_of_equal_ones(temperature, normalised):
    candidates, queries, inputs = arguments(40, 5, 4, 3)
    excluded, losses = torch.rand(40, generator=drawing(1)) < 0.3, []
    for row, key in enumerate(candidates):
        logits = (normalize(queries, dim=1) if normalised else queries) @ key / temperature
        losses.append((-cross_entropy(logits.unsqueeze(0), logits.argmax().view(1)).item(), row))
    expected = [row for _, row in sorted(losses) if not excluded[row]][:12]
    given = {"excluded": excluded, "temperature": temperature, "normalised": normalised}
    assert rows_of("ohem", (candidates, queries, inputs), n_select=12, **given) == expected
    candidates[:] = torch.eye(candidates.shape[1])[0]  # whose products round alike on every processor
    expected = (~excluded).nonzero().flatten()[:4].tolist()
    assert rows_of("ohem", (candidates, queries, inputs), n_select=4, **given) == expected


@pytest.mark.parametrize("strategy", ["gradient", "feature"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e15])
def test_equal_candidates_are_drawn_uniformly(strategy, value):
    """In float32 and at a width at which rounding would tell them apart."""
    _, queries, inputs = arguments(1, 3, 50, 4, dtype=torch.float32)
    candidates = torch.full((7, 50), value) * torch.randn(50, generator=drawing(8)).abs()
    counts = np.zeros((7, 7))
    for seed in range(300):
        first, second = rows_of(strategy, (candidates, queries, inputs), n_select=2, seed=seed)
        counts[first, second] += 1
    assert np.diag(counts).sum() == 0 and chisquare(counts[~np.eye(7, dtype=bool)]).pvalue > 0.01


# ---------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("temperature", [1.0, 0.3])
@SHAPES
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


@NORMALISED
@pytest.mark.parametrize("temperature", [1.0, 0.07])
@SHAPES
def test_gradient_selection_equals_seeding_over_autograds_gradients(shape, temperature, normalised):
    """The same uniforms choose the same rows: every distance on the way agrees with the materialised one."""
    candidates, layer, inputs = pool(*shape)
    weights, biases = last_layer_gradients(candidates, layer, inputs, temperature, normalised)
    materialised = torch.cat([weights.flatten(1), biases], dim=1)
    materialised[materialised.abs() < 1e-13] = 0  # all of it if d = 1 and normalised, up to autograd's rounding
    norms = gradients(candidates, layer(inputs), inputs, temperature, normalised).norms.clamp(min=0).sqrt()
    factor = 1 / temperature if normalised else 1  # which is left out
    torch.testing.assert_close(norms * factor, materialised.norm(dim=1), rtol=1e-6, atol=1e-6)
    for seed in range(5):
        found = select("gradient", candidates, layer(inputs), inputs, n_select=shape[0], excluded=None,
                       generator=drawing(seed), temperature=temperature, normalised=normalised)
        expected = kmeans_plusplus(materialised, n_select=shape[0], generator=drawing(seed))
        assert found.tolist() == expected.tolist()


def test_a_confident_posterior_keeps_its_small_gradient_in_float32():
    """The label's probability rounds to 1 in float32, so that p - onehot would lose the residual."""
    candidates, queries, inputs = arguments(50, 4, 6, 6)
    queries = queries * 12
    exact = gradients(candidates, queries, inputs).factors[1].norm(dim=0)
    rounded = gradients(candidates.float(), queries.float(), inputs.float()).factors[1].norm(dim=0)
    assert ((exact > 1e-20) & (exact < 1e-8)).sum() > 10
    torch.testing.assert_close(rounded.double(), exact, rtol=1e-3, atol=1e-20)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e15])
def test_pairwise_distances_of_huge_and_tiny_factors(scale):
    """The norms of a alone would leave float32, although the distances do not."""
    a, b = torch.randn(2, 6, 3, generator=drawing(0)).unbind()
    expected = slow_distances(torch.einsum("pd,pe->pde", a, b).flatten(1).double())
    found = torch.stack([pairwise_sq_distance(a * scale**2, b / scale**2 * 8, index) for index in range(6)])
    torch.testing.assert_close(found.double(), 64 * expected, rtol=1e-4, atol=1e-4)
    beyond = pairwise_sq_distance(a * 1e15, b * 1e15, 2)
    assert beyond.tolist() == [math.inf] * 2 + [0.0] + [math.inf] * 3


@pytest.mark.parametrize("call", [lambda tensors: select("gradient", *tensors, n_select=2, excluded=None,
                                                         generator=drawing(0)),
                                  lambda tensors: kmeans_plusplus(tensors[0], n_select=2, generator=drawing(0))])
def test_what_is_named_algorithm_3_is_what_chooses(call, monkeypatch):
    named = [name for name, part in vars(active).items() if callable(part) and "Alg. 3" in (part.__doc__ or "")]
    assert named == ["seeds"]
    monkeypatch.setattr(active, "seeds", lambda *_, **__: torch.tensor([5, 1]))
    assert call(arguments(8, 3, 4, 2)).tolist() == [5, 1]


# ---------------------------------------------------------------------------------------------- sizes of values


@pytest.mark.parametrize("power", [-70, 70])
@STRATEGIES
def test_the_scale_of_the_features_does_not_matter(strategy, power):
    """Posteriors stay if the queries shrink as the candidates grow; the embeddings get a common factor.

    That is 2^70 = 1e21, whose square float32 does not reach.
    """
    candidates, queries, inputs = arguments(60, 5, 8, 6, dtype=torch.float32)
    expected = rows_of(strategy, (candidates, queries, inputs), n_select=20)
    flipped = rows_of(strategy, (candidates.flip(0), queries, inputs), n_select=20)
    assert expected != flipped or strategy in ("random", "fifo")
    factor = 2.0**power
    assert rows_of(strategy, (candidates * factor, queries / factor, inputs), n_select=20) == expected
    assert rows_of(strategy, (candidates, queries, inputs * factor), n_select=20) == expected


@pytest.mark.parametrize(("size", "divided"), [
    (0.0, False), (1e-30, True), (0.9e-4, True), (2e-4, False), (1.0, False), (0.9e4, False), (1.5e4, True),
    (1e30, True),
])
def test_float32_is_divided_where_products_of_four_values_could_leave_its_range(size, divided):
    tensor = torch.tensor([[0.5 * size, -size]])
    expected = torch.tensor([[0.5, -1.0]]) if divided else tensor
    torch.testing.assert_close(moderated(tensor), expected)
    assert moderated(tensor.double()).equal(tensor.double())


def test_without_a_word_posteriors_have_temperature_1_and_queries_are_the_classes_as_they_are():
    tensors = arguments(60, 5, 8, 6)
    plain = {"temperature": 1.0, "normalised": False}
    assert torch.equal(gradient_factors(*tensors)[1], gradient_factors(*tensors, temperature=1.0)[1])
    assert torch.equal(gradients(*tensors).norms, gradients(*tensors, **plain).norms)
    assert rows_of("gradient", tensors, n_select=40) == rows_of("gradient", tensors, n_select=40, **plain)


@NORMALISED
def test_float32_selection_is_that_of_float64(normalised):
    tensors = arguments(300, 16, 32, 24, dtype=torch.float32)
    rows = rows_of("gradient", tensors, n_select=60, normalised=normalised)
    assert rows == rows_of("gradient", [tensor.double() for tensor in tensors], n_select=60, normalised=normalised)


# ---------------------------------------------------------------------------------------------- wrong arguments


def chosen(strategy="gradient", tensors=None, **given):
    given = {"n_select": 2, "excluded": None, "generator": drawing(0)} | given
    return select(strategy, *(tensors or arguments(8, 3, 4, 2)), **given)


def broken(place, value, times=1.0):
    """Arguments in float32 of which one has a row of this value; candidates and queries are so many times as large."""
    tensors = arguments(8, 3, 4, 2, dtype=torch.float32)
    tensors[place][2] = value
    return [tensors[0] * times, tensors[1] * times, tensors[2]]


NEITHER = torch.arange(8) < 3
STILL = broken(1, 0)  # a query without direction
A, B = torch.ones(4, 2), torch.ones(3, 3)
LOOKING = [name for name, sampler in SAMPLERS.items() if sampler.posterior]
READS = gradient_factors, lambda *tensors, **given: chosen(tensors=tensors, **given)
FOUR = arguments(4, 2, 3, 2)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: chosen("hardest"), ValueError, "strategy='hardest' should be one of fifo, random, ohem, gradient"),
    (lambda: chosen("seeds"), ValueError, "strategy='seeds' should be one of fifo"),  # though there is such a function
    *((lambda strategy=strategy: chosen(strategy, n_select=6, excluded=NEITHER), ValueError,
       "n_select=6 should be between 0 and 5, as many of the 8 candidates") for strategy in SAMPLERS),
    (lambda: chosen(n_select=-1, excluded=NEITHER), ValueError, "n_select=-1 should be between 0 and 5"),
    (lambda: chosen(n_select=2.5), TypeError, r"n_select=2\.5 should be a whole number"),
    (lambda: chosen(n_select=True), TypeError, "n_select=True should be a whole number"),
    (lambda: chosen(generator=0), TypeError, r"generator=0 should be a torch\.Generator on the device"),
    *((lambda dtype=dtype: chosen(excluded=NEITHER.to(dtype)), TypeError, f"excluded has dtype {dtype}; it should be "
       "bool") for dtype in (torch.uint8, torch.int64)),
    (lambda: chosen(excluded=[True] * 8), TypeError, "excluded is list; it should be a torch.Tensor"),
    (lambda: chosen(excluded=NEITHER[:5]), ValueError, "P=5 in excluded but P=8 in candidates"),
    (lambda: chosen("released", n_select=2, tensors=arguments(4, 5, 3, 2)), ValueError,
     "for each of the 5 queries, but there are 4 candidates; put the batch"),
    (lambda: chosen("released", checked=False), ValueError,
     r"strategy='released' waits for the device, .* leave out checked=False"),
    (lambda: kmeans_plusplus(A, B, n_select=1, generator=drawing(0)), ValueError, "P=3 in b but P=4 in a"),
    (lambda: kmeans_plusplus(A, n_select=5, generator=drawing(0)), ValueError, "n_select=5 should be between 0 and 4"),
    (lambda: pairwise_sq_distance(A, B, 1), ValueError, "P=3 in b but P=4 in a"),
    (lambda: pairwise_sq_distance(A, A, -1), IndexError, "index=-1 should be between 0 and 3, for 4 rows"),
    (lambda: pairwise_sq_distance(A, A, 4), IndexError, "index=4 should be between 0 and 3, for 4 rows"),
    (lambda: pairwise_sq_distance(A * math.nan, A, 1), ValueError, "a has values that are not finite"),
    *((lambda read=read, shapes=shapes: read(*map(torch.ones, shapes)), ValueError, message)
      for read in READS for shapes, message in (
          (((4, 3), (2, 5), (2, 2)), "d=5 in queries but d=3 in candidates"),
          (((4, 3), (2, 3), (3, 2)), "M=3 in query_inputs but M=2 in queries"),
          (((4,), (2, 3), (2, 2)), r"candidates has shape \(4,\); it should be \(P, d\)"),
          (((0, 3), (2, 3), (2, 2)), r"candidates has shape \(0, 3\), so P=0; give at least one"),
          (((4, 3), (0, 3), (0, 2)), r"queries has shape \(0, 3\), so M=0; give at least one"))),
    *((lambda read=read, convert=convert: read(convert(FOUR[0]), *FOUR[1:]), TypeError,
       rf"candidates is {kind}; it should be a torch\.Tensor of real numbers")
      for read in READS for convert, kind in (
          (torch.Tensor.numpy, "ndarray"), (torch.Tensor.tolist, "list"),
          (torch.Tensor.cfloat, r"torch\.complex64"))),
    *((lambda read=read, value=value: read(*FOUR, temperature=value), ValueError,
       "temperature=.* should be positive and finite")
      for read in READS for value in (0.0, -1.0, math.nan, math.inf)),
    *((lambda read=read, place=place, value=value: read(*broken(place, value)), ValueError,
       f"^{name} has values that are not finite")
      for read in READS for place, name in enumerate(("candidates", "queries", "query_inputs"))
      for value in (math.nan, math.inf, -math.inf)),
    *((lambda strategy=strategy: chosen(strategy, broken(2, 0, times=1e30)), ValueError,
       f"^{name}.* not finite; look for an encoder that diverged, .* for float32") for strategy, name in (
           ("ohem", "the loss of candidates"), ("gradient", "the gradients of candidates"),
           ("released", "the gradient of the candidates"))),
    *((lambda strategy=strategy: chosen(strategy, broken(1, 2e38), normalised=True), ValueError,
       "^the norm of queries has values that are not finite") for strategy in LOOKING),  # four times this, squared
    *((lambda strategy=strategy: chosen(strategy, STILL, normalised=True), ValueError,
       r"row 2 of queries has norm 0\.0, which should be at least 1e-12") for strategy in LOOKING),
])
def test_impossible_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("rows", "message"), [
    ([4], "returned 1 rows, of which 1"), ([4, 4], "returned 2 rows, of which 1"), ([4, 5, 6], "3 rows, of which 3"),
    ([4, 2], "returned 2 rows, of which 1 are distinct and free; its function should return n_select=2 such rows"),
])
def test_a_sampler_that_returns_other_rows_than_it_should_is_named(rows, message, monkeypatch):
    monkeypatch.setattr(active, "random", lambda pool: torch.tensor(rows))
    with pytest.raises(ValueError, match=f"strategy='random' {'' if 'returned' in message else '.*'}{message}"):
        chosen("random", excluded=NEITHER)


# ---------------------------------------------------------------------------------------------- determinism, precision


@STRATEGIES
def test_equal_generators_choose_alike_and_nothing_else_is_touched(strategy):
    tensors = [tensor.requires_grad_() for tensor in arguments(40, 4, 5, 3, dtype=torch.float32)]
    before = [tensor.detach().clone() for tensor in tensors]
    state = torch.get_rng_state()
    rows = [rows_of(strategy, tensors, n_select=15, seed=seed) for seed in (0, 0, 1)]
    generator = drawing(0)
    chosen(strategy, tensors, n_select=15, generator=generator)
    draws = not torch.equal(generator.get_state(), drawing(0).get_state())
    assert rows[0] == rows[1] and (rows[0] != rows[2]) == draws
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, old) for tensor, old in zip(tensors, before, strict=True))
    assert not any(factor.requires_grad for factor in gradient_factors(*tensors))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@STRATEGIES
def test_autocast_and_half_precision_leave_the_computation_in_float32(strategy, dtype):
    tensors = [tensor.to(dtype) for tensor in arguments(60, 6, 16, 8)]
    expected = rows_of(strategy, [tensor.float() for tensor in tensors], n_select=30)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert rows_of(strategy, tensors, n_select=30) == expected
        a, b = gradient_factors(*tensors)
        found = [pairwise_sq_distance(a, b, 3), kmeans_plusplus(a, n_select=30, generator=drawing(0))]
    assert a.dtype == b.dtype == torch.float32
    assert torch.equal(found[0], pairwise_sq_distance(a, b, 3))
    assert torch.equal(found[1], kmeans_plusplus(a, n_select=30, generator=drawing(0)))


@NORMALISED
@pytest.mark.parametrize("strategy", ["gradient", "feature", "ohem"])
def test_rounds_neither_multiply_factors_out_nor_read_values_back_nor_grow_with_excluded_candidates(
    strategy, normalised
):
    tensors = arguments(100, 8, 24, 12)
    for excluded, free in ((None, 100), (torch.arange(100) >= 20, 20)):
        with Orders() as orders:  # which raises where a value is read
            chosen(strategy, tensors, n_select=15, excluded=excluded, normalised=normalised)
        assert orders.largest() <= free * 24


# ---------------------------------------------------------------------------------------------- unchecked


LEFT_TO_THE_DEVICE = pytest.mark.parametrize("strategy", [name for name, part in SAMPLERS.items() if not part.waits])


@pytest.mark.parametrize(("dtype", "scale"), [
    (torch.float64, 1.0), *((torch.float32, scale) for scale in (1.0, 1e-7, 1e9, 0.0))])
@NORMALISED
@LEFT_TO_THE_DEVICE
def test_unchecked_the_same_rows_are_chosen_and_no_value_is_read(strategy, normalised, dtype, scale):
    tensors = arguments(40, 5, 6, 3, dtype=dtype)
    tensors[0][10:14] = tensors[0][3]
    tensors[0].mul_(scale)
    excluded = torch.rand(40, generator=drawing(1)) < 0.4
    for flags, most in ((None, 40), (excluded, int((~excluded).sum()))):
        for n_select in (0, 1, 12, most):
            given = {"n_select": n_select, "excluded": flags, "normalised": normalised}
            with Orders():  # which raises where a value is read
                rows = chosen(strategy, tensors, checked=False, **given)
            if flags is None or dtype == torch.float64:  # else rounding may tell rows apart that are equal
                assert rows.tolist() == rows_of(strategy, tensors, **given)


@LEFT_TO_THE_DEVICE
def test_unchecked_values_that_are_not_finite_choose_rows_and_too_few_candidates_too(strategy):
    tensors = arguments(20, 5, 4, 3, dtype=torch.float32)
    given = [([torch.full_like(other, value) if other is tensor else other for other in tensors], None)
             for value in (math.nan, math.inf, 0.0) for tensor in tensors]
    for broken, excluded in [*given, (tensors, torch.arange(20) > 3)]:
        rows = select(strategy, *broken, n_select=8, excluded=excluded, generator=drawing(0), checked=False)
        assert rows.shape == (8,) and rows.min() >= 0 and rows.max() < 20
