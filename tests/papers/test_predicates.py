"""Lists of claims and discrepancies, which name what judges each, and comparisons that papers share."""

import math

import pytest
from made_up_cells import placed, skeleton, sounding

from repro.papers import predicates
from repro.report.evidence import Evidence
from repro.report.verdicts import HOLDS, NOT_MEASURED, Finding

CLAIMS = 'id,place,says,predicate,figures,identity\nA1,text,"It holds, always.",{SEEDS} of {COUNT},one two,yes\n'
OTHERS = "id,place,paper_says,others_say,here\nA-1,text,ten,{COUNT},five\nA-2,text,one,two,one\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "claims.csv").write_text(CLAIMS)
    (tmp_path / "made" / "discrepancies.csv").write_text(OTHERS)
    monkeypatch.setattr(predicates, "PAPERS", tmp_path)


def test_a_row_has_its_check_and_its_texts_their_constants(folder):
    claim, = predicates.claims("made", "Made", {"A1": lambda evidence: Finding(HOLDS, "", "so")}, COUNT=9)
    assert (claim.id, claim.paper, claim.says, claim.figures) == ("A1", "Made", "It holds, always.", ("one", "two"))
    assert claim.identity and claim.predicate.endswith("of 9") and "{" not in claim.predicate
    assert claim.check(None).verdict == HOLDS
    first, second = predicates.discrepancies("made", "Made", {"A-1": lambda evidence: "seven"}, COUNT=9)
    assert (first.others_say, first.measure(None), second.measure(None) or NOT_MEASURED) == ("9", "seven", NOT_MEASURED)


@pytest.mark.parametrize(("checks", "lonely"), [({}, "A1"), ({"A1": None, "A2": None}, "A2")])
def test_a_row_without_a_check_and_a_check_without_a_row_are_named(folder, checks, lonely):
    with pytest.raises(ValueError, match=rf"made/claims\.csv and its checks differ in {lonely}; give each row"):
        predicates.claims("made", "Made", checks, COUNT=9)
    with pytest.raises(ValueError, match=r"made/discrepancies\.csv has no row A-3"):
        predicates.discrepancies("made", "Made", {"A-3": None}, COUNT=9)


def test_collapsed_encoders_are_compared_over_shared_seeds_alone(tmp_path):
    rows = [skeleton("CE", 80.0 + seed, seed=seed) for seed in range(3)] + [skeleton("AE", 20.0)]
    setting, = Evidence(placed(*rows), tmp_path, {}).settings("taxonomy")
    sides = {"CE over AE": ({"objectives": "CE"}, {"objectives": "AE"})}
    usual, shared = (predicates.differences("taxonomy", sides, shared=only)(setting)["CE over AE"]
                     for only in (False, True))
    assert usual.mean == shared.mean == 61.0
    assert usual.error == pytest.approx(math.sqrt(1 + 1 / 3)) and math.isnan(shared.error)


def test_of_fine_tuned_encoders_every_target_is_compared(tmp_path):
    rows = [sounding(method, {"ucf101": 40.0 + gain, "esc50": 60.0 - gain}, targets="ucf101,esc50", preset="paper",
                     dataset="kinetics700") for method, gain in (("cmacc", 3.0), ("xmoco", 1.0))]
    setting, = Evidence(placed(*rows), tmp_path, {}).settings("cross_modal")
    sides = {"active over random": ({"method": "cmacc"}, {"method": "xmoco"})}
    compared = predicates.differences("cross_modal", sides, targets=True)(setting)
    assert {name: estimate.mean for name, estimate in compared.items()} == {
        "active over random, esc50": -2.0, "active over random, ucf101": 2.0}
