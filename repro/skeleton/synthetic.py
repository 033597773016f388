"""Synthetic skeletons: a kinematic model of people, cameras and a depth sensor, in the layout of NW-UCLA.

Ten people perform the ten actions of NW-UCLA four times each, before three cameras. What comes out are camera
coordinates in metres, which then take the very same path as real recordings (`repro.skeleton.data`). Every number
below was set from anatomy, from the physics of the sensor or from summary statistics of NW-UCLA (durations, frame
rates, speeds, scatter of bone lengths), before any network was trained on the result. One statistic was looked at in
between, though no number was chosen for it: nearest neighbours among the flattened sequences of the default pipeline,
cameras 1 and 2 against 3, are of the same class for 73 % of the test recordings here and 73 % in NW-UCLA (66 %
without those that NW-UCLA repeats between cameras 2 and 3).

What makes the classes hard to tell, and why it is there:

*The performer.* Joint angles move from posture to posture along minimum-jerk curves, as human reaching does
(Flash & Hogan 1985); bones then place the joints, and the lower foot stays where it is on the floor, which makes the
body walk, crouch and sit without skating. Actions share postures and differ in their order and timing: standing up is
sitting down backwards, doffing ends where donning begins, carrying is walking with bent arms, dropping and throwing
both extend one arm, picking up differs in one arm only. People differ in stature and proportions, tempo, size of
movement, posture, the way they form each posture, and hand: two of ten are left-handed, and everybody uses the other
hand now and then. No take repeats another: headings, tempo, phase of the gait and the course of every joint vary.

*The clip.* A human annotator cuts each camera's film: some standing about before and after remains, or part of the
action is cut off. One take in eight is broken off early. The three recording computers write different numbers of
frames per second and now and then lose one.

*The sensor.* The cameras stand at different angles, heights and distances. Depth errors grow with the square of the
distance (Khoshelham & Elberink 2012); a joint is fitted to many pixels, which leaves a fifth of a pixel's error. The
tracker errs by fast jitter, largest at the hands, and by a slow drift that adds up along a limb, because it places each
part next to the one before. Both are up to three times as large for joints hidden behind the trunk. Of a body seen
from the side it sees one shoulder and one hip, and places the hidden ones too close to them, as NW-UCLA's hips show,
15 cm apart from the front and 7 cm from the side. A tracker that has only just found a body still converges during the
first frames. Coordinates are rounded to six decimals, as in NW-UCLA's files; this also makes the data the same on
every machine, although sines may differ in their last bit.
"""

from dataclasses import dataclass

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
CHANNELS = (                  # degrees; "main" is the right side, mirrored afterwards for left-handed takes
    "pelvis", "spine", "neck",                     # bend forwards
    "twist", "lean",                               # turn to the left; bend to the right
    "main_raise", "main_spread", "main_roll", "main_elbow",        # upper arm forwards, sideways, inwards; bend
    "other_raise", "other_spread", "other_roll", "other_elbow",
    "main_thigh", "main_knee", "other_thigh", "other_knee",        # thigh forwards from the vertical; bend
)
STANCE = dict(zip(CHANNELS, (2, 4, 5, 0, 0, 2, 9, 10, 15, 2, 9, 10, 15, 2, 4, 2, 4), strict=True))
HABIT = dict(zip(CHANNELS, (3, 4, 6, 3, 2, 4, 4, 6, 7, 4, 4, 6, 7, 2, 2, 2, 2), strict=True))    # spread over people

SEED = 20200519
RATE = 60                     # simulated frames per second
MARGIN = 1.5                  # seconds simulated before and after an action
PEOPLE, TAKES, LEFT_HANDED = 10, 4, (3, 8)
SHORTEST, LONGEST = 11, 150   # frames of a clip
CAMERAS = (                   # azimuth and elevation in degrees, distance in metres, frames per second
    (-45, 8, 2.6, 18.0),
    (0, 10, 2.7, 13.0),
    (45, 11, 2.8, 12.5),
)
JITTER = 1e-3 * np.array([1.5, 1.5, 1.5, 1.5, 2, 5, 9, 10, 2, 5, 9, 10, 2, 1, 1, 1, 2, 1, 1, 1])     # metres, by joint
DRIFT = 1e-3 * np.array([0, 4, 18, 10, 14, 15, 17, 9, 14, 15, 17, 9, 8, 25, 22, 7, 8, 25, 22, 7])      # metres, by bone


@dataclass(frozen=True)
class Action:
    """An action at a normal tempo.

    Attributes:
        seconds: duration.
        postures: (moment in 0..1, degrees by channel); channels not named stand at rest.
        gait: (moment in 0..1, how much of a step is taken: 0 standing, 1 walking).
        swing: how much the arms swing while walking.
        turning: degrees the body turns during the action, standard deviation over takes.
    """

    seconds: float
    postures: tuple[tuple[float, dict[str, float]], ...]
    gait: tuple[tuple[float, float], ...] = ((0, 0), (1, 0))
    swing: float = 1.0
    turning: float = 10.0


@dataclass(frozen=True)
class Person:
    """A performer.

    Attributes:
        offsets: (20, 3) metres, every joint from its parent in the rest position.
        tempo, amplitude, unsteadiness: factors about 1.
        left_handed: performs mirrored.
        posture: (channels,) degrees added to every posture.
        manner: (actions, postures, channels) degrees, the person's own way to form each posture.
    """

    offsets: np.ndarray
    tempo: float
    amplitude: float
    unsteadiness: float
    left_handed: bool
    posture: np.ndarray
    manner: np.ndarray


def both(raise_: float, spread: float, roll: float, elbow: float) -> dict[str, float]:
    """Both arms in the same position, degrees."""
    return {f"{arm}_{part}": value for arm in ARMS
            for part, value in (("raise", raise_), ("spread", spread), ("roll", roll), ("elbow", elbow))}


def arm(which: str, raise_: float, spread: float, roll: float, elbow: float) -> dict[str, float]:
    """One arm, `main` or `other`, degrees."""
    return {f"{which}_raise": raise_, f"{which}_spread": spread, f"{which}_roll": roll, f"{which}_elbow": elbow}


def legs(thigh: float, knee: float) -> dict[str, float]:
    """Both legs bent alike, degrees."""
    return {"main_thigh": thigh, "main_knee": knee, "other_thigh": thigh, "other_knee": knee}


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


def generate() -> dict[str, np.ndarray]:
    """All recordings: 10 people, 10 actions, 4 takes, each before the 3 cameras at once; the same every time.

    Returns:
        The fields of `repro.skeleton.data.Recordings`.
    """
    rng = np.random.Generator(np.random.PCG64(SEED))
    people = [draw_person(rng, left_handed=number in LEFT_HANDED) for number in range(1, PEOPLE + 1)]
    frames, rows, names = [], [], []
    for label, (code, action) in enumerate(ACTIONS.items()):
        for subject, person in enumerate(people, start=1):
            for take in range(TAKES):
                positions, seconds = perform(action, person, person.manner[label], rng)
                for view, camera in enumerate(CAMERAS, start=1):
                    frames.append(film(positions, seconds, camera, person.unsteadiness, rng))
                    rows.append((len(frames[-1]), label, subject, view))
                    names.append(f"a{code:02}_s{subject:02}_e{take:02}_v{view:02}")
    lengths, labels, subjects, views = np.ascontiguousarray(np.array(rows, dtype=np.int64).T)
    return {"frames": np.concatenate(frames), "lengths": lengths, "labels": labels, "subjects": subjects,
            "views": views, "names": np.array(names)}


def draw_person(rng: np.random.Generator, *, left_handed: bool) -> Person:
    """A person of random stature, proportions, tempo and manner; both halves of the body alike."""
    proportions = rng.normal(1, 0.07) * np.clip(rng.normal(1, 0.05, JOINTS), 0.85, 1.15)
    offsets = np.zeros((JOINTS, 3))
    for joint, offset in HALF.items():
        offsets[joint] = proportions[joint] * np.array(offset)
        if MIRRORED[joint] != joint:
            offsets[MIRRORED[joint]] = offsets[joint] * (-1, 1, 1)
    spread = np.array([HABIT[channel] for channel in CHANNELS])
    longest = max(len(action.postures) for action in ACTIONS.values())
    return Person(
        offsets=offsets,
        tempo=np.exp(rng.normal(0, 0.15)),
        amplitude=np.clip(rng.normal(1, 0.12), 0.75, 1.25),
        unsteadiness=np.exp(rng.normal(0, 0.2)),
        left_handed=left_handed,
        posture=rng.normal(0, spread),
        manner=rng.normal(0, 1.2 * spread, (len(ACTIONS), longest, len(CHANNELS))),
    )


def perform(action: Action, person: Person, manner: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """One take.

    Args:
        action, person: what and who.
        manner: (postures, channels) degrees, the person's own way to form the postures of this action.
        rng: source of what differs from take to take.

    Returns:
        (T, 20, 3) metres on the floor of the room, RATE frames per second, from MARGIN before the action to MARGIN
        after it, and the duration of the action in seconds. Bones keep their lengths.
    """
    seconds = action.seconds / person.tempo * np.exp(rng.normal(0, 0.25))
    times = np.arange(-MARGIN, seconds + MARGIN, 1 / RATE)
    angles = postures_over_time(action, person, manner, times / seconds, rng)
    angles += _sway(times, rng)
    _add_gait(angles, action, times, seconds, rng)
    heading = rng.normal(0, 40) + rng.normal(0, action.turning) * np.clip(times / seconds, -0.2, 1.2)
    positions = kinematics(dict(zip(CHANNELS, np.radians(angles).T, strict=True)), np.radians(heading), person.offsets)
    if person.left_handed != (rng.random() < 0.1):
        positions = positions[:, MIRRORED] * (-1, 1, 1)
    during = (times >= 0) & (times <= seconds)
    place = rng.normal(0, 0.25, 2) - positions[during][:, 0, [0, 2]].mean(axis=0)
    positions[..., 0] += place[0]
    positions[..., 2] += place[1]
    return positions, seconds


def postures_over_time(
    action: Action, person: Person, manner: np.ndarray, clock: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(T, channels) degrees at the moments `clock` (T,) of an action that lasts from 0 to 1."""
    moments = np.array([moment for moment, _ in action.postures])
    pace = np.exp(rng.normal(0, 0.2, len(moments) - 1))            # each part has its own tempo
    moments = np.concatenate([[0], np.cumsum(np.diff(moments) * pace)])
    moments /= moments[-1]
    values = np.array([[posture.get(channel, 0.0) for channel in CHANNELS] for _, posture in action.postures])
    values *= person.amplitude * rng.normal(1, 0.08)
    spread = np.array([HABIT[channel] for channel in CHANNELS])
    values += [STANCE[channel] for channel in CHANNELS] + person.posture
    values += manner[:len(moments)] + rng.normal(0, 0.8 * spread, values.shape)
    lags = rng.normal(0, 0.03, len(CHANNELS))                      # joints do not move in lockstep
    return glide(clock[:, None] - lags, moments, values)


def glide(clock: np.ndarray, moments: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Minimum-jerk curves through `values`: at rest in each of them, and before the first and after the last.

    Args:
        clock: (T, C) time of every channel.
        moments: (K,) ascending.
        values: (K, C) reached at those moments.

    Returns:
        (T, C).

    Source: Flash & Hogan 1985, the point-to-point solution 10 u^3 - 15 u^4 + 6 u^5.
    """
    index = np.clip(np.searchsorted(moments, clock, side="right") - 1, 0, len(moments) - 2)
    part = np.clip((clock - moments[index]) / (moments[index + 1] - moments[index]), 0, 1)
    eased = part * part * part * (10 - 15 * part + 6 * part * part)
    start, stop = np.take_along_axis(values, index, 0), np.take_along_axis(values, index + 1, 0)
    return start + eased * (stop - start)


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


def film(
    positions: np.ndarray, seconds: float, camera: tuple[float, ...], unsteadiness: float, rng: np.random.Generator
) -> np.ndarray:
    """What one camera's skeleton tracker makes of a take.

    Args:
        positions, seconds: of `perform`.
        camera: azimuth and elevation in degrees, distance in metres, frames per second.
        unsteadiness: factor on the tracker's errors, from the person's clothes and build.
        rng: source of the cut and of the errors.

    Returns:
        (frames, 20, 3) metres: to the camera's left, up, away from it; rounded to six decimals.
    """
    *pose, rate = camera
    picked = _cut(len(positions), seconds, rate, rng)
    frames = to_camera(positions[picked], *pose)
    hidden = _hidden(frames)
    girdle = [4, 8, 12, 16]
    towards = frames[:, MIRRORED][:, girdle] - frames[:, girdle]
    clean = frames.copy()
    clean[:, girdle] += 0.5 * hidden[:, girdle, None] * towards
    worse = unsteadiness * (1 + 2 * hidden[..., None])
    jitter = JITTER[:, None] * rng.standard_normal(frames.shape)
    noisy = clean + worse * (jitter + _drift(frames.shape, rng)) + _convergence(frames.shape, rng)
    noisy[..., 2] += 0.2 * 1.425e-3 * frames[..., 2] ** 2 * rng.standard_normal(frames.shape[:2])
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


def _add_gait(
    angles: np.ndarray, action: Action, times: np.ndarray, seconds: float, rng: np.random.Generator
) -> None:
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


def _sway(times: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(T, channels) degrees: nobody stands still; slow oscillation of a quarter of the spread over people."""
    spread = np.array([HABIT[channel] for channel in CHANNELS])
    speed, phase = rng.uniform(0.2, 0.6, len(CHANNELS)), rng.random(len(CHANNELS))
    return 0.25 * spread * np.sin(2 * np.pi * (times[:, None] * speed + phase))


def _over_the_standing_foot(positions: np.ndarray) -> np.ndarray:
    """(T, 3) where the hip centre goes so that the lower ankle of a body at the origin stays in place, 9 cm up."""
    ankles = positions[:, [14, 18]]
    standing = ankles[..., 1].argmin(axis=1)
    steps = np.take_along_axis(np.diff(ankles, axis=0), standing[:-1, None, None], 1)[:, 0]
    root = np.zeros((len(positions), 3))
    root[1:] = -np.cumsum(steps, axis=0)
    root[:, 1] = 0.09 - ankles[..., 1].min(axis=1)
    return root


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


def _convergence(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Errors of a tracker that has just found the body: one clip in four, 2 cm, fading over three frames."""
    found_late = rng.random() < 0.25
    fading = np.exp(-np.arange(shape[0]) / 3)[:, None, None]
    return found_late * 0.02 * fading * rng.standard_normal(shape[1:])


def _rotate(bones: np.ndarray, which: slice | list[int], axis: int, angle: np.ndarray) -> None:
    """Turn the bones `which` of (T, 20, 3) about a coordinate axis by (T,) radians, in place."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
    turned = cosine * bones[:, which, first] - sine * bones[:, which, second]
    bones[:, which, second] = sine * bones[:, which, first] + cosine * bones[:, which, second]
    bones[:, which, first] = turned
