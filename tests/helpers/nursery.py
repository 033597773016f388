"""Many processes at little cost: one has imported the libraries, which takes ten seconds, and forks those that work.

`Nursery` stands in the test, and has a server of its own, a fork of the one process, which is multiprocessing's fork
server. The server calls the `warm_up()` of a module, if it has one. Every process is a fork of the server, and calls
`work(FOLDER, *WORDS)` with REPRO_RUNS at the folder and its output in `<pid>.out` and `<pid>.err` there. `python` is
`subprocess.run` of `python -c` or `python -m` in such a fork. Nothing of `repro` is imported before a fork asks for it.
Where `fork_workers` was called, worker processes are forks of the one process as well.
"""

import atexit
import contextlib
import functools
import importlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from unittest import mock

HELPERS = Path(__file__).parent
LIBRARIES = [
    "IPython.core.interactiveshell", "av", "librosa", "matplotlib.pyplot", "nbformat", "papermill.cli",
    "plotly.express", "pooch", "pydantic", "pytest", "safetensors.torch", "scipy.optimize", "scipy.stats", "seaborn",
    "sklearn.datasets", "sklearn.linear_model", "statsmodels.api", "torch._dynamo", "torchvision", "tqdm.auto",
    "typer.testing", "yaml",
]


class Nursery:
    """Starts and buries processes.

    Args:
        module: whose `work` they call, one of the helpers or in `folder`.
        folder: to be in.
        environment: variables besides those of this process.
    """

    def __init__(self, module: str, folder: Path, **environment: str) -> None:
        own = {"REPRO_RUNS": str(folder), "REPRO_DATA": str(folder), "OMP_NUM_THREADS": "1"}
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(LIBRARIES)
        self.server, theirs = context.Pipe()
        with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "1"}):
            context.Process(target=_serve, args=(theirs, module, folder, os.environ | own | environment)).start()
        theirs.close()
        self.server.recv()
        self.alive: set[int] = set()
        atexit.register(self.close)

    def start(self, root: Path, *words: object) -> int:
        """The id of a new process."""
        return self._start(root, *map(str, words))

    def _start(self, *words: object) -> int:
        self.server.send(words)
        self.alive.add(pid := self.server.recv())
        return pid

    def status(self, pid: int) -> int:
        """Wait for a process; how it ended."""
        self.alive.remove(pid)
        self.server.send(pid)
        return self.server.recv()

    def kill(self, pid: int) -> None:
        """Kill a process that is at work."""
        os.kill(pid, signal.SIGKILL)
        assert self.status(pid) == -signal.SIGKILL, "it ended before it was killed"

    def call(self, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
        """The end of a process that is told words, and is in a folder with this as its whole environment."""
        with tempfile.TemporaryDirectory() as place:
            pid = self._start(Path(place), words, cwd, dict(env))
            status = self.status(pid)
            out, err = (Path(place, f"{pid}.{name}").read_text() for name in ("out", "err"))
        return subprocess.CompletedProcess(words, status, out, err)

    def close(self) -> None:
        """End everything."""
        for pid in tuple(self.alive):
            self.kill(pid)
        self.server.close()


def python(*words: str, cwd: Path, env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """`subprocess.run([sys.executable, *words], ...)` of "-c" or "-m", its output captured, with this environment."""
    return _pythons().call(words, cwd, env)


@functools.cache
def _pythons() -> Nursery:
    return Nursery("nursery", Path(tempfile.gettempdir()))


def work(place: Path, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
    """Be the Python that `python` has described."""
    be_in(cwd, env)
    kind, name, *arguments = words
    own = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    installed = [path for path in sys.path if path not in ("", str(HELPERS), tempfile.gettempdir())]
    sys.path = [os.getcwd(), *own, *installed]
    sys.argv = [kind, *arguments]
    if kind == "-m":
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(name, "<string>", "exec"), vars(main))


def fork_workers() -> None:
    """Let the workers of this process, itself of a nursery, be forks too, with its environment and streams.

    tests/data/test_parallel.py has workers that are started as users have them.
    """
    from repro.data import parallel

    context, streams = multiprocessing.get_context, [Connection(os.dup(stream), readable=False) for stream in (1, 2)]
    multiprocessing.get_context = lambda method=None: context("forkserver" if method == "spawn" else method)
    forkserver._forkserver.ensure_running = lambda: None  # it runs: this process is a fork of it
    parallel._begin = functools.partial(_be_worker, dict(os.environ), streams)


def _be_worker(environment: Mapping[str, str], streams: Sequence[Connection], *arguments: object) -> None:
    from repro.data import parallel

    os.environ.update(environment)
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream.fileno(), number)
    parallel._begin(*arguments)


def be_in(cwd: Path, env: Mapping[str, str]) -> None:
    """Let this process be in a folder, with an environment."""
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)


def _serve(tests: Connection, module: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Fork a process for every tuple, what it is told, and wait for one by its id."""
    be_in(folder, environment)
    own = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:0] = [str(folder), str(HELPERS), str(HELPERS.parents[1]), *own]
    found = importlib.import_module(module)
    getattr(found, "warm_up", lambda: None)()
    tests.send("ready")
    processes = {}
    with contextlib.suppress(EOFError):
        while message := tests.recv():
            if isinstance(message, int):
                processes[message].join()
                tests.send(processes.pop(message).exitcode)
            else:
                process = multiprocessing.get_context("fork").Process(target=_be_child, args=(found.work, *message))
                process.start()
                processes[process.pid] = process
                tests.send(process.pid)


def _be_child(work: Callable[..., None], root: Path, *words: object) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(root / f"{os.getpid()}.{name}", os.O_WRONLY | os.O_CREAT), stream)
    os.environ["REPRO_RUNS"] = str(root)
    work(root, *words)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Look every millisecond until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.001)
