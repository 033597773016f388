"""Which candidates of a pool become the next negatives.

Active selection wants negatives that are both hard and diverse. It embeds a candidate as the gradient that its
cross-entropy with a pseudo-label would send into the last layer of the query encoder, and draws candidates by the
seeding of k-means++, far from those already drawn. Such a gradient is an outer product, whose factors are multiplied
out nowhere: memory and time grow as the pool times d, not times d squared.

Checking on entry waits for the device, the rounds of the seeding do not. All is computed in float32, or in float64 if
an argument has it, also where autocast is on, and without gradient.
"""

import operator
from numbers import Integral

import torch
from torch import Tensor

from repro.contrast.arguments import check_shapes, check_temperatures, magnitudes, moderated, raised
from repro.contrast.embeddings import Embeddings, gradients, normalised_gradients, second_factor
from repro.contrast.samplers import SAMPLERS, Pool
from repro.contrast.seeding import seeds

_ADVICE = {
    "P": "give one row, or one flag, per candidate of a pool that is not empty",
    "M": "give one row per sample of a batch that is not empty, to queries and query_inputs alike",
    "d": "candidates and queries should come from heads of one output size",
    "e": "give factors with at least one column",
}


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
    given = _checked(candidates, queries, query_inputs, temperature)
    with torch.no_grad(), torch.autocast(candidates.device.type, enabled=False):
        magnitudes(given)
        candidates, queries, query_inputs = raised(*given.values())
        b = second_factor(candidates, queries, query_inputs, temperature)
        magnitudes({"the factor b of the gradients": b})
        return candidates.detach(), b


def gradient_norms(
    candidates: Tensor, queries: Tensor, query_inputs: Tensor, *, temperature: float = 1.0, normalised: bool = False
) -> Tensor:
    """Norms of the gradients that `select`, whose arguments these are, compares: of weight and bias of the last layer.

        |dL_n|^2 = sum_jl r_nj r_nl (k_n - s_nj q_j).(k_n - s_nl q_l) (h_j.h_l + 1),   s_nj = k_n.q_j

    for classes q_j = z_j / |z_j|, z_j = W h_j + bias, with residuals r_nj divided by |z_j|. If the outputs z_j are the
    classes themselves, s_nj = 0.

    Returns:
        (P,), of the candidates' precision. Computed in float64, for the sum cancels: 0 may come out as 1e-6.

    Raises:
        ValueError: as `gradient_factors`, and if a query that should be normalised has norm 0.

    Source: CM-ACC, Fig. 5.
    """
    given = _checked(candidates, queries, query_inputs, temperature)
    with torch.no_grad(), torch.autocast(candidates.device.type, enabled=False):
        magnitudes(given)
        keys, outputs, inputs = (tensor.double() for tensor in given.values())
        embed, factor = (normalised_gradients, 1 / temperature) if normalised else (gradients, 1.0)
        squared = embed(keys, keys, outputs, inputs, temperature).norms
        return squared.clamp_(min=0).sqrt_().mul_(factor).to(candidates.dtype)


def pairwise_sq_distance(a: Tensor, b: Tensor, index: int) -> Tensor:
    """Squared distance of every outer product a_n b_n' to the one at `index`, without multiplying them out.

        |G_m - G_n|^2 = |a_m|^2 |b_m|^2 + |a_n|^2 |b_n|^2 - 2 (a_m.a_n) (b_m.b_n)

    Args:
        a: (P, d) and b: (P, e) factors, as of `gradient_factors`.
        index: 0 to P - 1; a tensor of one integer is read, which waits for the device.

    Returns:
        (P,) at least 0, and 0 at `index`. Computed in float64; the error is a few roundings of the squared norms.

    Raises:
        ValueError: if sizes disagree or are 0, or a value is not finite.
        IndexError: if there is no such row.
    """
    check_shapes(_ADVICE, a=(a, "P d"), b=(b, "P e"))
    index = operator.index(index)
    if not 0 <= index < len(a):
        raise IndexError(f"index={index} should be between 0 and {len(a) - 1}, for {len(a)} rows")
    with torch.no_grad(), torch.autocast(a.device.type, enabled=False):
        magnitudes({"a": a, "b": b})
        distances = Embeddings(a.double(), b.double()).to(torch.tensor([index], device=a.device))
        return distances.to(raised(a, b)[0].dtype)


def kmeans_plusplus(a: Tensor, b: Tensor | None = None, *, n_select: int, generator: torch.Generator) -> Tensor:
    """Seeding of k-means++ over points, or over outer products a_n b_n' that are never multiplied out.

    The first row is drawn uniformly, every other with probability in proportion to its squared distance to the nearest
    row drawn so far. None is drawn twice; rows that equal a drawn one follow, uniformly, when no others are left. Equal
    means within the rounding error of the squared norms: for d = 512, 3e-6 of the sum of both in float32 and 6e-15 in
    float64. (The norms of points are those about a median.)

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
    check_shapes(_ADVICE, a=(a, "P d"), **({} if b is None else {"b": (b, "P e")}))
    _check_count(n_select, rows=len(a), admissible=len(a))
    with torch.no_grad(), torch.autocast(a.device.type, enabled=False):
        factors = raised(*([a] if b is None else [a, b]))
        embeddings = Embeddings(*moderated(dict(zip("ab", factors, strict=False))))
        return seeds(embeddings, torch.ones(len(a), dtype=torch.bool, device=a.device), n_select, generator)


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
    checked: bool = True,
) -> Tensor:
    """Choose the candidates that enter the dictionary.

    Args:
        strategy: one of `repro.contrast.samplers.SAMPLERS`, or "active", as the paper calls "gradient".
        candidates: (P, d) keys, used as given. Normalise them first if the objective does.
        queries: (M, d) outputs q_j = W h_j + bias of the last layer, before any normalisation.
        query_inputs: (M, e) inputs h_j of the last layer.
        n_select: number to choose, at least 0; for 0 neither the queries' norms nor what a strategy needs is checked.
        excluded: (P,) bool, True for candidates never to be chosen, as those in the dictionary; None for no such. They
            take neither time nor memory, but with strategies of the whole pool.
        generator: on the device of the candidates; for equal states and devices the choice is the same.
        temperature: t > 0 of the pseudo-labels, in units of the dot product (CM-ACC 1).
        normalised: whether the classes are the queries divided by their norms. The gradient then goes through the
            division: it is no outer product any more and the bias has one too; all distances are still exact.
        checked: whether values are looked at, for which the host waits for the device. Otherwise all is left to the
            device, as a recording needs: of values that are not finite, or of fewer admissible candidates than
            n_select, any rows are chosen, excluded ones cost as much as others, and strategies that wait are refused.

    Returns:
        (n_select,) int64 distinct rows of the candidates, on their device.

    Raises:
        ValueError: if the strategy is unknown, sizes disagree or are 0, a value is not finite (`NonFinite`), fewer than
            n_select candidates are admissible, a query that should be normalised has norm 0, t is not positive and
            finite, or "released" has fewer candidates than queries.
        TypeError: if an argument is of another kind.

    Source: CM-ACC, Alg. 2 and 3, Tables 2 and 3; "released" from the released code.
    """
    sampler = SAMPLERS.get("gradient" if strategy == "active" else strategy)
    if sampler is None:
        raise ValueError(f"strategy={strategy!r} should be one of {', '.join(SAMPLERS)}")
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator={generator!r} should be a torch.Generator on the device of the candidates")
    given = _checked(candidates, queries, query_inputs, temperature)
    if excluded is None:
        excluded = torch.zeros(len(candidates), dtype=torch.bool, device=candidates.device)
    check_shapes(_ADVICE, candidates=(candidates, "P d"), excluded=(excluded, "P"))
    if excluded.dtype != torch.bool:
        raise TypeError(f"excluded has dtype {excluded.dtype}; it should be bool, a flag for every candidate")
    if sampler.waits and not checked:
        raise ValueError(f"strategy={strategy!r} waits for the device, as it looks at values; leave out checked=False")
    free, rows = ~excluded, None
    if checked:
        *_, admissible = magnitudes(given, free.sum())
        _check_count(n_select, rows=len(free), admissible=int(admissible))
    if n_select == 0:
        return torch.empty(0, dtype=torch.int64, device=free.device)
    candidates, queries, query_inputs = raised(*given.values())
    with torch.autocast(candidates.device.type, enabled=False):
        if checked and not sampler.whole and admissible < len(free):  # the others would cost as much: most of a pool
            rows = excluded.byte().argsort(stable=True)[: int(admissible)]  # as nonzero, which would wait once more
            candidates, free = candidates[rows], free[rows]
        keys, = moderated({"candidates": candidates}, checked=checked)
        settings = (n_select, generator, temperature, normalised, checked)
        chosen = sampler.choose(Pool(candidates, keys, queries, query_inputs, free, *settings))
    return chosen if rows is None else rows[chosen]


def _checked(candidates: Tensor, queries: Tensor, query_inputs: Tensor, temperature: float) -> dict[str, Tensor]:
    """The tensors by name; raises unless their shapes agree and the temperature is one."""
    check_shapes(_ADVICE, candidates=(candidates, "P d"), queries=(queries, "M d"), query_inputs=(query_inputs, "M e"))
    check_temperatures(temperature=temperature)
    return {"candidates": candidates, "queries": queries, "query_inputs": query_inputs}


def _check_count(n_select: int, *, rows: int, admissible: int) -> None:
    """Raise TypeError or ValueError unless n_select rows can be chosen."""
    if isinstance(n_select, bool) or not isinstance(n_select, Integral):
        raise TypeError(f"n_select={n_select!r} should be a whole number")
    if not 0 <= n_select <= admissible:
        raise ValueError(
            f"n_select={n_select} should be between 0 and {admissible}, as many of the {rows} candidates as are "
            "admissible; select fewer, or enlarge the pool"
        )
