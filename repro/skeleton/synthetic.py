"""Synthetic skeletons: a kinematic model of people, cameras and a depth sensor, in the layout of NW-UCLA.

Ten people perform the ten actions of NW-UCLA four times each, before three cameras. What comes out takes the path of
real recordings (`repro.skeleton.data`). Every number here was set from anatomy, the physics of the sensor or summary
statistics of NW-UCLA, before any network was trained on the result. Nearest neighbours among the sequences of the
default pipeline, cameras 1 and 2 against 3, are of the same class for 73 % here and in NW-UCLA.

An action is a course of postures. Actions share them and differ in their order and timing: standing up is sitting down
backwards, doffing ends where donning begins, carrying is walking with bent arms, picking up differs in one arm only.
Joint angles move from posture to posture along minimum-jerk curves, as human reaching does (Flash & Hogan 1985). Bones
then place the joints, and the lower foot stays where it is on the floor: the body walks without skating. People differ
in stature, tempo, size of movement, posture and hand, takes in heading, tempo, gait and the course of every joint.

Depth errors grow with the square of the distance (Khoshelham & Elberink 2012); a joint is fitted to many pixels, which
leaves a fifth of a pixel's error. The tracker errs by fast jitter, largest at the hands, and by a slow drift that adds
up along a limb, both more for joints behind the trunk; a hidden shoulder or hip is placed too close to the other one.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from repro.skeleton import DATASETS
from repro.skeleton.pipelines import Recording

SEED = 20200519
PEOPLE, TAKES, LEFT_HANDED = 10, 4, (3, 8)
SHORTEST, LONGEST = 11, 150   # frames of a clip
CAMERAS = (                   # azimuth and elevation in degrees, distance in metres, frames per second
    (-45, 8, 2.6, 18.0),
    (0, 10, 2.7, 13.0),
    (45, 11, 2.8, 12.5),
)
GIRDLE = [4, 8, 12, 16]       # shoulders and hips
JITTER = 1e-3 * np.array([1.5, 1.5, 1.5, 1.5, 2, 5, 9, 10, 2, 5, 9, 10, 2, 1, 1, 1, 2, 1, 1, 1])     # metres, by joint
DRIFT = 1e-3 * np.array([0, 4, 18, 10, 14, 15, 17, 9, 14, 15, 17, 9, 8, 25, 22, 7, 8, 25, 22, 7])      # metres, by bone
RATE = 60                     # simulated frames per second
MARGIN = 1.5                  # seconds simulated before and after an action
JOINTS = 20                   # Kinect v1: hip centre, spine, shoulder centre, head; arms from 4 (left) and 8 (right):
                              # shoulder, elbow, wrist, hand; legs from 12 (left) and 16: hip, knee, ankle, foot
BONES = DATASETS["synthetic"].skeletons.bones  # (parent, joint), from the hip outwards
MIRRORED = (0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15)
HALF = {                      # metres from the parent: left, up, forward; the left half of the body, after NW-UCLA
    1: (0, 0.068, 0), 2: (0, 0.335, 0), 3: (0, 0.185, 0.02), 4: (0.165, -0.095, 0), 5: (0, -0.253, 0),
    6: (0, -0.236, 0), 7: (0, -0.078, 0), 12: (0.075, -0.066, 0), 13: (0.03, -0.487, 0), 14: (0, -0.377, 0),
    15: (0.02, -0.035, 0.08),
}
CHANNELS = (                  # degrees; "main" is the right side, mirrored afterwards for left-handed takes
    "pelvis", "spine", "neck",                     # bend forwards
    "twist", "lean",                               # turn to the left; bend to the right
    "main_raise", "main_spread", "main_roll", "main_elbow",        # upper arm forwards, sideways, inwards; bend
    "other_raise", "other_spread", "other_roll", "other_elbow",
    "main_thigh", "main_knee", "other_thigh", "other_knee",        # thigh forwards from the vertical; bend
)
STANCE = np.array((2, 4, 5, 0, 0, 2, 9, 10, 15, 2, 9, 10, 15, 2, 4, 2, 4))     # by channel: at rest ...
HABIT = np.array((3, 4, 6, 3, 2, 4, 4, 6, 7, 4, 4, 6, 7, 2, 2, 2, 2))          # ... and its spread over people


def generate() -> Iterator[Recording]:
    """All recordings: 10 people, 10 actions, 4 takes, each before the 3 cameras at once; the same every time."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    people = [Person(rng, number in LEFT_HANDED) for number in range(1, PEOPLE + 1)]
    for label, code in enumerate(ACTIONS):
        for subject, person in enumerate(people, start=1):
            for _ in range(TAKES):
                positions, seconds = person.perform(code, rng)
                for view, camera in enumerate(CAMERAS, start=1):
                    yield Recording(film(positions, seconds, camera, person.unsteadiness, rng), label, subject, view)


# ------------------------------------------------------------------------------------------------ people



@dataclass(frozen=True)
class Action:
    """An action at a normal tempo; moments run from 0 to 1."""

    seconds: float
    postures: tuple[tuple[float, dict[str, float]], ...]      # moment, degrees by channel; the others stand at rest
    gait: tuple[tuple[float, float], ...] = ((0, 0), (1, 0))  # moment, how much of a step is taken: 1 is walking
    swing: float = 1.0                                        # of the arms while walking
    turning: float = 10.0                                     # degrees of the body, standard deviation over takes


def bent(parts: tuple[str, ...], sides: str, *degrees: float) -> dict[str, float]:
    """The parts of a limb on the sides "main", "other" or "main other", in degrees."""
    return {f"{side}_{part}": value for side in sides.split() for part, value in zip(parts, degrees, strict=True)}


arm = functools.partial(bent, ("raise", "spread", "roll", "elbow"))
both = functools.partial(arm, "main other")
legs = functools.partial(bent, ("thigh", "knee"), "main other")
REST: dict[str, float] = {}
CROUCH = {"pelvis": 42, "spine": 32, "neck": -15, **legs(48, 74)}
REACHING = CROUCH | arm("main", 62, 6, 0, 12) | arm("other", 48, 8, 10, 35)
SEATED = {"pelvis": 4, "spine": 6, **legs(78, 84), **both(22, 0, 20, 35)}
LEANING = {"pelvis": 34, "spine": 14, "neck": -12, **legs(50, 68), **both(18, 5, 0, 25)}
COAT = both(40, 8, 20, 75)                         # a coat held before the body
COLLAR = both(48, 22, 38, 128)
SHRUGGED = {"spine": -6, **both(-28, 28, 10, 55)}  # both arms behind, the coat at the elbows
MAIN_SLEEVE = {"twist": -14, **arm("main", 10, 62, 0, 30), **arm("other", 50, 5, 55, 100)}
OTHER_SLEEVE = {"twist": 16, "lean": -6, **arm("other", -32, 42, 5, 62), **arm("main", 42, 10, 45, 112)}
HOLDING = arm("main", 20, 6, 15, 80)
BOX = both(24, 4, 12, 74)

ACTIONS = {                   # keyed and ordered as in NW-UCLA's file names
    1: Action(1.9, ((0, REST), (0.3, REST), (0.6, REACHING), (0.9, HOLDING), (1, HOLDING)),
              gait=((0, 1), (0.35, 0.9), (0.5, 0), (0.8, 0), (1, 1))),
    2: Action(2.2, ((0, REST), (0.3, REST), (0.6, CROUCH | both(60, 2, 12, 16)), (0.9, BOX), (1, BOX)),
              gait=((0, 1), (0.35, 0.9), (0.5, 0), (0.8, 0), (1, 1))),
    3: Action(2.0, ((0, HOLDING), (0.3, HOLDING), (0.55, {"pelvis": 10, "spine": 8, **arm("main", 58, 16, 0, 18)}),
                    (0.68, {"pelvis": 10, "spine": 8, **arm("main", 54, 18, 0, 14)}), (1, REST)),
              gait=((0, 1), (0.35, 0.7), (0.5, 0.25), (0.65, 0.25), (0.8, 0.8), (1, 1)), swing=0.6),
    4: Action(2.3, ((0, REST), (1, REST)), gait=((0, 1), (1, 1)), turning=60),
    5: Action(1.6, ((0, REST), (0.15, REST), (0.6, LEANING), (1, SEATED)), gait=((0, 0.3), (0.12, 0), (1, 0))),
    6: Action(1.4, ((0, SEATED), (0.4, LEANING), (0.85, REST), (1, REST)), gait=((0, 0), (0.88, 0), (1, 0.3))),
    8: Action(5.8, ((0, COAT), (0.22, MAIN_SLEEVE), (0.36, MAIN_SLEEVE), (0.55, OTHER_SLEEVE), (0.75, COLLAR),
                    (1, REST))),
    9: Action(3.7, ((0, REST), (0.15, COLLAR), (0.4, SHRUGGED), (0.6, OTHER_SLEEVE), (0.78, MAIN_SLEEVE), (1, COAT))),
    11: Action(1.7, ((0, HOLDING), (0.2, HOLDING),
                     (0.5, {"twist": -28, "lean": 5, "spine": -4, **arm("main", 35, 75, -45, 100)}),
                     (0.68, {"twist": 18, "spine": 10, "pelvis": 6, **arm("main", 88, 18, 0, 14)}),
                     (0.82, {"twist": 20, "spine": 12, "pelvis": 8, **arm("main", 38, -4, 20, 20)}), (1, REST)),
               gait=((0, 0.2), (0.3, 0), (0.6, 0.3), (0.8, 0), (1, 0))),
    12: Action(1.6, ((0, BOX), (1, BOX)), gait=((0, 0), (0.35, 0.6), (1, 1)), swing=0.12, turning=25),
}


class Person:
    """A performer of random stature, proportions, tempo and manner; both halves of the body alike."""

    def __init__(self, rng: np.random.Generator, left_handed: bool) -> None:
        proportions = rng.normal(1, 0.07) * np.clip(rng.normal(1, 0.05, JOINTS), 0.85, 1.15)
        self.offsets = np.zeros((JOINTS, 3))  # metres, every joint from its parent in the rest position
        for joint, offset in HALF.items():
            self.offsets[joint] = proportions[joint] * np.array(offset)
            if MIRRORED[joint] != joint:
                self.offsets[MIRRORED[joint]] = self.offsets[joint] * (-1, 1, 1)
        self.tempo = np.exp(rng.normal(0, 0.15))
        self.amplitude = np.clip(rng.normal(1, 0.12), 0.75, 1.25)
        self.unsteadiness = np.exp(rng.normal(0, 0.2))
        self.left_handed = left_handed
        self.posture = rng.normal(0, HABIT)  # degrees added to every posture
        longest = max(len(action.postures) for action in ACTIONS.values())
        manner = rng.normal(0, 1.2 * HABIT, (len(ACTIONS), longest, len(CHANNELS)))
        self.manner = dict(zip(ACTIONS, manner, strict=True))  # degrees, the own way to form each posture, by action

    def perform(self, code: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """One take of an action, from MARGIN before it to MARGIN after it.

        Returns:
            (T, 20, 3) metres on the floor of the room, y up, RATE frames per second; the action's duration in seconds.
        """
        action = ACTIONS[code]
        seconds = action.seconds / self.tempo * np.exp(rng.normal(0, 0.25))
        times = np.arange(-MARGIN, seconds + MARGIN, 1 / RATE)
        angles = self._postures(code, times / seconds, rng)
        speed, phase = rng.uniform(0.2, 0.6, len(CHANNELS)), rng.random(len(CHANNELS))   # nobody stands still
        angles += 0.25 * HABIT * np.sin(2 * np.pi * (times[:, None] * speed + phase))
        _add_gait(angles, action, times, seconds, rng)
        heading = rng.normal(0, 40) + rng.normal(0, action.turning) * np.clip(times / seconds, -0.2, 1.2)
        by_channel = dict(zip(CHANNELS, np.radians(angles).T, strict=True))
        positions = kinematics(by_channel, np.radians(heading), self.offsets)
        if self.left_handed != (rng.random() < 0.1):  # everybody uses the other hand now and then
            positions = positions[:, MIRRORED] * (-1, 1, 1)
        during = (times >= 0) & (times <= seconds)
        positions[..., [0, 2]] += rng.normal(0, 0.25, 2) - positions[during][:, 0, [0, 2]].mean(axis=0)
        return positions, seconds

    def _postures(self, code: int, clock: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(T, channels) degrees at the moments `clock` (T,) of an action that lasts from 0 to 1."""
        moments, postures = zip(*ACTIONS[code].postures, strict=True)
        pace = np.exp(rng.normal(0, 0.2, len(moments) - 1))            # each part has its own tempo
        moments = np.concatenate([[0], np.cumsum(np.diff(moments) * pace)])
        moments /= moments[-1]
        values = np.array([[posture.get(channel, 0.0) for channel in CHANNELS] for posture in postures])
        values *= self.amplitude * rng.normal(1, 0.08)
        values += STANCE + self.posture
        values += self.manner[code][:len(moments)] + rng.normal(0, 0.8 * HABIT, values.shape)
        lags = rng.normal(0, 0.03, len(CHANNELS))                      # joints do not move in lockstep
        return glide(clock[:, None] - lags, moments, values)


def glide(clock: np.ndarray, moments: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Minimum-jerk curves through `values`: at rest in each of them, and before the first and after the last.

    (T, C) times of every channel, (K,) ascending moments, (K, C) values reached then -> (T, C).

    Source: Flash & Hogan 1985, the point-to-point solution 10 u^3 - 15 u^4 + 6 u^5.
    """
    index = np.clip(np.searchsorted(moments, clock, side="right") - 1, 0, len(moments) - 2)
    part = np.clip((clock - moments[index]) / (moments[index + 1] - moments[index]), 0, 1)
    eased = part * part * part * (10 - 15 * part + 6 * part * part)
    start, stop = np.take_along_axis(values, index, 0), np.take_along_axis(values, index + 1, 0)
    return start + eased * (stop - start)


def _add_gait(angles: np.ndarray, action: Action, times: np.ndarray, seconds: float, rng: np.random.Generator) -> None:
    """Add steps and the swing of the arms to `angles` (T, channels), degrees, where the action walks."""
    moments, gates = np.array(action.gait, dtype=np.float64).T
    gate = glide(times[:, None] / seconds, moments, gates[:, None])[:, 0]
    paces = rng.normal(0.85, 0.08) * times * action.seconds / seconds          # pairs of steps, 0.85 a second
    phase = 2 * np.pi * (rng.random() + paces)
    stride, lift, swing = rng.normal(18, 2.5), rng.normal(42, 6), rng.normal(16, 5) * action.swing
    for side, sign in (("main", 1), ("other", -1)):
        forwards = sign * np.sin(phase)
        angles[:, CHANNELS.index(f"{side}_thigh")] += gate * stride * forwards
        angles[:, CHANNELS.index(f"{side}_knee")] += gate * lift * np.maximum(sign * np.cos(phase), 0) ** 2
        angles[:, CHANNELS.index(f"{side}_raise")] -= gate * swing * forwards
    angles[:, CHANNELS.index("twist")] -= gate * 4 * np.sin(phase)


def kinematics(angles: dict[str, np.ndarray], heading: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Joint positions of a body that stands on the floor; the foot nearer to it stays where it is.

    Args:
        angles: radians (T,) of every channel.
        heading: (T,) radians, 0 facing along +z, positive to the left.
        offsets: (20, 3) metres from each joint's parent at rest: left, up, forward.

    Returns:
        (T, 20, 3) metres, y up, the floor at 0. Bones keep the lengths of `offsets`.
    """
    bones = np.repeat(offsets[None], len(heading), axis=0)
    for side, shoulder, outwards in (("main", 8, -1.0), ("other", 4, 1.0)):
        limb = slice(shoulder + 1, shoulder + 4)
        _rotate(bones, slice(shoulder + 2, shoulder + 4), 0, -angles[f"{side}_elbow"])
        _rotate(bones, limb, 1, -outwards * angles[f"{side}_roll"])
        _rotate(bones, limb, 2, outwards * angles[f"{side}_spread"])
        _rotate(bones, limb, 0, -angles[f"{side}_raise"])
    for side, hip in (("main", 16), ("other", 12)):
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
    ankles = positions[:, [14, 18]]
    standing = ankles[..., 1].argmin(axis=1)
    steps = np.take_along_axis(np.diff(ankles, axis=0), standing[:-1, None, None], 1)[:, 0]
    positions[1:] -= np.cumsum(steps, axis=0)[:, None]
    positions[..., 1] += 0.09 - positions[:, [14, 18], 1].min(axis=1)[:, None]           # ankles are 9 cm up
    return positions


def _rotate(bones: np.ndarray, moved: slice | list[int], axis: int, angle: np.ndarray) -> None:
    """Turn the bones `moved` of (T, 20, 3) about a coordinate axis by (T,) radians, in place."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
    turned = cosine * bones[:, moved, first] - sine * bones[:, moved, second]
    bones[:, moved, second] = sine * bones[:, moved, first] + cosine * bones[:, moved, second]
    bones[:, moved, first] = turned


# ------------------------------------------------------------------------------------------------ cameras


def film(
    positions: np.ndarray, seconds: float, camera: tuple[float, ...], unsteadiness: float, rng: np.random.Generator
) -> np.ndarray:
    """What one camera's skeleton tracker makes of a take.

    Args:
        positions, seconds: of `Person.perform`.
        camera: azimuth and elevation in degrees, distance in metres, frames per second.
        unsteadiness: factor on the tracker's errors, from the person's clothes and build.
        rng: source of the cut and of the errors.

    Returns:
        (frames, 20, 3) metres: to the camera's left, up, away from it; rounded to six decimals.
    """
    *pose, rate = camera
    clean = to_camera(positions[_cut(len(positions), seconds, rate, rng)], *pose)
    depth, hidden = clean[..., 2].copy(), _hidden(clean)
    clean[:, GIRDLE] += 0.5 * hidden[:, GIRDLE, None] * (clean[:, MIRRORED][:, GIRDLE] - clean[:, GIRDLE])
    worse = unsteadiness * (1 + 2 * hidden[..., None])
    jitter = JITTER[:, None] * rng.standard_normal(clean.shape)
    noisy = clean + worse * (jitter + _drift(clean.shape, rng))
    just_found = rng.random() < 0.25                          # converging: 2 cm, fading over three frames
    noisy += just_found * 0.02 * np.exp(-np.arange(len(clean)) / 3)[:, None, None] * rng.standard_normal((20, 3))
    noisy[..., 2] += 0.2 * 1.425e-3 * depth ** 2 * rng.standard_normal(depth.shape)
    return np.round(noisy, 6)


def to_camera(positions: np.ndarray, azimuth: float, elevation: float, distance: float) -> np.ndarray:
    """Coordinates (..., 3) in the frame of a camera that looks at the middle of the scene, 0.8 m above the floor.

    Args:
        positions: (..., 3) metres in the room, y up.
        azimuth, elevation: degrees; where the camera stands as seen from the middle, 0 at +z.
        distance: metres from there.
    """
    turn, rise = np.radians(azimuth), np.radians(elevation)
    direction = np.array([np.sin(turn) * np.cos(rise), np.sin(rise), np.cos(turn) * np.cos(rise)])
    left = np.cross((0, 1, 0), -direction) / np.cos(rise)
    up = np.cross(-direction, left)
    relative = positions - (np.array([0, 0.8, 0]) + distance * direction)
    return np.stack([(relative * axis).sum(axis=-1) for axis in (left, up, -direction)], axis=-1)


def _cut(available: int, seconds: float, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Indices (n,) into a take of `available` frames: the clip an annotator cuts from one camera's film."""
    start = rng.normal(0.02, 0.12) * seconds - rng.exponential(0.1)
    stop = rng.normal(0.98, 0.1) * seconds + rng.exponential(0.15)
    if rng.random() < 0.12:
        stop -= rng.uniform(0.15, 0.35) * seconds
    count = int(np.clip(np.round((stop - start) * rate), SHORTEST, LONGEST))
    moments = start + (np.arange(count) + rng.uniform(-0.2, 0.2, count)) / rate
    lost = rng.random(count) < 0.02
    moments += np.cumsum(lost) / rate
    return np.clip(np.round((moments + MARGIN) * RATE).astype(np.int64), 0, available - 1)


def _hidden(frames: np.ndarray) -> np.ndarray:
    """(T, 20) from 0 to 1: how much a joint in camera coordinates is behind the trunk, seen from the camera."""
    trunk = frames[:, :3].mean(axis=1, keepdims=True)
    behind = 1 / (1 + np.exp(-(frames[..., 2] - trunk[..., 2] - 0.05) / 0.015))
    return behind * np.exp(-((frames[..., 0] - trunk[..., 0]) / 0.15) ** 2)


def _drift(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Slow errors (T, 20, 3) in metres: each bone's own, changing over 12 frames, added up from the hip outwards."""
    knots = DRIFT[:, None] * rng.standard_normal((shape[0] // 12 + 2, *shape[1:]))
    index, part = np.divmod(np.arange(shape[0]) / 12, 1)
    index, part = index.astype(np.int64), part[:, None, None]
    errors = knots[index] + part * (knots[index + 1] - knots[index])
    for parent, joint in BONES:
        errors[:, joint] += errors[:, parent]
    return errors
