"""What is selected, against slow loops; degenerate pools, sizes of values, wrong arguments."""

import itertools
import math

import numpy as np
import pytest
import torch
from candidates import arguments, chosen, drawing, no_exclusion
from scipy.stats import chisquare
from torch.nn.functional import cross_entropy, normalize
from watched import Watch

from repro.contrast.negatives import STRATEGIES, gradient_factors, kmeans_plusplus, pairwise_sq_distance, select

# Strategies


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_are_distinct_and_admissible_up_to_the_last(strategy, normalised):
    tensors = arguments(30, 5, 4, 3, dtype=torch.float32)
    tensors[0][10:20] = tensors[0][3]
    excluded = torch.rand(30, generator=drawing(1)) < 0.4
    remaining = (~excluded).nonzero().squeeze(1).tolist()
    for n_select in (0, 1, 2, len(remaining) - 1, len(remaining)):
        for seed in range(3):
            rows = chosen(strategy, tensors, n_select=n_select, excluded=excluded, seed=seed, normalised=normalised)
    assert sorted(rows) == remaining


def test_fifo_takes_the_first_admissible_candidates():
    tensors = arguments(8, 3, 4, 2)
    excluded = torch.tensor([True, False, False, True, False, True, False, False])
    for seed in range(3):
        assert chosen("fifo", tensors, n_select=3, excluded=excluded, seed=seed) == [1, 2, 4]
    assert chosen("fifo", tensors, n_select=5, excluded=excluded) == [1, 2, 4, 6, 7]
    assert chosen("fifo", tensors, n_select=8) == list(range(8))


def test_excluded_candidates_weigh_as_if_they_were_not_there():
    tensors = arguments(30, 5, 4, 3)
    excluded = torch.rand(30, generator=drawing(1)) < 0.4
    remaining = (~excluded).nonzero().squeeze(1)
    for strategy in ("gradient", "feature"):
        rows = chosen(strategy, tensors, n_select=8, excluded=excluded, seed=4)
        among = chosen(strategy, (tensors[0][remaining], *tensors[1:]), n_select=8, seed=4)
        assert rows == remaining[among].tolist()


def test_the_active_strategies_are_kmeans_plusplus():
    tensors = arguments(30, 5, 4, 3)
    factors = gradient_factors(*tensors, temperature=0.4)
    gradient = kmeans_plusplus(*factors, n_select=9, generator=drawing(3)).tolist()
    feature = kmeans_plusplus(tensors[0], n_select=9, generator=drawing(3)).tolist()
    assert gradient != feature
    for strategy, expected in (("gradient", gradient), ("active", gradient), ("feature", feature)):
        assert chosen(strategy, tensors, n_select=9, seed=3, temperature=0.4) == expected


def test_random_rows_are_uniform_over_ordered_pairs_of_the_admissible():
    tensors = arguments(6, 3, 2, 2)
    excluded = torch.tensor([False, True, False, False, False, True])
    pairs = list(itertools.permutations((0, 2, 3, 4), 2))
    generator = drawing(0)
    counts = dict.fromkeys(pairs, 0)
    for _ in range(2000):
        rows = select("random", *tensors, n_select=2, excluded=excluded, generator=generator)
        counts[tuple(rows.tolist())] += 1
    assert chisquare(list(counts.values())).pvalue > 0.01


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_ohem_takes_the_largest_losses(temperature, normalised):
    candidates, queries, inputs = arguments(40, 5, 4, 3)
    excluded = torch.rand(40, generator=drawing(1)) < 0.3
    losses = []
    for row, key in enumerate(candidates):
        logits = (normalize(queries, dim=1) if normalised else queries) @ key / temperature
        losses.append((-cross_entropy(logits.unsqueeze(0), logits.argmax().view(1)).item(), row))
    expected = [row for _, row in sorted(losses) if not excluded[row]][:12]
    given = {"excluded": excluded, "temperature": temperature, "normalised": normalised}
    assert chosen("ohem", (candidates, queries, inputs), n_select=12, **given) == expected


def test_ohem_takes_the_earlier_of_equal_losses():
    candidates, queries, inputs = arguments(50, 5, 4, 3)
    candidates[:] = candidates[0]
    excluded = no_exclusion(candidates)
    excluded[2] = True
    assert chosen("ohem", (candidates, queries, inputs), n_select=4, excluded=excluded) == [0, 1, 3, 4]


# Degenerate pools


@pytest.mark.parametrize("strategy", ["gradient", "feature"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e15])
def test_equal_candidates_are_drawn_uniformly(strategy, value):
    """In float32 and at a width at which rounding would tell them apart."""
    _, queries, inputs = arguments(1, 3, 50, 4, dtype=torch.float32)
    candidates = torch.full((7, 50), value) * torch.randn(50, generator=drawing(8)).abs()
    counts = np.zeros((7, 7))
    for seed in range(300):
        first, second = chosen(strategy, (candidates, queries, inputs), n_select=2, seed=seed)
        counts[first, second] += 1
    assert np.diag(counts).sum() == 0
    assert chisquare(counts[~np.eye(7, dtype=bool)]).pvalue > 0.01


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_too_few_admissible_candidates_are_refused(strategy):
    tensors = arguments(8, 3, 4, 2)
    excluded = torch.arange(8) < 3
    message = r"n_select=6 should be between 0 and 5, as many of the 8 candidates as are admissible; select fewer"
    with pytest.raises(ValueError, match=message):
        chosen(strategy, tensors, n_select=6, excluded=excluded)
    with pytest.raises(ValueError, match="n_select=-1 should be between 0 and 5"):
        select(strategy, *tensors, n_select=-1, excluded=excluded, generator=drawing(0))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("given, message", [
    ({"n_select": 2.5}, r"n_select=2\.5 should be a whole number"),
    ({"n_select": True}, "n_select=True should be a whole number"),
    ({"generator": 0}, r"generator=0 should be a torch\.Generator on the device of the candidates"),
    ({"generator": None}, "generator=None should be"),
])
def test_arguments_of_another_kind_are_refused(strategy, given, message):
    with pytest.raises(TypeError, match=message):
        select(strategy, *arguments(8, 3, 4, 2), **{"n_select": 2, "excluded": None, "generator": drawing(0)} | given)


@pytest.mark.parametrize("convert, kind", [(torch.Tensor.numpy, "ndarray"), (torch.Tensor.tolist, "list"),
                                           (torch.Tensor.cfloat, r"torch\.complex64")])
def test_what_is_no_tensor_of_real_numbers_is_refused(convert, kind):
    candidates, *others = arguments(8, 3, 4, 2)
    with pytest.raises(TypeError, match=rf"candidates is {kind}; it should be a torch\.Tensor of real numbers"):
        select("gradient", convert(candidates), *others, n_select=2, excluded=None, generator=drawing(0))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place, name", [(0, "candidates"), (1, "queries"), (2, "query_inputs")])
def test_values_that_are_not_finite_are_named(place, name, value):
    tensors = arguments(8, 3, 4, 2)
    tensors[place][2, 1] = value
    for strategy in STRATEGIES:
        with pytest.raises(ValueError, match=f"^{name} has values that are not finite"):
            chosen(strategy, tensors, n_select=2)
    with pytest.raises(ValueError, match=f"^{name} has values that are not finite"):
        gradient_factors(*tensors)


@pytest.mark.parametrize("strategy", ["ohem", "gradient", "released"])
def test_products_beyond_the_range_are_named(strategy):
    candidates, queries, inputs = arguments(8, 3, 4, 2, dtype=torch.float32)
    with pytest.raises(ValueError, match="not finite; look for an encoder that diverged, or for features too large"):
        chosen(strategy, (candidates * 1e30, queries * 1e30, inputs), n_select=2)


def test_a_factor_of_the_gradients_beyond_the_range_is_named():
    candidates, queries, inputs = arguments(8, 3, 4, 2, dtype=torch.float32)
    with pytest.raises(ValueError, match=r"^the factor b of the gradients has values that are not finite"):
        gradient_factors(candidates, queries, inputs * 1e37, temperature=1e-3)


def test_a_norm_beyond_the_range_is_named():
    """The largest float32 is 3.4e38; four times 2e38 are within it one by one, and their norm is not."""
    candidates, queries, inputs = arguments(8, 3, 4, 2, dtype=torch.float32)
    for strategy in ("gradient", "ohem", "released"):
        with pytest.raises(ValueError, match=r"^the norm of queries has values that are not finite"):
            chosen(strategy, (candidates, queries.sign() * 2e38, inputs), n_select=2, normalised=True)


# Sizes of values


@pytest.mark.parametrize("power", [-50, 50])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_scale_of_the_features_does_not_matter(strategy, power):
    """Posteriors stay if the queries shrink as the candidates grow; the embeddings get a common factor, 2^50 = 1e15."""
    candidates, queries, inputs = arguments(60, 5, 8, 6, dtype=torch.float32)
    expected = chosen(strategy, (candidates, queries, inputs), n_select=20)
    flipped = chosen(strategy, (candidates.flip(0), queries, inputs), n_select=20)
    assert expected != flipped or strategy in ("random", "fifo")
    factor = 2.0**power
    assert chosen(strategy, (candidates * factor, queries / factor, inputs), n_select=20) == expected
    assert chosen(strategy, (candidates, queries, inputs * factor), n_select=20) == expected


def test_float32_selection_is_that_of_float64():
    tensors = arguments(300, 16, 32, 24, dtype=torch.float32)
    for normalised in (False, True):
        rows = chosen("gradient", tensors, n_select=60, normalised=normalised)
        assert rows == chosen("gradient", [tensor.double() for tensor in tensors], n_select=60, normalised=normalised)


# Wrong arguments


def test_unknown_strategies_are_named():
    tensors = arguments(4, 2, 3, 2)
    message = "^strategy='hardest' should be one of fifo, random, ohem, gradient, feature, released$"
    with pytest.raises(ValueError, match=message):
        chosen("hardest", tensors, n_select=2)


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((4, 3), (2, 5), (2, 2)), "d=5 in queries but d=3 in candidates"),
        (((4, 3), (2, 3), (3, 2)), "M=3 in query_inputs but M=2 in queries"),
        (((4,), (2, 3), (2, 2)), r"candidates has shape \(4,\); it should be \(P, d\)"),
        (((0, 3), (2, 3), (2, 2)), r"candidates has shape \(0, 3\), so P=0; give one row"),
        (((4, 3), (0, 3), (0, 2)), r"queries has shape \(0, 3\), so M=0; give one row"),
    ],
)
def test_sizes_that_disagree_are_named(shapes, message):
    tensors = [torch.ones(shape) for shape in shapes]
    with pytest.raises(ValueError, match=message):
        gradient_factors(*tensors)
    with pytest.raises(ValueError, match=message):
        select("gradient", *tensors, n_select=1, excluded=torch.zeros(4, dtype=torch.bool), generator=drawing(0))


def test_other_wrong_arguments_are_named():
    tensors = arguments(4, 2, 3, 2)
    with pytest.raises(TypeError, match=r"excluded has dtype torch.int64; it should be bool"):
        select("random", *tensors, n_select=1, excluded=torch.zeros(4, dtype=torch.int64), generator=drawing(0))
    with pytest.raises(ValueError, match="P=5 in excluded but P=4 in candidates"):
        select("random", *tensors, n_select=1, excluded=torch.zeros(5, dtype=torch.bool), generator=drawing(0))
    for temperature in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"temperature=.* should be positive and finite"):
            chosen("gradient", tensors, n_select=1, temperature=temperature)
        with pytest.raises(ValueError, match=r"temperature=.* should be positive and finite"):
            gradient_factors(*tensors, temperature=temperature)
    with pytest.raises(ValueError, match="P=3 in b but P=4 in a"):
        kmeans_plusplus(torch.ones(4, 2), torch.ones(3, 2), n_select=1, generator=drawing(0))
    with pytest.raises(ValueError, match="n_select=5 should be between 0 and 4"):
        kmeans_plusplus(torch.ones(4, 2), n_select=5, generator=drawing(0))
    for index in (-1, 4):
        with pytest.raises(IndexError, match=f"index={index} should be between 0 and 3, for 4 rows"):
            pairwise_sq_distance(torch.ones(4, 2), torch.ones(4, 3), index)
    with pytest.raises(ValueError, match="P=3 in b but P=4 in a"):
        pairwise_sq_distance(torch.ones(4, 2), torch.ones(3, 3), 1)


def test_a_query_without_direction_is_named():
    candidates, queries, inputs = arguments(6, 4, 3, 2)
    queries[2] = 0
    for strategy in ("gradient", "ohem", "released"):
        with pytest.raises(ValueError, match=r"row 2 of queries has norm 0\.0, which should be at least 1e-12"):
            chosen(strategy, (candidates, queries, inputs), n_select=2, normalised=True)
        chosen(strategy, (candidates, queries, inputs), n_select=2)


# Determinism, precision and memory


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_equal_generators_choose_alike_and_nothing_else_is_touched(strategy):
    tensors = [tensor.requires_grad_() for tensor in arguments(40, 4, 5, 3, dtype=torch.float32)]
    before = [tensor.detach().clone() for tensor in tensors]
    state = torch.get_rng_state()
    rows = [chosen(strategy, tensors, n_select=15, seed=seed) for seed in (0, 0, 1)]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2] or strategy in ("ohem", "fifo")
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, old) for tensor, old in zip(tensors, before, strict=True))
    assert not any(factor.requires_grad for factor in gradient_factors(*tensors))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_autocast_and_half_precision_leave_the_computation_in_float32(strategy, dtype):
    tensors = [tensor.to(dtype) for tensor in arguments(60, 6, 16, 8)]
    expected = chosen(strategy, [tensor.float() for tensor in tensors], n_select=30)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert chosen(strategy, tensors, n_select=30) == expected
        a, b = gradient_factors(*tensors)
        assert a.dtype == b.dtype == torch.float32
        distances = pairwise_sq_distance(a, b, 3)
        points = kmeans_plusplus(a, n_select=30, generator=drawing(0))
    assert torch.equal(distances, pairwise_sq_distance(a, b, 3))
    assert torch.equal(points, kmeans_plusplus(a, n_select=30, generator=drawing(0)))


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("strategy", ["gradient", "feature"])
def test_rounds_neither_multiply_factors_out_nor_read_values_back(strategy, normalised):
    tensors = arguments(100, 8, 24, 32)
    with Watch() as watch:
        select(strategy, *tensors, n_select=40, excluded=no_exclusion(tensors[0]), generator=drawing(0),
               normalised=normalised)
    assert watch.elements <= 100 * 24 and not watch.reads
