"""Tests see no runs but their own and the committed ones, whatever whoever tests has trained."""

import os
from pathlib import Path

import pytest

from repro.data import manifest

PROJECT = Path(__file__).parents[1]


def test_runs_of_tests_lie_in_a_folder_of_theirs_whatever_the_variable_of_whoever_tests():
    assert manifest.runs_root().name.startswith("tests-")
    assert not manifest.runs_root().resolve().is_relative_to(PROJECT)


@pytest.mark.parametrize("touch", [
    lambda root: (root / "runs" / "result.json").read_text(), lambda root: [*root.iterdir()],
    lambda root: [*os.scandir(str(root))], lambda root: (root / "runs").mkdir(),
    lambda root: os.listdir(bytes(root)), lambda root: (root / ".." / "tests" / ".." / "runs" / "x").read_text(),
    lambda root: (root / "x").unlink(), lambda root: (root / "x").rename(root / "y"),
    lambda root: Path(os.path.relpath(root), "x").read_text(),
])
def test_a_test_that_touches_the_runs_of_the_project_fails(touch):
    with pytest.raises(pytest.fail.Exception, match="results of whoever tests would decide"):
        touch(PROJECT / "runs")
