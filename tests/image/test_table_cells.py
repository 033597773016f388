"""The cells of the image tables: which there are, with which recipes and keys."""

import dataclasses
import hashlib
import json

import pytest

import repro
from repro.data import manifest
from repro.image.pretrain import VERSION
from repro.image.recipe import METHODS, VARIANTS, ImageRecipe, paper, quick
from repro.image.study import IMAGES
from repro.run.export import read_cells
from repro.run.store import Cell

TABLES = [name for name, table in repro.TABLES.items() if table.study is IMAGES]
pytestmark = pytest.mark.usefixtures("runs")


def cells_of(table, dataset=None, **choices):
    return repro.TABLES[table].cells(dataset, **choices)


def test_the_tables_of_two_papers():
    assert TABLES == ["positive_keys", "similarity_variance", "image_methods", "temperature_grid"]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("dataset", "preset"), [("digits", "quick"), ("cifar10", "paper"), ("imagenet100", "paper")])
def test_auto_is_the_papers_recipe_on_real_data_and_a_quick_one_on_bundled_data(any_data, table, dataset, preset):
    changeable = ("keys", "strength", "temperature", "key_temperature")
    for cell in cells_of(table, dataset):
        usual = {"quick": quick, "paper": paper}[preset](dataset, cell.recipe.method)
        assert cell.recipe.replace(**{name: getattr(usual, name) for name in changeable}) == usual
        assert (cell.study, cell.preset, cell.dataset, cell.digest, cell.seed, cell.version) == (
            "images", preset, dataset, f"digest of {dataset}", 0, VERSION
        )
        assert cell.changes == {
            name: getattr(cell.recipe, name)
            for name in changeable if getattr(cell.recipe, name) != getattr(usual, name)
        }


@pytest.mark.parametrize("table", TABLES)
def test_choices_reach_every_recipe(any_data, table):
    choices = {"subset": True, "precision": "float32", "select": "best_on_test"}
    cells, usual = cells_of(table, "stl10", seeds="4,7", **choices), cells_of(table, "stl10")
    assert [cell.seed for cell in cells] == [4] * len(usual) + [7] * len(usual)
    for cell, plain in zip(cells, usual * 2, strict=True):
        assert cell.recipe == plain.recipe.replace(**choices)
        assert cell.dataset == "stl10 (subset)" and cell.digest == "digest of stl10 (subset)"


def test_probes_along_training_are_of_those_that_are_trained():
    cells = cells_of("image_methods", probe_every="2")
    assert {cell.recipe.method: cell.recipe.probe_every for cell in cells} == {
        method: 2 * (method != "random") for method in METHODS if method != "vanilla"
    }
    assert cells[0].key == cells_of("image_methods")[0].key
    with pytest.raises(ValueError, match="probe_every=2 changes nothing of random; supervised, moco"):
        cells_of("image_methods", method="random", probe_every=2)


CONTRASTS = {"moco", "ressl", "sce", "jcl", "vanilla"}
CONCERNED = {"swapped_views": {"supervised", *CONTRASTS}, "released_projection": CONTRASTS, "zero_logit": {"sce"},
             "ghost_groups": {"supervised", *CONTRASTS}, "constant_strength": {"jcl"}, "four_keys": {"jcl", "vanilla"}}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_reach_the_recipes_that_use_what_they_change(variant):
    for cell in cells_of("image_methods", method=",".join(METHODS), variant=variant):
        usual = quick("digits", cell.recipe.method)
        changes = {name: value for name, value in VARIANTS[variant].items() if usual.uses(name)}
        assert cell.recipe == usual.replace(**changes)
        assert cell.changes == {name: value for name, value in changes.items() if getattr(usual, name) != value}
        assert bool(cell.changes) <= (usual.method in CONCERNED[variant])
        assert cell.changes or usual.method not in CONCERNED[variant] - {"supervised"}


@pytest.mark.parametrize(
    ("table", "choices", "message"),
    [
        ("image_methods", {"method": "moco", "variant": "zero_logit"}, "of moco; sce use it: leave it out, or ch"),
        ("image_methods", {"method": "random,sce", "variant": "four_keys"}, "of random, sce; jcl, vanilla use it: "),
        ("image_methods", {"method": "random", "variant": "ghost_groups"}, "of random; supervised, moco, "),
        ("image_methods", {"method": "supervised", "variant": "swapped_views"}, "of supervised; leave it out"),
        ("temperature_grid", {"variant": "constant_strength"}, "of sce, ressl; jcl use it"),
        ("positive_keys", {"variant": "zero_logit"}, "of jcl; sce use it"),
        ("similarity_variance", {"dataset": "imagenet100", "variant": "ghost_groups"}, "of jcl, moco; leave it out"),
    ],
)
def test_a_variant_that_changes_no_method_is_refused(any_data, table, choices, message):
    with pytest.raises(ValueError, match=f"variant='{choices['variant']}' changes nothing {message}"):
        cells_of(table, **choices)


@pytest.mark.parametrize("table", TABLES)
def test_a_misspelt_field_is_told_from_those_there_are(table):
    with pytest.raises(TypeError, match=r"parameter='epoch' is not one of: .*; did you mean 'epochs'"):
        cells_of(table, epoch=3)


@pytest.mark.parametrize(
    ("table", "choices", "message"),
    [
        ("image_methods", {"dataset": "mnist"}, "dataset='mnist' is not one of: digits, cifar10"),
        ("image_methods", {"method": "moco,sec"}, "method='sec' is not one of: random, .*; did you mean 'sce'"),
        ("image_methods", {"method": ""}, "method='' is not one of: random"),
        ("temperature_grid", {"method": "moco"}, "method='moco' is not one of: sce, ressl"),
        ("positive_keys", {"method": "vanilla"}, "method='vanilla' is not one of: jcl"),
        ("image_methods", {"variant": "ghosts"}, "variant='ghosts' is not one of: none, .*; did you mean"),
        ("image_methods", {"select": "best"}, "select='best' is not one of: last, best_on_test"),
        ("image_methods", {"precision": "half"}, "precision='half' is not one of: auto, float32, bfloat16"),
        ("image_methods", {"seeds": "0,x"}, "seeds='0,x' should be a comma list of whole numbers"),
        ("image_methods", {"preset": "fast"}, "preset='fast' is not one of: auto, paper, quick, smoke"),
        ("image_methods", {"epochs": "3,3"}, "epochs='3,3' names 3 twice"),
        ("temperature_grid", {"temperature": "0.1;0.2"}, "temperature='0.1;0.2' should be a number"),
        ("positive_keys", {"strength": "1_0"}, "strength='1_0' should be a number"),
        ("temperature_grid", {"key_temperature": "0"}, "key_temperature=0.0 should be at least 1e-06"),
        ("temperature_grid", {"temperature": "inf"}, "temperature=inf should be finite"),
        ("positive_keys", {"keys": "0,1"}, "keys=0 should be at least 1"),
        ("positive_keys", {"strength": "-1"}, "strength=-1.0 should be at least 0"),
    ],
    ids=str,
)
def test_what_does_not_exist_is_refused_before_anything_is_computed(runs, table, choices, message):
    with pytest.raises(ValueError, match=message):
        repro.run_table(table, **{"preset": "smoke"} | choices)
    assert not runs.exists()


# ---------------------------------------------------------------------------------------------- keys


def base_cell(**changes):
    values = {"study": "images", "recipe": paper("cifar10", "sce"), "seed": 0, "preset": "paper",
              "dataset": "cifar10", "digest": "d", "version": 1}
    return Cell(**values | changes)


def test_the_key_is_the_hash_of_recipe_seed_digest_and_version():
    """As it was when bfloat16 was what recipes had where nobody asked for another precision, and fields were fewer."""
    values = base_cell().recipe.to_dict()
    later = {"precision": "auto", "square": False, "probe_padding": 4, "probe_every": 0}
    assert {name: values.pop(name) for name in later} == later
    recipe = json.dumps(values | {"precision": "bfloat16"}, sort_keys=True)
    content = json.dumps([recipe, 0, "d", 1])
    assert base_cell().key == hashlib.sha256(content.encode()).hexdigest()[:16]


def test_committed_cells_keep_their_keys():
    """Those that were trained before fields were added and precisions renamed are those that tables ask for today."""
    cells = read_cells(manifest.project_root() / "figures" / "cells.csv")
    cells = cells[cells["study"] == "images"]
    assert len(cells) >= 29 and VERSION == 2
    for row in cells.itertuples():
        values = json.loads(row.recipe)
        if "square" not in values and values["precision"] == "bfloat16":
            values["precision"] = "auto"
        recipe = ImageRecipe.from_dict(values)
        again = Cell(row.study, recipe, row.seed, row.preset, row.dataset, row.digest, row.version)
        assert again.key == row.key, row.recipe


def test_the_key_changes_with_every_field_of_the_recipe_the_seed_the_data_and_the_version():
    recipe, keys = paper("cifar10", "jcl"), set()
    others = {"dataset": "cifar100", "method": "vanilla", "trunk": "resnet50", "head": "moco_v2", "query_view": "weak",
              "key_view": "weak", "schedule": "epoch", "precision": "float32", "probe_view": "crop",
              "select": "best_on_test", "size": 16, "groups": 4, "probe_every": 1}
    for name, value in recipe.to_dict().items():
        doubled = not value if type(value) is bool else value / 2 if type(value) is float else 2 * value
        keys.add(base_cell(recipe=recipe.replace(**{name: others.get(name, doubled)})).key)
    keys |= {base_cell(recipe=recipe).key, base_cell(recipe=recipe, seed=1).key}
    keys |= {base_cell(recipe=recipe, digest="e").key, base_cell(recipe=recipe, version=2).key}
    assert len(keys) == len(recipe.to_dict()) + 4


def test_the_key_changes_with_nothing_else():
    names = {"preset": "quick", "dataset": "cifar10 (subset)", "evaluation": 7, "changes": {"a": 1}}
    assert {base_cell(**{name: value}).key for name, value in names.items()} == {base_cell().key}
    again = base_cell(recipe=paper("cifar10", "sce", epochs=7).replace(epochs=200, learning_rate=0.06))
    assert again.key == base_cell().key


def test_the_version_of_the_training_is_part_of_every_key():
    recipe = quick("digits", "moco")
    before, after = (
        dataclasses.replace(IMAGES, version=version).cell(recipe, 0, "quick") for version in (VERSION, VERSION + 1)
    )
    assert before.key != after.key and before.key == cells_of("image_methods", method="moco")[0].key
