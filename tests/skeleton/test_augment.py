"""Views of sequences against plain loops over samples, frames and joints, and against the distributions declared."""


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


@pytest.mark.parametrize("largest", [0.0, 0.3, 1.0])
def test_shear_matrices_have_a_unit_diagonal_and_stay_within_bounds(largest):
    matrices = shear_matrices(500, largest, generator())
    assert matrices.shape == (500, 3, 3)
    assert (matrices.diagonal(dim1=1, dim2=2) == 1).all()
    away = matrices[:, ~torch.eye(3, dtype=torch.bool)]
    assert away.abs().max() <= largest
    assert away.abs().max() >= 0.99 * largest


def test_shear_against_a_loop():
    sequences, matrices = padded(), shear_matrices(len(LENGTHS), 1.0, generator(2)).double()
    sheared = apply_shear(sequences, matrices)
    for sequence, matrix, found in zip(sequences, matrices, sheared, strict=True):
        torch.testing.assert_close(found, slow_shear(sequence, matrix), rtol=1e-12, atol=1e-12)


def test_a_view_is_a_flip_and_a_shear_with_the_draws_of_its_generator():
    sequences, draws = padded(dtype=torch.float32), generator(3)
    view = augment(sequences, LENGTHS, flip=0.5, shear=0.7, generator=generator(3))
    reverse = torch.rand(len(LENGTHS), generator=draws) < 0.5
    assert 0 < reverse.sum() < len(reverse)
    matrices = torch.eye(3) + 0.7 * (torch.rand(len(LENGTHS), 3, 3, generator=draws) * 2 - 1) * (1 - torch.eye(3))
    for index, sequence in enumerate(sequences):
        turned = slow_flip(sequence, int(LENGTHS[index])) if reverse[index] else sequence
        torch.testing.assert_close(view[index], slow_shear(turned, matrices[index]))


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
