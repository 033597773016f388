"""What sentences of the JCL supplement are held against besides results; see `repro.papers`."""

from collections.abc import Callable

import numpy as np
import torch
from pandas import DataFrame
from torch import Tensor
from torch.nn.functional import normalize

from repro.contrast.objectives import info_nce, jcl
from repro.papers.jcl.sampled_keys import sampled_keys
from repro.papers.jcl.tables import BASE


def upper_bound() -> DataFrame:
    """The closed form beside InfoNCE with Gaussian keys, averaged outside and inside the logarithm, in nats.

    Sixteen queries with five keys each, in 16 dimensions and among 64 negatives, so that keys of a query differ and its
    positive logit is of the size of what it competes with, as late in training; else all gaps are too small to see.
    """
    generator = torch.Generator().manual_seed(0)

    def unit(*size: int) -> Tensor:
        return normalize(torch.randn(*size, generator=generator, dtype=torch.float64), dim=-1)

    views = normalize(unit(16, 1, 16) + 0.6 * unit(16, 6, 16), dim=-1)
    losses = sampled_keys(views[:, 0], views[:, 1:], unit(64, 16), BASE["temperature"], BASE["strength"],
                          generator=generator, counts=(1024,), repeats=25).iloc[-1]
    names = ["closed_form", "outside", "inside"]
    return DataFrame({"loss": names, "nats": losses[names].to_numpy(dtype=float)})


def diagonals() -> DataFrame:
    """Variances, and correlation, of two dimensions that are independent and of two that are equal."""
    first, second = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 1.0, -1.0, -1.0])
    rows = []
    for name, other in (("independent", second), ("equal", first)):
        covariance = np.cov(first, other, ddof=0)
        rows.append({"dimensions": name, "variance": covariance[0, 0], "other variance": covariance[1, 1],
                     "correlation": covariance[0, 1]})
    return DataFrame(rows)


def costs() -> DataFrame:
    """Multiplications (millions) of JCL and of a mean of InfoNCE over as many keys, and MiB kept for the backward pass.

    N = 64 queries of d = 128 features, M' = 5 keys, K = 4,096 negatives. The vanilla loss takes each key as a query's
    positive in turn. Multiplications are those of the products with negatives and keys: N d (K + M') for JCL, whose
    variance needs no others (q^T Sigma q is that of the q.k), N d M' (K + 1) for the vanilla one. Memory is measured.
    """
    generator = torch.Generator().manual_seed(0)
    query, keys, negatives = (normalize(torch.randn(*size, 128, generator=generator), dim=-1)
                              for size in ((64,), (64, 5), (4096,)))
    temperature, products = BASE["temperature"], 64 * 128 / 1e6
    closed_form = _kept(query, lambda query: jcl(query, keys, negatives, temperature, BASE["strength"]))
    vanilla = _kept(query, lambda query: torch.stack(
        [info_nce(query, key, negatives, temperature) for key in keys.unbind(1)]).mean())
    return DataFrame({"loss": ["JCL", "vanilla"], "memory": [closed_form, vanilla],
                      "multiplications": [products * (4096 + 5), products * 5 * (4096 + 1)]})


def _kept(query: Tensor, loss: Callable[[Tensor], Tensor]) -> float:
    """MiB of the distinct tensors that a loss keeps for its backward pass."""
    kept: dict[int, Tensor] = {}  # by address, which no other tensor takes while this one is held

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss(query.clone().requires_grad_())
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values()) / 2**20


def distances_from_mean(rows: DataFrame) -> DataFrame:
    """How far each run is from the mean of its setting, whose differences are the test of Levene for variances."""
    means = rows.groupby(["keys", "strength", "temperature"])["ours"].transform("mean")
    return rows.assign(distance=(rows["ours"] - means).abs())


def mean_similarities(rows: DataFrame) -> DataFrame:
    """The mean over images of each model: it is trained a seed, however many images it sees."""
    return rows.groupby(["model", "seed"], as_index=False)["similarity"].mean()


DERIVED = {
    "mean_similarities": ("log/similarity_variance_images_cifar10", mean_similarities),
    "distances_from_mean": ("positive_keys_cifar10", distances_from_mean),
    "upper_bound": ("", upper_bound), "diagonals": ("", diagonals), "costs": ("", costs),
}
