"""Bad input: the first inputs of every kind, what the campaign has found when it was last run, and that it would find.

Whole, it is `python3 -m tests.campaigns.fuzz`.
"""

import csv
import sys
from random import Random

import pytest

from tests.campaigns import fuzz, processes
from tests.helpers import broken_kinds

EACH = 8
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as on Linux")


def committed(name):
    with open(fuzz.HERE / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def outcomes():
    inputs = [(kind, number) for kind in fuzz.KINDS for number in range(EACH)]
    return list(processes.campaign(inputs, "tests.campaigns.fuzz"))


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_damaged_input_is_read_as_it_says_or_refused_by_name(outcomes, kind):
    found = [outcome for outcome in outcomes if outcome.kind == kind]
    assert [outcome.number for outcome in found] == list(range(EACH))
    assert [outcome for outcome in found if outcome.result not in ("read", "refused")] == []


def test_two_hundred_inputs_are_tried_here():
    assert EACH * len(fuzz.KINDS) >= 200


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_an_input_is_determined_by_its_kind_and_number(kind):
    first, again, other = (fuzz.KINDS[kind].mutant(Random(f"{kind} {number}")) for number in (3, 3, 4))
    assert repr(first) == repr(again) != repr(other)


def test_the_committed_campaign_tried_every_kind_and_nothing_failed():
    rows, errors = committed("fuzz.csv"), committed("fuzz_errors.csv")
    assert [row["kind"] for row in rows] == list(fuzz.KINDS)
    counts = {name: [int(row[name]) for row in rows] for name in ("tried", "read", "refused", "failed")}
    assert sum(counts["tried"]) >= 2000 and min(counts["tried"]) >= 200 and sum(counts["failed"]) == 0
    for row, tried, read, refused in zip(rows, counts["tried"], counts["read"], counts["refused"], strict=True):
        assert tried == read + refused and refused > 0
        listed = [int(error["inputs"]) for error in errors if error["kind"] == row["kind"]]
        assert sum(listed) == refused
        assert float(row["peak_mb"]) < processes.ROOM / 2**20 and float(row["slowest_s"]) < processes.SECONDS


def test_whatever_is_wrong_is_a_failure(monkeypatch):
    monkeypatch.setattr(processes, "SECONDS", 2)
    found = {outcome.kind: outcome for outcome in processes.campaign(
        [(kind, 0) for kind in broken_kinds.KINDS], "tests.helpers.broken_kinds")}
    assert list(found) == list(broken_kinds.KINDS)
    assert {kind: outcome.result for kind, outcome in found.items() if outcome.result != "failed"} == {
        "polite": "refused", "fine": "read"}
    expected = {"nameless": "does not name file", "foreign": "ValueError: invalid literal", "careless": "KeyError",
                "wrong": "AssertionError: another value", "warning": "RuntimeWarning", "growing": "MemoryError",
                "slow": "TooLong", "deaf": "does not end", "crashing": "ends the process, SIGSEGV",
                "leaving": "ends the process, with status 3"}
    assert {kind: found[kind].error[: len(error)] for kind, error in expected.items()} == expected


def test_a_row_per_kind_and_one_per_error():
    outcomes = [processes.Outcome("a", 0, "read", "", 0.5, 3.0), processes.Outcome("a", 1, "refused", "x", 0.25, 4.0),
                processes.Outcome("b", 0, "failed", "y"), *[processes.Outcome("a", 2, "refused", "x")] * 5,
                processes.Outcome("a", 7, "refused", "rare"), processes.Outcome("a", 8, "refused", "rarer")]
    assert fuzz.table(outcomes) == [
        {"kind": "a", "tried": 9, "read": 1, "refused": 8, "failed": 0, "peak_mb": 4.0, "slowest_s": 0.5},
        {"kind": "b", "tried": 1, "read": 0, "refused": 0, "failed": 1, "peak_mb": 0.0, "slowest_s": 0.0},
    ]
    assert fuzz.errors(outcomes) == [{"kind": "a", "result": "refused", "error": "x", "inputs": 6},
                                     {"kind": "a", "result": "refused", "error": "others", "inputs": 2},
                                     {"kind": "b", "result": "failed", "error": "y", "inputs": 1}]
