"""environment.yml, pyproject.toml, both requirement files and the README name the same Pythons and packages."""

import itertools
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
RUN, DEV = "requirements.txt", "requirements-dev.txt"
LINES = {name: (ROOT / name).read_text(encoding="utf-8").splitlines() for name in (RUN, DEV)}
PINS = {name: [Requirement(line) for line in lines if line and not line.startswith(("#", "-", " "))]
        for name, lines in LINES.items()}
SUPPORTED = SpecifierSet(PROJECT["project"]["requires-python"])
PYTHONS = [f"3.{minor}" for minor in range(20) if f"3.{minor}.99" in SUPPORTED]
SYSTEMS = [("linux", "posix", "x86_64"), ("linux", "posix", "aarch64"), ("darwin", "posix", "arm64"),
           ("win32", "nt", "AMD64")]


def wanted(name):
    """Every direct dependency of the package; in the file of tests, of its extras and of its groups too."""
    project = PROJECT["project"]
    groups = [*project["optional-dependencies"].values(), *PROJECT["dependency-groups"].values()] if name == DEV else []
    return [Requirement(line) for line in [*project["dependencies"], *(line for group in groups for line in group)]]


def pinned(name, python, system):
    """The pins in force, versions by canonical name."""
    platform, family, machine = system
    marks = {"python_version": python, "python_full_version": f"{python}.99", "sys_platform": platform,
             "os_name": family, "platform_machine": machine, "implementation_name": "cpython"}
    chosen = [pin for pin in PINS[name] if pin.marker is None or pin.marker.evaluate(marks)]
    return {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in chosen}


@pytest.mark.parametrize("name", [RUN, DEV])
def test_every_line_is_an_exact_pin_of_a_package_that_no_other_line_pins(name):
    assert all(len(pin.specifier) == 1 and next(iter(pin.specifier)).operator == "==" and not pin.url
               for pin in PINS[name])
    assert [line for line in LINES[name] if line.startswith("-")] == ["-e ."]
    names = [canonicalize_name(pin.name) for pin in PINS[name]]
    assert sorted(names) == sorted(set(names))  # what differs between Pythons is at most whether it is there


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system[0])
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", [RUN, DEV])
def test_every_dependency_has_one_pin_that_it_allows(name, python, system):
    versions = pinned(name, python, system)
    for requirement in wanted(name):
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_what_tests_need_holds_all_that_running_needs_and_running_none_of_it_besides():
    for python, system in itertools.product(PYTHONS, SYSTEMS):
        assert pinned(RUN, python, system).items() < pinned(DEV, python, system).items()
    assert not {"sphinx", "pytest", "playwright", "lightly", "mypy"} & {pin.name for pin in PINS[RUN]}


def test_the_environment_of_conda_takes_the_pins_and_a_python_of_ours():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["name"] == PROJECT["project"]["name"]
    python, *others, pip = environment["dependencies"]
    assert python.removeprefix("python=") == PYTHONS[0] and others == ["pip"]
    assert pip == {"pip": ["-r requirements.txt"]}


def test_what_builds_the_package_is_pinned():
    backends = [Requirement(line) for line in PROJECT["build-system"]["requires"]]
    assert backends and all([pin.operator for pin in backend.specifier] == ["=="] for backend in backends)


def test_pythons_agree():
    assert PYTHONS == ["3.11", "3.12", "3.13"]
    assert all(f"--python-version {PYTHONS[0]} " in lines[1] for lines in LINES.values())
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + PYTHONS[0].replace(".", "")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first, last = re.search(r"need Python ([\d.]+) to ([\d.]+) ", readme).groups()
    assert f">={first}" in str(SUPPORTED).split(",") and first.startswith(f"{PYTHONS[0]}.") and last == PYTHONS[-1]
