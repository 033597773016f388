"""Kinds of input whose reading fails in ways that the campaign of bad input has to notice.

    python3 -m tests.helpers.broken_kinds
"""

import json
import os
import signal
import time
import warnings

from repro.recipe import choose
from tests.campaigns import processes
from tests.campaigns.kinds import Kind


def _wrong(contents, _):
    assert contents == "sound", "another value"


READS = {
    "fine": lambda *_: None,
    "polite": lambda *_: choose("file", "x", ("y",)),
    "nameless": lambda *_: choose("parameter", "x", ("y",)),
    "foreign": lambda *_: int("file"),
    "wrong": _wrong,
    "warning": lambda *_: warnings.warn("file", RuntimeWarning, stacklevel=1),
    "growing": lambda *_: bytearray(2 * processes.ROOM),
    "slow": lambda *_: time.sleep(1000),
    "crashing": lambda *_: os.kill(os.getpid(), signal.SIGSEGV),
}
KINDS = {name: Kind(lambda: ["sound"], lambda sound, draw: "damaged",
                    lambda contents, folder, read=read: None if contents == "sound" else read(contents, folder),
                    ["file"])
         for name, read in READS.items()}

if __name__ == "__main__":
    processes.SECONDS = 2
    for outcome in processes.campaign(KINDS, [0], 1):
        print(json.dumps(outcome))
