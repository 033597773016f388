"""Made-up results as rows of the image tables: columns, means over seeds, printed numbers, departures."""

import itertools

import numpy as np
import pandas as pd
import pytest
from image_columns import LAYOUTS, TAIL
from pandas import DataFrame

from repro.image import table_layouts, tables
from repro.report import printed
from repro.report.printed import as_printed

NAMES = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "stl10": "STL10", "tiny_imagenet": "Tiny-IN"}
pytestmark = pytest.mark.usefixtures("runs")


def results(cells):
    """Made-up results of the cells, as the layouts take them."""
    values = itertools.count(40.0, 0.25)
    return DataFrame([
        cell.recipe.to_dict() | {"entry": cell.entry, "seed": cell.seed, "linear": next(values),
                                 "knn1": 30.0 + cell.seed, "embedding_spread": 0.5 + cell.seed / 10}
        for cell in cells
    ])


def laid_out(table, cells):
    return tables.TABLES[table].layout(results(cells), cells[0].preset, cells[0].dataset)


@pytest.mark.parametrize("table", LAYOUTS)
def test_columns_and_means_over_seeds(any_data, table):
    cells = tables.TABLES[table].cells("cifar10", preset="quick", seeds="0,1,5")
    frame = laid_out(table, cells)
    assert list(frame.columns) == LAYOUTS[table]
    found = results(cells)
    by_entry = found.groupby("entry")["linear"]
    entries = found["entry"].drop_duplicates()
    if table != "positive_keys":
        assert len(frame) == len(entries)
        np.testing.assert_allclose(frame["ours"], by_entry.mean()[entries])
        np.testing.assert_allclose(frame["std"], by_entry.std(ddof=1)[entries])
    assert set(frame["n_seeds"]) == {3} and set(frame["preset"]) == {"quick"} and set(frame["dataset"]) == {"cifar10"}
    np.testing.assert_allclose(frame["knn1"], 32)
    np.testing.assert_allclose(frame["embedding_spread"], 0.7)


@pytest.mark.parametrize("suffix", ["", " (subset)"])
@pytest.mark.parametrize("dataset", NAMES)
def test_printed_accuracies_stand_at_their_temperatures(any_data, dataset, suffix):
    cells = tables.temperature_grid_cells(dataset, subset=bool(suffix))
    frame = laid_out("temperature_grid", cells)
    assert set(frame["dataset"]) == {dataset + suffix}
    grid = as_printed("sce_temperature").set_index(["dataset", "tau"])
    sce = frame[frame["method"] == "sce"]
    assert len(sce) == 16
    for row in sce.itertuples():
        value = float(grid.loc[(NAMES[dataset], f"{row.temperature:.1f}"), f"tau_m_{row.key_temperature:.2f}"])
        assert row.published == value
        expected = np.nan if suffix else row.ours - value  # of a part of the data, or a copy, nothing is subtracted
        assert row.difference == pytest.approx(expected, nan_ok=True)
    assert sce["published"].nunique() >= 12
    assert frame.loc[frame["method"] == "ressl", ["published", "difference"]].isna().all(axis=None)


def test_a_printed_accuracy_typed_from_the_paper(any_data):
    frame = laid_out("temperature_grid", tables.temperature_grid_cells("stl10"))
    best = frame.set_index(["method", "temperature", "key_temperature"]).loc[("sce", 0.1, 0.04)]
    assert best["published"] == 89.94


@pytest.mark.parametrize("dataset", ["imagenet100", "imagenet"])
def test_nothing_is_printed_for_other_data(any_data, dataset):
    frame = laid_out("temperature_grid", tables.temperature_grid_cells(dataset))
    assert frame[["published", "difference"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("temperatures", "key_temperatures"), [("0.1", "0.055,0.025,0.1004"), ("0.104,0.3,0.15", "0.05")]
)
def test_nothing_is_printed_between_the_printed_temperatures(any_data, temperatures, key_temperatures):
    cells = tables.temperature_grid_cells("cifar10", temperatures=temperatures, key_temperatures=key_temperatures)
    frame = laid_out("temperature_grid", cells)
    assert len(frame) == 3
    assert frame["published"].isna().all()


@pytest.mark.parametrize("table", LAYOUTS)
def test_nothing_is_subtracted_on_embedded_data(table, monkeypatch):
    monkeypatch.setitem(printed.SCE_NAMES, "digits", "CIFAR10")  # not even if asked to
    frame = laid_out(table, tables.TABLES[table].cells("digits"))
    assert frame[["published", "difference"]].isna().all(axis=None)
    assert frame["ours"].notna().all()


@pytest.mark.parametrize("table", ["image_methods", "positive_keys", "similarity_variance"])
def test_only_the_grid_of_temperatures_has_printed_numbers(any_data, table):
    frame = laid_out(table, tables.TABLES[table].cells("cifar10"))
    assert frame[["published", "difference"]].isna().all(axis=None)


def test_the_common_point_is_a_row_of_all_three_sweeps():
    cells = tables.positive_keys_cells(seeds="0,1")
    frame = laid_out("positive_keys", cells)
    assert frame["varied"].tolist() == ["keys"] * 4 + ["strength"] * 3 + ["temperature"] * 3
    for name, values in {"keys": [1, 2, 5, 9], "strength": [0, 4, 10], "temperature": [0.1, 0.2, 0.5]}.items():
        sweep = frame[frame["varied"] == name]
        assert sweep[name].tolist() == values
        for other, value in {"keys": 5, "strength": 4.0, "temperature": 0.2}.items():
            assert other == name or (sweep[other] == value).all()
    base = frame[(frame["keys"] == 5) & (frame["strength"] == 4) & (frame["temperature"] == 0.2)]
    assert base["varied"].tolist() == ["keys", "strength", "temperature"]
    found = results(cells)
    mean = found[(found["keys"] == 5) & (found["strength"] == 4) & (found["temperature"] == 0.2)]["linear"].mean()
    assert base["ours"].tolist() == [mean] * 3
    assert (frame["encoder_forwards"] == frame["keys"] + 3).all()


def test_rows_say_what_departs_from_the_preset():
    frame = laid_out("image_methods", tables.image_methods_cells(methods="supervised,moco", variant="swapped_views"))
    assert list(frame.columns) == ["method", "departures", *TAIL]
    assert frame["departures"].tolist() == ["", "query_view=weak"]  # what their recipes have not
    plain = laid_out("image_methods", tables.image_methods_cells(methods="moco,jcl"))
    assert "departures" not in plain


@pytest.mark.parametrize("name", ["temperature_grid", "positive_keys", "similarity_variance"])
def test_rows_of_every_table_say_what_departs(name):
    cells = getattr(tables, f"{name}_cells")
    frame = laid_out(name, cells(variant="ghost_groups"))
    assert frame.columns[frame.columns.get_loc("ours") - 1] == "departures"
    assert set(frame["departures"]) == {"groups=8"}
    assert frame.drop(columns="departures").columns.tolist() == LAYOUTS[name]
    assert laid_out(name, cells()).columns.tolist() == LAYOUTS[name]


def test_row_optima_of_what_was_run_and_of_all_that_is_printed():
    """0.06, with 90.20, is the best of the printed row and was not run here."""
    grid = [(0.1, 0.05, 60.0, 90.06), (0.1, 0.03, 60.0, 89.93), (0.1, 0.07, 59.0, 90.16), (0.15, 0.1, 50.0, np.nan)]
    table = DataFrame(grid, columns=["temperature", "key_temperature", "ours", "published"]).assign(method="sce")
    ressl = DataFrame([{"temperature": 0.1, "key_temperature": 0.1, "ours": 99.0, "method": "ressl"}])
    both = pd.concat([table, ressl], ignore_index=True).assign(dataset="cifar10 (part.npz)")
    found = table_layouts.row_optima(both)
    assert found.iloc[0].tolist() == [0.1, 0.03, 60.0, 0.06, 90.20]
    assert found.iloc[1, :3].tolist() == [0.15, 0.1, 50.0] and found.iloc[1, 3:].isna().all()
    assert table_layouts.row_optima(ressl).empty
