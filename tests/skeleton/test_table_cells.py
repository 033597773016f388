"""The cells of the taxonomy's tables: which there are, and their labels, recipes and keys."""

import functools
import itertools
import re

import pytest
import torch
from made_up_skeletons import stand_in

from repro.skeleton import study
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import METHODS, TERMS, VARIANTS
from repro.table import find

pytestmark = pytest.mark.usefixtures("runs")


def cells(objectives="all", dataset="synthetic", **choices):
    """Those of the taxonomy."""
    return find("taxonomy").cells(dataset, objectives=objectives, **choices)


def test_the_sixteen_rows():
    found = cells()
    expected = ["+".join(chosen) for size in (1, 2, 3, 4)
                for chosen in itertools.combinations(("AE", "CE", "AD", "CD"), size)]
    assert found[0].label == "random" and sorted(cell.label for cell in found[1:]) == sorted(expected)
    assert len({cell.key for cell in found}) == 16 and found == find("taxonomy").cells()
    assert {(cell.study, cell.dataset, cell.preset, cell.seed) for cell in found} == {
        ("skeletons", "synthetic", "quick", 0)
    }
    assert all(cell.label == cell.recipe.objectives and cell.changes == {} for cell in found)


def test_depths_and_methods_of_the_collapse():
    found = find("encoder_collapse").cells("synthetic", layers="3,1", seeds="4,2")
    assert [(cell.seed, cell.recipe.layers, cell.recipe.objectives) for cell in found] == [
        (seed, layers, method) for seed in (4, 2) for layers in (3, 1) for method in ("random", "AE")
    ]
    assert [cell.label for cell in found[:4]] == ["random, layers=3", "AE, layers=3", "random", "AE"]
    assert len(find("encoder_collapse").cells("synthetic")) == 10


def test_the_order_of_terms_does_not_matter():
    found = cells("CE+AE, CD+AD+CE+AE,random")
    assert [cell.label for cell in found] == ["AE+CE", "AE+CE+AD+CD", "random"]
    assert cells("AE+CE")[0].key == found[0].key


def test_seeds_come_one_after_the_other_and_make_cells_of_their_own():
    found = cells("CE,AE", seeds="3,1")
    assert [(cell.seed, cell.label) for cell in found] == [(3, "CE"), (3, "AE"), (1, "CE"), (1, "AE")]
    assert len({cell.key for cell in found}) == 4 and cells("CE", seeds=3)[0] == found[0]


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
def test_labels_say_what_departs_from_the_preset(choices, suffix):
    found, = cells("CE+AD+CD", preset="smoke", **choices)
    usual, = cells("CE+AD+CD", preset="smoke")
    assert found.label == "CE+AD+CD" + suffix
    assert (found.key == usual.key) == (suffix == "")
    assert found.recipe == usual.recipe.replace(**found.changes)


CONCERNED = {"sum_of_squares": {"AD"}, "denoising": {"AD"}, "frozen_noise": {"CD"}, "uncropped": {"CD"},
             "mlp_head": {"AE", "CE"}, "bidirectional": {"random", *TERMS}, "ema_head_twice": {"CE"}}


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "uncropped"])
def test_objectives_that_a_variant_does_not_concern_keep_their_usual_cells(variant):
    for found, usual in zip(cells(variant=variant), cells(), strict=True):
        concerned = CONCERNED[variant] & set(usual.label.split("+"))
        assert found.recipe == (usual.recipe.replace(**VARIANTS[variant]) if concerned else usual.recipe)
        assert (found.key == usual.key) == (found.label == usual.label) == (not concerned)


@pytest.mark.parametrize(
    ("variant", "objectives"),
    [("sum_of_squares", "CE"), ("denoising", "random,AE+CE"), ("frozen_noise", "CE+AD"), ("uncropped", "AE,CE"),
     ("mlp_head", "random,AD+CD"), ("ema_head_twice", "AE+CD")],
)
def test_a_variant_that_changes_no_objective_is_refused(variant, objectives):
    chosen = re.escape(objectives.replace(",", ", "))
    able = re.escape(", ".join(name for name in METHODS if CONCERNED[variant] & set(name.split("+"))))
    with pytest.raises(ValueError, match=f"variant='{variant}' changes nothing of {chosen}; {able} use it: leave it o"):
        cells(objectives, variant=variant)


def test_a_learning_rate_leaves_random_initialisation_its_usual_cell():
    random, ce = cells("random,CE", learning_rate="0.5")
    usual = cells("random,CE")
    assert random == usual[0]
    assert ce.recipe == usual[1].recipe.replace(learning_rate=0.5) and ce.label == "CE, learning_rate=0.5"


def test_selection_and_precision_reach_the_recipes_of_the_collapse():
    listed = functools.partial(find("encoder_collapse").cells, "synthetic", layers=1, objectives="AE")
    (usual,), (found,) = listed(), listed(select="best_on_test", precision="bfloat16", device="cpu")
    assert found.recipe == usual.recipe.replace(select="best_on_test", precision="bfloat16")
    assert found.label == "AE, select=best_on_test, precision=bfloat16"


LISTS = {"taxonomy": {}, "encoder_collapse": {"layers": 1}}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("preset", ["paper", "quick", "smoke"])
def test_a_cell_is_the_same_on_every_device(name, preset, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # as far as a list of cells can tell
    listed = functools.partial(find(name).cells, "synthetic", preset=preset, objectives="AE", **LISTS[name])
    on_cpu, = listed(device="cpu")
    assert on_cpu.label == "AE"
    for device in ("auto", "cuda"):
        assert listed(device=device) == [on_cpu]
        with pytest.raises(ValueError, match="precision='bfloat16' is for a CPU; on cuda it is float32: leave it out"):
            listed(device=device, precision="bfloat16")


@pytest.mark.parametrize("name", LISTS)
def test_a_precision_that_is_asked_for_makes_a_cell_of_its_own(name):
    keys = set()
    for precision in ("auto", "float32", "bfloat16"):
        asked = {"precision": [precision], "preset": "paper", "objectives": "AE", "device": "cpu"}
        found, = find(name).cells("synthetic", **asked, **LISTS[name])
        assert found.recipe.precision == precision
        assert found.label == ("AE" if precision == "auto" else f"AE, precision={precision}")
        keys.add(found.key)
    assert len(keys) == 3


def test_fields_sweep_and_equal_trainings_are_one_cell():
    found, usual = cells("CE,AD", ad_weight="1,25,50", seeds="0,1"), cells("CE,AD", seeds="0,1")
    labels = ["CE", "AD", "AD, ad_weight=25.0", "AD, ad_weight=50.0"]
    assert [(cell.seed, cell.label) for cell in found] == [(seed, label) for seed in (0, 1) for label in labels]
    assert [cell.key for cell in found if cell.label in ("CE", "AD")] == [cell.key for cell in usual]
    assert [cell.recipe.ad_weight for cell in found[:4]] == [1.0, 1.0, 25.0, 50.0]


def test_several_fields_sweep_together():
    found = cells("random,CE", layers=[1, 3], temperature="0.1,0.2")
    assert [(cell.recipe.objectives, cell.recipe.layers, cell.recipe.temperature) for cell in found] == [
        ("random", 1, 0.1), ("random", 3, 0.1), ("CE", 1, 0.1), ("CE", 1, 0.2), ("CE", 3, 0.1), ("CE", 3, 0.2),
    ]
    assert len({cell.key for cell in found}) == 6
    assert found[-1].label == "CE, layers=3, temperature=0.2"


@pytest.mark.parametrize(("field", "text", "value"), [
    ("td_crop", "8", 8), ("bidirectional", "true", True), ("ema_head_twice", True, True),
    ("units", "64", 64), ("cd_weight", 25, 25.0), ("momentum", "0.99", 0.99),
    ("decoder_input", "embedding", "embedding"), ("probe_every", 2, 2), ("epochs", "3", 3),
])
def test_a_field_is_given_as_text_or_as_itself(field, text, value):
    (found,), (usual,) = cells("CE+CD", **{field: text}), cells("CE+CD")
    assert found.recipe == usual.recipe.replace(**{field: value}) and type(getattr(found.recipe, field)) is type(value)
    assert found.label == f"CE+CD, {field}={value}"


@pytest.mark.parametrize(("objectives", "choices", "message"), [
    ("CE,AE", {"ad_weight": 2}, "ad_weight=2 changes nothing of CE, AE; AD, AE\\+AD, .* use it: leave it out"),
    ("random", {"epochs": "1,2"}, "epochs='1,2' changes nothing of random; AE, CE, AE\\+CE, .* use it"),
    ("AD", {"flip": 0.25}, "flip=0.25 changes nothing of AD; AE, CE, .* use it"),
    ("CE", {"select_every": 2}, "select_every=2 changes nothing of CE; leave it out"),
    ("CE", {"ad_loss": "squared", "epochs": 2}, "ad_loss='squared' changes nothing of CE; AD, "),
])
def test_a_field_that_no_row_uses_is_refused_naming_who_does(objectives, choices, message):
    with pytest.raises(ValueError, match=message):
        cells(objectives, **choices)


def test_a_field_counts_as_used_where_another_that_is_asked_for_makes_it_so():
    found, = cells("CE", select="best_on_test", select_every=2)
    assert (found.recipe.select, found.recipe.select_every) == ("best_on_test", 2)
    found, = cells("AD", ad_input="augmented", flip=0.25)
    assert (found.recipe.ad_input, found.recipe.flip) == ("augmented", 0.25)


def test_a_field_that_a_variant_brings_into_use_can_be_asked_for_with_it():
    found, = cells("AD", variant="denoising", ad_weight=25)
    assert (found.recipe.ad_input, found.recipe.ad_weight) == ("augmented", 25.0)
    found, = cells("AD", variant="denoising", flip=0.25)
    assert (found.recipe.ad_input, found.recipe.flip) == ("augmented", 0.25)
    with pytest.raises(ValueError, match=r"flip=0.25 changes nothing of AD; AE, CE, AE\+CE, .* use it"):
        cells("AD", flip=0.25)


@pytest.fixture
def made_up_data(monkeypatch, folders):
    """Returns a function that lets every data set be one whose longest sequence has so many frames."""
    def let(longest):
        monkeypatch.setattr(study, "load", lambda name, *_, subset=False, **__: stand_in(
            name + " (subset)" * subset, longest))

    return let


@pytest.mark.parametrize(("dataset", "pipeline", "expected"), [
    ("ntu", "authors", "default"), ("ntu", "default", "default"), ("ntu", "predict_cluster", "predict_cluster"),
    ("synthetic", "raw", "raw"),
])
def test_one_computation_has_one_pipeline(dataset, pipeline, expected, made_up_data):
    made_up_data(300)
    found, = cells("CE", dataset, preset="smoke", pipeline=pipeline)
    assert found.recipe.pipeline == expected
    assert found.label == ("CE" if expected == "default" else f"CE, pipeline={expected}")


def test_the_authors_pipeline_is_ntus_alone():
    with pytest.raises(ValueError, match="pipeline='authors' is not one of: default, interpolate, unscaled, raw"):
        cells("CE", pipeline="authors")


def test_a_part_of_ntu_says_so_and_departs_in_nothing(made_up_data):
    made_up_data(300)
    (found,), (whole,) = (cells("CE", "ntu", layers=3, subset=subset) for subset in (True, False))
    assert (found.dataset, found.label, found.preset) == ("ntu (subset)", "CE, layers=3", "paper")
    assert (whole.dataset, whole.label) == ("ntu", "CE, layers=3") and whole.key != found.key


def test_a_batch_larger_than_the_data_concerns_what_is_trained_alone():
    random, ce = cells("random,CE", batch=10**6)
    data = study.data_of(random.recipe)
    assert Pretrainer(random.recipe, data, 0, torch.device("cpu")).total_steps == 0
    with pytest.raises(ValueError, match=r"batch=1000000 exceeds the .* training sequences"):
        Pretrainer(ce.recipe, data, 0, torch.device("cpu"))
