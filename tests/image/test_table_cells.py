"""The cells of the image tables: which there are, with which recipes and keys."""

import hashlib
import json

import pytest
from image_columns import LAYOUTS

from repro import manifest
from repro.image import table_cells, tables
from repro.image.pretrain import VERSION
from repro.image.recipe import METHODS, VARIANTS, ImageRecipe, paper, quick
from repro.run.export import read_cells
from repro.run.store import Cell

pytestmark = pytest.mark.usefixtures("runs")


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


SELF_SUPERVISED = {"moco", "ressl", "sce", "jcl", "vanilla"}
CONCERNED = {"swapped_views": SELF_SUPERVISED, "released_projection": SELF_SUPERVISED, "zero_logit": {"sce"},
             "ghost_groups": {"supervised", *SELF_SUPERVISED}, "constant_strength": {"jcl"},
             "four_keys": {"jcl", "vanilla"}}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_reach_the_recipes_and_their_entries(variant):
    for cell in tables.image_methods_cells(methods=",".join(METHODS), variant=variant):
        usual = quick("digits", cell.recipe.method)
        changes = {name: value for name, value in VARIANTS[variant].items() if usual.uses(name)}
        if usual.replace(**changes) == usual:
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
        ("image_methods", {"methods": "supervised", "variant": "swapped_views"}, "of supervised; .* anyway: sup"),
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
    """As it was when bfloat16 was what recipes had where nobody asked for another precision, and fields were fewer."""
    values = base_cell().recipe.to_dict()
    assert (values.pop("precision"), values.pop("square"), values.pop("probe_padding")) == ("auto", False, 4)
    recipe = json.dumps(values | {"precision": "bfloat16"}, sort_keys=True)
    content = json.dumps([recipe, 0, "d", 1])
    assert base_cell().key == hashlib.sha256(content.encode()).hexdigest()[:16]


def test_committed_cells_keep_their_keys():
    """Those that were trained before fields were added and precisions renamed are those that tables ask for today."""
    cells = read_cells(manifest.project_root() / "figures" / "cells.csv")
    cells = cells[cells["table"].isin(tables.TABLES)]
    assert len(cells) > 30
    for row in cells.itertuples():
        values = json.loads(row.recipe)
        if "square" not in values and values["precision"] == "bfloat16":
            values["precision"] = "auto"
        recipe = ImageRecipe.from_dict(values)
        again = Cell(row.table, row.entry, recipe, row.seed, row.preset, row.dataset, row.digest, row.version)
        assert again.key == row.key, row.entry


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
