"""Random drawings in Omniglot's layout, and what a slow reader makes of them."""

import functools
import io

import numpy as np
from PIL import Image

from repro.data import manifest

ALPHABETS = next(iter(manifest.load_manifest("multiomniglot").splits.values())).train["alphabet"]
SIZES = (5, 4, 4, 3, 3, 3, 2, 2, 2)                          # characters of the made-up alphabets
NUMBERS = {"train": (1, 2, 3), "validation": (4, 5), "held_out": (6, 7)}    # of the made-up drawings
SIDE = 21


def png(strokes):
    """A file in Omniglot's format: 1 bit, black strokes on white."""
    stream = io.BytesIO()
    Image.fromarray(~strokes).save(stream, "PNG")
    return stream.getvalue()


def made_up():
    """Random drawings in Omniglot's layout, with an alphabet that no grid shows; names and contents of the files."""
    rng, files = np.random.default_rng(0), {}
    for alphabet, size in (*zip(ALPHABETS, SIZES, strict=True), ("Braille", 2)):
        for character in range(1, size + 1):
            for number in (number for part in NUMBERS.values() for number in part):
                name = f"{alphabet}/character{character:02}/{len(files):04}_{number:02}.png"
                files[name] = png(rng.random((SIDE, SIDE)) < 0.3)
    return files


FILES = made_up()


def slow_average(picture, side):
    """The mean over every rectangle, from a picture in which every pixel is repeated `side` times each way."""
    height, width = picture.shape
    return np.kron(picture, np.ones((side, side))).reshape(side, height, side, width).mean(axis=(1, 3))


@functools.cache
def slow_drawings():
    """{(cell, character of its alphabet, part): drawings (32, 32)} of the made-up files."""
    found = {}
    for cell, alphabet in enumerate(ALPHABETS):
        for name in sorted(name for name in FILES if name.startswith(f"{alphabet}/")):
            character, number = int(name.split("/")[1][-2:]) - 1, int(name[-6:-4])
            part = next(part for part, numbers in NUMBERS.items() if number in numbers)
            strokes = ~np.asarray(Image.open(io.BytesIO(FILES[name])))
            shrunk = np.rint(255 * slow_average(strokes, 32)).astype(np.uint8)
            found.setdefault((cell, character, part), []).append(shrunk)
    return found
