"""Preparing many files: parts that processes share, one preparation of the same thing at a time. No torch."""

import contextlib
import glob
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from filelock import Timeout
from tqdm.auto import tqdm

from repro.run.store import acquire, write_atomically

Made = TypeVar("Made")
log = logging.getLogger(__name__)


def run_jobs(make: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Call `make(*job)` for every job, in `workers` processes if they are more than one; yields as they are done.

    The processes end with this one, however it ends, and at once when it is interrupted.

    Raises:
        ChildProcessError: if one of the processes ends, for instance for want of memory.
    """
    if workers == 1:
        yield from (make(*job) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with, initargs=(theirs,))
    with theirs, ours, pool:
        try:
            for future in as_completed([pool.submit(make, *job) for job in jobs]):
                yield future.result()
        except BrokenProcessPool as error:
            raise ChildProcessError("one of the processes that read was killed, perhaps for want of memory; started "
                                    "again it goes on where it was, and fewer --workers need less memory") from error
        except (KeyboardInterrupt, GeneratorExit):
            ours.close()
            raise
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def alone(path: Path) -> contextlib.AbstractContextManager[object]:
    """Holds the lock at `path` as a context; says so if another process has it first."""
    try:
        return acquire(path)
    except Timeout:
        tqdm.write(f"waiting for the process that prepares {path.with_suffix('')}", file=sys.stderr)
        return acquire(path, timeout=-1)


def made_once(
    path: Path,
    read: Callable[[Path], Made],
    make: Callable[[], Made],
    write: Callable[[Path, Made], object],
    damaged: tuple[type[Exception], ...],
) -> Made:
    """What a file holds; if it is not there or damaged it is made first.

    Processes that ask at the same time wait for the one that makes it. What killed ones left half-written goes.

    Args:
        path: of the file.
        read: gives what the file at a path holds.
        make: gives the same from what it is made of.
        write: fills the file at a path with that.
        damaged: errors of `read` that say that the file is missing or damaged.
    """
    with contextlib.suppress(*damaged):
        return read(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path.with_name(f"{path.name}.lock")):
        for abandoned in path.parent.glob(f".{glob.escape(path.name)}.*"):
            abandoned.unlink()
        try:
            return read(path)  # another process may have been first
        except damaged as error:
            if path.exists():
                log.warning("%s is damaged (%s); making it again", path, error)
        made = make()
        write_atomically(path, lambda temporary: write(temporary, made))
        return made


def end_with_parent(*_: object) -> None:
    """Let a worker end with the process that started it, however that ends; whatever is passed is not looked at."""
    if parent := multiprocessing.parent_process():
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _end_with(pipe: Connection) -> None:
    """Let a worker end when the other end of a pipe is closed, as by the end of the process that holds it.

    Ctrl-C reaches every process of a terminal: the one that holds it closes it then.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_once_closed, args=(pipe,), daemon=True).start()


def _end_once_closed(pipe: Connection) -> None:
    pipe.poll(None)
    os._exit(1)
