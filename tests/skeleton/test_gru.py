"""Our recurrence against torch.nn.GRU, values and gradients."""

import pytest
import torch

from repro.skeleton.gru import GRU, Packing


def pair(features, units, layers, dtype=torch.float64):
    """Ours and torch's with the same weights."""
    torch.manual_seed(0)
    theirs = torch.nn.GRU(features, units, layers).to(dtype)
    ours = GRU(features, units, layers).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def compare(ours, theirs, mine, other, tolerance=1e-12):
    torch.testing.assert_close(mine, other, atol=tolerance, rtol=tolerance)
    weights = torch.randn_like(other)
    (mine * weights).sum().backward()
    (other * weights).sum().backward()
    assert theirs.weight_ih_l0.grad.abs().max() > 0
    for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=10 * tolerance, rtol=tolerance, msg=name)


@pytest.mark.parametrize("frames, batch, features, units, layers", [(1, 1, 1, 1, 1), (7, 3, 5, 4, 1), (6, 2, 3, 5, 3)])
def test_equals_torch(frames, batch, features, units, layers):
    ours, theirs = pair(features, units, layers)
    inputs = torch.randn(frames, batch, features, dtype=torch.float64, requires_grad=True)
    copy = inputs.detach().clone().requires_grad_()
    compare(ours, theirs, ours(inputs), theirs(copy)[0])
    torch.testing.assert_close(inputs.grad, copy.grad, atol=1e-12, rtol=1e-12)


LENGTHS = [[1], [4, 4], [3, 7, 1, 7, 2], [9, 1, 1]]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_a_packing_against_torchs(lengths):
    lengths = torch.tensor(lengths)
    packing, numbers = Packing(lengths), torch.arange(int(lengths.max()) * len(lengths)).view(len(lengths), -1)
    theirs = torch.nn.utils.rnn.pack_padded_sequence(numbers, lengths, batch_first=True, enforce_sorted=False)
    assert packing.sizes == theirs.batch_sizes.tolist()
    assert (packing.frame < lengths[packing.sequence]).all() and len(packing.frame) == lengths.sum()
    assert numbers[packing.sequence, packing.frame].sort().values.equal(theirs.data.sort().values)
    assert packing.sequence[packing.last].tolist() == list(range(len(lengths)))
    assert packing.frame[packing.last].tolist() == (lengths - 1).tolist()


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("layers", [1, 3])
def test_packed_states_and_gradients_are_those_of_each_sequence_alone(lengths, layers):
    ours, theirs = pair(4, 5, layers)
    packing, lengths = Packing(torch.tensor(lengths)), torch.tensor(lengths)
    inputs = torch.randn(len(lengths), int(lengths.max()), 4, dtype=torch.float64, requires_grad=True)
    copy = inputs.detach().clone().requires_grad_()
    expected = torch.zeros(*inputs.shape[:2], 5, dtype=torch.float64)
    for row, length in enumerate(lengths):
        expected[row, :length] = theirs(copy[row, :length])[0]
    states = ours(inputs[packing.sequence, packing.frame], packing=packing)
    found = torch.zeros_like(expected).index_put((packing.sequence, packing.frame), states)
    compare(ours, theirs, found, expected)
    torch.testing.assert_close(inputs.grad, copy.grad, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_packed_constant_input_equals_the_input_repeated(lengths):
    ours, theirs = pair(4, 5, 2)
    packing, lengths = Packing(torch.tensor(lengths)), torch.tensor(lengths)
    inputs = torch.randn(1, len(lengths), 4, dtype=torch.float64, requires_grad=True)
    copy = inputs.detach().clone().requires_grad_()
    expected = theirs(copy.expand(int(lengths.max()), -1, -1))[0][packing.frame, packing.sequence]
    compare(ours, theirs, ours(inputs, packing=packing), expected)
    torch.testing.assert_close(inputs.grad, copy.grad, atol=1e-12, rtol=1e-12)


def test_equal_lengths_packed_are_the_batch_to_the_last_bit():
    ours, _ = pair(4, 5, 1, torch.float32)
    inputs, packing = torch.randn(6, 3, 4), Packing(torch.tensor([6, 6, 6]))
    packed = ours(inputs.flatten(0, 1), packing=packing)
    assert torch.equal(packed.view(6, 3, 5), ours(inputs))
    with pytest.raises(ValueError, match=r"inputs have 6 frames; with a packing they should be rows \(R, D\)"):
        ours(inputs, packing=packing)


def test_bfloat16_products_stay_close_to_float32():
    ours, theirs = pair(20, 64, 1, torch.float32)
    inputs = torch.randn(30, 8, 20)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states = ours(inputs)
    exact = theirs(inputs)[0]
    assert states.dtype == torch.float32
    assert 0 < (states - exact).abs().max() < 0.03
    states.square().mean().backward()
    exact.square().mean().backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (mine.grad - other.grad).norm() < 0.03 * other.grad.norm()


@pytest.mark.parametrize("lengths", [[3, 7, 1, 7, 2], [150, 106], [200, 57]], ids=str)
def test_products_in_bfloat16_take_few_sizes_and_change_nothing(lengths, monkeypatch):
    packing, sizes, linear = Packing(torch.tensor(lengths)), [], torch.nn.functional.linear

    def recorded(rows, weight, bias):
        sizes.append(len(rows))
        return linear(rows, weight, bias)

    def gradients():
        ours, _ = pair(6, 8, 2, torch.float32)
        torch.manual_seed(1)
        inputs = torch.randn(sum(lengths), 6, requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states = ours(inputs, packing=packing)
        states.square().sum().backward()
        return [states, inputs.grad, *(parameter.grad for parameter in ours.parameters())]

    monkeypatch.setattr("torch.nn.functional.linear", recorded)
    blocks = gradients()
    assert set(sizes) == {-(-sum(lengths) // 256) * 256}
    monkeypatch.setattr("repro.skeleton.gru.BLOCK", 1)
    for mine, other in zip(blocks, gradients(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0.02, atol=0.02 * other.abs().max().item())


def test_huge_inputs_saturate_and_stay_finite():
    ours, _ = pair(4, 5, 1, torch.float32)
    inputs = torch.full((5, 2, 4), 1e30, requires_grad=True)
    states = ours(inputs)
    states.sum().backward()
    assert states.isfinite().all()
    assert inputs.grad.isfinite().all()
