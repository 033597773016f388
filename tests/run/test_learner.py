"""Seeds of random streams, and the order of samples."""

import numpy as np
import pytest
import torch

from repro.run.learner import ShuffledBatches, seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def test_seeds_are_those_numpy_spawns_and_what_a_subclass_takes_is_unlike_all_others():
    assert seeds(3, 4) == np.random.SeedSequence(3).generate_state(4).tolist()
    spawned = [seed for of in ("", "predictor", "prototypes") for seed in seeds(3, 50, of)]
    assert len(set(spawned)) == len(spawned)
    assert seeds(3, 2, "predictor") == seeds(3, 9, "predictor")[:2] != seeds(4, 2, "predictor")


def shuffled(count, batches, batch=None, seed=0):
    return ShuffledBatches(3 * torch.arange(count), batches, torch.Generator().manual_seed(seed), batch)


@pytest.mark.parametrize(("count", "batches", "batch"), [
    (20, 3, 6), (18, 3, 6), (4, 1, 4), (5, 5, 1), (13, 3, None), (14, 3, None), (15, 3, None), (7, 7, None),
    (2, 1, None),
])
def test_batches_are_consecutive_parts_of_a_permutation(count, batches, batch):
    """Of a size, whose rest is dropped, or else all samples are dealt to them."""
    order, draws = shuffled(count, batches, batch), torch.Generator().manual_seed(0)
    for _ in range(3):
        permutation = 3 * torch.randperm(count, generator=draws)
        used = permutation if batch is None else permutation[: batches * batch]
        parts = used.tensor_split(batches)
        for number, part in enumerate(parts):
            assert torch.equal(order.left(), torch.cat(parts[number:])) and torch.equal(order.take(), part)
