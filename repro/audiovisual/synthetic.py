"""Synthetic clips: discs of ten materials that move in a box in ten ways, filmed and recorded for two seconds.

A clip shows one disc in one box, and what is heard is that disc: pictures and sound come from the same mechanics. Every
constant was set from mechanics, acoustics, what a microphone still hears and what 24 pixels still show, before any
network was trained on the result. SI units unless said otherwise; x runs to the right and y upwards from the lower left
corner of the box. Every function takes many scenes at once, as `draw` describes them.

*Motion.* Each coordinate of a disc's centre has a constant acceleration between events: an impact, the end of a slide,
the floor reached. An impact returns the disc at its material's restitution times the speed; a surface that drives it, a
springy floor, a hand or a shaken wall, at that surface's own speed at least. Impacts are frictionless, so nothing
starts to spin in the air. The ten ways to move (`MOTIONS`) are the classes. A camera held askew does not show that a
slope is one, and the pegs of a wheel pass a clapper while its bearing slows it down.

*Picture.* A camera of 24 x 24 pixels, 10 frames per second, sees the whole box. The disc is painted in two halves, so
that its turning is visible, and polished materials show a highlight. Paint, clutter on the back wall, light and camera
are drawn anew for every scene and say nothing about material or motion. Edges are anti-aliased and the sensor adds
grain.

*Sound.* Every impact excites the bending modes of a free circular plate,

    f_k = lambda_k^2 / (2 pi) * thickness / radius^2 * sqrt(E / (12 rho (1 - nu^2)))

(lambda_k^2 from Leissa 1969), which decay by exp(-(pi eta f_k + 3) t), where the loss factors eta are of the order of
magnitude that Cremer & Heckl give. The amplitude of a mode is the change of speed at the impact, times the spectrum of
a contact as long as Hertz's law says: soft discs sound dull. A disc that rolls or slides is driven by the grains of
the floor in proportion to its speed; a rolling one is uneven, loudest once a turn, when its first half is below. What
rang before the clip begins still rings. Gain of the microphone, colour and level of the room's noise and the exact
tuning of the modes differ between scenes. So loudness and timing follow the motion, pitch follows size and material,
and decay the material.

*Categories.* 10 motions x 10 materials make 100 categories; category = 10 * label + material. `train` and `test`, with
labels for probes, have 10 scenes of every category each. Every clip of the three parts has its own disc, box, camera
and room, and train and test are the same whatever the redundancy.

*Redundancy* r in [0, 1) describes the 2,000 clips of `pretrain`. Frequencies of categories fall as rank^-r, over ranks
drawn once; and in each category a fraction r of the clips, but never the last one, are near-duplicates of another: the
same disc, box, camera and motion, beginning up to 0.2 s later, in other light, at a gain up to 2 dB apart, with other
noise. r = 0 means 20 scenes of each category and no near-duplicate; the default, 0.5, means 997 near-duplicates, and
108 clips of the most frequent category against 11 of the rarest.

Pixels are whole numbers and log-mel is rounded to 1/256, far coarser than the last bits of a sine, which makes the
data the same on every machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from repro.audiovisual.clips import PARTS, Clips
from repro.data import npz

Scenes = Mapping[str, np.ndarray]                             # columns of scenes, (n, ...) each

SEED = 20210503
COUNTS = {"pretrain": 2000, "train": 1000, "test": 1000}      # clips, multiples of 100
CHUNK = 40                                                    # clips made at once; changes nothing but speed
RADIUS, THICKNESS = (0.2, 0.4), (0.015, 0.025)                # m
LATEST, LATER = 0.3, 0.2                                      # s after the first movement; after the scene it repeats
HALF_WIDTH, ASKEW = (1.2, 1.4), 12                            # m that a camera sees to either side; degrees
REACH = 1.15                                                  # m from the middle of a box so askew, more than any disc
CLUTTER = 3                                                   # ellipses on the back wall
ROUGHNESS = {"": 0.0, "slides": 0.03, "rolls": 0.015}         # grains of the floor: change of speed by speed

GRAVITY, REST = 9.81, 0.05                                    # m/s^2; m/s, a slower disc stays where it hits
BOX = 2.0                                                     # m, width and height
ROLLING, BEARING = 0.1, 3.0                                   # deceleration: m/s^2 by rolling, rad/s^2 of a wheel
PEGS, CLAPPER = 6, 0.3                                        # of a wheel; what a peg does, by the speed of the rim

SIZE, FRAMES, FRAME_RATE = 24, 20, 10                         # pixels; frames of a clip; per second
RATE, ROWS_PER_FRAME, BANDS, TRANSFORM = 8000, 4, 32, 512     # samples per second; mel rows per frame; bands; samples
HOP = RATE // (FRAME_RATE * ROWS_PER_FRAME)                   # samples from one mel row to the next
BEFORE = 4000                                                 # samples made before the clip, for what still rings
SAMPLES = BEFORE + FRAMES * ROWS_PER_FRAME * HOP
CIRCLE = 36000                                                # of the circular convolution, wraps into BEFORE alone
CONTROL = 400                                                 # per second, how often contact with the floor changes
UNEVEN = 0.8                                                  # depth of the modulation of a rolling disc
LOUDNESS = 0.01                                               # of a mode, for a change of speed by 1 m/s
MODES = np.array([5.253, 9.084, 12.23, 20.52, 21.6, 33.1, 35.25, 38.55])     # lambda^2 of a free circular plate
POISSON = 1 / 3
QUIETEST = 1e-6                                               # power added before the logarithm


@dataclass(frozen=True)
class Material:
    """What a disc is made of.

    Attributes:
        stiffness: Young's modulus, GPa.
        density: kg/m^3.
        loss: loss factor of bending waves.
        restitution: speed after an impact by speed before, on a hard floor.
        friction: of sliding on a waxed floor.
        gloss: how much of a highlight shows, 0 to 1.
    """

    stiffness: float
    density: float
    loss: float
    restitution: float
    friction: float
    gloss: float


@dataclass(frozen=True)
class Motion:
    """A way to move. Pairs are ranges of a uniform distribution.

    Attributes:
        across, up: m/s at the beginning, sideways (to either side) and upwards.
        height: place at the beginning, from 0 on the floor to 1 under the top.
        top: m, above which the disc cannot rise: the ceiling, or the hand that dribbles it.
        falls: whether gravity pulls it to the floor.
        floor, hand, walls: m/s at which the floor, the top and the side walls drive it back.
        contact: what it does on the floor: "slides" against friction, "rolls", or "" where there is none to feel.
        slope: degrees of the floor.
        spin: radians per second at the beginning, of a wheel.
    """

    across: tuple[float, float] = (0, 0)
    up: tuple[float, float] = (0, 0)
    height: tuple[float, float] = (0, 0)
    top: tuple[float, float] = (BOX, BOX)
    falls: bool = False
    floor: tuple[float, float] = (0, 0)
    hand: tuple[float, float] = (0, 0)
    walls: tuple[float, float] = (0, 0)
    contact: str = ""
    slope: tuple[float, float] = (0, 0)
    spin: tuple[float, float] = (0, 0)


MATERIALS = {
    "steel": Material(200, 7850, 0.0005, 0.70, 0.10, 0.9),
    "brass": Material(100, 8500, 0.001, 0.60, 0.10, 0.9),
    "cast iron": Material(110, 7200, 0.003, 0.60, 0.12, 0.4),
    "lead": Material(16, 11340, 0.015, 0.20, 0.18, 0.3),
    "glass": Material(70, 2500, 0.0015, 0.70, 0.10, 1.0),
    "concrete": Material(30, 2400, 0.008, 0.35, 0.20, 0.0),
    "oak": Material(11, 700, 0.01, 0.50, 0.15, 0.2),
    "chipboard": Material(3, 700, 0.025, 0.40, 0.15, 0.0),
    "acrylic": Material(3.2, 1190, 0.04, 0.65, 0.12, 0.7),
    "polyethylene": Material(1.0, 950, 0.1, 0.75, 0.08, 0.4),
}
MOTIONS = {
    "dropped": Motion(height=(0.5, 1), falls=True),
    "thrown": Motion(across=(1, 3), up=(0, 3), height=(0.2, 0.8), falls=True, contact="slides"),
    "hopping": Motion(up=(1.5, 4), falls=True, floor=(1.5, 4)),
    "dribbled": Motion(up=(-4, -2), height=(1, 1), falls=True, top=(1.2, 1.5), floor=(4.7, 5.5), hand=(2, 4)),
    "shaken": Motion(across=(2.5, 5), walls=(2.5, 5)),
    "floating": Motion(across=(1.5, 3.5), up=(1.5, 3.5), height=(0, 1)),
    "pushed": Motion(across=(3, 6), contact="slides"),
    "rolled": Motion(across=(1.5, 4), contact="rolls"),
    "downhill": Motion(across=(0, 1.5), contact="rolls", slope=(8, 16)),
    "spun": Motion(height=(0, 1), spin=(8, 16)),
}


def load(redundancy: float = 0.5, window: int = 8) -> Clips:
    """All clips; the same every time.

    Args:
        redundancy: of the clips for pre-training, in [0, 1), as the module says: how many are near-duplicates, and how
            unequal the categories are.
        window: frames of a view.

    Returns:
        2,000 clips for pre-training, 1,000 to train and 1,000 to test probes, 20 frames of 24 x 24 pixels each, with 4
        rows of 32 mel bands per frame. Another redundancy than the default shows in the name.

    Raises:
        ValueError: if `redundancy` is not in [0, 1).
    """
    if not 0 <= redundancy < 1:
        raise ValueError(f"redundancy={redundancy!r} should be a number from 0 up to, not including, 1")
    parts = {part: cast(part, redundancy) for part in PARTS}
    frames, mel = (np.concatenate(each) for each in zip(*(make(parts[part], part) for part in PARTS), strict=True))
    categories = np.concatenate([scenes["category"] for scenes in parts.values()])
    place = np.repeat(np.arange(len(PARTS)), [len(scenes["category"]) for scenes in parts.values()])
    arrays = {
        "labels": categories // len(MATERIALS),
        "categories": categories,
        **{part: place == number for number, part in enumerate(PARTS)},
        "frames": frames.reshape(-1, *frames.shape[2:]),
        "first_frame": np.arange(len(categories) + 1) * frames.shape[1],
        "mel": mel.reshape(-1, BANDS),
        "first_row": np.arange(len(categories) + 1) * mel.shape[1],
    }
    name = "synthetic" if redundancy == 0.5 else f"synthetic (redundancy {redundancy:g})"
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    sizes = {"rows_per_frame": ROWS_PER_FRAME, "window": window}
    return Clips(name, npz.digest(arrays), tuple(MOTIONS), **tensors, **sizes)


def make(scenes: Scenes, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (n, 20, 24, 24, 3) uint8 and log-mel (n, 80, 32) float32 of the scenes of a part."""
    sensor, floor, room = (_generator(part, number) for number in (1, 2, 3))   # chunks of any size draw the same
    frames, mel = [], []
    for first in tqdm(range(0, len(scenes["category"]), CHUNK), desc=f"bundled clips, {part}", leave=False):
        chunk = {name: column[first:first + CHUNK] for name, column in scenes.items()}
        movement = move(chunk)
        frames.append(film(chunk, movement, grain(len(chunk["category"]), sensor)))
        mel.append(log_mel(record(chunk, movement, floor, room)))
    return np.concatenate(frames), np.concatenate(mel)


def pictures(items: Sequence[int]) -> np.ndarray:
    """Pictures of some of the clips for pre-training, as `load` has them; the others are not made.

    Args:
        items: indices from 0 up to, not including, 2,000.

    Returns:
        (len(items), 20, 24, 24, 3) uint8; red, green, blue.

    Raises:
        IndexError: if there is no such clip.
    """
    scenes = {name: column[items] for name, column in cast("pretrain", 0.5).items()}
    return film(scenes, move(scenes), grain(COUNTS["pretrain"], _generator("pretrain", 1))[items])


def cast(part: str, redundancy: float) -> Scenes:
    """The scenes of a part, one row per clip: those of `draw`, near-duplicates after the distinct ones.

    Column `origin` says which row a near-duplicate repeats; the row itself where it is distinct.
    """
    clips, distinct = shares(part, redundancy)
    rng = _generator(part, 0)
    scenes = draw(np.repeat(np.arange(len(clips)), distinct), rng)
    copied = np.repeat(np.arange(len(clips)), clips - distinct)
    first = np.cumsum(distinct) - distinct
    origin = first[copied] + (rng.random(len(copied)) * distinct[copied]).astype(np.int64)
    copies = {name: column[origin] for name, column in scenes.items()}
    copies["start"] = copies["start"] + rng.uniform(0, LATER, len(copied))
    copies |= _lighting(len(copied), rng)
    copies["gain"] = copies["gain"] * 10 ** (rng.uniform(-2, 2, len(copied)) / 20)
    together = {name: np.concatenate([column, copies[name]]) for name, column in scenes.items()}
    return together | {"origin": np.concatenate([np.arange(distinct.sum()), origin])}


def shares(part: str, redundancy: float) -> tuple[np.ndarray, np.ndarray]:
    """Clips, and distinct scenes among them, of each category, (100,) int64 each."""
    categories = len(MOTIONS) * len(MATERIALS)
    ratio = redundancy if part == "pretrain" else 0.0
    ranks = 1 + np.random.Generator(np.random.PCG64(SEED)).permutation(categories)
    expected = COUNTS[part] * ranks**-ratio / (ranks**-ratio).sum()
    clips = expected.astype(np.int64)
    clips[np.argsort(clips - expected, kind="stable")[:COUNTS[part] - clips.sum()]] += 1      # the largest remainders
    return clips, np.maximum(1, np.round((1 - ratio) * clips)).astype(np.int64)


def draw(categories: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Distinct scenes of the given categories (n,).

    Returns:
        Columns (n, ...) in SI units. Of the disc: `category, radius, thickness, restitution, gloss`. Of its motion:
        `x, y, across, up`, places and speeds at the beginning; `pull` sideways; `falls, top, floor, hand, walls, spin`
        as in `Motion`; `drag` and `roughness` of a floor that it feels, and whether it `rolls` there; `start`, when
        the clip begins. Of the picture: `paint` (n, 2, 3) of its halves and `mark`, the direction of the first in
        radians; `wall, sides` (n, 3) of the box; `clutter` (n, k, 4), centres and half axes, and `clutter_paint` (n,
        k, 3); the camera's `half_width, tilt` and `shift` (n, 2), and the `grain` of its sensor; `light` and its
        `slant` (n, 2) per metre. Of the sound: `frequencies, decays, amplitudes` (n, modes) as `resonances`;
        `gain`; `hiss` of the room (root mean square) and its `colour` c, power falling as f^-c.
    """
    n = len(categories)
    motion, material = np.divmod(categories, len(MATERIALS))
    ways, stuffs = tuple(MOTIONS.values()), tuple(MATERIALS.values())

    def of_motion(name: str) -> np.ndarray:
        low, high = np.array([getattr(way, name) for way in ways], dtype=np.float64)[motion].T
        return rng.uniform(low, high)

    def of_material(name: str) -> np.ndarray:
        return np.array([getattr(stuff, name) for stuff in stuffs], dtype=np.float64)[material]

    contact = np.array([way.contact for way in ways])[motion]
    side = rng.choice([-1.0, 1.0], n)
    radius, thickness, top = rng.uniform(*RADIUS, n), rng.uniform(*THICKNESS, n), of_motion("top")
    scenes = {
        "category": categories, "radius": radius, "thickness": thickness,
        "restitution": of_material("restitution"), "gloss": of_material("gloss"),
        "x": radius + (BOX - 2 * radius) * rng.random(n), "y": radius + (top - 2 * radius) * of_motion("height"),
        "across": side * of_motion("across"), "up": of_motion("up"),
        "pull": side * -GRAVITY * 2 / 3 * np.sin(np.radians(of_motion("slope"))),    # a third goes into turning
        "falls": np.array([way.falls for way in ways])[motion],
        "top": top, "floor": of_motion("floor"), "hand": of_motion("hand"), "walls": of_motion("walls"),
        "drag": np.select([contact == "slides", contact == "rolls"],
                          [GRAVITY * of_material("friction"), ROLLING], 0.0),
        "roughness": np.array([ROUGHNESS[each] for each in contact]), "rolls": contact == "rolls",
        "spin": side * of_motion("spin"), "start": rng.uniform(0, LATEST, n),
    }
    elastic = {name: of_material(name) for name in ("stiffness", "density", "loss")}
    return scenes | _picture(n, rng) | _lighting(n, rng) | _sound(scenes, elastic, rng)


def _picture(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Paint, surroundings and camera of n scenes, independent of what happens in them."""
    half_width = rng.uniform(*HALF_WIDTH, n)
    return {
        "paint": rng.uniform(0.1, 0.9, (n, 2, 3)), "mark": rng.uniform(0, 2 * np.pi, n),
        "wall": rng.uniform(0.1, 0.9, (n, 3)), "sides": rng.uniform(0.1, 0.9, (n, 3)),
        "clutter": rng.uniform((0, 0, 0.15, 0.15), (BOX, BOX, 0.6, 0.6), (n, CLUTTER, 4)),
        "clutter_paint": rng.uniform(0.1, 0.9, (n, CLUTTER, 3)),
        "half_width": half_width, "tilt": np.radians(rng.uniform(-ASKEW, ASKEW, n)),
        "shift": (half_width - REACH)[:, None] * rng.uniform(-1, 1, (n, 2)), "grain": rng.uniform(0.004, 0.016, n),
    }


def _lighting(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The light of n scenes."""
    return {"light": rng.uniform(0.7, 1.1, n), "slant": rng.uniform(-0.15, 0.15, (n, 2))}


def _sound(scenes: Scenes, material: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Modes of the discs of n scenes, microphone and room."""
    frequencies, decays, amplitudes = resonances(scenes["radius"], scenes["thickness"], material)
    frequencies = frequencies * rng.normal(1, 0.01, frequencies.shape)
    amplitudes = amplitudes * 10 ** (rng.normal(0, 3, frequencies.shape) / 20)
    n = len(frequencies)
    return {
        "frequencies": frequencies, "decays": decays,
        "amplitudes": np.where(frequencies < 0.48 * RATE, amplitudes, 0),    # the recorder's filter
        "gain": 10 ** (rng.uniform(-6, 6, n) / 20),
        "hiss": 10 ** (rng.uniform(-72, -52, n) / 20), "colour": rng.uniform(0, 2, n),
    }


def _generator(part: str, number: int) -> np.random.Generator:
    """The source of randomness `number` of a part."""
    return np.random.Generator(np.random.PCG64([SEED, PARTS.index(part), number]))


@dataclass(frozen=True)
class Path:
    """One coordinate of n discs: a constant acceleration between events.

    Attributes:
        times: (n, events) s at which a stretch begins, the first 0, ascending; inf after the last.
        positions, speeds, accelerations: (n, events) at those times, after the event.
        jolts: (n, events) m/s, the change of speed by the impact that began the stretch; 0 if it was none.
        rest: (n,) s from which the disc stays where it is, inf if it does not come to rest in the time simulated.
    """

    times: np.ndarray
    positions: np.ndarray
    speeds: np.ndarray
    accelerations: np.ndarray
    jolts: np.ndarray
    rest: np.ndarray

    def at(self, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position and speed (n, T) at the moments `seconds` (n, T), at least 0."""
        stretch = (self.times[:, None] <= seconds[:, :, None]).sum(-1) - 1
        time, position, speed, acceleration = (
            np.take_along_axis(each, stretch, 1)
            for each in (self.times, self.positions, self.speeds, self.accelerations)
        )
        elapsed = seconds - time
        return position + elapsed * (speed + acceleration * elapsed / 2), speed + acceleration * elapsed


def travel(
    position: np.ndarray, speed: np.ndarray, *, pull: np.ndarray, drag: np.ndarray, dragged_from: np.ndarray,
    low: np.ndarray, high: np.ndarray, driven_low: np.ndarray, driven_high: np.ndarray, restitution: np.ndarray,
    seconds: float,
) -> Path:
    """Follow one coordinate of n discs from event to event; all arguments but the last (n,).

    Args:
        position, speed: at time 0.
        pull: constant acceleration.
        drag, dragged_from: deceleration against the motion, and s from which it acts.
        low, high: walls.
        driven_low, driven_high: least speed after an impact there.
        restitution: speed after an impact by speed before.
        seconds: how long at least.
    """
    position, speed, pull = position.copy(), speed.copy(), pull.copy()
    clock, jolt, rest, stretches = np.zeros_like(position), np.zeros_like(position), np.full_like(position, np.inf), []
    while (clock <= seconds).any():
        slowing = np.where(clock >= dragged_from, drag, 0)
        acceleration = pull - slowing * np.sign(np.where(speed == 0, pull, speed))
        acceleration[(speed == 0) & (np.abs(pull) <= slowing)] = 0
        rest = np.where((speed == 0) & (acceleration == 0), np.minimum(rest, clock), rest)
        stretches.append((clock, position, speed, acceleration, jolt))
        events = np.full((4, len(clock)), np.inf)             # low wall, high wall, standstill, beginning of the drag
        events[0] = _until(position - low, -speed, -acceleration)
        events[1] = _until(high - position, speed, acceleration)
        np.divide(-speed, acceleration, out=events[2], where=(slowing > 0) & (speed * acceleration < 0))
        np.subtract(dragged_from, clock, out=events[3], where=clock < dragged_from)
        event = events.argmin(0)
        elapsed = events.min(0)
        moving = np.isfinite(elapsed)
        clock = np.where(event == 3, dragged_from, clock + elapsed)
        elapsed = np.where(moving, elapsed, 0)
        position = position + elapsed * (speed + acceleration * elapsed / 2)
        speed = speed + acceleration * elapsed
        hit = moving & (event < 2)
        back = np.maximum(restitution * np.abs(speed), np.where(event == 0, driven_low, driven_high))
        back[back < REST] = 0
        jolt = np.where(hit, np.abs(speed) + back, 0)
        position = np.where(hit, np.where(event == 0, low, high), position)
        speed = np.where(hit, np.where(event == 0, back, -back), np.where(event == 2, 0, speed))
        pull = np.where(hit & (back == 0), 0, pull)
    return Path(*(np.stack(each, 1) for each in zip(*stretches, strict=True)), rest=rest)


def _until(distance: np.ndarray, speed: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """Seconds (n,) until a wall is reached, `distance` >= 0 ahead, at a speed towards it; inf if never.

    One that touches the wall and leaves it reaches it when it comes back.
    """
    square = speed**2 + 2 * acceleration * distance           # of the speed at the wall
    root, seconds = np.sqrt(np.maximum(square, 0)), np.full_like(distance, np.inf)
    np.divide(2 * distance, speed + root, out=seconds, where=(square >= 0) & (speed > 0))
    return np.divide(root - speed, acceleration, out=seconds, where=(speed <= 0) & (acceleration > 0))


class Movement(NamedTuple):
    """Paths of the centres of n discs, and s (n,) from which each is on a floor that it feels, inf if never."""

    across: Path
    up: Path
    grounded: np.ndarray


def move(scenes: Scenes) -> Movement:
    """Solve the mechanics of n scenes for as long as the clip lasts."""
    none, radius = np.zeros(len(scenes["radius"])), scenes["radius"]
    span = {"restitution": scenes["restitution"], "seconds": scenes["start"].max() + FRAMES / FRAME_RATE}
    up = travel(
        scenes["y"], scenes["up"], pull=-GRAVITY * scenes["falls"], drag=none, dragged_from=none,
        low=radius, high=scenes["top"] - radius, driven_low=scenes["floor"], driven_high=scenes["hand"], **span,
    )
    grounded = np.where(scenes["roughness"] > 0, up.rest, np.inf)
    across = travel(
        scenes["x"], scenes["across"], pull=scenes["pull"], drag=scenes["drag"], dragged_from=grounded,
        low=radius, high=BOX - radius, driven_low=scenes["walls"], driven_high=scenes["walls"], **span,
    )
    return Movement(across, up, grounded)


def turned(scenes: Scenes, movement: Movement, seconds: np.ndarray) -> np.ndarray:
    """(n, T) radians by which the discs have turned, anticlockwise."""
    spin = scenes["spin"][:, None]
    turning = np.minimum(seconds, np.abs(spin) / BEARING)
    wheel = np.sign(spin) * turning * (np.abs(spin) - BEARING * turning / 2)
    rolled = (scenes["x"][:, None] - movement.across.at(seconds)[0]) / scenes["radius"][:, None]
    return wheel + scenes["rolls"][:, None] * rolled


def film(scenes: Scenes, movement: Movement, noise: np.ndarray) -> np.ndarray:
    """Pictures of n scenes, (n, FRAMES, SIZE, SIZE, 3) uint8, with the `grain` of the sensor."""
    seconds = scenes["start"][:, None] + np.arange(FRAMES) / FRAME_RATE
    centre = np.stack([path.at(seconds)[0] for path in (movement.across, movement.up)])          # (2, n, T)
    angle = scenes["mark"][:, None] + turned(scenes, movement, seconds)
    places, pixel = _places(scenes)                                                              # (2, n, H, W), (n,)
    sharpness, radius = (each[:, None, None, None] for each in (1 / pixel, scenes["radius"]))
    dx, dy = places[:, :, None] - centre[..., None, None]                                        # (n, T, H, W)
    inside = _edge((radius - np.sqrt(dx**2 + dy**2)) * sharpness)[:, :, None]
    cosine, sine = np.cos(angle)[..., None, None], np.sin(angle)[..., None, None]
    half = _edge((dx * cosine + dy * sine) * sharpness)[:, :, None]
    first, second = np.moveaxis(scenes["paint"][:, None, :, :, None, None], 2, 0)
    body = second + half * (first - second)                                                      # (n, T, 3, H, W)
    shine = np.exp(-((dx / radius + 0.35) ** 2 + (dy / radius - 0.35) ** 2) / 0.2)               # of a lamp, upper left
    body += (scenes["gloss"][:, None, None, None] * shine)[:, :, None] * (1 - body)
    behind = _behind(scenes, places, pixel)[:, None]
    light = 1 + np.einsum("na,anhw->nhw", scenes["slant"], places - BOX / 2)
    pictures = (behind + inside * (body - behind)) * (scenes["light"][:, None, None] * light)[:, None, None]
    pictures += scenes["grain"][:, None, None, None, None] * noise
    return np.ascontiguousarray(np.clip(np.round(255 * pictures), 0, 255).astype(np.uint8).transpose(0, 1, 3, 4, 2))


def grain(n: int, rng: np.random.Generator) -> np.ndarray:
    """What the sensor adds to the pictures of n scenes, of deviation 1 and the same in all colours."""
    return rng.standard_normal((n, FRAMES, 1, SIZE, SIZE), np.float32)


def _places(scenes: Scenes) -> tuple[np.ndarray, np.ndarray]:
    """Where in the box the camera's pixels look, (2, n, H, W) m, and their size (n,) m."""
    steps = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    half = scenes["half_width"][:, None, None]
    right = half * steps + scenes["shift"][:, 0, None, None]
    up = half * -steps[:, None] + scenes["shift"][:, 1, None, None]
    cosine, sine = np.cos(scenes["tilt"])[:, None, None], np.sin(scenes["tilt"])[:, None, None]
    places = np.stack([cosine * right - sine * up, sine * right + cosine * up]) + BOX / 2
    return places, 2 * scenes["half_width"] / SIZE


def _behind(scenes: Scenes, places: np.ndarray, pixel: np.ndarray) -> np.ndarray:
    """(n, 3, H, W) what the disc moves before: the back wall of the box, clutter on it, and the box's sides."""
    picture = scenes["wall"][..., None, None]
    for number in range(scenes["clutter"].shape[1]):
        centre, axes = np.split(scenes["clutter"][:, number].T[..., None, None], 2)              # (2, n, 1, 1) each
        distance = np.hypot(*((places - centre) / axes))
        inside = _edge((1 - distance) * axes.min(0) / pixel[:, None, None])[:, None]
        picture = picture + inside * (scenes["clutter_paint"][:, number, :, None, None] - picture)
    beyond = (np.abs(places - BOX / 2).max(0) - BOX / 2) / pixel[:, None, None]
    return picture + _edge(beyond)[:, None] * (scenes["sides"][..., None, None] - picture)


def _edge(pixels: np.ndarray) -> np.ndarray:
    """How much of a pixel is covered by what ends `pixels` beyond its middle."""
    return np.clip(0.5 + pixels, 0, 1)


def resonances(radius: np.ndarray, thickness: np.ndarray, material: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Bending modes of free circular plates, struck at 2 m/s.

    Args:
        radius, thickness: (n,) m.
        material: stiffness (GPa), density, loss, (n,) each.

    Returns:
        Frequencies in Hz, decay rates per second and amplitudes, (n, modes) each; the amplitude of a mode that is slow
        against the contact is 1.

    Source: Leissa 1969, Vibration of plates, table 2.5; Hertz's time of contact, 2.87 (m^2 / (R E*^2 v))^(1/5), of a
    pulse that is taken as a Gaussian as wide as half a sine.
    """
    young, density = 1e9 * material["stiffness"], material["density"]
    wave = np.sqrt(young / (12 * density * (1 - POISSON**2)))
    frequencies = MODES * (thickness / radius**2 * wave / (2 * np.pi))[:, None]
    mass = np.pi * radius**2 * thickness * density
    contact = 2.87 * (mass**2 / (radius * (young / (1 - POISSON**2)) ** 2 * 2)) ** 0.2
    width = np.sqrt(1 / 4 - 2 / np.pi**2) * contact[:, None]
    decays = np.pi * material["loss"][:, None] * frequencies + 3
    return frequencies, decays, np.exp(-2 * (np.pi * frequencies * width) ** 2)


def record(
    scenes: Scenes, movement: Movement, floor: np.random.Generator, room: np.random.Generator
) -> np.ndarray:
    """Sound of n scenes, (n, samples) at RATE; draws the grains of the floor and the noise of the room."""
    spectrum = np.fft.rfft(_blows(scenes, movement, floor), CIRCLE) * np.fft.rfft(_ringing(scenes), CIRCLE)
    spectrum *= LOUDNESS
    frequencies = np.maximum(np.fft.rfftfreq(CIRCLE, 1 / RATE), 50)
    colour = frequencies ** (-scenes["colour"][:, None] / 2)
    colour *= (scenes["hiss"] / np.sqrt((colour**2).mean(1)))[:, None]
    drawn = room.standard_normal((*colour.shape, 2), np.float32).view(np.complex64)[..., 0]
    spectrum += np.sqrt(CIRCLE / 2) * colour * drawn
    return scenes["gain"][:, None] * np.fft.irfft(spectrum, CIRCLE)[:, BEFORE:SAMPLES]


def _ringing(scenes: Scenes) -> np.ndarray:
    """(n, SAMPLES) what a disc answers to a blow of 1 m/s, amplitude 1 per mode: a sum of damped sines."""
    short = 160
    rates = (2j * np.pi * scenes["frequencies"] - scenes["decays"])[:, None] / RATE              # (n, 1, modes)
    coarse = scenes["amplitudes"][:, None] * np.exp(rates * np.arange(0, SAMPLES, short)[:, None])
    fine = np.exp(rates * np.arange(short)[:, None])
    left = np.concatenate([coarse.imag, coarse.real], 2)
    right = np.concatenate([fine.real, fine.imag], 2)
    return (left @ right.transpose(0, 2, 1)).reshape(len(rates), SAMPLES)


def _blows(scenes: Scenes, movement: Movement, rng: np.random.Generator) -> np.ndarray:
    """(n, SAMPLES) m/s given to the disc in each sample: impacts, pegs passing, grains of the floor."""
    n = len(scenes["radius"])
    seconds = scenes["start"][:, None] + (np.arange(SAMPLES * CONTROL // RATE) / CONTROL - BEFORE / RATE)
    moving = seconds >= 0
    grounded = moving & (seconds >= movement.grounded[:, None])
    angle = turned(scenes, movement, np.maximum(seconds, 0))
    speed = np.abs(movement.across.at(np.maximum(seconds, 0))[1])
    unevenness = 1 - UNEVEN * scenes["rolls"][:, None] * np.sin(scenes["mark"][:, None] + angle)
    blows = np.repeat(scenes["roughness"][:, None] * grounded * speed * unevenness, RATE // CONTROL, axis=1)
    touching = scenes["roughness"] > 0
    blows[touching] *= rng.standard_normal((touching.sum(), SAMPLES), np.float32)
    for path in (movement.across, movement.up):
        _strike(blows, np.arange(n)[:, None], path.times - scenes["start"][:, None], path.jolts)
    pegs = np.abs(angle) * (scenes["spin"] != 0)[:, None] * PEGS / (2 * np.pi)                  # that have passed
    row, step = np.nonzero(np.diff(np.floor(pegs)))
    rate = CONTROL * (pegs[row, step + 1] - pegs[row, step])
    moment = seconds[row, step] - scenes["start"][row] + (np.ceil(pegs[row, step]) - pegs[row, step]) / rate
    _strike(blows, row, moment, CLAPPER * scenes["radius"][row] * rate * 2 * np.pi / PEGS)
    return blows


def _strike(blows: np.ndarray, row: np.ndarray, moment: np.ndarray, strength: np.ndarray) -> None:
    """Add blows at `moment` s of the clip, in place, each shared between the two samples around it."""
    row, moment, strength = (each.ravel() for each in np.broadcast_arrays(row, moment, strength))
    place = BEFORE + RATE * moment
    kept = (strength > 0) & (place >= 0) & (place < SAMPLES - 1)
    row, place, strength = row[kept], place[kept], strength[kept]
    sample = place.astype(np.int64)
    np.add.at(blows, (row, sample), strength * (1 - (place - sample)))
    np.add.at(blows, (row, sample + 1), strength * (place - sample))


def log_mel(waveforms: np.ndarray) -> np.ndarray:
    """Natural logarithm of QUIETEST plus the power in mel bands.

    Rows are centred on every HOP-th sample from the first one on, Hann windows of TRANSFORM samples, with zeros beyond
    both ends of the waveform.

    Args:
        waveforms: (n, samples), samples a multiple of HOP.

    Returns:
        (n, samples / HOP, BANDS) float32, multiples of 1/256.
    """
    padded = np.pad(waveforms, ((0, 0), (TRANSFORM // 2, TRANSFORM // 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, TRANSFORM, 1)[:, :-1:HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(TRANSFORM) / TRANSFORM)
    spectra = np.fft.rfft(windows * hann)
    power = spectra.real**2 + spectra.imag**2
    return (np.round(256 * np.log(power @ mel_filters().T + QUIETEST)) / 256).astype(np.float32)


def mel_filters() -> np.ndarray:
    """(BANDS, TRANSFORM / 2 + 1) triangles of height 1, evenly spread on the scale 2595 log10(1 + f / 700)."""
    highest = 2595 * np.log10(1 + RATE / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, highest, BANDS + 2) / 2595) - 1)
    frequencies = np.fft.rfftfreq(TRANSFORM, 1 / RATE)
    rising = (frequencies - corners[:-2, None]) / np.diff(corners)[:-1, None]
    falling = (corners[2:, None] - frequencies) / np.diff(corners)[1:, None]
    return np.maximum(0, np.minimum(rising, falling))
