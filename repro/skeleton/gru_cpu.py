"""The GRU's steps written by hand for a CPU, where they are faster than torch's. Frames come first.

The product of the weights with an input that stays the same, the gradient of the recurrent weights and, in bfloat16,
the cast of the weights are done once per sequence instead of once per frame. Sequences of unequal length may be packed:
then nothing is computed for their padding. On CUDA the GRU is torch's.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

BLOCK = 256  # rows: for a product in bfloat16, oneDNN compiles and keeps a kernel for every size it meets


class Packing:
    """The valid frames of a padded batch as rows: frame by frame, and in each frame the longest sequence first.

    Attributes, of lengths (N,) int64 on the CPU, at least 1 each:
        sizes: for every frame, the number of sequences that have it: N first, never growing.
        order: (N,) the sequences from the longest to the shortest: a frame's rows are the first of them.
        sequence, frame: (R,) where a row lies in the padded batch (N, T, ...); R is the sum of the lengths.
        last: (N,) the row of each sequence's last frame.
    """

    def __init__(self, lengths: Tensor) -> None:
        ordered, self.order = lengths.sort(descending=True, stable=True)
        valid = torch.arange(int(ordered[0]))[:, None] < ordered               # (T, N)
        self.frame, place = valid.nonzero(as_tuple=True)
        self.sequence = self.order[place]
        sizes = valid.sum(1)
        self.sizes = sizes.tolist()
        self.last = torch.empty_like(lengths)
        self.last[self.order] = (sizes.cumsum(0) - sizes)[ordered - 1] + torch.arange(len(lengths))


class GRU(nn.GRU):
    """`torch.nn.GRU` (unidirectional, frames first, zero initial state) that returns the states alone.

    Under autocast, matrix products are in bfloat16 and everything else stays in float32.
    """

    def forward(self, inputs: Tensor, frames: int | None = None, packing: Packing | None = None) -> Tensor:
        """States of the top layer, (T, N, H), or (R, H) for the rows of a packing.

        Args:
            inputs: (T, N, D), or (R, D) for the rows of a packing, or (1, N, D): the same input at every frame.
            frames: T, where it is not that of `inputs`.
            packing: of the batch; on a CPU alone.
        """
        if inputs.is_cuda:
            return super().forward(inputs.expand(frames or len(inputs), -1, -1))[0]
        count, batch = frames or len(inputs), inputs.shape[-2]
        sizes = packing.sizes if packing else [batch] * count
        if inputs.dim() == 3:
            inputs = inputs[0, packing.order] if packing else inputs.flatten(0, 1)
        states = inputs
        for layer in range(self.num_layers):
            from_input, from_state, input_bias, state_bias = self._flat_weights[4 * layer : 4 * layer + 4]
            to_gates, to_product = state_bias.split((2 * self.hidden_size, self.hidden_size))
            bias = input_bias + functional.pad(to_gates, (0, self.hidden_size))
            states = recur(by_blocks(states, from_input, bias), from_state, to_product, sizes)
        return states if packing else states.unflatten(0, (count, batch))


def by_blocks(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`torch.nn.functional.linear`; under autocast with zero rows up to a multiple of `BLOCK` in between."""
    extra = -len(rows) % BLOCK if torch.is_autocast_enabled("cpu") else 0
    if not extra:
        return functional.linear(rows, weight, bias)
    return functional.linear(functional.pad(rows, (0, 0, 0, extra)), weight, bias)[: len(rows)]


def recur(gates: Tensor, weight: Tensor, bias: Tensor, sizes: Sequence[int]) -> Tensor:
    """The recurrence of one GRU layer, from zero, over sequences laid out frame by frame, the longest first.

        r, z = sigmoid(g_rz + W_rz h),  n = tanh(g_n + r (W_n h + b)),  h <- n + z (h - n)

    Args:
        gates: (R, 3 H), the inputs' part g of the gates r, z, n, with all biases but one; R is the sum of `sizes`.
            Or (N, 3 H), the same at every frame.
        weight, bias: (3 H, H) W and (H,) b.
        sizes: for every frame, the number of sequences that have it: N first, never growing.

    Returns:
        States h of all frames, (R, H), float32 or the precision of `gates` if that is higher.
    """
    half = torch.is_autocast_enabled("cpu")
    precision = torch.promote_types(gates.dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):
        return _Recurrence.apply(gates.to(precision), weight.to(precision), bias.to(precision), sizes, half)


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, bias: Tensor, sizes: Sequence[int], half: bool) -> Tensor:
        rows, units = sum(sizes), weight.shape[1]
        weight = weight.bfloat16() if half else weight
        transposed = weight.T
        states = gates.new_empty(sizes[0] + rows, units)          # those before the first frame come first
        saved_rows = rows if any(ctx.needs_input_grad) else sizes[0]
        saved = gates.new_empty(saved_rows, 4 * units)            # r, z, n and W_n h + b, of one frame without gradient
        state, *results = states.split([sizes[0], *sizes])
        state.zero_()
        for part, store, result in zip(_by_frame(gates, sizes), _by_frame(saved, sizes), results, strict=True):
            state = state[: len(part)]                            # sequences that have ended are the last ones
            product = (state.to(weight.dtype) @ transposed).to(gates.dtype)
            both, new, recurrent = store.split((2 * units, units, units), dim=1)
            torch.add(part[:, : 2 * units], product[:, : 2 * units], out=both).sigmoid_()
            torch.add(product[:, 2 * units :], bias, out=recurrent)
            torch.addcmul(part[:, 2 * units :], both[:, :units], recurrent, out=new)
            new.mul_(2).sigmoid_().mul_(2).sub_(1)                # tanh, in a third of the time
            torch.lerp(new, state, both[:, units:], out=result)
            state = result
        ctx.save_for_backward(states, saved, weight)
        ctx.sizes, ctx.constant = sizes, len(gates) < rows
        return states[sizes[0] :]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        (states, saved, weight), sizes = ctx.saved_tensors, ctx.sizes
        units = weight.shape[1]
        to_gates = saved.new_zeros(sizes[0] if ctx.constant else len(saved), 3 * units)     # the inputs' part
        extra = -len(saved) % BLOCK if weight.dtype == torch.bfloat16 else 0
        all_products = weight.new_empty(len(saved) + extra, 3 * units)                      # the recurrent part
        to_products, spare = all_products.split((len(saved), extra))
        spare.zero_()
        to_bias = saved.new_zeros(units)
        carried = saved.new_zeros(sizes[0], units)
        before = [part[:size] for part, size in zip(states.split([sizes[0], *sizes]), sizes, strict=False)]
        rows = (saved.split(sizes), to_products.split(sizes), upstream.split(sizes))
        frames = list(zip(before, _by_frame(to_gates, sizes), *rows, strict=True))
        for old, to_gate, store, to_product, incoming in reversed(frames):
            reset, update, new, recurrent = store.chunk(4, dim=1)
            state = carried[: len(store)].add_(incoming)
            fresh = torch.addcmul(state, state, update, value=-1)             # gradient of n
            to_new = torch.addcmul(fresh, fresh * new, new, value=-1)         # through tanh
            to_update = (old - new).mul_(fresh).mul_(update)                  # through the sigmoid of z
            to_reset = torch.addcmul(reset, reset, reset, value=-1).mul_(recurrent).mul_(to_new)
            to_recurrent = to_new * reset
            to_gate += torch.cat([to_reset, to_update, to_new], dim=1)
            torch.cat([to_reset, to_update, to_recurrent], dim=1, out=to_product)
            to_bias += to_recurrent.sum(0)
            state.mul_(update).add_(to_product @ weight)
        old = functional.pad(torch.cat(before).to(weight.dtype), (0, 0, 0, extra))
        to_weight = all_products.T @ old
        return to_gates, to_weight.to(saved.dtype), to_bias, None, None


def _by_frame(rows: Tensor, sizes: Sequence[int]) -> Sequence[Tensor]:
    """The rows of each frame; the same ones again and again, if there are no more than the first frame needs."""
    return rows.split(sizes) if len(rows) == sum(sizes) else [rows[:size] for size in sizes]
