"""Small cells of all modalities under kills, Ctrl-C, full disks and folders that cannot be written."""

import functools
import os
import signal
import time

import pytest
from kills import differences, finished, phases, trial, undisturbed
from nursery import Nursery, until
from small_cells import make_data

MOMENTS = {"skeleton": (0, 1, 2), "image": (3, 4, 5), "audiovisual": (1, 2, 6)}  # of tests.campaigns.faults


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nursery")
    make_data(folder / "data")
    nursery = Nursery("small_cells", folder, REPRO_DATA=str(folder / "data"))
    yield nursery
    nursery.close()


@pytest.fixture(scope="module")
def expected(nursery, tmp_path_factory):
    """By modality, a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return functools.cache(lambda modality: undisturbed(nursery, folder / modality, modality))


@pytest.mark.parametrize("modality", MOMENTS)
def test_a_killed_cell_ends_as_an_undisturbed_one(tmp_path, nursery, expected, modality):
    trials = [trial(nursery, tmp_path / f"{number}", modality, number, expected(modality))
              for number in MOMENTS[modality]]
    assert all(each.identical for each in trials), trials


@pytest.mark.parametrize(("modality", "phase", "file"), [
    ("skeleton", "training", "progress.jsonl"), ("image", "evaluation", "checkpoint.pt"),
    ("audiovisual", "preparation", "24.jsonl"),
])
def test_ctrl_c_stops_within_two_seconds_and_says_how_to_go_on(tmp_path, nursery, expected, modality, phase, file):
    undisturbed = expected(modality)
    pid = nursery.start(tmp_path, modality, "slow")
    until(lambda: phase in [name for _, name in phases(tmp_path)] and list(tmp_path.rglob(file)))
    began = time.monotonic()
    os.kill(pid, signal.SIGINT)
    assert nursery.status(pid) == 130 and time.monotonic() - began < 2
    *said, last = (tmp_path / f"{pid}.err").read_text().splitlines()
    assert last == "repro: stopped; nothing finished is lost, give the same command again to go on"
    where = f"asked for again, the table goes on from the last checkpoints in {tmp_path / 'runs'}"
    assert (said[-1] == where) == (phase != "preparation") and not any("Traceback" in line for line in said)
    assert differences(finished(nursery, tmp_path, modality), undisturbed.outcome) == []
