"""A whole column of NW-UCLA: the table of the taxonomy with its probes, as `repro run taxonomy` makes it on a GPU."""

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch

import repro
from repro.skeleton import data

GOAL = 8  # minutes, of NW-UCLA


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """One part: the table."""
    return {"taxonomy": lambda: table(device, tiny)}


def table(device: torch.device, tiny: bool) -> dict[str, Any]:
    """Minutes from nothing to the table, of the embedded skeletons where NW-UCLA is not at hand."""
    choices = {"preset": "smoke", "objectives": "random,CE"} if tiny else {"preset": "paper"}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, REPRO_RUNS=folder):
        dataset = "synthetic" if tiny else _dataset()
        start = time.perf_counter()
        found = repro.run_table("taxonomy", dataset, device=device.type, **choices)
        minutes = (time.perf_counter() - start) / 60
    accuracy = dict(zip(found["objectives"], found["ours"], strict=True))
    goal = GOAL if dataset == "ucla" else None  # the embedded skeletons are far fewer
    return {"dataset": dataset, "minutes": minutes, "goal": goal, "accuracy": accuracy}


def _dataset() -> str:
    try:
        data.load("ucla")
    except FileNotFoundError:
        return "synthetic"
    return "ucla"
