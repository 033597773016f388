"""Processes that share work, and work that a thread does ahead. No torch."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from tqdm import tqdm

Made = TypeVar("Made")
UNGUARDED = ("a script that starts worker processes is imported by each of them: put what it does below "
             '`if __name__ == "__main__":`, or train with engine="inline"')


@contextlib.contextmanager
def processes(count: int, environment: Mapping[str, str] | None = None) -> Iterator[ProcessPoolExecutor]:
    """An executor of so many processes, which end with the context and with this process, whatever they do.

    Ctrl-C reaches every process of a terminal: they ignore it, and the context is left.

    Args:
        count: of processes.
        environment: variables besides those of this process.

    Raises:
        SystemExit: in a process of such an executor, while it imports a script that does not tell that it is none.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(1)  # the first process says so
    executor = ProcessPoolExecutor(
        count, mp_context=multiprocessing.get_context("spawn"), initializer=_begin, initargs=(environment or {},))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as processes have it that are started now
    try:
        for _ in range(count):
            executor.submit(int)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield executor
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for process in [*executor._processes.values()]:
            process.kill()
        executor.shutdown(cancel_futures=True)


def run_jobs(make: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Call `make(*job)` for every job, in `workers` processes if they are more than one; yields as they are done.

    Raises:
        ChildProcessError: if one of the processes ends, for instance for want of memory.
    """
    if workers == 1:
        yield from (make(*job) for job in jobs)
        return
    with processes(workers) as executor:
        try:
            for future in as_completed([executor.submit(make, *job) for job in jobs]):
                yield future.result()
        except BrokenProcessPool as error:
            raise ChildProcessError("one of the processes that read was killed, perhaps for want of memory; started "
                                    "again it goes on where it was, and fewer --workers need less memory") from error


def ahead(items: Iterable[Made]) -> Iterator[Made]:
    """The items; a thread asks for the next one while one is in use."""
    source = iter(items)
    end: Any = object()
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, source, end)
            yield item


def end_with_parent(*_: object) -> None:
    """Let a worker end with the process that started it, however that ends; whatever is passed is not looked at."""
    def end(parent: BaseProcess) -> None:
        parent.join()
        os._exit(1)

    if parent := multiprocessing.parent_process():
        threading.Thread(target=end, args=(parent,), daemon=True).start()


def _begin(environment: Mapping[str, str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(environment)
    tqdm.set_lock(threading.RLock())  # that of all bars; theirs, a semaphore among processes, outlives a sudden end
    end_with_parent()
