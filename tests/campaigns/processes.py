"""Inputs read in processes of their own, each with a limit of memory and of time, and what became of them."""

import dis
import itertools
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import NamedTuple

import repro
from tests.campaigns.kinds import Kind, Refused

PACKAGE = str(Path(repro.__file__).parent)
NAMED = (ValueError, TypeError, OSError, FloatingPointError)  # what `repro.cli.main` prints without a traceback
SECONDS = 20                  # for an input
ROOM = 2**30                  # bytes of address space, beyond what the process has before the input
FORK = multiprocessing.get_context("fork")


class Outcome(NamedTuple):
    """What became of an input: "read", "refused" or "failed", and by which error."""

    kind: str
    number: int
    result: str
    error: str = ""


def campaign(kinds: Mapping[str, Kind], numbers: Sequence[int], processes: int) -> Iterator[Outcome]:
    """Try inputs of every kind. The processes fork from this one after it has read the sound inputs; each forks again
    for every input, whose outcomes come in order.

    Raises:
        RuntimeError: if a sound input is not read.
    """
    with tempfile.TemporaryDirectory() as place:
        for name, kind in kinds.items():
            for number, sound in enumerate(kind.sound()):
                result, error = attempt(kind, sound, Path(place) / f"sound {name} {number}")
                if result != "read":
                    raise RuntimeError(f"sound input {number} of the kind {name} is not read: {error}")
        with ProcessPoolExecutor(processes, FORK, _keep, (kinds, Path(place))) as pool:
            yield from pool.map(_in_a_fork, *zip(*itertools.product(kinds, numbers), strict=True))


def _keep(kinds: Mapping[str, Kind], place: Path) -> None:
    """Of a process that forks: what it tries, and where; functions cannot be sent to it."""
    global kept
    kept = kinds, place


def _in_a_fork(name: str, number: int) -> Outcome:
    kinds, place = kept
    folder = place / f"{name} {number}"
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_try, args=(theirs, kinds[name], name, number, folder))
    process.start()
    theirs.close()
    try:
        if ours.poll(SECONDS):
            return ours.recv()
        error = f"does not end within {SECONDS} s"
    except EOFError:
        process.join()
        status = process.exitcode
        error = f"ends the process, {signal.Signals(-status).name if status < 0 else f'with status {status}'}"
    finally:
        process.kill()
        process.join()
        shutil.rmtree(folder, ignore_errors=True)  # thousands of inputs are gigabytes
    return Outcome(name, number, "failed", error)


def _try(report: Connection, kind: Kind, name: str, number: int, folder: Path) -> None:
    """Read an input with a limit of memory, and report the outcome."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # what libraries print
        os.dup2(nowhere, stream)
    mutant = kind.mutant(Random(f"{name} {number}"))
    with open("/proc/self/status") as lines:
        now = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmSize"))
    most = now + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    report.send(Outcome(name, number, *attempt(kind, mutant, folder)))


def attempt(kind: Kind, contents: object, folder: Path) -> tuple[str, str]:
    """Read an input: the result, and the error if there was one."""
    folder.mkdir()
    os.environ["REPRO_RUNS"], os.environ["REPRO_DATA"] = str(folder / "runs"), str(folder / "data")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kind.read(contents, folder)
    except (*NAMED, Refused) as error:
        missing = [word for word in kind.named if word not in str(error)]
        if _is_ours(error) and not missing:
            return "refused", _trace(error)
        return "failed", f"does not name {missing[0]}: {_trace(error)}" if missing else _trace(error)
    except BaseException as error:
        return "failed", _trace(error)
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


def _trace(error: BaseException) -> str:
    """An error as a line: its type, message and the last lines that led to it."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({places})"
