"""How closely the augmentations of an image agree: the quantities in the histograms of JCL's Figure M.3.

Both follow from the mean direction of an image's augmentations, the mean of their unit vectors: the mean of all cosine
similarities is its squared length, and what is missing to 1 is the trace of the covariance. Hence the two histograms
mirror each other, and neither a table of pairs nor a covariance matrix is needed.
"""

import math
from collections.abc import Iterable

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
    z = torch.as_tensor(z)
    if z.ndim != 3 or z.numel() == 0:
        raise ValueError(f"z has shape {tuple(z.shape)}; it should be (images, augmentations, d), each at least 1")
    return concentration(mean_direction(z.unbind(1)))


@torch.no_grad()
def mean_direction(parts: Iterable[Tensor]) -> Tensor:
    """Mean of the unit vectors of every image, in one pass that keeps only their sum.

    Args:
        parts: for each augmentation, the features (images, d) of the same images in the same order, as an encoder
            gives them. An iterator is drawn from one part at a time, without gradient.

    Returns:
        (images, d), in float64, because what follows is the difference of its length to 1.

    Raises:
        ValueError: if there are no parts, their shapes differ, or a feature has length 0 or is not finite.
    """
    total, count = None, 0
    for count, part in enumerate(parts, start=1):
        directions = _normalised(part)
        if total is None:
            total = torch.zeros_like(directions)
        if directions.shape != total.shape:
            raise ValueError(
                f"part {count} has shape {tuple(directions.shape)} but the first has {tuple(total.shape)}; "
                "every part should hold one augmentation of the same images"
            )
        total += directions
    if total is None:
        raise ValueError("there are no parts; give the features of at least one augmentation")
    return total / count


def concentration(mean_direction: Tensor) -> tuple[Tensor, Tensor]:
    """Mean similarity a = |m|^2 and mean variance b = (1 - a)/d from the mean directions m: (images, d) -> 2 (images,).

    Both as in `similarity_and_variance`. Rounding never lifts a above 1 nor sinks b below 0.
    """
    similarity = mean_direction.square().sum(1).clamp(max=1)
    return similarity, (1 - similarity) / mean_direction.shape[1]


def _normalised(features: Tensor) -> Tensor:
    """Unit vectors in float64: (images, d) -> (images, d)."""
    features = features.double()
    lengths = features.norm(dim=1, keepdim=True)
    wrong = int((~((lengths > 0) & (lengths < math.inf))).sum())
    if wrong:
        raise ValueError(f"{wrong} of {len(features)} features have no direction: their length is 0 or not finite")
    return features / lengths
