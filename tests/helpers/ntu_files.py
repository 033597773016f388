"""Recordings of NTU RGB+D made up in the official text format, for the tests of its reader and preparation."""

import numpy as np

FIRST = 72057594037931691  # 17 digits: as float64 it is its own successor


def body(length, seed=0, joints=25):
    """(length, joints, 3) float32 of a standing figure that moves, hips across and spine up, taller than wide."""
    rng, shape = np.random.default_rng(seed), (length, joints, 3)
    frames = rng.normal([0.1, 0.2, 3.0], [0.1, 0.4, 0.1], (1, joints, 3)) + rng.normal(0, 0.01, shape).cumsum(axis=0)
    frames[:, 1] = frames[:, 0] + [0.01, 0.3, -0.01]
    frames[:, 12], frames[:, 16] = frames[:, 0] + [-0.08, -0.05, 0.02], frames[:, 0] + [0.08, -0.06, -0.01]
    return frames.astype(np.float32)


def text(frames, end="\r\n", numbers=".7g"):
    """The official text of a recording: for each frame a list of (id, (25, 3) joints)."""
    rng = np.random.default_rng(1)
    lines = [str(len(frames))]
    for bodies in frames:
        lines.append(str(len(bodies)))
        for number, joints in bodies:
            lines += [f"{number} 0 1 1 0 0 0 {rng.normal():.7g} {rng.normal():.7g} 2", str(len(joints))]
            for joint in joints:
                values = [format(value, numbers) for value in (*joint, *rng.normal(200, 90, 8))]
                lines.append(" ".join([*values, "2"]))
    return (end.join(lines) + end).encode()


def recording(*tracks, frames=None):
    """For each frame the (id, joints) in view; a track is (id, first frame, (T, 25, 3))."""
    frames = frames or max(start + len(joints) for _, start, joints in tracks)
    return [
        [(number, joints[t - start]) for number, start, joints in tracks if start <= t < start + len(joints)]
        for t in range(frames)
    ]


def wide(joints, frames):
    """The same body, lying, in some frames."""
    joints = joints.copy()
    joints[frames, :, :2] = joints[frames][:, :, 1::-1]
    return joints


def still(length, seed):
    """A body that does not move."""
    return np.repeat(body(1, seed), length, axis=0)


ONE = recording((FIRST, 0, body(5)))
TWO = recording((FIRST, 0, body(6, 1)), (FIRST + 1, 0, body(6, 2)))
COMING = recording((FIRST, 2, body(4, 3)), (FIRST + 1, 0, body(3, 4)), (FIRST + 2, 5, body(3, 5)), frames=10)
AGAIN = [[(FIRST, joints)] if t not in (2, 3) else [] for t, joints in enumerate(body(7, 6))]
CROWD = recording(*((FIRST + k, 0, body(3, k)) for k in range(6)))
LONG = recording((FIRST, 0, body(320, 7)), (FIRST + 1, 10, body(100, 8)))
GHOST = recording((FIRST, 0, still(30, 1)), (FIRST + 1, 0, 3 * body(11, 2)))       # moves much, for 11 frames
SITTING = recording((FIRST, 0, still(43, 1)), (FIRST + 1, 0, wide(body(43, 2), range(29))))        # 67.44 % of it


def changed(line, replacement, frames=TWO):
    """The text of a recording with another line in one place, counted from 0."""
    lines = text(frames).split(b"\r\n")
    lines[line] = replacement
    return b"\r\n".join(lines)


def slow_read(contents):
    """[(id, frame, (25, 3) joints)], read value by value."""
    words, found = iter(contents.split()), []
    for frame in range(int(next(words))):
        for _ in range(int(next(words))):
            number, *_ = [int(next(words)), *(next(words) for _ in range(9))]
            joints = [[next(words) for _ in range(12)][:3] for _ in range(int(next(words)))]
            found.append((number, frame, [[np.float32(value) for value in joint] for joint in joints]))
    return found
