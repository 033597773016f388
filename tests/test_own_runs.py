"""Tests see no runs but their own and the committed ones, whatever whoever tests has trained."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from repro.data import manifest

PROJECT = Path(__file__).parents[1]


def test_runs_of_tests_lie_outside_of_the_project():
    assert not manifest.runs_root().resolve().is_relative_to(PROJECT)


@pytest.mark.parametrize("touch", [
    lambda runs: (runs / "cells" / "result.json").read_text(), lambda runs: [*runs.iterdir()],
    lambda runs: [*os.scandir(str(runs))], lambda runs: (runs / "cells").mkdir(), lambda runs: os.listdir(bytes(runs)),
    lambda runs: (runs / ".." / "tests" / ".." / "runs" / "x").read_text(), lambda runs: (runs / "x").unlink(),
    lambda runs: (runs / "x").rename(runs / "y"), lambda runs: Path(os.path.relpath(runs), "x").read_text(),
])
def test_a_test_that_touches_the_runs_of_the_project_fails(touch):
    with pytest.raises(pytest.fail.Exception, match="results of whoever tests would decide"):
        touch(PROJECT / "runs")


def test_a_variable_of_whoever_tests_is_not_theirs_to_see(tmp_path):
    """Nor in processes that tests start."""
    test = tmp_path / "test_seen.py"
    test.write_text("import os, subprocess, sys\n"
                    "def test_seen():\n"
                    "    code = 'import os; print(os.environ[\"REPRO_RUNS\"])'\n"
                    "    assert 'mine' not in subprocess.check_output([sys.executable, '-c', code], text=True)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(PROJECT / "pyproject.toml"), "-n1",
               f"--confcutdir={tmp_path}", "-p", "conftest", str(test)]
    environment = os.environ | {"REPRO_RUNS": str(tmp_path / "mine"), "PYTHONPATH": str(PROJECT / "tests")}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
