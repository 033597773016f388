"""What the device can do at most, measured: a plain copy and plain products."""

from collections.abc import Callable
from typing import Any

import torch

from tests.benchmarks.stopwatch import seconds


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """Rates by name: bytes a second of a copy, read and written, and operations a second of products."""
    side, size = (64, 2**16) if tiny else (8192, 2**31)

    def copy() -> dict[str, float]:
        source = torch.rand(size // 4, device=device)
        target = torch.empty_like(source)
        return {"rate": 2 * size / seconds(lambda: target.copy_(source), device)}

    def product(kind: torch.dtype) -> dict[str, float]:
        left, right = (torch.randn(side, side, device=device).to(kind) for _ in range(2))
        return {"rate": 2 * side**3 / seconds(lambda: left @ right, device)}

    return {"copy": copy, "float32": lambda: product(torch.float32), "bfloat16": lambda: product(torch.bfloat16)}
