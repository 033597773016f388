"""The GRU of hand-written steps against torch's own: states, gradients, packing."""

import pytest
import torch
from torch import nn

from repro.skeleton.gru_cpu import GRU, Packing


@pytest.mark.parametrize(("lengths", "layers"), [([1], 1), ([4, 4], 3), ([3, 7, 1, 7, 2], 3), ([9, 1, 1], 1)])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_states_and_gradients_are_those_of_torch(lengths, layers, constant, packed):
    """A state depends on no later frame: those of packed sequences are the valid ones of padded sequences."""
    torch.manual_seed(0)
    ours, theirs = GRU(4, 5, layers).double(), nn.GRU(4, 5, layers).double()
    ours.load_state_dict(theirs.state_dict())
    frames, lengths = max(lengths), torch.tensor(lengths)
    inputs = torch.randn(1 if constant else frames, len(lengths), 4, dtype=torch.float64, requires_grad=True)
    expected = theirs(inputs.expand(frames, -1, -1))[0]
    if packed:
        packing, last = Packing(lengths), expected[lengths - 1, range(len(lengths))]
        valid = packing.frame, packing.sequence
        assert sorted(zip(*map(torch.Tensor.tolist, valid), strict=True)) == [
            (frame, row) for frame in range(frames) for row, length in enumerate(lengths) if frame < length]
        states, expected = ours(inputs if constant else inputs[valid], packing=packing), expected[valid]
        torch.testing.assert_close(states[packing.last], last)
    else:
        states = ours(inputs, frames if constant else None)
    torch.testing.assert_close(states, expected, atol=1e-12, rtol=1e-12)
    weights = torch.randn_like(expected)
    gradients = [torch.autograd.grad((made * weights).sum(), [inputs, *network.parameters()])
                 for made, network in ((states, ours), (expected, theirs))]
    for own, other in zip(*gradients, strict=True):
        torch.testing.assert_close(own, other, atol=1e-11, rtol=1e-11)
