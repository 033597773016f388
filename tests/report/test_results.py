"""Verdicts and numbers of claims as sentences quote them."""

import pytest
from pandas import DataFrame

from repro.report.results import Evidence

CLAIMS = DataFrame({"id": ["A1", "A2"], "verdict": ["holds", "undecided"]})
NUMBERS = DataFrame([
    ("A1", "one over two", 17.46, 1.06, 1e-9), ("A2", "one over two", -0.24, 0.31, 0.4567),
    ("A2", "all", 3.0, None, None),
], columns=["id", "compared", "value", "error", "p"])


def test_evidence_in_words():
    evidence = Evidence(CLAIMS, NUMBERS)
    assert evidence.verdicts("A2", "A1") == ["undecided", "holds"]
    assert evidence.listed("A1", "A2") == "A1 holds, A2 undecided"
    assert evidence.value("A2", "all") == 3.0
    assert evidence.words("A1", "one over two") == "+17.5, s.e. 1.1, p < 0.001"
    assert evidence.words("A2", "one over two") == "-0.2, s.e. 0.3, p = 0.457"


def test_what_there_is_not_is_named_with_what_there_is():
    evidence = Evidence(CLAIMS, NUMBERS)
    with pytest.raises(ValueError, match="claim='A3' is not one of: A1, A2"):
        evidence.verdicts("A3")
    with pytest.raises(ValueError, match="comparison of A2='two over one' is not one of: one over two, all"):
        evidence.value("A2", "two over one")
