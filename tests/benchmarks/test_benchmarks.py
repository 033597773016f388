"""Every benchmark can be started; all sections of a GPU's are tried on a CPU."""

import importlib
import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.benchmarks import ntu_epoch, taxonomy_step
from tests.benchmarks.gpu.__main__ import SECONDS, USUAL, apart, section, shares, short
from tests.benchmarks.gpu.captured import Captured
from tests.benchmarks.gpu.clips import FilledPools
from tests.benchmarks.gpu.equality import ClipsDrawnOnCpu, ImagesDrawnOnCpu
from tests.benchmarks.gpu.skeletons import Column
from tests.benchmarks.stopwatch import largest

HERE = Path(__file__).parent
SCRIPTS = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith(("test_", "__", "stopwatch")))
OPTIONAL = ("kornia", "lightly")  # the dependency group "bench"
MISSING = ("av", "dask", "distributed", "IPython", "ipywidgets", "kornia", "librosa", "lightly", "matplotlib",
           "nbconvert", "packaging", "papermill", "pooch", "requests", "safetensors", "seaborn", "sklearn",
           "statsmodels")
PARTS = {
    "limits": ["copy", "float32", "bfloat16"],
    "skeletons": ["one after another", "processes", "captured", "profile"],
    "selection": ["paper size", "waiting", "by pool", "by chosen", "by features"],
    "images": ["small stem", "views"],
    "clips": ["xmoco, bfloat16", "cmacc, bfloat16", "cmacc, float32"],
    "equality": ["skeletons", "skeletons, captured", "images", "clips"],
    "column": ["taxonomy"],
}
SCRIPT = """
import runpy, sys
sys.modules.update(dict.fromkeys({missing}))
sys.argv[1:] = ["--device", "cpu", "--output", {output!r}, "--sections", {sections!r}]
runpy.run_module("tests.benchmarks.gpu", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_can_be_imported_and_says_how_it_is_called(name):
    source = (HERE / f"{name}.py").read_text()
    lacking = [library for library in OPTIONAL
               if f"\nimport {library}" in source and not importlib.util.find_spec(library)]
    if lacking:
        pytest.skip(f"needs {lacking[0]}")
    assert f"python3 -m tests.benchmarks.{name}" in importlib.import_module(f"tests.benchmarks.{name}").__doc__


@pytest.mark.parametrize("learner", [
    Captured, ClipsDrawnOnCpu, FilledPools, ImagesDrawnOnCpu, *list(ntu_epoch.KINDS.values())[1:], taxonomy_step.Plain,
])
def test_what_the_learner_of_a_benchmark_overrides_is_there(learner):
    methods = {name for name, value in vars(learner).items() if callable(value)}
    assert methods and methods <= {*dir(learner.__base__)}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What a run without the libraries that a machine may lack has written."""
    folder = tmp_path_factory.mktemp("gpu")
    output = folder / "results" / "gpu.json"
    (folder / "tests").mkdir()
    (folder / "tests" / "__init__.py").touch()  # as some libraries install one: it must not stand in the way
    script = SCRIPT.format(missing=MISSING, output=str(output), sections=",".join(PARTS))
    own = {"REPRO_RUNS": str(folder), "REPRO_DATA": str(folder), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
           "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=HERE.parents[1], env=os.environ | own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text())


def test_every_part_of_every_section_measures_something(results):
    assert set(results) == {*PARTS, "shares"}
    for name, parts in PARTS.items():
        assert list(results[name]) == ["hardware", *parts]
        for part in parts:
            assert "error" not in results[name][part], results[name][part]
            assert results[name][part].pop("seconds in all") > 0 and results[name][part]


def test_cells_at_once_compute_what_each_computes_alone(results):
    for way in ("processes", "captured"):
        first, *others = results["skeletons"][way]["at once"].values()
        assert first["difference"] < 1e-5 and all(run["times"] > 0 for run in (first, *others))


def test_a_device_equals_itself(results):
    for part in PARTS["equality"]:
        assert results["equality"][part]["equal"] and results["equality"][part]["steps"] >= 2
    assert results["equality"]["skeletons"]["difference"] == {"losses": 0, "features": 0}


def test_every_hot_path_has_a_share_of_its_limit(results):
    paths = [work["path"] for work in results["shares"]]
    assert len(set(paths)) == len(paths)
    assert {path.partition(",")[0] for path in paths} == {"skeletons", "selection of negatives", "images", "clips"}
    assert all(0 < work["share"] < math.inf for work in results["shares"])


def test_a_part_that_fails_leaves_the_others_alone(capsys, monkeypatch):
    def fail():
        raise RuntimeError("no such kernel")

    parts = {"first": lambda: {"rate": 1.0}, "bad": fail, "last": lambda: {"rate": 2.0}}
    monkeypatch.setattr("tests.benchmarks.gpu.limits.parts", lambda device, tiny: parts)
    measured = dict(section("limits", "cpu"))
    assert measured.pop("hardware") and all(part.pop("seconds in all") >= 0 for part in measured.values())
    error = {"error": "RuntimeError: no such kernel"}
    assert measured == {"first": {"rate": 1.0}, "bad": error, "last": {"rate": 2.0}}
    assert "no such kernel" in capsys.readouterr().err


@pytest.mark.parametrize(("ending", "error"), [
    ("", {}), ("sys.exit(3)", {"error": "its process ended with status 3"}),
    ("subprocess.run(['sleep', '60'])", {"error": "stopped after 2 s"}),
    ("print('[\"float32\", {', end='', flush=True); sys.exit(3)", {"error": "its process ended with status 3"}),
])
def test_a_process_that_fails_or_hangs_loses_only_what_it_has_not_measured(ending, error):
    script = f"import subprocess, sys; print('[\"copy\", {{\"rate\": 5}}]', flush=True); {ending}"
    assert apart([sys.executable, "-c", script], 2 if "sleep" in ending else 60) == {"copy": {"rate": 5}} | error


def test_a_difference_that_is_not_a_number_is_not_overlooked():
    assert largest([0.5, math.nan]) == largest([math.nan, 0.5]) == math.inf
    column = Column(torch.device("cpu"), tiny=True)
    column.losses = {"CE": [1.0, 2.0]}
    assert column.difference("CE", [1.5, math.nan]) == math.inf
    assert column.difference("CE", [1.5, 2.0]) == 0.5


def test_all_sections_stopped_in_the_end_leave_time_for_imports():
    assert sum(SECONDS[name] for name in USUAL) <= 9 * 60 - 20


def test_a_share_is_the_rate_over_that_of_the_limit():
    work = {"path": "a step", "limit": "float32", "amount": 30.0, "seconds": 2.0}
    unknown = work | {"limit": "bfloat16"}
    parts = {
        "limits": {"hardware": {}, "float32": {"rate": 60.0}, "bfloat16": {"error": "no"}},
        "images": {"small": {"work": [work, unknown], "table": "long"}, "error": "stopped after 70 s"},
    }
    assert shares(parts) == [{"path": "a step", "limit": "float32", "share": 0.25}]
    assert short(parts)["images"] == {"small": {}, "error": "stopped after 70 s"}
