"""environment.yml, pyproject.toml, requirements.txt and the README name the same Pythons and the same packages."""

import re
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from repro.data import manifest

ROOT = manifest.project_root()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LINES = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
PINS = [Requirement(line) for line in LINES if line and not line.startswith(("#", "-", " "))]
SUPPORTED = SpecifierSet(PROJECT["project"]["requires-python"])
PYTHONS = [f"3.{minor}" for minor in range(20) if f"3.{minor}.99" in SUPPORTED]
SYSTEMS = [("linux", "posix", "x86_64"), ("linux", "posix", "aarch64"), ("darwin", "posix", "arm64"),
           ("win32", "nt", "AMD64")]


def wanted():
    """Every direct dependency: of the package, of its extras and of its groups."""
    project = PROJECT["project"]
    groups = [*project["optional-dependencies"].values(), *PROJECT["dependency-groups"].values()]
    return [Requirement(line) for line in [*project["dependencies"], *(line for group in groups for line in group)]]


def pinned(python, system):
    """The pins in force, as (canonical name, version)."""
    platform, name, machine = system
    marks = {"python_version": python, "python_full_version": f"{python}.99", "sys_platform": platform,
             "os_name": name, "platform_machine": machine, "implementation_name": "cpython"}
    chosen = [pin for pin in PINS if pin.marker is None or pin.marker.evaluate(marks)]
    return [(canonicalize_name(pin.name), next(iter(pin.specifier)).version) for pin in chosen]


def test_every_line_is_an_exact_pin():
    assert all(len(pin.specifier) == 1 and next(iter(pin.specifier)).operator == "==" and not pin.url for pin in PINS)
    assert [line for line in LINES if line.startswith("-")] == ["-e ."]


def test_every_python_gets_the_same_versions():
    names = [canonicalize_name(pin.name) for pin in PINS]
    assert sorted(names) == sorted(set(names))  # what differs is at most whether it is there


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system[0])
@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_has_one_pin_that_it_allows(python, system):
    pins = pinned(python, system)
    assert len(pins) == len(dict(pins))
    versions = dict(pins)
    for requirement in wanted():
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_the_environment_of_conda_takes_the_pins_and_a_python_of_ours():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["name"] == PROJECT["project"]["name"]
    python, *others, pip = environment["dependencies"]
    assert python.removeprefix("python=") == PYTHONS[0] and others == ["pip"]
    assert pip == {"pip": ["-r requirements.txt"]}


def test_pythons_agree():
    assert PYTHONS == ["3.11", "3.12", "3.13"]
    assert f"--python-version {PYTHONS[0]} " in LINES[1]
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + PYTHONS[0].replace(".", "")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first, last = re.search(r"only Python ([\d.]+) to ([\d.]+) ", readme).groups()
    assert f">={first}" in str(SUPPORTED).split(",") and first.startswith(f"{PYTHONS[0]}.") and last == PYTHONS[-1]
