"""What a cell cost: when, where and with which code it was finished."""

import contextlib
import datetime
import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from repro.data import manifest
from repro.run.device import hardware


def cost(device: torch.device) -> dict[str, Any]:
    """When, where and with which code a cell was finished, and the most memory it took."""
    finished = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"finished": finished, "peak_mb": peak_mb(device), "commit": commit(), **hardware(device)}


def peak_mb(device: torch.device) -> int:
    """The most memory in MiB since `begin`: what tensors took of a GPU, otherwise what this process has held."""
    return (torch.cuda.max_memory_allocated() if device.type == "cuda" else _resident_bytes()) // 2**20


def begin(device: torch.device) -> None:
    """Remember the code's commit, as the checkout may move on while it trains, and count memory from now on."""
    commit()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with contextlib.suppress(OSError):  # there is no such file but on Linux: the peak is then the process's
            Path("/proc/self/clear_refs").write_text("5")


@functools.cache
def commit() -> str:
    """Short hash of the checkout this code runs from, "+" appended if it has changes; "unknown" if there is none."""
    checkout = manifest.checkout()
    if checkout is None:  # git would tell of whatever lies around the environment
        return "unknown"
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _resident_bytes() -> int:
    """The most memory this process has held, on Linux since `begin`; 0 where the system does not tell (Windows)."""
    with contextlib.suppress(OSError, StopIteration), open("/proc/self/status") as lines:
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
