"""What the objectives and the selection of negatives do with their arguments first: shapes, ranges, sizes of values."""

import functools
import math
from collections.abc import Mapping

import torch
from torch import Tensor


class NonFinite(ValueError):
    """A value is NaN or infinite, or too large to compute with: an encoder diverged."""


def check_shapes(**tensors: tuple[Tensor, str]) -> None:
    """Raise ValueError unless `name=(tensor, "N d")` has these axes, of one size per letter, all at least 1.

    Raises TypeError for what is no tensor of real numbers.
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
                raise ValueError(f"{name} has shape {shape}, so {letter}=0; give at least one")
            if size != expected:
                raise ValueError(f"{letter}={size} in {name} but {letter}={expected} in {first}; give both one size")


def check_temperatures(**temperatures: float) -> None:
    """Raise ValueError unless every temperature is positive and finite."""
    for name, value in temperatures.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name}={value} should be positive and finite (the papers use 0.03 to 1)")


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Raise NonFinite with the name of the first tensor that has a value which is not finite; the host waits once."""
    finite = torch.stack([torch.stack(torch.aminmax(tensor)).isfinite().all() for tensor in tensors.values()])
    for (name, tensor), sound in zip(tensors.items(), finite.tolist(), strict=True):
        if not sound:
            raise NonFinite(
                f"{name} has values that are not finite; look for an encoder that diverged, or for features too large "
                f"for {str(tensor.dtype).removeprefix('torch.')}"
            )


def raised(*tensors: Tensor) -> list[Tensor]:
    """The tensors in one precision: float32, or float64 if one of them has it."""
    precision = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
    return [tensor.to(precision) for tensor in tensors]
