"""Bad input: the first inputs of every kind, what the campaign has found when it was last run, and that it would find.

Whole, it is `python3 -m tests.campaigns.fuzz`.
"""

import json
import subprocess
import sys
from random import Random

import pandas as pd
import pytest

from tests.campaigns import fuzz, processes

EACH = 3
ROOT = fuzz.COMMITTED.parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as on Linux")


def outcomes_of(module, inputs):
    command = [sys.executable, "-m", module, "--json", "--inputs", str(inputs)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    return [processes.Outcome(*json.loads(line)) for line in ended.stdout.splitlines()]


@pytest.fixture(scope="module")
def outcomes():
    return outcomes_of("tests.campaigns.fuzz", EACH)


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_damaged_input_is_read_as_it_says_or_refused_by_name(outcomes, kind):
    of_kind = [outcome for outcome in outcomes if outcome.kind == kind]
    assert [outcome.number for outcome in of_kind] == list(range(EACH))
    assert [outcome for outcome in of_kind if outcome.result not in ("read", "refused")] == []


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_an_input_is_determined_by_its_kind_and_number(kind):
    first, again, other = (fuzz.KINDS[kind].mutant(Random(f"{kind} {number}")) for number in (3, 3, 4))
    assert repr(first) == repr(again) != repr(other)


def test_the_committed_campaign_tried_every_kind_and_nothing_failed():
    rows = pd.read_csv(fuzz.COMMITTED)
    assert rows["kind"].tolist() == list(fuzz.KINDS)
    assert rows["tried"].min() >= 200 and rows["failed"].sum() == 0 and rows["refused"].min() > 0
    assert (rows["tried"] == rows["read"] + rows["refused"]).all()
    assert rows["peak_mb"].max() < processes.ROOM / 2**20 and rows["slowest_s"].max() < processes.SECONDS


def test_whatever_is_wrong_is_a_failure():
    broken = {outcome.kind: outcome for outcome in outcomes_of("tests.helpers.broken_kinds", 1)}
    assert {kind: outcome.result for kind, outcome in broken.items() if outcome.result != "failed"} == {
        "polite": "refused", "fine": "read"}
    expected = {"nameless": "does not name file", "foreign": "ValueError: invalid literal", "careless": "KeyError",
                "wrong": "AssertionError: another value", "warning": "RuntimeWarning", "growing": "MemoryError",
                "slow": "does not end", "crashing": "ends the process, SIGSEGV",
                "leaving": "ends the process, with status 3"}
    assert {kind: broken[kind].error[: len(error)] for kind, error in expected.items()} == expected
    assert len(broken) == len(expected) + 2
