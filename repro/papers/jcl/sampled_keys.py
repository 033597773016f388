"""What JCL's bound stands for: its loss beside losses with keys actually drawn from the Gaussian."""

import math
from collections.abc import Sequence

import torch
from pandas import DataFrame
from torch import Tensor
from torch.nn.functional import softplus

from repro.contrast.objectives import jcl

COUNTS = tuple(2**power for power in range(13))
REPEATS = 100  # independent draws


def sampled_keys(
    query: Tensor,
    keys: Tensor,
    negatives: Tensor,
    temperature: float,
    strength: float,
    *,
    generator: torch.Generator,
    counts: Sequence[int] = COUNTS,
    repeats: int = REPEATS,
) -> DataFrame:
    """Two losses with M positive keys k_m drawn from N(mu, lambda Sigma), and the closed form of `objectives.jcl`.

        inside  = log[ (1/M) sum_m exp(q.k_m/t) + sum_j exp(q.n_j/t) ] - q.mu/t
        outside = (1/M) sum_m { log[ exp(q.k_m/t) + sum_j exp(q.n_j/t) ] - q.k_m/t }

    mu and Sigma are the mean and the biased covariance of the keys given; lambda, the strength, scales the covariance.
    As in Eq. M.8 `inside` subtracts the expected positive logit, not the mean of those drawn: by Jensen's inequality
    its expectation lies below the closed form, rises with M and tends to it. That of `outside`, a mean of InfoNCE
    losses, is the same for every M, namely that of `inside` with M = 1.

    A key is drawn as mu + sqrt(lambda/M') sum_l e_l (key_l - mu) with M' standard normal e_l. The losses see only its
    product with the query, so that neither a covariance matrix nor a drawn key is stored.

    Args:
        query: (N, d) projections.
        keys: (N, M', d) positive keys that fix mu and Sigma.
        negatives: (K, d) dictionary.
        temperature: t > 0, in units of the dot product.
        strength: lambda >= 0.
        generator: of the Gaussian draws, on the device of the query.
        counts: numbers of keys M, each at least 1. Within a repeat the first M of the same keys are used.
        repeats: independent draws, at least 2.

    Returns:
        One row per count: keys (M), then in nats, averaged over the queries: inside, inside_std, outside, outside_std
        (mean and standard deviation over the repeats) and closed_form, the same in every row, as is the number of
        repeats. Computed in float64.

    Raises:
        ValueError: as `objectives.jcl`; or if there is no count, one is below 1, or there are fewer than 2 repeats.

    Source: JCL supplement, Eq. M.8 and its derivation.
    """
    if not counts or min(counts) < 1 or repeats < 2:
        raise ValueError(f"counts={list(counts)} should be at least 1 each, and repeats={repeats} at least 2")
    query, keys, negatives = (features.detach().double() for features in (query, keys, negatives))
    closed_form = jcl(query, keys, negatives, temperature, strength).item()

    products = (query.unsqueeze(1) * keys).sum(2) / temperature                          # (N, M')
    expected = products.mean(1)                                                          # (N,)
    scale = math.sqrt(strength / keys.shape[1])
    deviations = scale * (products - expected.unsqueeze(1))                              # (N, M')
    repulsion = torch.logsumexp(query @ negatives.T / temperature, dim=1)                # (N,)

    inside, outside = [], []
    for _ in range(repeats):
        size = (max(counts), *deviations.shape)
        noise = torch.randn(size, generator=generator, dtype=query.dtype, device=query.device)
        positive = expected.unsqueeze(1) + torch.einsum("nl,mnl->nm", deviations, noise)  # (N, M), rows in one piece
        means = torch.stack([positive[:, :count].logsumexp(1) - math.log(count) for count in counts])
        inside.append((torch.logaddexp(means, repulsion) - expected).mean(1))            # (counts,)
        losses = softplus(repulsion.unsqueeze(1) - positive).mean(0)                     # (M,)
        outside.append(torch.stack([losses[:count].mean() for count in counts]))

    table = DataFrame({"keys": counts})
    for name, values in (("inside", torch.stack(inside)), ("outside", torch.stack(outside))):
        draws = values.cpu().numpy()                                                    # (repeats, counts)
        table[name], table[f"{name}_std"] = draws.mean(0), draws.std(0, ddof=1)
    return table.assign(closed_form=closed_form, repeats=repeats)
