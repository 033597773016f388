"""Synthetic skeletons: a kinematic model of people, cameras and a depth sensor, in the layout of NW-UCLA.

Ten people perform the ten actions of NW-UCLA four times each, before three cameras. What comes out takes the path of
real recordings (`repro.skeleton.data`). Every number here and in `performers` was set from anatomy, the physics of the
sensor or summary statistics of NW-UCLA, before any network was trained on the result. Nearest neighbours among the
sequences of the default pipeline, cameras 1 and 2 against 3, are of the same class for 73 % here and in NW-UCLA.

Depth errors grow with the square of the distance (Khoshelham & Elberink 2012); a joint is fitted to many pixels, which
leaves a fifth of a pixel's error. The tracker errs by fast jitter, largest at the hands, and by a slow drift that adds
up along a limb, both more for joints behind the trunk; a hidden shoulder or hip is placed too close to the other one.
"""

from collections.abc import Iterator

import numpy as np

from repro.skeleton.performers import ACTIONS, BONES, MARGIN, MIRRORED, RATE, Person
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
