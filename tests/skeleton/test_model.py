"""The encoders against torch's own GRU, sequence by sequence, and how they start."""

import math

import pytest
import torch
from torch import nn

from repro.skeleton.model import BidirectionalEncoder, Decoder, Encoder

LENGTHS = torch.tensor([9, 1, 4, 12, 2])


@pytest.mark.parametrize("layers", [1, 3])
def test_encoder_weights_are_xavier_uniform_and_the_decoder_keeps_the_defaults_of_torch(layers):
    torch.manual_seed(0)
    for module, xavier in ((Encoder(30, 64, layers).gru, True), (Decoder(24, 30, 64, layers), False)):
        for parameter in module.parameters():
            # the three gates count as one matrix; Xavier's bound of the recurrent weights is 0.15
            bound = math.sqrt(6 / sum(parameter.shape)) if xavier and parameter.dim() == 2 else 1 / math.sqrt(64)
            assert parameter.abs().max() <= bound
            if parameter.dim() == 2:
                assert parameter.abs().max() > 0.97 * bound
                assert parameter.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def padded(features=6, dtype=torch.float64, filling=0.0):
    """Random sequences (5, 12, features) with LENGTHS valid frames and `filling` after them."""
    draws = torch.Generator().manual_seed(0)
    sequences = torch.randn(len(LENGTHS), 12, features, generator=draws, dtype=dtype)
    for sequence, length in zip(sequences, LENGTHS, strict=True):
        sequence[length:] = filling
    return sequences


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("kind", "filling"), [(Encoder, 0.0), (Encoder, 1e3), (BidirectionalEncoder, 7.0)])
def test_a_readout_is_the_state_that_each_direction_ends_in_whatever_the_padding(kind, filling, layers):
    torch.manual_seed(1)
    encoder, sequences = kind(6, 8, layers).double(), padded(filling=filling).requires_grad_()
    readouts = encoder(sequences, LENGTHS)
    assert readouts.shape == (5, 8)
    for readout, sequence, length in zip(readouts, sequences, LENGTHS.tolist(), strict=True):
        states = nn.GRU.forward(encoder.gru, sequence[:length].detach())[0]
        expected = torch.cat([states[-1, :4], states[0 if kind is BidirectionalEncoder else -1, 4:]])
        torch.testing.assert_close(readout, expected, rtol=1e-12, atol=1e-12)
    readouts.sum().backward()
    for gradient, length in zip(sequences.grad, LENGTHS, strict=True):
        assert (gradient[length:] == 0).all() and (gradient[:length] != 0).any(1).all()
