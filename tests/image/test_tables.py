"""The image tables from parameters to rows: which cells, which printed numbers, what is trained, what is refused."""

import dataclasses
import hashlib
import itertools
import json
import math

import made_up_images
import numpy as np
import pandas as pd
import pytest
from made_up_images import made_up
from pandas import DataFrame
from stored_cells import refuse, stored

from repro import manifest
from repro.image import pretrain, table_cells, table_layouts, tables
from repro.image.pretrain import VERSION
from repro.image.recipe import CONCERNED, METHODS, VARIANTS, paper, quick, smoke
from repro.report import printed
from repro.report.printed import as_printed
from repro.run.store import Cell

HEAD = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset"]
TAIL = [*HEAD, *table_layouts.MEASURES]
LAYOUTS = {
    "image_methods": ["method", *TAIL],
    "temperature_grid": ["method", "temperature", "key_temperature", *TAIL],
    "positive_keys": ["varied", "method", "keys", "strength", "temperature", "encoder_forwards", *TAIL],
    "similarity_variance": ["method", "keys", *TAIL],
}
NAMES = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "stl10": "STL10", "tiny_imagenet": "Tiny-IN"}
pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture(autouse=True, scope="module")
def tiny_trunk():
    with pytest.MonkeyPatch.context() as patch:
        made_up_images.use_tiny_trunk(patch)
        yield


@pytest.fixture
def any_data(monkeypatch):
    """Every data set is there; the cells' functions look at its name and digest alone."""

    def named(recipe):
        name = f"{recipe.dataset} (subset)" if recipe.subset else recipe.dataset
        return dataclasses.replace(made_up(), name=name, digest=f"digest of {name}")

    monkeypatch.setattr(table_cells, "data_of", named)


@pytest.mark.parametrize("name", tables.TABLES)
def test_a_misspelt_parameter_is_told_from_those_there_are(any_data, name):
    table = tables.TABLES[name]
    message = rf"'sedes' is not a parameter of {name}_cells; they are dataset, preset, .*; did you mean 'seeds'\?"
    for made in (table.run, table.cells):
        with pytest.raises(TypeError, match=message):
            made("digits", preset="smoke", sedes="0")
    with pytest.raises(TypeError, match=r"'zzz' is not a parameter .*precision$"):
        table.cells(zzz=1)
    assert table.cells("digits", preset="smoke", seeds="1")[0].seed == 1


@pytest.mark.parametrize("name", tables.TABLES)
def test_what_processes_cannot_share_is_refused_before_anything_is_trained(any_data, monkeypatch, capsys, name):
    monkeypatch.setattr(pretrain, "process", lambda: (0, 2))
    with pytest.raises(ValueError, match=r"groups=1 cannot be divided among 2 processes.*--variant ghost_groups"):
        tables.TABLES[name].run(preset="smoke", engine="inline", device="cpu")
    assert capsys.readouterr().err == ""
    assert table_cells.image_methods_cells("digits", preset="smoke", methods="random,sce", variant="ghost_groups")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """All methods and two seeds, trained once for this file: (runs folder, table)."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_RUNS", str(folder))
        return folder, tables.image_methods(preset="smoke", methods=",".join(METHODS), seeds="0,1")


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


# ---------------------------------------------------------------------------------------------- cells


def test_the_methods_in_one_setting(any_data):
    cells = tables.image_methods_cells("cifar10")
    assert [cell.entry for cell in cells] == ["random", "supervised", "moco", "ressl", "sce", "jcl"]
    for cell in cells:
        assert cell.recipe == paper("cifar10", cell.entry)
        assert (cell.table, cell.preset, cell.dataset, cell.digest, cell.seed, cell.version) == (
            "image_methods", "paper", "cifar10", "digest of cifar10", 0, VERSION
        )


@pytest.mark.parametrize("table", LAYOUTS)
@pytest.mark.parametrize(("dataset", "preset"), [("digits", "quick"), ("cifar10", "paper"), ("imagenet100", "paper")])
def test_auto_is_the_papers_recipe_on_real_data_and_a_quick_one_on_embedded_data(any_data, table, dataset, preset):
    cells = tables.TABLES[table].cells(dataset)
    assert {cell.preset for cell in cells} == {preset}
    make = {"quick": quick, "paper": paper}[preset]
    changeable = ("keys", "strength", "temperature", "key_temperature")
    for cell in cells:
        usual = make(dataset, cell.recipe.method)
        assert cell.recipe.replace(**{name: getattr(usual, name) for name in changeable}) == usual
        assert cell.table == table


def test_methods_in_the_order_asked_for():
    cells = tables.image_methods_cells(methods=" jcl,moco , vanilla", seeds="3,1")
    assert [(cell.seed, cell.entry) for cell in cells] == [
        (seed, method) for seed in (3, 1) for method in ("jcl", "moco", "vanilla")
    ]
    assert all(cell.recipe == quick("digits", cell.entry) for cell in cells)
    assert len({cell.key for cell in cells}) == 6


@pytest.mark.parametrize(("dataset", "columns"), [("digits", 4), ("cifar10", 8)])
def test_the_grid_of_temperatures(any_data, dataset, columns):
    cells = tables.temperature_grid_cells(dataset)
    own = {4: [0.03, 0.05, 0.07, 0.1], 8: [0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1]}[columns]
    found = [(cell.recipe.method, cell.recipe.temperature, cell.recipe.key_temperature) for cell in cells]
    assert found == [("sce", row, column) for row in (0.1, 0.2) for column in own] + [("ressl", 0.1, 0.1)]
    assert cells[0].entry == "sce, temperature=0.1, key_temperature=0.03"


def test_the_grid_takes_lists():
    cells = tables.temperature_grid_cells(temperatures="0.3,0.05", key_temperatures="0.05,0.3")
    found = [(cell.recipe.method, cell.recipe.temperature, cell.recipe.key_temperature) for cell in cells]
    assert found == [("sce", 0.3, 0.05), ("sce", 0.3, 0.3), ("sce", 0.05, 0.05), ("sce", 0.05, 0.3),
                     ("ressl", 0.3, 0.3), ("ressl", 0.05, 0.05)]


def swept(cells):
    return [(cell.recipe.keys, cell.recipe.strength, cell.recipe.temperature) for cell in cells]


@pytest.mark.parametrize(
    ("dataset", "keys", "strengths", "temperatures"),
    [
        ("digits", [1, 2, 5, 9], [0, 4, 10], [0.1, 0.2, 0.5]),
        ("imagenet100", [1, 2, 3, 5, 7, 9], [0, 0.5, 1, 2, 4, 6, 10], [0.07, 0.1, 0.2, 0.3, 0.5]),
        ("imagenet", [1, 2, 3, 5, 7, 9], [0, 0.5, 1, 2, 4, 6, 10], [0.07, 0.1, 0.2, 0.3, 0.5]),
    ],
)
def test_the_three_sweeps_of_jcl(any_data, dataset, keys, strengths, temperatures):
    cells = tables.positive_keys_cells(dataset)
    expected = {(number, 4, 0.2) for number in keys} | {(5, value, 0.2) for value in strengths}
    expected |= {(5, 4, value) for value in temperatures}
    found = swept(cells)
    assert set(found) == expected and len(found) == len(expected)  # the common point once
    assert {cell.recipe.method for cell in cells} == {"jcl"}
    assert len({cell.key for cell in cells}) == len(cells)


def test_the_sweeps_take_lists():
    cells = tables.positive_keys_cells(keys=3, strengths="0.5", temperatures="0.2,0.7")
    assert swept(cells) == [(3, 4, 0.2), (5, 0.5, 0.2), (5, 4, 0.2), (5, 4, 0.7)]


def test_the_models_of_the_histograms(any_data):
    jcl, moco = tables.similarity_variance_cells("imagenet100")
    assert jcl.recipe == paper("imagenet100", "jcl", keys=9, strength=4.0, temperature=0.2)
    assert moco.recipe == paper("imagenet100", "moco")


@pytest.mark.parametrize("table", LAYOUTS)
def test_choices_reach_every_recipe(any_data, table):
    choices = {"seeds": "4,7", "subset": True, "precision": "float32"}
    if table != "similarity_variance":
        choices["select"] = "best_on_test"
    cells = tables.TABLES[table].cells("stl10", **choices)
    usual = tables.TABLES[table].cells("stl10")
    assert [cell.seed for cell in cells] == [4] * len(usual) + [7] * len(usual)
    for cell, plain in zip(cells, usual * 2, strict=True):
        expected = {"subset": True, "precision": "float32", "select": choices.get("select", "last")}
        assert cell.recipe == plain.recipe.replace(**expected)
        assert cell.dataset == "stl10 (subset)" and cell.digest == "digest of stl10 (subset)"


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_reach_the_recipes_and_their_entries(variant):
    changes = VARIANTS[variant]
    for cell in tables.image_methods_cells(methods=",".join(METHODS), variant=variant):
        usual = quick("digits", cell.recipe.method)
        if usual.method not in CONCERNED[variant]:
            assert (cell.recipe, cell.entry) == (usual, usual.method)
            continue
        assert cell.recipe == usual.replace(**changes)
        departures = {name: value for name, value in changes.items() if getattr(usual, name) != value}
        assert cell.entry == ", ".join([usual.method, *(f"{name}={value}" for name, value in departures.items())])
        assert departures


@pytest.mark.parametrize(
    ("table", "choices", "message"),
    [
        ("image_methods", {"methods": "moco", "variant": "zero_logit"}, "of moco; leave it out, .* anyway: sce$"),
        ("image_methods", {"methods": "random,sce", "variant": "four_keys"}, "of random, sce; .* anyway: jcl, "),
        ("image_methods", {"methods": "random", "variant": "ghost_groups"}, "of random; .* anyway: supervised, moco"),
        ("image_methods", {"methods": "supervised", "variant": "swapped_views"}, "of supervised; .* anyway: moco, "),
        ("temperature_grid", {"variant": "constant_strength"}, "of sce, ressl; leave it out, .* anyway: jcl$"),
        ("positive_keys", {"variant": "zero_logit"}, "of jcl; leave it out, .* anyway: sce$"),
        ("similarity_variance", {"dataset": "imagenet100", "variant": "ghost_groups"}, "of jcl, moco; .* is not so"),
        ("similarity_variance", {"variant": "zero_logit"}, "of jcl, moco; leave it out, .* anyway: sce$"),
    ],
)
def test_a_variant_that_changes_no_method_is_refused(table, choices, message):
    with pytest.raises(ValueError, match=f"variant='{choices['variant']}' changes nothing in the training {message}"):
        tables.TABLES[table].cells(**choices)


def test_a_variant_of_the_sweeps_keeps_what_varies():
    usual = tables.positive_keys_cells()
    cells = tables.positive_keys_cells(variant="constant_strength")
    assert swept(cells) == swept(usual)
    assert all(cell.recipe == plain.recipe.replace(ramp=False) for cell, plain in zip(cells, usual, strict=True))
    with pytest.raises(ValueError, match="variant='four_keys' is not one of: none, "):
        tables.positive_keys_cells(variant="four_keys")


# ---------------------------------------------------------------------------------------------- keys


def base_cell(**changes):
    values = {"table": "image_methods", "entry": "sce", "recipe": paper("cifar10", "sce"), "seed": 0,
              "preset": "paper", "dataset": "cifar10", "digest": "d", "version": 1}
    return Cell(**values | changes)


def test_the_key_is_the_hash_of_recipe_seed_digest_and_version():
    recipe = json.dumps(base_cell().recipe.to_dict(), sort_keys=True)
    content = json.dumps([recipe, 0, "d", 1])
    assert base_cell().key == hashlib.sha256(content.encode()).hexdigest()[:16]


def test_the_key_changes_with_every_field_of_the_recipe_the_seed_the_data_and_the_version():
    recipe, keys = paper("cifar10", "jcl"), set()
    others = {"dataset": "cifar100", "method": "vanilla", "trunk": "resnet50", "head": "moco_v2", "query_view": "weak",
              "key_view": "weak", "schedule": "epoch", "precision": "float32", "probe_view": "crop",
              "select": "best_on_test"}
    for name, value in recipe.to_dict().items():
        changed = others.get(name, not value if type(value) is bool else value / 2 if type(value) is float else None)
        changed = 2 * value if changed is None else changed
        if name == "size":
            changed = value // 2
        if name == "groups":
            changed = 4
        keys.add(base_cell(recipe=recipe.replace(**{name: changed})).key)
    keys |= {base_cell(recipe=recipe).key, base_cell(recipe=recipe, seed=1).key}
    keys |= {base_cell(recipe=recipe, digest="e").key, base_cell(recipe=recipe, version=2).key}
    assert len(keys) == len(recipe.to_dict()) + 4


def test_the_key_changes_with_nothing_else():
    names = {"table": "positive_keys", "entry": "other", "preset": "quick", "dataset": "cifar10 (subset)"}
    assert {base_cell(**{name: value}).key for name, value in names.items()} == {base_cell().key}
    again = base_cell(recipe=paper("cifar10", "sce", epochs=7).replace(epochs=200, learning_rate=0.06))
    assert again.key == base_cell().key


def test_the_version_of_the_pretrainer_is_part_of_every_key(monkeypatch):
    before = tables.image_methods_cells(methods="moco")[0]
    monkeypatch.setattr(table_cells, "VERSION", VERSION + 1)
    after = tables.image_methods_cells(methods="moco")[0]
    assert before.key != after.key and before.recipe == after.recipe


# ---------------------------------------------------------------------------------------------- layouts


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
        assert row.difference == pytest.approx(row.ours - value)
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


# ---------------------------------------------------------------------------------------------- end to end


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
        assert set(result) == {"linear", "knn1", "embedding_spread", "select"}
        for value in result.values():
            assert type(value) is str or (type(value) is float and math.isfinite(value))
        assert 0 <= result["linear"] <= 100 and 0 <= result["knn1"] <= 100
        assert 0 < result["embedding_spread"] <= 1
        assert result["select"] == "last"
        assert cost["steps"] == (0 if name == "random" else 2)
        assert {"seconds", "finished", "commit", "device", "torch"} <= set(cost)


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
