"""Bad input: the first inputs of every kind, what the campaign has found when it was last run, and that it would find.

Whole, it is `python3 -m tests.campaigns.fuzz`.
"""

import json
import subprocess
import sys

import pandas as pd
import pytest

from tests.campaigns import fuzz, processes

EACH = 3
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as on Linux")


def outcomes_of(module, *options):
    command = [sys.executable, "-m", module, *options]
    ended = subprocess.run(command, cwd=fuzz.COMMITTED.parents[2], capture_output=True, text=True, check=False)
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


def test_whatever_is_wrong_is_a_failure():
    broken = {outcome.kind: outcome for outcome in outcomes_of("tests.helpers.broken_kinds")}
    assert (broken.pop("fine").result, broken.pop("polite").result) == ("read", "refused")
    expected = {"nameless": "does not name file", "foreign": "ValueError: invalid literal",
                "wrong": "AssertionError: another value", "warning": "RuntimeWarning", "growing": "MemoryError",
                "slow": "does not end", "crashing": "ends the process, SIGSEGV"}
    assert {kind: broken[kind].error[: len(error)] for kind, error in expected.items()} == expected
    assert {outcome.result for outcome in broken.values()} == {"failed"} and broken.keys() == expected.keys()
