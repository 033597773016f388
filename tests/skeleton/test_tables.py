"""The taxonomy's tables: which cells there are, what is refused before anything is made, what is trained and shown."""

import functools
import json
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from repro import run_table
from repro.experiments import find_table
from repro.skeleton import study
from repro.skeleton.recipe import METHODS

TAIL = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset", "linear_unseen",
        "linear_standardised", "knn1", "embedding_spread", "readout_spread"]
TAXONOMY = ["objectives", "AE", "CE", "AD", "CD", *TAIL]
pytestmark = pytest.mark.usefixtures("runs")


def cells(objectives="all", dataset="synthetic", **choices):
    """Those of the taxonomy."""
    return find_table("taxonomy").cells(dataset, objectives=objectives, **choices)


def test_the_sixteen_rows():
    found = cells()
    assert [cell.label for cell in found] == list(METHODS) and found == find_table("taxonomy").cells()
    assert len({cell.key for cell in found}) == 16
    assert {(cell.study, cell.dataset, cell.preset, cell.seed) for cell in found} == {
        ("skeletons", "synthetic", "quick", 0)}
    assert all(cell.label == cell.recipe.objectives and cell.changes == {} for cell in found)


@pytest.mark.parametrize(("name", "choices"), [("taxonomy", {}), ("encoder_collapse", {"layers": 1})])
def test_a_cell_is_the_same_on_every_device(name, choices, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # as far as a list of cells can tell
    listed = functools.partial(find_table(name).cells, "synthetic", preset="paper", objectives="AE", **choices)
    assert listed(device="cpu") == listed(device="auto") == listed(device="cuda")
    with pytest.raises(ValueError, match="precision='bfloat16' is for a CPU; on cuda it is float32: leave it out"):
        listed(device="cuda", precision="bfloat16")


@pytest.mark.parametrize(("dataset", "pipeline", "expected"), [
    ("ntu", "authors", "default"), ("ntu", "default", "default"), ("ntu", "predict_cluster", "predict_cluster"),
    ("synthetic", "raw", "raw"),
])
def test_one_computation_has_one_pipeline(dataset, pipeline, expected, monkeypatch):
    absent = SimpleNamespace(name=dataset, digest="d", lengths=torch.tensor([3, 300]))
    monkeypatch.setattr(study, "load_once", lambda *_, **__: absent)
    found, = cells("CE", dataset, preset="smoke", pipeline=pipeline)
    assert found.recipe.pipeline == expected
    assert found.label == ("CE" if expected == "default" else f"CE, pipeline={expected}")


@pytest.mark.parametrize(("table", "choices", "message"), [
    ("taxonomy", {"objectives": "CE+XX"}, "objectives='CE\\+XX': term='XX' is not one of: AE, "),
    ("taxonomy", {"objectives": "CE+CE"}, "objectives='CE\\+CE' names CE twice"),
    ("taxonomy", {"objectives": "random+CE"}, "objectives='random\\+CE': term='random' is not one of"),
    ("taxonomy", {"objectives": "CE,"}, "objectives='': term='' is not one of"),
    ("taxonomy", {"protocol": "xsub"}, "protocol='xsub' is not one of: xview"),
    ("taxonomy", {"pipeline": "authors"}, "pipeline='authors' is not one of: default, interpolate, unscaled, raw"),
    ("taxonomy", {"variant": "frozen"}, "variant='frozen' is not one of: none, .*; did you mean 'frozen_noise'"),
    ("taxonomy", {"objectives": "random", "learning_rate": 0.5}, "learning_rate=0.5 changes nothing of random; "),
    ("encoder_collapse", {"objectives": "CE"}, "objectives='CE' is not one of: random, AE"),
    ("encoder_collapse", {"objectives": "random AE"}, "objectives='random AE': term='random AE' is not one of: AE"),
], ids=str)
def test_impossible_values_are_refused_before_anything_is_made(table, choices, message, runs):
    with pytest.raises(ValueError, match=message):
        run_table(table, "synthetic", preset="smoke", **choices)
    assert not runs.exists()


# ---------------------------------------------------------------------------------------------- end to end


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
    assert list(table.columns) == TAXONOMY and table["objectives"].tolist() == ["AE+CE", "random"]
    assert table[["AE", "CE", "AD", "CD"]].to_numpy().tolist() == [[1, 1, 0, 0], [0, 0, 0, 0]]
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


