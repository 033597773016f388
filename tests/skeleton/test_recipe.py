"""Recipes: the papers' values, presets and variants, what is refused, and what a recipe does not use."""

import dataclasses
import functools

import pytest
import torch
from made_up_skeletons import tiny

from repro.experiments import find_table
from repro.skeleton.recipe import METHODS, SkeletonRecipe, paper

FIELDS = [field.name for field in dataclasses.fields(SkeletonRecipe)]


NTU = {"protocol": "xsub", "pipeline": "default", "dictionary": 16384, "sequence_dictionary": 2048, "epochs": 80,
       "learning_rate": 9e-4, "probe_batch": 512, "select_every": 3, "probe_every": 0}


def test_ntu_differs_from_the_recipe_of_ucla_where_its_released_configuration_does():
    """That of NW-UCLA is held by the ids of its committed runs."""
    usual, recipe = SkeletonRecipe(dataset="ucla"), paper("ntu", "CE")
    assert usual == paper("ucla", "CE")
    assert recipe == usual.replace(dataset="ntu", **NTU) and paper("ntu", "CE", layers=3) == recipe.replace(layers=3)
    assert paper("ntu", "CE", pipeline="authors") == recipe != paper("ntu", "CE", pipeline="predict_cluster")


@pytest.mark.parametrize(("changes", "message"), [
    ({"objectives": "CX"}, "objectives='CX': term='CX' is not one of: AE, .*CE, .*CD"),
    ({"objectives": "CE+AE"}, "objectives='CE\\+AE' is not one of: AE\\+CE"),
    ({"objectives": "AE+AE"}, "objectives='AE\\+AE' names AE twice"),
    ({"objectives": "all"}, "objectives='all': term='all' is not one of"),
    ({"select": "best"}, "select='best' is not one of: last, best_on_test"),
    ({"objectives": "random+CE"}, "objectives='random\\+CE': term='random' is not one of"),
    ({"temperature": 0.0}, "temperature=0.0 should be at least 1e-06"),
    ({"bidirectional": True, "units": 7}, "units=7 should be even: each of two directions has half of them"),
], ids=str)
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        SkeletonRecipe(**changes)


KEYS, DECODED = {"temperature", "momentum", "ema_head_twice", "key_head_copied"}, {
    "td_queue", "td_crop", "sequence_dictionary"}
HEAD, VIEWS, AD = {"projection", "head"}, {"flip", "shear"}, {"ad_weight", "ad_loss", "ad_input"}
TRAINING = {"epochs", "batch", "learning_rate", "clip", "probe_every", "precision"}
SHARED = {"units", "layers", "pipeline", "protocol", "probe_epochs", "probe_learning_rate", "select", "threads"}
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
    known = set.union(*UNUSED.values())  # another field may be of a term that is none of these
    assert {name for name in FIELDS if not tiny(objectives).uses(name)} & known == unused
    assert all(tiny(objectives).uses(name) for name in SHARED)


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


@pytest.mark.parametrize(("name", "choices"), [("taxonomy", {}), ("encoder_collapse", {"layers": 1})])
def test_a_run_is_the_same_on_every_device(name, choices, runs_root, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # as far as a list of runs can tell
    listed = functools.partial(find_table(name).runs, "synthetic", preset="paper", objectives="AE", **choices)
    assert listed(device="cpu") == listed(device="auto") == listed(device="cuda")
    with pytest.raises(ValueError, match="precision='bfloat16' is for a CPU; on cuda it is float32: leave it out"):
        listed(device="cuda", precision="bfloat16")
