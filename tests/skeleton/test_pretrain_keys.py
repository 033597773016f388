"""Keys of pre-training: the momentum encoder that makes them and the dictionaries that keep them."""

import copy

import pytest
import torch
from made_up_skeletons import FEATURES, FRAMES, learner, made_up
from slow_skeletons import SlowStep

from repro.skeleton.recipe import SUBSETS

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("objectives", ["CE", "CD", "AE+CE+AD+CD"])
def test_the_momentum_encoder_follows_the_weights_after_the_step(objectives, twice):
    fast = learner(objectives, ema_head_twice=twice, momentum=0.75)
    fast.step()  # from here on twin and model differ
    old = copy.deepcopy(fast.keys.twin.state_dict())
    fast.step()
    for name, learned in fast.model.state_dict().items():
        m = 0.75**2 if twice and name.startswith("head.") else 0.75
        torch.testing.assert_close(fast.keys.twin.state_dict()[name], m * old[name] + (1 - m) * learned)


@pytest.mark.parametrize("objectives", ["random", "AE", "AD", "AE+AD"])
def test_without_contrast_there_are_no_keys(objectives):
    fast = learner(objectives)
    before = copy.deepcopy(fast.state_dict())
    if objectives != "random":
        fast.step()
    for part in ("keys", "dictionary", "sequence_dictionary"):
        for name, value in fast.state_dict()[part].items():
            assert torch.equal(value, before[part][name]), (part, name)


@pytest.mark.parametrize("objectives", [name for name in SUBSETS if "C" in name])
def test_dictionaries_hold_the_keys_of_the_step_and_move_only_where_used(objectives):
    fast = learner(objectives)
    fast.step()
    dictionaries = {"CE": fast.dictionary, "CD": fast.sequence_dictionary}
    before = {name: dictionary.entries.clone() for name, dictionary in dictionaries.items()}
    slow = SlowStep(fast)
    fast.step()
    assert list(slow.keys) == [name for name in dictionaries if fast.recipe.has(name)]
    for name, dictionary in dictionaries.items():
        expected = before[name]
        if fast.recipe.has(name):
            assert not torch.allclose(expected[4:8], slow.keys[name])
            expected[4:8] = slow.keys[name]  # the first batch of four went to the first rows
        torch.testing.assert_close(dictionary.entries, expected, rtol=1e-4, atol=1e-5)
        assert int(dictionary.pointer) == (8 if fast.recipe.has(name) else 0)


def test_entries_of_the_sequence_dictionary_are_as_long_as_the_crop_or_the_data():
    crops = {8: 8, None: FRAMES, FRAMES + 5: FRAMES, 50: FRAMES}
    for crop, frames in crops.items():
        fast = learner("CD", td_crop=crop)
        assert fast.sequence_dictionary.entries.shape == (9, frames, FEATURES)
    assert learner("CD", data=made_up(frames=60), td_crop=50).sequence_dictionary.entries.shape[1] == 50
