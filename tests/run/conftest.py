"""Fixtures that several files of this folder ask for by name."""

import pytest

from repro.data import manifest
from repro.run.store import Store


@pytest.fixture
def store(runs) -> Store:
    """A store in the empty folder for runs."""
    return Store(manifest.runs_root())


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Final state and progress of a walk of 20 steps that nothing interrupts."""
    from walks import Walk, progress, train

    folder, learner = tmp_path_factory.mktemp("undisturbed"), Walk()
    train(learner, folder)
    return learner.state_dict(), progress(folder)
