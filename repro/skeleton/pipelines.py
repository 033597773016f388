"""What happens to the coordinates of a recording before training. NumPy alone, float64, one recording at a time."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from repro.skeleton.ntu import JOINTS, Bodies

FRAMES = 50                   # frames after resampling
RESOLUTION = 1e-6             # metres; NW-UCLA's files give six decimals
LONGEST = 300                 # frames of the longest recording of NTU RGB+D, and of the authors' arrays
FEWEST = 12                   # frames of a body that is taken for one
WIDTH = 0.8                   # of a body across, by its height: a wider one is taken for noise ...
WIDE_FRAMES = 0.69754         # ... if it is wider in this share of its frames
NO_BODY = "no frame has a body"

Recording = TypeVar("Recording")


def rounded(pipeline: Callable[[Recording], np.ndarray], recording: Recording) -> np.ndarray:
    """What a pipeline makes of a recording, (T, ...) float32.

    Raises:
        ValueError: as the pipeline; or with the frame, if coordinates are so large that they are not finite then.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sequence = pipeline(recording).astype(np.float32)
    finite = np.isfinite(sequence).reshape(len(sequence), -1).all(axis=1)
    if not finite.all():
        raise ValueError(f"its coordinates are so large that frame {np.argmin(finite)} of the sequence is not finite")
    return sequence


def transform(frames: np.ndarray, pipeline: str) -> np.ndarray:
    """Put the frames of one recording, (T, joints, 3), through a pipeline of `load`; at most 50 frames come out.

    Everything is float64 and elementwise, which every machine rounds alike.
    """
    if pipeline != "raw":
        frames = view_invariant(frames)
    if pipeline == "default":
        frames = scale(frames)
    return interpolate(frames) if pipeline == "interpolate" else thin_out(frames)


def view_invariant(frames: np.ndarray) -> np.ndarray:
    """Express a recording in a frame of reference given by the body in its first frame.

        x <- R^T (x - d),   R = [e2 e3 e1],   d = joint 0 (hip centre)
        e1 = unit(joint 1 - joint 0)                                        up the spine
        e2 = unit(joint 12 - joint 16, less its part along e1)              from the right hip to the left
        e3 = e2 x e1                                                        ahead

    R is orthogonal with determinant -1: the body comes out mirrored, as in the released code (Predict & Cluster, which
    the paper's data come from). Distances are kept. Joint 0 of frame 0 becomes the origin.

    The released code for NTU also skips frames in which a camera coordinate is exactly zero, a test meant for frames
    without a body (`predict_cluster` does). NW-UCLA has no frame without a body; of its 58,534 frames two, both valid,
    have a coordinate that happens to be 0.000000. Nothing is skipped here, so that lengths and counts are those of the
    files.

    Args:
        frames: (T, joints, 3), metres.

    Returns:
        (T, joints, 3), metres.

    Raises:
        ValueError: if the joints of the first frame do not span the axes.

    Source: Su et al. 2020 (Predict & Cluster), released code, view invariant transform.
    """
    first = frames[0]
    up = _unit(first[1] - first[0], "joints 0 and 1 coincide")
    across = first[12] - first[16]
    across = _unit(across - _dot(across, up) * up, "the hips, joints 12 and 16, do not lie across the spine")
    ahead = np.cross(across, up)
    centred = frames - first[0]
    return np.stack([_dot(centred, axis) for axis in (across, ahead, up)], axis=-1)


def scale(frames: np.ndarray) -> np.ndarray:
    """Map each axis of a recording (T, joints, 3) to [-1, 1] by its smallest and largest value.

    Proportions between the axes are not kept.

    Raises:
        ValueError: if an axis has no extent.

    Source: released code (Predict & Cluster).
    """
    low, high = frames.min(axis=(0, 1)), frames.max(axis=(0, 1))
    if (high == low).any():
        raise ValueError(f"all joints agree in coordinate {np.argmax(high == low)}, so it cannot be scaled to [-1, 1]")
    return 2 * ((frames - low) / (high - low)) - 1


def thin_out(frames: np.ndarray) -> np.ndarray:
    """Every floor(T/50)-th frame, the first 50 of them; shorter recordings stay as they are.

    Between 51 and 99 frames this keeps the first 50.

    Source: released code (Predict & Cluster).
    """
    return frames[::max(len(frames) // FRAMES, 1)][:FRAMES]


def interpolate(frames: np.ndarray) -> np.ndarray:
    """Stretch or shrink a recording (T, joints, 3), linearly in time, to 50 frames from its first to its last."""
    moments = np.linspace(0, len(frames) - 1, FRAMES)
    before = np.minimum(moments.astype(np.int64), len(frames) - 2)
    weight = (moments - before)[:, None, None]
    return frames[before] + weight * (frames[before + 1] - frames[before])


def authors(bodies: Bodies) -> np.ndarray:
    """The taxonomy authors' sequences of NTU RGB+D: two bodies in metres, neither turned, scaled nor resampled.

    Each frame holds two halves: the body that the file lists first in this frame, then the second, whoever they are;
    zero where there is none. Further bodies are left out. As many frames are kept, from the first one on, as the half
    with most bodies has frames with a body, at most 300; so a recording with empty frames loses its end. If the second
    half is not zero throughout, the mean over all joints, both halves and all frames is subtracted everywhere, also
    from the zeros that stand for no body; if it is, the first half's mean over joints and frames, from that half.

    Returns:
        (T, 150) float64, metres.

    Raises:
        ValueError: if no frame has a body.

    Source: released taxonomy code, `restore_NTU.py` and `Center`; Yan et al. 2018 (ST-GCN), `ntu_gendata.py`.
    """
    order = np.arange(len(bodies.frame)) - np.searchsorted(bodies.frame, bodies.frame)  # in its frame's list, from 0
    kept = order < 2
    sequence = np.zeros((bodies.frames, 2, JOINTS, 3))
    sequence[bodies.frame[kept], order[kept]] = bodies.joints[kept]
    sequence = sequence[:LONGEST]
    length = (sequence != 0).any(axis=(2, 3)).sum(axis=0).max(initial=0)
    if length == 0:
        raise ValueError(NO_BODY)
    sequence = sequence[:length]
    if sequence[:, 1].any():
        sequence -= sequence.mean(axis=(0, 1, 2))
    else:
        sequence[:, 0] -= sequence[:, 0].mean(axis=(0, 1))
    return sequence.reshape(length, -1)


def predict_cluster(bodies: Bodies) -> np.ndarray:
    """Predict & Cluster's sequences of NTU RGB+D: one body, turned to the camera, scaled, at most 50 frames.

    The frames of one body (`main_body`), `view_invariant`, without those in which a camera coordinate of any joint is
    exactly zero, then `scale` and `thin_out`. The released code also has a step before `scale` that gives every bone
    the length 1; it is commented out in the PyTorch script, which is followed here, and active in `ntu_preprocess.py`.

    Returns:
        (T, 75) float64 in [-1, 1].

    Raises:
        ValueError: if there is no body, no frame is left, or the body gives no frame of reference or no scale.

    Source: Su et al. 2020 (Predict & Cluster), released code, `NTU60_preprocess.ipynb` and
        `NTU_View_Invariant_Transform.ipynb`.
    """
    frames = bodies.joints[bodies.body == main_body(bodies)].astype(np.float64)
    kept = (frames != 0).all(axis=(1, 2))
    if not kept.any():
        raise ValueError("no frame without a coordinate that is exactly zero")
    return thin_out(scale(view_invariant(frames)[kept])).reshape(-1, JOINTS * 3)


def main_body(bodies: Bodies) -> int:
    """The number of the body that Predict & Cluster keeps.

    Of several bodies, those in view for fewer than 12 frames are left out (not if that leaves none), then, one by one
    while there are two, those wider than 0.8 of their height in 69.754 % of their frames. Of the rest the one that
    moves most: the sum over x, y and z of the variance over frames and joints, or that over the frames in which the
    body is not too wide, if there are wide ones and it is less. What a frame lists twice under one id counts as two
    frames of that body, as in the released code; which then fails where a body's frames, so counted, go on beyond the
    recording's last one, for which it has no row. Here nothing fails.

    Raises:
        ValueError: if no frame has a body.
    """
    tracks = {body: bodies.joints[bodies.body == body] for body in np.unique(bodies.body).tolist()}
    if not tracks:
        raise ValueError(NO_BODY)
    if len(tracks) == 1:
        return next(iter(tracks))
    tracks = {body: track for body, track in tracks.items() if len(track) >= FEWEST} or tracks
    motion = {}
    for body, track in list(tracks.items()):
        extent = np.ptp(track[:, :, :2], axis=1)                             # (frames, 2): across and up
        narrow = extent[:, 0] <= WIDTH * extent[:, 1]
        motion[body] = _variance(track)
        if len(tracks) > 1 and (~narrow).mean() >= WIDE_FRAMES:
            del tracks[body], motion[body]
        elif len(tracks) > 1 and not narrow.all():
            motion[body] = min(motion[body], _variance(track[narrow]))
    return max(motion, key=motion.get)


def _variance(track: np.ndarray) -> float:
    """Sum over x, y and z of the variance over frames and joints of (T, 25, 3)."""
    return float(track.reshape(-1, 3).astype(np.float64).var(axis=0).sum())


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner products over the last axis of size 3, summed in a fixed order."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def _unit(vector: np.ndarray, otherwise: str) -> np.ndarray:
    """`vector` (3,) divided by its length; a length below the data's resolution raises, saying `otherwise`."""
    length = np.sqrt(_dot(vector, vector))
    if length < RESOLUTION:
        raise ValueError(f"{otherwise} in frame 0, so it gives no frame of reference")
    return vector / length
