"""Tables of results as Markdown."""

import math

from pandas import DataFrame

from repro.report.text import across, beside, markdown

ROWS = DataFrame({
    "method": ["a", "a", "b"], "keys": [1, 2, 1], "ours": [50.0, 61.26, 40.0], "std": [math.nan, 1.04, 0.0],
    "n_seeds": [1, 3, 2], "published": [51.5, math.nan, math.nan], "difference": [-1.5, math.nan, math.nan],
    "preset": "paper", "dataset": "x",
})


def test_ours_stands_beside_what_is_printed():
    table = beside(ROWS)
    assert table.columns.tolist() == ["method", "keys", "ours", "printed", "difference"]
    assert table.to_numpy().tolist() == [
        ["a", "1", "50.0 (1)", "51.5", "-1.5"], ["a", "2", "61.3 ± 1.0 (3)", "", ""],
        ["b", "1", "40.0 ± 0.0 (2)", "", ""],
    ]
    nothing_printed = ROWS.assign(published=math.nan, difference=math.nan)
    assert beside(nothing_printed).columns.tolist() == ["method", "keys", "ours"]


def test_a_field_goes_across_in_the_order_of_the_rows():
    table = across(ROWS.iloc[::-1], ["keys"], "method")
    assert table.columns.tolist() == ["keys", "b", "a"]
    assert table.to_numpy().tolist() == [["1", "40.0 ± 0.0 (2)", "50.0 (1)"], ["2", "", "61.3 ± 1.0 (3)"]]


def test_a_table_as_markdown():
    table = DataFrame({"name": ["a|b", "c"], "value": [1.5, math.nan]})
    assert markdown(table) == "| name | value |\n| --- | --- |\n| a\\|b | 1.5 |\n| c |  |"
