"""Drawing distinct rows: far from those drawn before or all alike, without waiting for the device, or by clusters."""

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from repro.contrast.embeddings import Embeddings

_PASSES = 1000  # of k-means, more than it needs; rounding might let it run in circles


def seeds(
    embeddings: Embeddings, free: Tensor, n_select: int, generator: torch.Generator, *, squared: bool = True
) -> Tensor:
    """Distinct rows among the `free` (P,) ones, drawn by their (squared) distance to the nearest drawn before."""
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


def uniformly(free: Tensor, n_select: int, generator: torch.Generator) -> Tensor:
    """Distinct rows among the `free` (P,) ones, all alike."""
    order = torch.rand(len(free), dtype=torch.float64, generator=generator, device=free.device)
    return order.masked_fill_(~free, -1).topk(n_select).indices


def nearest_to_means(points: Tensor, starts: Tensor, free: Tensor) -> Tensor:
    """Of every cluster of k-means over the `free` points that keeps any, the point nearest to its mean.

    (P, d) points and (clusters,) rows of those that are the first means -> (at most clusters,) rows, in their order.
    Of points equally near the earliest row counts: equal ones, and the two of a cluster of two, where rounding would
    decide.
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
    own = (members - means[owner]).square().sum(1, keepdim=True)       # the same for equal points, in whatever order
    if len(starts) > 1:  # of a single cluster the mean is still its start
        own = own.masked_fill(sizes[owner].unsqueeze(1) == 2, 0)
    return rows[own.expand(-1, len(starts)).masked_fill(belongs == 0, math.inf).argmin(0)[alive]]
