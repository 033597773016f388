"""Fixtures that tests of several folders ask for by name."""

import contextlib

import pytest


@pytest.fixture
def one_thread():
    """One CPU thread, as numbers of a CPU depend on how many there are."""
    from repro.run.device import threads

    with threads(1):
        yield


@pytest.fixture
def meta(monkeypatch):
    """The device of tensors that have a shape and no values: whatever would wait for a GPU to read one, raises."""
    import torch

    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())  # refuses such a device
    return torch.device("meta")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """An empty folder for runs."""
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def folders(tmp_path, monkeypatch, runs):
    """No data and no runs: the folder in which both may be made."""
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    return tmp_path
