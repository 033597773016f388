"""Sizes of values: what is not finite is named, what is huge or tiny is scaled, and the host waits once for several."""

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

_SMALLEST_NORM = 1e-12  # below it `torch.nn.functional.normalize` does not divide by the norm


class NonFinite(ValueError):
    """A value is NaN or infinite, or too large to compute with: an encoder diverged."""


def read(*scalars: Tensor) -> list[float]:
    """Values of scalars on one device, for which the host waits once."""
    return torch.stack([scalar.double() for scalar in scalars]).tolist()


def magnitude(tensor: Tensor) -> Tensor:
    """The largest magnitude of a tensor, a scalar on its device; NaN if a value is."""
    low, high = torch.aminmax(tensor)
    return torch.maximum(-low, high)


def check_finite(tensors: Mapping[str, Tensor], sizes: Iterable[float]) -> None:
    """Raise NonFinite naming the first of the tensors whose largest magnitude, among `sizes`, is not finite."""
    for (name, tensor), size in zip(tensors.items(), sizes, strict=True):
        if not math.isfinite(size):
            raise NonFinite(
                f"{name} has values that are not finite; look for an encoder that diverged, or for features too large "
                f"for {str(tensor.dtype).removeprefix('torch.')}"
            )


def largest(tensors: Mapping[str, Tensor]) -> list[float]:
    """The largest magnitude of each tensor; raises NonFinite as `check_finite`."""
    sizes = read(*map(magnitude, tensors.values()))
    check_finite(tensors, sizes)
    return sizes


def moderate(tensor: Tensor, size: float) -> tuple[Tensor, float]:
    """The tensor, divided by a scale if products of four values could leave the range of float32, and that scale.

    Args:
        size: the tensor's largest magnitude.
    """
    if size == 0 or 1e-4 < size < 1e4:
        return tensor, 1.0
    return tensor / size, size


def moderated(tensors: Mapping[str, Tensor]) -> list[tuple[Tensor, float]]:
    """`moderate` of each tensor; raises NonFinite as `check_finite`."""
    return [moderate(*each) for each in zip(tensors.values(), largest(tensors), strict=True)]


def query_norms(queries: Tensor) -> Tensor:
    """Norms of the rows, (M, 1); raises ValueError where they are too small to divide by."""
    norms = torch.linalg.vector_norm(queries, dim=1, keepdim=True)
    smallest, row = norms.squeeze(1).min(0)
    size, least, row = read(magnitude(norms), smallest, row)
    check_finite({"the norm of queries": norms}, [size])
    if not least >= _SMALLEST_NORM:
        raise ValueError(
            f"row {int(row)} of queries has norm {least}, which should be at least {_SMALLEST_NORM} to be normalised; "
            "look for an encoder that has collapsed, or set normalised=False"
        )
    return norms
