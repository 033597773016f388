"""Seeds of random streams, the order of samples, and states as earlier versions of the project saved them."""


import numpy as np
import pytest
import torch

from repro.run.learner import ShuffledBatches, seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def test_seeds_are_those_numpy_spawns():
    assert seeds(3, 4) == np.random.SeedSequence(3).generate_state(4).tolist()


def test_what_a_subclass_takes_is_unlike_all_that_others_take():
    found = [seed for of in ("", "predictor", "prototypes") for seed in seeds(3, 50, of)]
    assert len(set(found)) == len(found)
    assert seeds(3, 2, "predictor") == seeds(3, 9, "predictor")[:2] != seeds(4, 2, "predictor")


def shuffled(count, batches, batch=None, seed=0):
    return ShuffledBatches(3 * torch.arange(count), batches, torch.Generator().manual_seed(seed), batch)


@pytest.mark.parametrize(("count", "batches", "batch"), [(20, 3, 6), (18, 3, 6), (4, 1, 4), (5, 5, 1)])
def test_batches_are_consecutive_parts_of_a_permutation_whose_rest_is_dropped(count, batches, batch):
    order, draws = shuffled(count, batches, batch), torch.Generator().manual_seed(0)
    for _ in range(3):
        expected = 3 * torch.randperm(count, generator=draws)
        for number in range(batches):
            assert torch.equal(order.left(), expected[number * batch : batches * batch])
            assert torch.equal(order.take(), expected[number * batch : (number + 1) * batch])


@pytest.mark.parametrize(("count", "batches"), [(13, 3), (14, 3), (15, 3), (7, 7), (2, 1), (5, 2)])
def test_without_a_size_all_samples_are_dealt_to_the_batches(count, batches):
    order, draws = shuffled(count, batches), torch.Generator().manual_seed(0)
    for _ in range(3):
        for expected in (3 * torch.randperm(count, generator=draws)).tensor_split(batches):
            assert torch.equal(order.take(), expected)


@pytest.mark.parametrize("taken", range(4))
@pytest.mark.parametrize("saved", ["now", "as a list of batches"])
def test_an_order_goes_on_within_an_epoch(taken, saved):
    order, again = shuffled(14, 3), shuffled(14, 3, seed=9)
    for _ in range(taken):
        order.take()
    sizes = [5, 5, 4][taken:] if taken else []
    state = order.get_state()
    again.set_state(state if saved == "now" else list(state.split(sizes)) if sizes else [])
    again.generator.set_state(order.generator.get_state())
    for _ in range(7):
        assert torch.equal(again.take(), order.take())
