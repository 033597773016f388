"""Fixtures that tests of several folders ask for by name."""

import contextlib
import functools
import os
import sys
import tempfile
from pathlib import Path

import pytest

LONG = (  # files that take longest, begun first, so that no process works on alone in the end
    "notebooks/test_execution.py", "browser/test_jupyterlab.py", "run/test_contract.py", "golden/test_golden.py",
    "examples/test_examples.py", "run/test_faults.py", "run/test_kill_and_resume.py", "report/test_markdown.py",
    "test_book.py", "papers/test_claims.py", "browser/test_book.py", "test_encoders.py",
    "test_experiments.py", "notebooks/test_explore.py", "image/test_processes.py", "test_benchmarks.py",
    "report/test_redraw.py", "test_documents.py", "skeleton/test_pretrain.py", "run/test_engine.py",
    "test_packaging.py", "run/test_measured_otherwise.py", "audiovisual/test_pretrain.py", "image/test_batches.py",
    "papers/taxonomy/test_copies.py", "papers/cmacc/test_tables.py", "report/test_plots.py",
)

OWN_RUNS = pytest.StashKey()

if "PYTEST_XDIST_WORKER" in os.environ:  # a core for each process: with more threads they wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config):
    """A folder of the tests' own for runs, which other processes of theirs inherit, not that of whoever tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.stash[OWN_RUNS] = tempfile.TemporaryDirectory(prefix="tests-")
        os.environ["REPRO_RUNS"] = config.stash[OWN_RUNS].name


def pytest_unconfigure(config):
    """Remove the folder of `pytest_configure`."""
    if OWN_RUNS in config.stash:
        config.stash[OWN_RUNS].cleanup()


def pytest_collection_modifyitems(items):
    """Long files first, in the order of `LONG`; all others as they were collected."""
    folder = Path(__file__).parent
    places = {folder / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path, len(LONG)))


@pytest.fixture(scope="session", autouse=True)
def filmed_once():
    """The bundled skeletons are made once per process, which takes two seconds, and not for every folder of data."""
    from repro.skeleton import readers, synthetic

    once = functools.cache(lambda film=synthetic.generate: tuple(film()))
    with pytest.MonkeyPatch.context() as patch:
        for module in (readers, synthetic):  # the reader has a name of its own for it
            patch.setattr(module, "generate", once)
        yield


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


@pytest.fixture(scope="session")
def bundled_clips(tmp_path_factory) -> Path:
    """The folder of prepared arrays with the bundled clips, which take a while to draw; one for all processes."""
    from repro.audiovisual import data

    folder = tmp_path_factory.getbasetemp()
    root = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "bundled"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(root))
        data.load("synthetic")
    return root / "prepared"


@pytest.fixture
def clips_prepared(tmp_path, bundled_clips):
    """A folder for runs in which the bundled clips are prepared already."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "prepared").symlink_to(bundled_clips, target_is_directory=True)


@pytest.fixture
def runs_root(tmp_path, monkeypatch):
    """An empty folder for runs."""
    monkeypatch.setenv("REPRO_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def folders(tmp_path, monkeypatch, runs_root):
    """No data and no runs: the folder in which both may be made."""
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def declare(folders, monkeypatch):
    """Lets the manifest of a data set have other fields, in a project of the test's own; `folders` is its root."""
    import shutil

    import yaml

    from repro.data import manifest

    shutil.copytree(manifest.shipped("data_manifests"), folders / "data_manifests")
    monkeypatch.setattr(manifest, "project_root", lambda: folders)

    def change(name: str, **fields: object) -> None:
        path = folders / "data_manifests" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | fields, sort_keys=False))

    return change


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
