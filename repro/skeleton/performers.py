"""People who perform actions, each in a manner of their own and no take like another.

Joint angles move from posture to posture along minimum-jerk curves, as human reaching does (Flash & Hogan 1985); bones
then place the joints, and the lower foot stays where it is on the floor, which makes the body walk, crouch and sit
without skating. People differ in stature and proportions, tempo, size of movement, posture, the way they form each
posture, and hand: two of ten are left-handed, and everybody uses the other hand now and then. No take repeats another:
headings, tempo, phase of the gait and the course of every joint vary.
"""

from dataclasses import dataclass

import numpy as np

from repro.skeleton.actions import ACTIONS, CHANNELS, HABIT, STANCE, Action
from repro.skeleton.kinematics import HALF, JOINTS, MIRRORED, kinematics

RATE = 60                     # simulated frames per second
MARGIN = 1.5                  # seconds simulated before and after an action


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


def draw_person(rng: np.random.Generator, *, left_handed: bool) -> Person:
    """A person of random stature, proportions, tempo and manner; both halves of the body alike."""
    proportions = rng.normal(1, 0.07) * np.clip(rng.normal(1, 0.05, JOINTS), 0.85, 1.15)
    offsets = np.zeros((JOINTS, 3))
    for joint, offset in HALF.items():
        offsets[joint] = proportions[joint] * np.array(offset)
        if MIRRORED[joint] != joint:
            offsets[MIRRORED[joint]] = offsets[joint] * (-1, 1, 1)
    longest = max(len(action.postures) for action in ACTIONS.values())
    return Person(
        offsets=offsets,
        tempo=np.exp(rng.normal(0, 0.15)),
        amplitude=np.clip(rng.normal(1, 0.12), 0.75, 1.25),
        unsteadiness=np.exp(rng.normal(0, 0.2)),
        left_handed=left_handed,
        posture=rng.normal(0, HABIT),
        manner=rng.normal(0, 1.2 * HABIT, (len(ACTIONS), longest, len(CHANNELS))),
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
    values += STANCE + person.posture
    values += manner[:len(moments)] + rng.normal(0, 0.8 * HABIT, values.shape)
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
    speed, phase = rng.uniform(0.2, 0.6, len(CHANNELS)), rng.random(len(CHANNELS))
    return 0.25 * HABIT * np.sin(2 * np.pi * (times[:, None] * speed + phase))
