"""Every benchmark can be started; all parts of a GPU's are tried on a CPU."""

import importlib
import json
import os
from pathlib import Path

import pytest
import torch
from nursery import HELPERS, python

from benchmarks import gpu, skeleton_step

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "stopwatch")
MISSING = ("av", "dask", "distributed", "IPython", "ipywidgets", "librosa", "lightly", "nbconvert",
           "papermill", "pooch", "requests", "safetensors", "sklearn", "statsmodels")
SCRIPT = """
import runpy, sys
sys.modules.update(dict.fromkeys({missing}))
from made_up_images import use_tiny_trunk
from pytest import MonkeyPatch
use_tiny_trunk(MonkeyPatch())
sys.argv[1:] = ["--device", "cpu", "--output", {output!r}]
runpy.run_module("benchmarks.gpu", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_can_be_imported_and_says_how_it_is_called(name):
    assert f"python3 -m benchmarks.{name}" in importlib.import_module(f"benchmarks.{name}").__doc__


@pytest.mark.parametrize("learner", [gpu.FilledPools, skeleton_step.Padded, skeleton_step.PaddedToTheLongest])
def test_what_the_learner_of_a_benchmark_overrides_is_there(learner):
    methods = {name for name, value in vars(learner).items() if callable(value)}
    assert methods and methods <= {*dir(learner.__base__)}


def test_every_part_of_a_gpu_measures_something_without_the_libraries_that_a_machine_may_lack(tmp_path):
    output = tmp_path / "results" / "gpu.json"
    own = {"REPRO_RUNS": str(tmp_path), "REPRO_DATA": str(tmp_path), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
           "PYTHONPATH": str(HELPERS)}
    script = SCRIPT.format(missing=MISSING, output=str(output))
    done = python("-c", script, cwd=BENCHMARKS.parent, env=os.environ | own)
    assert done.returncode == 0, done.stderr
    results = json.loads(output.read_text())
    assert list(results) == ["hardware", *gpu.PARTS]
    for name, rows in results.items():
        for row in rows if name != "hardware" else []:
            assert "error" not in row and all(value >= 0 for value in row.values() if isinstance(value, float)), row
    assert all(row["all"] == 0 for row in results["equality"])  # a CPU records nothing


def test_a_part_that_fails_leaves_the_others_alone_and_none_begins_when_time_is_up(monkeypatch, capsys):
    def failing(device, tiny):
        yield {"what": "first"}
        raise RuntimeError("no such kernel")

    monkeypatch.setitem(gpu.PARTS, "views", failing)
    first, error = gpu.rows_of("views", torch.device("cpu"), gpu.time.perf_counter())
    assert first["what"] == "first" and error["error"] == "RuntimeError: no such kernel"
    assert "no such kernel" in capsys.readouterr().err
    late, = gpu.rows_of("views", torch.device("cpu"), gpu.time.perf_counter() - gpu.TIME - 1)
    assert "no time was left" in late["error"]
