"""How closely the augmentations of an image agree: the quantities in the histograms of JCL's Figure M.3.

Both follow from the mean direction of an image's augmentations, the mean of their unit vectors: the mean of all cosine
similarities is its squared length, and what is missing to 1 is the trace of the covariance. Hence the two histograms
mirror each other, and neither a table of pairs nor a covariance matrix is needed.
"""

import math

import torch
from numpy.typing import ArrayLike
from torch import Tensor


def similarity_and_variance(z: Tensor | ArrayLike) -> tuple[Tensor, Tensor]:
    """Mean similarity and mean variance of the augmentations of every image.

    Args:
        z: (images, augmentations, d) features of any length but 0: they are normalised here.

    Returns:
        Two vectors of length images in float64, without unit: the mean cosine similarity over all n^2 ordered pairs of
        the n augmentations, 0 to 1, pairs of an augmentation with itself included (without them a mean of s would be
        (n s - 1)/(n - 1)); and the mean over the d coordinates of the biased variance (divisor n), 0 to 1/d.

    Raises:
        ValueError: if z has other axes or an empty one, or a feature has length 0 or is not finite.

    Source: JCL supplement, Figure M.3.
    """
    z = torch.as_tensor(z).detach()
    if z.ndim != 3 or z.numel() == 0:
        raise ValueError(f"z has shape {tuple(z.shape)}; it should be (images, augmentations, d), each at least 1")
    lengths = z.double().norm(dim=2, keepdim=True)
    wrong = int((~((lengths > 0) & (lengths < math.inf))).sum())
    if wrong:
        raise ValueError(f"{wrong} of {lengths.numel()} features have no direction: their length is 0 or not finite")
    mean_direction = (z.double() / lengths).mean(1)                                      # (images, d)
    similarity = mean_direction.square().sum(1).clamp(max=1)  # rounding may lift it above 1
    return similarity, (1 - similarity) / z.shape[2]
