"""Finished smoke runs of skeletons, to look into: trained in a second or two."""

import functools
from pathlib import Path

import torch
from repro.skeleton.cell import train
from repro.skeleton.tables import taxonomy_cells

from repro.run.engine import run_cells
from repro.run.store import Store


def smoke_runs(root: Path, objectives: str, **choices: str) -> list:
    """Train the smoke cells of some objectives on the embedded skeletons; returns them."""
    cells = taxonomy_cells(preset="smoke", objectives=objectives, device="cpu", **choices)
    run_cells(cells, functools.partial(train, device=torch.device("cpu")), Store(root))
    return cells
