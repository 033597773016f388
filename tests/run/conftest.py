"""Fixtures that several files of this folder ask for by name."""

import threading

import pytest
from made_up_training import RUNS

from repro.data import manifest
from repro.run.store import Store


@pytest.fixture
def store(runs_root) -> Store:
    """A store in the empty folder for runs."""
    return Store(manifest.runs_root())


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Final state and progress of a walk of 20 steps that nothing interrupts."""
    from walks import Walk, progress, train

    folder, learner = tmp_path_factory.mktemp("undisturbed"), Walk()
    train(learner, folder)
    return learner.state_dict(), progress(folder)


@pytest.fixture
def held(store):
    """Holds a run as another process would; a function that begins to, and returns the event that lets go of it.

    The run, by default RUNS[0], is completed then with the result, if there is one.
    """
    holding = []

    def start(result=None, run=RUNS[0]) -> threading.Event:
        folder, has_claim, let_go = store.folder(run), threading.Event(), threading.Event()

        def hold() -> None:
            with folder.claim() as claimed:
                assert claimed
                has_claim.set()
                assert let_go.wait(60)
                if result is not None:
                    folder.finish(result)

        holding.append((threading.Thread(target=hold, daemon=True), let_go))
        holding[-1][0].start()
        assert has_claim.wait(60)
        return let_go

    yield start
    for thread, let_go in holding:
        let_go.set()
        thread.join(60)
        assert not thread.is_alive()
