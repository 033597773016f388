"""The momentum encoder, a slow twin that makes the keys, and the batches its batch normalisation sees.

An encoder with batch normalisation can tell a positive key from its neighbours by the statistics they share. Therefore
the batch is split into groups that are normalised apart (ghost batches, or the processes of a data-parallel run), and
the keys' images are shuffled, so that an image and its key fall into different groups.

Row j of process r is row j * processes + r of the whole batch. With that, N processes which normalise their own rows
compute what one process computes with N ghost groups.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, distributed, nn
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
        """Let the twin follow `encoder` once; called after (or before) every optimiser step. See `follow`."""
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
        groups: of the whole batch, all processes together; each normalises its own rows in groups / processes parts
            (2 or 8 in SCE, 8 in MoCo and JCL; 1 is plain batch normalisation).

    Raises:
        ValueError: if `groups` is not positive or, while training, `groups_here` finds that it does not fit.

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

    def forward(self, samples: Tensor) -> Tensor:
        """Normalised samples (N, C, ...), in their precision and memory format; statistics are at least float32."""
        if not self.training or (groups := groups_here(self.groups, len(samples))) == 1:
            return super().forward(samples)
        means, variances = self.running_mean.repeat(groups, 1), self.running_var.repeat(groups, 1)
        parts = [
            functional.batch_norm(part, mean, variance, self.weight, self.bias, True, self.momentum, self.eps)
            for part, mean, variance in zip(samples.chunk(groups), means, variances, strict=True)
        ]
        self.running_mean.copy_(means.mean(0))
        self.running_var.copy_(variances.mean(0))
        self.num_batches_tracked.add_(1)
        return torch.cat(parts)


class GhostBatchNorm1d(GhostBatchNorm, nn.BatchNorm1d):
    """`GhostBatchNorm` of rows (N, C) or series (N, C, T)."""


class GhostBatchNorm2d(GhostBatchNorm, nn.BatchNorm2d):
    """`GhostBatchNorm` of images (N, C, H, W)."""


class GhostBatchNorm3d(GhostBatchNorm, nn.BatchNorm3d):
    """`GhostBatchNorm` of clips (N, C, F, H, W)."""


class WholeBatchNorm1d(nn.BatchNorm1d):
    """Batch normalisation of rows (n, C) whose statistics are those of the whole batch, all processes together.

    In several processes it normalises the gathered rows, which are few and small in a projection head, with gradient to
    all of them: unlike `torch.nn.SyncBatchNorm` it also runs on a CPU.

    Source: SCE, released code, whose projector is not split into groups.
    """

    def forward(self, rows: Tensor) -> Tensor:
        """Normalised rows (n, C) of this process."""
        rank, processes = process()
        return super().forward(gather(rows))[rank::processes] if self.training else super().forward(rows)


def groups_here(groups: int, samples: int) -> int:
    """How many of the whole batch's ghost groups lie in this process, which holds `samples` of its samples.

    Raises:
        ValueError: if the groups do not divide evenly among the processes, or the samples among the groups.
    """
    _, processes = process()
    if groups % processes:
        raise ValueError(
            f"groups={groups} cannot be divided among {processes} processes, each of which normalises its own samples; "
            f"choose a multiple of {processes}"
        )
    here = groups // processes
    if samples % here:
        raise ValueError(
            f"{samples} samples in this process cannot be divided into {here} ghost groups of equal size; "
            f"choose a batch that is a multiple of groups={groups}"
        )
    return here


def dealt(rows: Tensor, hands: int) -> Tensor:
    """Rows (N, ...) in the order of their hands when dealt like cards: first those with i mod hands = 0, then 1, ...

    N is a multiple of `hands`. Dealing the result to N / hands hands restores the order.
    """
    return rows.unflatten(0, (-1, hands)).transpose(0, 1).flatten(0, 1)


@torch.no_grad()
def encode_shuffled(encode: Callable[[Tensor], Tensor], images: Tensor, order: Tensor) -> Tensor:
    """What `encode` makes of the images when their whole batch, all processes together, is in another order.

    Only the company in which an image is encoded changes: row i of the result belongs to image i.

    Args:
        encode: (n, ...) to (n, d): the momentum encoder.
        images: (n, ...) of this process, as many in every process.
        order: (n processes,) a random permutation of the whole batch, the same in every process.

    Returns:
        (n, d) features without gradient.

    Source: He et al. 2020, section 3.3 (shuffling BN).
    """
    rank, processes = process()
    order = order.to(images.device, non_blocking=True)
    shuffled, back = order[rank::processes], order.argsort()[rank::processes]
    return gather(encode(gather(images)[shuffled]))[back]


# ------------------------------------------------------------------------------------------------ processes


def process() -> tuple[int, int]:
    """Rank of this process and number of processes; 0 and 1 without a process group."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def gather(rows: Tensor) -> Tensor:
    """The rows (n, ...) of all processes in the order of the whole batch, (n processes, ...), with gradient.

    Every process passes the same n. In one process these are the rows themselves.
    """
    _, processes = process()
    return dealt(_Gather.apply(rows), len(rows)) if processes > 1 else rows


class _Gather(torch.autograd.Function):
    """The rows of all processes, one process after the other: (n, ...) to (n processes, ...)."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        _, processes = process()
        everyone = rows.new_empty(processes * len(rows), *rows.shape[1:])
        distributed.all_gather_into_tensor(everyone, rows.contiguous())
        return everyone

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        rank, processes = process()
        total = upstream.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)  # every process's loss depends on these rows
        return total.chunk(processes)[rank]


@torch.no_grad()
def average(tensors: list[Tensor]) -> None:
    """Set every tensor to its mean over the processes, in place, with one message for all."""
    _, processes = process()
    if processes == 1 or not tensors:
        return
    total = torch.cat([tensor.flatten() for tensor in tensors])
    distributed.all_reduce(total)
    means = total.div_(processes).split([tensor.numel() for tensor in tensors])
    for tensor, mean in zip(tensors, means, strict=True):
        tensor.copy_(mean.view(tensor.shape))


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Set gradients to their mean over the processes, each with as many samples: those of the whole batch's mean."""
    average([parameter.grad for parameter in parameters if parameter.grad is not None])


def average_statistics(module: nn.Module) -> None:
    """Set the running statistics of all batch normalisation in `module` to their mean over the processes, in place.

    They are linear in the statistics of the batches: one call before features are extracted or weights are saved gives
    what averaging at every step would give, and what one process with ghost groups keeps.
    """
    normalisations = [part for part in module.modules() if isinstance(part, _BatchNorm)]
    statistics = (value for part in normalisations for value in (part.running_mean, part.running_var))
    average([value for value in statistics if value is not None])
