"""The start of pre-training on images: its weights, small and large sets, and what is refused."""

import copy

import pytest
import torch
from image_learners import TRAINED, learner
from made_up_images import made_up

from repro.image import pretrain

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


@pytest.mark.parametrize(("method", "available"), [("sce", 25), ("supervised", 20)])
def test_a_batch_larger_than_the_split_is_refused(method, available):
    data = made_up(train=20, unlabeled=25)
    assert learner(method, data=data, batch=available).steps_per_epoch == 1
    message = rf"batch=26 exceeds the {available} training images of digits; choose a smaller batch"
    with pytest.raises(ValueError, match=message):
        learner(method, data=data, batch=26)


@pytest.mark.parametrize(("batch", "groups", "processes"), [(8, 1, 3), (16, 1, 2), (16, 8, 16)])
def test_a_batch_or_ghost_groups_that_processes_cannot_share_are_refused(monkeypatch, batch, groups, processes):
    monkeypatch.setattr(pretrain, "process", lambda: (0, processes))
    message = rf"batch={batch} or groups={groups} cannot be divided among {processes} processes.*--variant ghost_groups"
    with pytest.raises(ValueError, match=message):
        learner(groups=groups, batch=batch)
