"""Time and memory of active selection beside plain seeding and scikit-learn on materialised gradients.

    python3 -m benchmarks.selection [--threads 2] [--rounds 5]

At CM-ACC's size: a pool of 38,400, 128 queries, 512 features, 128 rows to choose. Ours is the whole of `select`, with
the posteriors and their factors. Plain seeding is `kmeans_plusplus` over as many points of 256 features. Scikit-learn
gets the gradients multiplied out before the clock starts, at a size at which they fit. Memory is what all tensors made
within a call need at once. The limits are 1.3 s of two cores, 300 MB, and three times plain seeding. A GPU is measured
by `benchmarks.gpu`.
"""

import argparse
import functools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.stopwatch import CPU, Comparison, compare
from repro.contrast.active import gradient_factors, kmeans_plusplus, select

POOL, QUERIES, FEATURES, CHOSEN, PLAIN_FEATURES = 38400, 128, 512, 128, 256
SMALL_POOL, SMALL_FEATURES = 2000, 64


def made_up(pool: int, features: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Candidates, queries and query inputs, with logits of a standard deviation of about 3."""
    draws = torch.Generator().manual_seed(0)
    candidates = torch.randn(pool, features, generator=draws)
    inputs = torch.randn(QUERIES, features, generator=draws)
    weight = torch.randn(features, features, generator=draws) * 3 / features
    return candidates.to(device), (inputs @ weight.T).to(device), inputs.to(device)


def selection(
    device: torch.device, pool: int = POOL, chosen: int = CHOSEN, features: int = FEATURES, strategy: str = "gradient",
    **given: object,
) -> Callable[[], Tensor]:
    """A call of `select` over made-up features."""
    usual = {"excluded": torch.zeros(pool, dtype=torch.bool, device=device)}
    given = usual | given | {"n_select": chosen, "generator": torch.Generator(device).manual_seed(0)}
    return functools.partial(select, strategy, *made_up(pool, features, device), **given)


def works(settings: argparse.Namespace) -> Iterator[Comparison]:
    """Ours beside scikit-learn's function over the outer products, then beside plain seeding."""
    from sklearn import cluster

    a, b = gradient_factors(*made_up(SMALL_POOL, SMALL_FEATURES, CPU))
    materialised = torch.einsum("pd,pe->pde", a, b).flatten(1).numpy()
    other = functools.partial(cluster.kmeans_plusplus, materialised, CHOSEN, random_state=0, n_local_trials=1)
    pair = {"scikit-learn": other, "ours": selection(CPU, SMALL_POOL, features=SMALL_FEATURES)}
    yield Comparison(f"pool {SMALL_POOL}, {SMALL_FEATURES} features", pair, 1, "selections", "scikit-learn")
    draws = torch.Generator().manual_seed(0)
    points = torch.randn(POOL, PLAIN_FEATURES, generator=draws)
    calls = {
        "plain": functools.partial(kmeans_plusplus, points, n_select=CHOSEN, generator=draws),
        "ours": selection(CPU),
        "half the pool excluded": selection(CPU, excluded=torch.arange(POOL) % 2 == 0),
    }
    title = f"pool {POOL}, {FEATURES} features; plain seeding of {PLAIN_FEATURES}"
    yield Comparison(title, calls, 1, "selections", "plain", memory=True)


if __name__ == "__main__":
    compare(__doc__, works)
