"""A wheel holds all that the package reads, and works where there is no checkout."""

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from nursery import python

from repro.data import manifest
from repro.run.store import read_runs

ROOT = manifest.project_root()
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "repro", "data_manifests", "figures", "weights")
PIP = (sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check")
OFFLINE = ("--no-index", "--no-deps", "--no-build-isolation")
buildable = all(importlib.util.find_spec(name) for name in ("pip", "setuptools"))
needs_backend = pytest.mark.skipif(not buildable, reason="builds a wheel with pip and setuptools, which are not here")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that a wheel of this checkout was unpacked into, which is how its files lie when it is installed."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    copy_sources(source)
    called(*PIP, "wheel", *OFFLINE, "--wheel-dir", str(source / "dist"), str(source))
    wheel, = (source / "dist").glob("repro-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def copy_sources(target):
    """What a wheel is built of; building writes beside it."""
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, target / name)


def called(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_backend
def test_above_a_clone_the_package_is_found_and_not_the_clone(tmp_path):
    """There the clone is a folder of the package's name, which Python takes for it unless another is on its path."""
    clone = tmp_path / "repro"
    clone.mkdir()
    copy_sources(clone)
    called(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    site, = (tmp_path / "venv" / "lib").glob("*/site-packages")
    (site / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    python = tmp_path / "venv" / "bin" / "python"
    called(*PIP, "--python", str(python), "install", *OFFLINE, "--editable", str(clone))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    where = called(str(python), "-c", "import repro; print(repro.__file__)", cwd=tmp_path, env=environment)
    assert where.strip() == str(clone / "repro" / "__init__.py")


@pytest.fixture
def away(installed, tmp_path):
    """Runs the installed package's command line in a folder of its own; returns its output."""
    environment = {name: value for name, value in os.environ.items() if name not in ("REPRO_DATA", "REPRO_RUNS")}
    environment |= {"PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}

    def call(*arguments):
        done = python("-m", "repro", *arguments, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@needs_backend
def test_the_wheel_holds_manifests_printed_numbers_and_runs(installed):
    kinds = ("*.py", "*.csv", "*.txt", "*.yaml", "README.md")
    package = [path for kind in kinds for path in (ROOT / "repro").rglob(kind)]
    beside = [ROOT / "figures" / "runs.csv", *(ROOT / "weights").rglob("*.safetensors")]
    beside += (ROOT / "data_manifests").iterdir()
    assert {path.suffix for path in package} == {".py", ".csv", ".txt", ".yaml", ".md"} and len(beside) > 10
    for path in package:
        assert (installed / path.relative_to(ROOT)).read_bytes() == path.read_bytes(), path
    for path in beside:
        assert (installed / "repro" / path.relative_to(ROOT)).read_bytes() == path.read_bytes(), path


@needs_backend
def test_installed_it_lists_data_and_committed_runs(away, tmp_path):
    listed = away("data", "list")
    assert sorted(line.split()[0] for line in listed.splitlines() if not line.startswith(" ")) == manifest.names()
    assert str(tmp_path / "data" / "nw_ucla" / "all_sqe.zip") in listed
    ids = {line.split()[0] for line in away("results", "list").splitlines()[1:]}  # below the header
    assert ids == set(read_runs(ROOT / "figures" / "runs.csv")["id"])
    assert not list(tmp_path.iterdir())


@needs_backend
def test_installed_it_trains_and_exports_in_the_current_folder(away, tmp_path):
    assert "CE" in away("run", "taxonomy", "--preset", "smoke", "--objectives", "CE")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 1
    path = tmp_path / "figures" / "runs.csv"
    assert away("results", "export").startswith(f"{path}: 0 runs, 0 of them new; left out, of smoke runs: 1")
    assert path.exists()
