"""Trainings as a whole: the order of their batches, equal seeds, states that continue, and how they end."""

import copy
import itertools

import pytest
import torch
from made_up_skeletons import FEATURES, TINY, learner, made_up
from states import assert_equal_states
from tqdm import tqdm

from repro.contrast.dictionary import sequence_noise, unit_noise
from repro.run.fit import NonFiniteLoss, fit
from repro.skeleton.model import SkeletonModel

pytestmark = pytest.mark.usefixtures("one_thread")


# ---------------------------------------------------------------------------------------------- order and size


def seen(fast, steps):
    """Indices among the training sequences of each step's batch."""
    every, its_lengths = fast.data.sequences[fast.train], fast.data.lengths[fast.train]
    batches = []
    for _ in range(steps):
        sequences, lengths, _ = fast._next_batch()
        found = []
        for sequence, length in zip(sequences, lengths, strict=True):
            frames = sequences.shape[1]
            same = (every[:, :frames] == sequence).flatten(1).all(1) & (its_lengths == length)
            found += same.nonzero().flatten().tolist()
        assert len(found) == len(sequences)
        batches.append(found)
    return batches


def test_an_epoch_shows_every_sequence_at_most_once_and_drops_the_rest():
    fast = learner("AE", data=made_up(24), batch=6)  # 20 training sequences: 3 batches, 2 left over
    assert len(fast.train) == 20
    assert (fast.steps_per_epoch, fast.total_steps) == (3, 9)
    epochs = [list(itertools.chain(*seen(fast, 3))) for _ in range(8)]
    for epoch in epochs:
        assert len(epoch) == len(set(epoch)) == 18
    assert len({tuple(epoch) for epoch in epochs}) == 8
    assert set(itertools.chain(*epochs)) == set(range(20))


def test_training_never_sees_the_test_split():
    data = made_up()
    data.frames[data.test.repeat_interleave(data.lengths)] = float("nan")
    fast = learner("AE+CE+AD+CD", data=data)
    for _ in range(2 * fast.steps_per_epoch):
        assert fast.step().isfinite().all()


def test_a_batch_larger_than_the_training_split_is_an_error():
    with pytest.raises(ValueError, match="batch=19 exceeds the 18 training sequences of made-up"):
        learner("CE", batch=19)


# ---------------------------------------------------------------------------------------------- seeds and states


@pytest.mark.parametrize("taken", [0, 1, 3, 4, 6])  # an epoch has four steps
@pytest.mark.parametrize("objectives", ["AD", "AE+CE+AD+CD"])
def test_a_state_continues_to_the_last_bit(objectives, taken, tmp_path):
    undisturbed = learner(objectives)
    for _ in range(taken):
        undisturbed.step()
    torch.save(undisturbed.state_dict(), tmp_path / "state.pt")
    resumed = learner(objectives, seed=99)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for _ in range(5):
        assert torch.equal(undisturbed.step(), resumed.step())
    assert_equal_states(undisturbed.state_dict(), resumed.state_dict())


def test_a_saved_state_is_everything_that_changes():
    fast = learner("AE+CE+AD+CD")
    state = fast.state_dict()
    assert set(state) == {"model", "keys", "dictionary", "sequence_dictionary", "optimiser", "generator",
                          "order_generator", "order", "taken", "precision"}
    before = copy.deepcopy(state)
    fast.step()
    for name, value in fast.state_dict().items():
        if name == "precision":  # stays as the training was begun
            continue
        with pytest.raises(AssertionError):
            assert_equal_states(before[name], value)


# ---------------------------------------------------------------------------------------------- fit


@pytest.mark.parametrize("objectives", ["AE", "CE", "AD", "CD"])
def test_a_loss_that_is_not_finite_stops_the_training_naming_term_and_step(objectives, tmp_path):
    data = made_up(24)
    order = torch.randperm(20, generator=learner(objectives, data=data).order_generator)
    poisoned = int(data.train.nonzero()[order[9]])  # among the third batch of four
    data.frames[data.lengths[:poisoned].sum(), 0] = float("nan")
    first = learner(objectives, data=data)
    assert first.step().isfinite().all() and first.step().isfinite().all()
    assert first.step().isnan().all()
    with pytest.raises(NonFiniteLoss, match=f"{objectives} is nan at step 3"):
        fit(learner(objectives, data=data), tmp_path, tqdm(disable=True))
    assert not (tmp_path / "checkpoint.pt").exists()
    assert not (tmp_path / "progress.jsonl").exists()


def test_no_two_streams_begin_with_equal_draws():
    """Those of the cell's own seed neither, from which they are spawned: as on a CPU all of them once did."""
    seed = 3
    fast = learner("AE+CE+AD+CD", seed=seed)
    starts = [fast.generator.initial_seed(), fast.order_generator.initial_seed(), seed]
    assert len(set(starts)) == 3
    entries, sequences = fast.dictionary.entries, fast.sequence_dictionary.entries
    for start in starts:
        assert not same_signs(entries, torch.randn(entries.shape, generator=torch.Generator().manual_seed(start)))
        assert not same_signs(sequences, torch.randn(sequences.shape, generator=torch.Generator().manual_seed(start)))
        torch.manual_seed(start)
        model = SkeletonModel(FEATURES, TINY["units"], 1, TINY["projection"], "linear")
        for (name, own), other in zip(fast.model.named_parameters(), model.parameters(), strict=True):
            assert not torch.equal(own, other), name
    assert not same_signs(entries, sequences)  # of equal draws, each over a norm
    alike = torch.Generator().manual_seed(7)
    assert same_signs(unit_noise(11, 5, generator=alike), sequence_noise(9, 8, 6, generator=alike.manual_seed(7)))


def same_signs(first, second, count=32):
    """Whether two tensors begin with equal signs; torch draws the last numbers of a tensor otherwise than the first."""
    return torch.equal(first.flatten()[:count].sign(), second.flatten()[:count].sign())
