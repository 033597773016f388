"""Small runs of all modalities under kills, Ctrl-C, full disks and folders that cannot be written."""

import functools
import os
import re
import shutil
import signal
import time

import pytest
from disks import read_only, small_disk
from kills import finished, phases, trial, undisturbed
from nursery import Nursery, until
from small_runs import make_data
from states import differences, outcome

MOMENTS = {"skeleton": 22, "image": 3, "audiovisual": 14}  # of tests.campaigns.faults: a result, twice, a checkpoint


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Files of all three modalities."""
    folder = tmp_path_factory.mktemp("data")
    make_data(folder)
    return folder


@pytest.fixture(scope="module")
def nursery(tmp_path_factory, data):
    nursery = Nursery("small_runs", tmp_path_factory.mktemp("nursery"), REPRO_DATA=str(data))
    yield nursery
    nursery.close()


@pytest.fixture(scope="module")
def expected(nursery, tmp_path_factory):
    """By modality, a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return functools.cache(lambda modality: undisturbed(nursery, folder / modality, modality))


@pytest.mark.parametrize("modality", MOMENTS)
def test_a_killed_run_ends_as_an_undisturbed_one(tmp_path, nursery, expected, modality):
    result = trial(nursery, tmp_path / "killed", modality, MOMENTS[modality], expected(modality))
    assert result.identical, result


@pytest.mark.parametrize(("modality", "phase", "file"), [
    ("skeleton", "training", "progress.jsonl"), ("image", "evaluation", "checkpoint.pt"),
    ("audiovisual", "preparation", "0000000-*.npz"),
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
    assert not any("Traceback" in line for line in said)
    assert differences(finished(nursery, tmp_path, modality), undisturbed.outcome) == []


def failed(nursery, root, modality):
    """The last line of a command that ends with an error."""
    pid = nursery.start(root, modality)
    assert nursery.status(pid) == 2
    errors = (root / f"{pid}.err").read_text()
    assert "Traceback" not in errors
    return errors.splitlines()[-1]


def assert_goes_on(nursery, root, modality, undisturbed):
    """Given again, the command ends as if undisturbed, with no checkpoint saved twice."""
    before = [name for _, name in phases(root)]
    assert differences(finished(nursery, root, modality), undisturbed.outcome) == []
    saved = [name for _, name in phases(root)].count("checkpoint") - (before[-1] == "checkpoint")
    assert saved == [name for _, name in undisturbed.phases].count("checkpoint")


@pytest.mark.parametrize(("modality", "pages", "phase", "file"), [  # pages of 4 KiB: the disk's size
    ("skeleton", 64, "preparation", r"\d{7}-\d+\.npz"), ("image", 9, "training", r"progress\.jsonl"),
    ("image", 18, "checkpoint", r"checkpoint\.pt"), ("audiovisual", 440, "preparation", r"24\.\w+\.npy"),
])
def test_a_full_disk_is_an_error_that_says_what_to_do(tmp_path, nursery, expected, data, modality, pages, phase, file):
    """Data may be read-only."""
    undisturbed = expected(modality)
    with small_disk(tmp_path / "runs", 4096 * pages) as resize, read_only(data):
        error = failed(nursery, tmp_path, modality)
        assert re.fullmatch(r"repro: \[Errno 28\] No space left on device \(make room there, then give the same "
                            rf"command again, and it goes on where it was\): '{tmp_path}/runs/\S*{file}'", error)
        assert phases(tmp_path)[-1][1] == phase
        resize(2**27)
        assert_goes_on(nursery, tmp_path, modality, undisturbed)


@pytest.mark.parametrize("modality", MOMENTS)
def test_finished_runs_are_read_where_nothing_can_be_written(tmp_path, nursery, expected, modality):
    undisturbed = expected(modality)
    shutil.copytree(undisturbed.runs, tmp_path / "runs")
    leaving = next(tmp_path.rglob("result.json")).with_name("later") / "checkpoint.pt"  # of a kill
    leaving.parent.mkdir()
    leaving.touch()
    with read_only(tmp_path / "runs"):
        pid = nursery.start(tmp_path, modality, "prepared")
        assert nursery.status(pid) == 0
    shutil.rmtree(leaving.parent)
    printed = undisturbed.outcome["printed"]
    assert printed.endswith((tmp_path / f"{pid}.out").read_text())
    assert differences({"printed": printed} | outcome(tmp_path / "runs"), undisturbed.outcome) == []


def test_the_run_of_another_user_is_named_and_can_be_taken_up_later(tmp_path, nursery, expected):
    undisturbed = expected("image")
    pid = nursery.start(tmp_path, "image")
    until(lambda: list(tmp_path.rglob("checkpoint.pt")))
    nursery.kill(pid)
    folder = next(tmp_path.rglob("checkpoint.pt")).parent
    with read_only(folder):
        error = failed(nursery, tmp_path, "image")
    assert re.fullmatch(r"repro: \[Errno \d+\] (Read-only file system|Permission denied) \(give yourself the right to "
                        rf"write there, .*\): '{folder}/\S+'", error)
    assert differences(finished(nursery, tmp_path, "image"), undisturbed.outcome) == []
