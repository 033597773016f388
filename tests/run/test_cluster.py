"""The cluster that the engine "dask" starts on this machine: real processes."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, os

from distributed import get_worker

from repro.recipe import Recipe
from repro.run.cluster import Cluster
from repro.run.store import Cell, Store


def train(run, progress):
    return {"linear": float(get_worker().name), "cost": {}}


def main():
    cells = [Cell("taxonomy", "CE", Recipe(), seed, "quick", "synthetic", "d1", 1) for seed in range(4)]
    store = Store(os.environ["REPRO_RUNS"])
    failed = Cluster(2, None, "cuda")(cells, train, store)
    print(json.dumps([len(failed), [store.run(cell).result["linear"] for cell in cells]]))
"""


def test_workers_of_this_machine_have_numbers_by_which_they_take_turns_with_gpus(tmp_path):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-c", "import script; script.main()"]
    own = os.environ | {"REPRO_RUNS": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    failed, names = json.loads(done.stdout.splitlines()[-1])
    assert failed == 0 and set(names) <= {0.0, 1.0}
