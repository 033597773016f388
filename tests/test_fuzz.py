"""Damaged files: the first of every kind, what the campaign found when it was last run, and that it would find."""

import os
import sys
from pathlib import Path

import pandas as pd
import pytest
from nursery import HELPERS, python

from tests.campaigns import fuzz

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as on Linux")
BROKEN = """
import os, time
from tests.campaigns import fuzz
fuzz.SECONDS = 2
wrong = {
    "another value": lambda contents, folder: (_ for _ in ()).throw(AssertionError("another value")),
    "invalid literal": lambda contents, folder: int("things"),
    "MemoryError": lambda contents, folder: bytearray(2 * fuzz.ROOM),
    "does not end": lambda contents, folder: time.sleep(100),
    "ends the process with -6": lambda contents, folder: os.abort(),
    "is not one of": lambda contents, folder: fuzz.repro.recipe.choose("other", "x", ("y",)),
}
for said, read in wrong.items():
    assert said in fuzz.in_a_process(fuzz.Kind(list, read, "things"), b""), said
"""


def run(*words):
    environment = os.environ | {"PYTHONPATH": str(HELPERS)}
    ended = python(*words, cwd=Path(fuzz.__file__).parents[2], env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_damaged_files_are_read_as_they_say_or_refused_by_name(tmp_path):
    run("-m", "tests.campaigns.fuzz", "--inputs", "3", "--output", str(tmp_path / "found.csv"))
    for path, least in ((tmp_path / "found.csv", 3), (Path(fuzz.__file__).with_suffix(".csv"), 200)):
        rows = pd.read_csv(path)
        assert rows["kind"].tolist() == list(fuzz.KINDS) and rows["tried"].min() >= least
        assert (rows["tried"] == rows["read"] + rows["refused"]).all() and rows["failed"].sum() == 0


def test_whatever_is_wrong_is_a_failure():
    run("-c", BROKEN)
