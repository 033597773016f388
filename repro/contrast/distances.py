"""Masked L1 distances between sequences of unequal length, without the differences of all pairs in memory."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def masked_l1(decoded: Tensor, sequence: Tensor, lengths: Tensor) -> Tensor:
    """Mean over coordinates and valid frames of the absolute difference: (N, T, D), (N, T, D), (N,) -> (N,)."""
    padding = _padding(lengths, decoded.shape[1]).unsqueeze(2)
    difference = (decoded - sequence).masked_fill(padding, 0)
    return difference.abs().mean(2).sum(1) / lengths


def l1_to_entries(decoded: Tensor, entries: Tensor, lengths: Tensor) -> Tensor:
    """Masked L1 distance of every sequence to every entry: (N, T, D), (K, T', D), (N,) -> (N, K)."""
    frames = min(decoded.shape[1], entries.shape[1])
    padding = _padding(lengths, frames)                                                  # (N, frames)
    sequences = decoded[:, :frames].masked_fill(padding.unsqueeze(2), 0).flatten(1)      # (N, frames D)
    entries = entries[:, :frames]
    # The product in float64, because a difference follows and TensorFloat-32 may be allowed.
    norms = torch.linalg.vector_norm(entries, ord=1, dim=2).double()                     # (K, frames)
    excess = (padding.double() @ norms.T).to(sequences.dtype)                            # (N, K)
    total = _L1.apply(sequences, entries.flatten(1))                                     # (N, K)
    return (total - excess) / (lengths.clamp(max=frames).unsqueeze(1) * decoded.shape[2])


def _padding(lengths: Tensor, frames: int) -> Tensor:
    """True for frames at or beyond a sequence's length: (N,) -> (N, frames)."""
    return torch.arange(frames, device=lengths.device) >= lengths.unsqueeze(1)


class _L1(torch.autograd.Function):
    """Sum of absolute differences of all pairs: (N, d), (K, d) -> (N, K).

    Both passes write the differences to a few entries at a time into one buffer. `torch.cdist` takes twice the time on
    a CPU, and on CUDA its backward pass holds all differences.
    """

    @staticmethod
    def forward(ctx: Any, sequences: Tensor, entries: Tensor) -> Tensor:
        ctx.save_for_backward(sequences, entries)
        return torch.cat([difference.abs_().sum(2) for _, difference in _differences(sequences, entries)], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor | None]:
        sequences, entries = ctx.saved_tensors
        to_sequences = torch.zeros_like(sequences).unsqueeze(1)
        to_entries = torch.empty_like(entries) if ctx.needs_input_grad[1] else None
        for rows, difference in _differences(sequences, entries):
            sign = difference.sign_()
            to_sequences.baddbmm_(upstream[:, None, rows], sign)
            if to_entries is not None:
                to_entries[rows] = -torch.einsum("nk,nkd->kd", upstream[:, rows], sign)
        return to_sequences.squeeze(1), to_entries


def _differences(sequences: Tensor, entries: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Every sequence minus a few entries, and which: (N, d), (K, d) -> (N, k, d). All are written into one buffer.

    The buffer is no larger than the entries, nor on a CPU than 8 MiB in float32, which a cache may hold.
    """
    largest = 2**21 if sequences.device.type == "cpu" else 2**25
    count = max(1, min(len(entries) // len(sequences), largest // sequences.numel()))
    buffer = sequences.new_empty(len(sequences), count, sequences.shape[1])
    for start in range(0, len(entries), count):
        rows = slice(start, min(start + count, len(entries)))
        yield rows, torch.sub(sequences.unsqueeze(1), entries[rows], out=buffer[:, : rows.stop - start])
