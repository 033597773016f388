"""The taxonomy's tables end to end: what is trained, what is stored, and what is shown."""

import json
import math

import pandas as pd
import pytest
from stored_cells import refuse

from repro import run_table
from repro.data import manifest
from repro.run.device import has_bfloat16
from repro.skeleton.study import EVALUATION

TAIL = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset", "linear_unseen",
        "linear_standardised", "knn1", "embedding_spread", "readout_spread"]
TAXONOMY = ["objectives", "AE", "CE", "AD", "CD", *TAIL]
pytestmark = pytest.mark.usefixtures("runs")


def smoke(name="taxonomy", **choices):
    return run_table(name, "synthetic", preset="smoke", device="cpu", **choices)


def stored(folder):
    """recipe.json and result.json of every run, by (label, seed)."""
    found = {}
    for path in folder.glob("cells/*/result.json"):
        described = json.loads(path.with_name("recipe.json").read_text())
        changes = [f"{name}={value}" for name, value in described["changes"].items()]
        label = ", ".join([described["recipe"]["objectives"], *changes])
        found[label, described["seed"]] = described, json.loads(path.read_text())
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two objectives and two seeds, trained once for this file: (runs folder, table)."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(folder))
        return folder, smoke(objectives="CE+AE,random", seeds="0,1")


def test_a_small_table(trained):
    folder, table = trained
    assert list(table.columns) == TAXONOMY and table["objectives"].tolist() == ["random", "AE+CE"]
    assert table[["AE", "CE", "AD", "CD"]].to_numpy().tolist() == [[0, 0, 0, 0], [1, 1, 0, 0]]
    assert table["n_seeds"].tolist() == [2, 2] and table[["published", "difference"]].isna().all(axis=None)
    assert set(table["preset"]) == {"smoke"} and set(table["dataset"]) == {"synthetic"}
    found = stored(folder)
    assert set(found) == {(name, seed) for name in ("AE+CE", "random") for seed in (0, 1)}
    for row in table.itertuples():
        pair = pd.DataFrame([found[row.objectives, seed][1] for seed in (0, 1)])
        assert row.ours == pytest.approx(pair["linear"].mean()) and row.std == pytest.approx(pair["linear"].std())
        for measure in TAIL[7:]:
            assert getattr(row, measure) == pytest.approx(pair[measure].mean())
    assert found["AE+CE", 0][1]["linear"] != found["AE+CE", 1][1]["linear"]


def test_results_hold_finite_numbers_and_text_and_the_cost(trained):
    for (name, _), (_, result) in stored(trained[0]).items():
        cost = result.pop("cost")
        accuracies = {f"{name}{part}" for name in ("linear", "linear_standardised", "knn1") for part in ("", "_unseen")}
        assert result.pop("evaluation") == EVALUATION
        assert set(result) == {*accuracies, "linear_best", "embedding_spread", "readout_spread", "select"}
        for value in result.values():
            assert type(value) is str or (type(value) is float and math.isfinite(value))
        assert all(0 <= result[accuracy] <= 100 for accuracy in accuracies)
        assert 0 < result["readout_spread"] < 1 and 0 < result["embedding_spread"] <= 1
        assert result["select"] == "last" and cost["steps"] == (0 if name == "random" else 2)
        assert {"seconds", "finished", "commit", "device", "torch"} <= set(cost)
        assert cost["precision"] == ("bfloat16" if has_bfloat16() else "float32")  # smoke asks for none


def test_a_second_call_trains_nothing(trained, monkeypatch):
    folder, table = trained
    monkeypatch.setenv("REPRO_RUNS", str(folder))
    monkeypatch.setattr("repro.table.train", refuse)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    pd.testing.assert_frame_equal(smoke(objectives="AE+CE,random", seeds="0,1"), table)
    shared = smoke("encoder_collapse", layers=1, objectives="random")
    assert shared["ours"].item() == stored(folder)["random", 0][1]["linear"]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before
    with pytest.raises(AssertionError, match="a cell was trained"):
        smoke(objectives="CD")


def test_the_same_cell_elsewhere_gives_the_same_result(trained):
    smoke(objectives="AE+CE", seeds="1")
    (described, result), = stored(manifest.runs_root()).values()
    expected_description, expected = stored(trained[0])["AE+CE", 1]
    assert described == expected_description
    assert result | {"cost": None} == expected | {"cost": None}


def test_a_small_collapse(runs):
    table = smoke("encoder_collapse", layers="2,1", seeds="0")
    assert list(table.columns) == ["layers", "objectives", *TAIL]
    rows = list(zip(table["layers"], table["objectives"], strict=True))
    assert rows == [(layers, method) for layers in (1, 2) for method in ("random", "AE")]
    assert table[["published", "difference", "std"]].isna().all(axis=None)
    assert table[TAIL[7:]].notna().all(axis=None)
    assert set(stored(runs)) == {(name, 0) for name in ("random", "AE", "random, layers=2", "AE, layers=2")}
    one, = smoke("encoder_collapse", layers=1, objectives="AE").to_dict("records")
    assert one == pytest.approx(table.to_dict("records")[1], nan_ok=True)


def test_best_on_test_end_to_end(trained, runs):
    best = smoke(objectives="AE+CE,random", seeds="0", select="best_on_test")
    assert best["departures"].tolist() == [{"select": "best_on_test"}] * 2 and best["difference"].isna().all()
    found = stored(runs)
    assert set(found) == {(f"{name}, select=best_on_test", 0) for name in ("AE+CE", "random")}
    for row in best.itertuples():  # smoke takes fewer epochs than lie between two looks: same features, best epoch
        _, last = stored(trained[0])[row.objectives, 0]
        _, ours = found[f"{row.objectives}, select=best_on_test", 0]
        assert row.ours == ours["linear"] >= last["linear"]
        assert ours["knn1"] == last["knn1"] and ours["linear_last"] == last["linear"]
        assert ours["select"] == "best_on_test"
