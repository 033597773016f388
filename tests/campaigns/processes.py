"""Inputs read in processes of their own, each with a limit of memory and of time, and what became of them."""

import dis
import json
import os
import re
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import repro
from tests.campaigns.kinds import Kind, Refused

ROOT = Path(__file__).parents[2]
PACKAGE = str(Path(repro.__file__).parent)
NAMED = (ValueError, TypeError, OSError, FloatingPointError)  # what `repro.cli.main` prints without a traceback
SECONDS = 20                  # for an input
ROOM = 2**30                  # bytes of address space, beyond what the process has before the first input
FREED_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}  # else no peak is seen twice


class Outcome(NamedTuple):
    """What became of an input: "read", "refused" or "failed", and by which error, without its particulars."""

    kind: str
    number: int
    result: str
    error: str = ""
    seconds: float = 0.0
    peak_mb: float = 0.0


class TooLong(BaseException):
    """The time of an input is up."""


def campaign(inputs: Iterable[tuple[str, int]], module: str) -> Iterator[Outcome]:
    """Try inputs, given by kind and number, in processes of `module`, whose `--child` is that of here.

    Whenever one has ended, a new one goes on with the next input.
    """
    waiting = deque(inputs)
    while waiting:
        for outcome in _in_a_process(list(waiting), module):
            waiting.popleft()
            yield outcome


def _in_a_process(inputs: Sequence[tuple[str, int]], module: str) -> Iterator[Outcome]:
    """The outcomes of the inputs, up to one that ends the process or exceeds twice its time.

    The folder for what the process writes is made and removed here: a process that ends by itself would leave it.
    """
    command = [sys.executable, "-m", module, "--child"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": folder} | FREED_AT_ONCE
        process = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)
        try:
            process.stdin.write(json.dumps(inputs).encode())
            process.stdin.close()
            lines = _lines(process)
            if next(lines, None) != "ready":
                raise RuntimeError(f"the process ended with status {process.wait()} before the first input")
            for kind, number in inputs:
                line = next(lines, None)
                if line is None:
                    yield Outcome(kind, number, "failed", _ending(process))
                    return
                yield Outcome(*json.loads(line))
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def _lines(process: subprocess.Popen) -> Iterator[str]:
    """What a process writes, until it ends or says nothing for too long."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        seconds = 600         # until it is ready, on a busy machine
        while selector.select(seconds):
            part = os.read(process.stdout.fileno(), 2**16)
            if not part:
                return
            *lines, rest = (rest + part).split(b"\n")
            yield from (line.decode() for line in lines)
            seconds = 2 * SECONDS


def _ending(process: subprocess.Popen) -> str:
    """What became of a process that says no more."""
    try:
        status = process.wait(2)
    except subprocess.TimeoutExpired:
        return "does not end"
    return f"ends the process, {signal.Signals(-status).name if status < 0 else f'with status {status}'}"


def child(kinds: Mapping[str, Kind]) -> None:
    """Try the inputs that standard input names; an outcome a line on standard output."""
    inputs, report, said = json.load(sys.stdin), os.fdopen(os.dup(1), "w", buffering=1), os.dup(2)
    folder = Path(tempfile.gettempdir())
    with open(os.devnull, "w") as nowhere:
        for stream in (1, 2):  # what libraries print is no part of the report
            os.dup2(nowhere.fileno(), stream)
        try:
            signal.signal(signal.SIGALRM, _too_long)
            _try_sound({kind: kinds[kind] for kind, _ in inputs}, folder)
            report.write("ready\n")
            _limit_memory()
            for kind, number in inputs:
                report.write(json.dumps(_try(kinds[kind], kind, number, folder)) + "\n")
        except BaseException:
            os.dup2(said, 2)
            raise


def _try_sound(kinds: Mapping[str, Kind], folder: Path) -> None:
    """Read the sound inputs of every kind, which also loads whatever that needs."""
    for name, kind in kinds.items():
        for number, sound in enumerate(kind.sound()):
            result, error = attempt(kind, sound, folder / f"sound {name} {number}", 15 * SECONDS)
            if result != "read":
                raise RuntimeError(f"sound input {number} of the kind {name} is not read: {error}")


def _try(kind: Kind, name: str, number: int, folder: Path) -> Outcome:
    """Read an input with a limit of time."""
    mutant = kind.mutant(Random(f"{name} {number}"))
    began, before = time.monotonic(), _reset_peak()
    result, error = attempt(kind, mutant, folder / f"{name} {number}", SECONDS)
    peak = (_status("VmHWM") - before) / 2**20
    return Outcome(name, number, result, error, round(time.monotonic() - began, 3), round(peak, 1))


def attempt(kind: Kind, found: object, folder: Path, seconds: float) -> tuple[str, str]:
    """Read an input: the result, and the error if there was one."""
    folder.mkdir()
    os.environ["REPRO_RUNS"], os.environ["REPRO_DATA"] = str(folder / "runs"), str(folder / "data")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                kind.read(found, folder)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    except (*NAMED, Refused) as error:
        message = str(error).replace(str(folder), "FOLDER")
        missing = [word for word in kind.named if word not in message]
        if _is_ours(error) and not missing:
            return "refused", _pattern(message)
        return "failed", f"does not name {missing[0]}: {_trace(error)}" if missing else _trace(error)
    except BaseException as error:
        return "failed", _trace(error)
    finally:
        shutil.rmtree(folder)  # thousands of inputs are gigabytes
    return "read", ""


def _is_ours(error: BaseException) -> bool:
    """Whether a `raise` of the package made the error, or the system named a file in it."""
    if isinstance(error, Refused) or (isinstance(error, OSError) and error.filename):
        return True
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    code = last.tb_frame.f_code
    return code.co_filename.startswith(PACKAGE) and dis.opname[code.co_code[last.tb_lasti]] == "RAISE_VARARGS"


def _pattern(message: str) -> str:
    """The first clause of a message, or of what it lists first, without names and numbers."""
    first, _, rest = message[:2000].partition("\n")
    text = rest.partition("\n")[0].strip() if rest and first.endswith(":") else first
    text = re.sub(r"""(['"]).*?\1""", "'...'", text)
    text = re.sub(r"\S*(/|\.(json|yaml|csv|txt|zip|png|npz|pt|safetensors)\b)\S*|S\d{3}C\d{3}\w+", "FILE", text)
    return re.sub(r"-?\d[\d,.e+-]*", "N", text).partition(";")[0].partition(" (")[0].strip(": ")[:80]


def _trace(error: BaseException) -> str:
    """An error as a line: its type, message and the last lines that led to it."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({places})"


def _too_long(*_: object) -> None:
    raise TooLong("more time than there is")


def _limit_memory() -> None:
    most = _status("VmSize") + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _reset_peak() -> int:
    """Bytes that this process holds, from which on its peak counts."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    """Bytes of this process, as Linux tells them."""
    with open("/proc/self/status") as lines:
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))
