"""The choice of negatives in CM-ACC's published code: k-means over gradients of the candidates' features."""

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from repro.contrast.embeddings import Embeddings
from repro.contrast.magnitudes import moderated
from repro.contrast.seeding import seeds, uniformly

_PASSES = 1000  # of k-means, more than it needs; rounding might let it run in circles


def released(
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
    (gradients, _), = moderated({"the gradient of the candidates": gradients})
    points = Embeddings(gradients)
    starts = seeds(points, free, n_select, generator, squared=False)
    chosen = _nearest_to_means(points.factors[0].T, starts, free)
    rest = free.index_fill(0, chosen, False)
    return torch.cat([chosen, uniformly(rest, n_select - len(chosen), generator)])


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
