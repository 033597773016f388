"""The benchmark of a GPU, tried on a CPU: all sections run, what runs at once computes what runs alone; the figure."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from nursery import until

from tests.benchmarks.gpu.__main__ import SECONDS, USUAL, distances, of_one_machine, short
from tests.benchmarks.gpu.apart import apart, measured
from tests.benchmarks.gpu.skeletons import Column
from tests.benchmarks.turns import largest

ROOT = Path(__file__).parents[2]
MISSING = ("av", "dask", "distributed", "IPython", "ipywidgets", "kornia", "librosa", "lightly", "matplotlib",
           "nbconvert", "packaging", "papermill", "pooch", "requests", "safetensors", "seaborn", "sklearn",
           "statsmodels")
PARTS = {
    "limits": ["copy", "float32", "bfloat16"],
    "skeletons": ["one after another", "processes", "captured", "streams", "profile"],
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


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What a run without the libraries that a machine may lack has written."""
    folder = tmp_path_factory.mktemp("gpu")
    output = folder / "results" / "gpu.json"
    (folder / "tests").mkdir()
    (folder / "tests" / "__init__.py").touch()  # as some libraries install one: it must not stand in the way
    script = SCRIPT.format(missing=MISSING, output=str(output), sections=",".join(PARTS))
    own = {"REPRO_RUNS": str(folder), "REPRO_DATA": str(folder), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
           "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "matplotlib is not installed: no figure" in done.stderr
    assert [path.name for path in output.parent.iterdir()] == ["gpu.json"]
    return json.loads(output.read_text())


def test_every_part_of_every_section_finds_something(found):
    assert set(found) == {*PARTS, "distances"}
    for name, parts in PARTS.items():
        assert list(found[name]) == ["hardware", *parts]
        for part in parts:
            assert "error" not in found[name][part], found[name][part]
            assert found[name][part].pop("seconds in all") > 0 and found[name][part]


def test_cells_at_once_compute_what_each_computes_alone(found):
    for way in ("processes", "captured", "streams"):
        runs = list(found["skeletons"][way]["at once"].values())
        assert all(run["times"] > 0 for run in runs)
        compared = [run["difference"] for run in runs if "difference" in run]
        assert compared and max(compared) < 1e-5


def test_a_device_equals_itself(found):
    for part in PARTS["equality"]:
        assert found["equality"][part]["equal"] and found["equality"][part]["steps"] >= 2
    assert found["equality"]["skeletons"]["difference"] == {"losses": 0, "features": 0}


def test_every_hot_path_has_a_share_of_its_limit(found):
    paths = [work["path"] for work in found["distances"]]
    assert len(set(paths)) == len(paths)
    assert {path.partition(",")[0] for path in paths} == {"skeletons", "selection of negatives", "images", "clips"}
    assert all(0 < work["share"] < math.inf for work in found["distances"])


def test_the_figure_has_what_was_found_and_can_be_drawn_of_nothing(found):
    from tests.benchmarks.gpu import figure

    above, middle, below = figure.draw(found).axes
    assert [len(line.get_xdata()) for line in above.lines] == [2, 2, 1]
    assert [len(line.get_xdata()) for line in middle.lines] == [2, 2, 2]
    assert len(below.patches) == len(found["distances"])
    assert len(figure.draw({}).axes) == 3


def test_a_part_that_fails_leaves_the_others_alone(capsys):
    def fail():
        raise RuntimeError("no such kernel")

    parts = dict(measured({"first": lambda: {"rate": 1.0}, "bad": fail, "last": lambda: {"rate": 2.0}}))
    assert [part.pop("seconds in all") >= 0 for part in parts.values()] == [True] * 3
    assert parts == {"first": {"rate": 1.0}, "bad": {"error": "RuntimeError: no such kernel"}, "last": {"rate": 2.0}}
    assert "no such kernel" in capsys.readouterr().err


@pytest.mark.parametrize(("ending", "error"), [
    ("", {}), ("sys.exit(3)", {"error": "its process ended with status 3"}),
    ("subprocess.run(['sleep', '60'])", {"error": "stopped after 2 s"}),
    ("print('[\"float32\", {', end='', flush=True); sys.exit(3)", {"error": "its process ended with status 3"}),
])
def test_a_process_that_fails_or_hangs_loses_only_what_it_has_not_found(ending, error):
    script = f"import subprocess, sys; print('[\"copy\", {{\"rate\": 5}}]', flush=True); {ending}"
    assert apart([sys.executable, "-c", script], 2 if "sleep" in ending else 60) == {"copy": {"rate": 5}} | error


def test_a_process_ends_with_an_interrupted_one(tmp_path):
    script = (f"import pathlib, os, time; pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid())); "
              "print('[\"copy\", 1, 2]', flush=True); time.sleep(60)")  # which is not a name and values
    with pytest.raises(ValueError, match="too many values"):
        apart([sys.executable, "-c", script], 60)
    until(lambda: not Path("/proc", (tmp_path / "pid").read_text()).exists(), seconds=10)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_without_a_device_nothing_is_overwritten(tmp_path):
    output = tmp_path / "gpu.json"
    output.write_text('{"limits": {"copy": {"rate": 5}}}')
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--output", str(output), "--sections", "limits"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "torch finds no CUDA device here" in done.stderr
    assert json.loads(output.read_text()) == {"limits": {"copy": {"rate": 5}}}


def test_a_difference_that_is_not_a_number_is_not_overlooked():
    assert largest([0.5, math.nan]) == largest([math.nan, 0.5]) == math.inf
    column = Column(torch.device("cpu"), tiny=True)
    column.losses = {"CE": [1.0, 2.0]}
    assert column.difference("CE", [1.5, math.nan]) == math.inf
    assert column.difference("CE", [1.5, 2.0]) == 0.5


def test_all_sections_stopped_in_the_end_leave_time_for_imports_and_the_figure():
    assert sum(SECONDS[name] for name in USUAL) <= 9 * 60 - 20


def test_what_was_measured_on_other_hardware_is_left_out(capsys):
    here, there = {"device": "a", "torch": "2"}, {"device": "b", "torch": "2"}
    parts = {"limits": {"hardware": there}, "clips": {"hardware": here}, "images": {"error": "late"}, "distances": []}
    kept = of_one_machine(parts | {"selection": {"hardware": here}}, "selection")
    assert list(kept) == ["clips", "images", "distances", "selection"]
    assert "left out, as measured on other hardware: limits" in capsys.readouterr().err
    assert of_one_machine(parts, "images") == parts  # it ended before it could say where it ran


def test_a_share_is_the_rate_over_that_of_the_limit():
    work = {"path": "a step", "limit": "float32", "amount": 30.0, "seconds": 2.0}
    unknown = work | {"limit": "bfloat16"}
    parts = {
        "limits": {"hardware": {}, "float32": {"rate": 60.0}, "bfloat16": {"error": "no"}},
        "images": {"small": {"work": [work, unknown], "table": "long"}, "error": "stopped after 70 s"},
    }
    assert distances(parts) == [{"path": "a step", "limit": "float32", "share": 0.25}]
    assert short(parts)["images"] == {"small": {}, "error": "stopped after 70 s"}
