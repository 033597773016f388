"""Recipes: the papers' values, presets, variants, and what is refused."""

import itertools

import pytest
from made_up_skeletons import tiny

from repro.skeleton.recipe import METHODS, PRESETS, SUBSETS, TERMS, VARIANTS, SkeletonRecipe, paper, quick


def test_there_are_fifteen_subsets_and_random_initialisation():
    expected = ["+".join(chosen) for size in range(1, 5) for chosen in itertools.combinations(TERMS, size)]
    assert sorted(SUBSETS) == sorted(expected)
    assert sorted(METHODS) == sorted(["random", *expected])


def test_the_papers_recipe():
    recipe = SkeletonRecipe()
    printed = {"layers": 1, "units": 512, "projection": 128, "head": "linear", "dictionary": 1024,
               "sequence_dictionary": 640, "temperature": 0.1, "momentum": 0.999, "td_crop": 50, "flip": 0.5,
               "shear": 1.0, "epochs": 150, "batch": 32, "learning_rate": 1e-3, "clip": 25.0, "probe_epochs": 70,
               "probe_batch": 128, "probe_learning_rate": 2.0, "probe_momentum": 0.9, "probe_final_rate": 0.01,
               "td_queue": "live", "ad_loss": "l1", "ad_input": "clean", "ema_head_twice": False, "select": "last"}
    assert {name: recipe.to_dict()[name] for name in printed} == printed
    assert paper("ucla", "CE") == recipe.replace(objectives="CE")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dataset", ["synthetic", "ucla", "ntu"])
def test_presets_take_changes(preset, dataset):
    recipe = PRESETS[preset](dataset, "AD+CD", layers=2, td_crop=None)
    assert (recipe.dataset, recipe.objectives, recipe.layers, recipe.td_crop) == (dataset, "AD+CD", 2, None)


def test_the_papers_recipe_for_ntu():
    released = {"protocol": "xsub", "pipeline": "default", "dictionary": 16384, "sequence_dictionary": 2048,
                "epochs": 80, "batch": 32, "learning_rate": 9e-4, "td_crop": 50, "probe_batch": 512, "select_every": 3,
                "units": 512, "layers": 1, "temperature": 0.1, "momentum": 0.999, "clip": 25.0, "probe_epochs": 70}
    recipe = paper("ntu", "CE")
    assert {name: recipe.to_dict()[name] for name in released} == released
    assert paper("ntu", "CE", layers=3).learning_rate == 9e-4


def test_the_sources_of_ntus_own_values():
    described = {name: source for name, _, source in paper("ntu", "CE", epochs=5).described()}
    assert described["dictionary"] == "released code, NTU_BUTD_CON.yaml"
    assert described["epochs"] == "chosen here (default 80)"
    assert described["units"] == "released code, UCLA_BUTD_CON.yaml; the supplement prints 1024 alone"
    described = {name: source for name, _, source in paper("ucla", "CE").described()}
    assert described["epochs"] == "released code, UCLA_BUTD_CON.yaml"


def test_only_the_presets_below_the_paper_change_sizes():
    usual = paper("ucla", "CE").to_dict()
    changed = {name for name, value in quick("ucla", "CE").to_dict().items() if value != usual[name]}
    assert changed == {"epochs"}


def test_variants_are_differences_from_the_defaults():
    defaults = SkeletonRecipe().to_dict()
    assert len(VARIANTS) <= 8
    for changes in VARIANTS.values():
        for name, value in changes.items():
            assert defaults[name] != value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objectives": "CX"}, "objectives='CX' is not one of: random, AE, CE, AE\\+CE"),
        ({"objectives": "CE+AE"}, "objectives='CE\\+AE' is not one of"),
        ({"objectives": ""}, "objectives='' is not one of"),
        ({"dataset": "nutu"}, "dataset='nutu' is not one of: synthetic, ucla"),
        ({"pipeline": "raww"}, "did you mean 'raw'"),
        ({"head": "conv"}, "head='conv' is not one of: linear, mlp"),
        ({"ad_loss": "l2"}, "ad_loss='l2' is not one of: l1, squared"),
        ({"td_queue": "dead"}, "td_queue='dead' is not one of: live, frozen_noise"),
        ({"select": "best"}, "select='best' is not one of: last, best_on_test"),
        ({"precision": "float16"}, "precision='float16' is not one of: auto, float32, bfloat16"),
        ({"layers": 0}, "layers=0 should be at least 1"),
        ({"units": -512}, "units=-512 should be at least 1"),
        ({"batch": 0}, "batch=0 should be at least 1"),
        ({"epochs": -1}, "epochs=-1 should be at least 0"),
        ({"td_crop": 0}, "td_crop=0 should be at least 1"),
        ({"temperature": 0.0}, "temperature=0.0 should be at least 1e-06"),
        ({"temperature": float("nan")}, "temperature=nan should be finite"),
        ({"temperature": float("inf")}, "temperature=inf should be finite"),
        ({"learning_rate": float("inf")}, "learning_rate=inf should be finite"),
        ({"units": 2**40}, "units=1099511627776 should be at most 4294967295"),
        ({"learning_rate": -1e-3}, "learning_rate=-0.001 should be at least 0"),
        ({"probe_standardised_rate": -1.0}, "probe_standardised_rate=-1.0 should be at least 0"),
    ],
    ids=str,
)
def test_impossible_values_are_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        SkeletonRecipe(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"units": "512"}, "units='512' is of type str; it should be int"),
        ({"units": 512.0}, "units=512.0 is of type float; it should be int"),
        ({"layers": True}, "layers=True is of type bool; it should be int"),
        ({"td_crop": "none"}, "td_crop='none' is of type str; it should be int or NoneType"),
        ({"momentum": "0.9"}, "momentum='0.9' is of type str; it should be float"),
        ({"ema_head_twice": 1}, "ema_head_twice=1 is of type int; it should be bool"),
        ({"objective": "CE"}, "did you mean 'objectives'"),
        ({"learningrate": 0.1}, "did you mean 'learning_rate'"),
    ],
    ids=str,
)
def test_badly_typed_and_unknown_fields_are_errors(changes, message):
    with pytest.raises(TypeError, match=message):
        SkeletonRecipe.from_dict(changes)


def test_membership_is_by_term_and_not_by_letters():
    recipe = SkeletonRecipe(objectives="AE+CD")
    assert [recipe.has(term) for term in TERMS] == [True, False, False, True]
    assert not any(SkeletonRecipe(objectives="random").has(term) for term in TERMS)


@pytest.mark.parametrize("objectives", METHODS)
def test_terms_of_the_decoder_train_it(objectives):
    assert tiny(objectives).trains_decoder == any(term in objectives for term in ("AD", "CD"))


def test_two_directions_need_an_even_number_of_units():
    with pytest.raises(ValueError, match="units=7 should be even: each of two directions has half of them"):
        SkeletonRecipe(bidirectional=True, units=7)
    assert '"bidirectional"' not in SkeletonRecipe(units=7).canonical()  # keys from before the field stay
    assert '"bidirectional": true' in SkeletonRecipe(bidirectional=True).canonical()
