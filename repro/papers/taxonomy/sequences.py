"""Sequences to look into: some of a data set, their augmented views, and their bones in an upright plane."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from pandas import DataFrame
from torch import Tensor

from repro.skeleton.data import Sequences, SkeletonSet, recorded_view
from repro.skeleton.pretrain import augment
from repro.skeleton.recipe import SkeletonRecipe


def drawn(data: SkeletonSet, most: int) -> tuple[Tensor, Tensor, DataFrame]:
    """At most so many sequences of a data set, drawn with a fixed seed, those of an action after one another.

    Returns:
        Sequences (n, T, D), zero after their ends, their lengths (n,), and a row for each: action, camera, and `said`,
        all of it with the row's number.
    """
    rows = torch.randperm(len(data.lengths), generator=torch.Generator().manual_seed(0))[:most]
    rows = rows[data.labels[rows].argsort(stable=True)]
    frames, lengths, _ = Sequences(data.frames, data.lengths).batch(rows)
    actions = [data.actions[label] for label in data.labels[rows]]
    shown = DataFrame({"action": actions, "camera": data.views[rows].numpy()}).astype(str)
    shown["said"] = [f"{action}, camera {camera}, number {row}" for row, action, camera in shown.itertuples()]
    return frames, lengths, shown


def augmented(sequence: Tensor, recipe: SkeletonRecipe, seed: int) -> Tensor:
    """Two independent views of a sequence (T, D), as training makes them: (2, T, D)."""
    generator, lengths = torch.Generator().manual_seed(seed), torch.full((2,), len(sequence))
    return augment(sequence.expand(2, -1, -1), lengths, flip=recipe.flip, shear=recipe.shear, generator=generator)


def vertical(recipe: SkeletonRecipe) -> int:
    """Which coordinate is the vertical: 1 as a camera saw a recording, 2 where a pipeline has turned it to the body."""
    return 1 if recorded_view(recipe).pipeline in ("raw", "authors") else 2


def outlined(
    sequences: Mapping[str, Tensor], bones: Sequence[tuple[int, int]], *, turn: float = 0, up: int = 2
) -> DataFrame:
    """The bones of sequences (T, 3 J) in an upright plane, by the title of the panel that each moves in.

    Args:
        turn: degrees by which a body is turned about the vertical; 0 is seen from the front.
        up: number of the vertical coordinate, see `vertical`.

    Returns:
        panel, frame (from 1), x, y: a row for each end of a bone, and one of NaN after it, so that a line through the
        rows of a frame has gaps between the bones. Of a body that is zero throughout, which is not there, all are NaN.
    """
    angle, parts = math.radians(turn), []
    for title, sequence in sequences.items():
        joints = sequence.numpy().reshape(len(sequence), -1, 3)
        across = math.cos(angle) * joints[..., 0] + math.sin(angle) * joints[..., 3 - up]
        plane = np.stack([across, joints[..., up]], axis=-1)                          # (T, J, 2)
        plane[:, (joints == 0).all(axis=(0, 2))] = np.nan
        ends = plane[:, np.asarray(bones)]                                            # (T, B, 2, 2)
        lines = np.concatenate([ends, np.full_like(ends[:, :, :1], np.nan)], axis=2)  # (T, B, 3, 2)
        frame = np.repeat(np.arange(1, len(sequence) + 1), 3 * len(bones))
        parts.append(DataFrame(lines.reshape(-1, 2), columns=["x", "y"]).assign(panel=title, frame=frame))
    return pd.concat(parts)
