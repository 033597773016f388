"""A process of a nursery that prepares data, to be killed on the way; and what it makes of a file."""

import functools
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np

from repro.data import prepared
from repro.data.disk import read_file
from repro.data.files import listed


def work(root, workers, last=""):
    """Prepare the files below a folder, and be killed, or let a worker be, at the item or file `last`."""
    os.environ["REPRO_RUNS"] = str(root / "runs")
    prepared.CHUNK = 1
    os.replace = killed_before(last, os.replace, 1)
    shutil.rmtree = killed_before(last, shutil.rmtree, 0)
    items = {path.name: path for path in listed(root / "files")}
    source = prepared.Source("things", "form", "a", items, functools.partial(slowly, root, last))
    print(source.prepare(workers=int(workers)).digests)


def slowly(root, last, path):
    """`make`, which notes what was read; slow unless there is an item to be killed at."""
    if path.name == last:
        kill()
    if not last:
        time.sleep(0.1)
    with open(root / "read.txt", "a") as file:
        print(path.name, file=file)
    return make(path)


def kill():
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed_before(last, function, place):
    """The function; the process ends before it is called with a path of the name `last` in that place."""
    def call(*arguments, **options):
        if Path(arguments[place]).name == last:
            kill()
        return function(*arguments, **options)
    return call


def make(path, log=None):
    """The bytes of a file as rows, and twice as pairs; of "bad" files an error."""
    contents = read_file(path)
    if log is not None:
        log.append(path.name)
    if contents.startswith(b"bad"):
        raise ValueError(f"says bad: {len(contents)}")
    rows = np.frombuffer(contents, np.uint8)
    return {"rows": rows, "pairs": np.stack([rows, rows], axis=1).astype(np.float32)}, {"first": path.name}
