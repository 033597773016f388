"""Where a run computes: device, precision, threads, and what to call the hardware."""

import contextlib
import os
import platform

import torch

from repro.recipe import choose


def resolve(device: str) -> torch.device:
    """The torch device for "auto" (CUDA if there is one, else the CPU), "cpu" or "cuda".

    Raises:
        ValueError: if the name is another one, or "cuda" is asked for on a machine without it.
    """
    choose("device", device, ("auto", "cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device='cuda' but torch finds no CUDA device here; use device='cpu' or 'auto'")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


@contextlib.contextmanager
def threads(count: int):
    """Compute with `count` CPU threads inside the block; a CPU result is bit-identical only for equal counts."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def hardware(device: torch.device) -> dict[str, str | int]:
    """What a measured time depends on: device name, cores, versions."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {"device": name, "cores": cores()} | versions


def cores() -> int:
    """CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
