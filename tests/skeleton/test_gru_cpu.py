"""The GRU of hand-written steps against torch's own: states, gradients, packing."""

import pytest
import torch
from torch import nn

from repro.skeleton.gru_cpu import GRU, Packing


def pair(features, units, layers, dtype=torch.float64):
    """Ours and torch's with the same weights."""
    torch.manual_seed(0)
    theirs = nn.GRU(features, units, layers).to(dtype)
    ours = GRU(features, units, layers).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def inputs_twice(*shape, dtype=torch.float64):
    values = torch.randn(*shape, dtype=dtype)
    return values.clone().requires_grad_(), values.clone().requires_grad_()


def compare(ours, theirs, mine, other, inputs, copies):
    """Equal states, and equal gradients of inputs and weights."""
    torch.testing.assert_close(mine, other, atol=1e-12, rtol=1e-12)
    weights = torch.randn_like(other)
    (mine * weights).sum().backward()
    (other * weights).sum().backward()
    assert theirs.weight_ih_l0.grad.abs().max() > 0
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-11, rtol=1e-12, msg=name)
    torch.testing.assert_close(inputs.grad, copies.grad, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("frames, batch, features, units, layers", [(1, 1, 1, 1, 1), (7, 3, 5, 4, 1), (6, 2, 3, 5, 3)])
def test_equals_torch(frames, batch, features, units, layers):
    ours, theirs = pair(features, units, layers)
    inputs, copies = inputs_twice(frames, batch, features)
    compare(ours, theirs, ours(inputs), theirs(copies)[0], inputs, copies)


LENGTH_LISTS = [[1], [4, 4], [3, 7, 1, 7, 2], [9, 1, 1]]


@pytest.mark.parametrize("lengths", LENGTH_LISTS, ids=str)
@pytest.mark.parametrize("layers", [1, 3])
def test_packed_states_and_gradients_are_those_of_each_sequence_alone(lengths, layers):
    ours, theirs = pair(4, 5, layers)
    packing, lengths = Packing(torch.tensor(lengths)), torch.tensor(lengths)
    inputs, copies = inputs_twice(len(lengths), int(lengths.max()), 4)
    expected = torch.zeros(*inputs.shape[:2], 5, dtype=torch.float64)
    for row, length in enumerate(lengths):
        expected[row, :length] = theirs(copies[row, :length])[0]
    states = ours(inputs[packing.sequence, packing.frame], packing=packing)
    torch.testing.assert_close(states[packing.last], expected[range(len(lengths)), lengths - 1])
    found = torch.zeros_like(expected).index_put((packing.sequence, packing.frame), states)
    compare(ours, theirs, found, expected, inputs, copies)


@pytest.mark.parametrize("lengths", LENGTH_LISTS, ids=str)
def test_packed_constant_input_equals_the_input_repeated(lengths):
    ours, theirs = pair(4, 5, 2)
    packing = Packing(torch.tensor(lengths))
    inputs, copies = inputs_twice(1, len(lengths), 4)
    expected = theirs(copies.expand(max(lengths), -1, -1))[0][packing.frame, packing.sequence]
    compare(ours, theirs, ours(inputs, packing=packing), expected, inputs, copies)


def test_bfloat16_products_stay_close_to_float32():
    ours, theirs = pair(20, 64, 1, torch.float32)
    inputs = torch.randn(30, 8, 20)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states = ours(inputs)
    exact = theirs(inputs)[0]
    assert states.dtype == torch.float32 and 0 < (states - exact).abs().max() < 0.03
    states.square().mean().backward()
    exact.square().mean().backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (mine.grad - other.grad).norm() < 0.03 * other.grad.norm()
