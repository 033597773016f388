"""Many processes at little cost: one imports what takes seconds and forks those that work.

`Nursery` stands in the test; `serve` is what it starts. That calls `warm_up()` of a module; then, a line "start FOLDER
WORDS..." has a fork call its `work(FOLDER, *WORDS)` with REPRO_RUNS at the folder, its output in `<pid>.out` and
`<pid>.err` there, and "wait PID" gives how that one ended.
"""

import importlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

HELPERS = Path(__file__).parent


class Nursery:
    """Starts and buries processes.

    Args:
        module: whose `work` they call, one of the helpers or in `folder`.
        folder: to be in.
        environment: variables besides those of this process.
    """

    def __init__(self, module: str, folder: Path, **environment: str) -> None:
        paths = [str(folder), str(HELPERS), str(HELPERS.parents[1]), os.environ.get("PYTHONPATH", "")]
        own = {"REPRO_RUNS": str(folder), "REPRO_DATA": str(folder), "OMP_NUM_THREADS": "1",
               "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self.parent = subprocess.Popen(
            [sys.executable, "-u", "-c", f"import nursery; nursery.serve({module!r})"],
            cwd=folder,
            env=os.environ | own | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.alive: set[int] = set()

    def _ask(self, line: str) -> int:
        self.parent.stdin.write(f"{line}\n")
        self.parent.stdin.flush()
        return int(self.parent.stdout.readline())

    def start(self, root: Path, *words: object) -> int:
        """The id of a new process."""
        self.alive.add(pid := self._ask(" ".join(map(str, ("start", root, *words)))))
        return pid

    def status(self, pid: int) -> int:
        """Wait for a process; how it ended."""
        self.alive.remove(pid)
        return self._ask(f"wait {pid}")

    def kill(self, pid: int) -> None:
        """Kill a process that is at work."""
        os.kill(pid, signal.SIGKILL)
        assert self.status(pid) == -signal.SIGKILL, "it ended before it was killed"

    def close(self) -> None:
        """End everything."""
        for pid in tuple(self.alive):
            self.kill(pid)
        self.parent.communicate()


def serve(module: str) -> None:
    """Fork and bury processes as the lines of standard input say."""
    found = importlib.import_module(module)
    found.warm_up()
    for line in sys.stdin:
        command, first, *words = line.split()
        if command == "start":
            pid = os.fork()
            if pid == 0:
                _be_child(found.work, Path(first), words)
            print(pid, flush=True)
        else:
            print(os.waitstatus_to_exitcode(os.waitpid(int(first), 0)[1]), flush=True)


def _be_child(work: Callable, root: Path, words: list[str]) -> None:
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(root / f"{os.getpid()}.{name}", os.O_WRONLY | os.O_CREAT), stream)
        os.environ["REPRO_RUNS"] = str(root)
        work(root, *words)
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Look every millisecond until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.001)
