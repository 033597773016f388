"""What happens to the coordinates of a recording before training. NumPy alone, float64, one recording at a time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

FRAMES = 50                   # frames after resampling
RESOLUTION = 1e-6             # metres; NW-UCLA's files give six decimals
KINECT = (0, 1, 12, 16)       # joints of a body's frame of reference: middle of the hip, spine, left and right hip


class Recording(NamedTuple):
    """One recording, as the sensor gave it."""

    frames: np.ndarray        # (T, joints, 3), metres in the camera's frame of reference
    label: int                # place in the manifest's actions
    subject: int = 1          # the person, from 1
    view: int = 1             # the camera, from 1


def transform(frames: np.ndarray, pipeline: str, axes: Sequence[int] = KINECT) -> np.ndarray:
    """Put a recording (T, joints, 3) through a pipeline of `load`: at most 50 frames, (T', 3 joints) float32.

    Until then everything is float64 and elementwise, which every machine rounds alike.
    """
    if pipeline != "raw":
        frames = view_invariant(frames, axes)
    if pipeline == "default":
        frames = scale(frames)
    frames = interpolate(frames) if pipeline == "interpolate" else thin_out(frames)
    return frames.reshape(len(frames), -1).astype(np.float32)


def view_invariant(frames: np.ndarray, axes: Sequence[int] = KINECT) -> np.ndarray:
    """Express a recording (T, joints, 3) in a frame of reference given by the body in its first frame, in metres.

        x <- R^T (x - d),   R = [e2 e3 e1],   d = joint 0 (hip centre)
        e1 = unit(joint 1 - joint 0)                                        up the spine
        e2 = unit(joint 12 - joint 16, less its part along e1)              from the right hip to the left
        e3 = e2 x e1                                                        ahead

    The four joints are `axes`, those of Kinect unless a data set has others. R is orthogonal with determinant -1: the
    body comes out mirrored, as in the released code. Distances are kept, and joint 0 of frame 0 becomes the origin. No
    frame is skipped; the released code for NTU skips those with a coordinate of exactly zero, see `predict_cluster`.

    Raises:
        ValueError: if the joints of the first frame do not span the axes.

    Source: Su et al. 2020 (Predict & Cluster), released code, view invariant transform.
    """
    first, (hip, spine, left, right) = frames[0], axes
    up = _unit(first[spine] - first[hip], f"joints {hip} and {spine} coincide")
    across = first[left] - first[right]
    otherwise = f"the hips, joints {left} and {right}, do not lie across the spine"
    across = _unit(across - _dot(across, up) * up, otherwise)
    ahead = np.cross(across, up)
    centred = frames - first[hip]
    return np.stack([_dot(centred, axis) for axis in (across, ahead, up)], axis=-1)


def scale(frames: np.ndarray) -> np.ndarray:
    """Map each axis of a recording (T, joints, 3) to [-1, 1] by itself; raises ValueError if an axis has no extent.

    Source: released code (Predict & Cluster).
    """
    low, high = frames.min(axis=(0, 1)), frames.max(axis=(0, 1))
    if (high == low).any():
        raise ValueError(f"all joints agree in coordinate {np.argmax(high == low)}, so it cannot be scaled to [-1, 1]")
    return 2 * ((frames - low) / (high - low)) - 1


def thin_out(frames: np.ndarray) -> np.ndarray:
    """Every floor(T/50)-th frame, the first 50 of them; shorter recordings stay as they are.

    Between 51 and 99 frames this keeps the first 50. Source: released code (Predict & Cluster).
    """
    return frames[::max(len(frames) // FRAMES, 1)][:FRAMES]


def interpolate(frames: np.ndarray) -> np.ndarray:
    """Stretch or shrink a recording (T, joints, 3), linearly in time, to 50 frames from its first to its last."""
    moments = np.linspace(0, len(frames) - 1, FRAMES)
    before = np.minimum(moments.astype(np.int64), len(frames) - 2)
    weight = (moments - before)[:, None, None]
    return frames[before] + weight * (frames[before + 1] - frames[before])


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner products over the last axis of size 3, summed in a fixed order."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def _unit(vector: np.ndarray, otherwise: str) -> np.ndarray:
    """`vector` (3,) divided by its length; a length below the data's resolution raises, saying `otherwise`."""
    length = np.sqrt(_dot(vector, vector))
    if length < RESOLUTION:
        raise ValueError(f"{otherwise} in frame 0, so it gives no frame of reference")
    return vector / length
