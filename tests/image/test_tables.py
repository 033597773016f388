"""The image tables trained: small ones of all methods, what they share, and what is refused."""

import math

import made_up_images
import numpy as np
import pandas as pd
import pytest
from stored_cells import refuse

import repro
from repro import table
from repro.data import manifest
from repro.image import pretrain
from repro.image.recipe import METHODS, smoke
from repro.image.study import EVALUATION, IMAGES
from repro.papers.jcl import logs
from repro.run.store import Store

TABLES = [name for name, declared in repro.TABLES.items() if declared.study is IMAGES]
ALL = {"preset": "smoke", "method": ",".join(METHODS), "seeds": "0,1"}
pytestmark = pytest.mark.usefixtures("runs")


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
    assert rows["method"].tolist() == list(METHODS)
    assert rows["n_seeds"].tolist() == [2] * len(METHODS)
    assert set(rows["preset"]) == {"smoke"} and set(rows["dataset"]) == {"digits"}
    assert rows[["published", "difference"]].isna().all(axis=None)
    found = stored(folder)
    assert set(found) == {(name, seed) for name in METHODS for seed in (0, 1)}
    for row in rows.itertuples():
        pair = [found[row.method, seed][1] for seed in (0, 1)]
        for name, value in (("linear", row.ours), ("knn1", row.knn1), ("embedding_spread", row.embedding_spread)):
            assert value == pytest.approx(np.mean([result[name] for result in pair]))
        assert row.std == pytest.approx(np.std([result["linear"] for result in pair], ddof=1))
    assert len({result["embedding_spread"] for _, result in found.values()}) == 2 * len(METHODS)


def test_results_hold_finite_numbers_and_text_and_the_cost(trained):
    for (name, _), (described, result) in stored(trained[0]).items():
        assert described["study"] == "images" and described["recipe"] == smoke("digits", name).to_dict()
        cost = result.pop("cost")
        assert result.pop("evaluation") == EVALUATION
        assert set(result) == {"linear", "knn1", "embedding_spread", "select"}
        assert all(type(value) is str or math.isfinite(value) for value in result.values())
        assert 0 <= result["linear"] <= 100 and 0 <= result["knn1"] <= 100 and 0 < result["embedding_spread"] <= 1
        assert result["select"] == "last"
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


@pytest.mark.parametrize("name", TABLES)
def test_what_processes_cannot_share_is_refused_before_anything_is_trained(any_data, monkeypatch, capsys, name):
    monkeypatch.setattr(pretrain, "process", lambda: (0, 2))
    with pytest.raises(ValueError, match=r"groups=1 cannot be divided among 2 processes.*--variant ghost_groups"):
        repro.run_table(name, preset="smoke", engine="inline", device="cpu")
    assert capsys.readouterr().err == ""
    assert repro.TABLES["image_methods"].cells(preset="smoke", method="random,sce", variant="ghost_groups")


def test_missing_data_says_where_it_comes_from_and_goes_to(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "nothing")):
        repro.run_table("image_methods", "stl10", preset="smoke")
    with pytest.raises(FileNotFoundError, match="repro data import cifar10 FILE"):
        repro.run_table("image_methods", "cifar10", preset="smoke", subset=True)


@pytest.mark.parametrize("name", TABLES)
def test_what_a_table_trains_has_sources(name):
    table = repro.TABLES[name]
    rows = table.described(method=table.known_methods[-1])
    assert {"optimiser", "query_view.jitter", "normalisation.mean", "learning_rate"} <= {row[0] for row in rows}
    assert all(source for _, _, source in rows)
    assert [manifest.load_manifest(dataset).name for dataset in table.datasets]
