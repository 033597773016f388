"""A process of its own that prepares data, to be killed on the way; and what it makes of a file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from repro.data.disk import read_file


def start(tmp_path, script, workers, last):
    """Run a script with the folder, the number of workers, and `last`, the name at which it kills itself."""
    path = tmp_path / "prepare.py"
    if not path.exists():  # another process may be reading it
        path.write_text(script)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen([sys.executable, path, str(tmp_path), str(workers), last], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


def kill(*_):
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
