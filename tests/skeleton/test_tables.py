"""Rows of the tables: printed numbers beside ours, means over seeds, what is trained and what is stored."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from made_up_skeletons import stand_in
from pandas import DataFrame
from repro.skeleton.cell import EVALUATION
from stored_cells import refuse, stored

from repro import manifest
from repro.report.elements import heading
from repro.run.device import has_bfloat16
from repro.run.store import Cell
from repro.skeleton import tables
from repro.skeleton.pretrain import VERSION
from repro.skeleton.recipe import paper

REAL = manifest.location(manifest.load_manifest("ucla").files[0], manifest.data_root())
needs_ucla = pytest.mark.skipif(REAL is None, reason="nw_ucla/all_sqe.zip is not below REPRO_DATA")

TAIL = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset", *tables.MEASURES]
TAXONOMY = ["objectives", "AE", "CE", "AD", "CD", *TAIL, "decoded_scale"]
COLLAPSE = ["layers", "method", *TAIL]

# Typed from the paper: Table 1, column NW-UCLA, and Table 2.
PRINTED = {
    "AE": 59.98, "AE+AD+CD": 60.37, "AE+CD": 76.81, "CD": 77.73, "CE+CD": 79.56, "AE+CE+CD": 79.96, "AE+AD": 80.15,
    "AE+CE": 80.74, "CE+AD+CD": 82.43, "AE+CE+AD+CD": 82.98, "AD": 83.45, "CE": 83.73, "AD+CD": 85.50, "CE+AD": 85.70,
    "AE+CE+AD": 86.08,
}
PRINTED_DEPTHS = {"random": [52.01, 56.51, 60.17, 63.70, 60.11], "AE": [51.89, 32.04, 25.33, 28.45, 28.39]}
pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two objectives and two seeds, trained once for this file: (runs folder, table)."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(folder))
        return folder, tables.taxonomy("synthetic", preset="smoke", objectives="CE+AE,random", seeds="0,1")


def results(rows, *, seeds=(0,), units=512, **columns):
    """Made-up finished cells for (objectives, layers) rows, an accuracy for each seed."""
    values = itertools.count(40.0, 0.25)
    frame = [
        {"entry": f"{name}-{layers}", "objectives": name, "layers": layers, "units": units, "protocol": "xview",
         "seed": seed, "linear": next(values), "linear_unseen": 20.0 + seed, "knn1": 30.0 + seed,
         "embedding_spread": 0.5 + seed / 10} | columns
        for seed in seeds
        for name, layers in rows
    ]
    return DataFrame(frame)


def test_a_measure_that_a_seed_lacks_has_no_mean():
    """Its mean would be one of other seeds than the accuracy beside it."""
    frame = results([("CE", 1), ("AE", 1)], seeds=(0, 1))
    frame.loc[(frame["entry"] == "CE-1") & (frame["seed"] == 1), "linear_unseen"] = np.nan
    found = tables.taxonomy_table(frame, "quick", "synthetic").set_index("objectives")
    assert np.isnan(found.loc["CE", "linear_unseen"]) and found.loc["AE", "linear_unseen"] == 20.5
    assert found["knn1"].to_dict() == {"CE": 30.5, "AE": 30.5} and (found["n_seeds"] == 2).all()


# ---------------------------------------------------------------------------------------------- layout


def test_printed_accuracies_stand_beside_their_objectives():
    rows = [(name, 1) for name in ("random", *PRINTED)]
    np.random.default_rng(0).shuffle(rows)
    found = results(rows)
    table = tables.taxonomy_table(found, "paper", "ucla")
    assert list(table.columns) == TAXONOMY
    assert table["objectives"].tolist() == [name for name, _ in rows]
    for row, linear in zip(table.itertuples(), found["linear"], strict=True):
        assert row.published == {"random": 52.01, **PRINTED}[row.objectives]
        assert row.ours == linear
        assert row.difference == pytest.approx(linear - row.published)
        assert [term in row.objectives for term in ("AE", "CE", "AD", "CD")] == [row.AE, row.CE, row.AD, row.CD]
    assert set(table["preset"]) == {"paper"} and set(table["dataset"]) == {"ucla"}


@pytest.mark.parametrize(("layers", "units", "printed"), [
    (1, 512, {"AE": 34.63, "AE+CE+AD": 67.06, "AD+CD": 48.22}), (3, 512, {"AE": 12.35, "AE+CE+AD": 59.99, "CD": 38.88}),
    (1, 1024, {"CE": 67.21, "AE+CE+AD+CD": 61.40, "AE+CE+AD": 68.64}),
])
def test_printed_accuracies_of_ntu(layers, units, printed):
    found = results([(name, layers) for name in printed], units=units).assign(protocol="xsub")
    table = tables.taxonomy_table(found, "paper", "ntu")
    assert dict(zip(table["objectives"], table["published"], strict=True)) == printed
    assert tables.taxonomy_table(found.assign(protocol="xview"), "paper", "ntu")["published"].isna().all()
    assert math.isnan(tables.taxonomy_table(results([("random", 1)]), "paper", "ntu")["published"].item())


def test_printed_accuracies_by_depth():
    rows = [(method, layers) for layers in (4, 1, 5, 2, 3, 6) for method in ("random", "AE")]
    table = tables.encoder_collapse_table(results(rows), "quick", "ucla")
    assert list(table.columns) == COLLAPSE
    for row in table.itertuples():
        printed = dict(enumerate(PRINTED_DEPTHS[row.method], start=1)).get(row.layers, math.nan)
        assert row.published == printed or (row.layers == 6 and math.isnan(row.published))
    assert list(zip(table["method"], table["layers"], strict=True)) == rows


def test_random_initialisation_has_a_printed_value_at_other_depths_too():
    table = tables.taxonomy_table(results([("random", 3), ("CE", 3)]), "paper", "ucla")
    assert table["published"].tolist()[0] == 60.17
    assert math.isnan(table["published"].tolist()[1])


@pytest.mark.parametrize("changes", [{"units": 256}, {"units": 1024}, {"protocol": "xsub"}], ids=str)
def test_nothing_is_printed_for_other_settings(changes):
    table = tables.taxonomy_table(results([("CE", 1), ("AE+CE", 1)]).assign(**changes), "paper", "ucla")
    assert table[["published", "difference"]].isna().all(axis=None)
    table = tables.taxonomy_table(results([("CE", 2)]), "paper", "ucla")
    assert table[["published", "difference"]].isna().all(axis=None)


def test_depths_of_another_width_have_no_printed_value():
    table = tables.encoder_collapse_table(results([("AE", 1), ("random", 2)], units=128), "quick", "ucla")
    assert table[["published", "difference"]].isna().all(axis=None)


@pytest.mark.parametrize("layout", [tables.taxonomy_table, tables.encoder_collapse_table])
def test_nothing_is_subtracted_on_embedded_data(layout, monkeypatch):
    monkeypatch.setitem(tables.PRINTED_COLUMNS, ("synthetic", "xview", 1, 512), "UCLA")  # not even if asked to
    table = layout(results([("random", 1), ("AE", 1)]), "quick", "synthetic")
    assert table[["published", "difference"]].isna().all(axis=None)
    assert table["ours"].notna().all()


@pytest.mark.parametrize("layout", [tables.taxonomy_table, tables.encoder_collapse_table])
def test_mean_and_deviation_over_seeds(layout):
    found = results([("random", 1), ("AE", 1)], seeds=(0, 1, 5)).sample(frac=1, random_state=0)
    table = layout(found, "quick", "ucla").set_index("method" if layout is tables.encoder_collapse_table
                                                     else "objectives")
    for name in ("random", "AE"):
        values = found[found["objectives"] == name]
        assert table.loc[name, "ours"] == pytest.approx(np.mean(values["linear"]))
        assert table.loc[name, "std"] == pytest.approx(np.std(values["linear"], ddof=1))
        assert table.loc[name, "n_seeds"] == 3
        assert table.loc[name, "knn1"] == pytest.approx(np.mean(values["knn1"]))
        assert table.loc[name, "embedding_spread"] == pytest.approx(np.mean(values["embedding_spread"]))


def test_one_seed_has_no_deviation():
    table = tables.taxonomy_table(results([("CE", 1)]), "paper", "ucla")
    assert math.isnan(table.loc[0, "std"]) and table.loc[0, "n_seeds"] == 1


def test_a_part_of_ntu_says_so_and_keeps_its_key(monkeypatch):
    monkeypatch.setattr(tables, "data_of", lambda recipe: stand_in("ntu (subset)" if recipe.subset else "ntu", 300))
    found, = tables.taxonomy_cells("ntu", objectives="CE", layers=3, subset=True)
    assert (found.dataset, found.entry, found.preset) == ("ntu (subset)", "CE, layers=3", "paper")
    assert found.key == Cell("any", "CE, layers=3, subset=True", paper("ntu", "CE", layers=3, subset=True), 0, "paper",
                             "ntu", "d", VERSION).key
    whole, = tables.taxonomy_cells("ntu", objectives="CE", layers=3)
    assert whole.dataset == "ntu" and whole.key != found.key
    rows = results([("CE", 3)], protocol="xsub")
    table = tables.taxonomy_table(rows, "paper", found.dataset)
    assert table[["published", "difference"]].isna().all(axis=None) and table["dataset"].item() == "ntu (subset)"
    assert tables.taxonomy_table(rows, "paper", whole.dataset)["published"].item() == 55.37
    assert "not the official data: not a reproduction" in heading(table)


# ---------------------------------------------------------------------------------------------- end to end


def test_a_small_table(trained):
    folder, table = trained
    assert list(table.columns) == TAXONOMY
    assert table["objectives"].tolist() == ["AE+CE", "random"]
    assert table[["AE", "CE", "AD", "CD"]].to_numpy().tolist() == [[1, 1, 0, 0], [0, 0, 0, 0]]
    assert table["n_seeds"].tolist() == [2, 2]
    assert set(table["preset"]) == {"smoke"} and set(table["dataset"]) == {"synthetic"}
    assert table[["published", "difference"]].isna().all(axis=None)
    found = stored(folder, "taxonomy")
    assert set(found) == {(name, seed) for name in ("AE+CE", "random") for seed in (0, 1)}
    for row in table.itertuples():
        pair = [found[row.objectives, seed][1] for seed in (0, 1)]
        assert row.ours == pytest.approx(np.mean([result["linear"] for result in pair]))
        assert row.std == pytest.approx(np.std([result["linear"] for result in pair], ddof=1))
        assert row.knn1 == pytest.approx(np.mean([result["knn1"] for result in pair]))
        assert row.embedding_spread == pytest.approx(np.mean([result["embedding_spread"] for result in pair]))
    assert found["AE+CE", 0][1]["linear"] != found["AE+CE", 1][1]["linear"]


def test_results_hold_finite_numbers_and_text_and_the_cost(trained):
    for (name, _), (_, result) in stored(trained[0], "taxonomy").items():
        cost = result.pop("cost")
        accuracies = {f"{name}{part}" for name in ("linear", "linear_standardised", "knn1") for part in ("", "_unseen")}
        assert result.pop("evaluation") == EVALUATION
        assert set(result) == {*accuracies, "linear_best", "embedding_spread", "readout_spread", "select"}
        for value in result.values():
            assert type(value) is str or (type(value) is float and math.isfinite(value))
        assert all(0 <= result[accuracy] <= 100 for accuracy in accuracies)
        assert 0 < result["readout_spread"] < 1
        assert 0 < result["embedding_spread"] <= 1
        assert result["select"] == "last"
        assert cost["steps"] == (0 if name == "random" else 2)
        assert {"seconds", "finished", "commit", "device", "torch"} <= set(cost)
        assert cost["precision"] == ("bfloat16" if has_bfloat16() else "float32")  # smoke asks for none


def test_a_second_call_trains_nothing(trained, monkeypatch):
    folder, table = trained
    monkeypatch.setenv("REPRO_RUNS", str(folder))
    monkeypatch.setattr(tables, "train", refuse)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    again = tables.taxonomy("synthetic", preset="smoke", objectives="AE+CE,random", seeds="0,1")
    pd.testing.assert_frame_equal(again, table)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before
    with pytest.raises(AssertionError, match="a cell was trained"):
        tables.taxonomy("synthetic", preset="smoke", objectives="CD")


@pytest.mark.parametrize(("choices", "said"), [({}, True), ({"precision": "float32"}, False)], ids=str)
def test_a_precision_that_nobody_asked_for_is_said_once_where_something_is_trained(choices, said, capsys):
    for expected in (said, False):  # the second time nothing is
        tables.taxonomy("synthetic", preset="smoke", objectives="CE", seeds="0,1", device="cpu", **choices)
        assert capsys.readouterr().err.count("matrix products in ") == expected


def test_the_same_cell_elsewhere_gives_the_same_result(trained):
    tables.taxonomy("synthetic", preset="smoke", objectives="AE+CE", seeds="1", device="cpu")
    (described, result), = stored(manifest.runs_root(), "taxonomy").values()
    expected_description, expected = stored(trained[0], "taxonomy")["AE+CE", 1]
    assert described == expected_description
    for values in (result, expected):
        values.pop("cost")
    assert result == expected


def test_a_small_collapse(runs):
    table = tables.encoder_collapse("synthetic", preset="smoke", layers="2,1", seeds="0")
    assert list(table.columns) == COLLAPSE
    assert list(zip(table["layers"], table["method"], strict=True)) == [
        (layers, method) for layers in (2, 1) for method in ("random", "AE")
    ]
    assert table[["published", "difference", "std"]].isna().all(axis=None)
    assert table[["ours", "knn1", "embedding_spread"]].notna().all(axis=None)
    assert set(stored(runs, "encoder_collapse")) == {
        (entry, 0) for entry in ("random", "AE", "random, layers=2", "AE, layers=2")
    }
    one, = tables.encoder_collapse("synthetic", preset="smoke", layers=1, methods="AE").to_dict("records")
    assert one == pytest.approx(table[(table["layers"] == 1) & (table["method"] == "AE")].to_dict("records")[0],
                                nan_ok=True)


def test_tables_share_equal_cells(trained, monkeypatch):
    folder, _ = trained
    monkeypatch.setenv("REPRO_RUNS", str(folder))
    monkeypatch.setattr(tables, "train", refuse)
    table = tables.encoder_collapse("synthetic", preset="smoke", layers=1, methods="random")
    assert table["ours"].item() == stored(folder, "taxonomy")["random", 0][1]["linear"]
    with pytest.raises(AssertionError, match="a cell was trained"):
        tables.encoder_collapse("synthetic", preset="smoke", layers=1, methods="AE")


def test_best_on_test_end_to_end(trained, runs):
    best = tables.taxonomy("synthetic", preset="smoke", objectives="AE+CE,random", seeds="0", select="best_on_test")
    found = stored(runs, "taxonomy")
    assert set(found) == {(f"{name}, select=best_on_test", 0) for name in ("AE+CE", "random")}
    for row in best.itertuples():  # smoke takes fewer epochs than lie between two looks: same features, best epoch
        _, last = stored(trained[0], "taxonomy")[row.objectives, 0]
        _, ours = found[f"{row.objectives}, select=best_on_test", 0]
        assert row.ours == ours["linear"] >= last["linear"]
        assert ours["knn1"] == last["knn1"]
        assert ours["select"] == "best_on_test"
        assert ours["linear_last"] == last["linear"]


@pytest.mark.parametrize(("choice", "label"), [({"select": "best_on_test"}, "best_on_test"),
                                               ({"variant": "frozen_noise"}, "frozen_noise")], ids=str)
def test_a_table_says_what_departs_from_the_preset(choice, label):
    table = tables.taxonomy("synthetic", preset="smoke", objectives="random,CD", **choice)
    assert label in table.to_string()


# ---------------------------------------------------------------------------------------------- real data


@needs_ucla
def test_cells_on_real_data_are_the_papers():
    cells = tables.taxonomy_cells("ucla", device="cpu")
    assert len(cells) == 16
    assert {found.preset for found in cells} == {"paper"}
    assert all(found.recipe == paper("ucla", found.entry) for found in cells)
    frame = DataFrame([found.recipe.to_dict() for found in cells])[tables.LAYOUT].assign(
        entry=[found.entry for found in cells], seed=0, linear=50.0, knn1=50.0, embedding_spread=1.0
    )
    table = tables.taxonomy_table(frame, "paper", "ucla").set_index("objectives")
    assert table["published"].to_dict() == {"random": 52.01, **PRINTED}
    depths = tables.encoder_collapse_cells("ucla", preset="quick")
    frame = DataFrame([found.recipe.to_dict() for found in depths])[tables.LAYOUT].assign(
        entry=[found.entry for found in depths], seed=0, linear=50.0, knn1=50.0, embedding_spread=1.0
    )
    table = tables.encoder_collapse_table(frame, "quick", "ucla")
    for method, printed in PRINTED_DEPTHS.items():
        assert table.loc[table["method"] == method, "published"].tolist() == printed


@needs_ucla
@pytest.mark.parametrize(("choices", "printed"), [({"units": 256}, False), ({"layers": 2}, False), ({}, True)], ids=str)
def test_only_the_printed_setting_is_compared(choices, printed):
    frame = DataFrame([found.recipe.to_dict() for found in tables.taxonomy_cells("ucla", objectives="CE", **choices)])
    found = frame.assign(entry="CE", seed=0, linear=50.0, knn1=50.0, embedding_spread=1.0)
    assert tables.taxonomy_table(found, "paper", "ucla")["published"].notna().item() == printed
