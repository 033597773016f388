"""A worker process of `repro.run.local`: it trains the cells it is handed and ends with the process that started it."""

import os
import pickle
import queue
import signal
import sys
import threading
import traceback

from repro.run.cells import Train, settle_quietly
from repro.run.store import Cell, Store

Jobs = queue.SimpleQueue[tuple[Cell, Train, Store]]
READY = b"ready for cells\n"  # the report begins behind it


def main() -> None:
    """Settle the cells that come pickled over standard input, and write what comes of each to standard output.

    After an error the process may be in any state: it tells, and ends. Ctrl-C reaches every process of a terminal: the
    one that started us then ends, and we with it, in silence.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed while training is no part of the report
    report.write(READY)
    report.flush()
    jobs: Jobs = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    outcome: bool | Exception = True
    while not isinstance(outcome, ChildProcessError):
        try:
            outcome = settle_quietly(*jobs.get())
        except Exception as error:
            traceback.print_exc()
            outcome = ChildProcessError(f"{type(error).__name__}: {error}")
        pickle.dump(outcome, report)
        report.flush()
    os._exit(1)  # the other thread holds standard input, which the interpreter would want


def _listen(jobs: Jobs) -> None:
    try:
        while True:
            jobs.put(pickle.load(sys.stdin.buffer))
    except EOFError:  # the process that started us is gone, or wants no more
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main()
