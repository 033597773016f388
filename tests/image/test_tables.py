"""The image tables: their cells and keys, how results are laid out, small trainings of all methods, what is refused."""

import json
import math

import made_up_images
import numpy as np
import pandas as pd
import pytest
from made_up_measures import finished, laid_out
from stored_cells import refuse

import repro
from repro import table
from repro.data import manifest
from repro.image import pretrain
from repro.image.recipe import METHODS, smoke
from repro.image.study import EVALUATION
from repro.papers.jcl import logs
from repro.run.export import read_cells
from repro.run.store import Store
from repro.table import standing

FIGURES = manifest.project_root() / "figures"
LAYOUTS = {
    "positive_keys": ["varied", "method", "keys", "strength", "temperature", "encoder_forwards"],
    "similarity_variance": ["method", "keys"],
    "image_methods": ["method"],
    "temperature_grid": ["method", "temperature", "key_temperature"],
}
ALL = {"preset": "smoke", "method": ",".join(METHODS), "seeds": "0,1"}
pytestmark = pytest.mark.usefixtures("runs")


# ---------------------------------------------------------------------------------------------- layouts


@pytest.mark.parametrize("name", LAYOUTS)
def test_columns_and_means_over_seeds(any_data, name):
    cells = repro.TABLES[name].cells("cifar10", preset="quick", seeds="0,1,5")
    rows = laid_out(repro.TABLES[name], cells)
    assert list(rows.columns) == [*LAYOUTS[name], "ours", "std", "n_seeds", "published", "difference", "preset",
                                  "dataset", "knn1", "embedding_spread"]
    if name != "positive_keys":
        values = finished(cells)["metrics"].map(lambda text: json.loads(text)["linear"])
        recipes = values.groupby([cell.recipe for cell in cells], sort=False)
        np.testing.assert_allclose(rows["ours"], recipes.mean())
        np.testing.assert_allclose(rows["std"], recipes.std(ddof=1))
    assert set(rows["n_seeds"]) == {3} and set(rows["preset"]) == {"quick"} and set(rows["dataset"]) == {"cifar10"}
    np.testing.assert_allclose(rows["knn1"], 32)
    np.testing.assert_allclose(rows["embedding_spread"], 0.7)
    rows = laid_out(repro.TABLES[name], repro.TABLES[name].cells("cifar10"))
    assert rows[["published", "difference"]].isna().all(axis=None) == (name != "temperature_grid")


def test_committed_cells_stand_in_the_tables_they_were_drawn_in():
    """Other tables may have more seeds of a cell by now; seed 0 is that of the committed tables of one seed."""
    tables = [repro.TABLES[name] for name in LAYOUTS]
    for name, cells in standing(tables, read_cells(FIGURES / "cells.csv")).items():
        committed = pd.read_csv(FIGURES / f"{name}_cifar10_cifar10_lossless_subset_npz.csv")
        if committed["n_seeds"].max() == 1:
            cells = cells[cells["seed"] == 0]
        rows = repro.TABLES[name].laid_out(cells)
        expected = committed.set_index(LAYOUTS[name]).sort_index()
        pd.testing.assert_frame_equal(rows.set_index(LAYOUTS[name]).sort_index(), expected, check_dtype=False)


# ---------------------------------------------------------------------------------------------- small trainings


@pytest.fixture(autouse=True, scope="module")
def tiny_trunk():
    with pytest.MonkeyPatch.context() as patch:
        made_up_images.use_tiny_trunk(patch)
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """All methods and two seeds, trained once for this file: (runs folder, table)."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(folder))
        return folder, repro.run_table("image_methods", **ALL)


def stored(folder):
    """Description and result of every finished cell, by (method, seed)."""
    cells = Store(folder).finished()
    return {(cell["recipe"]["method"], cell["seed"]): (cell, cell["result"]) for cell in cells}


def test_a_small_table_of_all_methods(trained):
    folder, rows = trained
    assert rows["method"].tolist() == list(METHODS) and rows["n_seeds"].tolist() == [2] * len(METHODS)
    assert set(rows["preset"]) == {"smoke"} and set(rows["dataset"]) == {"digits"}
    assert rows[["published", "difference"]].isna().all(axis=None)
    cells = stored(folder)
    assert set(cells) == {(name, seed) for name in METHODS for seed in (0, 1)}
    for row in rows.itertuples():
        results = pd.DataFrame([cells[row.method, seed][1] for seed in (0, 1)])
        for name, value in (("linear", row.ours), ("knn1", row.knn1), ("embedding_spread", row.embedding_spread)):
            assert value == pytest.approx(results[name].mean())
        assert row.std == pytest.approx(results["linear"].std(ddof=1))
    assert len({result["embedding_spread"] for _, result in cells.values()}) == 2 * len(METHODS)


def test_results_hold_finite_numbers_and_text_and_the_cost(trained):
    for (name, _), (described, result) in stored(trained[0]).items():
        assert described["study"] == "images" and described["recipe"] == smoke("digits", name).to_dict()
        cost = result.pop("cost")
        assert result.pop("evaluation") == EVALUATION and result["select"] == "last"
        assert set(result) == {"linear", "knn1", "embedding_spread", "select"}
        assert all(type(value) is str or math.isfinite(value) for value in result.values())
        assert 0 <= result["linear"] <= 100 and 0 <= result["knn1"] <= 100 and 0 < result["embedding_spread"] <= 1
        assert cost["steps"] == (0 if name == "random" else 2)
        assert {"seconds", "finished", "commit", "device", "torch"} <= set(cost)
        assert cost["precision"] == "float32"  # as smoke runs of small images ask for


def test_a_second_call_trains_nothing_and_tables_share_equal_cells(trained, monkeypatch):
    folder, rows = trained
    monkeypatch.setenv("REPRO_RUNS", str(folder))
    monkeypatch.setattr(table, "train", refuse)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    pd.testing.assert_frame_equal(repro.run_table("image_methods", **ALL), rows)
    jcl = repro.run_table("positive_keys", preset="smoke", keys=5, strength=4, temperature=0.2)
    assert jcl["ours"].tolist() == [stored(folder)["jcl", 0][1]["linear"]] * 3
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} == {*folder.rglob("sampled_keys.csv")}
    with pytest.raises(AssertionError, match="a cell was trained"):
        repro.run_table("image_methods", preset="smoke", method="moco", seeds="2")


def test_the_same_cells_elsewhere_give_the_same_results(trained, runs):
    repro.run_table("image_methods", preset="smoke", method="sce,supervised", seeds="1", device="cpu")
    expected = stored(trained[0])
    for place, (described, result) in stored(runs).items():
        assert described["key"] == expected[place][0]["key"]
        assert {**result, "cost": None} == {**expected[place][1], "cost": None}


def test_what_figures_of_jcl_need_is_computed_once_from_the_tables_cells(runs, monkeypatch):
    repro.run_table("similarity_variance", preset="smoke", device="cpu")
    cells = repro.TABLES["similarity_variance"].cells(preset="smoke")
    images = logs.similarities(cells, "cpu")
    assert images.groupby("model", sort=False).size().to_dict() == {"JCL": 64, "MoCo v2": 64}
    np.testing.assert_allclose(images["variance"], (1 - images["similarity"]) / images["d"], rtol=1e-4, atol=1e-7)
    bound = logs.sampled_keys(cells, "cpu")
    assert set(bound["positives"]) == {9} and set(bound["strength"]) == {4.0} and len(bound) == 13
    monkeypatch.setattr(logs, "trained_model", refuse)
    monkeypatch.setattr(logs, "resumed", refuse)
    pd.testing.assert_frame_equal(logs.similarities(cells, "cpu"), images)
    pd.testing.assert_frame_equal(logs.sampled_keys(cells, "cpu"), bound)


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_processes_cannot_share_is_refused_before_anything_is_trained(any_data, monkeypatch, capsys, name):
    monkeypatch.setattr(pretrain, "process", lambda: (0, 2))
    with pytest.raises(ValueError, match=r"groups=1 cannot be divided among 2 processes.*--variant ghost_groups"):
        repro.run_table(name, preset="smoke", engine="inline", device="cpu")
    assert capsys.readouterr().err == ""
    assert repro.TABLES["image_methods"].cells(preset="smoke", method="random,sce", variant="ghost_groups")


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_a_table_trains_has_sources(name):
    declared = repro.TABLES[name]
    rows = declared.described(method=declared.known_methods[-1])
    assert {"optimiser", "query_view.jitter", "normalisation.mean", "learning_rate"} <= {row[0] for row in rows}
    assert all(source for _, _, source in rows)
    assert all(manifest.load_manifest(dataset) for dataset in declared.datasets)
