"""Preparing many files: parts that processes share, one preparation of the same thing at a time. No torch."""

import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from tqdm.auto import tqdm


def run_jobs(make: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Call `make(*job)` for every job, in `workers` processes if they are more than one; yields as they are done.

    The processes end with this one, however it ends.

    Raises:
        ChildProcessError: if one of the processes ends, for instance for want of memory.
    """
    if workers == 1:
        yield from (make(*job) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=end_with_parent) as pool:
        try:
            for future in as_completed([pool.submit(make, *job) for job in jobs]):
                yield future.result()
        except BrokenProcessPool as error:
            raise ChildProcessError("one of the processes that read was killed, perhaps for want of memory; started "
                                    "again it goes on where it was, and fewer --workers need less memory") from error
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def alone(path: Path) -> contextlib.AbstractContextManager[object]:
    """Holds the lock at `path` as a context; says so if another process has it first."""
    lock = FileLock(path)
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        tqdm.write(f"waiting for the process that prepares {path.with_suffix('')}", file=sys.stderr)
        return lock.acquire()


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError inside the block the name of the file, which one of a full disk has not."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def end_with_parent(*_: object) -> None:
    """Let a worker end with the process that started it, however that ends; whatever is passed is not looked at."""
    if parent := multiprocessing.parent_process():
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
