"""Fixtures that several files of this folder ask for by name."""

import threading
from types import SimpleNamespace

import pytest
from made_up_training import RUNS

from repro.contrast.objectives import raised
from repro.data import manifest
from repro.run.store import Store


@pytest.fixture
def store(runs_root) -> Store:
    """A store in the empty folder for runs."""
    return Store(manifest.runs_root())


@pytest.fixture
def clock(monkeypatch):
    """Time for `fit` and `forecast` that passes only when `clock.now` is raised."""
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now, perf_counter=lambda: clock.now)
    for module in ("fit", "plan"):
        monkeypatch.setattr(f"repro.run.{module}.time", clock)
    return clock


@pytest.fixture
def small_buckets(monkeypatch):
    """Buckets of five frames: 5, 10 and 12, the longest. Objectives look at lengths on a CPU alone."""
    unread = "repro.contrast.objectives._checked_sequences"
    monkeypatch.setattr(unread, lambda lengths, **sequences: raised(*sequences.values()))
    monkeypatch.setattr("repro.skeleton.pretrain.BUCKET", 5)


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
