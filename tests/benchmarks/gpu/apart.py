"""A section of the benchmark: its parts one by one, in this process or in one of its own that may be stopped."""

import json
import os
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def measured(parts: dict[str, Callable[[], dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What every part finds, with the seconds it took; of one that fails, the error."""
    for name, part in parts.items():
        start = time.perf_counter()
        try:
            found = part()
        except Exception as error:
            traceback.print_exc()
            found = {"error": f"{type(error).__name__}: {error}"}
        yield name, found | {"seconds in all": time.perf_counter() - start}


def apart(command: Sequence[str], seconds: float) -> dict[str, Any]:
    """What a process finds, which prints a line [name, values] in JSON for every part, and is stopped after a time.

    What it had found until then is kept; "error" says that it was stopped, or that it ended with an error. It ends
    with this process where that is interrupted.
    """
    found: dict[str, Any] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        timer = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))  # with the processes it started
        timer.start()
        try:
            for line in process.stdout:
                if line.endswith("\n"):  # not cut off by its end
                    name, values = json.loads(line)
                    found[name] = values
            status = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
    if status:
        stopped = status == -signal.SIGKILL
        found["error"] = f"stopped after {seconds} s" if stopped else f"its process ended with status {status}"
    return found
