"""The rules of the NW-UCLA column, on made-up curves."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from repro.papers.taxonomy import rules
from repro.report.printed import printed

TABLE = printed("taxonomy")
TERMS = ["AE", "CE", "AD", "CD"]
PRINTED = {"+".join(term for term in TERMS if row[term]): row["UCLA"] for _, row in TABLE.iterrows()}
EPOCHS = (10, 20, 30)


def log_of(curves, **origin):
    """A log of curves by entry and seed: (linear, linear_best, knn1) at each of the epochs."""
    origin = {"key": "k", "dataset": "ucla", "preset": "paper", "version": 3} | origin
    return pd.DataFrame([
        {"epoch": epoch, "measure": measure, "value": value, "objectives": entry.split(",")[0], "entry": entry,
         "seed": seed, **origin}
        for (entry, seed), curve in curves.items() for epoch, values in zip(EPOCHS, curve, strict=True)
        for measure, value in zip(("linear", "linear_best", "knn1"), values, strict=True)
    ])


def flat(values):
    """Curves that stay where they are, for three seeds one point apart."""
    return {(name, seed): [(value + seed - 1, value + 5, 70.0)] * 3
            for name, value in values.items() for seed in (0, 1, 2)}


def test_each_rule_reads_its_number_off_a_curve():
    curve = [(60.0, 61.0, 50.0), (80.0, 82.0, 55.0), (70.0, 74.0, 55.0)]
    curves = {("AE", 0): curve, ("CE", 0): [(50.0, 51.0, 1.0)] * 3,
              ("CE+AD, ad_weight=25.0", 0): [(1.0, 2.0, 3.0), (4.0, 5.0, 6.0), (33.0, 34.0, 35.0)],
              ("AD, ad_weight=0.004, ad_loss=squared", 0): [(7.0, 8.0, 9.0)] * 3,
              ("AE, layers=3", 0): [(99.0, 99.0, 99.0)] * 3}
    found = rules.readings(log_of(curves))
    by_rule = {rule: values.loc["AE", 0] for rule, values in found.items() if "AE" in values.index}
    assert by_rule == {"epoch 10": 60.0, "epoch 20": 80.0, "epoch 30": 70.0, rules.BEST_EPOCH: 80.0,
                       rules.RELEASED: 82.0, rules.BEST_OF_BOTH: 82.0}
    departing = {rule: values[0].to_dict() for rule, values in found.items() if rule in rules.DEPARTING}
    assert departing == {"weights of November 2020": {"CE+AD": 33.0}, "squared differences, weight 0.004": {"AD": 7.0}}
    assert all({*values.index} <= {"AE", "CE"} for rule, values in found.items() if rule not in rules.DEPARTING)


def test_distances_of_a_column_from_the_print():
    ours = {name: value + 4.0 * (name == "CE") - 8.0 * (name == "AD+CD") for name, value in PRINTED.items()}
    table = rules.compared(log_of(flat(ours)))
    row = table[(table["rule"] == "epoch 20") & (table["exchanged"] == 0)].iloc[0]
    both = pd.DataFrame({"ours": ours, "printed": PRINTED})
    assert row["objectives"] == 15
    assert row["spearman"] == pytest.approx(both.corr(method="spearman").iloc[0, 1])
    assert row["rmse"] == pytest.approx(np.sqrt((4**2 + 8**2) / 15))
    assert row["apart"] == 2  # by a deviation of 1
    assert row["highest_gap"] == pytest.approx((4 - 8) / 7)
    assert row["spearman_low"] <= row["spearman"] <= row["spearman_high"]
    swapped = table[(table["rule"] == "epoch 20") & (table["exchanged"] == 1)].iloc[0]
    gap = PRINTED["AE+CD"] - PRINTED["AE+AD+CD"]
    assert swapped["rmse"] == pytest.approx(np.sqrt((4**2 + 8**2 + 2 * gap**2) / 15))


def test_ranks_are_of_counts_of_correct_samples():
    """366 and 368 of 460 are together 2 x 367, which the digits of a log (79.57, 80.00; 79.78) would tell apart."""
    rows = np.array([[(79.57 + 80.00) / 2, 79.78, 60.0]])
    expected = spearmanr([2, 2, 1], [3, 2, 1]).statistic
    assert rules._spearman(rows, pd.Series([3.0, 2.0, 1.0])).item() == pytest.approx(expected)


def test_one_deviation_between_seeds_judges_all_but_those_that_fall_apart():
    curves = flat(PRINTED | {"CE": PRINTED["CE"] + 3.0})
    for seed, away in enumerate((-30.0, 0.0, 30.0)):  # which would make three points of CE nothing
        curves["AE", seed] = [(PRINTED["AE"] + away - 20.0, 0.0, 70.0)] * 3
    curves = {key: curve for key, curve in curves.items() if key not in {("AD+CD", 0), ("AD+CD", 1)}}
    row = rules.compared(log_of(curves)).iloc[0]
    assert row["apart"] == 1


def test_a_departure_of_one_seed_is_judged_by_the_deviation_of_the_last_epoch_if_that_is_known():
    departing = {("CE+AD, ad_weight=25.0", 0): [(PRINTED["CE+AD"] - 4.0, 0.0, 70.0)] * 3}
    row = rules.compared(log_of(flat(PRINTED) | departing)).query("rule == 'weights of November 2020'").iloc[0]
    assert (row["objectives"], row["apart"]) == (1, 1)
    alone = {key: curve for key, curve in flat(PRINTED).items() if key[1] == 0}
    table = rules.compared(log_of(alone | departing))
    assert table["apart"].isna().all()


def test_rows_that_were_not_run_are_never_filled():
    table = rules.compared(log_of(flat({"CE": 80.0, "AD": 70.0, "CD": 60.0})))
    assert set(table["objectives"]) == {3}
    two = rules.compared(log_of(flat({"CE": 80.0, "AD": 70.0})))  # whose order is right or wrong, no more
    assert two["spearman"].isna().all() and two["rmse"].notna().all()
    assert rules.compared(log_of(flat({"CE": 80.0}), preset="quick")).empty
    assert rules.compared(log_of(flat({"CE": 80.0}), dataset="synthetic")).empty


def test_every_rule_has_two_rows_as_printed_and_exchanged():
    assert len(rules.compared(log_of(flat(PRINTED)))) == 2 * (len(EPOCHS) + 3)
