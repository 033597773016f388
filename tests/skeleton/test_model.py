"""The model against torch's own GRU, sequence by sequence: sizes, initialisation, recursions, packing."""

import math

import pytest
import torch
from torch import nn

from repro.skeleton.model import BidirectionalEncoder, Decoder, Encoder, SkeletonModel
from repro.skeleton.recipe import SkeletonRecipe

SMALL = SkeletonRecipe(units=8, projection=5, head="mlp")

LENGTHS = torch.tensor([9, 1, 4, 12, 2])


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


# ---------------------------------------------------------------------------------------------- sizes and beginnings


@pytest.mark.parametrize(("features", "units", "layers", "encoder", "head", "decoder"), [
    (60, 512, 1, 881_664, 65_664, 1_606_716), (150, 512, 1, 1_019_904, 65_664, 1_652_886),
    (150, 512, 3, 4_171_776, 65_664, 4_804_758), (150, 1024, 1, 3_612_672, 131_200, 6_451_350),
])
def test_parameter_counts(features, units, layers, encoder, head, decoder):
    with torch.device("meta"):
        model = SkeletonModel(SkeletonRecipe(units=units, layers=layers), features, ())
    assert [parameters(part) for part in (model.encoder, model.head, model.decoder)] == [encoder, head, decoder]
    assert parameters(model) == encoder + head + decoder


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


# ---------------------------------------------------------------------------------------------- readouts, sequences


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


@pytest.mark.parametrize("size", [8, 5, 1])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_decoder_is_a_recursion_with_constant_input(layers, size):
    torch.manual_seed(4)
    decoder = Decoder(size, 6, 8, layers).double()
    inputs = torch.randn(4, size, dtype=torch.float64)
    decoded = decoder(inputs, 7)
    assert decoded.shape == (4, 7, 6)
    for given, found in zip(inputs, decoded, strict=True):
        states = nn.GRU.forward(decoder.gru, given.expand(7, size))[0]
        expected = torch.stack([decoder.output.weight @ state + decoder.output.bias for state in states])
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_embeddings_have_unit_length_and_the_heads_direction(head):
    torch.manual_seed(6)
    model = SkeletonModel(SMALL.replace(head=head), 6, ())
    assert [type(part) for part in model.head.modules()] == {
        "linear": [nn.Linear], "mlp": [nn.Sequential, nn.Linear, nn.ReLU, nn.Linear]}[head]
    readouts = 100 * torch.randn(20, 8)
    embeddings = model.embed(readouts)
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(20))
    torch.testing.assert_close((embeddings * model.head(readouts)).sum(1), model.head(readouts).norm(dim=1))
