"""A worker process of `repro.run.engine`: it reads its job from the process that started it and ends when that ends."""

import json
import os
import pickle
import sys
import threading

from repro.run.engine import attempt


def main() -> None:
    """Train what others do not hold, then print what diverged as JSON, by key."""
    cells, train, store = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(json.dumps(attempt(cells, train, store, alone=False)))


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 1):  # not through the buffer, whose lock the interpreter wants when it ends
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
