"""Damaged files of every kind, each read in a process of its own with a limit of memory and of time (Linux).

    python3 -m tests.campaigns.fuzz [--inputs 300] [--kinds wav,png] [--output fuzz.csv]

An input is determined by its kind and number. It must read to what it states, or be refused by an error of ours that
names it: whatever else happens is a failure, be it another exception, a warning, a wrong value, more than a GiB of
memory, more than `SECONDS`, or the end of the process. `tests/test_fuzz.py` tries the first inputs of every kind.
"""

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import pandas as pd
from tqdm import tqdm

import repro
from tests.campaigns.kinds import KINDS, Kind

PACKAGE = str(Path(repro.__file__).parent)
NAMED = (ValueError, TypeError, OSError, FloatingPointError)  # what `repro.cli.main` prints without a traceback
SECONDS = 20                  # for an input
ROOM = 2**30                  # bytes of address space, beyond what the process has before the input
FORK = multiprocessing.get_context("fork")


def read(kind: Kind, contents: bytes) -> str:
    """Read an input: "read", "refused", or what went wrong."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        os.environ["REPRO_RUNS"], os.environ["REPRO_DATA"] = f"{folder}/runs", f"{folder}/data"
        warnings.simplefilter("error")
        try:
            kind.read(contents, Path(folder))
        except BaseException as error:
            *_, last = traceback.extract_tb(error.__traceback__)
            ours = last.filename.startswith(PACKAGE) and last.line.startswith("raise ")
            if isinstance(error, NAMED) and (ours or getattr(error, "filename", None)) and kind.named in str(error):
                return "refused"
            return f"{last.filename}:{last.lineno}: {type(error).__name__}: {str(error)[:300]}"
    return "read"


def in_a_process(kind: Kind, contents: bytes) -> str:
    """What `read` says in a fork of this process, or how that ended."""
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_limited, args=(theirs, kind, contents))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(SECONDS) else f"does not end within {SECONDS} s"
    except EOFError:
        process.join()
        return f"ends the process with {process.exitcode}"
    finally:
        process.kill()
        process.join()


def _limited(report: Connection, kind: Kind, contents: bytes) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # what libraries print
        os.dup2(nowhere, stream)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    report.send(read(kind, contents))


def campaign(kinds: dict[str, Kind], inputs: int) -> pd.DataFrame:
    """A row per kind: how many inputs were tried, read, refused and failed; prints what failed.

    ValueError if a valid file is not read.
    """
    rows = []
    for name, kind in kinds.items():
        if wrong := [result for contents in kind.sound() if (result := read(kind, contents)) != "read"]:
            raise ValueError(f"a valid file of the kind {name} is not read: {wrong[0]}")
        counts: Counter[str] = Counter()
        for number in tqdm(range(inputs), desc=name, disable=None):
            result = in_a_process(kind, kind.damaged(Random(f"{name} {number}")))
            if result not in ("read", "refused"):
                print(name, number, result, flush=True)
                result = "failed"
            counts[result] += 1
        rows.append({"kind": name, "tried": inputs} | {name: counts[name] for name in ("read", "refused", "failed")})
    return pd.DataFrame(rows)


def main() -> int:
    """Try inputs; returns how many failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=300, help="of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    table = campaign({name: KINDS[name] for name in options.kinds.split(",")}, options.inputs)
    table.to_csv(options.output, index=False)
    print(table.to_string(index=False))
    return int(table["failed"].sum())


if __name__ == "__main__":
    sys.exit(main())
