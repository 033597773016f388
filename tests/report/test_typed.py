"""Typed sentences against the tables beside them: what is borne out, and what would be an error of the person."""

import pytest

from repro.report.typed import NUMBER, evidence, unfounded

TABLE = """| objectives | ours | difference |
| --- | --- | --- |
| AE+AD+CD | 83.7\u00a0±\u00a01.0\u00a0(5) | +23.3 |
| AE | 51.3 | -8.7 |
| AE, three layers | 24.1 | -1.2 |
| random, three layers | 59.7 | -0.5 |
| twelve | 2.31 | 17.4 |
| thousands | 10,000 | 0.0004 |
| rows in 1999 | 46 |  |"""
CLAIMS = """|  | the paper says | here | measured |
| --- | --- | --- | --- |
| S15 | “SCE is 97.5 above, and ReSSL fails.” | holds | sce over ressl, ours: +16.8, s.e. 1.12, p 3.7e-07 |
| T9 | “Best.” | undecided | 2 numbers, here the lowest and the highest; CE over AD: -1.8, s.e. 1.2; CE over AE: +30.1 |
| T25 | “Worse.” | contradicts itself | AE over CD: -17.75; AD over CD: 5.72 |
| T28 | “Lost.” | fails | AE over random, layers 3: +16, s.e. 2 |"""
GRID = "| method | ours |\n| --- | --- |\n| SCE | 43.7 |\n| ReSSL | 26.2 |\n## 88.8\n> 77.7\n<Figure with 66.6 Axes>"
LINES = [line for output in (TABLE, CLAIMS, "", GRID) for line in evidence(output)]


@pytest.mark.parametrize("sentence", [
    "AE+AD+CD has 83.7 here, 23.3 more than in the paper.",
    "The twelve miss the paper by 2.3 points.",
    "A 17.4-point gap is between \N{MINUS SIGN}8.7 and +23.3.",
    "With three layers AE reads 24.1 % and random initialisation 59.7 %.",
    "Of 10,000 pictures 0.0004 are worse.",
    "CIFAR-10, T-2, 3D and 1-NN are names, as are `999`, [a link](page_999.md) and Tables 4 to 6, Figure M.2.",
    "SCE has 43.7 % where ReSSL has 26.2 % (S15 holds).",
    "SCE does not collapse where ReSSL does: it is 16.8 points ahead (S15 holds, s.e. 1.1).",
    "ReSSL collapses and SCE does not (S15 holds).",
    "CE is below AD, T9 undecided; S15 holds.",
    "AE is above random initialisation, so T28 fails, and S15 is another matter.",
    "Whether ReSSL helps more than SCE is another matter (S15 holds).",
    "ReSSL harms, where SCE does not (S15 holds).",
    "CD is above AE, by -17.75 (T25 contradicts itself).",
    "# 999 of a heading",
])
def test_what_the_outputs_show_may_be_typed(sentence):
    assert [*unfounded(sentence, LINES)] == []


@pytest.mark.parametrize(("sentence", "fault"), [
    ("The twelve miss by 2.4 points.", "2.4"),
    ("AE+AD+CD has 8.7 less.", "8.7"),  # another sign
    ("AE+AD+CD has 83.70.", "83.70"),  # more digits than are known
    ("A 17.5-point gap is between them.", "17.5"),
    ("The chance is 97.5, 88.8, 77.7 or 66.6.", "97.5"),  # of a paper's sentence, a heading, a quotation, a picture
    ("The gap is 88.8.", "88.8"), ("The gap is 77.7.", "77.7"), ("The gap is 66.6.", "66.6"),
    ("The gap is 1.", "1 "),  # as is 2, in another row
    ("SCE has 26.2 % where ReSSL has 43.7 % (S15 holds).", "26.2"),  # two numbers changed places
    ("SCE has 26.2 %, ReSSL has 43.7 %.", "26.2"),  # where rows are named, no other row will do
    ("AE+AD+CD has 23.3 more than in the paper, 83.7 here.", "83.7 stands before 23.3 in the outputs"),
    ("SCE has 43.8 % (S15 holds).", "43.8"), ("It is 16.9 points ahead of ReSSL (S15 holds).", "16.9"),
    ("SCE does collapse where ReSSL does not (S15 holds).", "'collapse' is not what S15 finds"),
    ("SCE is below ReSSL (S15 holds).", "'below' is not what S15 finds"),
    ("ReSSL is best (S15 holds).", "'best' is not what S15 finds"),
    ("MoCo is best (S15 holds).", "S15 compares neither side that 'best' is said of"),
    ("SCE has fewer than ReSSL (S15 holds).", "'fewer' is not what S15 finds"),
    ("SCE hurts and ReSSL does not (S15 holds).", "'hurts' is not what S15 finds"),
    ("ReSSL helps more than SCE (S15 holds).", "'helps' is not what S15 finds"),
    ("SCE is above ReSSL (S15 fails).", "S15 is 'fail', where its verdict is 'hold'"),
    ("S15 does not hold.", "S15 is 'not hold'"), ("S15 holds, as does T9: T9 holds.", "T9 is 'hold'"),
    ("CD is above AD (T25 contradicts itself).", "'above' is not what T25 finds"),
    ("CE is the best, T9 is undecided.", "'best' is not what T9 finds"),
])
def test_an_error_of_the_person_is_seen(sentence, fault):
    assert any(fault in found for found in unfounded(sentence, LINES)), sentence


def test_numbers_are_read_with_their_signs():
    assert NUMBER.findall("-2 to +3, 1,017 of 5; 35-74, 0.5. 18c78354, 20:16, 1.2.3") == [
        "-2", "+3", "1,017", "5", "35", "74", "0.5", "20"]
