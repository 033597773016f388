"""Recipes of CM-ACC: printed values, what is refused, and what presets and variants change."""

import pytest

from repro.audiovisual.data import CHARACTERS, stored_size
from repro.audiovisual.recipe import METHODS, PRESETS, AudioVisualRecipe, paper, quick
from repro.audiovisual.splits import DATASETS
from repro.report.printed import as_printed

FIELDS = {"batch_M": "batch", "dictionary_K": "dictionary", "pool_N": "pool", "ema_m": "momentum", "tau": "temperature",
          "lr": "learning_rate", "warmup_iters": "warmup", "clip_frames_pretrain": "window",
          "clip_frames_finetune": "finetune_window", "resolution": "size"}


def test_the_paper_recipe_has_the_printed_settings_and_sizes_that_follow_the_batch():
    printed, recipe = as_printed("cmacc_hyperparameters").set_index("key")["value"], paper("kinetics_sound", "cmacc")
    assert {key: getattr(recipe, name) for key, name in FIELDS.items()} == {key: float(printed[key]) for key in FIELDS}
    for batch in (32, 64):
        recipe = paper("kinetics700", "cmacc", batch=batch)
        assert (recipe.dictionary, recipe.pool) == (30 * batch, 300 * batch)
    assert paper("kinetics700", "cmacc", batch=32, dictionary=64).dictionary == 64


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_preset_makes_every_method_and_leaves_a_batch_of_the_pool_to_select(preset, dataset):
    for method in METHODS:
        recipe = PRESETS[preset](dataset, method)
        assert (recipe.dataset, recipe.method) == (dataset, method)
        assert AudioVisualRecipe.from_dict(recipe.to_dict()) == recipe
    sizes = () if dataset in CHARACTERS else (4, 8, 16, 32, 64, 128)
    for changes in ({}, *({"batch": size} for size in sizes)):
        recipe = PRESETS[preset](dataset, "cmacc", **changes)
        assert recipe.pool - recipe.dictionary >= recipe.batch


@pytest.mark.parametrize(("dataset", "batches", "members"), [("synthetic", (32, 64, 128), 2000),
                                                            ("ucf101", (4, 8, 16), 33)])
def test_quick_recipes_of_several_batches_differ_in_the_batch_alone(dataset, batches, members):
    """The steps, the dictionary and the candidates are the same, so that M is all that a table by M compares."""
    recipes = [quick(dataset, "cmacc", batch=batch) for batch in batches]
    assert len({recipe.replace(batch=1, dictionary=2, pool=2) for recipe in recipes}) == 1
    assert len({(recipe.dictionary, recipe.pool) for recipe in recipes}) == 1
    steps = {min(recipe.iterations, recipe.epochs * (members // recipe.batch)) for recipe in recipes}
    assert steps == {recipes[0].iterations}


@pytest.mark.parametrize(("changes", "message"), [
    ({"batch": 2**24}, "batch=16777216 should be between 1 and 14316557"),  # the pool has 300 times as many
    ({"batch": 100, "groups": 3}, "batch=100 should be a multiple of groups=3"),
    ({"width": 100}, "width=100 should be a multiple of 32"),
    ({"audio_trunk": "small_image"}, "can be small_image on grids of characters alone; choose small_video and small_a"),
    ({"dictionary": 100}, "dictionary=100 should be a multiple of batch=128"),
    ({"characters": 10}, "characters=10 should be between 1 and 9"),
    ({"size": 449}, "size=449 should be between 1 and 448"),  # more than the largest pictures that can be stored leave
    ({"redundancy": 1.0}, "redundancy=1.0 should be between 0 and 0.999"),
    ({"split": 6}, "split=6 should be between 0 and 5"), ({"iterations": -1}, "iterations=-1 should be at least 0"),
    ({"sampler": "hard"}, "sampler='hard' is not one of: random, ohem, gradient"),
])
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        AudioVisualRecipe(**changes)


@pytest.mark.parametrize(("asked", "expected"), [
    ("ucf101+esc50", ["ucf101,esc50"]), ("ucf101,esc50", ["ucf101", "esc50"]), ("esc10", ["esc10"]),
    ("ucf101 + esc50, hmdb51", ["ucf101,esc50", "hmdb51"]), (["ucf101+esc50", "esc50"], ["ucf101,esc50", "esc50"]),
])
def test_a_comma_sweeps_targets_and_a_plus_joins_them(asked, expected):
    assert AudioVisualRecipe.parse("targets", asked) == expected


@pytest.mark.parametrize(("asked", "message"), [
    ("ucf", "targets='ucf' is not one of: ucf101, hmdb51"), ("", "targets='' is not one of"),
    ("esc50+esc50", "targets='esc50,esc50' names esc50 twice"), ("esc50,esc50", "targets='esc50,esc50' names esc50"),
    (("esc10", "esc51"), "did you mean 'esc50'"),
])
def test_targets_that_do_not_exist_are_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        AudioVisualRecipe.parse("targets", asked)


@pytest.mark.parametrize(("crop", "stored"), [(56, 64), (112, 128), (224, 256), (448, 512), (1, 8), (64, 73)])
def test_stored_pictures_are_little_higher_than_a_crop(crop, stored):
    assert stored_size(crop) == stored
