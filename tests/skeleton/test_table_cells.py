"""The cells of the tables: which there are, and their entries, recipes and keys."""

import dataclasses
import functools
import inspect
import itertools
import re

import pytest
import torch
from made_up_skeletons import stand_in

from repro.skeleton import cell, tables
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import METHODS, TERMS, VARIANTS, SkeletonRecipe

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


CONCERNED = {"sum_of_squares": {"AD"}, "denoising": {"AD"}, "frozen_noise": {"CD"}, "uncropped": {"CD"},
             "mlp_head": {"AE", "CE"}, "bidirectional": {"random", *TERMS}, "ema_head_twice": {"CE"}}


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "uncropped"])
def test_objectives_that_a_variant_does_not_concern_keep_their_usual_cells(variant):
    cells = tables.taxonomy_cells("synthetic", variant=variant)
    for found, usual in zip(cells, tables.taxonomy_cells("synthetic"), strict=True):
        concerned = CONCERNED[variant] & set(usual.entry.split("+"))
        assert found.recipe == (usual.recipe.replace(**VARIANTS[variant]) if concerned else usual.recipe)
        assert (found.key == usual.key) == (found.entry == usual.entry) == (not concerned)


@pytest.mark.parametrize(
    ("variant", "objectives"),
    [("sum_of_squares", "CE"), ("denoising", "random,AE+CE"), ("frozen_noise", "CE+AD"), ("uncropped", "AE,CE"),
     ("mlp_head", "random,AD+CD"), ("ema_head_twice", "AE+CD")],
)
def test_a_variant_that_changes_no_objective_is_refused(variant, objectives):
    chosen = re.escape(objectives.replace(",", ", "))
    able = re.escape(", ".join(name for name in METHODS if CONCERNED[variant] & set(name.split("+"))))
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
@pytest.mark.parametrize("preset", ["paper", "quick", "smoke"])
def test_a_cell_is_the_same_on_every_device(table, preset, cuda):
    listed = functools.partial(tables.TABLES[table].cells, "synthetic", preset=preset, **LISTS[table])
    on_cpu, = listed(device="cpu")
    assert on_cpu.entry == "AE"
    for device in ("auto", "cuda"):
        assert listed(device=device) == [on_cpu]
        with pytest.raises(ValueError, match="precision='bfloat16' is for a CPU; on cuda it is float32: leave it out"):
            listed(device=device, precision="bfloat16")


@pytest.mark.parametrize("table", LISTS)
def test_a_precision_that_is_asked_for_makes_a_cell_of_its_own(table):
    keys = set()
    for precision in ("auto", "float32", "bfloat16"):
        found, = tables.TABLES[table].cells("synthetic", preset="paper", precision=precision, **LISTS[table])
        assert found.recipe.precision == precision
        assert found.entry == ("AE" if precision == "auto" else f"AE, precision={precision}")
        keys.add(found.key)
    assert len(keys) == 3


def test_fields_sweep_and_equal_trainings_are_one_cell():
    found = tables.taxonomy_cells("synthetic", objectives="CE,AD", ad_weight="1,25,50", seeds="0,1")
    usual = tables.taxonomy_cells("synthetic", objectives="CE,AD", seeds="0,1")
    entries = ["CE", "AD", "AD, ad_weight=25.0", "AD, ad_weight=50.0"]
    assert [(cell.seed, cell.entry) for cell in found] == [(seed, entry) for seed in (0, 1) for entry in entries]
    assert [cell.key for cell in found if cell.entry in ("CE", "AD")] == [cell.key for cell in usual]
    assert [cell.recipe.ad_weight for cell in found[:4]] == [1.0, 1.0, 25.0, 50.0]


def test_several_fields_sweep_together():
    found = tables.taxonomy_cells("synthetic", objectives="random,CE", layers=[1, 3], temperature="0.1,0.2")
    assert [(cell.recipe.objectives, cell.recipe.layers, cell.recipe.temperature) for cell in found] == [
        ("random", 1, 0.1), ("random", 3, 0.1),
        ("CE", 1, 0.1), ("CE", 1, 0.2), ("CE", 3, 0.1), ("CE", 3, 0.2),
    ]
    assert len({cell.key for cell in found}) == 6
    assert found[-1].entry == "CE, layers=3, temperature=0.2"


def test_every_field_is_a_parameter_and_auto_is_the_preset():
    fields = {field.name for field in dataclasses.fields(SkeletonRecipe)} - {"objectives"}
    for name, listed in (("taxonomy", tables.taxonomy_cells), ("encoder_collapse", tables.encoder_collapse_cells)):
        parameters = inspect.signature(listed).parameters
        assert fields <= parameters.keys()
        everything = dict.fromkeys(fields - {"dataset", "layers"}, "auto")
        assert listed("synthetic", **LISTS[name], **everything) == listed("synthetic", **LISTS[name])


@pytest.mark.parametrize(("field", "text", "value"), [
    ("td_crop", "none", None), ("td_crop", "8", 8), ("bidirectional", "true", True), ("ema_head_twice", True, True),
    ("units", "64", 64), ("cd_weight", 25, 25.0), ("momentum", "0.99", 0.99),
    ("decoder_input", "embedding", "embedding"), ("probe_every", 2, 2), ("epochs", "3", 3),
])
def test_a_field_is_given_as_text_or_as_itself(field, text, value):
    found, = tables.taxonomy_cells("synthetic", objectives="CE+CD", **{field: text})
    usual, = tables.taxonomy_cells("synthetic", objectives="CE+CD")
    assert found.recipe == usual.recipe.replace(**{field: value}) and type(getattr(found.recipe, field)) is type(value)
    assert found.entry == f"CE+CD, {field}={value}"


@pytest.mark.parametrize(("objectives", "choices", "message"), [
    ("CE,AE", {"ad_weight": 2}, "ad_weight=2 changes nothing of CE, AE; AD, AE\\+AD, .* use it: leave it out"),
    ("random", {"epochs": "1,2"}, "epochs='1,2' changes nothing of random; AE, CE, AE\\+CE, .* use it"),
    ("AD", {"flip": 0.25}, "flip=0.25 changes nothing of AD; AE, CE, .* use it"),
    ("CE", {"select_every": 2}, "select_every=2 changes nothing of CE; nothing that is trained so does: leave it out"),
    ("CE", {"ad_loss": "squared", "epochs": 2}, "ad_loss='squared' changes nothing of CE; AD, "),
])
def test_a_field_that_no_row_uses_is_refused_naming_who_does(objectives, choices, message):
    with pytest.raises(ValueError, match=message):
        tables.taxonomy_cells("synthetic", objectives=objectives, **choices)


def test_a_field_counts_as_used_where_another_that_is_asked_for_makes_it_so():
    found, = tables.taxonomy_cells("synthetic", objectives="CE", select="best_on_test", select_every=2)
    assert (found.recipe.select, found.recipe.select_every) == ("best_on_test", 2)
    found, = tables.taxonomy_cells("synthetic", objectives="AD", ad_input="augmented", flip=0.25)
    assert (found.recipe.ad_input, found.recipe.flip) == ("augmented", 0.25)


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


def test_a_field_that_a_variant_brings_into_use_can_be_asked_for_with_it():
    found, = tables.taxonomy_cells("synthetic", objectives="AD", variant="denoising", flip=0.25)
    assert (found.recipe.ad_input, found.recipe.flip) == ("augmented", 0.25)
    with pytest.raises(ValueError, match=r"flip=0.25 changes nothing of AD; AE, CE, AE\+CE, .* use it"):
        tables.taxonomy_cells("synthetic", objectives="AD", flip=0.25)


def test_a_batch_larger_than_the_data_concerns_what_is_trained_alone():
    random, ce = tables.taxonomy_cells("synthetic", objectives="random,CE", batch=10**6)
    data = cell.data_of(random.recipe)
    assert Pretrainer(random.recipe, data, 0, torch.device("cpu")).total_steps == 0
    with pytest.raises(ValueError, match=r"batch=1000000 exceeds the .* training sequences"):
        Pretrainer(ce.recipe, data, 0, torch.device("cpu"))
