"""Bad input: the first inputs of every kind, and what the campaign has found when it was last run.

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


@pytest.fixture(scope="module")
def outcomes():
    command = [sys.executable, "-m", "tests.campaigns.fuzz", "--json", "--inputs", str(EACH)]
    ended = subprocess.run(command, cwd=fuzz.COMMITTED.parents[2], capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    return [processes.Outcome(*json.loads(line)) for line in ended.stdout.splitlines()]


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
