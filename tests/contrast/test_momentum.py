"""The momentum encoder, ghost groups and shuffled keys against torch, plain loops and cases worked out by hand."""

import copy

import pytest
import torch
from torch import nn

from repro.contrast.momentum import GhostBatchNorm, MomentumEncoder, dealt, encode_shuffled


def encoder_with_head(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))


# ---------------------------------------------------------------------------------------------- the twin


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.999, 1.0])
def test_update_equals_a_loop(momentum):
    encoder, learned = encoder_with_head(0), encoder_with_head(1)
    follower = MomentumEncoder(encoder, momentum)
    follower.update(learned)
    for mine, start, goal in zip(follower.twin.parameters(), encoder.parameters(), learned.parameters(), strict=True):
        torch.testing.assert_close(mine, momentum * start + (1 - momentum) * goal, check_stride=True)


def test_update_inside_autocast_is_exact_and_takes_effect():
    encoder, learned, x = encoder_with_head(0), encoder_with_head(1), torch.randn(4, 3)
    inside, outside = MomentumEncoder(encoder, 0.5), MomentumEncoder(encoder, 0.5)
    outside.update(learned)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside(x)
        inside.update(learned)
        after = inside(x)
        assert torch.equal(after, outside(x))
    for one, other in zip(inside.twin.parameters(), outside.twin.parameters(), strict=True):
        assert one.dtype == torch.float32 and torch.equal(one, other)


def test_forward_makes_no_graph_and_passes_arguments_on():
    class Scaled(nn.Linear):
        def forward(self, x, *, factor):
            return factor * super().forward(x)

    encoder, x = Scaled(3, 2), torch.randn(4, 3, requires_grad=True)
    key = MomentumEncoder(encoder, 0.9)(x, factor=2)
    assert not key.requires_grad
    torch.testing.assert_close(key, encoder(x, factor=2).detach())


def test_buffers_come_from_the_twins_own_forward_and_the_state_holds_the_twin_alone():
    encoder, learned = encoder_with_head(0), encoder_with_head(1)
    follower = MomentumEncoder(encoder, 0.5)
    learned(torch.randn(8, 3) + 5)
    follower.update(learned)
    assert (follower.twin[1].running_mean == 0).all()
    follower(torch.randn(8, 3))
    assert follower.twin[1].num_batches_tracked == 1
    state = follower.state_dict()
    assert list(state) == [f"twin.{name}" for name in encoder.state_dict()]
    restored = MomentumEncoder(learned, 0.5)
    restored.load_state_dict(state)
    assert all(torch.equal(value, state[name]) for name, value in restored.state_dict().items())


# ---------------------------------------------------------------------------------------------- ghost groups


@pytest.mark.parametrize(("plain_kind", "groups", "shape", "layout"), [
    *((nn.BatchNorm2d, groups, (8, 3, 5, 4), layout) for groups in (1, 2, 4, 8)
      for layout in (torch.contiguous_format, torch.channels_last)),
    (nn.BatchNorm1d, 2, (6, 3), torch.contiguous_format),
    (nn.BatchNorm1d, 2, (6, 3, 7), torch.contiguous_format),
    (nn.BatchNorm3d, 2, (6, 3, 2, 5, 4), torch.channels_last_3d),
])
def test_ghost_normalisation_equals_plain_normalisation_of_every_part(plain_kind, groups, shape, layout):
    torch.manual_seed(0)
    ghost, plain = GhostBatchNorm(3, groups).double(), [plain_kind(3).double() for _ in range(groups)]
    nn.init.normal_(ghost.weight)
    nn.init.normal_(ghost.bias)
    for alone in plain:
        alone.load_state_dict(ghost.state_dict())
    for step in range(2):
        samples = (step + torch.randn(shape, dtype=torch.float64)).contiguous(memory_format=layout)
        together, apart = samples.clone().requires_grad_(), samples.clone().requires_grad_()
        found = ghost(together)
        expected = torch.cat([alone(part) for alone, part in zip(plain, apart.chunk(groups), strict=True)])
        assert found.stride() == samples.stride()
        torch.testing.assert_close(found, expected)
        upstream = torch.randn_like(samples)
        found.backward(upstream)
        expected.backward(upstream)
        torch.testing.assert_close(together.grad, apart.grad)
    for name in ("weight", "bias"):
        torch.testing.assert_close(getattr(ghost, name).grad, sum(getattr(alone, name).grad for alone in plain))
    for name in ("running_mean", "running_var"):
        expected = torch.stack([getattr(alone, name) for alone in plain]).mean(0)
        torch.testing.assert_close(getattr(ghost, name), expected)
    assert ghost.num_batches_tracked == 2
    plain[0].load_state_dict(ghost.state_dict())
    assert torch.equal(ghost.eval()(samples[:5]), plain[0].eval()(samples[:5]))


def test_statistics_of_half_precision_images_are_float32():
    ghost, exact = GhostBatchNorm(3, 2), GhostBatchNorm(3, 2).double()
    images = (30 + torch.randn(64, 3, 8, 8)).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ghost(images)
    assert found.dtype == torch.bfloat16 and ghost.running_mean.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact(images.double()), rtol=2**-7, atol=2**-7)
    torch.testing.assert_close(ghost.running_mean.double(), exact.running_mean, rtol=1e-6, atol=0)
    torch.testing.assert_close(ghost.running_var.double(), exact.running_var, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("call", "message"), [
    *((lambda m=m: MomentumEncoder(nn.Linear(1, 1), m), f"momentum={m} should be between 0 and 1")
      for m in (-0.1, 1.1, float("nan"))),
    *((lambda groups=groups: GhostBatchNorm(3, groups), f"groups={groups} should be at least 1") for groups in (0, -2)),
    *((lambda other=other: MomentumEncoder(nn.Linear(3, 4), 0.5).update(other), "parameters of the twin .* differ in")
      for other in (nn.Linear(3, 5), nn.Linear(3, 4, bias=False), nn.Linear(1, 4))),
    (lambda: dealt(torch.arange(6), 4), "6 samples cannot be divided into 4 ghost groups of equal size"),
    *((lambda samples=samples: GhostBatchNorm(3, 4)(torch.randn(samples, 3, 2, 2)), f"{samples} samples .* groups=4")
      for samples in (1, 2, 6)),
])
def test_impossible_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---------------------------------------------------------------------------------------------- order, shuffling


def test_dealing_by_hand_and_back():
    rows = torch.arange(6)[:, None]
    assert dealt(rows, 2).flatten().tolist() == [0, 2, 4, 1, 3, 5]
    assert dealt(rows, 3).flatten().tolist() == [0, 3, 1, 4, 2, 5]
    assert all(torch.equal(dealt(dealt(rows, hands), 6 // hands), rows) for hands in (1, 2, 3, 6))


@pytest.mark.parametrize("samples", [1, 2, 12])
def test_shuffled_keys_by_a_loop(samples):
    images = torch.randn(samples, 3, 4, 4)
    ghost = GhostBatchNorm(3, 1 if samples == 1 else 2)
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(3))
    keys = encode_shuffled(lambda rows: ghost(rows).flatten(1), images, order)
    shuffled = copy.deepcopy(ghost)(torch.stack([images[place] for place in order])).flatten(1)
    assert keys.shape == (samples, 48)
    assert all(torch.equal(keys[place], key) for key, place in zip(shuffled, order, strict=True))
    assert (samples == 12) == (not torch.allclose(keys, ghost(images).flatten(1)))  # company matters
