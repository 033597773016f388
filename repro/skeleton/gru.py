"""A GRU that computes what `torch.nn.GRU` computes, faster on a CPU.

Three things are done once per sequence instead of once per frame: the product of the weights with an input that stays
the same, the gradient of the recurrent weights, and, in bfloat16, the cast of the weights. On CUDA, cuDNN does it.

Sequences of unequal length may be packed: then nothing is computed for their padding.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional


class Packing:
    """The valid frames of a padded batch as rows: frame by frame, and in each frame the longest sequence first.

    Args:
        lengths: (N,) int64 on the CPU, at least 1 each.

    Attributes:
        sizes: for every frame, the number of sequences that have it: N first, never growing.
        sequence, frame: (R,) where a row lies in the padded batch (N, T, ...); R is the sum of the lengths.
        last: (N,) the row of each sequence's last frame.
    """

    def __init__(self, lengths: Tensor) -> None:
        ordered, order = lengths.sort(descending=True, stable=True)
        valid = torch.arange(int(ordered[0]))[:, None] < ordered               # (T, N)
        self.frame, place = valid.nonzero(as_tuple=True)
        self.sequence = order[place]
        sizes = valid.sum(1)
        self.sizes = sizes.tolist()
        self.last = torch.empty_like(lengths)
        self.last[order] = (sizes.cumsum(0) - sizes)[ordered - 1] + torch.arange(len(lengths))


class GRU(nn.GRU):
    """`torch.nn.GRU` (unidirectional, frames first, zero initial state) that returns the states alone.

    Under autocast, matrix products are in bfloat16 and everything else stays in float32.
    """

    def __init__(self, features: int, units: int, layers: int) -> None:
        super().__init__(features, units, layers)

    def forward(self, inputs: Tensor, frames: int | None = None, packing: Packing | None = None) -> Tensor:
        """States of the top layer, (T, N, H), or (R, H) for the rows of a packing.

        Args:
            inputs: (T, N, D), or (R, D) for the rows of a packing, or (1, N, D): the same input at every frame.
            frames: T, where it is not that of `inputs`.
            packing: of the batch; on a CPU alone.
        """
        if inputs.is_cuda:
            return super().forward(inputs.expand(frames or len(inputs), -1, -1))[0]
        states = inputs
        for layer in range(self.num_layers):
            from_input, from_state, input_bias, state_bias = self._flat_weights[4 * layer : 4 * layer + 4]
            gates = functional.linear(states.contiguous(), from_input, input_bias)
            if packing is None:
                gates = gates.expand(frames or len(gates), -1, -1)
            elif gates.dim() == 3:
                gates = gates[0, packing.sequence]
            states = recur(gates, from_state, state_bias, packing.sizes if packing else None)
        return states


def recur(gates: Tensor, weight: Tensor, bias: Tensor, sizes: Sequence[int] | None = None) -> Tensor:
    """The recurrence of one GRU layer, from zero.

        r, z = sigmoid(g_rz + W_rz h + b_rz),  n = tanh(g_n + r (W_n h + b_n)),  h <- n + z (h - n)

    Args:
        gates: (T, N, 3 H), the inputs' part g of the gates r, z, n; or (R, 3 H), the rows of a packing.
        weight: (3 H, H), W.
        bias: (3 H,), b.
        sizes: of the packing.

    Returns:
        States h of all frames, (T, N, H) or (R, H), float32 or the precision of `gates` if that is higher.
    """
    half = torch.is_autocast_enabled("cpu")
    precision = torch.promote_types(gates.dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):
        return _Recurrence.apply(gates.to(precision), weight.to(precision), bias.to(precision), half, sizes)


def _by_frame(rows: Tensor, sizes: Sequence[int] | None) -> Sequence[Tensor]:
    """The part of each frame."""
    return rows.unbind(0) if sizes is None else rows.split(sizes)


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, weight: Tensor, bias: Tensor, half: bool, packed: Sequence[int] | None
    ) -> Tensor:
        inputs, units = _by_frame(gates, packed), weight.shape[1]
        sizes = [len(part) for part in inputs]
        weight = weight.bfloat16() if half else weight
        transposed = weight.T
        states = gates.new_empty(sizes[0] + sum(sizes), units)    # those before the first frame come first
        saved = gates.new_empty(sum(sizes), 4 * units)            # r, z, n and W_n h + b_n
        state, *results = states.split([sizes[0], *sizes])
        state.zero_()
        for part, kept, result in zip(inputs, saved.split(sizes), results, strict=True):
            state = state[: len(part)]                            # sequences that have ended are the last ones
            product = torch.add(bias, state.to(weight.dtype) @ transposed)
            both, new, recurrent = kept.split((2 * units, units, units), dim=1)
            torch.add(part[:, : 2 * units], product[:, : 2 * units], out=both).sigmoid_()
            recurrent.copy_(product[:, 2 * units :])
            torch.addcmul(part[:, 2 * units :], both[:, :units], recurrent, out=new).tanh_()
            torch.lerp(new, state, both[:, units:], out=result)
            state = result
        ctx.save_for_backward(states, saved, weight)
        ctx.sizes, ctx.packed = sizes, packed
        return states[sizes[0] :].view(*gates.shape[:-1], units)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        (states, saved, weight), sizes = ctx.saved_tensors, ctx.sizes
        units = weight.shape[1]
        to_gates = saved.new_empty(len(saved), 3 * units)                     # the inputs' part
        to_products = weight.new_empty(len(saved), 3 * units)                 # the recurrent part
        to_bias = saved.new_zeros(3 * units)
        carried = saved.new_zeros(sizes[0], units)
        before = [part[:size] for part, size in zip(states.split([sizes[0], *sizes]), sizes, strict=False)]
        parts = (before, saved.split(sizes), to_gates.split(sizes), to_products.split(sizes))
        parts = (*parts, _by_frame(upstream, ctx.packed))
        for old, kept, to_gate, to_product, incoming in reversed(list(zip(*parts, strict=True))):
            reset, update, new, recurrent = kept.chunk(4, dim=1)
            to_reset, to_update, to_new = to_gate.chunk(3, dim=1)
            state = carried[: len(kept)].add_(incoming)
            fresh = state - state * update                                    # gradient of n
            torch.addcmul(fresh, fresh * new, new, value=-1, out=to_new)      # through tanh
            torch.mul((old - new).mul_(fresh), update, out=to_update)         # through the sigmoid of z
            torch.mul(to_new * recurrent, reset - reset * reset, out=to_reset)
            product = to_gate.clone()
            product[:, 2 * units :] *= reset
            to_bias += product.sum(0)
            to_product.copy_(product)
            state.mul_(update).add_(to_product @ weight)
        old = states[: len(saved)] if ctx.packed is None else torch.cat(before)
        to_weight = to_products.T @ old.to(weight.dtype)
        return to_gates.view(*upstream.shape[:-1], 3 * units), to_weight.to(saved.dtype), to_bias, None, None
