"""The dictionary of earlier keys (the queue), a ring buffer that is saved with the model."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


class Dictionary(nn.Module):
    """The last K keys, first in, first out.

    `entries` serves as the negatives of an objective without a copy, and autograd keeps it for the backward pass: a
    step is objective, `backward`, `enqueue`. Enqueuing before `backward` makes torch raise.

    Args:
        initial: (K, ...) contents until keys replace them, the first row first; copied.

    Attributes:
        entries: (K, ...) buffer, on the device and in the precision of `initial`.
        pointer: 0-dim int64 buffer, 0 to K - 1: the row of the oldest entry, which the next key replaces.

    Raises:
        ValueError: if `initial` has fewer than two axes or no elements.

    Source: He et al. 2020, section 3.2.
    """

    entries: Tensor
    pointer: Tensor

    def __init__(self, initial: Tensor) -> None:
        super().__init__()
        if initial.ndim < 2 or initial.numel() == 0:
            shape = tuple(initial.shape)
            raise ValueError(f"initial has shape {shape}; it should be (K, ...) with features, all sizes >= 1")
        self.register_buffer("entries", initial.detach().clone())
        self.register_buffer("pointer", torch.zeros((), dtype=torch.int64, device=initial.device))

    @torch.no_grad()
    def enqueue(self, keys: Tensor) -> None:
        """Replace the oldest entries, in place and without waiting for the device.

        Args:
            keys: (n, ...) with n >= 1, the last row the newest; of more than K keys the last K stay.

        Raises:
            ValueError: if there is no key, or keys and entries have different shapes.
        """
        if keys.shape[1:] != self.entries.shape[1:] or len(keys) == 0:
            expected = ", ".join(["n >= 1", *map(str, self.entries.shape[1:])])
            raise ValueError(f"keys have shape {tuple(keys.shape)}; this dictionary takes ({expected})")
        size = len(self.entries)
        places = torch.arange(len(keys), device=self.pointer.device)[-size:]
        self.entries.index_copy_(0, (self.pointer + places) % size, keys[-size:].to(self.entries.dtype))
        self.pointer.add_(len(keys)).remainder_(size)


def unit_noise(size: int, features: int, *, generator: torch.Generator) -> Tensor:
    """Random directions, the usual initial dictionary of unit keys: (size, features) float32, uniform on the sphere.

    On the generator's device. Source: He et al. 2020, released code.
    """
    return normalize(torch.randn(size, features, generator=generator, device=generator.device), dim=1)
