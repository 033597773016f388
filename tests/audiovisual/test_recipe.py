"""Recipes of CM-ACC: printed values, what is refused, and what presets and variants change."""

import pandas as pd
import pytest

from repro.audiovisual.data import CHARACTERS, DATASETS, stored_size
from repro.audiovisual.recipe import METHODS, PRESETS, VARIANTS, AudioVisualRecipe, paper, quick
from repro.report.printed import as_printed


def test_the_paper_recipe_has_the_printed_settings():
    printed = as_printed("cmacc_hyperparameters").set_index("key")["value"]
    recipe = paper("kinetics_sound", "cmacc")
    found = pd.Series(
        {
            "batch_M": recipe.batch,
            "dictionary_K": recipe.dictionary,
            "pool_N": recipe.pool,
            "ema_m": recipe.momentum,
            "tau": recipe.temperature,
            "lr": recipe.learning_rate,
            "warmup_iters": recipe.warmup,
            "clip_frames_pretrain": recipe.window,
            "clip_frames_finetune": recipe.finetune_window,
            "resolution": recipe.size,
        }
    )
    assert found.to_dict() == {key: float(printed[key]) for key in found.index}


@pytest.mark.parametrize("batch", [32, 64, 128])
def test_dictionary_and_pool_follow_the_batch(batch):
    recipe = paper("kinetics700", "cmacc", batch=batch)
    assert (recipe.dictionary, recipe.pool) == (30 * batch, 300 * batch)
    assert paper("kinetics700", "cmacc", batch=batch, dictionary=2 * batch).dictionary == 2 * batch


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_preset_makes_every_method(preset, dataset):
    for method in METHODS:
        recipe = PRESETS[preset](dataset, method)
        assert (recipe.dataset, recipe.method) == (dataset, method)
        assert AudioVisualRecipe.from_dict(recipe.to_dict()) == recipe


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_a_full_dictionary_leaves_a_batch_of_the_pool_to_select(preset, dataset):
    sizes = () if dataset in CHARACTERS else (4, 8, 16, 32, 64, 128)
    batches = [{}, *({"batch": size} for size in sizes)]
    for changes in batches:
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


def test_quick_recipes_have_unit_embeddings_and_renewed_keys_and_variants_undo_both():
    for dataset in DATASETS:
        small, printed = quick(dataset, "cmacc"), paper(dataset, "cmacc")
        assert small.normalised and small.renewed and not printed.normalised and not printed.renewed
        undone = quick(dataset, "cmacc", **VARIANTS["any_length"], **VARIANTS["pooled_keys"])
        for name in ("normalised", "temperature", "posterior_temperature", "renewed"):
            assert getattr(undone, name) == getattr(printed, name)


@pytest.mark.parametrize(("changes", "message"), [
    ({"batch": 0}, "batch=0 should be between 1 and 14316557"),
    ({"batch": 100, "groups": 3}, "batch=100 should be a multiple of groups=3"),
    ({"dictionary": 100}, "dictionary=100 should be a multiple of batch=128, .* take 128"),
    ({"temperature": 0.0}, "temperature=0.0 should be at least 1e-06"),
    ({"temperature": float("nan")}, "temperature=nan should be finite"),
    ({"momentum": 1.5}, "momentum=1.5 should be between 0 and 1"),
    ({"characters": 10}, "characters=10 should be between 1 and 9"),
    ({"split": 6}, "split=6 should be between 0 and 5"),
    ({"size": 449}, "size=449 should be between 1 and 448"),  # more than the largest pictures that can be stored leave
    ({"redundancy": 1.0}, "redundancy=1.0 should be between 0 and 1, and less than 1"),
    ({"redundancy": -0.1}, "redundancy=-0.1 should be at least 0"),
    ({"clips": -1}, "clips=-1 should be at least 0"),
    ({"batch": 2**24}, "batch=16777216 should be between 1 and 14316557"),  # the pool has 300 times as many
    ({"sampler": "active"}, "sampler=.active. is not one of: gradient, feature"),
])
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        AudioVisualRecipe(**changes)


def test_every_value_has_a_source():
    for dataset in DATASETS:
        assert all(source for _, _, source in quick(dataset, "cmacc").described())
    sources = {name: source for name, _, source in paper("synthetic", "cmacc").described()}
    assert sources["video_trunk"] == "assumed: fits the data"


@pytest.mark.parametrize(("crop", "stored"), [(56, 64), (112, 128), (224, 256), (448, 512), (1, 8), (64, 73)])
def test_stored_pictures_are_little_higher_than_a_crop(crop, stored):
    assert stored_size(crop) == stored
