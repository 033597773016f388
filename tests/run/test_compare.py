import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame, Series

from repro.run.compare import beside

ENTRIES = DataFrame({"AE": [0, 1, 1], "CE": [1, 0, 1]}, index=["CE", "AE", "AE+CE"])


def results(*rows: tuple[str, int, float]) -> DataFrame:
    return DataFrame(rows, columns=["entry", "seed", "value"])


def test_hand_computed_values():
    found = results(("CE", 0, 80.0), ("AE", 3, 51.5), ("CE", 1, 82.0), ("CE", 2, 87.0))
    table = beside(ENTRIES, found, Series({"AE": 59.98, "CE": 83.73}), preset="paper", dataset="ucla")

    columns = ["AE", "CE", "ours", "std", "n_seeds", "published", "difference", "preset", "dataset"]
    assert list(table.columns) == columns and list(table.index) == ["CE", "AE", "AE+CE"]
    np.testing.assert_allclose(table["ours"], [83.0, 51.5, np.nan])
    np.testing.assert_allclose(table["std"], [np.sqrt((9 + 1 + 16) / 2), np.nan, np.nan])
    assert table["n_seeds"].tolist() == [3, 1, 0]
    np.testing.assert_allclose(table["published"], [83.73, 59.98, np.nan])
    np.testing.assert_allclose(table["difference"], [-0.73, -8.48, np.nan], atol=1e-9)
    assert set(table["preset"]) == {"paper"} and set(table["dataset"]) == {"ucla"}


@pytest.mark.parametrize(("preset", "dataset"), [
    ("quick", "ucla"), ("smoke", "ucla"), ("paper", "ntu (subset)"), ("paper", "cifar10 (part.npz)"),
])
def test_nothing_is_subtracted_where_preset_or_data_are_other_than_the_papers(preset, dataset):
    table = beside(ENTRIES, results(("CE", 0, 80.0)), Series({"CE": 83.73}), preset=preset, dataset=dataset)
    assert table.loc["CE", "published"] == 83.73 and table.loc["CE", "ours"] == 80.0
    assert table["difference"].isna().all()


def test_nothing_is_subtracted_from_an_entry_that_departs_from_the_preset():
    departing = ENTRIES.assign(departures=["", "epochs=30", ""])
    found, printed = results(("CE", 0, 80.0), ("AE", 0, 50.0)), Series({"CE": 83.73, "AE": 59.98})
    table = beside(departing, found, printed, preset="paper", dataset="ucla")
    assert table["published"].tolist()[:2] == [83.73, 59.98]
    assert table["difference"].notna().tolist() == [True, False, False]


def test_nothing_is_subtracted_without_printed_numbers():
    table = beside(ENTRIES, results(("CE", 0, 80.0)), None, preset="quick", dataset="synthetic")
    assert table["published"].isna().all() and table["difference"].isna().all()
    assert table.loc["CE", "ours"] == 80.0


def test_no_results_yet():
    table = beside(ENTRIES, results(), Series({"CE": 83.73}), preset="paper", dataset="ucla")
    assert table["ours"].isna().all() and table["n_seeds"].tolist() == [0, 0, 0]
    assert table.loc["CE", "published"] == 83.73 and table["difference"].isna().all()
    assert table[["ours", "std", "published", "difference"]].dtypes.eq("float64").all()


def test_entries_are_left_as_they_were():
    before = ENTRIES.copy()
    beside(ENTRIES, results(("CE", 0, 80.0)), None, preset="smoke", dataset="synthetic")
    pd.testing.assert_frame_equal(ENTRIES, before)


def test_a_repeated_seed_is_an_error():
    found = results(("CE", 0, 80.0), ("AE", 0, 50.0), ("CE", 0, 80.0))
    with pytest.raises(ValueError, match="'CE' has more than one result for seed 0"):
        beside(ENTRIES, found, None, preset="quick", dataset="ucla")


def test_a_result_of_no_entry_is_an_error():
    with pytest.raises(ValueError, match=r"\['CD'\].*\['CE', 'AE', 'AE\+CE'\]"):
        beside(ENTRIES, results(("CD", 0, 80.0)), None, preset="quick", dataset="ucla")
