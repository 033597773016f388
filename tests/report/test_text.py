"""What a person reads of a table on a terminal, and tables as Markdown."""

import math

import pandas as pd
import pytest

from repro.experiments import results
from repro.report.text import WIDTH, across, markdown, readable

ROWS = pd.DataFrame({
    "objectives": ["random", "CE", "AE"], "CE": [0, 1, 0], "ours": [52.04, 80.0, math.nan], "std": [1.4, 1.1, math.nan],
    "n_seeds": [3, 4, 0], "printed": [52.01, 83.7, math.nan], "difference": [0.03, -3.7, math.nan],
    "preset": "paper", "dataset": "ucla",
})
SWEPT = pd.DataFrame({
    "method": ["a", "a", "b"], "keys": [1, 2, 1], "ours": [50.0, 61.26, 40.0], "std": [math.nan, 1.04, 0.0],
    "n_seeds": [1, 3, 2], "printed": [51.5, math.nan, math.nan], "difference": [-1.5, math.nan, math.nan],
    "preset": "paper", "dataset": "x",
})


def test_mean_deviation_and_seeds_printed_and_difference_stand_beside_what_tells_rows_apart():
    assert readable(ROWS).splitlines() == [
        "ucla, paper recipe",
        "objectives  ours            printed  difference",
        "random      52.0 ± 1.4 (3)  52.01    +0.0",
        "CE          80.0 ± 1.1 (4)  83.70    -3.7",
        "AE          -",
    ]
    assert readable(ROWS.iloc[:0]) == "no run is finished"


def test_the_title_of_a_single_row_says_how_it_differs():
    rows = SWEPT[2:].copy()
    rows.insert(2, "changed", [{"epochs": 3}])
    assert readable(rows).splitlines() == [
        "x, paper recipe, keys 1, epochs=3", "method  ours", "b       40.0 ± 0.0 (2)",
    ]


@pytest.mark.parametrize("name", ["samplers_with_headroom", "cross_modal_with_headroom", "positive_keys_cifar10",
                                  "taxonomy_ucla", "diversity_post_hoc", "pooled_keys_synthetic"])
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
    rates = pd.DataFrame({"temperature": [0.1, 0.05, math.nan], "size": [256.0, 1e5, 3]})
    assert markdown(rates).splitlines()[2:] == ["| 0.10 | 256 |", "| 0.05 | 100000 |", "|  | 3 |"]
    assert markdown(rates, {"size": 1}).splitlines()[2:] == ["| 0.10 | 256.0 |", "| 0.05 | 100000.0 |", "|  | 3.0 |"]
    assert markdown(table.assign(n=[1, 2]), 2).splitlines()[2:] == ["| a\\|b | 1.50 | 1 |", "| c |  | 2 |"]
    assert markdown(table, {"value": 0}).splitlines()[2] == "| a\\|b | 2 |"
    measured = markdown(pd.DataFrame({"ours": ["67.0 ± 5.5 (2)", "67.0 (1)", "layer 1 (a)"]})).splitlines()[2:]
    assert measured == ["| 67.0\u00a0±\u00a05.5\u00a0(2) |", "| 67.0\u00a0(1) |", "| layer 1 (a) |"]
