"""Which candidates of a pool become the next negatives.

Active selection wants negatives that are both hard and diverse. It embeds a candidate as the gradient that its
cross-entropy with a pseudo-label would send into the last layer of the query encoder, and draws candidates by the
seeding of k-means++, far from those already drawn. Such a gradient is an outer product. Its two factors are kept and
multiplied out nowhere, so that memory and time grow as the pool times d, not times d squared.

What is checked is checked on entry, which waits for the device. The rounds of the seeding do not wait for it. All is
computed in float32, or in float64 if an argument has it, also where autocast is on, and without gradient.

The rule of MoCo selects nothing: the keys of the batch enter the `Dictionary`, as "fifo" says.
"""

import functools
import math
import operator

import torch
from torch import Tensor
from torch.nn.functional import one_hot

STRATEGIES = ("fifo", "random", "ohem", "gradient", "feature", "released")

_SMALLEST_NORM = 1e-12  # below it `torch.nn.functional.normalize` does not divide by the norm
_PASSES = 1000          # of k-means in "released", more than it needs; rounding might let it run in circles

_ADVICE = {
    "P": "give one row, or one flag, per candidate of a pool that is not empty",
    "M": "give one row per sample of a batch that is not empty, to queries and query_inputs alike",
    "d": "candidates and queries should come from heads of one output size",
    "e": "give factors with at least one column",
}


class NonFinite(ValueError):
    """A value is NaN or infinite, or too large to compute with: an encoder diverged."""


def gradient_factors(
    candidates: Tensor, queries: Tensor, query_inputs: Tensor, *, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Gradients of the last layer for every candidate, each as the two factors of an outer product.

    The queries of a batch act as classes: p_nj = softmax_j(k_n.q_j / t). With the candidate k_n constant and its most
    probable class y_n as pseudo-label, the cross-entropy -log p_ny of q_j = W h_j + bias has the gradients

        dL_n/dW = k_n u_n',  u_n = sum_j r_nj h_j,  r_n = (p_n - onehot(y_n)) / t,   dL_n/dbias = 0

    u_n lies in the span of the query inputs, and b_n are its coordinates in an orthonormal basis of it. Then
    <G_m, G_n> = (a_m.a_n) (b_m.b_n) for any two gradients.

    Args:
        candidates: (P, d) keys k_n.
        queries: (M, d) outputs q_j of the last layer, not normalised.
        query_inputs: (M, e) inputs h_j of the last layer.
        temperature: t > 0, in units of the dot product (CM-ACC 1: its Eq. 4 has none).

    Returns:
        a: (P, d), the candidates. b: (P, min(M, e)). With a single query the pseudo-label is certain and b is 0.

    Raises:
        ValueError: if sizes disagree or are 0, a value is not finite, or t is not positive and finite.

    Source: CM-ACC, Eq. 4 and 5.
    """
    _check_shapes(candidates=(candidates, "P d"), queries=(queries, "M d"), query_inputs=(query_inputs, "M e"))
    _check_temperature(temperature)
    with torch.no_grad(), torch.autocast(candidates.device.type, enabled=False):
        candidates, queries, query_inputs = _finite(candidates=candidates, queries=queries, query_inputs=query_inputs)
        b = _second_factor(candidates, queries, query_inputs, temperature)
        _largest("the factor b of the gradients", b)
        return candidates.detach(), b


def pairwise_sq_distance(a: Tensor, b: Tensor, index: int) -> Tensor:
    """Squared distance of every outer product a_n b_n' to the one at `index`, without multiplying them out.

        |G_m - G_n|^2 = |a_m|^2 |b_m|^2 + |a_n|^2 |b_n|^2 - 2 (a_m.a_n) (b_m.b_n)

    Args:
        a: (P, d) and b: (P, e) factors, as of `gradient_factors`.
        index: 0 to P - 1; a tensor of one integer is read, which waits for the device.

    Returns:
        (P,) at least 0, and 0 at `index`. The error is a few roundings of the squared norms.

    Raises:
        ValueError: if sizes disagree or are 0, or a value is not finite.
        IndexError: if there is no such row.
    """
    _check_shapes(a=(a, "P d"), b=(b, "P e"))
    index = operator.index(index)
    if not 0 <= index < len(a):
        raise IndexError(f"index={index} should be between 0 and {len(a) - 1}, for {len(a)} rows")
    with torch.no_grad(), torch.autocast(a.device.type, enabled=False):
        (a, scale_a), (b, scale_b) = (_moderate(name, each) for name, each in zip("ab", _raised(a, b), strict=True))
        distances = _Embeddings(a, b, lowered=False).to(torch.tensor([index], device=a.device))
        distances[index] = 0
        scale = min(scale_a * scale_b, torch.finfo(a.dtype).max)
        return distances * scale * scale


def kmeans_plusplus(a: Tensor, b: Tensor | None = None, *, n_select: int, generator: torch.Generator) -> Tensor:
    """Seeding of k-means++ over points, or over outer products a_n b_n' that are never multiplied out.

    The first row is drawn uniformly, every other with probability in proportion to its squared distance to the nearest
    row drawn so far. Drawn rows are at distance 0, so that none is drawn twice; rows that equal a drawn one follow only
    when all are at distance 0: then the draw is uniform over those not drawn. Rows count as equal where their squared
    distance is within the rounding error of their squared norms: for d = 512, 3e-6 of the sum of both in float32 and
    6e-15 in float64. (The norms of points are those about a median.)

    Args:
        a: (P, d) points, or first factors.
        b: (P, e) second factors; None for plain points.
        n_select: 0 to P rows to draw.
        generator: on the device of `a`; for equal states and devices the rows are the same.

    Returns:
        (n_select,) int64, distinct, in the order in which they were drawn.

    Raises:
        ValueError: if sizes disagree or are 0, a value is not finite, or n_select is negative or above P.

    Source: Arthur and Vassilvitskii 2007; CM-ACC, Alg. 3.
    """
    _check_shapes(a=(a, "P d"), **({} if b is None else {"b": (b, "P e")}))
    _check_count(n_select, rows=len(a), admissible=len(a))
    with torch.no_grad(), torch.autocast(a.device.type, enabled=False):
        factors = zip("ab", _raised(*([a] if b is None else [a, b])), strict=False)
        embeddings = _Embeddings(*(_moderate(name, factor)[0] for name, factor in factors))
        return _seeds(embeddings, torch.ones(len(a), dtype=torch.bool, device=a.device), n_select, generator)


@torch.no_grad()
def select(
    strategy: str,
    candidates: Tensor,
    queries: Tensor,
    query_inputs: Tensor,
    *,
    n_select: int,
    excluded: Tensor | None,
    generator: torch.Generator,
    temperature: float = 1.0,
    normalised: bool = False,
) -> Tensor:
    """Choose the candidates that enter the dictionary.

    - "fifo": the first, in the order given: MoCo's rule, where the candidates are the keys of the batch.
    - "random": uniform, without replacement.
    - "ohem": the largest losses -log p_ny of `gradient_factors`, in descending order; of equal ones the earlier.
    - "gradient", or "active" as the paper calls its method: `kmeans_plusplus` over the gradients of `gradient_factors`.
    - "feature": `kmeans_plusplus` over the candidates.
    - "released": what the published code does instead. The candidates are first the batch's own features, row i the
      positive of query i, then the pool. A candidate is embedded as the gradient of the queries' mean cross-entropy
      over all candidates with respect to the candidate: (p - onehot)' q / (M t). The seeds are drawn in proportion to
      the distance, not its square, then k-means runs until nothing changes, and the point of every cluster nearest to
      its mean is chosen. A cluster that loses all points is gone, so that the published code returns fewer; here
      uniform draws over the rest make up the number. It waits for the device.

    Degenerate pools follow from these rules: from candidates that are all equal "gradient" and "feature" draw
    uniformly, and so does "gradient" with a single query, for all gradients are 0.

    Args:
        strategy: one of `STRATEGIES`, or "active".
        candidates: (P, d) keys, used as given. Normalise them first if the objective does.
        queries: (M, d) outputs q_j = W h_j + bias of the last layer, before any normalisation.
        query_inputs: (M, e) inputs h_j of the last layer.
        n_select: number to choose, at least 0.
        excluded: (P,) bool, True for candidates never to be chosen, as those in the dictionary; None for no such.
        generator: on the device of the candidates; for equal states and devices the choice is the same.
        temperature: t > 0 of the pseudo-labels, in units of the dot product (CM-ACC 1).
        normalised: whether the classes are the queries divided by their norms. The gradient then goes through the
            division: it is no outer product any more and the bias has one too; all distances are still exact. "fifo",
            "random" and "feature" do not look at the queries.

    Returns:
        (n_select,) int64 distinct rows of the candidates, on their device.

    Raises:
        NonFinite: a ValueError, if a value is not finite.
        ValueError: if the strategy is unknown, sizes disagree or are 0, fewer than n_select candidates are admissible,
            a query that should be normalised has norm 0, t is not positive and finite, or "released" has fewer
            candidates than queries.
        TypeError: if `excluded` is not bool.

    Source: CM-ACC, Alg. 2 and 3, Tables 2 and 3; "released" from the released code.
    """
    _check_strategy(strategy)
    _check_shapes(candidates=(candidates, "P d"), queries=(queries, "M d"), query_inputs=(query_inputs, "M e"))
    _check_temperature(temperature)
    free = _admissible(candidates, excluded)
    _check_count(n_select, rows=len(free), admissible=int(free.sum()))
    candidates, queries, query_inputs = _finite(candidates=candidates, queries=queries, query_inputs=query_inputs)
    if strategy == "fifo":
        return (~free).byte().argsort(stable=True)[:n_select]
    if strategy == "random":
        return _uniform(free, n_select, generator)
    with torch.autocast(candidates.device.type, enabled=False):
        if strategy == "feature":
            return _seeds(_Embeddings(_moderate("candidates", candidates)[0]), free, n_select, generator)
        if strategy in ("gradient", "active"):
            embed = _normalised_gradients if normalised else _gradients
            return _seeds(embed(candidates, queries, query_inputs, temperature), free, n_select, generator)
        classes = queries / _norms(queries) if normalised else queries
        if strategy == "ohem":
            return _least_confident(candidates, classes / temperature, free, n_select)
        return _released(candidates, classes, temperature, free, n_select, generator)


class _Embeddings:
    """Rows G_n that are known by their inner products alone, as far as k-means++ needs them.

        <G_m, G_n> = (a_m.a_n) (b_m.b_n) - c_m.w_n - w_m.c_n

    The factors are kept as columns, (d, P): a product of all rows with one then takes half the time on a CPU.

    Args:
        a: (P, d) points or first factors, of moderate size.
        b: (P, e) second factors; None for points. Against cancellation these are then moved by the median of about a
            hundred: the mean would follow a single huge one and take the digits of all others.
        crossed: (P, 2 M) rows [c, w]; None without them.
        lowered: whether squared distances are lowered by what rounding may add, so that equal rows are at distance 0.
    """

    def __init__(
        self, a: Tensor, b: Tensor | None = None, crossed: Tensor | None = None, *, lowered: bool = True
    ) -> None:
        if b is None:
            a = a - a[:: max(1, len(a) // 100)].median(0).values
        factors = [a] if b is None else [a, b]
        norms = functools.reduce(torch.mul, [torch.linalg.vector_norm(each, dim=1).square_() for each in factors])
        magnitude = norms
        if crossed is not None:
            c, w = crossed.chunk(2, dim=1)
            twice = 2 * (c * w).sum(1)
            norms, magnitude = norms - twice, norms + twice.abs()
        # The rounding error of a sum grows as the root of its length, and was seen to stay below a third of this.
        roundings = 4 + max(each.shape[1] for each in factors) ** 0.5 if lowered else 0.0
        self.norms = norms - roundings * torch.finfo(a.dtype).eps * magnitude            # (P,) squared
        self.factors = [each.T.contiguous() for each in factors]
        self.crossed = None if crossed is None else crossed.T.contiguous()

    def to(self, index: Tensor) -> Tensor:
        """Squared distance of every row to one, at least 0: (1,) -> (P,)."""
        products = [torch.mv(each.T, each.index_select(1, index).view(-1)) for each in self.factors]
        product = functools.reduce(torch.mul, products)
        if self.crossed is not None:
            c_and_w = self.crossed.index_select(1, index).view(-1)
            product -= torch.mv(self.crossed.T, c_and_w.roll(len(c_and_w) // 2))
        return torch.add(self.norms, self.norms.index_select(0, index)).sub_(product, alpha=2).clamp_(min=0)


def _gradients(candidates: Tensor, queries: Tensor, query_inputs: Tensor, temperature: float) -> _Embeddings:
    """Gradients of the last layer whose outputs are the classes."""
    b = _second_factor(candidates, queries, query_inputs, temperature)
    return _Embeddings(_moderate("candidates", candidates)[0], _moderate("the factor b of the gradients", b)[0])


def _normalised_gradients(candidates: Tensor, queries: Tensor, query_inputs: Tensor, temperature: float) -> _Embeddings:
    """Gradients of weight and bias of the last layer whose outputs z_j become the classes q_j = z_j / |z_j|.

        G_n = sum_j g_nj (k_n - (k_n.q_j) q_j) [h_j; 1]',  g_nj = r_nj / |z_j|

    With a_n = k_n, b_n the coordinates of sum_j g_nj [h_j; 1], c_nj = g_nj (k_n.q_j) and K the elementwise product of
    the Gram matrices of q and [h; 1], inner products have the form that `_Embeddings` takes. A common factor of all
    rows is left out: it changes no choice.
    """
    norms = _norms(queries)                                                              # (M, 1)
    classes = queries / norms
    residuals, _ = _pseudo_labelled(candidates @ (classes / temperature).T)
    weights, _ = _moderate("the posterior's residual", residuals.div_(norms.T))          # (P, M) g
    keys, _ = _moderate("candidates", candidates)
    inputs = torch.cat([query_inputs, torch.ones_like(query_inputs[:, :1])], dim=1)
    inputs, _ = _moderate("query_inputs", inputs)                                        # (M, e + 1)

    basis = _in_basis(inputs)
    b = weights @ basis.T
    similarities = keys @ classes.T                                                      # (P, M)
    c = weights.mul_(similarities)
    gram = (classes @ classes.T) * (inputs @ inputs.T)                                   # (M, M) K
    w = similarities.mul_(b @ basis).addmm_(c, gram, alpha=-0.5)
    return _Embeddings(keys, b, torch.cat([c, w], dim=1))


def _seeds(
    embeddings: _Embeddings, free: Tensor, n_select: int, generator: torch.Generator, *, squared: bool = True
) -> Tensor:
    """Distinct rows among the `free` (P,) ones, drawn by their (squared) distance to the nearest drawn before."""
    free = free.clone()
    uniforms = torch.rand(n_select, dtype=torch.float64, generator=generator, device=free.device)
    chosen = torch.empty(n_select, dtype=torch.int64, device=free.device)
    # Infinitely far at first, and equally so; the rows that may not be drawn are at distance 0 throughout.
    nearest = torch.full_like(embeddings.norms, torch.finfo(embeddings.norms.dtype).max) * free
    for turn, uniform in enumerate(uniforms):
        if turn > 0:
            latest = chosen[turn - 1 : turn]
            nearest = torch.minimum(nearest, embeddings.to(latest)).index_fill_(0, latest, 0)
        index = _drawn(nearest if squared else nearest.sqrt(), free, uniform)
        chosen[turn : turn + 1] = index
        free.index_fill_(0, index, False)
    return chosen


def _drawn(weights: Tensor, free: Tensor, uniform: Tensor) -> Tensor:
    """One row with probability in proportion to its weight, or uniform over `free` if all weights are 0: -> (1,).

    The weights are rounded down to integers whose sum stays below 2^52; for 38,400 rows the largest becomes 2^36.
    Therefore the running sums are exact, on every device and in any order of summation, and no rounding can land on a
    row of weight 0.
    """
    shares = torch.nan_to_num(weights / weights.amax(), nan=1.0) * free                  # 0 / 0 where all are 0
    levels = 2.0 ** (52 - len(weights).bit_length())
    sums = shares.mul_(levels).to(torch.int64).cumsum(0)
    return torch.searchsorted(sums, (uniform * sums[-1:]).to(torch.int64), right=True)


def _uniform(free: Tensor, n_select: int, generator: torch.Generator) -> Tensor:
    """Distinct rows among the `free` (P,) ones, all alike."""
    order = torch.rand(len(free), dtype=torch.float64, generator=generator, device=free.device)
    return order.masked_fill_(~free, -1).topk(n_select).indices


def _least_confident(candidates: Tensor, classes: Tensor, free: Tensor, n_select: int) -> Tensor:
    """The `free` rows with the largest loss of their pseudo-label, the largest first."""
    _, losses = _pseudo_labelled(candidates @ classes.T)
    _largest("the loss of candidates and queries", losses)
    return losses.masked_fill_(~free, -math.inf).argsort(descending=True, stable=True)[:n_select]


def _released(
    candidates: Tensor, classes: Tensor, temperature: float, free: Tensor, n_select: int, generator: torch.Generator
) -> Tensor:
    """The choice of the published code, filled up with uniform draws; see `select`."""
    if len(candidates) < len(classes):
        raise ValueError(
            f"released takes the batch's features first among the candidates, one for each of the {len(classes)} "
            f"queries, but there are {len(candidates)} candidates; put the batch's features in front of the pool"
        )
    share = torch.softmax((classes / temperature) @ candidates.T, dim=1)                 # (M, P)
    share.diagonal().sub_(1)
    gradients = share.T @ (classes / (len(classes) * temperature))                       # (P, d)
    points = _Embeddings(_moderate("the gradient of the candidates", gradients)[0])
    starts = _seeds(points, free, n_select, generator, squared=False)
    chosen = _nearest_to_means(points.factors[0].T, starts, free)
    rest = free.index_fill(0, chosen, False)
    return torch.cat([chosen, _uniform(rest, n_select - len(chosen), generator)])


def _nearest_to_means(points: Tensor, starts: Tensor, free: Tensor) -> Tensor:
    """Of every cluster of k-means over the `free` points that keeps any, the point nearest to its mean.

    Args:
        points: (P, d).
        starts: (clusters,) rows of the points that are the first means.
        free: (P,) bool.

    Returns:
        (at most clusters,) rows, in the order of the clusters.
    """
    if len(starts) == 0:
        return starts
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
    return rows[distances.masked_fill_(belongs == 0, math.inf).argmin(0)[alive]]


def _pseudo_labelled(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Posterior less the one-hot pseudo-label, (P, M), and the loss of the label, (P,); overwrites the logits.

    Both are made of the other classes' sum, so that they are exact also where the label's probability rounds to 1.
    """
    top, label = logits.max(1, keepdim=True)
    others = logits.sub_(top).exp_().scatter_(1, label, 0)
    total = others.sum(1, keepdim=True)
    residuals = others.div_(1 + total).scatter_(1, label, -total / (1 + total))
    return residuals, total.log1p().squeeze(1)


def _second_factor(candidates: Tensor, queries: Tensor, query_inputs: Tensor, temperature: float) -> Tensor:
    """b of `gradient_factors`, in memory column by column."""
    residuals, _ = _pseudo_labelled(candidates @ (queries / temperature).T)
    return ((_in_basis(query_inputs) / temperature) @ residuals.T).T


def _in_basis(rows: Tensor) -> Tensor:
    """Coordinates of rows in an orthonormal basis of their span, as columns: (M, e) -> (min(M, e), M)."""
    return torch.linalg.qr(rows.T, mode="r").R


def _norms(queries: Tensor) -> Tensor:
    """Norms of the rows, (M, 1); raises ValueError where they are too small to divide by."""
    norms = torch.linalg.vector_norm(queries, dim=1, keepdim=True)
    _largest("the norm of queries", norms)
    smallest, row = norms.squeeze(1).min(0)
    if not smallest.item() >= _SMALLEST_NORM:
        raise ValueError(
            f"row {row.item()} of queries has norm {smallest.item()}, which should be at least {_SMALLEST_NORM} to be "
            "normalised; look for an encoder that has collapsed, or set normalised=False"
        )
    return norms


def _moderate(name: str, tensor: Tensor) -> tuple[Tensor, float]:
    """The tensor, divided by a scale if products of four values could leave the range of float32, and that scale."""
    largest = _largest(name, tensor)
    if largest == 0 or 1e-4 < largest < 1e4:
        return tensor, 1.0
    return tensor / largest, largest


def _largest(name: str, tensor: Tensor) -> float:
    """Largest magnitude of a tensor; raises NonFinite if a value is not finite."""
    low, high = torch.aminmax(tensor)
    largest = torch.maximum(-low, high).item()
    if not math.isfinite(largest):
        raise NonFinite(
            f"{name} has values that are not finite; look for an encoder that diverged, or for features too large for "
            f"{str(tensor.dtype).removeprefix('torch.')}"
        )
    return largest


def _finite(**tensors: Tensor) -> list[Tensor]:
    """The tensors in one precision, at least float32; raises ValueError naming one with a value that is not finite."""
    for name, tensor in tensors.items():
        _largest(name, tensor)
    return _raised(*tensors.values())


def _raised(*tensors: Tensor) -> list[Tensor]:
    """The tensors in one precision: float32, or float64 if one of them has it."""
    precision = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
    return [tensor.to(precision) for tensor in tensors]


def _admissible(candidates: Tensor, excluded: Tensor | None) -> Tensor:
    """Which candidates may be chosen: (P,) bool."""
    if excluded is None:
        return torch.ones(len(candidates), dtype=torch.bool, device=candidates.device)
    if excluded.dtype != torch.bool:
        raise TypeError(f"excluded has dtype {excluded.dtype}; it should be bool, a flag for every candidate")
    _check_shapes(candidates=(candidates, "P d"), excluded=(excluded, "P"))
    return ~excluded


def _check_strategy(strategy: str) -> None:
    """Raise ValueError unless there is such a strategy."""
    if strategy not in (*STRATEGIES, "active"):
        raise ValueError(f"strategy={strategy!r} should be one of {', '.join(STRATEGIES)}")


def _check_count(n_select: int, *, rows: int, admissible: int) -> None:
    """Raise ValueError unless n_select rows can be chosen."""
    if not 0 <= n_select <= admissible:
        raise ValueError(
            f"n_select={n_select} should be between 0 and {admissible}, as many of the {rows} candidates as are "
            "admissible; select fewer, or enlarge the pool"
        )


def _check_temperature(temperature: float) -> None:
    """Raise ValueError unless the temperature is positive and finite."""
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature={temperature} should be positive and finite (CM-ACC uses 1)")


def _check_shapes(**tensors: tuple[Tensor, str]) -> None:
    """Raise ValueError unless `name=(tensor, "P d")` has these axes, of one size per letter, all at least 1."""
    known: dict[str, tuple[int, str]] = {}
    for name, (tensor, axes) in tensors.items():
        shape, letters = tuple(tensor.shape), axes.split()
        if len(shape) != len(letters) or 0 in shape:
            raise ValueError(f"{name} has shape {shape}; it should be ({', '.join(letters)}), all sizes at least 1")
        for letter, size in zip(letters, shape, strict=True):
            expected, first = known.setdefault(letter, (size, name))
            if size != expected:
                raise ValueError(f"{letter}={size} in {name} but {letter}={expected} in {first}; {_ADVICE[letter]}")
