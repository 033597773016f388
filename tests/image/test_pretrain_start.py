"""The start of pre-training on images: its weights, small and large sets, and what is refused."""

import copy
import dataclasses

import pytest
import torch
from image_learners import TRAINED, learner, trace
from made_up_images import made_up
from states import assert_equal_states
from tqdm import tqdm

from repro.image import pretrain
from repro.run.fit import fit

pytestmark = pytest.mark.usefixtures("one_thread", "network")


def test_equal_seeds_start_from_equal_weights_whatever_the_method():
    before = torch.get_rng_state()
    usual = copy.deepcopy(learner("random", seed=5).state_dict())
    for method in TRAINED:
        state = learner(method, seed=5).state_dict()
        for part in ("model", "classifier", "keys", "dictionary"):
            for name, value in state[part].items():
                assert torch.equal(value, usual[part][name]), (method, name)
    other = learner("random", seed=6).state_dict()
    for part, name in (("model", "head.0.weight"), ("dictionary", "entries"), ("classifier", "weight")):
        assert not torch.equal(other[part][name], usual[part][name])
    assert torch.equal(torch.get_rng_state(), before)


def test_the_keys_start_as_a_copy_of_the_queries_encoder_and_the_dictionary_as_directions():
    fast = learner()
    for name, value in fast.model.state_dict().items():
        twin = fast.keys.twin.state_dict()[name]
        assert torch.equal(value, twin) and value.data_ptr() != twin.data_ptr(), name
    torch.testing.assert_close(fast.dictionary.entries.norm(dim=1), torch.ones(20))


def test_random_initialisation_takes_no_steps(tmp_path):
    fast = learner("random")
    before = copy.deepcopy(fast.state_dict())
    assert fit(fast, tmp_path, tqdm(disable=True))["steps"] == 0
    assert_equal_states(fast.state_dict(), before)


@pytest.mark.parametrize(("method", "available"), [("sce", 25), ("supervised", 20)])
def test_a_batch_larger_than_the_split_is_refused(method, available):
    data = made_up(train=20, unlabeled=25)
    assert learner(method, data=data, batch=available).steps_per_epoch == 1
    message = rf"batch=26 exceeds the {available} training images of digits; choose a smaller batch"
    with pytest.raises(ValueError, match=message):
        learner(method, data=data, batch=26)


@pytest.mark.parametrize("method", ["moco", "sce", "jcl"])
def test_a_dictionary_larger_than_the_data_keeps_their_earlier_keys(method):
    fast = learner(method, dictionary=200)
    assert len(fast.members) == 20
    before = fast.dictionary.entries.clone()
    assert trace(fast, 3 * fast.steps_per_epoch).isfinite().all()
    written = 3 * fast.steps_per_epoch * fast.recipe.batch
    changed = (fast.dictionary.entries != before).any(1)
    assert written > len(fast.members) and changed[:written].all() and not changed[written:].any()


@pytest.mark.parametrize("method", TRAINED)
def test_images_of_one_pixel_are_trained_on(method):
    fast = learner(method, data=made_up(size=1))
    assert trace(fast, 2).isfinite().all()


def test_labels_out_of_range_and_parts_that_overlap_are_refused():
    data = made_up(unlabeled=3)
    with pytest.raises(ValueError, match="digits: label 3 should be from -1 to 2"):
        dataclasses.replace(data, labels=data.labels.where(data.labels != 2, 3))
    with pytest.raises(ValueError, match="digits: 9 samples are for train and for test"):
        dataclasses.replace(data, train=data.train | data.test)


def test_a_batch_that_processes_cannot_share_is_refused(monkeypatch):
    monkeypatch.setattr(pretrain, "process", lambda: (0, 3))
    with pytest.raises(ValueError, match="batch=8 cannot be shared by 3 processes; choose a multiple"):
        learner()


@pytest.mark.parametrize(("groups", "processes"), [(1, 2), (8, 16)])
def test_ghost_groups_that_processes_cannot_share_are_refused(monkeypatch, groups, processes):
    monkeypatch.setattr(pretrain, "process", lambda: (0, processes))
    message = rf"groups={groups} cannot be divided among {processes} processes.*--variant ghost_groups .* 8 groups"
    with pytest.raises(ValueError, match=message):
        learner(groups=groups, batch=16)
