"""Recipes of CM-ACC: printed values, what is refused, and what presets and variants change."""

import pandas as pd
import pytest

from repro.audiovisual.data import CHARACTERS, DATASETS
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
    batches = [{}] if dataset in CHARACTERS else [{}, {"batch": 32}, {"batch": 64}, {"batch": 128}]
    for changes in batches:
        recipe = PRESETS[preset](dataset, "cmacc", **changes)
        assert recipe.pool - recipe.dictionary >= recipe.batch


def test_the_quick_recipe_of_recordings_takes_some_dozens():
    """UCF101 in a sample of 101 clips has about 33 to train with that have sound."""
    recipe = quick("ucf101", "cmacc")
    assert 33 - recipe.dictionary >= recipe.batch


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_every_variant_changes_the_recipe(changes):
    usual = quick("synthetic", "cmacc")
    assert all(getattr(usual, name) != value for name, value in changes.items())
    assert quick("synthetic", "cmacc", **changes) != usual
    assert len(VARIANTS) <= 8


@pytest.mark.parametrize(("changes", "message"), [
    ({"batch": 0}, "batch=0 should be between 1 and inf"),
    ({"batch": 100, "groups": 3}, "batch=100 should be a multiple of groups=3"),
    ({"dictionary": 100}, "dictionary=100 and pool=38400 should be multiples of batch=128"),
    ({"temperature": 0.0}, "temperature=0.0 should be between 1e-06 and inf"),
    ({"temperature": float("nan")}, "temperature=nan should be finite"),
    ({"momentum": 1.5}, "momentum=1.5 should be between 0 and 1.0"),
    ({"characters": 10}, "characters=10 should be between 1 and 9"),
    ({"split": 6}, "split=6 should be between 0 and 5"),
    ({"sampler": "active"}, "sampler=.active. is not one of: gradient, feature"),
])
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        AudioVisualRecipe(**changes)


def test_misspelt_fields_are_refused():
    with pytest.raises(TypeError, match="did you mean 'temperature'"):
        paper("kinetics_sound", "cmacc", temprature=0.1)


def test_every_value_has_a_source():
    for dataset in DATASETS:
        assert all(source for _, _, source in quick(dataset, "cmacc").described())
    sources = {name: source for name, _, source in paper("synthetic", "cmacc").described()}
    assert sources["video_trunk"] == "assumed: fits the data"
