"""The momentum encoder and its shuffled keys against cases worked out by hand and plain loops."""

import copy

import pytest
import torch
from torch import nn

from repro.contrast.momentum import GhostBatchNorm2d, MomentumEncoder, encode_shuffled


def scalar(value):
    """An encoder x -> value x."""
    encoder = nn.Linear(1, 1, bias=False)
    nn.init.constant_(encoder.weight, value)
    return encoder


def encoder_with_head(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))


def test_every_part_is_copied_at_the_start():
    encoder = encoder_with_head()
    twin = MomentumEncoder(encoder, 0.9).twin
    for (name, copied), (_, learned) in zip(twin.named_parameters(), encoder.named_parameters(), strict=True):
        assert torch.equal(copied, learned), name
        assert copied.data_ptr() != learned.data_ptr(), name
        assert learned.requires_grad
        assert not copied.requires_grad


def test_update_follows_the_sequence_worked_out_by_hand():
    encoder = scalar(1.0)
    follower = MomentumEncoder(encoder, 0.75)
    values = []
    for learned in (5.0, 5.0, -3.0):  # 0.75 * 1 + 0.25 * 5 = 2, then 2.75, then 2.0625 - 0.75
        nn.init.constant_(encoder.weight, learned)
        follower.update(encoder)
        values.append(follower.twin.weight.item())
    assert values == [2.0, 2.75, 1.3125]


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.999, 1.0])
def test_update_equals_a_loop(momentum):
    encoder, learned = encoder_with_head(0), encoder_with_head(1)
    follower = MomentumEncoder(encoder, momentum)
    follower.update(learned)
    for moved, start, goal in zip(
        follower.twin.parameters(), encoder.parameters(), learned.parameters(), strict=True
    ):
        torch.testing.assert_close(moved, momentum * start + (1 - momentum) * goal, check_stride=True)


def test_update_inside_autocast_is_exact_and_takes_effect():
    encoder, learned, x = encoder_with_head(0), encoder_with_head(1), torch.randn(4, 3)
    inside, outside = MomentumEncoder(encoder, 0.5), MomentumEncoder(encoder, 0.5)
    outside.update(learned)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside(x)
        inside.update(learned)
        after = inside(x)
    for one, other in zip(inside.twin.parameters(), outside.twin.parameters(), strict=True):
        assert one.dtype == torch.float32
        assert torch.equal(one, other)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(after, outside(x))


def test_forward_makes_no_graph_and_passes_arguments_on():
    class Scaled(nn.Linear):
        def forward(self, x, *, factor):
            return factor * super().forward(x)

    encoder, x = Scaled(3, 2), torch.randn(4, 3, requires_grad=True)
    key = MomentumEncoder(encoder, 0.9)(x, factor=2)
    assert not key.requires_grad
    torch.testing.assert_close(key, encoder(x, factor=2).detach())


def test_buffers_come_from_the_twins_own_forward():
    encoder = encoder_with_head()
    follower = MomentumEncoder(encoder, 0.9)
    encoder(torch.randn(8, 3) + 5)
    follower.update(encoder)
    assert (follower.twin[1].running_mean == 0).all()
    follower(torch.randn(8, 3))
    assert follower.twin[1].num_batches_tracked == 1


def test_state_holds_the_twin_alone_and_round_trips():
    encoder, learned = encoder_with_head(0), encoder_with_head(1)
    follower = MomentumEncoder(encoder, 0.5)
    follower.update(learned)
    state = follower.state_dict()
    assert list(state) == [f"twin.{name}" for name in encoder.state_dict()]
    restored = MomentumEncoder(learned, 0.5)
    restored.load_state_dict(state)
    for name, value in restored.state_dict().items():
        assert torch.equal(value, state[name]), name


@pytest.mark.parametrize("momentum", [-0.1, 1.1, float("nan")])
def test_momentum_outside_its_range_raises(momentum):
    with pytest.raises(ValueError, match=f"momentum={momentum} should be between 0 and 1"):
        MomentumEncoder(scalar(1.0), momentum)


@pytest.mark.parametrize("other", [nn.Linear(3, 5), nn.Linear(3, 4, bias=False), nn.Linear(1, 4)])
def test_updating_with_another_encoder_raises_and_changes_nothing(other):
    follower = MomentumEncoder(nn.Linear(3, 4), 0.5)
    before = follower.twin.weight.clone()
    with pytest.raises(ValueError, match=r"of the twin and .* of the encoder differ in number or shape"):
        follower.update(other)
    assert torch.equal(follower.twin.weight, before)


@pytest.mark.parametrize("samples", [1, 2, 12])
def test_shuffled_keys_by_a_loop(samples):
    images = torch.randn(samples, 3, 4, 4)
    ghost = GhostBatchNorm2d(3, 1 if samples == 1 else 2)
    keys = encode_shuffled(lambda rows: ghost(rows).flatten(1), images, generator=torch.Generator().manual_seed(3))
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(3)).tolist()
    shuffled = copy.deepcopy(ghost)(torch.stack([images[place] for place in order])).flatten(1)
    assert keys.shape == (samples, 48)
    for key, place in zip(shuffled, order, strict=True):
        assert torch.equal(keys[place], key)
    assert (samples == 12) == (not torch.allclose(keys, ghost(images).flatten(1)))  # company matters


def test_shuffling_changes_company_from_call_to_call_and_follows_its_generator():
    images, seen = torch.arange(20.0)[:, None], []
    generator = torch.Generator().manual_seed(0)
    start = generator.get_state()
    before = torch.get_rng_state()
    for _ in range(2):
        keys = encode_shuffled(lambda rows: seen.append(rows) or 2 * rows, images, generator=generator)
        assert torch.equal(keys, 2 * images)
    assert not torch.equal(seen[0], seen[1])
    encode_shuffled(lambda rows: seen.append(rows) or rows, images, generator=generator.set_state(start))
    assert torch.equal(seen[2], seen[0])
    assert torch.equal(torch.get_rng_state(), before)
