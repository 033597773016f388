"""Bundled clips: coloured discs that move and sound for two seconds.

A clip shows one disc, and what is heard is that disc. Its *category*, which is also its class, is one of 8 notes, each
with a colour of its own, times one of 4 motions; so pictures and sound tell the same. The note is seen as the colour
and heard as the pitch; the motion is seen as the course up and down, and heard because a disc is louder the higher it
is. Everything else differs between clips and says nothing: where the disc is, how large, fast and leaning its motion,
the wall behind it, light, grain, overtones, hiss and loudness.

Of 32 categories there are 60 clips each for pre-training, 10 to train probes and 30 to test them. So few labels leave
room between an encoder from scratch and one that saw all labels: the constants below were chosen for that.

*Redundancy* r in [0, 1): a share r of the clips for pre-training are near-duplicates, the same scene up to 0.2 s later
in other light, noise and loudness. Pixels are whole numbers and log-mel is rounded: every machine makes the same data.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from repro.audiovisual.clips import PARTS, Clips
from repro.data import npz
from repro.data.prepared import made_once
from repro.run import code

COLOURS = ("red", "orange", "lime", "green", "turquoise", "blue", "violet", "pink")      # evenly spaced hues
MOTIONS = {  # heights from -1 to 1, by the turns that a motion has come to
    "swinging": lambda turns: np.sin(2 * np.pi * turns),
    "bouncing": lambda turns: 2 * np.abs(np.sin(np.pi * turns)) - 1,
    "rising": lambda turns: 2 * (turns % 1) - 1,
    "falling": lambda turns: 1 - 2 * (turns % 1),
}
CATEGORIES = tuple(f"{motion}, {colour}" for motion, colour in itertools.product(MOTIONS, COLOURS))

SEED = 20210503
COUNTS = {"pretrain": 1920, "train": 320, "test": 960}        # clips, multiples of the number of categories
SIZE, FRAMES, FRAME_RATE = 24, 20, 10                         # pixels; frames of a clip; per second
RATE, ROWS_PER_FRAME, BANDS, TRANSFORM = 8000, 4, 32, 512     # samples per second; mel rows per frame; bands; samples
HOP = RATE // (FRAME_RATE * ROWS_PER_FRAME)                   # samples from one mel row to the next
SAMPLES = FRAMES * ROWS_PER_FRAME * HOP
QUIETEST = 1e-6                                               # power added before the logarithm
LOWEST, STEP = 220, 1 / 4                                     # Hz of the first note; octaves from one to the next
OFF = 0.3                                                     # most that pitch and hue differ from the note, in steps
LOUDNESS, LOUDER = 0.1, 10                                    # of a tone at height 0; dB from there to height 1
LATER = 0.2                                                   # s, most of a near-duplicate after the scene it repeats


class Scene(NamedTuple):
    """What a clip shows and plays; lengths in half sides of the picture, x to the right and y upwards."""

    category: int
    paint: np.ndarray             # red, green and blue, from 0 to 1
    pitch: float                  # Hz
    overtones: np.ndarray         # their amplitudes, the first of the pitch itself
    radius: float
    centre: np.ndarray            # of the motion
    reach: float                  # from there, upwards
    lean: float                   # half sides to the right for each upwards
    pace: float                   # turns per second
    start: float                  # turns when the clip begins
    walls: np.ndarray             # paint of the wall at its left and right end, (2, 3)

    def heights(self, seconds: np.ndarray) -> np.ndarray:
        """From -1 to 1, at moments of the clip."""
        return list(MOTIONS.values())[self.category // len(COLOURS)](self.start + self.pace * seconds)


def load(redundancy: float = 0.5, window: int = 8) -> Clips:
    """All clips, 20 frames of 24 x 24 pixels with 4 rows of 32 mel bands each, seen through windows of so many frames.

    Another redundancy than the default shows in the name.
    """
    made_of = f"{code.of_files('audiovisual/synthetic.py')}{float(redundancy)!r}"
    arrays = made_once("synthetic-clips", made_of, functools.partial(make, redundancy))
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    name = "synthetic" if redundancy == 0.5 else f"synthetic (redundancy {redundancy:g})"
    return Clips(name, npz.digest(arrays), CATEGORIES, **tensors, rows_per_frame=ROWS_PER_FRAME, window=window)


def make(redundancy: float) -> dict[str, np.ndarray]:
    """The arrays of all parts, under the names that `Clips` gives them."""
    parts, categories, frames, mel = [], [], [], []
    for part in PARTS:
        scenes = cast(part, redundancy)
        for number, scene in enumerate(tqdm(scenes, desc=f"bundled clips, {part}", leave=False, disable=None), 1):
            rng = _generator(part, number)
            parts.append(part)
            categories.append(scene.category)
            frames.append(film(scene, rng))
            mel.append(log_mel(record(scene, rng)))
    return {
        "labels": np.array(categories),
        "categories": np.array(categories),
        **{name: np.array(parts) == name for name in PARTS},
        "frames": np.concatenate(frames),
        "first_frame": np.arange(len(parts) + 1) * FRAMES,
        "mel": np.concatenate(mel),
        "first_row": np.arange(len(parts) + 1) * FRAMES * ROWS_PER_FRAME,
    }


def cast(part: str, redundancy: float) -> list[Scene]:
    """The scenes of a part, whose categories take turns; near-duplicates are last."""
    count = COUNTS[part]
    distinct = max(1, round((1 - redundancy) * count)) if part == "pretrain" else count
    rng = _generator(part)
    scenes = [draw(item % len(CATEGORIES), rng) for item in range(distinct)]
    for item in range(distinct, count):
        scene = scenes[item % distinct]
        scenes.append(scene._replace(start=scene.start + scene.pace * rng.uniform(0, LATER)))
    return scenes


def draw(category: int, rng: np.random.Generator) -> Scene:
    """A distinct scene."""
    note = category % len(COLOURS)
    hue = (note + rng.uniform(-OFF, OFF)) / len(COLOURS)
    sector = (np.array([5, 3, 1]) + 6 * hue) % 6              # of red, green and blue on the circle of hues
    pale = 1 - rng.uniform(0.7, 1) * np.clip(np.minimum(sector, 4 - sector), 0, 1)
    return Scene(
        category, paint=rng.uniform(0.6, 1) * pale, pitch=LOWEST * 2 ** (STEP * (note + rng.uniform(-OFF, OFF))),
        overtones=np.arange(1, 7) ** -rng.uniform(0.5, 2), radius=rng.uniform(0.2, 0.35),
        centre=rng.uniform(-0.2, 0.2, 2), reach=rng.uniform(0.3, 0.6), lean=rng.uniform(-1, 1),
        pace=rng.uniform(1, 1.6), start=rng.random(), walls=rng.uniform(0.1, 0.9, (2, 3)),
    )


def _generator(part: str, number: int = 0) -> np.random.Generator:
    """Of the scenes of a part, or, by a number from 1, of the light and noise of one of its clips."""
    return np.random.default_rng([SEED, PARTS.index(part), number])


def film(scene: Scene, rng: np.random.Generator) -> np.ndarray:
    """Pictures of a scene, (FRAMES, SIZE, SIZE, 3) uint8, in a light and with a grain that are drawn."""
    steps = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    up = scene.reach * scene.heights(np.arange(FRAMES) / FRAME_RATE)[:, None, None]
    distance = np.hypot(steps - scene.centre[0] - scene.lean * up, -steps[:, None] - scene.centre[1] - up)
    disc = np.clip(0.5 + (scene.radius - distance) * SIZE / 2, 0, 1)[..., None]  # how much of a pixel is covered
    left, right = scene.walls
    wall = left + (right - left) * (steps[:, None] + 1) / 2                                                  # (W, 3)
    grain = rng.uniform(0, 0.05) * rng.standard_normal(disc.shape)
    pixels = rng.uniform(0.7, 1.1) * (wall + disc * (scene.paint - wall)) + grain
    return np.clip(np.round(255 * pixels), 0, 255).astype(np.uint8)


def record(scene: Scene, rng: np.random.Generator) -> np.ndarray:
    """Sound of a scene, (SAMPLES,) at RATE, at a loudness and in a hiss that are drawn."""
    seconds = np.arange(SAMPLES) / RATE
    tones = np.arange(1, 1 + len(scene.overtones))
    tones = tones[tones * scene.pitch < RATE / 2]
    sound = scene.overtones[:len(tones)] @ np.sin(2 * np.pi * scene.pitch * tones[:, None] * seconds)
    hiss = 10 ** (rng.uniform(-60, -30) / 20) * rng.standard_normal(SAMPLES)
    return 10 ** (rng.uniform(-6, 6) / 20) * (LOUDNESS * 10 ** (LOUDER * scene.heights(seconds) / 20) * sound + hiss)


def log_mel(waveform: np.ndarray) -> np.ndarray:
    """Natural logarithm of QUIETEST plus the power in mel bands, (samples / HOP, BANDS) float32, of samples (samples,).

    Rows are centred on every HOP-th of them, in Hann windows with zeros beyond both ends. Bands are triangles of height
    1, evenly spread on the scale 2595 log10(1 + f / 700).
    """
    corners = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 2) / 2595) - 1)
    frequencies, steps = np.fft.rfftfreq(TRANSFORM, 1 / RATE), np.diff(corners)[:, None]
    rising, falling = (frequencies - corners[:-2, None]) / steps[:-1], (corners[2:, None] - frequencies) / steps[1:]
    bands = np.maximum(0, np.minimum(rising, falling))                               # (BANDS, TRANSFORM / 2 + 1)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(waveform, TRANSFORM // 2), TRANSFORM)[:-1:HOP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(TRANSFORM) / TRANSFORM)
    power = np.abs(np.fft.rfft(windows * hann)) ** 2
    return (np.round(256 * np.log(power @ bands.T + QUIETEST)) / 256).astype(np.float32)
