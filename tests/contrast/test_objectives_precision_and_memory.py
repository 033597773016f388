"""Objectives under autocast and in float32, and the largest tensors that they make."""

from functools import partial

import pytest
import torch
from slow_objectives import CONTRASTS, JOINT, contrast_inputs, joint_inputs, sequence_inputs
from watched import largest_tensor

from repro.contrast.objectives import attraction, reconstruction, sequence_contrast


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", [*CONTRASTS, *JOINT, "attraction", "reconstruction", "sequence_contrast"])
def test_autocast_leaves_the_loss_in_float32(name, dtype):
    query, key, negatives = (tensor.detach().to(dtype) for tensor in contrast_inputs(8, 40, 16))
    keys = joint_inputs(8, 3, 40, 16)[1].detach().to(dtype)
    *sequences, lengths = sequence_inputs(4, 6, 5, 5, 3)
    sequences = [tensor.detach().to(dtype) for tensor in sequences]
    objective, tensors = {
        "attraction": (attraction, [query, key]),
        "reconstruction": (partial(reconstruction, lengths=lengths), sequences[:2]),
        "sequence_contrast": (partial(sequence_contrast, lengths=lengths, temperature=0.1), sequences),
        **{label: (partial(fast, **given), [query, key, negatives]) for label, (fast, _, given) in CONTRASTS.items()},
        **{label: (partial(fast, **given), [query, keys, negatives]) for label, (fast, _, given) in JOINT.items()},
    }[name]
    tensors[0].requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = objective(*tensors)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, objective(*(tensor.float() for tensor in tensors)))
    (gradient,) = torch.autograd.grad(loss, tensors[0])
    assert gradient.dtype == dtype
    assert gradient.isfinite().all()


def test_float32_stays_accurate_where_most_frames_are_padding():
    inputs = sequence_inputs(4, 16, 50, 50, 20)
    inputs[3] = torch.tensor([1, 2, 3, 50])
    rounded = [tensor.float() for tensor in inputs[:3]]
    value, expected = sequence_contrast(*rounded, inputs[3], 0.1), sequence_contrast(*inputs, 0.1)
    torch.testing.assert_close(value.double(), expected, rtol=1e-4, atol=0)


def test_sequence_contrast_never_makes_all_differences():
    n, k, t, d = 16, 80, 10, 15
    decoded, key_decoded, negatives, lengths = sequence_inputs(n, k, t, t, d, dtype=torch.float32)
    negatives = negatives.detach()
    broadcast = largest_tensor(lambda r: (r.unsqueeze(1) - negatives).abs().mean(), decoded)
    assert broadcast == n * k * t * d
    used = largest_tensor(sequence_contrast, decoded, key_decoded, negatives, lengths, 0.1)
    assert used <= max(n * k, n * t * d, k * t * d)


def test_sequence_contrast_reads_no_value_back_from_the_device():
    decoded, key_decoded = torch.empty(2, 32, 50, 150, device="meta", requires_grad=True)
    negatives, lengths = torch.empty(2048, 50, 150, device="meta"), torch.empty(32, dtype=torch.int64, device="meta")
    loss = sequence_contrast(decoded, key_decoded, negatives, lengths, 0.1)  # reading a meta tensor raises
    assert torch.autograd.grad(loss, decoded)[0].shape == (32, 50, 150)


@pytest.mark.parametrize("name", [*CONTRASTS, *JOINT])
def test_positives_and_negatives_are_never_joined_and_jcl_makes_no_covariance(name):
    fast, _, settings = (CONTRASTS | JOINT)[name]
    query, keys, negatives = contrast_inputs(7, 60, 13) if name in CONTRASTS else joint_inputs(7, 3, 60, 13)
    assert largest_tensor(partial(fast, **settings), query, keys, negatives) == max(7 * 60, 60 * 13)
