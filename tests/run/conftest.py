"""Fixtures that several files of this folder ask for by name."""

import threading

import pytest
from made_up_training import CELLS

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


class Holder(threading.Thread):
    """Claims a cell as another process would, until told to let go; completes it with `result` if there is one."""

    def __init__(self, run, result=None):
        super().__init__(daemon=True)
        self.cell_run, self.result = run, result
        self.has_claim, self.let_go = threading.Event(), threading.Event()

    def run(self):
        with self.cell_run.claim() as claimed:
            assert claimed
            self.has_claim.set()
            assert self.let_go.wait(60)
            if self.result is not None:
                self.cell_run.finish(self.result)


@pytest.fixture
def held(store):
    """Holds a cell elsewhere, by default CELLS[0]; returns a function that starts it with the result it shall have."""
    holders = []

    def start(result=None, cell=CELLS[0]) -> Holder:
        holders.append(Holder(store.run(cell), result))
        holders[-1].start()
        assert holders[-1].has_claim.wait(60)
        return holders[-1]

    yield start
    for holder in holders:
        holder.let_go.set()
        holder.join(60)
        assert not holder.is_alive()
