"""A GRU that computes what `torch.nn.GRU` computes, faster on a CPU.

Three things are done once per sequence instead of once per frame: the product of the weights with an input that stays
the same, the gradient of the recurrent weights, and, in bfloat16, the cast of the weights. On CUDA, cuDNN does it.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional


class GRU(nn.GRU):
    """`torch.nn.GRU` (unidirectional, frames first, zero initial state) that returns the states alone.

    Under autocast, matrix products are in bfloat16 and everything else stays in float32.
    """

    def __init__(self, features: int, units: int, layers: int) -> None:
        super().__init__(features, units, layers)

    def forward(self, inputs: Tensor, frames: int | None = None) -> Tensor:
        """States of the top layer, (T, N, H).

        Args:
            inputs: (T, N, D), or (1, N, D) with `frames`: the same input at every frame.
            frames: T, where it is not that of `inputs`.
        """
        if inputs.is_cuda:
            return super().forward(inputs.expand(frames or len(inputs), -1, -1))[0]
        states = inputs
        for layer in range(self.num_layers):
            from_input, from_state, input_bias, state_bias = self._flat_weights[4 * layer : 4 * layer + 4]
            gates = functional.linear(states.contiguous(), from_input, input_bias)
            states = recur(gates.expand(frames or len(gates), -1, -1), from_state, state_bias)
        return states


def recur(gates: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The recurrence of one GRU layer, from zero.

        r, z = sigmoid(g_rz + W_rz h + b_rz),  n = tanh(g_n + r (W_n h + b_n)),  h <- n + z (h - n)

    Args:
        gates: (T, N, 3 H), the inputs' part g of the gates r, z, n.
        weight: (3 H, H), W.
        bias: (3 H,), b.

    Returns:
        States h of all frames, (T, N, H), float32 or the precision of `gates` if that is higher.
    """
    half = torch.is_autocast_enabled("cpu")
    precision = torch.promote_types(gates.dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):
        return _Recurrence.apply(gates.to(precision), weight.to(precision), bias.to(precision), half)


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, bias: Tensor, half: bool) -> Tensor:
        frames, batch, units = len(gates), gates.shape[1], weight.shape[1]
        weight = weight.bfloat16() if half else weight
        transposed = weight.T
        states = gates.new_empty(frames + 1, batch, units)       # states[t] is the state before frame t
        states[0] = 0
        saved = gates.new_empty(frames, batch, 4 * units)         # r, z, n and W_n h + b_n
        for t in range(frames):
            product = torch.add(bias, states[t].to(weight.dtype) @ transposed)
            both, new, recurrent = saved[t].split((2 * units, units, units), dim=1)
            torch.add(gates[t, :, : 2 * units], product[:, : 2 * units], out=both).sigmoid_()
            recurrent.copy_(product[:, 2 * units :])
            torch.addcmul(gates[t, :, 2 * units :], both[:, :units], recurrent, out=new).tanh_()
            torch.lerp(new, states[t], both[:, units:], out=states[t + 1])
        ctx.save_for_backward(states, saved, weight)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        states, saved, weight = ctx.saved_tensors
        frames, batch, units = len(saved), saved.shape[1], weight.shape[1]
        to_gates = saved.new_empty(frames, batch, 3 * units)                  # the inputs' part
        to_products = weight.new_empty(frames, batch, 3 * units)              # the recurrent part
        to_bias = saved.new_zeros(3 * units)
        carried = saved.new_zeros(batch, units)
        for t in reversed(range(frames)):
            reset, update, new, recurrent = saved[t].chunk(4, dim=1)
            to_reset, to_update, to_new = to_gates[t].chunk(3, dim=1)
            state = carried.add_(upstream[t])
            fresh = state - state * update                                    # gradient of n
            torch.addcmul(fresh, fresh * new, new, value=-1, out=to_new)      # through tanh
            torch.mul((states[t] - new).mul_(fresh), update, out=to_update)   # through the sigmoid of z
            torch.mul(to_new * recurrent, reset - reset * reset, out=to_reset)
            product = to_gates[t].clone()
            product[:, 2 * units :] *= reset
            to_bias += product.sum(0)
            to_products[t] = product
            carried = state.mul_(update).add_(to_products[t] @ weight)
        flat = to_products.flatten(0, 1)
        to_weight = flat.T @ states[:-1].flatten(0, 1).to(weight.dtype)
        return to_gates, to_weight.to(saved.dtype), to_bias, None
