"""A worker process of `repro.run.engine`: it reads its job from the process that started it and ends when that ends."""

import json
import os
import pickle
import signal
import sys
import threading

from repro.run.engine import attempt


def main() -> None:
    """Train what others do not hold, then write what diverged to standard output as JSON, by key.

    Ctrl-C reaches every process of a terminal: the one that started us then ends, and we with it, in silence.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed while training is no part of the report
    cells, train, store = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with report:
        json.dump(attempt(cells, train, store, alone=False), report)


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 1):  # not through the buffer, whose lock the interpreter wants when it ends
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
