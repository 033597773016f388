"""What the objectives and the selection of negatives do with their arguments first: shapes, ranges, sizes of values."""

import functools
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

_SMALLEST_NORM = 1e-12  # below it `torch.nn.functional.normalize` does not divide by the norm


class NonFinite(ValueError):
    """A value is NaN or infinite, or too large to compute with: an encoder diverged."""


def check_shapes(advice: Mapping[str, str], /, **tensors: tuple[Tensor, str]) -> None:
    """Raise ValueError unless `name=(tensor, "N d")` has these axes, of one size per letter, all at least 1.

    Raises TypeError for what is no tensor of real numbers. `advice` says what to do about an axis, by its letter.
    """
    known: dict[str, tuple[int, str]] = {}
    for name, (tensor, axes) in tensors.items():
        if not isinstance(tensor, Tensor) or tensor.is_complex():
            kind = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            raise TypeError(f"{name} is {kind}; it should be a torch.Tensor of real numbers")
        shape, letters = tuple(tensor.shape), axes.split()
        if len(shape) != len(letters):
            raise ValueError(f"{name} has shape {shape}; it should be ({', '.join(letters)})")
        for letter, size in zip(letters, shape, strict=True):
            expected, first = known.setdefault(letter, (size, name))
            if size == 0:
                raise ValueError(f"{name} has shape {shape}, so {letter}=0; {advice[letter]}")
            if size != expected:
                raise ValueError(f"{letter}={size} in {name} but {letter}={expected} in {first}; {advice[letter]}")


def check_temperatures(**temperatures: float) -> None:
    """Raise ValueError unless every temperature is positive and finite."""
    for name, value in temperatures.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name}={value} should be positive and finite (the papers use 0.03 to 1)")


def raised(*tensors: Tensor) -> list[Tensor]:
    """The tensors in one precision: float32, or float64 if one of them has it."""
    precision = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
    return [tensor.to(precision) for tensor in tensors]


def magnitudes(tensors: Mapping[str, Tensor], *scalars: Tensor) -> list[float]:
    """The largest magnitude of each tensor, then the values of scalars; the host waits once for all.

    Raises:
        NonFinite: naming the first tensor with a value that is not finite.
    """
    extremes = [torch.aminmax(tensor) for tensor in tensors.values()]
    largest = [torch.maximum(-least, most) for least, most in extremes]
    values: list[float] = torch.stack([scalar.double() for scalar in (*largest, *scalars)]).tolist()
    for (name, tensor), size in zip(tensors.items(), values, strict=False):
        if not math.isfinite(size):
            raise NonFinite(
                f"{name} has values that are not finite; look for an encoder that diverged, or for features too large "
                f"for {str(tensor.dtype).removeprefix('torch.')}"
            )
    return values


def moderated(tensors: Mapping[str, Tensor], *, checked: bool = True) -> list[Tensor]:
    """The tensors, each divided by its largest magnitude if products of four values could leave float32, as it has it.

    Where they are checked the host waits once for all, and raises as `magnitudes`; otherwise nothing waits.
    """
    sizes: Sequence[float | Tensor]
    sizes = magnitudes(tensors) if checked else [tensor.abs().amax() for tensor in tensors.values()]
    return [_moderate(tensor, size) for tensor, size in zip(tensors.values(), sizes, strict=True)]


def _moderate(tensor: Tensor, size: float | Tensor) -> Tensor:
    if tensor.dtype == torch.float64:
        return tensor
    usual = (size == 0) | ((size > 1e-4) & (size < 1e4))
    if isinstance(usual, Tensor):  # on the device, for which nothing waits
        return tensor / torch.where(usual, 1, size)
    return tensor if usual else tensor / size


def query_norms(queries: Tensor, *, checked: bool) -> Tensor:
    """Norms of the rows, (M, 1), large enough to divide by; raises ValueError where they are not, if it is checked."""
    norms = torch.linalg.vector_norm(queries, dim=1, keepdim=True)
    if not checked:
        return norms.clamp(min=_SMALLEST_NORM)
    _, smallest, row = magnitudes({"the norm of queries": norms}, *norms.squeeze(1).min(0))
    if not smallest >= _SMALLEST_NORM:
        raise ValueError(
            f"row {int(row)} of queries has norm {smallest}, which should be at least {_SMALLEST_NORM} to be "
            "normalised; look for an encoder that has collapsed, or set normalised=False"
        )
    return norms
