"""Processes that prepare: how they end, and what is made once however many ask."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from disks import read_only
from nursery import until

from repro.run.parallel import made_once

SLEEPERS = """
import sys, time
from pathlib import Path
from repro.run.parallel import run_jobs

def sleep(number):
    Path(sys.argv[1], f"job {number}").touch()
    time.sleep(60)

if __name__ == "__main__":
    list(run_jobs(sleep, [(number,) for number in range(8)], 2))
"""


MAKERS = """
import sys, time
from pathlib import Path
from repro.run.parallel import made_once

folder = Path(sys.argv[1])

def make():
    with open(folder / "made.txt", "a") as file:
        file.write("made\\n")
    time.sleep(0.5)
    return "the same"

print(made_once(folder / "new" / "it", Path.read_text, make, Path.write_text, (OSError,)))
"""


def of_session(session):
    """Commands of the processes that belong to a session, those that have ended left out."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, theirs, *_ = path.read_text().rpartition(")")[2].split()
            if int(theirs) == session and state not in "ZX":
                found.append(path.with_name("cmdline").read_text().replace("\0", " "))
        except OSError:  # it has ended meanwhile
            continue
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="asks Linux for the processes of a session")
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["one process", "all, as a terminal does"])
def test_ctrl_c_ends_the_processes_at_once_whatever_they_do(tmp_path, send):
    (tmp_path / "sleepers.py").write_text(SLEEPERS)
    process = subprocess.Popen([sys.executable, tmp_path / "sleepers.py", tmp_path], stderr=subprocess.PIPE, text=True,
                               start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        until(lambda: len(list(tmp_path.glob("job *"))) == 2)
        began = time.monotonic()
        send(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=50)
        assert time.monotonic() - began < 2
        assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt")
        until(lambda: not of_session(process.pid), seconds=2)
        assert len(list(tmp_path.glob("job *"))) == 2
    finally:
        process.kill()


def test_processes_that_ask_at_once_have_it_made_once(tmp_path):
    command = [sys.executable, "-c", MAKERS, tmp_path]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for _ in range(4)]
    said = [process.communicate(timeout=60) for process in processes]
    assert [found for found, _ in said] == ["the same\n"] * 4
    assert (tmp_path / "made.txt").read_text() == "made\n"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["it", "it.lock"]


def made(path, value="made", read=Path.read_text):
    """What `made_once` gives where making gives `value`, or does not happen if that is None."""
    def make():
        assert value is not None, "made again"
        return value

    return made_once(path, read, make, Path.write_text, (OSError, ValueError))


def whole(path):
    """The text of a file that ends with a full stop."""
    if not path.read_text().endswith("."):
        raise ValueError("cut off")
    return path.read_text()


def test_it_is_made_where_it_is_missing_or_damaged(tmp_path, caplog):
    path = tmp_path / "it[1].txt"
    assert made(path, "first.", whole) == "first." == made(path, None, whole)
    path.write_text("firs")
    assert made(path, "again.", whole) == "again." == path.read_text()
    assert f"{path} is damaged (cut off); making it again" in caplog.text


def test_what_a_killed_process_left_goes_with_the_next_making_and_nothing_else(tmp_path):
    path = tmp_path / "it[1].txt"
    ours, others = tmp_path / ".it[1].txt.0123456789abcdef", tmp_path / ".it1.txt.0123456789abcdef"
    for leftover in (ours, others):
        leftover.touch()
    made(path)
    assert not ours.exists() and others.exists()
    ours.touch()
    made(path, None)
    assert ours.exists()  # who only reads changes nothing
    with read_only(tmp_path):
        assert made(path, None) == "made"


def test_nothing_stays_of_a_making_that_fails(tmp_path):
    with pytest.raises(ZeroDivisionError):
        made_once(tmp_path / "it", Path.read_text, lambda: 1 / 0, Path.write_text, (OSError,))
    assert [path.name for path in tmp_path.iterdir()] == ["it.lock"]
    assert made(tmp_path / "it") == "made"
