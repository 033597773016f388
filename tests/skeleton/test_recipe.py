"""Recipes: the papers' values, presets, variants, and what is refused."""

import itertools

import pytest

from repro.skeleton.recipe import METHODS, SUBSETS, TERMS, SkeletonRecipe, paper


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


def test_the_papers_recipe_for_ntu():
    released = {"protocol": "xsub", "pipeline": "default", "dictionary": 16384, "sequence_dictionary": 2048,
                "epochs": 80, "batch": 32, "learning_rate": 9e-4, "td_crop": 50, "probe_batch": 512, "select_every": 3,
                "units": 512, "layers": 1, "temperature": 0.1, "momentum": 0.999, "clip": 25.0, "probe_epochs": 70}
    recipe = paper("ntu", "CE")
    assert {name: recipe.to_dict()[name] for name in released} == released
    assert paper("ntu", "CE", layers=3).learning_rate == 9e-4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objectives": "CX"}, "objectives='CX' is not one of: random, AE, CE, AE\\+CE"),
        ({"objectives": "CE+AE"}, "objectives='CE\\+AE' is not one of"),
        ({"dataset": "nutu"}, "dataset='nutu' is not one of: synthetic, ucla"),
        ({"select": "best"}, "select='best' is not one of: last, best_on_test"),
        ({"layers": 0}, "layers=0 should be at least 1"),
        ({"epochs": -1}, "epochs=-1 should be at least 0"),
        ({"temperature": 0.0}, "temperature=0.0 should be at least 1e-06"),
        ({"temperature": float("nan")}, "temperature=nan should be finite"),
    ],
    ids=str,
)
def test_impossible_values_are_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        SkeletonRecipe(**changes)


def test_two_directions_need_an_even_number_of_units():
    with pytest.raises(ValueError, match="units=7 should be even: each of two directions has half of them"):
        SkeletonRecipe(bidirectional=True, units=7)
    assert '"bidirectional"' not in SkeletonRecipe(units=7).canonical()  # keys from before the field stay
    assert '"bidirectional": true' in SkeletonRecipe(bidirectional=True).canonical()
