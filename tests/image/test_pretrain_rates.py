"""Learning rates and strengths of pre-training on images, step by step."""

import copy
import math

import numpy as np
import pytest
import torch
from image_learners import learner, tiny

from repro.image.pretrain import learning_rate

pytestmark = pytest.mark.usefixtures("one_thread", "network")


def test_the_learning_rate_follows_a_table():
    recipe = tiny(epochs=5, warmup=2, learning_rate=0.3)
    warm = np.linspace(0, 0.3, 8).tolist()  # two epochs of four steps, the last one at the full rate
    cosine = [0.15 + 0.15 * math.cos(math.pi * k / 12) for k in range(12)]
    found = [learning_rate(recipe, step, 4) for step in range(20)]
    assert found == pytest.approx(warm + cosine)
    assert found[0] == 0 and found[7] == found[8] == pytest.approx(0.3)
    assert found[19] > 0 and learning_rate(recipe, 20, 4) == pytest.approx(0)


@pytest.mark.parametrize(("schedule", "every"), [("step", 1), ("epoch", 7)])
def test_without_warm_up_the_learning_rate_is_torchs_cosine(schedule, every):
    epochs, steps = 6, 7
    recipe = tiny(epochs=epochs, learning_rate=0.03, schedule=schedule)
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.03)
    torchs = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=epochs * steps // every)
    for step in range(epochs * steps):
        assert learning_rate(recipe, step, steps) == pytest.approx(torchs.get_last_lr()[0])
        optimiser.step()
        if (step + 1) % every == 0:
            torchs.step()


def test_a_warm_up_of_one_step_is_a_step_at_rate_zero():
    recipe = tiny(epochs=3, warmup=1, learning_rate=1.0)
    assert [learning_rate(recipe, step, 1) for step in range(3)] == pytest.approx([0, 1, 0.5])


def test_steps_take_the_rate_of_the_schedule():
    fast = learner(epochs=3, warmup=1, learning_rate=0.2)
    before = copy.deepcopy(fast.model.state_dict())
    found = []
    for _ in range(6):
        fast.step()
        found.append(fast.optimiser.param_groups[0]["lr"])
        if len(found) == 1:  # at rate zero
            assert all(torch.equal(own, before[name]) for name, own in fast.model.named_parameters())
    assert found == pytest.approx([0, 0.2, 0.2, *(0.1 + 0.1 * math.cos(math.pi * k / 4) for k in (1, 2, 3))])


def test_the_strength_is_ramped_by_epoch():
    fast = learner("jcl", strength=6.0)
    found = []
    for _ in range(6):
        found.append(fast.strength())
        fast.step()
    assert found == pytest.approx([2, 2, 4, 4, 6, 6])
    fast = learner("jcl", strength=6.0, ramp=False)
    fast.step()
    assert fast.strength() == 6.0
