"""Drawing distinct rows, far from those drawn before or all alike, without waiting for the device."""

import torch
from torch import Tensor

from repro.contrast.embeddings import Embeddings


def seeds(
    embeddings: Embeddings, free: Tensor, n_select: int, generator: torch.Generator, *, squared: bool = True
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
        index = drawn(nearest if squared else nearest.sqrt(), free, uniform)
        chosen[turn : turn + 1] = index
        free.index_fill_(0, index, False)
    return chosen


def drawn(weights: Tensor, free: Tensor, uniform: Tensor) -> Tensor:
    """One row with probability in proportion to its weight, or uniform over `free` if all weights are 0: -> (1,).

    The weights are rounded down to integers whose sum stays below 2^52; for 38,400 rows the largest becomes 2^36.
    Therefore the running sums are exact, on every device and in any order of summation, and no rounding can land on a
    row of weight 0.
    """
    shares = torch.nan_to_num(weights / weights.amax(), nan=1.0) * free                  # 0 / 0 where all are 0
    levels = 2.0 ** (52 - len(weights).bit_length())
    sums = shares.mul_(levels).to(torch.int64).cumsum(0)
    return torch.searchsorted(sums, (uniform * sums[-1:]).to(torch.int64), right=True)


def uniformly(free: Tensor, n_select: int, generator: torch.Generator) -> Tensor:
    """Distinct rows among the `free` (P,) ones, all alike."""
    order = torch.rand(len(free), dtype=torch.float64, generator=generator, device=free.device)
    return order.masked_fill_(~free, -1).topk(n_select).indices
