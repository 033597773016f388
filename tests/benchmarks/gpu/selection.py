"""Selection of negatives at CM-ACC's size: its time, how that grows, and how often it waits for the device."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.benchmarks import selection
from tests.benchmarks.stopwatch import peak, seconds

SIZES = {"pool": (9600, 19200, 38400, 76800), "chosen": (32, 64, 128, 256), "features": (128, 256, 512, 1024)}
TINY = {"pool": (300, 600), "chosen": (8, 16), "features": (16, 32)}


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name."""
    sizes = TINY if tiny else SIZES
    usual = {name: values[-2] for name, values in sizes.items()}  # the paper's

    def growing(name: str) -> dict[str, float]:
        works = {value: selection.selection(device, **usual | {name: value}) for value in sizes[name]}
        return {str(value): seconds(work, device) for value, work in works.items()}

    found = {"paper size": lambda: at_paper_size(device, usual), "waiting": lambda: waiting(device, usual)}
    return found | {f"by {name}": lambda name=name: growing(name) for name in sizes}


def at_paper_size(device: torch.device, usual: dict[str, int]) -> dict[str, Any]:
    """Seconds beside the goal, memory, and the bytes that every round reads: both factors of all candidates."""
    work = selection.selection(device, **usual)
    taken = seconds(work, device, repeats=15)
    read = 4 * usual["pool"] * (usual["features"] + min(selection.QUERIES, usual["features"])) * usual["chosen"]
    return {"seconds": taken, "goal": selection.GOAL, "MiB": peak(work, device),
            "work": [{"path": "selection of negatives", "limit": "copy", "amount": read, "seconds": taken}]}


def waiting(device: torch.device, usual: dict[str, int]) -> dict[str, Any]:
    """How often the host waits in one call, which checks its arguments, and how much more often for twice the rows."""
    once, twice = (
        waits(selection.selection(device, **usual | {"chosen": count * usual["chosen"]}), device) for count in (1, 2)
    )
    return {"waits of a call": once, "waits of the rounds": twice - once}


def waits(work: Callable[[], Tensor], device: torch.device) -> int:
    """How often the host waits for the device in a call; 0 on a CPU."""
    work()
    if device.type != "cuda":
        return 0
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            work()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(warning.message) for warning in said)
