"""The engine "local": worker processes of this machine, each handed one cell at a time and replaced when it is lost."""

import contextlib
import dataclasses
import os
import pickle
import queue
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from tqdm.auto import tqdm

from repro.run.cells import Train, failure, watch
from repro.run.store import Cell, Store
from repro.run.worker import READY


@dataclasses.dataclass(frozen=True)
class Local:
    """Worker processes on this machine; they take turns with its GPUs, and each uses one of them.

    Attributes:
        workers: how many there are at most.
    """

    workers: int

    def count(self) -> int:
        """How many processes train at once."""
        return self.workers

    def __call__(self, cells: Sequence[Cell], train: Train, store: Store) -> dict[str, Exception]:
        """Bring to their results all cells that no other command holds; returns what failed, by key."""
        count = min(self.workers, len(cells))
        waiting: queue.SimpleQueue[Cell] = queue.SimpleQueue()
        failed: dict[str, Exception] = {}
        for cell in cells:
            waiting.put(cell)
        workers = [_Worker(number) for number in range(count)]
        with ThreadPoolExecutor(count) as threads:
            try:
                serving = [threads.submit(_serve, worker, waiting, train, store, failed) for worker in workers]
                words = f"cells, {count} worker{'s' * (count > 1)}"
                watch(cells, store, lambda: all(each.done() for each in serving), words)
            finally:
                for worker in workers:  # none is waited for, as a second Ctrl-C might come meanwhile
                    worker.kill()
        for each in serving:
            each.result()  # raises what went wrong here
        return failed


def _serve(
    worker: "_Worker", waiting: queue.SimpleQueue[Cell], train: Train, store: Store, failed: dict[str, Exception]
) -> None:
    """Hand a worker cells until none is left; notes what failed."""
    with contextlib.closing(worker), contextlib.suppress(queue.Empty):
        while not worker.stopped:
            cell = waiting.get_nowait()
            outcome = worker.settle(cell, train, store)
            if isinstance(outcome, ChildProcessError) and not worker.stopped:
                tqdm.write(f"{failure(cell, outcome)}; trying once more", file=sys.stderr)
                outcome = worker.settle(cell, train, store)
                if isinstance(outcome, ChildProcessError):
                    outcome = ChildProcessError(f"{outcome} (tried twice)")
            if isinstance(outcome, Exception):
                failed[cell.key] = failure(cell, outcome)


class _Worker:
    """A process of `repro.run.worker`, started when there is a cell for it. One thread uses it; any may kill it."""

    def __init__(self, number: int) -> None:
        self.number, self.stopped = number, False
        self._process: subprocess.Popen[bytes] | None = None

    def settle(self, cell: Cell, train: Train, store: Store) -> bool | Exception:
        """What comes of the cell there, see `cells.settle`; a ChildProcessError if that process is lost."""
        if self.stopped:
            return False
        process = self._process or self._started()
        assert process.stdin and process.stdout  # pipes
        try:
            pickle.dump((cell, train, store), process.stdin)
            process.stdin.flush()
            outcome: bool | Exception = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):  # it has ended, perhaps while it answered
            outcome = ChildProcessError(_ending(process.wait()))
        if isinstance(outcome, ChildProcessError):
            self.close()
        return outcome

    def kill(self) -> None:
        """End the process, whatever it does, and start no other."""
        self.stopped = True  # first: a process that is started at this moment is seen here, or sees this
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process and wait for its end."""
        if self._process is None:
            return
        assert self._process.stdin and self._process.stdout  # pipes
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        command, pipe = [sys.executable, "-m", "repro.run.worker"], subprocess.PIPE
        self._process = subprocess.Popen(command, env=environment(self.number), stdin=pipe, stdout=pipe)
        if self.stopped:
            self._process.kill()
        assert self._process.stdout  # a pipe
        for line in self._process.stdout:  # before it are words of whatever a Python of this machine runs as it starts
            if line.endswith(READY):
                break
        return self._process


def environment(number: int) -> dict[str, str]:
    """The environment of a worker, by its number: of several GPUs it sees one, which others may see too."""
    count = torch.cuda.device_count()
    if count < 2:
        return dict(os.environ)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(count)))).split(",")
    return os.environ | {"CUDA_VISIBLE_DEVICES": visible[number % count].strip()}


def _ending(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"its process ended with status {status}"
    reason = " (perhaps for want of memory)" if status == -signal.SIGKILL else ""
    return f"its process was ended by {signal.Signals(-status).name}{reason}"
