"""Normalisation in ghost groups against torch's own of every group, and a case worked out by hand."""

import pytest
import torch
from torch import nn

from repro.contrast.momentum import (
    GhostBatchNorm1d,
    GhostBatchNorm2d,
    GhostBatchNorm3d,
)

FORMATS = [torch.contiguous_format, torch.channels_last]


def parts_apart(groups, features=3, dtype=torch.float64):
    """A ghost normalisation with random scale and shift, and a plain one with the same for each group."""
    torch.manual_seed(0)
    ghost = GhostBatchNorm2d(features, groups).to(dtype)
    nn.init.normal_(ghost.weight)
    nn.init.normal_(ghost.bias)
    plain = [nn.BatchNorm2d(features).to(dtype) for _ in range(groups)]
    for alone in plain:
        alone.load_state_dict(ghost.state_dict())
    return ghost, plain


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("groups", [1, 2, 4, 8])
def test_ghost_normalisation_equals_plain_normalisation_of_every_part(groups, layout):
    ghost, plain = parts_apart(groups)
    for step in range(2):
        images = (step + torch.randn(8, 3, 5, 4, dtype=torch.float64)).contiguous(memory_format=layout)
        together, apart = images.clone().requires_grad_(), images.clone().requires_grad_()
        found = ghost(together)
        expected = torch.cat([alone(part) for alone, part in zip(plain, apart.chunk(groups), strict=True)])
        assert found.is_contiguous(memory_format=layout)
        torch.testing.assert_close(found, expected)
        upstream = torch.randn_like(images)
        found.backward(upstream)
        expected.backward(upstream)
        torch.testing.assert_close(together.grad, apart.grad)
    for name in ("weight", "bias"):
        expected = sum(getattr(alone, name).grad for alone in plain)
        torch.testing.assert_close(getattr(ghost, name).grad, expected)
    for name in ("running_mean", "running_var"):
        expected = torch.stack([getattr(alone, name) for alone in plain]).mean(0)
        torch.testing.assert_close(getattr(ghost, name), expected)
    assert ghost.num_batches_tracked == 2


@pytest.mark.parametrize(
    ("ghost_kind", "plain_kind", "shape"),
    [
        (GhostBatchNorm1d, nn.BatchNorm1d, (6, 3)),
        (GhostBatchNorm1d, nn.BatchNorm1d, (6, 3, 7)),
        (GhostBatchNorm3d, nn.BatchNorm3d, (6, 3, 2, 5, 4)),
    ],
)
def test_ghost_normalisation_of_rows_series_and_clips(ghost_kind, plain_kind, shape):
    ghost, samples = ghost_kind(3, 2).double(), torch.randn(shape, dtype=torch.float64)
    if len(shape) == 5:
        samples = samples.contiguous(memory_format=torch.channels_last_3d)
    plain = [plain_kind(3).double() for _ in range(2)]
    assert list(ghost.state_dict()) == list(plain[0].state_dict())
    found = ghost(samples)
    expected = torch.cat([alone(part) for alone, part in zip(plain, samples.chunk(2), strict=True)])
    torch.testing.assert_close(found, expected)
    assert found.stride() == samples.stride()
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(ghost, name), (getattr(plain[0], name) + getattr(plain[1], name)) / 2)
    plain[0].load_state_dict(ghost.state_dict())
    assert torch.equal(ghost.eval()(samples[:5]), plain[0].eval()(samples[:5]))
    with pytest.raises(ValueError, match=r"expected .* input"):
        ghost(torch.zeros(2, 3, 4, 4, dtype=torch.float64))


def test_ghost_normalisation_of_a_case_worked_out_by_hand():
    ghost = GhostBatchNorm2d(1, 2)
    images = torch.tensor([0.0, 2.0, 10.0, 14.0]).view(4, 1, 1, 1)
    # Means 1 and 12, biased variances 1 and 4, unbiased ones 2 and 8.
    torch.testing.assert_close(ghost(images).flatten(), torch.tensor([-1.0, 1.0, -1.0, 1.0]), rtol=0, atol=1e-5)
    torch.testing.assert_close(ghost.running_mean, torch.tensor([0.65]))  # 0.1 times 6.5
    torch.testing.assert_close(ghost.running_var, torch.tensor([1.4]))  # 0.9 + 0.1 times 5
    ghost.eval()
    alone = ghost(torch.tensor(2.0).view(1, 1, 1, 1))
    torch.testing.assert_close(alone.item(), (2 - 0.65) / (1.4 + 1e-5) ** 0.5)


@pytest.mark.parametrize("layout", FORMATS)
def test_statistics_of_half_precision_images_are_float32(layout):
    ghost, _ = parts_apart(2, dtype=torch.float32)
    exact, _ = parts_apart(2)
    images = (30 + torch.randn(64, 3, 8, 8)).bfloat16().contiguous(memory_format=layout)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ghost(images)
    assert found.dtype == torch.bfloat16
    assert ghost.running_mean.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact(images.double()), rtol=2**-7, atol=2**-7)
    torch.testing.assert_close(ghost.running_mean.double(), exact.running_mean, rtol=1e-6, atol=0)
    torch.testing.assert_close(ghost.running_var.double(), exact.running_var, rtol=1e-5, atol=0)


@pytest.mark.parametrize("groups", [0, -2])
def test_groups_below_one_raise(groups):
    with pytest.raises(ValueError, match=f"groups={groups} should be at least 1"):
        GhostBatchNorm2d(3, groups)


@pytest.mark.parametrize(("samples", "groups"), [(6, 4), (2, 4), (1, 2)])
def test_a_batch_that_groups_do_not_divide_raises_and_changes_nothing(samples, groups):
    ghost = GhostBatchNorm2d(3, groups)
    with pytest.raises(ValueError, match=f"{samples} samples .* into {groups} .*choose a batch .* groups={groups}"):
        ghost(torch.randn(samples, 3, 2, 2))
    assert ghost.num_batches_tracked == 0
    assert (ghost.running_mean == 0).all()
