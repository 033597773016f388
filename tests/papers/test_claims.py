"""The papers' claims: that all can be judged, what verdicts committed cells and printed numbers give, and rules.

Numbers are typed from other calculations than those of the package: by hand, or from the tables of the papers.
"""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
import torch
from pandas import DataFrame, Series

from repro import experiments, papers
from repro.papers import sources
from repro.papers.cmacc import claims as cmacc
from repro.papers.jcl import claims as jcl
from repro.papers.sources import LOG, PRINTED_TABLE
from repro.papers.taxonomy import claims as taxonomy
from repro.papers.taxonomy import glm
from repro.report.claims import Claim, Results
from repro.report.printed import names, printed
from repro.report.verdicts import (
    CANNOT,
    CLOSED,
    CONSISTENT,
    CONTRADICTS,
    FAILS,
    HOLDS,
    LEVELS,
    NOT_RUN,
    PAPER,
    PRINTED,
    SHORTENED,
    UNDECIDED,
)

TITLES = ("CM-ACC", "JCL", "SCE", "taxonomy")
MENDED = {  # of which earlier verdicts were wrong, with the reason in a word
    "C1": FAILS, "C2": HOLDS,                          # Fig. 4 divides by the batch
    "C9": FAILS, "C10": UNDECIDED, "C25": UNDECIDED,   # errors are pooled
    "C14": FAILS, "C57": HOLDS,
    "C30": UNDECIDED,                                  # sizes had been renamed
    "C37": UNDECIDED,                                  # between two queries gradients are larger
    "C40": CANNOT,                                     # true by construction
    "C48": CONSISTENT,                                 # the gap meant is to random
    "C51": CONTRADICTS, "C52": CONTRADICTS,
    "J16": NOT_RUN, "J17": FAILS,                      # equal keys; diagonals give no correlations
    "T8": CONSISTENT, "T20": CONSISTENT,               # three columns in bold; a threshold
    "T10": FAILS, "T12": HOLDS, "T13": UNDECIDED,
}


@pytest.fixture(scope="module")
def committed():
    """Claims by id, the numbers behind them, and discrepancies by id, of the committed cells alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", "/nonexistent")
        claims, numbers, discrepancies = papers.judged()
    return claims.set_index("id"), numbers, discrepancies.set_index("id")


def number(committed, claim, compared):
    rows = committed[1].query("id == @claim and compared == @compared")
    assert len(rows) == 1, [*committed[1].query("id == @claim")["compared"]]
    return rows.iloc[0]


def test_there_are_enough_of_every_paper_with_unique_names_and_complete_texts():
    claims, discrepancies = (papers.listed(name) for name in ("claims", "discrepancies"))
    assert len(claims) >= 110 and len(discrepancies) >= 60
    assert {*claims["paper"]} == {*discrepancies["paper"]} == {*TITLES}
    ids = [*claims["id"], *discrepancies["id"]]
    assert len(set(ids)) == len(ids)
    assert claims["says"].str.endswith(".").all() and (claims["place"] != "").all()
    assert (discrepancies[["paper_says", "others_say", "here"]] != "").all(axis=None)


def test_every_rule_of_a_paper_is_used_and_all_that_claims_name_is_there():
    rows = pd.concat([papers.listed("claims"), papers.listed("discrepancies")])
    own = {name for rules in papers.offered("RULES", "claims").values() for name in rules}
    assert own <= {*rows["rule"]} <= {*papers.rules(), ""}
    for name in {name for text in rows["experiment"] for name in text.split()}:
        if name.startswith(PRINTED_TABLE):
            assert name.removeprefix(PRINTED_TABLE) in names()
        elif name.startswith(LOG):
            assert len(sources.reader()(name).rows) > 0
        else:
            assert experiments.find(name).data  # whose results are committed


def test_verdicts_have_their_level(committed):
    claims, _, _ = committed
    said = claims["verdict"].isin([CONSISTENT, CONTRADICTS])
    assert (claims.loc[said, "level"] == PRINTED).all() and said.sum() >= 30
    assert not (claims.loc[claims["level"] == PRINTED, "verdict"].isin([HOLDS, FAILS])).any()
    without = claims["verdict"].isin([NOT_RUN, CANNOT])
    assert (claims["level"].isin(LEVELS) == ~without).all()
    assert (claims.loc[~without, "evidence"] != "").all()


def test_verdicts_that_were_wrong_are_mended(committed):
    assert committed[0].loc[[*MENDED], "verdict"].to_dict() == MENDED


def test_sentences_that_nobody_wrote_and_doubles_are_gone(committed):
    assert {"T11", "T19", "J2", "J3", "J14"}.isdisjoint(committed[0].index)


def test_larger_dictionaries_on_new_pairs_are_decided_by_the_residuals_of_all_rows(committed):
    for claim, value, t in (("C57", -2.08, 7.6), ("C14", -1.68, 6.1)):
        row = number(committed, claim, "dictionary 32768 over dictionary 2048")
        assert row["value"] == pytest.approx(value, abs=0.005)
        assert abs(row["value"] / row["error"]) == pytest.approx(t, abs=0.05)


def test_an_accidentally_small_error_of_three_pairs_decides_nothing(committed):
    row = number(committed, "C25", "gradient over random, unseen, dictionary 1024")
    assert row["error"] == pytest.approx(0.65, abs=0.005)


def test_the_printed_column_stands_beside_a_constant_and_shuffled_ones(committed):
    said = {name: number(committed, "T10", name)["value"] for name in (
        "within two deviations, of 13", "of the best constant", "share of shuffled columns with as many",
        "root mean square of 12 that are not refuted", "of the best constant's", "correlation")}
    assert [round(value, digits) for value, digits in zip(said.values(), (0, 0, 2, 1, 1, 2), strict=True)] == [
        8, 10, pytest.approx(0.39, abs=0.015), 2.4, 2.6, 0.69]
    rows = committed[1].query("id == 'T10' and error == error")
    refuted = rows[rows["p"] * len(rows) < 0.05]
    assert refuted["compared"].tolist() == ["AE+AD+CD"]


def test_the_highest_printed_entries_are_met_by_the_best_of_checkpoint_and_epoch(committed):
    text = committed[2].loc["T-18", "measured"]
    assert "both on the test split 0.01905" in text and "ours minus theirs, epoch 150 -2" in text


@pytest.mark.parametrize(("claim", "compared", "value"), [
    ("T1", "t of AD in nine rows", 2.394), ("T1", "t of CD in nine rows", 1.210),
    ("T1", "subsets that give the printed t", 52), ("T1", "of them to CD", 0),
    ("T2", "p, one-tailed, 4 degrees", 0.0374), ("T2", "two-tailed, 10 degrees", 0.0377),
    ("T18", "Table 1 over Table 2", 8.09), ("T20", "UCLA", 0.38), ("T20", "NTU_1layer", 0.13),
    ("T14", "layers 1", 0.12), ("C1", "% of 101 categories", 72.0), ("C1", "% of 128 draws", 56.8),
    ("C2", "expected of uniform draws", 72.7), ("C2", "categories, 60 % of M", 77),
    ("C30", "gains that are so, of unknown size taken for comparable", 12),
    ("C30", "gains that are so, sizes as printed", 8), ("C35", "Kinetics-Sound, ESC50", -1.9),
    ("C38", "batches in the dictionary", 30), ("C51", "Supervised over CM-ACC", -0.9),
    ("C52", "Ours, Kinetics700 over AVID (Morgado et al., 2020), Kinetics", 1.1),
    ("C48", "UCF101, M = 32 to 64: 11.7 to 2.3", 9.4), ("J6", "steps of 256", 256),
    ("S8", "tau 0.2 over tau 0.1", 1.37), ("S16", "CIFAR100", 0.02),
    ("C34", "CM-ACC, AudioSet over Supervised, Kinetics400, ESC50", 8.5),
])
def test_numbers_known_beforehand(committed, claim, compared, value):
    assert number(committed, claim, compared)["value"] == pytest.approx(value, abs=0.06 if value > 50 else 0.0051)


def test_without_any_cells_what_needs_training_is_not_run(committed, monkeypatch):
    exported = sources.everything()
    monkeypatch.setattr(sources, "everything", lambda: exported[:0])
    claims, _, _ = papers.judged()
    claims, known = claims.set_index("id"), committed[0]
    needs = papers.listed("claims").set_index("id")["experiment"]
    trained = needs[(needs != "") & ~needs.str.contains("/")].index
    assert len(trained) >= 30 and (claims.loc[trained, "verdict"] == NOT_RUN).all()
    others = needs.index.difference(trained)
    pd.testing.assert_frame_equal(claims.loc[others, ["verdict", "level"]], known.loc[others, ["verdict", "level"]])


def test_claims_of_one_paper_and_verdict():
    claims, numbers, discrepancies = papers.judged("SCE", verdict=CONSISTENT)
    assert {*claims["paper"]} == {*discrepancies["paper"]} == {"SCE"} and {*claims["verdict"]} == {CONSISTENT}
    assert {*numbers["id"]} == {*claims["id"]} and len(discrepancies) == 12
    with pytest.raises(ValueError, match="paper='MoCo' is not one of: all, CM-ACC, JCL, SCE, taxonomy"):
        papers.judged("MoCo")


def test_every_paper_has_claims_of_several_kinds(committed):
    counts = Counter(committed[0]["paper"])
    assert counts["taxonomy"] >= 25 and counts["CM-ACC"] >= 60 and counts["SCE"] >= 15 and counts["JCL"] >= 14


# Rules of the papers, on made-up results


def claim(first="", second="", *, measure="ours", margin=0.0):
    return Claim("made_up", measure, first, second, "", margin)


def objectives(values, seeds=3, spread=0.1):
    rows = [{"objectives": name, "seed": seed, "ours": value + spread * (seed - 1)}
            for name, value in values.items() for seed in range(seeds)]
    return Results(DataFrame(rows), ["objectives"], PAPER)


def test_a_term_lowers_what_has_it():
    ours = dict.fromkeys(glm.OBJECTIVES, 80.0)
    for name in ours:
        ours[name] -= 4.0 * ("CD" in name.split("+")) + 0.1 * len(name)
    verdict, numbers = taxonomy.term_lowers(claim("CD"), objectives(ours))
    assert verdict == HOLDS and numbers["lowered by, mean of 7 pairs"].value == pytest.approx(4.3)
    verdict, _ = taxonomy.term_lowers(claim("CD"), objectives({name: -value for name, value in ours.items()}))
    assert verdict == FAILS


def test_mixing_is_held_against_the_best_of_its_parts():
    values = Series({"AE": 50.0, "CE": 80.0, "AD": 82.0, "AE+AD": 70.0, "CE+AD": 84.0, "AE+CE": 81.0, "AE+CE+AD": 83.0})
    assert taxonomy.gains_of_mixing(values).to_dict() == pytest.approx({"AE+CE": 1.0, "AE+CE+AD": -1.0})


def test_a_significant_term_is_that_of_the_linear_model():
    ours = {name: 60.0 + 10.0 * ("CD" in name.split("+")) + len(name) % 3 for name in glm.OBJECTIVES}
    verdict, numbers = taxonomy.term_is_significant(claim("CD"), objectives(ours))
    nine = [name for name in glm.OBJECTIVES if name in glm.ROW_SETS["unmixed+best"]]
    data = DataFrame([{term: int(term in name.split("+")) for term in glm.TERMS} | {"y": ours[name]} for name in nine])
    fitted = smf.ols("y ~ AE + CE + AD + CD", data).fit()
    assert numbers["CD"].value == pytest.approx(fitted.params["CD"])
    assert numbers["CD"].p() == pytest.approx(fitted.pvalues["CD"])
    assert verdict == HOLDS
    lacking = {name: value for name, value in ours.items() if name != "AE+CE+AD"}
    assert taxonomy.term_is_significant(claim("CD"), objectives(lacking))[0] == UNDECIDED


def samplers(gaps, spread=0.5):
    """Accuracies of two samplers whose difference at each M is given, three seeds each."""
    noise = np.random.default_rng(0)
    rows = [{"sampler": sampler, "batch": batch, "target": "one", "seed": seed,
             "ours": 50 + gap * (sampler == "random") + spread * noise.standard_normal()}
            for batch, gap in gaps.items() for sampler in ("random", "ohem") for seed in range(3)]
    return Results(DataFrame(rows), ["sampler", "batch", "target"], SHORTENED)


def test_a_gap_that_shrinks_is_a_contrast_of_four_means():
    source = samplers({32: 9.0, 64: 5.0, 128: 1.0})
    verdict, numbers = cmacc.gap_shrinks(claim("sampler=random", "sampler=ohem"), source)
    rows = source.rows.assign(row=source.rows["sampler"] + source.rows["batch"].astype(str))
    fitted = smf.ols("ours ~ C(row) - 1", rows).fit()
    names_of_terms = [f"C(row)[{sampler}{batch}]" for batch in (32, 128) for sampler in ("random", "ohem")]
    weights = Series(0, fitted.params.index)
    weights[names_of_terms] = [1, -1, -1, 1]
    test = fitted.t_test(weights.to_numpy())
    assert verdict == HOLDS
    assert numbers["one"].value == pytest.approx(test.effect.item())
    assert numbers["one"].error == pytest.approx(test.sd.item()) and numbers["one"].df == fitted.df_resid
    assert cmacc.gap_shrinks(claim("sampler=random", "sampler=ohem"), samplers({32: 1.0, 128: 9.0}))[0] == FAILS


def post_hoc(gain):
    rows = [{"measure": "categories", "posterior": 1.0, "version": version, "step": step, "frequency": "balanced",
             "batch": batch, "seed": seed, "sampler": sampler,
             "value": 40.0 + (gain + 0.2 * seed) * (sampler == "gradient") * (step == 9) * (version == 5)}
            for version in (4, 5) for step in (1, 9) for batch in (32, 64) for seed in range(4)
            for sampler in ("gradient", "random")]
    return Results(DataFrame(rows), [], SHORTENED)


def test_categories_post_hoc_are_those_of_the_last_step_and_version():
    verdict, numbers = cmacc.categories_post_hoc(claim("sampler=gradient", "sampler=random"), post_hoc(3.0))
    assert verdict == HOLDS and {name: round(row.value, 6) for name, row in numbers.items()} == {
        "balanced, M = 32": 3.3, "balanced, M = 64": 3.3}
    only = cmacc.categories_post_hoc(claim("sampler=gradient; batch=64", "sampler=random"), post_hoc(3.0))[1]
    assert [*only] == ["balanced, M = 64"]
    assert cmacc.categories_post_hoc(claim("sampler=gradient", "sampler=random"), post_hoc(-3.0))[0] == FAILS


def curves(early, late):
    """Categories of two samplers over a hundred steps, whose gaps in the first and the last tenth are given."""
    rows = [{"frequency": "balanced", "batch": 64, "sampler": sampler, "seed": seed, "step": step,
             "categories_video": 30 + seed + (sampler == "gradient") * (1 + 0.02 * seed)
             * (early if step <= 10 else late)}
            for sampler in ("gradient", "random") for seed in range(4) for step in range(1, 101)]
    return Results(DataFrame(rows), [], SHORTENED)


def test_alike_early_is_a_share_of_the_last_gap():
    assert cmacc.alike_early(claim(margin=0.5), curves(1.0, 6.0))[0] == HOLDS
    assert cmacc.alike_early(claim(margin=0.5), curves(5.0, 6.0))[0] == FAILS


def test_diversity_grows_from_the_first_to_the_last_tenth():
    verdict, numbers = cmacc.grows(claim(), curves(1.0, 6.0))
    assert verdict == HOLDS and numbers["balanced, M = 64"].value == pytest.approx(5 * 1.03)
    assert cmacc.grows(claim(), curves(6.0, 1.0))[0] == FAILS


def test_a_pseudo_label_has_not_always_the_smallest_gradient():
    """Its norms are those of all labels' gradients, computed one by one."""
    verdict, numbers = cmacc.pseudo_label_is_least()
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(128, 512, generator=generator, dtype=torch.float64).relu()
    logits = torch.randn(256, 128, generator=generator, dtype=torch.float64)
    smaller = 0
    for row in logits.softmax(dim=1):
        norms = torch.stack([inputs.T @ (row - torch.eye(128, dtype=torch.float64)[label]) for label in range(128)])
        norms = norms.norm(dim=1)
        smaller += bool((norms < norms[row.argmax()] - 1e-9).any())
    assert verdict is False
    assert numbers["% of candidates with a smaller one, deviation 1"].value == pytest.approx(100 * smaller / 256)


def test_a_category_is_easier_than_another():
    rows = DataFrame({"query": "video", "category": ["a", "b", "c"], "pairs": 100, "accuracy": [20.0, 50.0, 80.0]})
    verdict, numbers = cmacc.depends_on_category(claim(), Results(rows, [], SHORTENED))
    assert verdict == HOLDS and numbers["queries of video: chi-squared"].value == pytest.approx(72.0)
    alike = Results(rows.assign(accuracy=50.0), [], SHORTENED)
    assert cmacc.depends_on_category(claim(), alike)[0] == UNDECIDED


def test_the_closed_form_keeps_less_and_multiplies_less_than_as_many_losses():
    verdict, numbers = jcl.cheaper_than_vanilla()
    values = [value.value for value in numbers.values()]
    assert verdict is True and values[1] / values[0] == pytest.approx(5, rel=0.01) and values[3] > 2 * values[2]


def test_one_diagonal_has_several_correlations():
    verdict, numbers = jcl.diagonal_says_correlation()
    assert verdict is False and numbers["largest difference of diagonals"].value < 1e-9
    assert abs(numbers["correlation of one pair"].value) < 0.1 and numbers["of the other"].value == pytest.approx(1)


def test_a_printed_table_has_the_names_of_its_rows():
    rows = sources.reader()("printed/taxonomy").rows.set_index("objectives")
    assert rows.loc["AE+CE+AD", "UCLA"] == 86.08 and len(rows) == len(printed("taxonomy"))


def test_several_experiments_are_told_apart_and_carry_as_far_as_the_weakest():
    found = sources.reader()("taxonomy_ucla taxonomy_synthetic")
    assert found.apart[0] == "experiment" and found.level == sources.reader()("taxonomy_synthetic").level
    assert {*found.rows["experiment"]} == {"taxonomy_ucla", "taxonomy_synthetic"}


def test_closed_forms_need_no_rows():
    found = sources.reader()("")
    assert found.level == CLOSED and found.rows.empty
