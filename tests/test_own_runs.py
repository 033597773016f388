"""Tests see no runs but their own and the committed ones, whatever whoever tests has trained."""

import os
from pathlib import Path

import pytest

from repro.data import manifest

PROJECT = Path(__file__).parents[1]


def test_runs_of_tests_lie_in_a_folder_of_theirs_whatever_the_variable_of_whoever_tests():
    assert manifest.runs_root().name.startswith("runs-of-tests-")
    assert not manifest.runs_root().resolve().is_relative_to(PROJECT)


@pytest.mark.parametrize("touch", [
    lambda runs_root: (runs_root / "runs" / "result.json").read_text(), lambda runs_root: [*runs_root.iterdir()],
    lambda runs_root: [*os.scandir(str(runs_root))], lambda runs_root: (runs_root / "runs").mkdir(),
    lambda runs_root: os.listdir(bytes(runs_root)),
    lambda runs_root: (runs_root / ".." / "tests" / ".." / "runs" / "x").read_text(),
    lambda runs_root: (runs_root / "x").unlink(),
    lambda runs_root: (runs_root / "x").rename(runs_root / "y"),
    lambda runs_root: Path(os.path.relpath(runs_root), "x").read_text(),
])
def test_a_test_that_touches_the_runs_of_the_project_fails(touch):
    with pytest.raises(pytest.fail.Exception, match="results of whoever tests would decide"):
        touch(PROJECT / "runs")
