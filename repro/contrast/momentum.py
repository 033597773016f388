"""The momentum encoder: a slow twin of the encoder that makes the keys."""

import copy
from typing import Any

import torch
from torch import nn


class MomentumEncoder(nn.Module):
    """A copy of an encoder whose parameters follow it as an exponential moving average.

    The twin starts as a deep copy of all parts, projection head included, and receives no gradient. Only the twin is
    registered: `state_dict` holds `twin.` followed by the encoder's own names.

    Args:
        encoder: the module to follow; kept out of this one, and handed to every `update`.
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
    followers, leaders = list(follower.named_parameters()), list(leader.named_parameters())
    if len(followers) != len(leaders):
        raise ValueError(
            f"the twin has {len(followers)} parameters and the encoder {len(leaders)}; update with the copied encoder"
        )
    for (name, own), (_, other) in zip(followers, leaders, strict=True):
        if own.shape != other.shape:
            raise ValueError(
                f"{name} has shape {tuple(own.shape)} in the twin and {tuple(other.shape)} in the encoder; "
                "update with the copied encoder"
            )
    torch._foreach_lerp_([own for _, own in followers], [other for _, other in leaders], 1 - momentum)
