"""Views of sequences against plain loops over samples, frames and joints, and against the distributions declared."""

import math

import pytest
import torch
from scipy import stats
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from repro.skeleton.augment import apply_shear, augment, shear_matrices, temporal_flip

LENGTHS = torch.tensor([1, 2, 7, 4, 12, 11, 3, 12])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def padded(lengths=LENGTHS, joints=3, dtype=torch.float64, seed=0):
    """Random sequences (N, longest, 3 joints), zero after their length."""
    sequences = torch.randn(len(lengths), int(lengths.max()), 3 * joints, generator=generator(seed), dtype=dtype)
    for sequence, length in zip(sequences, lengths, strict=True):
        sequence[length:] = 0
    return sequences


def slow_flip(sequence, length):
    frames = [sequence[length - 1 - t] if t < length else sequence[t] for t in range(len(sequence))]
    return torch.stack(frames)


def slow_shear(sequence, matrix):
    sheared = torch.empty_like(sequence)
    for t, frame in enumerate(sequence):
        for joint in range(len(frame) // 3):
            for row in range(3):  # joint times matrix transposed: entry `row` is matrix[row] . joint
                sheared[t, 3 * joint + row] = sum(matrix[row, c] * frame[3 * joint + c] for c in range(3))
    return sheared


def test_nothing_waits_for_the_device():
    draws = generator()
    with FakeTensorMode():  # raises where a value is read or a shape depends on one
        sequences, lengths = torch.empty(8, 12, 9), torch.empty(8, dtype=torch.int64)
        assert augment(sequences, lengths, flip=0.5, shear=0.5, generator=draws).shape == (8, 12, 9)
        with pytest.raises(DataDependentOutputException):
            lengths.max().item()


def test_flip_against_a_loop():
    sequences = padded()
    reverse = torch.tensor([True, True, True, False, True, True, False, False])
    flipped = temporal_flip(sequences, LENGTHS, reverse)
    for sequence, length, marked, found in zip(sequences, LENGTHS, reverse, flipped, strict=True):
        expected = slow_flip(sequence, int(length)) if marked else sequence
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_flip_moves_no_padding_to_the_front():
    sequences = padded()
    sequences[:, :, 0] += 5 * (sequences[:, :, 1] != 0)  # valid frames are those with a large first coordinate
    flipped = temporal_flip(sequences, LENGTHS, torch.ones(len(LENGTHS), dtype=torch.bool))
    for found, length in zip(flipped, LENGTHS, strict=True):
        assert (found[:length] != 0).all()
        assert (found[length:] == 0).all()


def test_a_flip_undoes_itself_and_leaves_its_input_alone():
    sequences = padded()
    before = sequences.clone()
    marked = torch.ones(len(LENGTHS), dtype=torch.bool)
    once = temporal_flip(sequences, LENGTHS, marked)
    assert not torch.equal(once, before)
    assert torch.equal(temporal_flip(once, LENGTHS, marked), before)
    assert torch.equal(sequences, before)


@pytest.mark.parametrize("largest", [0.0, 0.3, 1.0])
def test_shear_matrices_have_a_unit_diagonal_and_stay_within_bounds(largest):
    matrices = shear_matrices(500, largest, generator())
    assert matrices.shape == (500, 3, 3)
    assert (matrices.diagonal(dim1=1, dim2=2) == 1).all()
    away = matrices[:, ~torch.eye(3, dtype=torch.bool)]
    assert away.abs().max() <= largest
    assert away.abs().max() >= 0.99 * largest


@pytest.mark.parametrize("largest", [0.3, 1.0])
def test_shear_entries_are_uniform_and_independent(largest):
    away = shear_matrices(5000, largest, generator(1))[:, ~torch.eye(3, dtype=torch.bool)]  # (5000, 6)
    for entry in away.T.numpy():
        assert stats.kstest(entry, stats.uniform(-largest, 2 * largest).cdf).pvalue > 1e-3
    correlations = torch.corrcoef(away.T) - torch.eye(6)
    assert correlations.abs().max() < 5 / math.sqrt(5000)


def test_shear_against_a_loop():
    sequences, matrices = padded(), shear_matrices(len(LENGTHS), 1.0, generator(2)).double()
    sheared = apply_shear(sequences, matrices)
    for sequence, matrix, found in zip(sequences, matrices, sheared, strict=True):
        torch.testing.assert_close(found, slow_shear(sequence, matrix), rtol=1e-12, atol=1e-12)


def test_shear_by_hand():
    matrix = torch.tensor([[[1.0, 2.0, 3.0], [4.0, 1.0, 5.0], [6.0, 7.0, 1.0]]])
    y_axis = torch.tensor([[[0.0, 1.0, 0.0]]])  # (1, 1 frame, 1 joint): gives the second column
    assert apply_shear(y_axis, matrix).tolist() == [[[2.0, 1.0, 7.0]]]


def test_a_view_is_a_flip_and_a_shear_with_the_draws_of_its_generator():
    sequences, draws = padded(dtype=torch.float32), generator(3)
    view = augment(sequences, LENGTHS, flip=0.5, shear=0.7, generator=generator(3))
    reverse = torch.rand(len(LENGTHS), generator=draws) < 0.5
    assert 0 < reverse.sum() < len(reverse)
    matrices = torch.eye(3) + 0.7 * (torch.rand(len(LENGTHS), 3, 3, generator=draws) * 2 - 1) * (1 - torch.eye(3))
    for index, sequence in enumerate(sequences):
        turned = slow_flip(sequence, int(LENGTHS[index])) if reverse[index] else sequence
        torch.testing.assert_close(view[index], slow_shear(turned, matrices[index]))


def test_samples_of_a_batch_have_randomness_of_their_own():
    lengths = torch.full((16,), 6)
    same = padded(lengths[:1]).repeat(16, 1, 1)
    views = augment(same, lengths, flip=0.5, shear=1.0, generator=generator())
    for first in range(16):
        for second in range(first):
            assert not torch.allclose(views[first], views[second])


def test_two_views_differ_and_equal_generators_repeat_them():
    sequences, draws = padded(), generator()
    first, second = (augment(sequences, LENGTHS, flip=0.5, shear=1.0, generator=draws) for _ in range(2))
    again = augment(sequences, LENGTHS, flip=0.5, shear=1.0, generator=generator())
    assert not torch.equal(first, second)
    assert torch.equal(first, again)


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    augment(padded(), LENGTHS, flip=0.5, shear=1.0, generator=generator())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("flip", "flipped"), [(0.0, False), (1.0, True)])
def test_probabilities_zero_and_one(flip, flipped):
    sequences = padded()
    for seed in range(20):
        view = augment(sequences, LENGTHS, flip=flip, shear=0.0, generator=generator(seed))
        expected = temporal_flip(sequences, LENGTHS, torch.full((len(LENGTHS),), flipped))
        assert torch.equal(view, expected)


def test_a_quarter_of_the_sequences_is_flipped():
    lengths = torch.full((4000,), 2)
    sequences = torch.arange(2.0).reshape(1, 2, 1).expand(4000, 2, 3)
    view = augment(sequences, lengths, flip=0.25, shear=0.0, generator=generator())
    assert stats.binomtest(int((view[:, 0, 0] == 1).sum()), 4000, 0.25).pvalue > 1e-3


def test_one_frame_is_its_own_reverse():
    lengths = torch.ones(5, dtype=torch.int64)
    sequences = padded(lengths)
    assert sequences.shape[1] == 1
    assert torch.equal(augment(sequences, lengths, flip=1.0, shear=0.0, generator=generator()), sequences)


def test_padding_stays_zero():
    view = augment(padded(), LENGTHS, flip=0.5, shear=1.0, generator=generator())
    for found, length in zip(view, LENGTHS, strict=True):
        assert (found[length:] == 0).all()
        assert (found[:length] != 0).any(1).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_precision_is_kept(dtype):
    sequences = padded(dtype=torch.float64)
    view = augment(sequences.to(dtype), LENGTHS, flip=0.5, shear=1.0, generator=generator())
    exact = augment(sequences, LENGTHS, flip=0.5, shear=1.0, generator=generator())
    assert view.dtype == dtype
    assert view.shape == exact.shape
    tolerance = {torch.bfloat16: 0.05, torch.float32: 1e-5, torch.float64: 0.0}[dtype]
    torch.testing.assert_close(view.double(), exact, rtol=tolerance, atol=tolerance)
