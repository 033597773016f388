"""Streamed batches against PIL and torchvision by hand, and the processes behind them."""

import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from nursery import python, until
from PIL import Image
from torchvision.transforms import v2

from repro.image.augment import CentredView, View, draw_boxes, normalisation
from repro.image.batches import Streamed
from repro.image.readers import Files

CPU, IMAGENET = torch.device("cpu"), normalisation("imagenet")
SIZES = [(37, 52), (60, 41), (24, 24), (90, 33), (16, 70), (33, 33), (48, 64), (5, 9), (1, 1)]   # width, height
VIEWS = [View(24, IMAGENET), View(16, IMAGENET, scale=(0.08, 1.0)), CentredView(20, IMAGENET, resize=23),
         CentredView(20, IMAGENET, resize=23, square=True)]
SEED = (3, 1)


def smooth(width, height, channels=3):
    """A picture that JPEG does not ruin: waves with a little noise."""
    random = np.random.default_rng(width * 1000 + height)
    y, x = np.mgrid[:height, :width] / 7
    waves = [np.sin(a * x + b * y) for a, b in random.uniform(0.2, 1.5, (channels, 2))]
    pixels = 127 + 100 * np.stack(waves, axis=-1) + random.normal(0, 8, (height, width, channels))
    return pixels.clip(0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Nine JPEGs of various sizes, the third grey and the fourth CMYK, and their paths."""
    root = tmp_path_factory.mktemp("pictures")
    modes = {2: "L", 3: "CMYK"}
    names = []
    for place, size in enumerate(SIZES):
        names.append(f"{place} é.JPEG")
        Image.fromarray(smooth(*size)).convert(modes.get(place, "RGB")).save(root / names[-1], "JPEG")
    return Files(root, np.array([name.encode() for name in names]))


def batches(pictures, order, *, batch=4, seed=SEED, workers=1, views=VIEWS):
    streamed = Streamed(pictures, views, CPU, workers=workers)
    return list(streamed.batches(torch.as_tensor(order, dtype=torch.int64), batch=batch, seed=seed))


def joined(made):
    return [torch.cat(views) for views in zip(*made, strict=True)]


@pytest.fixture(scope="module")
def whole(pictures):
    """All nine pictures in order, by one worker."""
    return batches(pictures, range(len(pictures)))


def by_hand(pictures, place, number, view):
    """The same picture through torchvision's operations on PIL pictures."""
    path = pictures.root / pictures.names[place].decode()
    picture = Image.open(path).convert("RGB")
    if isinstance(view, CentredView):
        sides = [view.resize, view.resize] if view.square else view.resize
        made = v2.CenterCrop(view.size)(v2.Resize(sides)(picture))
    else:
        mixed = int(np.random.SeedSequence([*SEED, place, number]).generate_state(1)[0])
        generator = torch.Generator().manual_seed(mixed)
        drawn = {"scale": view.scale, "ratio": view.ratio, "generator": generator}
        box, = draw_boxes(1, picture.height, picture.width, **drawn).tolist()
        made = v2.functional.resized_crop(picture, *box, [view.size, view.size])
    return v2.functional.pil_to_tensor(made)


def test_pictures_are_those_of_torchvision(pictures, whole):
    assert [len(first) for first, *_ in whole] == [4, 4, 1]
    for number, (view, made) in enumerate(zip(VIEWS, joined(whole), strict=True)):
        assert made.dtype == torch.uint8 and made.shape == (len(SIZES), 3, view.size, view.size)
        for place, picture in enumerate(made):
            assert torch.equal(picture, by_hand(pictures, place, number, view)), f"{SIZES[place]}, {view}"


def test_neither_workers_nor_batches_nor_resuming_change_a_picture(pictures, whole):
    order = [5, 2, 8, 0, 5, 7, 1]
    whole, once = joined(whole), joined(batches(pictures, order, batch=2, workers=2))
    resumed = joined(batches(pictures, order[3:], batch=3))
    for all_of_them, made, tail in zip(whole, once, resumed, strict=True):
        assert torch.equal(made, all_of_them[order]) and torch.equal(tail, made[3:])


def test_an_error_in_a_worker_reaches_the_caller_and_ends_them(pictures):
    damaged = Files(pictures.root, np.append(pictures.names, b"gone.JPEG"))
    before = {*multiprocessing.active_children()}
    made = Streamed(damaged, VIEWS, CPU, workers=2).batches(torch.tensor([0, 9, 0, 0, 0]), batch=1, seed=SEED)
    assert len(next(made)) == len(VIEWS)
    with pytest.raises(ValueError, match=r"^\S*gone\.JPEG cannot be read as a picture"):
        next(made)
    until(lambda: {*multiprocessing.active_children()} == before, seconds=20)


SCRIPT = """
import multiprocessing, os, signal, sys
from pathlib import Path

import numpy as np
import torch

from repro.image.augment import View, normalisation
from repro.image.batches import Streamed
from repro.image.readers import Files

one = Files(Path(sys.argv[1]), np.array([sys.argv[2].encode()]))
streamed = Streamed(one, [View(8, normalisation("imagenet"))], torch.device("cpu"), workers=1)
made = streamed.batches(torch.zeros(10**6, dtype=torch.int64), batch=2, seed=(0,))
next(made)
print(multiprocessing.active_children()[0].pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_a_killed_process(pictures):
    arguments = [str(pictures.root), pictures.names[0].decode()]
    ended = python("-c", SCRIPT, *arguments, cwd=Path(__file__).parents[2], env=dict(os.environ))
    assert ended.returncode == -signal.SIGKILL
    until(lambda: not lives(int(ended.stdout)), seconds=10)


def lives(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
