"""Kinds of input whose reading fails in every way that the campaign of bad input has to notice.

    python3 -m tests.helpers.broken_kinds --json --inputs 1
"""

import os
import signal
import time
import warnings

from repro.recipe import choose
from tests.campaigns import fuzz, processes
from tests.campaigns.kinds import Kind


def _wrong(contents, _):
    assert contents == "sound", "another value"


READS = {
    "polite": lambda *_: choose("file", "x", ("y",)),
    "nameless": lambda *_: choose("parameter", "x", ("y",)),
    "foreign": lambda *_: int("file"),
    "careless": lambda *_: {}["file"],
    "wrong": _wrong,
    "warning": lambda *_: warnings.warn("file", RuntimeWarning, stacklevel=1),
    "growing": lambda *_: bytearray(2 * processes.ROOM),
    "slow": lambda *_: time.sleep(1000),
    "crashing": lambda *_: os.kill(os.getpid(), signal.SIGSEGV),
    "leaving": lambda *_: os._exit(3),
    "fine": lambda *_: None,
}
KINDS = {name: Kind(lambda: ["sound"], lambda sound, draw: "damaged",
                    lambda contents, folder, read=read: None if contents == "sound" else read(contents, folder),
                    ["file"])
         for name, read in READS.items()}

if __name__ == "__main__":
    processes.SECONDS = 2
    fuzz.main(KINDS)
