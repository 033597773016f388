"""Processes that share work: how they end; and items made ahead by a thread, against a plain loop."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from nursery import until

from repro.data.parallel import ahead, processes

SLEEPERS = """
import sys, time
from pathlib import Path
from repro.data.parallel import run_jobs

def sleep(number):
    Path(sys.argv[1], f"job {number}").touch()
    time.sleep(60)

if __name__ == "__main__":
    list(run_jobs(sleep, [(number,) for number in range(8)], 2))
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


def test_bars_of_a_process_leave_no_semaphore_behind():
    """A lock among processes would outlive one that ends at once, and the first process would say so in its output."""
    with processes(1) as workers:
        for module in ("tqdm", "tqdm.auto"):
            lock = f"type(__import__('importlib').import_module('{module}').tqdm.get_lock()).__module__"
            assert workers.submit(eval, lock).result(timeout=60) == "_thread"


def test_no_thread_outlives_the_context():
    """An interpreter that ends writes to the threads of pools, and fails where one is just ending."""
    before = threading.enumerate()
    with processes(2) as workers:
        assert [job.result(timeout=60) for job in [workers.submit(abs, -3), workers.submit(abs, -4)]] == [3, 4]
    assert threading.enumerate() == before


# ---------------------------------------------------------------------------------------------- a thread ahead

def test_items_come_in_order_one_ahead_of_use_and_an_error_in_its_place():
    asked = [threading.Event() for _ in range(4)]

    def numbers():
        for number, event in enumerate(asked):
            event.set()
            yield number
        raise OSError("damaged")

    items = ahead(numbers())
    assert next(items) == 0
    assert asked[1].wait(60) and not asked[2].is_set()
    assert [next(items) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(OSError, match="damaged"):
        next(items)
    assert list(ahead([])) == []
    assert list(ahead([None, None])) == [None, None]
