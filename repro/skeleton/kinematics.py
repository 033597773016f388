"""A body of 20 joints that stands on the floor: the layout of the Kinect v1, and joint angles to positions."""

import numpy as np

JOINTS = 20                   # Kinect v1: hip centre, spine, shoulder centre, head; arms from 4 (left) and 8 (right):
                              # shoulder, elbow, wrist, hand; legs from 12 (left) and 16: hip, knee, ankle, foot
PARENTS = (-1, 0, 1, 2, 2, 4, 5, 6, 2, 8, 9, 10, 0, 12, 13, 14, 0, 16, 17, 18)
BONES = tuple((parent, joint) for joint, parent in enumerate(PARENTS) if parent >= 0)
MIRRORED = (0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15)
HALF = {                      # metres from the parent: left, up, forward; the left half of the body, after NW-UCLA
    1: (0, 0.068, 0), 2: (0, 0.335, 0), 3: (0, 0.185, 0.02), 4: (0.165, -0.095, 0), 5: (0, -0.253, 0),
    6: (0, -0.236, 0), 7: (0, -0.078, 0), 12: (0.075, -0.066, 0), 13: (0.03, -0.487, 0), 14: (0, -0.377, 0),
    15: (0.02, -0.035, 0.08),
}
ARMS = {"main": (8, -1.0), "other": (4, 1.0)}      # first joint; sign of a turn that moves the limb outwards
LEGS = {"main": (16, -1.0), "other": (12, 1.0)}


def kinematics(angles: dict[str, np.ndarray], heading: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Joint positions of a body that stands on the floor.

    The foot nearer to the floor stays where it is while the body moves over it, so steps carry the body forward.

    Args:
        angles: radians (T,) of every channel.
        heading: (T,) radians, 0 facing along +z, positive to the left.
        offsets: (20, 3) metres from each joint's parent at rest: left, up, forward.

    Returns:
        (T, 20, 3) metres, y up, the floor at 0. Bones keep the lengths of `offsets`.
    """
    bones = np.repeat(offsets[None], len(heading), axis=0)
    for side, (shoulder, outwards) in ARMS.items():
        _rotate(bones, slice(shoulder + 2, shoulder + 4), 0, -angles[f"{side}_elbow"])
        limb = slice(shoulder + 1, shoulder + 4)
        _rotate(bones, limb, 1, -outwards * angles[f"{side}_roll"])
        _rotate(bones, limb, 2, outwards * angles[f"{side}_spread"])
        _rotate(bones, limb, 0, -angles[f"{side}_raise"])
    for side, (hip, _) in LEGS.items():
        _rotate(bones, slice(hip + 1, hip + 2), 0, -angles[f"{side}_thigh"])
        _rotate(bones, slice(hip + 2, hip + 3), 0, angles[f"{side}_knee"] - angles[f"{side}_thigh"])
    _rotate(bones, slice(3, 4), 0, angles["neck"])
    for axis, channel in ((0, "spine"), (2, "lean"), (1, "twist")):
        _rotate(bones, slice(2, 12), axis, angles[channel])
    _rotate(bones, [*range(1, 13), 16], 0, angles["pelvis"])
    _rotate(bones, slice(0, JOINTS), 1, heading)
    positions = np.zeros_like(bones)
    for parent, joint in BONES:
        positions[:, joint] = positions[:, parent] + bones[:, joint]
    return positions + _over_the_standing_foot(positions)[:, None]


def _over_the_standing_foot(positions: np.ndarray) -> np.ndarray:
    """(T, 3) where the hip centre goes so that the lower ankle of a body at the origin stays in place, 9 cm up."""
    ankles = positions[:, [14, 18]]
    standing = ankles[..., 1].argmin(axis=1)
    steps = np.take_along_axis(np.diff(ankles, axis=0), standing[:-1, None, None], 1)[:, 0]
    root = np.zeros((len(positions), 3))
    root[1:] = -np.cumsum(steps, axis=0)
    root[:, 1] = 0.09 - ankles[..., 1].min(axis=1)
    return root


def _rotate(bones: np.ndarray, which: slice | list[int], axis: int, angle: np.ndarray) -> None:
    """Turn the bones `which` of (T, 20, 3) about a coordinate axis by (T,) radians, in place."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
    turned = cosine * bones[:, which, first] - sine * bones[:, which, second]
    bones[:, which, second] = sine * bones[:, which, first] + cosine * bones[:, which, second]
    bones[:, which, first] = turned
