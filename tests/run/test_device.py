import json
import os

import pytest
import torch

from repro.run import device


@pytest.fixture(params=[True, False], ids=["with CUDA", "without CUDA"])
def cuda(request, monkeypatch):
    """Whether torch finds a CUDA device, in both ways."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param)
    return request.param


def test_cpu_is_always_there(cuda):
    assert device.resolve("cpu") == torch.device("cpu")


def test_auto_takes_cuda_if_there_is_one(cuda):
    assert device.resolve("auto") == torch.device("cuda" if cuda else "cpu")


def test_cuda_is_not_replaced_by_the_cpu(cuda):
    if cuda:
        assert device.resolve("cuda") == torch.device("cuda")
    else:
        with pytest.raises(ValueError, match=r"^device='cuda' but torch finds no CUDA device here; use device='cpu'"):
            device.resolve("cuda")


@pytest.mark.parametrize("name", ["gpu", "cuda:0", "", "CPU", None])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=r"^device=.* is not one of: auto, cpu, cuda"):
        device.resolve(name)


def test_data_fits_in_half_of_what_is_free(monkeypatch):
    """90 bytes are free, and 10 of the 30 that torch has reserved."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (90, 200))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 20)
    assert device.fits(50, torch.device("cuda")) and not device.fits(51, torch.device("cuda"))


def test_the_cpu_holds_whatever_there_is():
    assert device.fits(10**18, torch.device("cpu"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_the_memory_of_a_real_device():
    held = torch.empty(2**20, dtype=torch.uint8, device="cuda")
    free, whole = torch.cuda.mem_get_info()
    assert device.fits(free // 4, held.device) and not device.fits(whole, held.device)


def test_threads_inside_the_block_alone():
    before = torch.get_num_threads()
    for count in (1, 3):
        with device.threads(count):
            assert torch.get_num_threads() == count
        assert torch.get_num_threads() == before
    with pytest.raises(KeyError), device.threads(before + 1):
        raise KeyError
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("usual", [True, False])
def test_factors_keep_their_bits_inside_the_block_alone(usual, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", usual)
    with device.full_precision():
        assert not torch.backends.cudnn.allow_tf32
    assert torch.backends.cudnn.allow_tf32 == usual
    with pytest.raises(KeyError), device.full_precision():
        raise KeyError
    assert torch.backends.cudnn.allow_tf32 == usual


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_gru_on_cuda_in_full_precision_is_that_of_float64():
    torch.manual_seed(0)
    gru, inputs = torch.nn.GRU(64, 128).double().cuda(), torch.randn(30, 8, 64, dtype=torch.float64, device="cuda")
    exact = gru(inputs)[0]
    with device.full_precision():
        assert (gru.float()(inputs.float())[0] - exact).abs().max() < 1e-5


def test_hardware_is_ready_for_json():
    found = device.hardware(torch.device("cpu"))
    assert list(found) == ["device", "cores", "python", "torch"]
    assert found["device"] and found["cores"] == device.cores() and found["torch"] == torch.__version__
    assert json.loads(json.dumps(found)) == found


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinities on this system")
def test_cores_are_those_this_process_may_use():
    allowed = os.sched_getaffinity(0)
    assert device.cores() == len(allowed)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert device.cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_hardware_without_proc(monkeypatch):
    def missing(*args, **kwargs):
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", missing)
    assert isinstance(device.hardware(torch.device("cpu"))["device"], str)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_hardware_names_the_gpu():
    assert device.hardware(torch.device("cuda"))["device"] == torch.cuda.get_device_name()
