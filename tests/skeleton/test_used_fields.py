"""What a recipe does not use changes nothing: two trainings that differ in it alone are equal to the last bit."""

import dataclasses
import functools

import pytest
import torch
from made_up_skeletons import CPU, made_up, tiny

from repro.skeleton import study
from repro.skeleton.recipe import METHODS, TERMS, SkeletonRecipe

pytestmark = pytest.mark.usefixtures("one_thread")
FIELDS = [field.name for field in dataclasses.fields(SkeletonRecipe)]
SMALL = {"probe_epochs": 2, "probe_batch": 7, "select_every": 1}


def another(recipe, name):
    """A value that a recipe may have instead of its own in a field."""
    value, allowed = getattr(recipe, name), SkeletonRecipe.__dataclass_fields__[name].metadata["allowed"]
    if allowed:
        return next(other for other in reversed(allowed) if other != value)
    return not value if type(value) is bool else value + 1 if type(value) is int else value / 2


@functools.cache
def trained(recipe):
    """All that two steps and the evaluation give, by name; without what passes through parts that are not trained."""
    data = made_up()
    learner = next(study.learners(recipe, data, 0, CPU))
    terms = [learner.step() for _ in range(min(2, learner.total_steps))]
    outcome = {f"term {number}": value for number, value in enumerate(terms)}
    outcome |= {name: torch.tensor(value) for name, value in study.measure(learner).items() if name != "select"}
    through_head = recipe.has("AE") or recipe.has("CE") or (recipe.trains_decoder and recipe.decoder_input != "readout")
    parts = {"encoder": True, "head": through_head, "decoder": recipe.trains_decoder}
    if not through_head:
        del outcome["embedding_spread"]  # of a head that nothing has trained
    for part in (name for name, matters in parts.items() if matters):
        outcome |= {f"{part}.{name}": value for name, value in getattr(learner.model, part).state_dict().items()}
    return outcome


@pytest.mark.parametrize("changes", [{}, {"select": "best_on_test"}, {"decoder_input": "embedding"},
                                     {"ad_input": "augmented"}], ids=str)
@pytest.mark.parametrize("objectives", ["random", *TERMS, "AE+CE+AD+CD"])
def test_what_is_not_used_changes_no_bit(objectives, changes):
    recipe = tiny(objectives, **SMALL, **changes)
    expected = trained(recipe)
    for name in FIELDS:
        if recipe.uses(name):
            continue
        found = trained(recipe.replace(**{name: another(recipe, name)}))
        assert found.keys() == expected.keys(), name
        for part, value in found.items():
            assert torch.equal(value, expected[part]), f"{name}: {part}"


UNUSED = {
    "random": {"projection", "head", "ae_weight", "ce_weight", "ad_weight", "cd_weight", "ad_loss", "ad_input",
               "decoder_input", "td_queue", "td_crop", "dictionary", "sequence_dictionary", "temperature", "momentum",
               "ema_head_twice", "flip", "shear", "epochs", "batch", "learning_rate", "clip", "probe_every",
               "select_every", "precision"},
    "AE": {"ce_weight", "ad_weight", "cd_weight", "ad_loss", "ad_input", "decoder_input", "td_queue", "td_crop",
           "dictionary", "sequence_dictionary", "temperature", "momentum", "ema_head_twice", "select_every"},
    "CE": {"ae_weight", "ad_weight", "cd_weight", "ad_loss", "ad_input", "decoder_input", "td_queue", "td_crop",
           "sequence_dictionary", "select_every"},
    "AD": {"projection", "head", "ae_weight", "ce_weight", "cd_weight", "td_queue", "td_crop", "dictionary",
           "sequence_dictionary", "temperature", "momentum", "ema_head_twice", "flip", "shear", "select_every"},
    "CD": {"projection", "head", "ae_weight", "ce_weight", "ad_weight", "ad_loss", "ad_input", "dictionary",
           "ema_head_twice", "select_every"},
}


@pytest.mark.parametrize("objectives", METHODS)
def test_a_sum_of_terms_leaves_unused_what_all_of_them_do(objectives):
    recipe = tiny(objectives)
    unused = set.intersection(*(UNUSED[term] for term in objectives.split("+")))
    assert {name for name in FIELDS if not recipe.uses(name)} == unused


@pytest.mark.parametrize(("objectives", "name", "asked"), [
    ("random", "select_every", {}), ("CE", "select_every", {"select": "best_on_test"}),
    ("AD", "flip", {"ad_input": "augmented"}), ("AD", "projection", {"decoder_input": "embedding"}),
    ("AE", "head", {"decoder_input": "embedding"}), ("CD", "head", {"decoder_input": "embedding"}),
    ("CD", "ema_head_twice", {"decoder_input": "embedding"}),
])
def test_what_is_used_may_depend_on_other_fields_that_are_asked_for(objectives, name, asked):
    recipe = tiny(objectives)
    assert recipe.uses(name, **asked) == (objectives != "random")
    assert recipe == tiny(objectives)
    changed = recipe.replace(**asked)
    assert changed.uses(name) == recipe.uses(name, **asked)


def test_who_uses_a_field():
    recipe = tiny("CE")
    assert recipe.users("ema_head_twice") == [name for name in METHODS if "CE" in name]
    assert recipe.users("td_queue") == [name for name in METHODS if "CD" in name]
    assert recipe.users("epochs") == [name for name in METHODS if name != "random"]
    assert recipe.users("layers") == list(METHODS)
    assert recipe.users("select_every") == []
    assert recipe.replace(select="best_on_test").users("select_every") == recipe.users("epochs")
