"""Synthetic clips: discs of ten materials that move in a box in ten ways, filmed and recorded for two seconds.

A clip shows one disc in one box, and what is heard is that disc: pictures and sound come from the same mechanics. Every
constant was set from mechanics, acoustics, what a microphone still hears and what 24 pixels still show, before any
network was trained on the result. SI units unless said otherwise; x runs to the right and y upwards from the lower left
corner of the box. Functions take n scenes at once: columns (n, ...), as `draw` makes them.

*Motion*, the class. Each coordinate of a disc's centre has a constant acceleration between events: an impact, the end
of a slide, the floor reached. An impact, without friction, returns the disc at its material's restitution times the
speed, and at least at the speed of what drives it: a springy floor, a hand, a shaken wall. The pegs of a wheel pass a
clapper while its bearing slows it down.

*Picture.* A camera of 24 x 24 pixels, 10 frames per second, held askew, sees the whole box. The disc has two halves, so
that its turning is visible, and polished ones a highlight. Paint, clutter, light, camera and grain say nothing.

*Sound.* Every impact excites the bending modes of a free circular plate (`resonances`) by the change of speed. A disc
that rolls or slides is driven by the grains of the floor in proportion to its speed; a rolling one is loudest once a
turn. What rang before the clip begins still rings. So loudness and timing follow the motion, pitch size and material,
and decay the material; gain, the room's noise and the tuning of the modes differ between scenes.

*Categories*: 10 motions x 10 materials; category = 10 * label + material. `train` and `test`, for probes, have 10
scenes of each, whatever the redundancy.

*Redundancy* r in [0, 1) describes `pretrain`. Frequencies of categories fall as rank^-r, over ranks drawn once; and in
each category a fraction r of the clips, but never the last one, are near-duplicates of another: the same disc, box,
camera and motion, up to 0.2 s later, in other light and noise, at a gain up to 2 dB apart. r = 0 means 20 scenes of
each category; the default, 0.5, 997 near-duplicates, and 108 clips of the most frequent category against 11.

Pixels are whole numbers and log-mel is rounded to 1/256, which makes the data the same on every machine.
"""

import functools
import hashlib
import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from repro.audiovisual.clips import PARTS, Clips
from repro.data import manifest, npz
from repro.data.prepared import made_once

Scenes = Mapping[str, np.ndarray]                             # columns (n, ...)

SEED = 20210503
COUNTS = {"pretrain": 2000, "train": 1000, "test": 1000}      # clips, multiples of 100
CHUNK = 40                                                    # clips made at once; changes nothing but speed
RADIUS, THICKNESS = (0.2, 0.4), (0.015, 0.025)                # m
LATEST, LATER = 0.3, 0.2                                      # s after the first movement; after the scene it repeats
HALF_WIDTH, ASKEW = (1.2, 1.4), 12                            # m that a camera sees to either side; degrees
REACH = 1.15                                                  # m from the middle of a box so askew, more than any disc
CLUTTER = 3                                                   # ellipses on the back wall
GRAVITY, REST = 9.81, 0.05                                    # m/s^2; m/s, a slower disc stays where it hits
BOX = 2.0                                                     # m, width and height
ROLLING, BEARING = 0.1, 3.0                                   # deceleration: m/s^2 by rolling, rad/s^2 of a wheel
PEGS, CLAPPER = 6, 0.3                                        # of a wheel; what a peg does, by the speed of the rim
SLIDES, ROLLS = 0.03, 0.015                                   # grains of the floor: change of speed by speed
UNEVEN = 0.8                                                  # depth of the modulation of a rolling disc

SIZE, FRAMES, FRAME_RATE = 24, 20, 10                         # pixels; frames of a clip; per second
GRAIN = FRAMES, 1, SIZE, SIZE                                 # of the sensor's noise, the same in all colours
RATE, ROWS_PER_FRAME, BANDS, TRANSFORM = 8000, 4, 32, 512     # samples per second; mel rows per frame; bands; samples
HOP = RATE // (FRAME_RATE * ROWS_PER_FRAME)                   # samples from one mel row to the next
BEFORE = 4000                                                 # samples made before the clip, for what still rings
SAMPLES = BEFORE + FRAMES * ROWS_PER_FRAME * HOP
CIRCLE = 36000                                                # of the circular convolution, wraps into BEFORE alone
CONTROL = 400                                                 # per second, how often contact with the floor changes
LOUDNESS = 0.01                                               # of a mode, for a change of speed by 1 m/s
MODES = np.array([5.253, 9.084, 12.23, 20.52, 21.6, 33.1, 35.25, 38.55])     # lambda^2 of a free circular plate
POISSON = 1 / 3
QUIETEST = 1e-6                                               # power added before the logarithm

# Young's modulus in GPa, kg/m^3, loss factor of bending waves (of the order of magnitude that Cremer & Heckl give),
# restitution on a hard floor, friction of sliding on a waxed floor, how much of a highlight shows
PROPERTIES = ("stiffness", "density", "loss", "restitution", "friction", "gloss")
MATERIALS = {
    "steel": (200, 7850, 0.0005, 0.70, 0.10, 0.9),
    "brass": (100, 8500, 0.001, 0.60, 0.10, 0.9),
    "cast iron": (110, 7200, 0.003, 0.60, 0.12, 0.4),
    "lead": (16, 11340, 0.015, 0.20, 0.18, 0.3),
    "glass": (70, 2500, 0.0015, 0.70, 0.10, 1.0),
    "concrete": (30, 2400, 0.008, 0.35, 0.20, 0.0),
    "oak": (11, 700, 0.01, 0.50, 0.15, 0.2),
    "chipboard": (3, 700, 0.025, 0.40, 0.15, 0.0),
    "acrylic": (3.2, 1190, 0.04, 0.65, 0.12, 0.7),
    "polyethylene": (1.0, 950, 0.1, 0.75, 0.08, 0.4),
}
# Ranges of uniform distributions: m/s at the beginning `across` (to either side) and `up`; `height` there, from 0 on
# the floor to 1 under the `top`, the m above which the disc cannot rise, of the ceiling or of the hand that dribbles
# it; m/s at which `floor`, `hand` and side `walls` drive it back; degrees of a `slope`; radians per second of `spin`.
STILL = dict.fromkeys(("across", "up", "height", "floor", "hand", "walls", "slope", "spin"), (0, 0)) | {
    "top": (BOX, BOX), "falls": False, "contact": "",         # with the floor: "slides" against friction or "rolls"
}
MOTIONS = {
    "dropped": {"height": (0.5, 1), "falls": True},
    "thrown": {"across": (1, 3), "up": (0, 3), "height": (0.2, 0.8), "falls": True, "contact": "slides"},
    "hopping": {"up": (1.5, 4), "falls": True, "floor": (1.5, 4)},
    "dribbled": {"up": (-4, -2), "height": (1, 1), "falls": True, "top": (1.2, 1.5), "floor": (4.7, 5.5),
                 "hand": (2, 4)},
    "shaken": {"across": (2.5, 5), "walls": (2.5, 5)},
    "floating": {"across": (1.5, 3.5), "up": (1.5, 3.5), "height": (0, 1)},
    "pushed": {"across": (3, 6), "contact": "slides"},
    "rolled": {"across": (1.5, 4), "contact": "rolls"},
    "downhill": {"across": (0, 1.5), "contact": "rolls", "slope": (8, 16)},
    "spun": {"height": (0, 1), "spin": (8, 16)},
}


def load(redundancy: float = 0.5, window: int = 8) -> Clips:
    """All clips, seen through windows of so many frames, from a prepared file if this code has made them before.

    2,000 for pre-training, 1,000 to train and 1,000 to test probes; 20 frames of 24 x 24 pixels each, with 4 rows of 32
    mel bands per frame. Another redundancy than the default shows in the name.
    """
    code = pathlib.Path(__file__).read_bytes() + repr(float(redundancy)).encode()
    path = manifest.prepared_root() / f"synthetic-clips-{hashlib.sha256(code).hexdigest()[:16]}.npz"
    arrays = made_once(path, functools.partial(make, redundancy))
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    name = "synthetic" if redundancy == 0.5 else f"synthetic (redundancy {redundancy:g})"
    return Clips(name, npz.digest(arrays), tuple(MOTIONS), **tensors, rows_per_frame=ROWS_PER_FRAME, window=window)


def make(redundancy: float) -> dict[str, np.ndarray]:
    """The arrays of all parts, under the names that `Clips` gives them."""
    parts = [cast(part, redundancy) for part in PARTS]
    frames, mel = (np.concatenate(made) for made in zip(*map(render, parts, PARTS), strict=True))
    categories = np.concatenate([scenes["category"] for scenes in parts])
    part = np.repeat(PARTS, [len(scenes["category"]) for scenes in parts])
    return {
        "labels": categories // len(MATERIALS),
        "categories": categories,
        **{name: part == name for name in PARTS},
        "frames": frames.reshape(-1, *frames.shape[2:]),
        "first_frame": np.arange(len(categories) + 1) * FRAMES,
        "mel": mel.reshape(-1, BANDS),
        "first_row": np.arange(len(categories) + 1) * FRAMES * ROWS_PER_FRAME,
    }


def render(scenes: Scenes, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (n, 20, 24, 24, 3) uint8 and log-mel (n, 80, 32) float32 of the scenes of a part."""
    sensor, floor, room = (_generator(part, number) for number in (1, 2, 3))   # chunks of any size draw the same
    frames, mel = [], []
    chunks = range(0, len(scenes["category"]), CHUNK)
    for first in tqdm(chunks, desc=f"bundled clips, {part}", leave=False, disable=None):
        chunk = {name: column[first:first + CHUNK] for name, column in scenes.items()}
        movement = move(chunk)
        frames.append(film(chunk, movement, sensor.standard_normal((len(chunk["category"]), *GRAIN), np.float32)))
        mel.append(log_mel(record(chunk, movement, floor, room)))
    return np.concatenate(frames), np.concatenate(mel)


def pictures(items: Sequence[int]) -> np.ndarray:
    """Pictures (m, 20, 24, 24, 3) uint8 of the clips for pre-training of these indices; the others are not made."""
    scenes = {name: column[items] for name, column in cast("pretrain", 0.5).items()}
    noise = _generator("pretrain", 1).standard_normal((COUNTS["pretrain"], *GRAIN), np.float32)
    return film(scenes, move(scenes), noise[items])


def cast(part: str, redundancy: float) -> Scenes:
    """The scenes of a part, near-duplicates last."""
    clips, distinct = shares(part, redundancy)
    rng = _generator(part, 0)
    scenes = draw(np.repeat(np.arange(len(clips)), distinct), rng)
    copied = np.repeat(np.arange(len(clips)), clips - distinct)
    origin = (np.cumsum(distinct) - distinct)[copied] + (rng.random(len(copied)) * distinct[copied]).astype(np.int64)
    copies = {name: column[origin] for name, column in scenes.items()}
    copies["start"] = copies["start"] + rng.uniform(0, LATER, len(copied))
    copies |= _lighting(len(copied), rng)
    copies["gain"] = copies["gain"] * 10 ** (rng.uniform(-2, 2, len(copied)) / 20)
    return {name: np.concatenate([column, copies[name]]) for name, column in scenes.items()}


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
    """Distinct scenes of the given categories (n,): columns in SI units, `MATERIALS`, `MOTIONS` and as noted."""
    n = len(categories)
    motion, material = np.divmod(categories, len(MATERIALS))
    matter = dict(zip(PROPERTIES, np.array(list(MATERIALS.values()))[material].T, strict=True))

    def of_motion(name: str) -> np.ndarray:
        return np.array([(STILL | way)[name] for way in MOTIONS.values()])[motion]

    def drawn(name: str) -> np.ndarray:
        return rng.uniform(*of_motion(name).T)

    slides, rolls = of_motion("contact") == "slides", of_motion("contact") == "rolls"
    side = rng.choice([-1.0, 1.0], n)
    radius, thickness, top = rng.uniform(*RADIUS, n), rng.uniform(*THICKNESS, n), drawn("top")
    scenes = {  # in the order of the draws
        "category": categories, "radius": radius, "thickness": thickness, "top": top, "falls": of_motion("falls"),
        "restitution": matter["restitution"], "gloss": matter["gloss"],
        # at the beginning; pulled sideways by a slope; by a floor that it feels; when the clip begins
        "x": radius + (BOX - 2 * radius) * rng.random(n), "y": radius + (top - 2 * radius) * drawn("height"),
        "across": side * drawn("across"), "up": drawn("up"),
        "pull": side * -GRAVITY * 2 / 3 * np.sin(np.radians(drawn("slope"))),        # a third goes into turning
        "floor": drawn("floor"), "hand": drawn("hand"), "walls": drawn("walls"),
        "drag": np.select([slides, rolls], [GRAVITY * matter["friction"], ROLLING], 0.0),
        "roughness": np.select([slides, rolls], [SLIDES, ROLLS], 0.0), "rolls": rolls,
        "spin": side * drawn("spin"), "start": rng.uniform(0, LATEST, n),
        # what the camera sees, the paint of the halves, the direction of the first in radians; clutter by centres and
        # half axes
        "half_width": rng.uniform(*HALF_WIDTH, n), "paint": rng.uniform(0.1, 0.9, (n, 2, 3)),
        "mark": rng.uniform(0, 2 * np.pi, n),
        "wall": rng.uniform(0.1, 0.9, (n, 3)), "sides": rng.uniform(0.1, 0.9, (n, 3)),
        "clutter": rng.uniform((0, 0, 0.15, 0.15), (BOX, BOX, 0.6, 0.6), (n, CLUTTER, 4)),
        "clutter_paint": rng.uniform(0.1, 0.9, (n, CLUTTER, 3)),
        "tilt": np.radians(rng.uniform(-ASKEW, ASKEW, n)), "shift": rng.uniform(-1, 1, (n, 2)),
        "grain": rng.uniform(0.004, 0.016, n), **_lighting(n, rng),
    }
    scenes["shift"] *= (scenes["half_width"] - REACH)[:, None]
    frequencies, decays, amplitudes = resonances(radius, thickness, matter)
    frequencies = frequencies * rng.normal(1, 0.01, frequencies.shape)
    amplitudes = amplitudes * 10 ** (rng.normal(0, 3, frequencies.shape) / 20)
    return scenes | {
        "frequencies": frequencies, "decays": decays,
        "amplitudes": np.where(frequencies < 0.48 * RATE, amplitudes, 0),            # the recorder's filter
        # of the microphone; of the room, root mean square and power falling as f^-colour
        "gain": 10 ** (rng.uniform(-6, 6, n) / 20), "hiss": 10 ** (rng.uniform(-72, -52, n) / 20),
        "colour": rng.uniform(0, 2, n),
    }


def _lighting(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"light": rng.uniform(0.7, 1.1, n), "slant": rng.uniform(-0.15, 0.15, (n, 2))}


def _generator(part: str, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([SEED, PARTS.index(part), number]))


class Path(NamedTuple):
    """One coordinate of n discs: a constant acceleration between events, (n, events) each.

    A stretch begins at its time, 0 first and inf after the last, by a jolt: the change of speed by an impact, or 0.
    """

    times: np.ndarray
    positions: np.ndarray
    speeds: np.ndarray
    accelerations: np.ndarray
    jolts: np.ndarray

    def at(self, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position and speed (n, T) at the moments `seconds` (n, T), at least 0."""
        stretch = (self.times[:, None] <= seconds[:, :, None]).sum(-1) - 1
        time, position, speed, acceleration = (np.take_along_axis(column, stretch, 1) for column in self[:4])
        elapsed = seconds - time
        return position + elapsed * (speed + acceleration * elapsed / 2), speed + acceleration * elapsed


@np.errstate(divide="ignore", invalid="ignore")
def travel(
    position: np.ndarray, speed: np.ndarray, *, pull: np.ndarray, drag: np.ndarray, dragged_from: np.ndarray,
    low: np.ndarray, high: np.ndarray, driven_low: np.ndarray, driven_high: np.ndarray, restitution: np.ndarray,
    seconds: float,
) -> Path:
    """Follow one coordinate of n discs between two walls from event to event, for so many seconds at least.

    `pull` is a constant acceleration, `drag` a deceleration against the motion that acts from `dragged_from` s on; the
    walls drive a disc back at so much speed at least. All but the last are (n,).
    """
    clock, jolt, stretches = np.zeros_like(position), np.zeros_like(position), []
    while (clock <= seconds).any():
        slowing = np.where(clock >= dragged_from, drag, 0)
        acceleration = pull - slowing * np.sign(np.where(speed == 0, pull, speed))
        acceleration = np.where((speed == 0) & (np.abs(pull) <= slowing), 0, acceleration)
        stretches.append((clock, position, speed, acceleration, jolt))
        stops = (slowing > 0) & (speed * acceleration < 0)
        events = np.stack([
            _until(position - low, -speed, -acceleration),
            _until(high - position, speed, acceleration),
            np.where(stops, -speed / acceleration, np.inf),
            np.where(clock < dragged_from, dragged_from - clock, np.inf),
        ])
        event, elapsed = events.argmin(0), events.min(0)
        at_low, hit = event == 0, np.isfinite(elapsed) & (event < 2)
        clock = np.where(event == 3, dragged_from, clock + elapsed)
        elapsed = np.where(np.isfinite(elapsed), elapsed, 0)
        position = position + elapsed * (speed + acceleration * elapsed / 2)
        speed = speed + acceleration * elapsed
        back = np.maximum(restitution * np.abs(speed), np.where(at_low, driven_low, driven_high))
        back = np.where(back < REST, 0, back)
        jolt = np.where(hit, np.abs(speed) + back, 0)
        position = np.where(hit, np.where(at_low, low, high), position)
        speed = np.where(hit, np.where(at_low, back, -back), np.where(event == 2, 0, speed))
        pull = np.where(hit & (back == 0), 0, pull)
    return Path(*(np.stack(columns, 1) for columns in zip(*stretches, strict=True)))


def _until(distance: np.ndarray, speed: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """Seconds (n,) until a wall is reached, `distance` >= 0 ahead, at a speed towards it; inf if never.

    One that touches the wall and leaves it reaches it when it comes back.
    """
    square = speed**2 + 2 * acceleration * distance           # of the speed at the wall
    root = np.sqrt(np.maximum(square, 0))
    ahead = np.where((square >= 0) & (speed > 0), 2 * distance / (speed + root), np.inf)
    return np.where((speed <= 0) & (acceleration > 0), (root - speed) / acceleration, ahead)


class Movement(NamedTuple):
    """Paths of the centres of n discs, and s (n,) from which each is on a floor that it feels, inf if never."""

    across: Path
    up: Path
    grounded: np.ndarray


def move(scenes: Scenes) -> Movement:
    """Solve the mechanics of n scenes for as long as the clip lasts."""
    none, radius, walls = np.zeros(len(scenes["radius"])), scenes["radius"], scenes["walls"]
    span = {"restitution": scenes["restitution"], "seconds": scenes["start"].max() + FRAMES / FRAME_RATE}
    up = travel(
        scenes["y"], scenes["up"], pull=-GRAVITY * scenes["falls"], drag=none, dragged_from=none,
        low=radius, high=scenes["top"] - radius, driven_low=scenes["floor"], driven_high=scenes["hand"], **span,
    )
    resting = (up.speeds == 0) & (up.accelerations == 0) & (scenes["roughness"] > 0)[:, None]
    grounded = np.where(resting, up.times, np.inf).min(1)
    across = travel(
        scenes["x"], scenes["across"], pull=scenes["pull"], drag=scenes["drag"], dragged_from=grounded,
        low=radius, high=BOX - radius, driven_low=walls, driven_high=walls, **span,
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
    """Pictures of n scenes, (n, FRAMES, SIZE, SIZE, 3) uint8, with the noise (n, *GRAIN) of the sensor."""
    radius, gloss, light = (scenes[name][:, None, None, None] for name in ("radius", "gloss", "light"))
    pixel = 2 * scenes["half_width"][:, None, None, None] / SIZE                                 # m
    seconds = scenes["start"][:, None] + np.arange(FRAMES) / FRAME_RATE
    centre = np.stack([path.at(seconds)[0] for path in (movement.across, movement.up)])          # (2, n, T)
    angle = (scenes["mark"][:, None] + turned(scenes, movement, seconds))[..., None, None]
    places = _places(scenes)                                                                     # (2, n, 1, H, W)
    dx, dy = places - centre[..., None, None]                                                    # (n, T, H, W)
    inside = _edge((radius - np.sqrt(dx**2 + dy**2)) / pixel)[:, :, None]
    half = _edge((dx * np.cos(angle) + dy * np.sin(angle)) / pixel)[:, :, None]
    first, second = np.moveaxis(scenes["paint"][:, None, :, :, None, None], 2, 0)
    body = second + half * (first - second)                                                      # (n, T, 3, H, W)
    shine = np.exp(-((dx / radius + 0.35) ** 2 + (dy / radius - 0.35) ** 2) / 0.2)               # of a lamp, upper left
    body += (gloss * shine)[:, :, None] * (1 - body)
    behind = _behind(scenes, places[:, :, 0], pixel[:, 0])[:, None]
    lit = light * (1 + np.einsum("na,antij->ntij", scenes["slant"], places - BOX / 2))
    shown = (behind + inside * (body - behind)) * lit[:, :, None]
    shown += scenes["grain"][:, None, None, None, None] * noise
    return np.ascontiguousarray(np.clip(np.round(255 * shown), 0, 255).astype(np.uint8).transpose(0, 1, 3, 4, 2))


def _places(scenes: Scenes) -> np.ndarray:
    """(2, n, 1, H, W) m in the box where the camera's pixels look."""
    steps = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    half, tilt = (scenes[name][:, None, None, None] for name in ("half_width", "tilt"))
    shift_right, shift_up = scenes["shift"].T[..., None, None, None]
    right, up = half * steps + shift_right, half * -steps[:, None] + shift_up
    cosine, sine = np.cos(tilt), np.sin(tilt)
    return np.stack([cosine * right - sine * up, sine * right + cosine * up]) + BOX / 2


def _behind(scenes: Scenes, places: np.ndarray, pixel: np.ndarray) -> np.ndarray:
    """(n, 3, H, W) what the disc moves before: the back wall of the box, clutter on it, and the box's sides."""
    picture = scenes["wall"][..., None, None]
    for clutter, paint in zip(np.moveaxis(scenes["clutter"], 1, 0), np.moveaxis(scenes["clutter_paint"], 1, 0),
                              strict=True):
        centre, axes = np.split(clutter.T[..., None, None], 2)                                   # (2, n, 1, 1) each
        distance = np.hypot(*((places - centre) / axes))
        inside = _edge((1 - distance) * axes.min(0) / pixel)[:, None]
        picture = picture + inside * (paint[..., None, None] - picture)
    beyond = (np.abs(places - BOX / 2).max(0) - BOX / 2) / pixel
    return picture + _edge(beyond)[:, None] * (scenes["sides"][..., None, None] - picture)


def _edge(pixels: np.ndarray) -> np.ndarray:
    """How much of a pixel is covered by what ends `pixels` beyond its middle."""
    return np.clip(0.5 + pixels, 0, 1)


def resonances(radius: np.ndarray, thickness: np.ndarray, material: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Bending modes of free circular plates, struck at 2 m/s.

        f_k = lambda_k^2 / (2 pi) * thickness / radius^2 * sqrt(E / (12 rho (1 - nu^2)))
        decay_k = pi eta f_k + 3

    Returns frequencies in Hz, decay rates per second and amplitudes, (n, modes) each: the spectrum of the contact, 1
    for a mode that is slow against it.

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


def record(scenes: Scenes, movement: Movement, floor: np.random.Generator, room: np.random.Generator) -> np.ndarray:
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
    short = 160                                               # samples; an exponential of a sum is a product
    rates = (2j * np.pi * scenes["frequencies"] - scenes["decays"])[:, None] / RATE              # (n, 1, modes)
    coarse = scenes["amplitudes"][:, None] * np.exp(rates * np.arange(0, SAMPLES, short)[:, None])
    fine = np.exp(rates * np.arange(short)[:, None])
    return (coarse @ fine.transpose(0, 2, 1)).imag.reshape(len(rates), SAMPLES)


def _blows(scenes: Scenes, movement: Movement, rng: np.random.Generator) -> np.ndarray:
    """(n, SAMPLES) m/s given to the disc in each sample: impacts, pegs passing, grains of the floor."""
    start, roughness = scenes["start"][:, None], scenes["roughness"][:, None]
    seconds = start + (np.arange(SAMPLES * CONTROL // RATE) / CONTROL - BEFORE / RATE)
    grounded = (seconds >= 0) & (seconds >= movement.grounded[:, None])
    angle = turned(scenes, movement, np.maximum(seconds, 0))
    speed = np.abs(movement.across.at(np.maximum(seconds, 0))[1])
    unevenness = 1 - UNEVEN * scenes["rolls"][:, None] * np.sin(scenes["mark"][:, None] + angle)
    blows = np.repeat(roughness * grounded * speed * unevenness, RATE // CONTROL, axis=1)
    touching = roughness[:, 0] > 0
    blows[touching] *= rng.standard_normal((touching.sum(), SAMPLES), np.float32)
    for path in (movement.across, movement.up):
        _strike(blows, np.arange(len(start))[:, None], path.times - start, path.jolts)
    pegs = np.abs(angle) * (scenes["spin"] != 0)[:, None] * PEGS / (2 * np.pi)                  # that have passed
    row, step = np.nonzero(np.diff(np.floor(pegs)))
    rate = CONTROL * (pegs[row, step + 1] - pegs[row, step])
    moment = seconds[row, step] - scenes["start"][row] + (np.ceil(pegs[row, step]) - pegs[row, step]) / rate
    _strike(blows, row, moment, CLAPPER * scenes["radius"][row] * rate * 2 * np.pi / PEGS)
    return blows


def _strike(blows: np.ndarray, row: np.ndarray, moment: np.ndarray, strength: np.ndarray) -> None:
    """Add blows at `moment` s of the clip, in place, each shared between the two samples around it."""
    row, moment, strength = (column.ravel() for column in np.broadcast_arrays(row, moment, strength))
    place = BEFORE + RATE * moment
    heard = (strength > 0) & (place >= 0) & (place < SAMPLES - 1)
    row, place, strength = row[heard], place[heard], strength[heard]
    sample = place.astype(np.int64)
    np.add.at(blows, (row, sample), strength * (1 - (place - sample)))
    np.add.at(blows, (row, sample + 1), strength * (place - sample))


def log_mel(waveforms: np.ndarray) -> np.ndarray:
    """Natural logarithm of QUIETEST plus the power in mel bands, (n, samples / HOP, BANDS) float32.

    Rows are centred on every HOP-th of the samples (n, samples), Hann windows of TRANSFORM with zeros beyond both ends.
    Bands are triangles of height 1, evenly spread on the scale 2595 log10(1 + f / 700).
    """
    corners = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 2) / 2595) - 1)
    frequencies, steps = np.fft.rfftfreq(TRANSFORM, 1 / RATE), np.diff(corners)[:, None]
    rising, falling = (frequencies - corners[:-2, None]) / steps[:-1], (corners[2:, None] - frequencies) / steps[1:]
    bands = np.maximum(0, np.minimum(rising, falling))                               # (BANDS, TRANSFORM / 2 + 1)
    padded = np.pad(waveforms, ((0, 0), (TRANSFORM // 2, TRANSFORM // 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, TRANSFORM, 1)[:, :-1:HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(TRANSFORM) / TRANSFORM)
    spectra = np.fft.rfft(windows * hann)
    power = spectra.real**2 + spectra.imag**2
    return (np.round(256 * np.log(power @ bands.T + QUIETEST)) / 256).astype(np.float32)
