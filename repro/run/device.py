"""Where a run computes: device, threads, precision, the processes that share it, and what it cost there."""

import contextlib
import datetime
import functools
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from repro.data import manifest
from repro.recipe import Recipe, choose

SHARE_OF_A_GPU = 6 * 2**30  # bytes, of each run on it; half of them are the frames of NTU RGB+D


def resolve(device: str) -> torch.device:
    """The torch device for "auto" (CUDA if there is one, else the CPU), "cpu" or "cuda"; ValueError for others."""
    choose("device", device, ("auto", "cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device='cuda' but torch finds no CUDA device here; use device='cpu' or 'auto'")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def fits(size: int, device: torch.device) -> bool:
    """Whether `size` bytes of data may live on the device: on CUDA in half of what is free; the rest is to train in."""
    if device.type != "cuda":
        return True
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # which torch holds
    return size <= (torch.cuda.mem_get_info(device)[0] + unused) // 2


@contextlib.contextmanager
def enough_memory(asking: object) -> Iterator[None]:
    """Let torch's error for want of memory be a MemoryError that names who asks, and for how much."""
    try:
        yield
    except RuntimeError as error:
        asked = re.search(r"tried to allocate ([\d.]+ \w+)", str(error), re.IGNORECASE)
        if not asked:
            raise
        raise MemoryError(f"({asking} asks for {asked[1]} at once, more than is free); choose smaller sizes, "
                          "as of batch, dictionary or network") from error


def lanes(most: int) -> int:
    """How many runs a GPU of this machine trains at once: `most`, fewer where its memory is small."""
    memory = min(torch.cuda.get_device_properties(number).total_memory for number in range(torch.cuda.device_count()))
    return max(1, min(most, memory // SHARE_OF_A_GPU))


def gpu_names() -> list[str]:
    """What CUDA_VISIBLE_DEVICES calls the GPUs that this process sees."""
    numbers = range(torch.cuda.device_count())
    names = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, numbers))).split(",")
    return [names[number].strip() for number in numbers]


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute with `count` CPU threads inside the block, a CPU result being bit-identical only for equal counts.

    float32 is float32 there in products of matrices and in cuDNN's layers, and not TF32. A single thread takes numbers
    nearer to 0 than 1e-38 for 0: where a loss has collapsed, squared gradients are that small, and a processor is slow
    with them. Of several threads, only the one that asks would do so.
    """
    before = torch.get_num_threads(), torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    torch.set_num_threads(count)
    torch.set_flush_denormal(count == 1)
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
        torch.set_float32_matmul_precision(before[2])


@contextlib.contextmanager
def process_group(device: torch.device) -> Iterator[None]:
    """Join the other processes of `torchrun`, if any, inside the block; on CUDA each takes the device of its number."""
    if not distributed.is_available() or not distributed.is_torchelastic_launched():
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        distributed.destroy_process_group()


def grouped() -> bool:
    """Whether this process shares every run with others."""
    return distributed.is_available() and distributed.is_initialized()


def first() -> bool:
    """Whether this process writes what the group does; True without a group."""
    return not grouped() or distributed.get_rank() == 0


def from_first(make: Callable[[], Any]) -> Any:
    """What `make` returns in the first process, in all of them; the others do not call it."""
    if not grouped():
        return make()
    made = [make() if first() else None]
    distributed.broadcast_object_list(made)
    return made[0]


def precision_of(recipe: Recipe, device: torch.device) -> str:
    """What matrix products are computed in: "float32" or "bfloat16".

    Where the recipe asks for nothing ("auto"), on a GPU what is usual for such networks, on a CPU bfloat16 if it has
    instructions for it; imitated, it takes two to ten times as long as float32.
    """
    if recipe.precision != "auto":
        return recipe.precision
    if device.type == "cuda":
        return recipe.gpu_precision
    return "bfloat16" if has_bfloat16() else "float32"


def has_bfloat16() -> bool:
    """Whether this processor multiplies matrices in bfloat16 and torch may let it: see ATEN_CPU_CAPABILITY."""
    able = torch.cpu.get_capabilities()
    wide = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    allowed = wide and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return allowed and bool(able.get("avx512_bf16") or able.get("amx_bf16"))


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """A context whose matrix products and convolutions are computed in `precision`: "bfloat16" or "float32"."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


def hardware(device: torch.device) -> dict[str, str | int]:
    """What a measured time depends on: device name, cores, versions."""
    name = _from_proc("/proc/cpuinfo", "model name", platform.processor() or platform.machine())
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    return {"device": name, "cores": cores(), "python": platform.python_version(), "torch": str(torch.__version__)}


def cores() -> int:
    """CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def begin(device: torch.device) -> None:
    """Remember the code's commit, as the checkout may move on while it trains, and count memory from now on."""
    commit()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with contextlib.suppress(OSError):  # there is no such file but on Linux
            Path("/proc/self/clear_refs").write_text("5")


def cost(device: torch.device) -> dict[str, Any]:
    """When, where and with which code a run was finished, and the most memory it took."""
    finished = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"finished": finished, "peak_mb": peak_mb(device), "commit": commit(), **hardware(device)}


def peak_mb(device: torch.device) -> int:
    """The most memory in MiB since `begin`: what tensors of all lanes took of a GPU, or this process; 0 if unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() // 2**20
    return int(_from_proc("/proc/self/status", "VmHWM", "0 kB").split()[0]) // 2**10


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


def _from_proc(path: str, name: str, default: str) -> str:
    """The value of a name in a file of /proc, which Linux has."""
    try:
        with open(path) as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(name))
    except (OSError, StopIteration):
        return default
