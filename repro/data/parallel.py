"""Work that processes share, jobs handed to workers, and work that a thread does ahead. No torch."""

import functools
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from tqdm import tqdm

Made = TypeVar("Made")
LOST = "its process was lost (perhaps for want of memory, unless it says why above)"
UNGUARDED = ("a script that starts worker processes is imported by each of them: put what it does below "
             '`if __name__ == "__main__":`, or train with engine="inline"')


class Workers(ThreadPoolExecutor):
    """An executor of processes, which end with this one, however it ends, and at once when the context is left.

    Each is handed one job at a time, by a thread of its own, so that a lost process takes a single job with it. After
    that, or an error, which may leave it in any state, another one takes its place. Ctrl-C reaches every process of a
    terminal: they ignore it, and the context is left.

    Args:
        count: of processes, started when there are jobs for them.
        environments: variables besides those of this process, which the processes take turns with.

    Raises:
        SystemExit: in a process that such an executor has started, while it imports the script of the first one.
    """

    def __init__(self, count: int, environments: Sequence[Mapping[str, str]] = ({},)) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise SystemExit(UNGUARDED)
        super().__init__(count)
        self._context = multiprocessing.get_context("spawn")
        self._theirs, self._ours = self._context.Pipe(duplex=False)
        self._free: queue.LifoQueue[tuple[Mapping[str, str], ProcessPoolExecutor | None]] = queue.LifoQueue()
        for number in range(count):
            self._free.put((environments[number % len(environments)], None))

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """As `Executor.submit`; the future raises ChildProcessError if the process is lost."""
        return super().submit(self._hand_on, functools.partial(work, *arguments, **named))

    def __exit__(self, *error: Any) -> None:
        self.shutdown(wait=False, cancel_futures=True)
        self._ours.close()
        super().__exit__(*error)
        while not self._free.empty():
            _, process = self._free.get()
            if process:
                process.shutdown()  # an interpreter that ends writes to its thread, which may be ending too
        self._theirs.close()

    def _hand_on(self, job: Callable[[], Any]) -> Any:
        environment, process = self._free.get()
        try:
            process = process or self._process(environment)
            return process.submit(job).result()
        except BaseException as error:
            if process:
                process.shutdown()
            process = None
            if isinstance(error, BrokenProcessPool):
                raise ChildProcessError(LOST) from error
            raise
        finally:
            self._free.put((environment, process))

    def _process(self, environment: Mapping[str, str]) -> ProcessPoolExecutor:
        arguments = (self._theirs, environment)
        return ProcessPoolExecutor(1, mp_context=self._context, initializer=_begin, initargs=arguments)


def run_jobs(make: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Call `make(*job)` for every job, in `workers` processes if they are more than one; yields as they are done.

    Raises:
        ChildProcessError: if one of the processes ends, for instance for want of memory.
    """
    if workers == 1:
        yield from (make(*job) for job in jobs)
        return
    with Workers(workers) as executor:
        try:
            for future in as_completed([executor.submit(make, *job) for job in jobs]):
                yield future.result()
        except ChildProcessError as error:
            raise ChildProcessError("one of the processes that read was killed, perhaps for want of memory; started "
                                    "again it goes on where it was, and fewer --workers need less memory") from error


def ahead(items: Iterable[Made], *, early: bool) -> Iterator[Made]:
    """The items; if `early`, a thread asks for the next one while one is in use."""
    if not early:
        yield from items
        return
    source = iter(items)
    end: Any = object()
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, source, end)
            yield item


def end_with_parent(*_: object) -> None:
    """Let a worker end with the process that started it, however that ends; whatever is passed is not looked at."""
    if parent := multiprocessing.parent_process():
        _end_after(parent.join)


def _begin(pipe: Connection, environment: Mapping[str, str]) -> None:
    """Let a worker end when the other end of a pipe is closed, as by the end of the process that holds it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(environment)
    tqdm.set_lock(threading.RLock())  # that of all bars; theirs, a semaphore among processes, outlives a sudden end
    _end_after(functools.partial(pipe.poll, None))


def _end_after(wait: Callable[[], object]) -> None:
    def end() -> None:
        wait()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
