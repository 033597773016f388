"""Fixtures that several files of this folder ask for by name."""

import dataclasses

import pytest
import torch

from repro.skeleton import study
from repro.skeleton.recipe import smoke


@pytest.fixture(scope="session")
def data():
    """Every fifth sequence of the bundled data."""
    whole = study.data_of(smoke("synthetic", "CE"))
    names = ("lengths", "labels", "train", "test", "views", "subjects")
    rows = (torch.arange(len(whole.lengths)) % 5 == 0).repeat_interleave(whole.lengths)
    return dataclasses.replace(whole, frames=whole.frames[rows], **{name: getattr(whole, name)[::5] for name in names})
