"""Selection against autograd on a real last layer, brute-force distances, slow loops and scikit-learn."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency, chisquare
from sklearn.cluster import kmeans_plusplus as sklearn_kmeans_plusplus
from torch import nn
from torch.nn.functional import cross_entropy, normalize
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from repro.contrast import negatives
from repro.contrast.negatives import STRATEGIES, gradient_factors, kmeans_plusplus, pairwise_sq_distance, select

SHAPES = [(1, 1, 1, 1), (7, 4, 3, 5), (9, 6, 5, 2), (8, 1, 3, 4), (6, 5, 1, 1)]  # P, M, d, e
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def drawing(seed, device="cpu"):
    return torch.Generator(device).manual_seed(seed)


def pool(rows, classes, d, e, *, seed=0, dtype=torch.float64):
    """Candidates, a last layer and its inputs."""
    generator = drawing(seed)
    candidates = torch.randn(rows, d, generator=generator, dtype=dtype)
    inputs = torch.randn(classes, e, generator=generator, dtype=dtype)
    layer = nn.Linear(e, d).to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=dtype))
    return candidates, layer, inputs


def arguments(rows, classes, d, e, **given):
    candidates, layer, inputs = pool(rows, classes, d, e, **given)
    return candidates, layer(inputs).detach(), inputs


def last_layer_gradients(candidates, layer, inputs, temperature=1.0, normalised=False):
    """Of every candidate, what autograd sends into the weight and into the bias: (P, d, e), (P, d)."""
    weights, biases = [], []
    for key in candidates:
        classes = layer(inputs)
        if normalised:
            classes = normalize(classes, dim=1)
        logits = classes @ key / temperature
        loss = cross_entropy(logits.unsqueeze(0), logits.argmax().view(1))
        weight, bias = torch.autograd.grad(loss, [layer.weight, layer.bias])
        weights.append(weight)
        biases.append(bias)
    return torch.stack(weights), torch.stack(biases)


def slow_distances(rows):
    """Squared distances of all pairs, pair by pair."""
    return torch.stack([torch.stack([(row - other).square().sum() for other in rows]) for row in rows])


def no_exclusion(candidates):
    return torch.zeros(len(candidates), dtype=torch.bool)


# Gradients


@pytest.mark.parametrize("temperature", [1.0, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_have_the_inner_products_of_autograds_gradients(shape, temperature):
    candidates, layer, inputs = pool(*shape)
    weights, biases = last_layer_gradients(candidates, layer, inputs, temperature)
    a, b = gradient_factors(candidates, layer(inputs), inputs, temperature=temperature)
    assert a.shape == candidates.shape
    assert b.shape == (shape[0], min(shape[1], shape[3]))
    torch.testing.assert_close((a @ a.T) * (b @ b.T), weights.flatten(1) @ weights.flatten(1).T)
    assert biases.abs().max() < 1e-12
    if shape[1] > 1:
        assert weights.abs().max() > 1e-3


def test_the_weights_gradient_is_an_outer_product_of_the_candidate():
    candidates, layer, inputs = pool(7, 4, 3, 5)
    weights, _ = last_layer_gradients(candidates, layer, inputs)
    a, b = gradient_factors(candidates, layer(inputs), inputs)
    for n, weight in enumerate(weights):
        other = a[n] @ weight / a[n].square().sum()
        torch.testing.assert_close(torch.outer(a[n], other), weight)
        torch.testing.assert_close(other.norm(), b[n].norm())


def test_repeated_queries_and_more_queries_than_features_are_exact():
    candidates, layer, inputs = pool(9, 3, 4, 2)
    inputs = inputs[[0, 1, 1, 2, 0, 0, 2]]
    weights, _ = last_layer_gradients(candidates, layer, inputs)
    a, b = gradient_factors(candidates, layer(inputs), inputs)
    assert b.shape == (9, 2)
    torch.testing.assert_close((a @ a.T) * (b @ b.T), weights.flatten(1) @ weights.flatten(1).T)


def test_a_confident_posterior_keeps_its_small_gradient_in_float32():
    """The label's probability rounds to 1 in float32, so that p - onehot would lose the residual."""
    candidates, queries, inputs = arguments(50, 4, 6, 6)
    queries = queries * 12
    _, exact = gradient_factors(candidates, queries, inputs)
    _, b = gradient_factors(candidates.float(), queries.float(), inputs.float())
    expected = exact.norm(dim=1)
    assert ((expected > 1e-20) & (expected < 1e-8)).sum() > 10
    torch.testing.assert_close(b.norm(dim=1).double(), expected, rtol=1e-3, atol=1e-20)


@pytest.mark.parametrize("shape", SHAPES)
def test_pairwise_distances_equal_those_of_materialised_gradients(shape):
    candidates, layer, inputs = pool(*shape)
    weights, _ = last_layer_gradients(candidates, layer, inputs)
    expected = slow_distances(weights.flatten(1))
    factors = gradient_factors(candidates, layer(inputs), inputs)
    for index in range(shape[0]):
        distances = pairwise_sq_distance(*factors, index)
        torch.testing.assert_close(distances, expected[index])
        assert distances[index] == 0
        assert torch.equal(pairwise_sq_distance(*factors, torch.tensor(index)), distances)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e15])
def test_pairwise_distances_of_huge_and_tiny_factors(scale):
    """The norms of a alone would leave float32, although the distances do not."""
    a, b = torch.randn(2, 6, 3, generator=drawing(0)).unbind()
    expected = slow_distances(torch.einsum("pd,pe->pde", a, b).flatten(1).double())
    found = torch.stack([pairwise_sq_distance(a * scale**2, b / scale**2 * 8, index) for index in range(6)])
    torch.testing.assert_close(found.double(), 64 * expected, rtol=1e-4, atol=1e-4)


def test_pairwise_distances_beyond_the_range_are_infinite_and_never_nan():
    a, b = torch.randn(2, 6, 3, generator=drawing(0)).unbind()
    assert pairwise_sq_distance(a * 1e15, b * 1e15, 2).tolist() == [math.inf] * 2 + [0.0] + [math.inf] * 3


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
        found = select(
            "gradient", candidates, layer(inputs), inputs, n_select=shape[0], excluded=no_exclusion(candidates),
            generator=drawing(seed), temperature=temperature, normalised=normalised,
        )
        expected = kmeans_plusplus(materialised, n_select=shape[0], generator=drawing(seed))
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_distances_of_normalised_queries_equal_those_of_autograds_gradients(temperature):
    candidates, layer, inputs = pool(9, 6, 4, 5)
    inputs[3] = inputs[1]
    weights, biases = last_layer_gradients(candidates, layer, inputs, temperature, normalised=True)
    assert biases.abs().max() > 1e-2
    expected = slow_distances(torch.cat([weights.flatten(1), biases], dim=1))
    embeddings = negatives._normalised_gradients(candidates, layer(inputs).detach(), inputs, temperature)
    found = torch.stack([embeddings.to(torch.tensor([index])) for index in range(9)])
    found *= expected[0, 1] / found[0, 1]  # a common factor is left out
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


# Draws


def chances(distances, length):
    """Probability of every sequence of `length` distinct rows under k-means++, from squared distances (P, P)."""
    distances = distances.double()
    found = {}
    for rows in itertools.permutations(range(len(distances)), length):
        chance = 1 / len(distances)
        for turn in range(1, length):
            nearest = distances[list(rows[:turn])].min(0).values
            chance *= (nearest[rows[turn]] / nearest.sum()).item()
        found[rows] = chance
    return found


def significance(counts, expected):
    """p value that the draws counted by row sequence follow the expected chances; the rare ones count as one."""
    total = sum(counts.values())
    assert set(counts) <= {rows for rows, chance in expected.items() if chance > 0}
    cells, rare = [], np.zeros(2)
    for rows, chance in expected.items():
        cell = np.array([counts.get(rows, 0), total * chance])
        if cell[1] < 10:
            rare += cell
        else:
            cells.append(cell)
    assert len(cells) > len(expected) / 2
    return chisquare(*np.array([*cells, rare] if rare[1] else cells).T).pvalue


def counted(draw, draws=1500):
    """How often `draw(generator)` gives every sequence of rows."""
    generator, counts = drawing(1), {}
    for _ in range(draws):
        rows = tuple(draw(generator).tolist())
        counts[rows] = counts.get(rows, 0) + 1
    return counts


SPREAD = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.3], [-1.6, 0.4], [0.8, 1.5]])


def test_draws_of_points_follow_the_squared_distance():
    """First, second and third row together; draws in proportion to the distance, or uniform, are told apart."""
    counts = counted(lambda generator: kmeans_plusplus(SPREAD, n_select=3, generator=generator))
    distances = slow_distances(SPREAD)
    assert significance(counts, chances(distances, 3)) > 0.01
    assert significance(counts, chances(distances.sqrt(), 3)) < 1e-6
    assert significance(counts, chances(1 - torch.eye(5), 3)) < 1e-6


def test_draws_of_gradients_follow_the_squared_distance_among_the_admissible():
    candidates, layer, inputs = pool(7, 4, 2, 3, seed=5, dtype=torch.float32)
    excluded = torch.tensor([False, True, False, False, True, False, False])
    admissible = (~excluded).nonzero().squeeze(1)
    weights, _ = last_layer_gradients(candidates[admissible], layer, inputs)
    expected = chances(slow_distances(weights.flatten(1)), 2)
    expected = {tuple(admissible[list(rows)].tolist()): chance for rows, chance in expected.items()}

    def draw(generator):
        return select("gradient", candidates, layer(inputs), inputs, n_select=2, excluded=excluded, generator=generator)

    assert significance(counted(draw), expected) > 0.01


def test_draws_agree_with_scikit_learn_in_distribution():
    candidates, layer, inputs = pool(6, 4, 2, 3, seed=2)
    weights, _ = last_layer_gradients(candidates, layer, inputs)
    materialised = weights.flatten(1).numpy()
    factors = gradient_factors(candidates, layer(inputs), inputs)
    ours = counted(lambda generator: kmeans_plusplus(*factors, n_select=2, generator=generator))
    state = np.random.RandomState(0)

    def theirs(count):
        found = {}
        for _ in range(count):
            _, rows = sklearn_kmeans_plusplus(materialised, 2, random_state=state, n_local_trials=1)
            found[tuple(rows.tolist())] = found.get(tuple(rows.tolist()), 0) + 1
        return found

    reference = theirs(1500)
    sequences = sorted(set(ours) | set(reference))
    table = [[counts.get(rows, 0) for rows in sequences] for counts in (ours, reference)]
    often = np.array(table).sum(0) >= 10
    assert chi2_contingency(np.array(table)[:, often]).pvalue > 0.01
    swapped = [[counts.get(rows[::-1], 0) for rows in sequences] for counts in (ours,)]
    assert chi2_contingency(np.array([*swapped, table[1]])[:, often]).pvalue < 1e-3


def test_with_two_far_clusters_the_second_row_is_in_the_other():
    near = torch.randn(20, 3, generator=drawing(0))
    points = torch.cat([near, near + 1e6])
    for seed in range(100):
        first, second = kmeans_plusplus(points, n_select=2, generator=drawing(seed)).tolist()
        assert (first < 20) != (second < 20)


@pytest.mark.parametrize("uniform", [0.0, 0.3, 1 - 2.0**-53])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_draw_never_lands_on_a_weight_of_zero(dtype, uniform):
    """Whatever the uniform is, at the ends of a pool of the paper's size too."""
    weights = torch.rand(38_400, generator=drawing(0), dtype=dtype) * 1e-3
    weights[:100] = weights[-100:] = 0
    weights[torch.rand(38_400, generator=drawing(1)) < 0.5] = 0
    free = torch.ones_like(weights, dtype=torch.bool)
    row = negatives._drawn(weights, free, torch.tensor(uniform, dtype=torch.float64))
    assert row.shape == (1,)
    assert weights[row.item()] > 0
    positive = weights.nonzero().squeeze(1)
    assert uniform == 0.3 or row.item() == positive[0 if uniform == 0 else -1].item()


def test_a_draw_divides_the_unit_interval_as_exact_arithmetic_does():
    weights = torch.tensor([1.0, 3.0, 0.0, 0.1, 4.0, 1e-20, 2.0])
    exact = [Fraction(weight) for weight in weights.tolist()]
    free = torch.ones(7, dtype=torch.bool)
    for step in range(400):
        uniform = (step + 0.5) / 400
        sums = itertools.accumulate(exact)
        expected = next(row for row, total in enumerate(sums) if total > Fraction(uniform) * sum(exact))
        assert negatives._drawn(weights, free, torch.tensor(uniform, dtype=torch.float64)).item() == expected


def test_draws_without_any_weight_are_uniform_over_the_free():
    free = torch.tensor([False, True, True, False, True, False])
    uniforms = torch.tensor([0.0, 0.3, 0.34, 0.66, 0.67, 1 - 2.0**-53], dtype=torch.float64)
    rows = [negatives._drawn(torch.zeros(6), free, uniform).item() for uniform in uniforms]
    assert rows == [1, 1, 2, 2, 4, 4]


def test_a_drawn_row_never_returns_whatever_its_distance_is_rounded_to():
    class Noisy:
        norms = torch.ones(6)

        def to(self, index):
            return torch.zeros(6).index_fill_(0, index, 1e-7)

    for seed in range(5):
        rows = negatives._seeds(Noisy(), torch.ones(6, dtype=torch.bool), 6, drawing(seed))
        assert sorted(rows.tolist()) == list(range(6))


# Strategies


def chosen(strategy, tensors, *, n_select, excluded=None, seed=0, **given):
    excluded = no_exclusion(tensors[0]) if excluded is None else excluded
    rows = select(strategy, *tensors, n_select=n_select, excluded=excluded, generator=drawing(seed), **given)
    assert rows.shape == (n_select,)
    assert rows.dtype == torch.int64
    assert len(set(rows.tolist())) == n_select
    assert not excluded[rows].any()
    return rows.tolist()


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


# The published code's way


def slow_released(candidates, queries, n_select, seed, temperature=1.0):
    """The rows of every cluster nearest to its mean, several if equally near; only the uniforms are shared."""
    features = candidates.clone().requires_grad_()
    loss = cross_entropy(queries @ features.T / temperature, torch.arange(len(queries)))
    (gradients,) = torch.autograd.grad(loss, features)
    rows = [row.numpy() for row in gradients]
    uniforms = torch.rand(n_select, generator=drawing(seed), dtype=torch.float64).tolist()
    seeds = [int(uniforms[0] * len(rows))]
    for uniform in uniforms[1:]:
        weights = [min(np.linalg.norm(row - rows[other]) for other in seeds) for row in rows]
        if sum(weights) == 0:
            weights = [float(n not in seeds) for n in range(len(rows))]
        sums = list(itertools.accumulate(weights))
        seeds.append(next(n for n, total in enumerate(sums) if total > uniform * sums[-1]))
    centres, owner = [rows[n] for n in seeds], None
    while True:
        distances = [[math.inf if c is None else np.linalg.norm(row - c) for c in centres] for row in rows]
        before, owner = owner, [min(range(len(centres)), key=line.__getitem__) for line in distances]
        if before == owner:
            break
        members = [[row for row, own in zip(rows, owner, strict=True) if own == c] for c in range(len(centres))]
        centres = [np.mean(own, axis=0) if own else None for own in members]
    nearest = []
    for c in range(len(centres)):
        own = {n: distances[n][c] for n in range(len(rows)) if owner[n] == c}
        if own:
            nearest.append({n for n, distance in own.items() if distance <= min(own.values()) + 1e-12})
    return nearest


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_released_equals_a_slow_transcription(temperature):
    tensors = arguments(40, 6, 4, 3)
    for seed in range(8):
        expected = slow_released(*tensors[:2], 7, seed, temperature)
        assert len(expected) == 7
        rows = chosen("released", tensors, n_select=7, seed=seed, temperature=temperature)
        assert all(row in nearest for row, nearest in zip(rows, expected, strict=True))
        feature = chosen("feature", tensors, n_select=7, seed=seed)
        assert not all(row in nearest for row, nearest in zip(feature, expected, strict=True))


def test_released_fills_up_when_clusters_are_lost():
    """Only 4 different points for 7 clusters: the published code returns 4 rows."""
    candidates, queries, inputs = arguments(4, 3, 4, 3)
    candidates = candidates[[0, 1, 2, *[3] * 17]]
    for seed in range(5):
        expected = slow_released(candidates, queries, 7, seed)
        assert len(expected) == 4
        rows = chosen("released", (candidates, queries, inputs), n_select=7, seed=seed)
        assert all(row in nearest for row, nearest in zip(rows[:4], expected, strict=True))


def test_released_clusters_the_admissible_alone():
    candidates, queries, inputs = arguments(24, 3, 4, 3)
    excluded = no_exclusion(candidates)
    excluded[5:20] = True
    for seed in range(5):
        chosen("released", (candidates, queries, inputs), n_select=9, excluded=excluded, seed=seed)


def test_released_asks_for_the_batch_in_front():
    with pytest.raises(ValueError, match="for each of the 5 queries, but there are 4 candidates; put the batch"):
        chosen("released", arguments(4, 5, 3, 2), n_select=2)


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

def test_rows_equal_to_a_drawn_one_come_last():
    """Of 1,000 rows in float32 only 4 differ: they are drawn first, then all others alike."""
    distinct = torch.rand(4, 300, generator=drawing(0)), torch.rand(4, 60, generator=drawing(1))
    kind = torch.arange(1000) % 4
    for factors in (distinct, distinct[:1], (distinct[0] + 100,)):
        for seed in range(5):
            rows = kmeans_plusplus(*(factor[kind] for factor in factors), n_select=40, generator=drawing(seed))
            assert sorted(kind[rows[:4]].tolist()) == [0, 1, 2, 3]
            assert len(set(rows.tolist())) == 40
            assert kind[rows[4:]].bincount(minlength=4).min() > 2


def test_one_query_leaves_a_uniform_choice():
    tensors = arguments(5, 1, 3, 4)
    counts = counted(lambda generator: select("gradient", *tensors, n_select=2, excluded=None, generator=generator),
                     draws=800)
    assert significance(counts, chances(1 - torch.eye(5), 2)) > 0.01


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_too_few_admissible_candidates_are_refused(strategy):
    tensors = arguments(8, 3, 4, 2)
    excluded = torch.arange(8) < 3
    message = r"n_select=6 should be between 0 and 5, as many of the 8 candidates as are admissible; select fewer"
    with pytest.raises(ValueError, match=message):
        chosen(strategy, tensors, n_select=6, excluded=excluded)
    with pytest.raises(ValueError, match="n_select=-1 should be between 0 and 5"):
        select(strategy, *tensors, n_select=-1, excluded=excluded, generator=drawing(0))


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


@pytest.mark.parametrize("name", ["a", "b"])
def test_factors_that_are_not_finite_are_named(name):
    factors = {"a": torch.ones(4, 3), "b": torch.ones(4, 2)}
    factors[name][3, 0] = math.nan
    with pytest.raises(ValueError, match=f"^{name} has values that are not finite"):
        kmeans_plusplus(**factors, n_select=2, generator=drawing(0))
    with pytest.raises(ValueError, match=f"^{name} has values that are not finite"):
        pairwise_sq_distance(**factors, index=1)


@pytest.mark.parametrize("strategy", ["ohem", "gradient", "released"])
def test_products_beyond_the_range_are_named(strategy):
    candidates, queries, inputs = arguments(8, 3, 4, 2, dtype=torch.float32)
    with pytest.raises(ValueError, match="not finite; look for an encoder that diverged, or for features too large"):
        chosen(strategy, (candidates * 1e30, queries * 1e30, inputs), n_select=2)


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


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("scales", [(1e15,) * 3, (1e-15,) * 3, (1e15, 1e-9, 1e-15), (1e-15, 1e15, 1e15)])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_huge_and_tiny_values_still_give_distinct_rows(strategy, scales, normalised):
    tensors = arguments(30, 5, 8, 6, dtype=torch.float32)
    if normalised:
        scales = (*scales[:1], max(scales[1], 1e-9), *scales[2:])
    scaled = [tensor * scale for tensor, scale in zip(tensors, scales, strict=True)]
    chosen(strategy, scaled, n_select=30, normalised=normalised)


def test_a_huge_candidate_does_not_hide_the_differences_of_the_others():
    candidates = torch.randn(40, 8, generator=drawing(0))
    candidates[17] *= 1e15
    rows = kmeans_plusplus(candidates, n_select=10, generator=drawing(2)).tolist()
    assert rows[1] == 17
    rest = candidates.clone()
    rest[17] = rest[rows[0]]
    nearest = slow_distances(rest)[rows[0]]
    uniforms = torch.rand(10, generator=drawing(2), dtype=torch.float64)
    assert rows[2] == torch.searchsorted(nearest.double().cumsum(0), uniforms[2] * nearest.double().sum()).item()


def test_points_far_from_the_origin_are_told_apart_in_float32():
    points = torch.randn(200, 16, generator=drawing(0)).mul(256).round() / 256
    expected = kmeans_plusplus(points.double(), n_select=50, generator=drawing(1))
    moved = points + 8192
    assert torch.equal(moved - 8192, points)
    assert kmeans_plusplus(moved, n_select=50, generator=drawing(1)).tolist() == expected.tolist()


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
        (((0, 3), (2, 3), (2, 2)), r"candidates has shape \(0, 3\).* at least 1"),
        (((4, 3), (0, 3), (0, 2)), r"queries has shape \(0, 3\).* at least 1"),
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


def test_a_query_without_direction_is_named():
    candidates, queries, inputs = arguments(6, 4, 3, 2)
    queries[2] = 0
    for strategy in ("gradient", "ohem", "released"):
        with pytest.raises(ValueError, match=r"row 2 of queries has norm 0\.0, which should be at least 1e-12"):
            chosen(strategy, (candidates, queries, inputs), n_select=2, normalised=True)
        chosen(strategy, (candidates, queries, inputs), n_select=2)


# Determinism, precision, memory and waiting


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


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_points_are_not_changed_in_place(layout):
    points = torch.randn(9, 5, generator=drawing(0)) + 3
    points = points if layout == "rows" else points.T.contiguous().T
    before = points.clone()
    expected = kmeans_plusplus(before.double(), n_select=5, generator=drawing(0))
    assert torch.equal(kmeans_plusplus(points, n_select=5, generator=drawing(0)), expected)
    assert torch.equal(points, before)


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


class Watch(TorchDispatchMode):
    """Records the largest number of elements that an operation returns, and how often the host reads a value."""

    def __init__(self):
        super().__init__()
        self.elements = self.reads = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        waits = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "unique")
        self.reads += any(name in str(function) for name in waits)
        return result


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("strategy", ["gradient", "feature"])
def test_rounds_neither_read_values_nor_multiply_factors_out(strategy, normalised):
    tensors = arguments(100, 8, 24, 32)
    watches = []
    for n_select in (2, 40):
        with Watch() as watch:
            select(strategy, *tensors, n_select=n_select, excluded=no_exclusion(tensors[0]), generator=drawing(0),
                   normalised=normalised)
        watches.append(watch)
    assert 0 < watches[0].reads == watches[1].reads < 12
    assert watches[1].elements <= 100 * 24


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_are_chosen_on_the_device_of_the_candidates(strategy, device):
    tensors = [tensor.to(device) for tensor in arguments(40, 4, 5, 3)]
    for normalised in (False, True):
        rows = select(strategy, *tensors, n_select=25, excluded=(torch.arange(40) < 5).to(device),
                      generator=drawing(0, device), normalised=normalised)
        assert rows.device.type == device
        assert len(set(rows.tolist())) == 25
        assert rows.min() >= 5
