import dataclasses
from types import SimpleNamespace

import pytest
import torch

from repro.recipe import Recipe, setting
from repro.run import device


@pytest.mark.parametrize("cuda", [True, False])
def test_auto_takes_cuda_if_there_is_one_and_cuda_is_not_replaced(cuda, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    assert device.resolve("cpu") == torch.device("cpu")
    assert device.resolve("auto") == torch.device("cuda" if cuda else "cpu")
    if cuda:
        assert device.resolve("cuda") == torch.device("cuda")
        return
    with pytest.raises(ValueError, match=r"^device='cuda' but torch finds no CUDA device here; use device='cpu'"):
        device.resolve("cuda")
    with pytest.raises(ValueError, match=r"device='cuda:0' is not one of: auto, cpu, cuda"):
        device.resolve("cuda:0")


def test_data_fits_in_half_of_what_is_free(monkeypatch):
    """90 bytes are free, and 10 of the 30 that torch has reserved."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (90, 200))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 20)
    assert device.fits(50, torch.device("cuda")) and not device.fits(51, torch.device("cuda"))
    assert device.fits(10**18, torch.device("cpu"))


@pytest.mark.parametrize(
    ("most", "gigabytes", "expected"),
    [(1, [4], 1), (1, [4, 141], 1), (15, [141], 15), (8, [24], 3), (8, [4], 1), (8, [141, 16], 2), (8, [16, 141], 2)],
)
def test_a_gpu_has_as_many_lanes_as_the_smallest_one_has_memory_for(monkeypatch, most, gigabytes, expected):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(gigabytes))
    properties = [SimpleNamespace(total_memory=each * 10**9) for each in gigabytes]
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: properties[number])
    assert device.lanes(most) == expected


@dataclasses.dataclass(frozen=True, kw_only=True)
class Computed(Recipe):
    precision: str = setting("auto", "assumed", allowed=("auto", "float32", "bfloat16"))


class Exact(Computed):
    gpu_precision = "float32"


@pytest.mark.parametrize("able", [True, False])
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_a_precision_that_is_asked_for_is_taken_and_else_what_is_fast_there(able, kind, monkeypatch):
    monkeypatch.setattr(device, "has_bfloat16", lambda: able)
    place = torch.device(kind)
    for asked in ("float32", "bfloat16"):
        assert device.precision_of(Computed(precision=asked), place) == asked
    usual = {"cuda": "bfloat16", "cpu": "bfloat16" if able else "float32"}[kind]
    assert device.precision_of(Computed(), place) == usual
    assert device.precision_of(Exact(), place) == ("float32" if kind == "cuda" else usual)


@pytest.mark.parametrize(("capability", "supported", "flags", "expected"), [
    ("AVX512", True, {"avx512_bf16": True}, True), ("AVX512", True, {"amx_bf16": True}, True),
    ("AVX512", True, {"avx512_bf16": False}, False), ("AVX512", True, {}, False),
    ("AVX512", False, {"avx512_bf16": True}, False), ("AVX2", True, {"avx512_bf16": True}, False),
    ("DEFAULT", True, {"amx_bf16": True}, False),
])
def test_bfloat16_needs_instructions_and_leave_to_use_them(capability, supported, flags, expected, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: flags)
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(_is_mkldnn_bf16_supported=lambda: supported))
    assert device.has_bfloat16() is expected


@pytest.mark.parametrize(("usual", "products"), [(True, "highest"), (False, "high"), (True, "medium")])
def test_threads_and_whole_factors_inside_the_block_alone(usual, products, monkeypatch):
    def state():
        return torch.get_num_threads(), torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()

    precision = torch.get_float32_matmul_precision()
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", usual)
    torch.set_float32_matmul_precision(products)
    before = state()
    try:
        for count in (1, 3):
            with device.threads(count):
                assert state() == (count, False, "highest")
            assert state() == before
        with pytest.raises(KeyError), device.threads(before[0] + 1):
            raise KeyError
        assert state() == before == (before[0], usual, products)
    finally:
        torch.set_float32_matmul_precision(precision)


def test_one_thread_takes_subnormal_numbers_for_0_inside_the_block_alone():
    def square_of_a_tiny_gradient():
        return (torch.tensor([1e-20]) * torch.tensor([1e-20])).item()

    for count in (1, 2):
        with device.threads(count):
            assert (square_of_a_tiny_gradient() == 0) == (count == 1)
        assert square_of_a_tiny_gradient() > 0


@pytest.mark.parametrize(
    ("visible", "count", "names"),
    [(None, 0, []), (None, 1, ["0"]), ("3", 1, ["3"]), (None, 2, ["0", "1"]), ("5, 2,7", 3, ["5", "2", "7"]),
     ("5,9", 1, ["5"]), ("", 0, [])],
)
def test_gpus_have_the_names_that_a_worker_sees_one_by(monkeypatch, visible, count, names):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert device.gpu_names() == names
