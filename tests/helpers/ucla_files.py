"""Recordings of NW-UCLA made up in the official format, and the view transform of the released code, done slowly."""

import json

import numpy as np

from repro.skeleton import data


def body(length, seed=0):
    """(length, 20, 3) of a standing figure with random joints, hips across and spine up."""
    rng = np.random.default_rng(seed)
    frames = rng.normal(0, 0.3, (1, 20, 3)) + np.cumsum(rng.normal(0, 0.02, (length, 20, 3)), axis=0) + [0, 0, 2.5]
    frames[:, 1] = frames[:, 0] + [0.01, 0.07, -0.01]
    frames[:, 12], frames[:, 16] = frames[:, 0] + [-0.08, -0.05, 0.02], frames[:, 0] + [0.08, -0.06, -0.01]
    return frames.round(6)


def recording(name, frames, **changes):
    """(file name, JSON) in the official format."""
    label = list(data.UCLA_ACTIONS).index(int(name[1:3])) + 1
    values = {"file_name": name, "skeletons": np.asarray(frames).tolist(), "label": label} | changes
    return f"{name}.json", json.dumps(values).encode()


def slow_view_invariant(frames):
    """The released code's transform, a joint at a time, with an explicit inverse."""
    first = frames[0]
    e1 = (first[1] - first[0]) / np.linalg.norm(first[1] - first[0])
    e2 = (first[12] - first[16]) - np.dot(first[12] - first[16], e1) * e1
    e2 /= np.linalg.norm(e2)
    inverse = np.linalg.inv(np.stack([e2, np.cross(e2, e1), e1], axis=1))
    return np.array([[inverse @ (joint - first[0]) for joint in frame] for frame in frames])
