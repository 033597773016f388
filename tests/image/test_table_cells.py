"""The cells of the image tables: which there are, with which recipes and keys."""

import hashlib
import json

import pytest

import repro
from repro.data import manifest
from repro.image.pretrain import VERSION
from repro.image.recipe import ImageRecipe, paper
from repro.image.study import IMAGES
from repro.run.export import read_cells
from repro.run.store import Cell

TABLES = [name for name, table in repro.TABLES.items() if table.study is IMAGES]
pytestmark = pytest.mark.usefixtures("runs")


def cells_of(table, dataset=None, **choices):
    return repro.TABLES[table].cells(dataset, **choices)


def test_the_tables_of_two_papers():
    assert TABLES == ["positive_keys", "similarity_variance", "image_methods", "temperature_grid"]


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
