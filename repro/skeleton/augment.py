"""Views of skeleton sequences, for a whole batch at once, with randomness of each sample's own.

Source: released taxonomy code (`temporal flip` and `shear`); the paper names no augmentation.
"""

import torch
from torch import Tensor


def augment(sequences: Tensor, lengths: Tensor, *, flip: float, shear: float, generator: torch.Generator) -> Tensor:
    """An independent view of every sequence: time reversed with probability `flip`, then sheared.

    Args:
        sequences: (N, T, 3 J) coordinates x, y, z per joint, zero after each sequence's length.
        lengths: (N,) valid frames.
        flip: probability of reversing time, in [0, 1].
        shear: largest off-diagonal entry of the shear matrix, at least 0.
        generator: on the device of `sequences`.

    Returns:
        The views, (N, T, 3 J), zero after each sequence's length.
    """
    reverse = torch.rand(len(sequences), generator=generator, device=sequences.device) < flip
    return apply_shear(temporal_flip(sequences, lengths, reverse), shear_matrices(len(sequences), shear, generator))


def temporal_flip(sequences: Tensor, lengths: Tensor, reverse: Tensor) -> Tensor:
    """Reverse the valid frames of the sequences marked in `reverse` (N,), leaving the padding where it is."""
    frame = torch.arange(sequences.shape[1], device=sequences.device)
    mirrored = lengths[:, None] - 1 - frame
    index = torch.where(reverse[:, None] & (mirrored >= 0), mirrored, frame)  # (N, T)
    return sequences.gather(1, index[:, :, None].expand_as(sequences))


def shear_matrices(count: int, largest: float, generator: torch.Generator) -> Tensor:
    """(count, 3, 3) matrices with unit diagonal and six off-diagonal entries uniform in [-largest, largest]."""
    entries = torch.rand(count, 3, 3, generator=generator, device=generator.device) * 2 - 1
    identity = torch.eye(3, device=generator.device)
    return identity + largest * entries * (1 - identity)


def apply_shear(sequences: Tensor, matrices: Tensor) -> Tensor:
    """Multiply every joint, a row vector, by the transpose of its sequence's matrix. Zero padding stays zero."""
    joints = sequences.unflatten(2, (-1, 3)).flatten(1, 2)  # (N, T J, 3)
    return (joints @ matrices.to(sequences.dtype).transpose(1, 2)).reshape(sequences.shape)
