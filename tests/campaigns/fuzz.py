"""Damaged and hostile input of every kind, each read in a process with a limit of memory and of time.

    python3 -m tests.campaigns.fuzz [--inputs 200] [--kinds "wav,zip of pictures"] [--number 17]

An input is determined by its kind and number. It must read to what it states, or be refused by an error of ours that
names it: whatever else happens is a failure, be it another exception, a warning, a wrong value, more than a GiB of
memory, more than `SECONDS`, or the end of the process. The whole campaign writes `fuzz.csv`, a row per kind, and
`fuzz_errors.csv`, how often which error was seen; `tests/test_fuzz.py` tries the first inputs of every kind.
"""

import argparse
import csv
import dis
import json
import os
import re
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import repro
from tests.campaigns import archives, clips, lists, parameters, skeletons, stored
from tests.campaigns.kinds import Kind, Refused

HERE = Path(__file__).parent
PACKAGE = str(Path(repro.__file__).parent)
KINDS = skeletons.KINDS | archives.KINDS | lists.KINDS | clips.KINDS | stored.KINDS | parameters.KINDS
NAMED = (ValueError, TypeError, OSError, FloatingPointError)  # what `repro.cli.main` prints without a traceback
SECONDS = 20                  # for an input
ROOM = 2**30                  # bytes of address space, beyond what the process has before the first input


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


def campaign(inputs: Iterable[tuple[str, int]]) -> Iterator[Outcome]:
    """Try inputs, given by kind and number, in processes of their own: a new one whenever one has ended."""
    waiting = deque(inputs)
    while waiting:
        for outcome in _in_a_process(list(waiting)):
            waiting.popleft()
            yield outcome


def _in_a_process(inputs: Sequence[tuple[str, int]]) -> Iterator[Outcome]:
    """The outcomes of the inputs, up to one that ends the process or exceeds twice its time."""
    command = [sys.executable, "-m", "tests.campaigns.fuzz", "--child"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    process = subprocess.Popen(command, cwd=HERE.parents[1], env=environment, **pipes)
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
        status = process.wait(10)
    except subprocess.TimeoutExpired:
        return "does not end"
    return f"ends the process, {signal.Signals(-status).name if status < 0 else f'with status {status}'}"


def child() -> None:
    """Try the inputs that standard input names; an outcome a line on standard output."""
    inputs, report, said = json.load(sys.stdin), os.fdopen(os.dup(1), "w", buffering=1), os.dup(2)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        for stream in (1, 2):  # what libraries print is no part of the report
            os.dup2(nowhere.fileno(), stream)
        try:
            signal.signal(signal.SIGALRM, _too_long)
            _try_sound(inputs, Path(folder))
            report.write("ready\n")
            _limit_memory()
            for kind, number in inputs:
                report.write(json.dumps(_try(kind, number, Path(folder))) + "\n")
        except BaseException:
            os.dup2(said, 2)
            raise


def _try_sound(inputs: Sequence[tuple[str, int]], folder: Path) -> None:
    """Read the sound inputs of every kind, which also loads whatever that needs."""
    for kind in dict.fromkeys(kind for kind, _ in inputs):
        for number, sound in enumerate(KINDS[kind].sound()):
            result, error = attempt(KINDS[kind], sound, folder / f"sound {kind} {number}", 15 * SECONDS)
            if result != "read":
                raise RuntimeError(f"sound input {number} of the kind {kind} is not read: {error}")


def _try(kind: str, number: int, folder: Path) -> Outcome:
    """Read an input with a limit of time."""
    mutant = KINDS[kind].mutant(Random(f"{kind} {number}"))
    began, before = time.monotonic(), _reset_peak()
    result, error = attempt(KINDS[kind], mutant, folder / f"{kind} {number}")
    peak = (_status("VmHWM") - before) / 2**20
    return Outcome(kind, number, result, error, round(time.monotonic() - began, 3), round(peak, 1))


def attempt(kind: Kind, found: object, folder: Path, seconds: float = SECONDS) -> tuple[str, str]:
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


def table(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """A row per kind: how many inputs were tried, read, refused and failed; the most memory and time that one took."""
    rows = []
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        of_kind = [outcome for outcome in outcomes if outcome.kind == kind]
        results = Counter(outcome.result for outcome in of_kind)
        row = {"kind": kind, "tried": len(of_kind)} | {name: results[name] for name in ("read", "refused", "failed")}
        row |= {"peak_mb": max(outcome.peak_mb for outcome in of_kind)}
        rows.append(row | {"slowest_s": max(outcome.seconds for outcome in of_kind)})
    return rows


def errors(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """A row per kind and error, the most frequent first."""
    counts = Counter((outcome.kind, outcome.result, outcome.error) for outcome in outcomes if outcome.error)
    order = list(dict.fromkeys(outcome.kind for outcome in outcomes))
    found = sorted(counts.items(), key=lambda each: (order.index(each[0][0]), -each[1], each[0]))
    return [{"kind": kind, "result": result, "error": error, "inputs": count} for (kind, result, error), count in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200, help="of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--number", type=int, help="this input alone; writes nothing")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child()
    numbers = range(options.inputs) if options.number is None else [options.number]
    kinds, outcomes = options.kinds.split(","), []
    for outcome in campaign((kind, number) for kind in kinds for number in numbers):
        outcomes.append(outcome)
        if outcome.result == "failed" or options.number is not None:
            print(*outcome, sep="  ", flush=True)
    for row in table(outcomes):
        print(*(f"{name} {value}" for name, value in row.items()), sep="  ")
    if options.number is None and kinds == list(KINDS):
        for name, rows in (("fuzz.csv", table(outcomes)), ("fuzz_errors.csv", errors(outcomes))):
            with open(HERE / name, "w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, rows[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    return sys.exit(any(outcome.result == "failed" for outcome in outcomes))


if __name__ == "__main__":
    main()
