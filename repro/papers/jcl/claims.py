"""Rules for sentences of the JCL supplement that are more than a comparison of rows; see `repro.report.claims`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from repro.contrast.objectives import info_nce, jcl
from repro.papers.jcl.sampled_keys import sampled_keys
from repro.papers.jcl.tables import BASE
from repro.report.claims import PAIRED, Judged, Results, Rule, above, exact
from repro.report.statistics import Estimate


def _random(*size: int) -> Tensor:
    """Normal numbers, the same ones each time."""
    return torch.randn(*size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def upper_bound(*_: Any) -> Judged:
    """Whether the closed form is an upper bound of InfoNCE with Gaussian keys, and that with many keys inside it.

    Sixteen queries with five keys each, in 16 dimensions and among 64 negatives, so that keys of a query differ and its
    positive logit is of the size of what it competes with, as late in training; else all gaps are too small to see.
    """
    generator = torch.Generator().manual_seed(0)

    def unit(*size: int) -> Tensor:
        return normalize(torch.randn(*size, generator=generator, dtype=torch.float64), dim=-1)

    views = normalize(unit(16, 1, 16) + 0.6 * unit(16, 6, 16), dim=-1)
    table = sampled_keys(views[:, 0], views[:, 1:], unit(64, 16), BASE["temperature"], BASE["strength"],
                         generator=generator, counts=(1, 1024))
    most, repeats = table.iloc[-1], int(table["repeats"].iloc[-1])
    numbers = {f"nats above the mean {name} the logarithm": Estimate(
        float(most["closed_form"] - most[name]), float(most[f"{name}_std"]) / repeats**0.5, repeats - 1, (repeats,))
        for name in ("outside", "inside")}
    return above({"": numbers["nats above the mean outside the logarithm"]}), numbers


def diagonal_says_correlation(*_: Any) -> Judged:
    """Whether features whose covariances have one diagonal have one correlation between their dimensions."""
    values = _random(4096)
    independent = torch.stack([values, _random(2, 4096)[1]])
    together = torch.stack([values, values])
    spread, correlations = [], []
    for pair in (independent, together):
        standard = (pair - pair.mean(1, keepdim=True)) / pair.std(1, correction=0, keepdim=True)
        spread.append(float(standard.square().mean(1).sub(1).abs().max()))
        correlations.append(float(torch.corrcoef(standard)[0, 1]))
    numbers = {"largest difference of diagonals": exact(max(spread)), "correlation of one pair": exact(correlations[0]),
               "of the other": exact(correlations[1])}
    return abs(correlations[0] - correlations[1]) < 0.01, numbers


def cheaper_than_vanilla(*_: Any) -> Judged:
    """Whether JCL multiplies less, and keeps less for its backward pass, than a mean of InfoNCE over as many keys.

    N = 64 queries of d = 128 features, M' = 5 keys, K = 4,096 negatives. The vanilla loss takes each key as a query's
    positive in turn. Multiplications are those of the products with negatives and keys: N d (K + M') for JCL, whose
    variance needs no others (q^T Sigma q is that of the q.k), N d M' (K + 1) for the vanilla one. Memory is measured.
    """
    sizes = {"N": 64, "d": 128, "M": 5, "K": 4096}
    query, keys, negatives = (normalize(_random(*size, sizes["d"]).float(), dim=-1)
                              for size in ((sizes["N"],), (sizes["N"], sizes["M"]), (sizes["K"],)))

    def vanilla(query: Tensor) -> Tensor:
        return torch.stack([info_nce(query, key, negatives, BASE["temperature"]) for key in keys.unbind(1)]).mean()

    def closed_form(query: Tensor) -> Tensor:
        return jcl(query, keys, negatives, BASE["temperature"], BASE["strength"])

    multiplied = sizes["N"] * sizes["d"] / 1e6
    numbers = {"million multiplications, JCL": multiplied * (sizes["K"] + sizes["M"]),
               "vanilla": multiplied * sizes["M"] * (sizes["K"] + 1),
               "MiB kept, JCL": _kept(closed_form, query), "MiB kept, vanilla": _kept(vanilla, query)}
    ours, others = [*numbers.values()][::2], [*numbers.values()][1::2]
    follows = all(one < other for one, other in zip(ours, others, strict=True))
    return follows, {name: exact(value) for name, value in numbers.items()}


def _kept(loss: Callable[[Tensor], Tensor], query: Tensor) -> float:
    """MiB of the distinct tensors that a loss keeps for its backward pass."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        held.append(tensor)  # so that no other tensor takes its place
        return tensor

    held: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss(query.clone().requires_grad_())
    return sum(kept.values()) / 2**20


def by_model(results: Results) -> Results:
    """Similarities of images' augmentations; models of one seed see the same."""
    return results._replace(apart=["model"], errors=PAIRED)


PREPARED = {"log/similarity_variance_images_cifar10": by_model}
RULES: dict[str, Rule] = {
    "upper bound": upper_bound, "diagonal says correlation": diagonal_says_correlation,
    "cheaper than vanilla": cheaper_than_vanilla,
}
