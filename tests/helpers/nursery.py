"""Many processes at little cost: one has imported the libraries, which takes ten seconds, and forks those that work.

`Nursery` stands in the test, and has a server of its own, a fork of the one process: that calls `warm_up()` of a module
of ours; then, a line "start FOLDER WORDS..." has a fork of it call the module's `work(FOLDER, *WORDS)` with REPRO_RUNS
at the folder, its output in `<pid>.out` and `<pid>.err` there, and "wait PID" gives how that one ended. `python` is
`subprocess.run` of `python -c` or `python -m` in such a fork. Nothing of `repro` is imported before a fork asks for it.
"""

import contextlib
import fcntl
import functools
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

HELPERS = Path(__file__).parent
LIBRARIES = (
    "IPython.core.interactiveshell", "av", "librosa", "matplotlib.pyplot", "nbformat", "papermill.cli",
    "plotly.express", "pooch", "pydantic", "pytest", "safetensors.torch", "scipy.optimize", "scipy.stats", "seaborn",
    "sklearn.datasets", "sklearn.linear_model", "statsmodels.api", "torch._dynamo", "torchvision", "tqdm.auto",
    "typer.testing", "yaml",
)


class Nursery:
    """Starts and buries processes.

    Args:
        module: whose `work` they call, one of the helpers or in `folder`.
        folder: to be in.
        environment: variables besides those of this process.
    """

    def __init__(self, module: str, folder: Path, **environment: str) -> None:
        own = {"REPRO_RUNS": str(folder), "REPRO_DATA": str(folder), "OMP_NUM_THREADS": "1"}
        paths = [str(folder), str(HELPERS), str(HELPERS.parents[1])]
        self.server = _connected()
        self.lines = self.server.makefile("rw")
        self._ask(json.dumps([module, paths, str(folder), os.environ | own | environment]))
        self.alive: set[int] = set()

    def _ask(self, line: str) -> int:
        self.lines.write(f"{line}\n")
        self.lines.flush()
        return int(self.lines.readline())

    def start(self, root: Path, *words: object) -> int:
        """The id of a new process."""
        self.alive.add(pid := self._ask(" ".join(map(str, ("start", root, *words)))))
        return pid

    def status(self, pid: int) -> int:
        """Wait for a process; how it ended."""
        self.alive.remove(pid)
        return self._ask(f"wait {pid}")

    def kill(self, pid: int) -> None:
        """Kill a process that is at work."""
        os.kill(pid, signal.SIGKILL)
        assert self.status(pid) == -signal.SIGKILL, "it ended before it was killed"

    def call(self, words: Sequence[str], cwd: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
        """The end of a process that is told words, a folder to be in and all of its environment, see `called`."""
        with tempfile.TemporaryDirectory() as place:
            (Path(place) / "command.json").write_text(json.dumps([words, str(cwd), env]))
            pid = self.start(Path(place))
            status = self.status(pid)
            out, err = (Path(place, f"{pid}.{name}").read_text() for name in ("out", "err"))
        return subprocess.CompletedProcess(words, status, out, err)

    def close(self) -> None:
        """End everything."""
        for pid in tuple(self.alive):
            self.kill(pid)
        self.lines.close()
        self.server.close()


def python(*words: str, cwd: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """`subprocess.run([sys.executable, *words], ...)` of "-c" or "-m", its output captured, with this environment."""
    return _pythons().call(words, cwd, env)


def called(place: Path) -> list[str]:
    """The words that `Nursery.call` has left in a folder; this process has the environment and is where it said."""
    words, cwd, environment = json.loads((place / "command.json").read_text())
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    return words


@functools.cache
def _pythons() -> Nursery:
    return Nursery("nursery", Path(tempfile.gettempdir()))


def warm_up() -> None:
    """Of `python`: nothing more than libraries."""


def work(place: Path) -> None:
    """Be the Python that `python` has described in this folder."""
    kind, name, *arguments = called(place)
    own = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path = [os.getcwd(), *own, *_sites()]
    sys.argv = [kind, *arguments]
    if kind == "-m":
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(name, "<string>", "exec"), vars(main))


def _sites() -> list[str]:
    """The folders of Python's own and of what is installed."""
    return [path for path in sys.path if path not in ("", str(HELPERS), tempfile.gettempdir())]


def _connected() -> socket.socket:
    """A connection to a fork of the one process; of all processes of pytest the first that asks starts it."""
    folder = Path(os.environ.setdefault("NURSERY", tempfile.mkdtemp()))
    _using(folder)
    connection, address = socket.socket(socket.AF_UNIX), folder / "socket"
    with (folder / "starting").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HELPERS)}
            code = f"import os; os.fork() and os._exit(0); import nursery; nursery.serve({str(folder)!r})"
            subprocess.run([sys.executable, "-c", code], cwd=folder, env=os.environ | own, start_new_session=True)
            until(address.exists, seconds=300)
        connection.connect(str(address))
    return connection


@functools.cache
def _using(folder: Path) -> IO[str]:
    """A lock that is shared by all that use the one process, for as long as they live."""
    users = (folder / "users").open("w")
    fcntl.flock(users, fcntl.LOCK_SH)
    return users


def serve(folder: str) -> None:
    """Import the libraries, then give every connection a fork, until nobody uses the folder."""
    for name in LIBRARIES:
        importlib.import_module(name)
    assert "repro" not in sys.modules
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks are buried by themselves
    address = f"{folder}/socket"
    with open(f"{folder}/users", "w") as users, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{address}.new")
        listening.listen()
        os.rename(f"{address}.new", address)
        listening.settimeout(1)
        while True:
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    with contextlib.suppress(FileNotFoundError):
                        os.remove(address)
                    return
                continue
            if os.fork() == 0:
                users.close()
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                connection.setblocking(True)
                _serve_one(connection)
                os._exit(0)
            connection.close()


def _serve_one(connection: socket.socket) -> None:
    """Fork and bury processes as the lines of a connection say."""
    with connection.makefile("rw") as lines:
        module, paths, folder, environment = json.loads(lines.readline())
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path[:0] = [*paths, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
        found: Any = importlib.import_module(module)
        found.warm_up()
        print(os.getpid(), file=lines, flush=True)
        for line in lines:
            command, first, *words = line.split()
            if command == "start":
                pid = os.fork()
                if pid == 0:
                    connection.close()
                    _be_child(found.work, Path(first), words)
                print(pid, file=lines, flush=True)
            else:
                print(os.waitstatus_to_exitcode(os.waitpid(int(first), 0)[1]), file=lines, flush=True)


def _be_child(work: Callable, root: Path, words: list[str]) -> None:
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(root / f"{os.getpid()}.{name}", os.O_WRONLY | os.O_CREAT), stream)
        os.environ["REPRO_RUNS"] = str(root)
        work(root, *words)
        status = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Look every millisecond until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.001)
