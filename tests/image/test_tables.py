"""The image tables: small trainings of all methods, cells that tables share, what processes cannot share."""

import pandas as pd
import pytest
import torch
from made_up_images import be_every_set
from stored_cells import refuse

import repro
from repro.data import manifest
from repro.image.methods import METHODS
from repro.image.recipe import IMAGES, paper, smoke
from repro.run import group, training
from repro.run.store import Store

TABLES = [name for name, declared in repro.TABLES.items() if declared.study is IMAGES]
ALL = {"preset": "smoke", "method": ",".join(METHODS), "seeds": "0,1"}
pytestmark = pytest.mark.usefixtures("tiny_trunk", "runs")


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
    assert len({result["embedding_spread"] for _, result in cells.values()}) == 2 * len(METHODS)
    for (name, _), (described, result) in cells.items():
        assert described["study"] == "images" and described["recipe"] == smoke("digits", name).to_dict()
        assert set(result) == {"linear", "knn1", "embedding_spread", "select", "cost", "evaluation"}
        assert all(0 <= result[measure] <= 100 for measure in ("linear", "knn1"))
        assert 0 < result["embedding_spread"] <= 1 and result["select"] == "last"
        assert result["cost"]["steps"] == (0 if name == "random" else 2)


def test_a_second_call_trains_nothing_and_tables_share_equal_cells(trained, monkeypatch):
    folder, rows = trained
    monkeypatch.setenv("REPRO_RUNS", str(folder))
    monkeypatch.setattr(training, "train", refuse)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    pd.testing.assert_frame_equal(repro.run_table("image_methods", **ALL), rows)
    jcl = repro.run_table("positive_keys", preset="smoke", keys=5, strength=4, temperature=0.2)
    assert jcl["ours"].tolist() == [stored(folder)["jcl", 0][1]["linear"]] * 3
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} == {*folder.rglob("sampled_keys.csv")}
    with pytest.raises(AssertionError, match="a cell was trained"):
        repro.run_table("image_methods", preset="smoke", method="moco", seeds="2")


@pytest.mark.parametrize("name", TABLES)
def test_what_processes_cannot_share_is_refused_before_anything_is_trained(monkeypatch, capsys, name):
    be_every_set(monkeypatch)
    monkeypatch.setattr(group, "process", lambda: (0, 2))
    with pytest.raises(ValueError, match=r"groups=1 cannot be divided among 2 processes.*--groups 8"):
        repro.run_table(name, preset="smoke", engine="inline", device="cpu")
    assert capsys.readouterr().err == ""
    assert repro.TABLES["image_methods"].cells(preset="smoke", method="random,moco", variant="ghost_groups")


def test_a_probe_that_pictures_of_various_sizes_cannot_have_is_refused():
    with pytest.raises(ValueError, match="probe_view='shifted' needs images of one size; for imagenet100 take crop"):
        IMAGES.check(paper("imagenet100", "jcl", probe_view="shifted"), torch.device("cpu"))


@pytest.mark.parametrize("name", TABLES)
def test_what_a_table_trains_has_sources(name):
    declared = repro.TABLES[name]
    rows = declared.described(method=declared.known_methods[-1])
    assert {"optimiser", "query_view.jitter", "normalisation.mean", "learning_rate"} <= {row[0] for row in rows}
    assert all(source for _, _, source in rows)
    assert all(manifest.load_manifest(dataset) for dataset in declared.datasets)
