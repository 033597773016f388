"""What a person reads of a table on a terminal, and tables as Markdown."""

import math

import pandas as pd
import pytest
import statsmodels.formula.api as smf

from repro.data.manifest import project_root
from repro.experiments import find, results
from repro.report.text import WIDTH, across, markdown, readable
from repro.run.export import read_cells

CELLS = project_root() / "figures" / "cells.csv"
ROWS = pd.DataFrame({
    "objectives": ["random", "CE", "AE"], "CE": [0, 1, 0], "ours": [52.04, 80.0, math.nan], "std": [1.4, 1.1, math.nan],
    "n_seeds": [3, 4, 0], "published": [52.01, 83.73, math.nan], "difference": [0.03, -3.73, math.nan],
    "preset": "paper", "dataset": "ucla",
})
SWEPT = pd.DataFrame({
    "method": ["a", "a", "b"], "keys": [1, 2, 1], "ours": [50.0, 61.26, 40.0], "std": [math.nan, 1.04, 0.0],
    "n_seeds": [1, 3, 2], "published": [51.5, math.nan, math.nan], "difference": [-1.5, math.nan, math.nan],
    "preset": "paper", "dataset": "x",
})


def test_mean_deviation_and_seeds_printed_and_difference_stand_beside_what_tells_rows_apart():
    assert readable(ROWS).splitlines() == [
        "ucla, paper recipe",
        "objectives  ours            printed  difference",
        "random      52.0 ± 1.4 (3)  52.01    +0.0",
        "CE          80.0 ± 1.1 (4)  83.73    -3.7",
        "AE          -",
    ]
    assert readable(ROWS.iloc[:0]) == "no cell is finished"


def test_the_title_of_a_single_row_says_how_it_departs():
    rows = SWEPT[2:].copy()
    rows.insert(2, "departures", [{"epochs": 3}])
    assert readable(rows).splitlines() == [
        "x, paper recipe, keys 1, epochs=3", "method  ours", "b       40.0 ± 0.0 (2)",
    ]


def test_the_difference_from_a_row_has_the_standard_error_of_two_means():
    rows = ROWS.iloc[:2]
    said = readable(rows, {"objectives": "CE"}).splitlines()[2]
    assert said.endswith(f"-28.0, s.e. {math.sqrt(1.4**2 / 3 + 1.1**2 / 4):.1f}")
    single = rows.assign(std=math.nan, n_seeds=1)
    assert readable(single, {"objectives": "CE"}).splitlines()[2].endswith("-28.0, s.e. unknown")
    assert readable(ROWS, {"objectives": "CE"}).splitlines()[-1] == "AE          -"  # no run, no difference


def test_the_standard_error_is_that_of_all_trained_rows_but_those_that_scatter():
    ours = find("taxonomy_ucla").rows(read_cells(CELLS), ["seed"])
    trained = ours[~ours["objectives"].isin(["random", "AE", "AE+CD"])]
    fitted = smf.ols("ours ~ C(objectives)", trained).fit()
    error = fitted.t_test("C(objectives)[T.CE] - C(objectives)[T.AE+CE+AD] = 0").sd.item()
    lines = readable(results("taxonomy_ucla"), {"objectives": "CE"}).splitlines()
    said = {line.split()[0]: line.rpartition("s.e. ")[2] for line in lines}
    assert said["AE+CE+AD"] == said["CE+AD+CD"] == f"{error:.1f}" and said["AE"] != said["CE+AD+CD"]


def test_a_row_is_held_against_the_one_that_is_as_it_is_in_all_that_is_not_named():
    deviation = math.sqrt(2 * 1.04**2 / (2 + 1))  # pooled over rows of three and of two seeds
    assert [line.rpartition("  ")[2] for line in readable(SWEPT, {"method": "a"}).splitlines()[2:]] == [
        "-1.5", "61.3 ± 1.0 (3)", f"-10.0, s.e. {deviation * math.sqrt(1 / 2 + 1):.1f}"]
    assert [line.rpartition("  ")[2] for line in readable(SWEPT, {"keys": 2.0, "method": "a"}).splitlines()[2:]] == [
        f"-11.3, s.e. {deviation * math.sqrt(1 + 1 / 3):.1f}", "61.3 ± 1.0 (3)",
        f"-21.3, s.e. {deviation * math.sqrt(1 / 2 + 1 / 3):.1f}"]
    assert all(line.endswith("its row is not here") for line in readable(SWEPT, {"keys": 3.0}).splitlines()[2:])


def test_rows_of_several_targets_are_held_against_that_row_of_their_own():
    rows = pd.concat([ROWS.iloc[:2].assign(target=target, ours=[low, low + 5])
                      for target, low in (("a", 10), ("b", 50))])
    rows = rows[["objectives", "target", *ROWS.columns[2:]]].reset_index(drop=True)
    lines = readable(rows, {"objectives": "random"}).splitlines()[3::2]
    assert [line.rpartition("  ")[2] for line in lines] == ["+5.0, s.e. 1.0"] * 2


@pytest.mark.parametrize("name", ["samplers_with_headroom", "cross_modal_with_headroom", "positive_keys_cifar10",
                                  "taxonomy_ucla", "diversity_post_hoc", "transfer_esc10"])
def test_committed_tables_fit_a_terminal_and_rows_differ(name):
    rows = results(name)
    lines = readable(rows).splitlines()
    assert max(map(len, lines)) <= WIDTH
    body = lines[-len(rows):]
    assert len({line.rsplit("  ", 1)[0] for line in body}) == len(rows)


def test_texts_that_are_too_long_are_cut():
    long = ROWS.assign(objectives=["a" * 150, "a" * 149 + "b", "c"])
    assert max(map(len, readable(long).splitlines())) <= WIDTH


def test_a_field_goes_across_in_the_order_of_the_rows():
    table = across(SWEPT.iloc[::-1], ["keys"], "method")
    assert table.columns.tolist() == ["keys", "b", "a"]
    assert table.to_numpy().tolist() == [["1", "40.0 ± 0.0 (2)", "50.0 (1)"], ["2", "", "61.3 ± 1.0 (3)"]]


def test_a_table_as_markdown():
    table = pd.DataFrame({"name": ["a|b", "c"], "value": [1.5, math.nan]})
    assert markdown(table) == "| name | value |\n| --- | --- |\n| a\\|b | 1.5 |\n| c |  |"
    measured = markdown(pd.DataFrame({"ours": ["67.0 ± 5.5 (2)", "67.0 (1)", "layer 1 (a)"]})).splitlines()[2:]
    assert measured == ["| 67.0\u00a0±\u00a05.5\u00a0(2) |", "| 67.0\u00a0(1) |", "| layer 1 (a) |"]
