"""Worker processes of one machine: what they see, and what becomes of errors in them."""

import json
import os
import subprocess
import sys

import pytest
import torch
from nursery import HELPERS

from repro.run.local import environment

SCRIPT = """
import dataclasses, errno, json, os, sys
from pathlib import Path

from one_cell import CELL

import repro.run.local
from repro.run.local import Local
from repro.run.store import Store


def train(run, progress):
    print("words")  # not mistaken for an answer
    with open(Path(os.environ["REPRO_RUNS"]) / "tried.txt", "a") as file:
        file.write(f"{run.cell.seed} {os.getpid()} {os.environ['CUDA_VISIBLE_DEVICES']}\\n")
    if run.cell.seed == 1:
        raise MemoryError("no room")
    if run.cell.seed == 2 and not (run.folder / "once").exists():
        (run.folder / "once").touch()
        os._exit(7)
    if run.cell.seed == 4:
        raise OSError(errno.ENOSPC, "No space left on device (make room there)", "runs/checkpoint.pt")
    return {"linear": 1.0, "cost": {}}


def main(workers):
    repro.run.local.torch.cuda.device_count = lambda: 2
    cells = [dataclasses.replace(CELL, seed=seed) for seed in range(5)]
    store = Store(os.environ["REPRO_RUNS"])
    failed = Local(workers)(cells, train, store)
    print()
    print(json.dumps([{cell.seed: str(failed[cell.key]) for cell in cells if cell.key in failed},
                      [store.run(cell).result is not None for cell in cells]]))
"""


@pytest.mark.parametrize(("workers", "gpus"), [(1, {"4"}), (2, {"4", "6"})])
def test_an_error_but_of_the_disk_is_tried_once_more_in_a_new_process_and_every_process_has_a_gpu_of_its_own(
    tmp_path, workers, gpus
):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-c", f"import script; script.main({workers})"]
    (tmp_path / "sitecustomize.py").write_text("print('words of a Python that starts', end='')")
    path = os.pathsep.join(filter(None, [str(tmp_path), str(HELPERS), os.environ.get("PYTHONPATH")]))
    own = os.environ | {"REPRO_RUNS": str(tmp_path), "CUDA_VISIBLE_DEVICES": "4,6", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    failed, finished = json.loads(done.stdout.splitlines()[-1])
    full = "OSError: [Errno 28] No space left on device (make room there): 'runs/checkpoint.pt'"
    assert failed == {"1": "CE, seed 1: MemoryError: no room (tried twice)", "4": f"CE, seed 4: {full}"}
    assert finished == [True, False, True, True, False]
    assert done.stderr.count("MemoryError: no room") == 3 and "Traceback" in done.stderr
    for seed, lost in ((1, "MemoryError: no room"), (2, "its process ended with status 7")):
        assert f"CE, seed {seed}: {lost}; trying once more\n" in done.stderr
    tried = [line.split() for line in (tmp_path / "tried.txt").read_text().splitlines()]
    assert sorted(seed for seed, _, _ in tried) == ["0", "1", "1", "2", "2", "3", "4"]
    assert len({process for seed, process, _ in tried if seed in "12"}) == 4
    assert {gpu for _, _, gpu in tried} == gpus


@pytest.mark.parametrize(
    ("visible", "count", "seen"),
    [(None, 1, [None, None]), ("3", 1, ["3", "3"]), (None, 2, ["0", "1", "0"]), ("5, 2,7", 3, ["5", "2", "7", "5"])],
)
def test_workers_take_turns_with_the_gpus(monkeypatch, visible, count, seen):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [environment(number).get("CUDA_VISIBLE_DEVICES") for number in range(len(seen))] == seen
