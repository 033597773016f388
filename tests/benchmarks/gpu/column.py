"""A whole column of NW-UCLA: the table of the taxonomy with its probes, as `repro run taxonomy` makes it on a GPU."""

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch

import repro
from tests.benchmarks.gpu.skeletons import has_ucla

GOAL = 8  # minutes, of NW-UCLA


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """One part: minutes from nothing to the table, of the bundled skeletons where NW-UCLA is not at hand."""
    choices = {"preset": "smoke", "objectives": "random,CE"} if tiny else {"preset": "paper"}
    dataset = "ucla" if not tiny and has_ucla() else "synthetic"

    def table() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, REPRO_RUNS=folder):
            start = time.perf_counter()
            rows = repro.run_table("taxonomy", dataset, device=device.type, **choices)
            minutes = (time.perf_counter() - start) / 60
        accuracy = dict(zip(rows["objectives"], rows["ours"], strict=True))
        goal = GOAL if dataset == "ucla" else None  # the bundled skeletons are far fewer
        return {"dataset": dataset, "minutes": minutes, "goal": goal, "accuracy": accuracy}

    return {"taxonomy": table}
