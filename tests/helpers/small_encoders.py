"""Small encoders of every trunk, and inputs for them."""

import torch

from repro.audiovisual.model import Encoder

SHAPES = {  # of small inputs, without the batch
    "r3d18": (3, 4, 48, 48),
    "r2plus1d18": (3, 4, 24, 24),
    "audio18": (80, 80),
    "small_video": (3, 8, 24, 24),
    "small_audio": (80, 32),
    "small_image": (1, 28, 56),
}


def inputs(trunk, count=4, **options):
    return torch.randn(count, *SHAPES[trunk], generator=torch.Generator().manual_seed(0), **options)


def encoder(trunk, width=32, **options):
    torch.manual_seed(0)
    return Encoder(trunk, width, **options)


def with_history(module, *batches):
    """The module after batches in training mode, so that running statistics are no longer 0 and 1; evaluating."""
    for batch in batches:
        module(*batch)
    return module.eval()
