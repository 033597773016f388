"""Sizes, initialisation and recursions of the model, against counts and equations written out by hand."""

import math

import pytest
import torch
from torch import nn

from repro.skeleton.model import BidirectionalEncoder, Decoder, Encoder, SkeletonModel

LENGTHS = torch.tensor([9, 1, 4, 12, 2])
GATES = 3


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def padded(features=6, dtype=torch.float64, filling=0.0):
    """Random sequences (5, 12, features) with LENGTHS valid frames and `filling` after them."""
    draws = torch.Generator().manual_seed(0)
    sequences = torch.randn(len(LENGTHS), 12, features, generator=draws, dtype=dtype)
    for sequence, length in zip(sequences, LENGTHS, strict=True):
        sequence[length:] = filling
    return sequences


def recursion(module, inputs, ending):
    """States (T, H) of one layer of a GRU from zero, frame by frame, by its equations."""
    w_x, w_h, b_x, b_h = (getattr(module, f"{name}_{ending}").detach()
                          for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    state, states = torch.zeros(module.hidden_size, dtype=inputs.dtype), []
    for frame in inputs:
        from_input, from_state = (w_x @ frame + b_x).chunk(GATES), (w_h @ state + b_h).chunk(GATES)
        reset = torch.sigmoid(from_input[0] + from_state[0])
        update = torch.sigmoid(from_input[1] + from_state[1])
        candidate = torch.tanh(from_input[2] + reset * from_state[2])
        state = (1 - update) * candidate + update * state
        states.append(state)
    return torch.stack(states)


def gru(module, inputs):
    """Top-layer states (T, H) of a GRU."""
    for layer in range(module.num_layers):
        inputs = recursion(module, inputs, f"l{layer}")
    return inputs


def gru_both_ways(module, inputs):
    """Top-layer states (T, 2 H) of a bidirectional GRU, each layer's directions side by side."""
    for layer in range(module.num_layers):
        backward = recursion(module, inputs.flip(0), f"l{layer}_reverse").flip(0)
        inputs = torch.cat([recursion(module, inputs, f"l{layer}"), backward], dim=1)
    return inputs


@pytest.mark.parametrize(
    ("features", "units", "layers", "encoder", "head", "decoder"),
    [
        (60, 512, 1, 881_664, 65_664, 1_606_716),
        (150, 512, 1, 1_019_904, 65_664, 1_652_886),
        (150, 512, 3, 4_171_776, 65_664, 4_804_758),
        (150, 1024, 1, 3_612_672, 131_200, 6_451_350),
    ],
)
def test_parameter_counts(features, units, layers, encoder, head, decoder):
    with torch.device("meta"):
        model = SkeletonModel(features, units, layers, 128, "linear")
    assert parameters(model.encoder) == encoder
    assert parameters(model.head) == head
    assert parameters(model.decoder) == decoder
    assert parameters(model) == encoder + head + decoder


def test_the_mlp_head_has_a_hidden_layer_of_the_encoders_size():
    head = SkeletonModel(6, 10, 1, 4, "mlp").head
    assert [type(part) for part in head] == [nn.Linear, nn.ReLU, nn.Linear]
    assert parameters(head) == (10 * 10 + 10) + (10 * 4 + 4)


def test_an_unknown_head_is_an_error():
    with pytest.raises(ValueError, match="head='bilinear' is not one of: linear, mlp"):
        SkeletonModel(6, 10, 1, 4, "bilinear")


def assert_uniform(weights, bound):
    assert weights.abs().max() <= bound
    assert weights.abs().max() > 0.97 * bound
    assert weights.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_encoder_weights_are_xavier_uniform(layers):
    torch.manual_seed(0)
    encoder = Encoder(30, 64, layers)
    for name, parameter in encoder.gru.named_parameters():
        if parameter.dim() == 2:
            rows, columns = parameter.shape  # the three gates count as one matrix
            assert rows == GATES * 64
            assert_uniform(parameter, math.sqrt(6 / (rows + columns)))
        else:
            assert "bias" in name
            assert parameter.abs().max() <= 1 / math.sqrt(64)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_decoder_keeps_the_defaults_of_torch(layers):
    torch.manual_seed(0)
    decoder = Decoder(24, 30, 64, layers)
    for _, parameter in decoder.named_parameters():
        assert parameter.abs().max() <= 1 / math.sqrt(64)
        if parameter.dim() == 2:  # Xavier bounds would be 0.15 for the recurrent weights
            assert_uniform(parameter, 1 / math.sqrt(64))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("filling", [0.0, 7.0])
def test_a_readout_both_ways_is_the_state_that_each_direction_ends_in(layers, filling):
    torch.manual_seed(1)
    encoder = BidirectionalEncoder(6, 8, layers).double()
    sequences = padded(filling=filling)
    readouts = encoder(sequences, LENGTHS)
    assert readouts.shape == (5, 8)
    for readout, sequence, length in zip(readouts, sequences, LENGTHS.tolist(), strict=True):
        states = gru_both_ways(encoder.gru, sequence[:length])
        torch.testing.assert_close(readout, torch.cat([states[-1, :4], states[0, 4:]]))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_readout_is_the_state_at_the_last_valid_frame(layers):
    torch.manual_seed(1)
    encoder = Encoder(6, 8, layers).double()
    alone = nn.GRU(6, 8, layers, batch_first=True).double()
    alone.load_state_dict(encoder.gru.state_dict())
    sequences = padded()
    readouts = encoder(sequences, LENGTHS)
    assert readouts.shape == (5, 8)
    for sequence, length, readout in zip(sequences, LENGTHS, readouts, strict=True):
        _, final = alone(sequence[None, :length])
        torch.testing.assert_close(readout, final[-1, 0], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(readout, gru(encoder.gru, sequence[:length])[-1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layers", [1, 3])
def test_what_lies_in_the_padding_does_not_matter(layers):
    torch.manual_seed(2)
    encoder = Encoder(6, 8, layers)
    clean, dirty = padded(dtype=torch.float32).requires_grad_(), padded(dtype=torch.float32, filling=1e3)
    readouts = encoder(clean, LENGTHS)
    assert torch.equal(readouts, encoder(dirty, LENGTHS))
    readouts.sum().backward()
    for gradient, length in zip(clean.grad, LENGTHS, strict=True):
        assert (gradient[length:] == 0).all()
        assert (gradient[:length] != 0).any(1).all()


@pytest.mark.parametrize("size", [8, 5, 1])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_decoder_is_a_recursion_with_constant_input(layers, size):
    torch.manual_seed(4)
    decoder = Decoder(size, 6, 8, layers).double()
    inputs = torch.randn(4, size, dtype=torch.float64)
    decoded = decoder(inputs, 7)
    assert decoded.shape == (4, 7, 6)
    for given, found in zip(inputs, decoded, strict=True):
        states = gru(decoder.gru, given.expand(7, size))
        expected = torch.stack([decoder.output.weight @ state + decoder.output.bias for state in states])
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_embeddings_have_unit_length_and_the_heads_direction(head):
    torch.manual_seed(6)
    model = SkeletonModel(6, 8, 1, 5, head)
    readouts = 100 * torch.randn(20, 8)
    embeddings = model.embed(readouts)
    assert embeddings.shape == (20, 5)
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(20))
    torch.testing.assert_close((embeddings * model.head(readouts)).sum(1), model.head(readouts).norm(dim=1))


@pytest.mark.parametrize(("kind", "size"), [("readout", 8), ("embedding", 5)])
def test_what_is_decoded_is_the_readout_or_its_embedding(kind, size):
    torch.manual_seed(7)
    model = SkeletonModel(6, 8, 1, 5, "mlp", decoder_input=kind)
    readouts = 3 * torch.randn(4, 8)
    expected = {"readout": readouts, "embedding": model.embed(readouts)}[kind]
    assert expected.shape == (4, size)
    assert torch.equal(model.decode(readouts, 9), model.decoder(expected, 9))
    with pytest.raises(ValueError, match="decoder_input='key' is not one of: readout, embedding"):
        SkeletonModel(6, 8, 1, 5, "mlp", decoder_input="key")
