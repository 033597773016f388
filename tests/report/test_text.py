"""What a person reads of a table on a terminal."""

import math

import pandas as pd
import pytest

from repro.experiments import results
from repro.report.text import WIDTH, readable, written_out

ROWS = pd.DataFrame({
    "objectives": ["random", "CE", "AE"], "CE": [0, 1, 0], "ours": [52.04, 80.0, math.nan], "std": [1.4, 1.1, math.nan],
    "n_seeds": [3, 4, 0], "published": [52.01, 83.73, math.nan], "difference": [0.03, -3.73, math.nan],
    "preset": "paper", "dataset": "ucla",
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


def test_the_difference_from_a_row_has_the_standard_error_of_two_means():
    rows = ROWS.iloc[:2]
    said = readable(rows, "CE").splitlines()[2]
    assert said.endswith(f"-28.0, s.e. {math.sqrt(1.4**2 / 3 + 1.1**2 / 4):.1f}")
    assert readable(rows.assign(std=math.nan), "CE").splitlines()[2].endswith("-28.0, s.e. unknown")
    with pytest.raises(ValueError, match="against='CD' is not one of: random, CE"):
        readable(rows, "CD")


def test_rows_of_several_targets_are_held_against_that_row_of_their_own():
    rows = pd.concat([ROWS.iloc[:2].assign(target=target, ours=[low, low + 5])
                      for target, low in (("a", 10), ("b", 50))])
    rows = rows[["objectives", "target", *ROWS.columns[2:]]].reset_index(drop=True)
    lines = readable(rows, "random").splitlines()[3::2]
    assert [line.rpartition("  ")[2] for line in lines] == ["+5.0, s.e. 1.0"] * 2


@pytest.mark.parametrize("name", ["samplers_with_headroom", "floor_and_ceiling", "positive_keys_cifar10",
                                  "taxonomy_ucla", "diversity_post_hoc", "transfer_esc10"])
def test_committed_tables_fit_a_terminal_and_rows_differ(name):
    rows = results(name)
    lines = readable(rows).splitlines()
    assert max(map(len, lines)) <= WIDTH
    body = lines[-len(rows):]
    assert len({line.rsplit("  ", 1)[0] for line in body}) == len(rows)
    assert "n_seeds" in written_out(rows).splitlines()[0]


def test_texts_that_are_too_long_are_cut():
    long = ROWS.assign(objectives=["a" * 150, "a" * 149 + "b", "c"])
    assert max(map(len, readable(long).splitlines())) <= WIDTH
