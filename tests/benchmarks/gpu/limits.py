"""What the device can do at most, measured: a plain copy and plain products."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.benchmarks.stopwatch import seconds


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Rates by name: bytes a second of a copy, read and written, and operations a second of products."""
    side, size = (64, 2**16) if tiny else (8192, 2**31)
    return {
        "copy": lambda: copy(device, size),
        "float32": lambda: product(device, side, torch.float32),
        "bfloat16": lambda: product(device, side, torch.bfloat16),
    }


def copy(device: torch.device, size: int) -> dict[str, float]:
    """Bytes a second that a copy of `size` bytes reads and writes."""
    source = torch.rand(size // 4, device=device)
    target = torch.empty_like(source)
    return {"rate": 2 * size / seconds(lambda: target.copy_(source), device)}


def product(device: torch.device, side: int, dtype: torch.dtype) -> dict[str, float]:
    """Operations a second of a product of square matrices of random numbers."""
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    return {"rate": 2 * side**3 / seconds(lambda: left @ right, device)}


def operations(step: Callable[[], object]) -> int:
    """Additions and multiplications in the matrix products and convolutions of a step."""
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()
