"""Finished smoke runs of skeletons, to look into: trained in a second or two."""

import functools
from pathlib import Path

import torch

from repro.experiments import find_table
from repro.run.engine import train_runs
from repro.run.store import Store
from repro.run.training import train


def smoke_runs(root: Path, objectives: str, **choices: str) -> list:
    """Train the smoke runs of some objectives on the bundled skeletons; returns them."""
    table = find_table("taxonomy")
    runs = table.runs(preset="smoke", objectives=objectives, device="cpu", **choices)
    train_runs(runs, functools.partial(train, study=table.study, device=torch.device("cpu")), Store(root))
    return runs
