"""Bad input: the first inputs of every kind, what the campaign has found when it was last run, and that it would find.

Whole, it is `python3 -m tests.campaigns.fuzz`.
"""

import json
import os
import signal
import sys
import time
import warnings

import pandas as pd
import pytest
from nursery import HELPERS, python

from repro.recipe import choose
from tests.campaigns import fuzz, processes
from tests.campaigns.kinds import Kind

EACH = 3
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as on Linux")


def outcomes_of(module, *options):
    root = fuzz.COMMITTED.parents[2]
    ended = python("-m", module, *options, cwd=root, env=os.environ | {"PYTHONPATH": str(HELPERS)})
    assert ended.returncode in (0, 1), ended.stderr
    return [processes.Outcome(*json.loads(line)) for line in ended.stdout.splitlines()]


@pytest.fixture(scope="module")
def outcomes():
    return outcomes_of("tests.campaigns.fuzz", "--json", "--inputs", str(EACH))


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_damaged_input_is_read_as_it_says_or_refused_by_name(outcomes, kind):
    of_kind = [outcome for outcome in outcomes if outcome.kind == kind]
    assert [outcome.number for outcome in of_kind] == list(range(EACH))
    assert [outcome for outcome in of_kind if outcome.result not in ("read", "refused")] == []


def test_the_committed_campaign_tried_every_kind_and_nothing_failed():
    rows = pd.read_csv(fuzz.COMMITTED)
    assert rows["kind"].tolist() == list(fuzz.KINDS)
    assert rows["tried"].min() >= 200 and rows["failed"].sum() == 0 and rows["refused"].min() > 0
    assert (rows["tried"] == rows["read"] + rows["refused"]).all()


# Kinds whose reading fails in ways that the campaign has to notice


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


def test_whatever_is_wrong_is_a_failure():
    broken = {outcome.kind: outcome for outcome in outcomes_of("tests.test_fuzz")}
    assert (broken.pop("fine").result, broken.pop("polite").result) == ("read", "refused")
    expected = {"nameless": "does not name file", "foreign": "ValueError: invalid literal",
                "wrong": "AssertionError: another value", "warning": "RuntimeWarning", "growing": "MemoryError",
                "slow": "does not end", "crashing": "ends the process, SIGSEGV"}
    assert {kind: broken[kind].error[: len(error)] for kind, error in expected.items()} == expected
    assert {outcome.result for outcome in broken.values()} == {"failed"} and broken.keys() == expected.keys()


if __name__ == "__main__":
    processes.SECONDS = 2
    for outcome in processes.campaign(KINDS, [0], 1):
        print(json.dumps(outcome))
