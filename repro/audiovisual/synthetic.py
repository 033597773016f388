"""Synthetic clips: discs of ten materials that move in a box in ten ways, filmed and recorded for two seconds.

A clip shows one disc in one box, and what is heard is that disc: pictures and sound come from the same mechanics
(`repro.audiovisual.discs`). Every constant was set from mechanics, acoustics, what a microphone still hears and what
24 pixels still show, before any network was trained on the result.

*Motion.* The box is 2 m wide and high, a disc 0.4 to 0.8 m across. Each coordinate of its centre has a constant
acceleration between events: an impact, the end of a slide, the floor reached. An impact returns the disc at its
material's restitution times the speed; a surface that drives it, a springy floor, a hand or a shaken wall, at that
surface's own speed at least. A disc slower than 5 cm/s after an impact stays there. Impacts are frictionless, so
nothing starts to spin in the air. The ten ways to move (`MOTIONS`) are the classes: free fall, a throw, hopping,
dribbling, a shaken box, an air table seen from above, sliding against friction, rolling, rolling down a slope, of
which a camera held askew does not show that it is one, and a wheel whose pegs pass a clapper and which its bearing
slows down.

*Picture.* A camera of 24 x 24 pixels, 10 frames per second, held askew by up to 12 degrees, sees the whole box. The
disc is painted in two halves, so that its turning is visible, and polished materials show a highlight. Paint, clutter
on the back wall, light and camera are drawn anew for every scene and say nothing about material or motion. Edges are
anti-aliased and the sensor adds grain.

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
labels for probes, have 10 scenes of every category each, drawn independently of one another and of `pretrain`: every
clip of the three parts has its own disc, box, camera and room, and train and test are the same whatever the
redundancy.

*Redundancy* r in [0, 1) describes the 2,000 clips of `pretrain`. Frequencies of categories fall as rank^-r, over ranks
drawn once; and in each category a fraction r of the clips, but never the last one, are near-duplicates of another: the
same disc, box, camera and motion, beginning up to 0.2 s later, in other light, at a gain up to 2 dB apart, with other
noise. r = 0 means 20 scenes of each category and no near-duplicate; the default, 0.5, means 997 near-duplicates, and
108 clips of the most frequent category against 11 of the rarest.

Pixels are whole numbers and log-mel is rounded to 1/256, far coarser than the last bits of a sine, which makes the
data the same on every machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tqdm.auto import tqdm

from repro.audiovisual import discs
from repro.audiovisual.clips import PARTS, Clips
from repro.data import npz

SEED = 20210503
COUNTS = {"pretrain": 2000, "train": 1000, "test": 1000}      # clips, multiples of 100
CHUNK = 40                                                    # clips made at once; changes nothing but speed
RADIUS, THICKNESS = (0.2, 0.4), (0.015, 0.025)                # m
LATEST, LATER = 0.3, 0.2                                      # s after the first movement; after the scene it repeats
HALF_WIDTH, ASKEW = (1.2, 1.4), 12                            # m that a camera sees to either side; degrees
REACH = 1.15                                                  # m from the middle of a box so askew, more than any disc
CLUTTER = 3                                                   # ellipses on the back wall
ROUGHNESS = {"": 0.0, "slides": 0.03, "rolls": 0.015}         # grains of the floor: change of speed by speed


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
    """A way to move. Pairs are ranges of a uniform distribution; (0, 0) where there is none of it.

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
    top: tuple[float, float] = (discs.BOX, discs.BOX)
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
        ValueError: if `redundancy` is not a number in [0, 1).
    """
    if isinstance(redundancy, bool) or not isinstance(redundancy, int | float) or not 0 <= redundancy < 1:
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
        "mel": mel.reshape(-1, discs.BANDS),
        "first_row": np.arange(len(categories) + 1) * mel.shape[1],
    }
    name = "synthetic" if redundancy == 0.5 else f"synthetic (redundancy {redundancy:g})"
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    sizes = {"rows_per_frame": discs.ROWS_PER_FRAME, "window": window}
    return Clips(name, npz.digest(arrays), tuple(MOTIONS), **tensors, **sizes)


def make(scenes: discs.Scenes, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Film and record the scenes of a part.

    Returns:
        Pictures (n, 20, 24, 24, 3) uint8 and log-mel (n, 80, 32) float32.
    """
    noise = [_generator(part, number) for number in (1, 2, 3)]    # each its own: chunks of any size draw the same
    frames, mel = [], []
    for first in tqdm(range(0, len(scenes["category"]), CHUNK), desc=f"embedded clips, {part}", leave=False):
        chunk = {name: column[first:first + CHUNK] for name, column in scenes.items()}
        movement = discs.move(chunk)
        frames.append(discs.film(chunk, movement, noise[0]))
        mel.append(discs.log_mel(discs.record(chunk, movement, *noise[1:])))
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
    wanted, noise, scenes = np.asarray(items, np.int64), _generator("pretrain", 1), cast("pretrain", 0.5)
    outside = wanted[(wanted < 0) | (wanted >= COUNTS["pretrain"])]
    if len(outside):
        raise IndexError(f"clips for pre-training are 0 to {COUNTS['pretrain'] - 1}, not {outside[0]}")
    made = np.empty((len(wanted), discs.FRAMES, discs.SIZE, discs.SIZE, 3), np.uint8)
    for first in range(0, COUNTS["pretrain"], CHUNK):
        chunk = {name: column[first:first + CHUNK] for name, column in scenes.items()}
        here = (wanted >= first) & (wanted < first + CHUNK)
        if here.any():
            made[here] = discs.film(chunk, discs.move(chunk), noise)[wanted[here] - first]
        else:
            discs.grain(len(chunk["category"]), noise)        # drawn one clip after the other
    return made


def cast(part: str, redundancy: float) -> discs.Scenes:
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
        `slant` (n, 2) per metre. Of the sound: `frequencies, decays, amplitudes` (n, modes) as `discs.resonances`;
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
        "x": radius + (discs.BOX - 2 * radius) * rng.random(n), "y": radius + (top - 2 * radius) * of_motion("height"),
        "across": side * of_motion("across"), "up": of_motion("up"),
        "pull": side * -discs.GRAVITY * 2 / 3 * np.sin(np.radians(of_motion("slope"))),    # a third goes into turning
        "falls": np.array([way.falls for way in ways])[motion],
        "top": top, "floor": of_motion("floor"), "hand": of_motion("hand"), "walls": of_motion("walls"),
        "drag": np.select([contact == "slides", contact == "rolls"],
                          [discs.GRAVITY * of_material("friction"), discs.ROLLING], 0.0),
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
        "clutter": rng.uniform((0, 0, 0.15, 0.15), (discs.BOX, discs.BOX, 0.6, 0.6), (n, CLUTTER, 4)),
        "clutter_paint": rng.uniform(0.1, 0.9, (n, CLUTTER, 3)),
        "half_width": half_width, "tilt": np.radians(rng.uniform(-ASKEW, ASKEW, n)),
        "shift": (half_width - REACH)[:, None] * rng.uniform(-1, 1, (n, 2)), "grain": rng.uniform(0.004, 0.016, n),
    }


def _lighting(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The light of n scenes."""
    return {"light": rng.uniform(0.7, 1.1, n), "slant": rng.uniform(-0.15, 0.15, (n, 2))}


def _sound(scenes: discs.Scenes, material: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Modes of the discs of n scenes, microphone and room."""
    frequencies, decays, amplitudes = discs.resonances(scenes["radius"], scenes["thickness"], material)
    frequencies = frequencies * rng.normal(1, 0.01, frequencies.shape)
    amplitudes = amplitudes * 10 ** (rng.normal(0, 3, frequencies.shape) / 20)
    n = len(frequencies)
    return {
        "frequencies": frequencies, "decays": decays,
        "amplitudes": np.where(frequencies < 0.48 * discs.RATE, amplitudes, 0),    # the recorder's filter
        "gain": 10 ** (rng.uniform(-6, 6, n) / 20),
        "hiss": 10 ** (rng.uniform(-72, -52, n) / 20), "colour": rng.uniform(0, 2, n),
    }


def _generator(part: str, number: int) -> np.random.Generator:
    """The source of randomness `number` of a part."""
    return np.random.Generator(np.random.PCG64([SEED, PARTS.index(part), number]))
