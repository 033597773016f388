"""The taxonomy's tables: cells on every device, and what is refused before anything is made."""

import functools

import pytest
import torch

from repro import run_table
from repro.experiments import find_table

pytestmark = pytest.mark.usefixtures("runs")


@pytest.mark.parametrize(("name", "choices"), [("taxonomy", {}), ("encoder_collapse", {"layers": 1})])
def test_a_cell_is_the_same_on_every_device(name, choices, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # as far as a list of cells can tell
    listed = functools.partial(find_table(name).cells, "synthetic", preset="paper", objectives="AE", **choices)
    assert listed(device="cpu") == listed(device="auto") == listed(device="cuda")
    with pytest.raises(ValueError, match="precision='bfloat16' is for a CPU; on cuda it is float32: leave it out"):
        listed(device="cuda", precision="bfloat16")


def test_what_a_table_does_not_compare_is_refused_before_anything_is_made(runs):
    with pytest.raises(ValueError, match="objectives='CE' is not one of: random, AE"):
        run_table("encoder_collapse", "synthetic", preset="smoke", objectives="CE")
    assert not runs.exists()
