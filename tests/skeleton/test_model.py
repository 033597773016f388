"""The model against torch's own GRU, sequence by sequence: sizes, initialisation, recursions, packing."""

import math

import pytest
import torch
from torch import nn

from repro.skeleton.model import GRU, BidirectionalEncoder, Decoder, Encoder, Packing, SkeletonModel

LENGTHS = torch.tensor([9, 1, 4, 12, 2])


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


# ---------------------------------------------------------------------------------------------- the recurrence


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
def test_a_packing_against_torchs(lengths):
    lengths = torch.tensor(lengths)
    packing, numbers = Packing(lengths), torch.arange(int(lengths.max()) * len(lengths)).view(len(lengths), -1)
    theirs = nn.utils.rnn.pack_padded_sequence(numbers, lengths, batch_first=True, enforce_sorted=False)
    assert packing.sizes == theirs.batch_sizes.tolist()
    assert (packing.frame < lengths[packing.sequence]).all() and len(packing.frame) == lengths.sum()
    assert numbers[packing.sequence, packing.frame].sort().values.equal(theirs.data.sort().values)
    assert packing.sequence[packing.last].tolist() == list(range(len(lengths)))
    assert packing.frame[packing.last].tolist() == (lengths - 1).tolist()


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


# ---------------------------------------------------------------------------------------------- sizes and beginnings


@pytest.mark.parametrize(("features", "units", "layers", "encoder", "head", "decoder"), [
    (60, 512, 1, 881_664, 65_664, 1_606_716), (150, 512, 1, 1_019_904, 65_664, 1_652_886),
    (150, 512, 3, 4_171_776, 65_664, 4_804_758), (150, 1024, 1, 3_612_672, 131_200, 6_451_350),
])
def test_parameter_counts(features, units, layers, encoder, head, decoder):
    with torch.device("meta"):
        model = SkeletonModel(features, units, layers, 128, "linear")
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
    model = SkeletonModel(6, 8, 1, 5, head)
    assert [type(part) for part in model.head.modules()] == {
        "linear": [nn.Linear], "mlp": [nn.Sequential, nn.Linear, nn.ReLU, nn.Linear]}[head]
    readouts = 100 * torch.randn(20, 8)
    embeddings = model.embed(readouts)
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(20))
    torch.testing.assert_close((embeddings * model.head(readouts)).sum(1), model.head(readouts).norm(dim=1))


@pytest.mark.parametrize("kind", ["readout", "embedding"])
def test_what_is_decoded_is_the_readout_or_its_embedding(kind):
    torch.manual_seed(7)
    model = SkeletonModel(6, 8, 1, 5, "mlp", decoder_input=kind)
    readouts = 3 * torch.randn(4, 8)
    expected = {"readout": readouts, "embedding": model.embed(readouts)}[kind]
    assert torch.equal(model.decode(readouts, 9), model.decoder(expected, 9))
