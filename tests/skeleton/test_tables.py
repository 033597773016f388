"""The tables from parameters to rows: which cells, which printed numbers, what is stored, what is refused."""

import copy
import dataclasses
import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from pandas import DataFrame
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from stored_cells import refuse, stored
from tqdm import tqdm

from repro import manifest
from repro.report.elements import heading
from repro.run.evaluate import cosine_rates, linear_probe, nearest_neighbour, standardised
from repro.run.fit import fit
from repro.run.store import Cell
from repro.skeleton import cell, selection, tables
from repro.skeleton.pretrain import VERSION, Pretrainer
from repro.skeleton.recipe import CONCERNED, VARIANTS, paper, smoke
from repro.skeleton.selection import BestOnTest
from repro.skeleton.selection import accuracy_on_test as knn_accuracy

REAL = manifest.location(manifest.load_manifest("ucla").files[0], manifest.data_root())
needs_ucla = pytest.mark.skipif(REAL is None, reason="nw_ucla/all_sqe.zip is not below REPRO_DATA")
CPU = torch.device("cpu")

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


# ---------------------------------------------------------------------------------------------- cells


def test_the_sixteen_entries():
    cells = tables.taxonomy_cells("synthetic")
    expected = ["+".join(chosen) for size in (1, 2, 3, 4)
                for chosen in itertools.combinations(("AE", "CE", "AD", "CD"), size)]
    assert cells[0].entry == "random"
    assert sorted(cell.entry for cell in cells[1:]) == sorted(expected)
    assert len({cell.key for cell in cells}) == 16
    assert {(cell.table, cell.dataset, cell.preset, cell.seed) for cell in cells} == {
        ("taxonomy", "synthetic", "quick", 0)
    }
    assert all(cell.entry == cell.recipe.objectives for cell in cells)


def test_depths_and_methods_of_the_collapse():
    cells = tables.encoder_collapse_cells("synthetic", layers="3,1", seeds="4,2")
    assert [(cell.seed, cell.recipe.layers, cell.recipe.objectives) for cell in cells] == [
        (seed, layers, method) for seed in (4, 2) for layers in (3, 1) for method in ("random", "AE")
    ]
    assert [cell.entry for cell in cells[:4]] == ["random, layers=3", "AE, layers=3", "random", "AE"]
    assert len(tables.encoder_collapse_cells("synthetic")) == 10


def test_the_order_of_terms_does_not_matter():
    names = ["CE+AE", " CD+AD+CE+AE", "random"]
    cells = tables.taxonomy_cells("synthetic", objectives=",".join(names))
    assert [cell.entry for cell in cells] == ["AE+CE", "AE+CE+AD+CD", "random"]
    plain = tables.taxonomy_cells("synthetic", objectives="AE+CE")
    assert plain[0].key == cells[0].key


def test_seeds_come_one_after_the_other_and_make_cells_of_their_own():
    cells = tables.taxonomy_cells("synthetic", objectives="CE,AE", seeds="3,1")
    assert [(cell.seed, cell.entry) for cell in cells] == [(3, "CE"), (3, "AE"), (1, "CE"), (1, "AE")]
    assert len({cell.key for cell in cells}) == 4
    assert tables.taxonomy_cells("synthetic", objectives="CE", seeds=3)[0] == cells[0]


@pytest.mark.parametrize(
    ("choices", "suffix"),
    [
        ({}, ""),
        ({"layers": 3}, ", layers=3"),
        ({"layers": "3", "units": "64"}, ", layers=3, units=64"),
        ({"units": 16}, ""),  # what the preset has anyway
        ({"select": "best_on_test"}, ", select=best_on_test"),
        *(({"variant": name}, "".join(f", {field}={value}" for field, value in changes.items()))
          for name, changes in VARIANTS.items() if name != "uncropped"),
        ({"learning_rate": "0.05"}, ", learning_rate=0.05"),
        ({"learning_rate": 1e-3}, ""),
    ],
    ids=str,
)
def test_entries_say_what_departs_from_the_preset(choices, suffix):
    found, = tables.taxonomy_cells("synthetic", preset="smoke", objectives="CE+AD+CD", **choices)
    usual, = tables.taxonomy_cells("synthetic", preset="smoke", objectives="CE+AD+CD")
    assert found.entry == "CE+AD+CD" + suffix
    assert (found.key == usual.key) == (suffix == "")


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "uncropped"])
def test_objectives_that_a_variant_does_not_concern_keep_their_usual_cells(variant):
    cells = tables.taxonomy_cells("synthetic", variant=variant)
    for found, usual in zip(cells, tables.taxonomy_cells("synthetic"), strict=True):
        concerned = any(term in usual.entry.split("+") for term in CONCERNED[variant])
        assert found.recipe == (usual.recipe.replace(**VARIANTS[variant]) if concerned else usual.recipe)
        assert (found.key == usual.key) == (found.entry == usual.entry) == (not concerned)


@pytest.mark.parametrize(
    ("variant", "objectives", "able"),
    [("sum_of_squares", "CE", "AD"), ("denoising", "random,AE+CE", "AD"), ("frozen_noise", "CE+AD", "CD"),
     ("uncropped", "AE,CE", "CD"), ("mlp_head", "random,AD+CD", "AE, CE"), ("ema_head_twice", "AE+CD", "CE")],
)
def test_a_variant_that_changes_no_objective_is_refused(variant, objectives, able):
    chosen = re.escape(objectives.replace(",", ", "))
    message = f"variant='{variant}' changes nothing in the training of {chosen}; leave it out, .* anyway: {able}$"
    with pytest.raises(ValueError, match=message):
        tables.taxonomy_cells("synthetic", objectives=objectives, variant=variant)


def test_parameters_reach_the_recipe():
    found, = tables.taxonomy_cells("synthetic", objectives="AD+CD", layers=2, units="48", variant="frozen_noise",
                                   select="best_on_test", protocol="xview", learning_rate="3e-3")
    recipe = found.recipe
    assert (recipe.layers, recipe.units, recipe.td_queue, recipe.select) == (2, 48, "frozen_noise", "best_on_test")
    assert recipe.learning_rate == 3e-3


def test_selection_and_precision_reach_the_recipes_of_the_collapse():
    usual, = tables.encoder_collapse_cells("synthetic", layers=1, methods="AE")
    found, = tables.encoder_collapse_cells("synthetic", layers=1, methods="AE", select="best_on_test",
                                           precision="bfloat16")
    assert found.recipe == usual.recipe.replace(select="best_on_test", precision="bfloat16")
    assert found.entry == "AE, select=best_on_test, precision=bfloat16"


@pytest.fixture
def cuda(monkeypatch):
    """A CUDA device, as far as a list of cells can tell."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


LISTS = {"taxonomy": {"objectives": "AE"}, "encoder_collapse": {"methods": "AE", "layers": 1}}


@pytest.mark.parametrize("table", LISTS)
@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_cells_for_cuda_are_in_float32_and_have_keys_of_their_own(table, device, cuda):
    listed = tables.TABLES[table].cells
    on_cuda, = listed("synthetic", preset="paper", device=device, **LISTS[table])
    on_cpu, = listed("synthetic", preset="paper", device="cpu", **LISTS[table])
    assert (on_cuda.recipe.precision, on_cpu.recipe.precision) == ("float32", "bfloat16")
    assert on_cuda.entry == on_cpu.entry == "AE" and on_cuda.key != on_cpu.key
    assert listed("synthetic", preset="paper", device=device, precision="float32", **LISTS[table]) == [on_cuda]
    labelled, = listed("synthetic", preset="paper", device="cpu", precision="float32", **LISTS[table])
    assert labelled.entry == "AE, precision=float32" and labelled.key == on_cuda.key  # another entry of one recipe
    with pytest.raises(ValueError, match="precision='bfloat16' is for a CPU; on cuda it is float32: leave it out"):
        listed("synthetic", preset="paper", device=device, precision="bfloat16", **LISTS[table])


def test_cells_in_float32_on_a_cpu_are_those_for_cuda(cuda):
    """The quick recipe of embedded data has float32 everywhere."""
    on_cuda, on_cpu = (tables.taxonomy_cells("synthetic", objectives="CE", device=name) for name in ("cuda", "cpu"))
    assert on_cuda == on_cpu


def test_a_table_asks_for_the_cells_of_its_device(monkeypatch, cuda):
    for name in ("taxonomy", "encoder_collapse"):
        asked = []
        monkeypatch.setattr(tables, "trained", lambda cells, *_, asked=asked: asked.extend(cells))
        tables.TABLES[name].run("synthetic", preset="smoke", device="cuda")
        assert {found.recipe.precision for found in asked} == {"float32"}


@pytest.mark.parametrize(("dataset", "pipeline", "expected"), [
    ("ntu", "authors", "default"), ("ntu", "default", "default"), ("ntu", "predict_cluster", "predict_cluster"),
    ("synthetic", "raw", "raw"),
])
def test_one_computation_has_one_pipeline(dataset, pipeline, expected, monkeypatch):
    monkeypatch.setattr(tables, "data_of", lambda recipe: stand_in(recipe.dataset, 300))
    found, = tables.taxonomy_cells(dataset, preset="smoke", objectives="CE", pipeline=pipeline)
    assert found.recipe.pipeline == expected
    assert found.entry == ("CE" if expected == "default" else f"CE, pipeline={expected}")


def test_the_authors_pipeline_is_ntus_alone():
    with pytest.raises(ValueError, match="pipeline='authors' is not one of: default, interpolate, unscaled, raw"):
        tables.taxonomy_cells("synthetic", pipeline="authors")


def stand_in(name, longest):
    """What the list of cells asks of a data set that is not here."""
    return SimpleNamespace(name=name, digest="d", lengths=torch.tensor([3, longest]))


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


@pytest.mark.parametrize(("longest", "refused"), [(50, True), (51, False), (7, True)])
def test_uncropped_is_refused_where_nothing_is_cropped(longest, refused, monkeypatch):
    monkeypatch.setattr(tables, "data_of", lambda recipe: stand_in("ntu", longest))
    if refused:
        with pytest.raises(ValueError, match=f"would change nothing on ntu: its longest sequence has {longest} frames"):
            tables.taxonomy_cells("ntu", objectives="CD", variant="uncropped")
    else:
        found, = tables.taxonomy_cells("ntu", objectives="CD", variant="uncropped")
        assert found.entry == "CD, td_crop=None" and found.recipe.td_crop is None


@pytest.mark.parametrize("table", ["taxonomy", "encoder_collapse"])
@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"dataset": "nutu"}, "dataset='nutu' is not one of: synthetic, ucla"),
        ({"dataset": "Synthetic"}, "did you mean 'synthetic'"),
        ({"preset": "papr"}, "preset='papr' is not one of: auto, paper, quick, smoke; did you mean 'paper'"),
        ({"seeds": "0;1"}, "seeds='0;1' should be a comma list of whole numbers from 0"),
        ({"seeds": "-1"}, "whole numbers from 0"),
        ({"seeds": ""}, "whole numbers from 0"),
        ({"layers": "0"}, "layers='0' should be a"),
        ({"layers": "one"}, "layers='one' should be a"),
        ({"device": "gpu"}, "device='gpu' is not one of: auto, cpu, cuda"),
        ({"engine": "remote"}, "engine='remote' is not one of: auto, inline, local, dask"),
        ({"workers": "0"}, "workers='0' should be a whole number of at least 1"),
    ],
    ids=str,
)
def test_impossible_values_stop_before_anything_is_computed(table, choices, message, runs):
    with pytest.raises(ValueError, match=message):
        tables.TABLES[table].run(**({"preset": "smoke"} | choices))
    assert not runs.exists()


@pytest.mark.parametrize(
    ("table", "choices", "message"),
    [
        ("taxonomy", {"objectives": "CE+XX"}, "objectives='CE\\+XX' is not one of: all, random, AE, CE, AE\\+CE"),
        ("taxonomy", {"objectives": "CE+CE"}, "objectives='CE\\+CE' is not one of"),
        ("taxonomy", {"objectives": "random+CE"}, "objectives='random\\+CE' is not one of"),
        ("taxonomy", {"objectives": "CE,"}, "objectives='' is not one of"),
        ("taxonomy", {"objectives": "ce"}, "objectives='ce' is not one of"),
        ("taxonomy", {"protocol": "xsub"}, "protocol='xsub' is not one of: auto, xview"),
        ("taxonomy", {"variant": "frozen"}, "variant='frozen' is not one of: none, .*; did you mean 'frozen_noise'"),
        ("taxonomy", {"select": "first"}, "select='first' is not one of: last, best_on_test"),
        ("taxonomy", {"units": "many"}, "units='many' should be a whole number of at least 1"),
        ("taxonomy", {"units": 0}, "units=0 should be a whole number of at least 1"),
        *(("taxonomy", {"learning_rate": rate}, f"learning_rate={rate!r} should be auto or a positive number")
          for rate in ("0", "-1", "fast", "nan", "inf", True, "")),
        ("taxonomy", {"variant": "uncropped"}, "would change nothing on synthetic: its longest sequence has 50 frames"),
        ("encoder_collapse", {"precision": "half"}, "precision='half' is not one of: auto, float32, bfloat16"),
        ("encoder_collapse", {"select": "first"}, "select='first' is not one of: last, best_on_test"),
        ("taxonomy", {"layers": "1,2"}, "layers='1,2' should be a whole number"),
        ("encoder_collapse", {"methods": "CE"}, "methods='CE' is not one of: random, AE"),
        ("encoder_collapse", {"methods": "random AE"}, "methods='random AE' is not one of: random, AE"),
    ],
    ids=str,
)
def test_impossible_values_of_one_table(table, choices, message, runs):
    with pytest.raises(ValueError, match=message):
        tables.TABLES[table].run("synthetic", preset="smoke", **choices)
    assert not runs.exists()


@pytest.mark.parametrize("table", ["taxonomy", "encoder_collapse"])
def test_misspelt_parameters_are_errors(table, runs):
    with pytest.raises(TypeError, match="seed"):
        tables.TABLES[table].run("synthetic", preset="smoke", seed="0")
    assert not runs.exists()


@pytest.mark.parametrize(("given", "message"), [
    ({"layers": "1,1"}, "layers='1,1' names 1 twice"),
    ({"methods": "AE,random,AE"}, "methods='AE,random,AE' names AE twice"),
    ({"seeds": "0,1,0"}, "seeds='0,1,0' names 0 twice"),
])
def test_what_is_there_twice_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        tables.encoder_collapse_cells("synthetic", **given)


def test_a_method_that_is_a_number_is_refused_by_name():
    with pytest.raises(ValueError, match=r"methods='?5'? is not one of: random, AE"):
        tables.encoder_collapse_cells("synthetic", methods=5)


def test_a_seed_too_large_for_torch_is_refused_before_anything_is_computed(runs):
    with pytest.raises(ValueError, match="seeds"):
        tables.taxonomy("synthetic", preset="smoke", objectives="random", seeds=str(10**20))
    assert not runs.exists()


@pytest.mark.parametrize("table", ["taxonomy", "encoder_collapse"])
def test_missing_real_data_say_where_to_get_them_and_where_to_put_them(table, tmp_path, monkeypatch, runs):
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError) as raised:
        tables.TABLES[table].run("ucla", preset="smoke")
    message = str(raised.value)
    assert manifest.load_manifest("ucla").source in message
    assert str(tmp_path / "nothing" / "nw_ucla" / "all_sqe.zip") in message
    assert not runs.exists()


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
        assert set(result) == {*accuracies, "embedding_spread", "readout_spread", "select"}
        for value in result.values():
            assert type(value) is str or (type(value) is float and math.isfinite(value))
        assert all(0 <= result[accuracy] <= 100 for accuracy in accuracies)
        assert 0 < result["readout_spread"] < 1
        assert 0 < result["embedding_spread"] <= 1
        assert result["select"] == "last"
        assert cost["steps"] == (0 if name == "random" else 2)
        assert {"seconds", "finished", "commit", "device", "torch"} <= set(cost)
        assert cost["precision"] == "bfloat16"  # smoke keeps the default


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


# ---------------------------------------------------------------------------------------------- what a cell reports


@pytest.fixture(scope="module")
def data():
    """Every fifth sequence of the embedded data."""
    every = cell.data_of(smoke("synthetic", "CE"))
    parts = ("lengths", "labels", "train", "test", "views", "subjects")
    kept = (torch.arange(len(every.lengths)) % 5 == 0).repeat_interleave(every.lengths)
    return dataclasses.replace(every, frames=every.frames[kept], **{name: getattr(every, name)[::5] for name in parts})


def test_the_probe_reports_its_last_epoch_or_its_best_one(data, one_thread, monkeypatch):
    recipe = smoke("synthetic", "random", probe_epochs=3, batch=64)
    pretrainer = Pretrainer(recipe, data, 4, CPU)
    readouts, _ = pretrainer.features(data)
    split = (readouts[data.train], data.labels[data.train], readouts[data.test], data.labels[data.test])
    accuracies = linear_probe(*split, classes=10, batch=128, rates=cosine_rates(3, 2.0, 0.01), momentum=0.9, seed=4)
    assert cell.evaluate(pretrainer, data, 4)["linear"] == accuracies[-1]
    labels, place = data.labels[data.test], torch.arange(int(data.test.sum()))
    made_up = torch.stack([labels + (place >= right) for right in (10, 60, 40)])
    monkeypatch.setattr(cell, "linear_predictions", lambda *_, **__: made_up)
    last = cell.evaluate(pretrainer, data, 4)
    pretrainer.recipe = recipe.replace(select="best_on_test")
    best = cell.evaluate(pretrainer, data, 4)
    assert (last["linear"], last["select"]) == (100 * 40 / len(labels), "last")
    assert (best["linear"], best["select"]) == (100 * 60 / len(labels), "best_on_test")
    assert best["knn1"] == last["knn1"] == knn_accuracy(pretrainer, data)


def with_repeats(data, count):
    """The set with `count` of its training sequences once more, for testing; none but these if all are repeated."""
    rows, names = data.train.nonzero().flatten()[:count], ("labels", "views", "subjects", "lengths")
    kept = data.train if count == int(data.train.sum()) else torch.ones_like(data.train)
    parts = data.frames.split(data.lengths.tolist())
    again = torch.ones(count, dtype=torch.bool)
    columns = {name: torch.cat([getattr(data, name)[kept], getattr(data, name)[rows]]) for name in names}
    frames = [part for part, wanted in zip(parts, kept.tolist(), strict=True) if wanted] + [parts[row] for row in rows]
    return dataclasses.replace(data, frames=torch.cat(frames), train=torch.cat([data.train[kept], ~again]),
                               test=torch.cat([data.test[kept], again]), **columns)


@pytest.mark.parametrize("select", ["last", "best_on_test"])
def test_accuracies_with_and_without_repeats_are_those_of_probes_of_their_own(data, one_thread, select):
    data = with_repeats(data, 30)
    assert int(data.repeated.sum()) == 30
    pretrainer = Pretrainer(smoke("synthetic", "random", probe_epochs=4, batch=64, select=select), data, 1, CPU)
    readouts, _ = pretrainer.features(data)
    found, scaled = cell.evaluate(pretrainer, data, 1), standardised(readouts, readouts[data.train])
    for ending, tested in (("", data.test), ("_unseen", data.test & ~data.repeated)):
        for name, features, rate in (("linear", readouts, 2.0), ("linear_standardised", scaled, 0.1)):
            split = (features[data.train], data.labels[data.train], features[tested], data.labels[tested])
            own = linear_probe(*split, classes=10, batch=128, rates=cosine_rates(4, rate, 0.01), momentum=0.9, seed=1)
            assert found[name + ending] == (max(own) if select == "best_on_test" else own[-1])
        split = (readouts[data.train], data.labels[data.train], readouts[tested], data.labels[tested])
        assert found["knn1" + ending] == nearest_neighbour(*split)


def test_where_all_test_sequences_are_repeated_nothing_is_said_of_the_others(data, one_thread):
    data = with_repeats(data, int(data.train.sum()))
    assert torch.equal(data.repeated, data.test)
    found = cell.evaluate(Pretrainer(smoke("synthetic", "random", batch=64), data, 0, CPU), data, 0)
    assert not [name for name in found if name.endswith("_unseen")]
    assert found["knn1"] == 100.0


@pytest.mark.parametrize(("objectives", "decoded"), [("random", False), ("AE+CE", False), ("CD", True), ("AD", True)])
def test_the_decoded_scale_is_measured_where_the_decoder_is_trained(objectives, decoded, data, one_thread):
    pretrainer = Pretrainer(smoke("synthetic", objectives, batch=64), data, 0, CPU)
    found = cell.evaluate(pretrainer, data, 0)
    assert cell.measures(pretrainer.recipe) == set(found) - {"select"}
    assert ("decoded_scale" in found) == decoded
    if decoded:
        assert found["decoded_scale"] == pretrainer.decoded_scale(data, pretrainer.features(data)[0])


def test_the_rate_of_the_second_probe_is_part_of_the_recipe(data, one_thread):
    usual, other = (Pretrainer(smoke("synthetic", "random", batch=64, **changes), data, 0, CPU)
                    for changes in ({}, {"probe_standardised_rate": 1e-4}))
    found, changed = cell.evaluate(usual, data, 0), cell.evaluate(other, data, 0)
    assert {name for name in found if found[name] != changed[name]} == {
        "linear_standardised", "linear_standardised_unseen"
    }
    assert '"probe_standardised_rate"' not in usual.recipe.canonical()  # keys from before the field stay
    assert '"probe_standardised_rate": 0.0001' in other.recipe.canonical()


def test_the_spread_is_a_deviation_over_the_test_split(data, one_thread):
    pretrainer = Pretrainer(smoke("synthetic", "random", probe_epochs=1, batch=64), data, 0, CPU)
    embeddings = pretrainer.features(data)[1][data.test].double().numpy()
    deviations = embeddings.std(axis=0)
    expected = np.sqrt((deviations**2).mean()) * np.sqrt(128)
    assert cell.evaluate(pretrainer, data, 0)["embedding_spread"] == pytest.approx(expected, rel=1e-5)


def test_the_spread_is_zero_for_equal_embeddings_and_one_without_a_preferred_direction(data, one_thread):
    pretrainer = Pretrainer(smoke("synthetic", "random", probe_epochs=1, batch=64), data, 0, CPU)
    readouts, _ = pretrainer.features(data)
    isotropic = torch.nn.functional.normalize(torch.randn(len(readouts), 8, generator=torch.Generator()), dim=1)
    for embeddings, expected in ((torch.ones(len(readouts), 8) / 8**0.5, 0.0), (isotropic, 1.0)):
        pretrainer.features = lambda _, embeddings=embeddings: (readouts, embeddings)
        assert cell.evaluate(pretrainer, data, 0)["embedding_spread"] == pytest.approx(expected, abs=0.02)


def test_the_second_probe_is_linear_on_standardised_readouts(data, one_thread):
    pretrainer = Pretrainer(smoke("synthetic", "random", probe_epochs=3, batch=64), data, 4, CPU)
    readouts, _ = pretrainer.features(data)
    scaled = torch.from_numpy(StandardScaler().fit(readouts[data.train].numpy()).transform(readouts.numpy()))
    assert torch.allclose(standardised(readouts, readouts[data.train]), scaled, atol=1e-5)
    pretrainer.features = lambda _: (readouts * 1000 + 7, readouts)
    unseen = data.test & ~data.repeated
    for name, tested in (("linear_standardised", data.test), ("linear_standardised_unseen", unseen)):
        split = (scaled[data.train], data.labels[data.train], scaled[tested], data.labels[tested])
        expected = linear_probe(*split, classes=10, batch=128, rates=cosine_rates(3, 0.1, 0.01), momentum=0.9, seed=4)
        one_sample = 100 / int(tested.sum())
        assert cell.evaluate(pretrainer, data, 4)[name] == pytest.approx(expected[-1], abs=1.01 * one_sample)


def test_the_spread_of_readouts_is_relative_to_their_norm(data, one_thread):
    pretrainer = Pretrainer(smoke("synthetic", "random", probe_epochs=1, batch=64), data, 0, CPU)
    readouts, embeddings = pretrainer.features(data)
    tested = readouts[data.test].double().numpy()
    expected = np.sqrt((tested.std(axis=0) ** 2).mean()) * 4 / np.sqrt((np.linalg.norm(tested, axis=1) ** 2).mean())
    centred = torch.randn(len(readouts), 16, generator=torch.Generator())
    equal, nothing = torch.full_like(readouts, 0.5), torch.zeros_like(readouts)
    cases = ((readouts, expected, 1e-5), (30 * readouts, expected, 1e-5), (equal, 0.0, 1e-6), (nothing, 0.0, 0.0),
             (centred, 1.0, 0.02))
    for points, spread, tolerance in cases:
        pretrainer.features = lambda _, points=points: (points, embeddings)
        assert cell.evaluate(pretrainer, data, 0)["readout_spread"] == pytest.approx(spread, abs=tolerance)


def selecting(data, **changes):
    recipe = smoke("synthetic", "AE+CE", select="best_on_test", learning_rate=0.02, batch=64, **changes)
    return BestOnTest(Pretrainer(recipe, data, 0, CPU), data)


def weights(pretrainer):
    return torch.cat([parameter.detach().flatten() for parameter in pretrainer.model.parameters()])


def test_the_best_checkpoint_on_the_test_split_is_put_back(data, one_thread, tmp_path, monkeypatch):
    alone, history = selecting(data, epochs=8).pretrainer, []
    for _ in range(4):
        for _ in range(2 * alone.steps_per_epoch):
            alone.step()
        history.append(weights(alone))
    accuracies = iter([30.0, 50.0, 40.0, 50.0])
    monkeypatch.setattr(selection, "accuracy_on_test", lambda *_: next(accuracies))
    learner = selecting(data, epochs=8, select_every=2)
    fit(learner, tmp_path, tqdm(disable=True))
    assert next(accuracies, None) is None
    assert torch.equal(weights(learner.pretrainer), history[3])
    learner.restore()
    assert learner.best == 50.0
    assert torch.equal(weights(learner.pretrainer), history[1])  # the first of equal ones


def test_selection_looks_at_the_nearest_neighbour_on_the_test_split(data, one_thread):
    learner = selecting(data, epochs=1, select_every=1)
    for _ in range(learner.total_steps):
        learner.step()
    readouts, _ = learner.pretrainer.features(data)
    references = KNeighborsClassifier(1, metric="cosine").fit(readouts[data.train], data.labels[data.train])
    assert learner.best == pytest.approx(100 * references.score(readouts[data.test], data.labels[data.test]))


def test_a_selection_continues_where_it_was(data, one_thread, tmp_path):
    undisturbed, first = (selecting(data, epochs=4, select_every=1) for _ in range(2))
    for _ in range(5):
        undisturbed.step(), first.step()
    torch.save(first.state_dict(), tmp_path / "state.pt")
    resumed = selecting(data, epochs=4, select_every=1)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for learner in (undisturbed, resumed):
        for _ in range(5):
            learner.step()
        learner.restore()
    assert (resumed.best, resumed.taken) == (undisturbed.best, undisturbed.taken)
    assert torch.equal(weights(resumed.pretrainer), weights(undisturbed.pretrainer))


def test_a_selected_result_stands_beside_the_last_epoch_of_the_same_training(data, one_thread, monkeypatch):
    last = Pretrainer(smoke("synthetic", "AE+CE", learning_rate=0.02, batch=64, epochs=3), data, 0, CPU)
    learner, accuracies = selecting(data, epochs=3, select_every=1), iter([50.0, 40.0, 30.0])
    monkeypatch.setattr(selection, "accuracy_on_test", lambda *_: next(accuracies))
    for trained_one in (last, learner):
        for _ in range(trained_one.total_steps):
            trained_one.step()
    expected = cell.measure(last, data, 0)
    assert "linear_last" not in expected
    found = cell.measure(learner, data, 0)
    assert found["linear_last"] == expected["linear"]
    assert found["embedding_spread"] != expected["embedding_spread"]  # read after the first epoch
    assert found == cell.evaluate(learner.pretrainer, data, 0) | {"linear_last": expected["linear"]}


def test_without_a_look_at_the_test_split_the_last_weights_stay(data, one_thread):
    learner = selecting(data, epochs=2, select_every=3)
    for _ in range(learner.total_steps):
        learner.step()
    before = copy.deepcopy(weights(learner.pretrainer))
    learner.restore()
    assert torch.equal(weights(learner.pretrainer), before)


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


def test_errors_name_what_is_allowed_only_once():
    with pytest.raises(ValueError) as raised:
        tables.parse_objectives("CE,AEE")
    assert re.search(r"objectives='AEE' is not one of: all, random, .*; did you mean 'AE'", str(raised.value))
