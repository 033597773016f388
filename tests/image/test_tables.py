"""The image tables from parameters to rows: small ones of trained cells, and what is refused."""

import math

import made_up_images
import numpy as np
import pandas as pd
import pytest
from image_columns import LAYOUTS
from stored_cells import refuse, stored

from repro import manifest
from repro.image import pretrain, table_cells, tables
from repro.image.cell import EVALUATION
from repro.image.recipe import METHODS, smoke
from repro.run.device import has_bfloat16

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
        return folder, tables.image_methods(preset="smoke", methods=",".join(METHODS), seeds="0,1")


def test_a_small_table_of_all_methods(trained):
    folder, table = trained
    assert list(table.columns) == LAYOUTS["image_methods"]
    assert table["method"].tolist() == list(METHODS)
    assert table["n_seeds"].tolist() == [2] * len(METHODS)
    assert set(table["preset"]) == {"smoke"} and set(table["dataset"]) == {"digits"}
    assert table[["published", "difference"]].isna().all(axis=None)
    found = stored(folder, "image_methods")
    assert set(found) == {(name, seed) for name in METHODS for seed in (0, 1)}
    for row in table.itertuples():
        pair = [found[row.method, seed][1] for seed in (0, 1)]
        for name, value in (("linear", row.ours), ("knn1", row.knn1), ("embedding_spread", row.embedding_spread)):
            assert value == pytest.approx(np.mean([result[name] for result in pair]))
        assert row.std == pytest.approx(np.std([result["linear"] for result in pair], ddof=1))
    assert len({result["embedding_spread"] for _, result in found.values()}) == 2 * len(METHODS)


def test_results_hold_finite_numbers_and_text_and_the_cost(trained):
    for (name, _), (described, result) in stored(trained[0], "image_methods").items():
        assert described["recipe"] == smoke("digits", name).to_dict()
        cost = result.pop("cost")
        assert result.pop("evaluation") == EVALUATION
        assert set(result) == {"linear", "knn1", "embedding_spread", "select"}
        for value in result.values():
            assert type(value) is str or (type(value) is float and math.isfinite(value))
        assert 0 <= result["linear"] <= 100 and 0 <= result["knn1"] <= 100
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
    again = tables.image_methods(preset="smoke", methods=",".join(METHODS), seeds="0,1")
    pd.testing.assert_frame_equal(again, table)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before
    with pytest.raises(AssertionError, match="a cell was trained"):
        tables.image_methods(preset="smoke", methods="moco", seeds="2")


def test_the_same_cells_elsewhere_give_the_same_results(trained, runs):
    tables.image_methods(preset="smoke", methods="sce,supervised", seeds="1", device="cpu")
    expected = stored(trained[0], "image_methods")
    for place, (described, result) in stored(runs, "image_methods").items():
        assert described == expected[place][0]
        assert result.pop("cost") and expected[place][1].pop("cost")
        assert result == expected[place][1]


def test_tables_share_equal_cells(trained, monkeypatch):
    folder, _ = trained
    monkeypatch.setenv("REPRO_RUNS", str(folder))
    monkeypatch.setattr(tables, "train", refuse)
    found = stored(folder, "image_methods")
    jcl = tables.positive_keys(preset="smoke", keys="5", strengths="4", temperatures="0.2")
    assert jcl["ours"].tolist() == [found["jcl", 0][1]["linear"]] * 3
    with pytest.raises(AssertionError, match="a cell was trained"):
        tables.positive_keys(preset="smoke", keys="2", strengths="4", temperatures="0.2")


def test_a_small_grid(runs):
    table = tables.temperature_grid(preset="smoke", temperatures="0.1", key_temperatures="0.05,0.1")
    assert list(table.columns) == LAYOUTS["temperature_grid"]
    assert list(zip(table["method"], table["key_temperature"], strict=True)) == [
        ("sce", 0.05), ("sce", 0.1), ("ressl", 0.1)
    ]
    assert table["ours"].notna().all() and table[["published", "std"]].isna().all(axis=None)
    assert len(stored(runs, "temperature_grid")) == 3


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("name", tables.TABLES)
def test_a_misspelt_parameter_is_told_from_those_there_are(any_data, name):
    table = tables.TABLES[name]
    message = rf"'sedes' is not a parameter of {name}_cells; they are dataset, preset, .*; did you mean 'seeds'\?"
    for made in (table.run, table.cells):
        with pytest.raises(TypeError, match=message):
            made("digits", preset="smoke", sedes="0")
    with pytest.raises(TypeError, match=r"'zzz' is not a parameter .*precision, channels_last, threads, "):
        table.cells(zzz=1)
    assert table.cells("digits", preset="smoke", seeds="1")[0].seed == 1


@pytest.mark.parametrize("name", tables.TABLES)
def test_what_processes_cannot_share_is_refused_before_anything_is_trained(any_data, monkeypatch, capsys, name):
    monkeypatch.setattr(pretrain, "process", lambda: (0, 2))
    with pytest.raises(ValueError, match=r"groups=1 cannot be divided among 2 processes.*--variant ghost_groups"):
        tables.TABLES[name].run(preset="smoke", engine="inline", device="cpu")
    assert capsys.readouterr().err == ""
    assert table_cells.image_methods_cells("digits", preset="smoke", methods="random,sce", variant="ghost_groups")


@pytest.mark.parametrize(
    ("table", "choices", "message"),
    [
        ("image_methods", {"dataset": "mnist"}, "dataset='mnist' is not one of: digits, cifar10"),
        ("image_methods", {"methods": "moco,sec"}, "methods='sec' is not one of: random, .*; did you mean 'sce'"),
        ("image_methods", {"methods": ""}, "methods='' is not one of: random"),
        ("image_methods", {"variant": "ghosts"}, "variant='ghosts' is not one of: none, .*; did you mean"),
        ("image_methods", {"select": "best"}, "select='best' is not one of: last, best_on_test"),
        ("image_methods", {"precision": "half"}, "precision='half' is not one of: auto, float32, bfloat16"),
        ("image_methods", {"seeds": "0,x"}, "seeds='0,x' should be a comma list of whole numbers"),
        ("image_methods", {"preset": "fast"}, "preset='fast' is not one of: auto, paper, quick, smoke"),
        ("temperature_grid", {"temperatures": "0.1;0.2"}, "temperatures='0.1;0.2' should be a comma list of numbers"),
        ("temperature_grid", {"temperatures": "1_0"}, "temperatures='1_0' should be a comma list"),
        ("positive_keys", {"strengths": "1_0"}, "strengths='1_0' should be a comma list"),
        ("temperature_grid", {"key_temperatures": "0"}, "key_temperatures='0' should be .* from 1e-06"),
        ("temperature_grid", {"temperatures": "inf"}, "temperatures='inf' should be a comma list"),
        ("temperature_grid", {"temperatures": "nan"}, "temperatures='nan' should be a comma list"),
        ("positive_keys", {"keys": "0,1"}, "keys='0,1' should be a comma list of whole numbers from 1"),
        ("positive_keys", {"strengths": "-1"}, "strengths='-1' should be a comma list of numbers from 0"),
        ("positive_keys", {"temperatures": ""}, "temperatures='' should be a comma list"),
        ("similarity_variance", {"dataset": "cifar"}, "dataset='cifar' is not one of"),
    ],
    ids=str,
)
def test_what_does_not_exist_is_refused_before_anything_is_computed(runs, table, choices, message):
    with pytest.raises(ValueError, match=message):
        tables.TABLES[table].run(**{"preset": "smoke"} | choices)
    assert not runs.exists()


def test_missing_data_says_where_it_comes_from_and_goes_to(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "nothing")):
        tables.image_methods("stl10", preset="smoke")
    with pytest.raises(FileNotFoundError, match="repro data import cifar10 FILE"):
        tables.image_methods("cifar10", preset="smoke", subset=True)


def test_the_tables_the_command_line_knows_name_an_example_that_exists():
    for name, table in tables.TABLES.items():
        dataset, method = table.example
        assert table.presets["paper"](dataset, method).described(), name
        assert list(table.presets) == ["paper", "quick", "smoke"]
        assert manifest.load_manifest(dataset).name == dataset
