"""The momentum encoder, a slow twin that makes the keys, and the batches its batch normalisation sees.

An encoder with batch normalisation can tell a positive key from its neighbours by the statistics they share. Therefore
the batch is split into groups that are normalised apart (ghost batches), and the keys' images are shuffled, so that an
image and its key fall into different groups.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm


class MomentumEncoder(nn.Module):
    """The twin: without gradient, its parameters follow those of an encoder as an exponential moving average.

    Only the twin is registered: `state_dict` holds `twin.` followed by the encoder's own names.

    Args:
        encoder: what the twin starts as a copy of, projection head included; as a rule the module it is to follow,
            which is handed to every `update`.
        momentum: m, 0 to 1, without unit (MoCo 0.999); 0 copies the encoder, 1 keeps the twin.

    Raises:
        ValueError: if the momentum is outside 0 to 1.

    Source: He et al. 2020, Eq. 2; taxonomy SI, Alg. 1.
    """

    def __init__(self, encoder: nn.Module, momentum: float) -> None:
        super().__init__()
        if not 0 <= momentum <= 1:
            raise ValueError(f"momentum={momentum} should be between 0 and 1 (the papers use 0.99 to 0.999)")
        self.momentum = momentum
        self.twin = copy.deepcopy(encoder).requires_grad_(False)

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Whatever the twin returns, without gradient."""
        return self.twin(*args, **kwargs)

    def update(self, encoder: nn.Module) -> None:
        """Let the twin `follow` the encoder once; called after (or before) every optimiser step."""
        follow(self.twin, encoder, self.momentum)


@torch.no_grad()
def follow(follower: nn.Module, leader: nn.Module, momentum: float) -> None:
    """Move every parameter of `follower` towards `leader`: theta_k <- m theta_k + (1 - m) theta_q.

    Buffers stay as they are: the running statistics of a twin's batch normalisation come from its own forward passes.

    Raises:
        ValueError: if the parameters of the two differ in number or shape.
    """
    own: list[Tensor] = list(follower.parameters())
    others: list[Tensor] = list(leader.parameters())
    if [parameter.shape for parameter in own] != [parameter.shape for parameter in others]:
        raise ValueError(
            f"the {len(own)} parameters of the twin and the {len(others)} of the encoder differ in number or shape; "
            "update with the copied encoder"
        )
    torch._foreach_lerp_(own, others, 1 - momentum)


class GhostBatchNorm(_BatchNorm):
    """Batch normalisation over consecutive parts of the batch, each with statistics of its own.

    While training, every part is normalised as if it were alone on a device, and the running statistics become the mean
    of those the parts would leave (the released codes keep those of the first process). In evaluation mode this is
    plain batch normalisation. `dealt` brings the samples i mod groups together, once for a whole network.

    Args:
        features: C, channels.
        groups: of the batch (2 or 8 in SCE, 8 in MoCo and JCL; 1 is plain batch normalisation).

    Raises:
        ValueError: if `groups` is not positive or, while training, does not divide the batch.

    Source: SCE, released code, which splits batches in 8 (sample i in group i mod 8); the processes of MoCo and JCL.
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    momentum: float

    def __init__(self, features: int, groups: int) -> None:
        super().__init__(features)
        if groups < 1:
            raise ValueError(f"groups={groups} should be at least 1 (plain batch normalisation)")
        self.groups = groups

    def _check_input_dim(self, samples: Tensor) -> None:
        """Samples may have any axes behind the channels."""

    def forward(self, samples: Tensor) -> Tensor:
        """Normalised samples (N, C, ...), in their precision and memory format; statistics are at least float32."""
        if not self.training or (groups := self.groups) == 1:
            return super().forward(samples)
        _check_groups(groups, len(samples))
        means, variances = self.running_mean.repeat(groups, 1), self.running_var.repeat(groups, 1)
        parts = [
            functional.batch_norm(part, mean, variance, self.weight, self.bias, True, self.momentum, self.eps)
            for part, mean, variance in zip(samples.chunk(groups), means, variances, strict=True)
        ]
        self.running_mean.copy_(means.mean(0))
        self.running_var.copy_(variances.mean(0))
        self.num_batches_tracked.add_(1)
        return torch.cat(parts)


def dealt(rows: Tensor, hands: int) -> Tensor:
    """Rows (N, ...) in the order of their hands when dealt like cards: first those with i mod hands = 0, then 1, ...

    Dealing the result to N / hands hands restores the order. With the ghost groups as hands, the parts that
    `GhostBatchNorm` normalises apart are the samples i mod groups.

    Raises:
        ValueError: if N is no multiple of `hands`.
    """
    _check_groups(hands, len(rows))
    return rows.unflatten(0, (-1, hands)).transpose(0, 1).flatten(0, 1)


@torch.no_grad()
def encode_shuffled(encode: Callable[[Tensor], Tensor], images: Tensor, order: Tensor) -> Tensor:
    """What `encode`, of (N, ...) to (N, d), makes of the images when the batch is in another `order` (N,).

    Only the company in which an image is encoded changes: row i of the result, which has no gradient, is of image i.

    Source: He et al. 2020, section 3.3 (shuffling BN).
    """
    order = order.to(images.device, non_blocking=True)
    return encode(images[order])[order.argsort()]


def _check_groups(groups: int, samples: int) -> None:
    if samples % groups:
        raise ValueError(f"{samples} samples cannot be divided into {groups} ghost groups of equal size; choose a "
                         f"batch that is a multiple of groups={groups}")
