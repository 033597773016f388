"""Recipes: the papers' values, presets and variants, what is refused, and what a recipe does not use."""

import dataclasses
import itertools

import pytest
from made_up_skeletons import tiny

from repro.skeleton.recipe import METHODS, SUBSETS, SkeletonRecipe, paper
from repro.skeleton.terms import PRINTED

FIELDS = [field.name for field in dataclasses.fields(SkeletonRecipe)]


def test_there_are_fifteen_subsets_and_random_initialisation():
    expected = ["+".join(terms) for size in range(1, 5) for terms in itertools.combinations(PRINTED, size)]
    assert sorted(SUBSETS) == sorted(expected)
    assert METHODS[0] == "random" and sorted(METHODS[1:]) == sorted(expected)


UCLA = {"layers": 1, "units": 512, "projection": 128, "head": "linear", "dictionary": 1024, "sequence_dictionary": 640,
        "temperature": 0.1, "momentum": 0.999, "td_crop": 50, "flip": 0.5, "shear": 1.0, "epochs": 150, "batch": 32,
        "learning_rate": 1e-3, "clip": 25.0, "probe_epochs": 70, "probe_batch": 128, "probe_learning_rate": 2.0,
        "probe_momentum": 0.9, "probe_final_rate": 0.01, "td_queue": "live", "ad_loss": "l1", "ad_input": "clean",
        "ema_head_twice": False, "select": "last"}
NTU = {"protocol": "xsub", "pipeline": "default", "dictionary": 16384, "sequence_dictionary": 2048, "epochs": 80,
       "learning_rate": 9e-4, "probe_batch": 512, "select_every": 3}


@pytest.mark.parametrize(("dataset", "values"), [("ucla", UCLA), ("ntu", UCLA | NTU)])
def test_the_papers_recipe(dataset, values):
    recipe = paper(dataset, "CE")
    assert {name: getattr(recipe, name) for name in values} == values
    assert paper(dataset, "CE", layers=3) == recipe.replace(layers=3)


@pytest.mark.parametrize(("changes", "message"), [
    ({"objectives": "CX"}, "objectives='CX': term='CX' is not one of: AE, .*CE, .*CD"),
    ({"objectives": "CE+AE"}, "objectives='CE\\+AE' is not one of: AE\\+CE"),
    ({"objectives": "AE+AE"}, "objectives='AE\\+AE' names AE twice"),
    ({"objectives": "all"}, "objectives='all': term='all' is not one of"),
    ({"dataset": "nutu"}, "dataset='nutu' is not one of: synthetic, .*ucla"),
    ({"select": "best"}, "select='best' is not one of: last, best_on_test"),
    ({"layers": 0}, "layers=0 should be at least 1"),
    ({"temperature": 0.0}, "temperature=0.0 should be at least 1e-06"),
    ({"temperature": float("nan")}, "temperature=nan should be finite"),
    ({"bidirectional": True, "units": 7}, "units=7 should be even: each of two directions has half of them"),
], ids=str)
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        SkeletonRecipe(**changes)


# ---------------------------------------------------------------------------------------------- unused fields


KEYS, DECODED = {"temperature", "momentum", "ema_head_twice", "key_head_copied"}, {
    "td_queue", "td_crop", "sequence_dictionary"}
HEAD, VIEWS, AD = {"projection", "head"}, {"flip", "shear"}, {"ad_weight", "ad_loss", "ad_input"}
TRAINING = {"epochs", "batch", "learning_rate", "clip", "probe_every", "precision"}
UNUSED = {
    "random": KEYS | DECODED | HEAD | VIEWS | AD | TRAINING | {
        "ae_weight", "ce_weight", "cd_weight", "decoder_input", "dictionary", "select_every"},
    "AE": KEYS | DECODED | AD | {"ce_weight", "cd_weight", "decoder_input", "dictionary", "select_every"},
    "CE": DECODED | AD | {"ae_weight", "cd_weight", "decoder_input", "select_every"},
    "AD": KEYS | DECODED | HEAD | VIEWS | {"ae_weight", "ce_weight", "cd_weight", "dictionary", "select_every"},
    "CD": HEAD | AD | {"ae_weight", "ce_weight", "dictionary", "ema_head_twice", "key_head_copied", "select_every"},
}


@pytest.mark.parametrize("objectives", METHODS)
def test_a_sum_of_terms_leaves_unused_what_all_of_them_do(objectives):
    unused = set.intersection(*(UNUSED[term] for term in objectives.split("+")))
    assert {name for name in FIELDS if not tiny(objectives).uses(name)} == unused


@pytest.mark.parametrize(("objectives", "name", "asked"), [
    ("random", "select_every", {}), ("CE", "select_every", {"select": "best_on_test"}),
    ("AD", "flip", {"ad_input": "augmented"}), ("AD", "projection", {"decoder_input": "embedding"}),
    ("AE", "head", {"decoder_input": "embedding"}), ("CD", "head", {"decoder_input": "embedding"}),
    ("CD", "ema_head_twice", {"decoder_input": "embedding"}),
    ("CD", "key_head_copied", {"decoder_input": "embedding"}),
])
def test_what_is_used_may_depend_on_other_fields_that_are_asked_for(objectives, name, asked):
    recipe = tiny(objectives)
    assert recipe.uses(name, **asked) == recipe.replace(**asked).uses(name) == (objectives != "random")
