"""Fixtures that tests of several folders ask for by name."""

import contextlib
import sys

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


@pytest.fixture
def repro(folders, monkeypatch, capsys):
    """Runs the command line in this process, without data and runs; returns its status, output and errors."""
    from repro import cli

    monkeypatch.setenv("COLUMNS", "200")  # so that help is not wrapped
    monkeypatch.setenv("TERM", "dumb")

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["repro", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return (ended.value.code or 0, *capsys.readouterr())

    return call
