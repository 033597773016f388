"""CM-ACC's active selection: which candidates of a pool become the next negatives.

Active selection wants negatives that are both hard and diverse. It embeds a candidate as the gradient that its
cross-entropy with a pseudo-label would send into the last layer of the query encoder (Eqs. 4 and 5), and draws
candidates by the seeding of k-means++ (Alg. 3), far from those already drawn. Such a gradient is an outer product,
whose factors are multiplied out nowhere: memory and time grow as the pool times d, not times d squared.

All is computed in float32, or in float64 if an argument has it, also where autocast is on, and without gradient.
Looking at values waits for the device, the rounds of the seeding do not.
"""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Mapping
from numbers import Integral

import torch
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from repro.contrast import SAMPLERS
from repro.contrast.objectives import check_shapes, check_temperatures, raised

_AXES = {"candidates": "P d", "queries": "M d", "query_inputs": "M e", "a": "P d", "b": "P e"}
_SMALLEST_NORM = 1e-12  # of a query that is normalised
_PASSES = 1000          # of k-means, more than it needs; rounding might let it run in circles


class NonFinite(ValueError):
    """A value is NaN or infinite, or too large to compute with: an encoder diverged."""


@torch.no_grad()
def select(
    strategy: str, candidates: Tensor, queries: Tensor, query_inputs: Tensor, *, n_select: int,
    excluded: Tensor | None, generator: Generator, temperature: float = 1.0, normalised: bool = False,
    checked: bool = True,
) -> Tensor:
    """Choose the candidates that enter the dictionary.

    Args:
        strategy: one of `repro.contrast.SAMPLERS`, or "active", as the paper calls "gradient".
        candidates: (P, d) keys, used as given. Normalise them first if the objective does.
        queries: (M, d) outputs q_j = W h_j + bias of the last layer, before any normalisation.
        query_inputs: (M, e) inputs h_j of the last layer.
        n_select: number to choose, at least 0.
        excluded: (P,) bool, True for candidates never to be chosen, as those in the dictionary; None for no such.
        generator: on the device of the candidates; for equal states and devices the choice is the same.
        temperature: t > 0 of the pseudo-labels, in units of the dot product (CM-ACC 1: its Eq. 4 has none).
        normalised: whether the classes are the queries divided by their norms; gradients then go through the division.
        checked: whether values are looked at, for which the host waits for the device. Otherwise all is left to the
            device, as a recording needs: of values that are not finite, or of too few admissible candidates, any rows
            are chosen, excluded ones cost as much as others, and strategies that wait are refused.

    Returns:
        (n_select,) int64 distinct rows of the candidates, on their device.

    Raises:
        ValueError: if the strategy is unknown or chooses other rows than it should, sizes disagree or are 0, a value is
            not finite (`NonFinite`), fewer than n_select candidates are admissible, a query that should be normalised
            has norm 0, t is not positive and finite, or "released" has fewer candidates than queries.
        TypeError: if an argument is of another kind.

    Source: CM-ACC, Alg. 2 and Tables 2 and 3; "released" from the released code.
    """
    name = "gradient" if strategy == "active" else strategy
    sampler = SAMPLERS.get(name)
    if sampler is None:
        raise ValueError(f"strategy={strategy!r} should be one of {', '.join(SAMPLERS)}")
    if not isinstance(generator, Generator):  # of none torch would draw from its own
        raise TypeError(f"generator={generator!r} should be a torch.Generator on the device of the candidates")
    _check(checked, candidates=candidates, queries=queries, query_inputs=query_inputs)
    check_temperatures(temperature=temperature)
    if excluded is None:
        excluded = torch.zeros(len(candidates), dtype=torch.bool, device=candidates.device)
    check_shapes(candidates=(candidates, "P d"), excluded=(excluded, "P"))
    if excluded.dtype != torch.bool:
        raise TypeError(f"excluded has dtype {excluded.dtype}; it should be bool, a flag for every candidate")
    if sampler.waits and not checked:
        raise ValueError(f"strategy={strategy!r} waits for the device, as it looks at values; leave out checked=False")
    free, rows = ~excluded, None
    if checked:
        admissible, = free.sum(0, keepdim=True).tolist()
        _check_count(n_select, rows=len(free), admissible=admissible)
    if n_select == 0:
        return torch.empty(0, dtype=torch.int64, device=free.device)
    if sampler.batch_first and len(candidates) < len(queries):
        raise ValueError(
            f"{strategy} takes the batch's features first among the candidates, one for each of the {len(queries)} "
            f"queries, but there are {len(candidates)} candidates; put the batch's features in front of the pool"
        )
    candidates, queries, query_inputs = raised(candidates, queries, query_inputs)
    if checked and normalised and sampler.posterior:
        _check_norms(queries)
    with torch.autocast(candidates.device.type, enabled=False):
        if checked and not sampler.whole and admissible < len(free):  # the others would cost as much: most of a pool
            rows = excluded.byte().argsort(stable=True)[:admissible]  # as nonzero, which would wait once more
            candidates, free = candidates[rows], free[rows]
        settings = (n_select, generator, temperature, normalised, checked)
        choose: Callable[[Pool], Tensor] = globals()[name]
        chosen = choose(Pool(candidates, queries, query_inputs, free, *settings))
    if checked:
        distinct, = (free ^ free.index_fill(0, chosen, False)).sum(0, keepdim=True).tolist()
        if not distinct == len(chosen) == n_select:
            raise ValueError(f"strategy={strategy!r} returned {len(chosen)} rows, of which {distinct} are distinct and "
                             f"free; its function should return n_select={n_select} such rows")
    return chosen if rows is None else rows[chosen]


# ------------------------------------------------------------------------------------------------ samplers


@dataclasses.dataclass(frozen=True)
class Pool:
    """What a sampler chooses from, as `select` has checked it; tensors are of one precision, float32 or float64."""

    candidates: Tensor    # (P, d) keys
    queries: Tensor       # (M, d) outputs of the last layer, before any normalisation
    query_inputs: Tensor  # (M, e) inputs of the last layer
    free: Tensor          # (P,) bool, what may be chosen; where values may be looked at, all but for a `whole` pool
    n_select: int         # how many, from 1
    generator: Generator  # on the device of the candidates
    temperature: float    # of the pseudo-labels
    normalised: bool      # whether the queries divided by their norms are the classes
    checked: bool         # whether values may be looked at, for which the host waits

    @property
    def classes(self) -> Tensor:
        """(M, d) whose inner products with a candidate are its logits, times the temperature."""
        return self.queries / _norms(self.queries) if self.normalised else self.queries


def fifo(pool: Pool) -> Tensor:
    """The first, in the order given: MoCo's rule, where the candidates are the keys of the batch."""
    return pool.free.byte().argsort(descending=True, stable=True)[: pool.n_select]


def random(pool: Pool) -> Tensor:
    """Uniform, without replacement."""
    return uniformly(pool.free, pool.n_select, pool.generator)


def ohem(pool: Pool) -> Tensor:
    """The largest losses of the pseudo-label, in descending order; of equal ones the earlier."""
    _, losses = pseudo_labelled(pool.candidates, pool.classes, pool.temperature)
    if pool.checked:
        check_finite({"the loss of candidates and queries": losses})
    return losses.masked_fill_(~pool.free, -1).argsort(descending=True, stable=True)[: pool.n_select]


def gradient(pool: Pool) -> Tensor:
    """The paper's: seeds of k-means++ over the gradients; uniform if these are equal, as with one query."""
    points = gradients(pool.candidates, pool.queries, pool.query_inputs, pool.temperature, pool.normalised)
    if pool.checked:
        check_finite({"the gradients of candidates": points.norms})
    return seeds(points, pool.free, pool.n_select, pool.generator)


def feature(pool: Pool) -> Tensor:
    """Seeds of k-means++ over the candidates themselves."""
    return seeds(Embeddings(moderated(pool.candidates)), pool.free, pool.n_select, pool.generator)


def released(pool: Pool) -> Tensor:
    """What the published code does instead.

    A candidate is embedded as the gradient of the queries' mean cross-entropy with respect to it: (p - onehot)' q /
    (M t). Seeds are drawn in proportion to the distance, not its square, then k-means runs until nothing changes, and
    the point of every cluster nearest to its mean is chosen, of equally near ones the earliest. Uniform draws make up
    for clusters that lose all points; the published code returns fewer.
    """
    classes, temperature = pool.classes, pool.temperature
    share = torch.softmax((classes / temperature) @ pool.candidates.T, dim=1)            # (M, P)
    share.diagonal().sub_(1)
    of_candidates = share.T @ (classes / (len(classes) * temperature))                   # (P, d)
    check_finite({"the gradient of the candidates": of_candidates})
    points = Embeddings(moderated(of_candidates))
    starts = seeds(points, pool.free, pool.n_select, pool.generator, squared=False)
    central = _nearest_to_means(points.factors[0].T, starts, pool.free)
    rest = pool.free.index_fill(0, central, False)
    return torch.cat([central, uniformly(rest, pool.n_select - len(central), pool.generator)])


# ------------------------------------------------------------------------------------------------ gradients


def pseudo_labelled(candidates: Tensor, classes: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Posterior of every candidate less its one-hot pseudo-label, (P, M), and the loss of the label, (P,).

        p_nj = softmax_j(k_n.q_j / t),  y_n = argmax_j p_nj,  L_n = -log p_ny

    The queries q_j of a batch act as classes for the candidate k_n, which is constant. Both results are made of the
    other classes' sum, so that they are exact also where the label's probability rounds to 1.

    Source: CM-ACC, Eq. 4, which has no temperature.
    """
    logits = candidates @ (classes / temperature).T
    top, label = logits.max(1, keepdim=True)
    others = logits.sub_(top).exp_().scatter_(1, label, 0)
    total = others.sum(1, keepdim=True)
    residuals = others.div_(1 + total).scatter_(1, label, -total / (1 + total))
    return residuals, total.log1p().squeeze(1)


def gradients(
    candidates: Tensor, queries: Tensor, query_inputs: Tensor, temperature: float = 1.0, normalised: bool = False
) -> "Embeddings":
    """Gradients of the last layer for every candidate, up to a common factor, which changes no choice.

    The loss of `pseudo_labelled` has, with respect to q_j = W h_j + bias, the gradients

        dL_n/dW = k_n u_n',  u_n = sum_j r_nj h_j,  r_n = (p_n - onehot(y_n)) / t,   dL_n/dbias = 0

    u_n lies in the span of the query inputs, and b_n are its coordinates in an orthonormal basis of it: inner products
    are (k_m.k_n) (b_m.b_n). Where outputs z_j become the classes q_j = z_j / |z_j|, weight and bias together have

        G_n = sum_j g_nj (k_n - (k_n.q_j) q_j) [h_j; 1]',  g_nj = r_nj / |z_j|

    With b_n the coordinates of sum_j g_nj [h_j; 1], c_nj = g_nj (k_n.q_j) and K the elementwise product of the Gram
    matrices of q and [h; 1], inner products have the form that `Embeddings` takes. Arguments are those of `select`, of
    one precision.

    Source: CM-ACC, Eq. 5.
    """
    keys = moderated(candidates)
    if not normalised:
        b = (_in_basis(query_inputs) / temperature) @ pseudo_labelled(candidates, queries, temperature)[0].T
        return Embeddings(keys, moderated(b.T))
    norms = _norms(queries)                                                              # (M, 1)
    classes = queries / norms
    residuals, _ = pseudo_labelled(candidates, classes, temperature)
    weights = moderated(residuals.div_(norms.T))
    inputs = moderated(torch.cat([query_inputs, torch.ones_like(norms)], dim=1))
    basis = _in_basis(inputs)
    b = weights @ basis.T
    similarities = keys @ classes.T                                                      # (P, M)
    c = weights.mul_(similarities)
    gram = (classes @ classes.T) * (inputs @ inputs.T)                                   # (M, M) K
    w = similarities.mul_(b @ basis).addmm_(c, gram, alpha=-0.5)
    return Embeddings(keys, b, torch.cat([c, w], dim=1))


class Embeddings:
    """Rows G_n that are known by their inner products alone, as far as k-means++ needs them.

        <G_m, G_n> = (a_m.a_n) (b_m.b_n) - c_m.w_n - w_m.c_n

    The factors are kept as columns, (d, P): a product of all rows with one then takes half the time on a CPU.
    Squared distances are lowered by what rounding may add, so that equal rows are at distance 0: for d = 512 by 3e-6 of
    both squared norms in float32 and 6e-15 in float64.

    Args:
        a: (P, d) points or first factors, of moderate size.
        b: (P, e) second factors; None for points, from which the median of about a hundred of them is subtracted, so
            that digits do not cancel (the mean would follow a single huge point).
        crossed: (P, 2 M) rows [c, w]; None without them.
    """

    def __init__(self, a: Tensor, b: Tensor | None = None, crossed: Tensor | None = None) -> None:
        if b is None:
            a = a - a[:: max(1, len(a) // 100)].median(0).values
        factors = [a] if b is None else [a, b]
        squares = [torch.linalg.vector_norm(factor, dim=1).square_() for factor in factors]
        norms = magnitude = functools.reduce(torch.mul, squares)
        if crossed is not None:
            c, w = crossed.chunk(2, dim=1)
            twice = 2 * (c * w).sum(1)
            norms, magnitude = norms - twice, norms + twice.abs()
        # The rounding error of a sum grows as the root of its length, and was seen to stay below a third of this.
        roundings = 4 + max(factor.shape[1] for factor in factors) ** 0.5
        self.norms = norms - roundings * torch.finfo(a.dtype).eps * magnitude            # (P,) squared
        self.factors = [factor.T.contiguous() for factor in factors]
        self.crossed = None if crossed is None else crossed.T.contiguous()

    def to(self, index: Tensor) -> Tensor:
        """Squared distance of every row to one, at least 0: (1,) -> (P,)."""
        products = [torch.mv(factor.T, factor.index_select(1, index).view(-1)) for factor in self.factors]
        product = functools.reduce(torch.mul, products)
        if self.crossed is not None:
            c_and_w = self.crossed.index_select(1, index).view(-1)
            product -= torch.mv(self.crossed.T, c_and_w.roll(len(c_and_w) // 2))
        return torch.add(self.norms, self.norms.index_select(0, index)).sub_(product, alpha=2).clamp_(min=0)


def moderated(tensor: Tensor) -> Tensor:
    """A tensor, divided by its largest magnitude if products of four values could leave float32, as it has it."""
    if tensor.dtype == torch.float64:
        return tensor
    size = torch.linalg.vector_norm(tensor, math.inf)
    return tensor / torch.where((size == 0) | ((size > 1e-4) & (size < 1e4)), 1, size)


def _in_basis(rows: Tensor) -> Tensor:
    """Coordinates of rows in an orthonormal basis of their span, as columns: (M, e) -> (min(M, e), M)."""
    return torch.linalg.qr(rows.T, mode="r").R


def _norms(queries: Tensor) -> Tensor:
    """Norms of the rows, (M, 1), large enough to divide by."""
    return torch.linalg.vector_norm(queries, dim=1, keepdim=True).clamp(min=_SMALLEST_NORM)


# ------------------------------------------------------------------------------------------------ draws


def seeds(embeddings: Embeddings, free: Tensor, n_select: int, generator: Generator, *, squared: bool = True) -> Tensor:
    """Distinct rows among the `free` (P,) ones by the seeding of k-means++, in the order in which they are drawn.

    The first row is drawn uniformly, every other with probability in proportion to its (squared) distance to the
    nearest row drawn so far; rows that equal a drawn one follow, uniformly, when no others are left.

    Source: CM-ACC, Alg. 3; Arthur and Vassilvitskii 2007.
    """
    free = free.clone()
    uniforms = torch.rand(n_select, dtype=torch.float64, generator=generator, device=free.device)
    drawn = torch.empty(n_select, dtype=torch.int64, device=free.device)
    # Infinitely far at first, and equally so; the rows that may not be drawn are at distance 0 throughout.
    nearest = torch.full_like(embeddings.norms, torch.finfo(embeddings.norms.dtype).max) * free
    for turn, uniform in enumerate(uniforms):
        if turn > 0:
            latest = drawn[turn - 1 : turn]
            nearest = torch.minimum(nearest, embeddings.to(latest)).index_fill_(0, latest, 0)
        row = draw(nearest if squared else nearest.sqrt(), free, uniform)
        drawn[turn : turn + 1] = row
        free.index_fill_(0, row, False)
    return drawn


def draw(weights: Tensor, free: Tensor, uniform: Tensor) -> Tensor:
    """One row with probability in proportion to its weight (P,), or uniform over `free` (P,) if all are 0: -> (1,).

    The weights are rounded down to integers whose sum stays below 2^52; for 38,400 rows the largest becomes 2^36.
    Therefore the running sums are exact, on every device and in any order of summation, and no rounding can land on a
    row of weight 0.
    """
    shares = torch.nan_to_num(weights / weights.amax(), nan=1.0) * free                  # 0 / 0 where all are 0
    levels = 2.0 ** (52 - len(weights).bit_length())
    sums = shares.mul_(levels).to(torch.int64).cumsum(0)
    row = torch.searchsorted(sums, (uniform * sums[-1:]).to(torch.int64), right=True)
    return row.clamp_(max=len(weights) - 1)  # where none is free, any


def uniformly(free: Tensor, n_select: int, generator: Generator) -> Tensor:
    """Distinct rows among the `free` (P,) ones, all alike."""
    order = torch.rand(len(free), dtype=torch.float64, generator=generator, device=free.device)
    return order.masked_fill_(~free, -1).topk(n_select).indices


def _nearest_to_means(points: Tensor, starts: Tensor, free: Tensor) -> Tensor:
    """Of every cluster of k-means over the `free` points that keeps any, the point nearest to its mean.

    (P, d) points and (clusters,) rows of those that are the first means -> (at most clusters,) rows, in their order.
    Of points equally near the earliest row counts: equal ones, and the two of a cluster of two, where rounding would
    decide.
    """
    rows = free.nonzero().squeeze(1)
    members, means = points[rows], points[starts]
    norms = members.square().sum(1, keepdim=True)
    owner = torch.zeros_like(rows)                       # all in the first cluster, as in the published code
    alive = torch.ones_like(starts, dtype=torch.bool)
    for _ in range(_PASSES):
        distances = torch.addmm(norms + means.square().sum(1), members, means.T, alpha=-2)
        before, owner = owner, distances.masked_fill_(~alive, math.inf).argmin(1)
        belongs = one_hot(owner, len(starts)).to(points.dtype)                           # (free, clusters)
        sizes = belongs.sum(0)
        alive = sizes > 0
        if torch.equal(before, owner):
            break
        means = belongs.T @ members / sizes.clamp(min=1).unsqueeze(1)
    own = (members - means[owner]).square().sum(1, keepdim=True)       # the same for equal points, in whatever order
    if len(starts) > 1:  # of a single cluster the mean is still its start
        own = own.masked_fill(sizes[owner].unsqueeze(1) == 2, 0)
    return rows[own.expand(-1, len(starts)).masked_fill(belongs == 0, math.inf).argmin(0)[alive]]


# ------------------------------------------------------------------------------------------------ parts by themselves


@torch.no_grad()
def gradient_factors(
    candidates: Tensor, queries: Tensor, query_inputs: Tensor, *, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The two factors of every candidate's gradient a_n b_n', by `gradients` where the queries are the classes.

    Arguments and errors are those of `select`. Returns a, (P, d), which are the candidates, and b, (P, min(M, e)),
    computed in float64; with a single query the pseudo-label is certain and b is 0.

    Source: CM-ACC, Eqs. 4 and 5.
    """
    _check(True, candidates=candidates, queries=queries, query_inputs=query_inputs)
    check_temperatures(temperature=temperature)
    a, *_ = raised(candidates.detach(), queries, query_inputs)
    _, columns = gradients(candidates.double(), queries.double(), query_inputs.double(), temperature).factors
    b = columns.T.to(a.dtype)
    check_finite({"the factor b of the gradients": b})
    return a, b


@torch.no_grad()
def pairwise_sq_distance(a: Tensor, b: Tensor, index: int) -> Tensor:
    """Squared distance of every outer product a_n b_n' to the one at `index`, without multiplying them out.

        |G_m - G_n|^2 = |a_m|^2 |b_m|^2 + |a_n|^2 |b_n|^2 - 2 (a_m.a_n) (b_m.b_n)

    Of factors a, (P, d), and b, (P, e), with an index from 0 to P - 1. Returns (P,) at least 0, and 0 at the index,
    computed in float64.

    Raises:
        ValueError: if sizes disagree or are 0, or a value is not finite.
        IndexError: if there is no such row.
    """
    _check(True, a=a, b=b)
    index = operator.index(index)
    if not 0 <= index < len(a):
        raise IndexError(f"index={index} should be between 0 and {len(a) - 1}, for {len(a)} rows")
    distances = Embeddings(a.double(), b.double()).to(torch.tensor([index], device=a.device))
    return distances.to(raised(a, b)[0].dtype)


@torch.no_grad()
def kmeans_plusplus(a: Tensor, b: Tensor | None = None, *, n_select: int, generator: Generator) -> Tensor:
    """The `seeds` of k-means++ among points a, (P, d), or outer products a_n b_n' with b, (P, e), not multiplied out.

    Returns (n_select,) int64, 0 to P distinct rows in the order in which they were drawn: for equal states and devices
    of the generator, which is on that of `a`, the same.

    Raises:
        ValueError: if sizes disagree or are 0, a value is not finite, or n_select is negative or above P.
    """
    given = {"a": a} if b is None else {"a": a, "b": b}
    _check(True, **given)
    _check_count(n_select, rows=len(a), admissible=len(a))
    with torch.autocast(a.device.type, enabled=False):
        factors = map(moderated, raised(*given.values()))
        free = torch.ones(len(a), dtype=torch.bool, device=a.device)
        return seeds(Embeddings(*factors), free, n_select, generator)


def _check(values: bool, /, **tensors: Tensor) -> None:
    """Raise unless the shapes of the tensors agree and, if their values are checked too, all are finite."""
    check_shapes(**{name: (tensor, _AXES[name]) for name, tensor in tensors.items()})
    if values:
        check_finite(tensors)


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Raise NonFinite with the name of the first tensor that has a value which is not finite; the host waits once."""
    finite = torch.stack([torch.stack(torch.aminmax(tensor)).isfinite().all() for tensor in tensors.values()])
    for (name, tensor), sound in zip(tensors.items(), finite.tolist(), strict=True):
        if not sound:
            raise NonFinite(
                f"{name} has values that are not finite; look for an encoder that diverged, or for features too large "
                f"for {str(tensor.dtype).removeprefix('torch.')}"
            )


def _check_count(n_select: int, *, rows: int, admissible: int) -> None:
    """Raise TypeError or ValueError unless n_select rows can be chosen."""
    if isinstance(n_select, bool) or not isinstance(n_select, Integral):
        raise TypeError(f"n_select={n_select!r} should be a whole number")
    if not 0 <= n_select <= admissible:
        raise ValueError(
            f"n_select={n_select} should be between 0 and {admissible}, as many of the {rows} candidates as are "
            "admissible; select fewer, or enlarge the pool"
        )


def _check_norms(queries: Tensor) -> None:
    """Raise ValueError unless every query is long enough to be normalised, and its norm finite."""
    norms = torch.linalg.vector_norm(queries, dim=1)
    check_finite({"the norm of queries": norms})
    smallest, row = (value.tolist() for value in norms.min(0))
    if smallest < _SMALLEST_NORM:
        raise ValueError(
            f"row {row} of queries has norm {smallest}, which should be at least {_SMALLEST_NORM} to be "
            "normalised; look for an encoder that has collapsed, or set normalised=False"
        )
