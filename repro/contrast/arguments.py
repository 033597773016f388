"""What the objectives and the selection of negatives do with their arguments first."""

import functools
import math
from collections.abc import Mapping

import torch
from torch import Tensor


def check_shapes(advice: Mapping[str, str], /, **tensors: tuple[Tensor, str]) -> None:
    """Raise ValueError unless `name=(tensor, "N d")` has these axes, of one size per letter, all at least 1.

    Raises TypeError for what is no tensor of real numbers.

    Args:
        advice: what to do about an axis, by its letter.
        tensors: with the letters of their axes.
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
