"""The cells of the tables: which there are, and their entries, recipes and keys."""

import itertools
import re

import pytest
import torch
from made_up_skeletons import stand_in

from repro.skeleton import tables
from repro.skeleton.recipe import VARIANTS

pytestmark = pytest.mark.usefixtures("runs")


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
        concerned = CONCERNED[variant] & {"random", *usual.entry.split("+")}
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


def test_a_learning_rate_leaves_random_initialisation_its_usual_cell():
    random, ce = tables.taxonomy_cells("synthetic", objectives="random,CE", learning_rate="0.5")
    usual = tables.taxonomy_cells("synthetic", objectives="random,CE")
    assert random == usual[0]
    assert ce.recipe == usual[1].recipe.replace(learning_rate=0.5) and ce.entry == "CE, learning_rate=0.5"


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


@pytest.mark.parametrize(("longest", "refused"), [(50, True), (51, False), (7, True)])
def test_uncropped_is_refused_where_nothing_is_cropped(longest, refused, monkeypatch):
    monkeypatch.setattr(tables, "data_of", lambda recipe: stand_in("ntu", longest))
    if refused:
        with pytest.raises(ValueError, match=f"would change nothing on ntu: its longest sequence has {longest} frames"):
            tables.taxonomy_cells("ntu", objectives="CD", variant="uncropped")
    else:
        found, = tables.taxonomy_cells("ntu", objectives="CD", variant="uncropped")
        assert found.entry == "CD, td_crop=None" and found.recipe.td_crop is None
