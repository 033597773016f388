"""Small made-up pairs of video and sound or of grids of characters, and learners whose steps take milliseconds."""

import dataclasses
import functools

import torch

from repro.audiovisual.characters import Characters
from repro.audiovisual.clips import Clips
from repro.audiovisual.pretrain import Pretrainer
from repro.audiovisual.recipe import METHODS, paper

CPU = torch.device("cpu")
TRAINED = [method for method in METHODS if method != "scratch"]
COLOURS = torch.tensor([[200, 60, 60], [60, 200, 60], [60, 60, 200]])
WINDOW, SIZE, BANDS, ROWS = 4, 8, 4, 2
CLIPS = {"window": WINDOW, "size": SIZE, "width": 32, "embedding": 8, "batch": 8, "dictionary": 16, "pool": 24,
         "epochs": 3, "warmup": 4, "momentum": 0.9, "learning_rate": 1e-2, "redundancy": 0.0, "finetune_window": WINDOW,
         "groups": 1}
GRIDS = {"width": 32, "embedding": 8, "batch": 8, "dictionary": 16, "pool": 24, "epochs": 3, "warmup": 4,
         "momentum": 0.9, "learning_rate": 1e-2, "characters": 2, "pairs": 30, "groups": 1}


def made_up(pretrain=30, train=6, test=5, seed=0, without=(), **changes):
    """Clips of 4 to 9 frames and their sound, noise around a colour and a pitch of each of three classes; the colour
    lights every second frame.

    The parts lie mixed; there are nine categories, three of a class; modalities in `without` are missing.
    """
    draws = torch.Generator().manual_seed(seed)
    count = pretrain + train + test
    part = torch.tensor([0] * pretrain + [1] * train + [2] * test)[torch.randperm(count, generator=draws)]
    categories = torch.arange(count)[torch.randperm(count, generator=draws)] % 9
    labels = categories // 3
    lengths = torch.randint(WINDOW, 10, (count,), generator=draws)
    noise = torch.randn(int(lengths.sum()), SIZE + 1, SIZE + 2, 3, generator=draws, dtype=torch.float32)
    colours = COLOURS[labels].repeat_interleave(lengths, 0)[:, None, None]
    lit = torch.cat([torch.arange(int(length)) % 2 for length in lengths])[:, None, None, None]
    colours = torch.where(lit == 1, colours, COLOURS.float().mean())
    frames = (colours + 50 * noise).clamp(0, 255).byte()
    noise = torch.randn(ROWS * len(frames), BANDS, generator=draws, dtype=torch.float32)
    mel = noise + 2 * torch.eye(BANDS, dtype=torch.float32)[labels].repeat_interleave(ROWS * lengths, 0)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    data = Clips(**{
        "name": "synthetic", "digest": "made up", "classes": ("red", "green", "blue"), "labels": labels,
        "categories": categories, "pretrain": part == 0, "train": part == 1, "test": part == 2, "frames": frames,
        "first_frame": offsets, "mel": mel, "first_row": ROWS * offsets, "rows_per_frame": ROWS, "window": WINDOW,
    } | changes)
    for modality in without:
        data = lacking(data, modality, torch.ones(count, dtype=torch.bool))
    return data


def lacking(data, modality, missing):
    """The clips, of which those of the mask `missing` (n,) have no pictures or no sound."""
    rows, first = {"video": ("frames", "first_frame"), "audio": ("mel", "first_row")}[modality]
    lengths, there = getattr(data, first).diff(), ~missing
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), (lengths * there).cumsum(0)])
    return dataclasses.replace(data, **{rows: getattr(data, rows)[there.repeat_interleave(lengths)], first: offsets})


def grids(train=30, test=9, held_out=7, seed=0):
    """Grids of two cells, whose alphabets have four and three characters; three drawings to train with, two held out.

    A drawing is noise around a picture of its character.
    """
    draws = torch.Generator().manual_seed(seed)
    sizes, each = (4, 3), (3, 2)
    kinds = torch.arange(sum(sizes)).repeat_interleave(sum(each))                        # the character of a drawing
    pictures = 255 * torch.randint(2, (sum(sizes), 8, 8), generator=draws)
    drawings = (0.7 * pictures[kinds] + 70 * torch.rand(len(kinds), 8, 8, generator=draws)).byte()
    within = torch.arange(sum(each)).repeat(sum(sizes))
    first = sum(each) * kinds + each[0] * (within >= each[0])
    count = torch.where(within < each[0], *each)
    lots = torch.tensor([0] * train + [1] * test + [2] * held_out)
    lots = lots[torch.randperm(len(lots), generator=draws)]
    labels = torch.stack([torch.randint(size, lots.shape, generator=draws) for size in sizes], 1)
    pairs = []
    for step in (0, 1):  # x, and y of the successors
        characters = (labels + step) % torch.tensor(sizes) + torch.tensor([0, sizes[0]])
        start = sum(each) * characters + torch.where(lots == 2, each[0], 0)[:, None]
        numbers = torch.where(lots == 2, each[1], each[0])[:, None]
        pairs.append(start + torch.randint(6, start.shape, generator=draws) % numbers)
    return Characters(
        name="multidigits", alphabets=(("a", "b", "c", "d"), ("e", "f", "g")), drawings=drawings, first=first,
        count=count, pairs=torch.stack(pairs), labels=labels, train=lots == 0, validation=lots > 2, test=lots == 1,
        held_out=lots == 2, digest="made up",
    )


def tiny(method="cmacc", dataset="synthetic", **changes):
    """A recipe of some steps for the sets above."""
    return paper(dataset, method, **(GRIDS if dataset == "multidigits" else CLIPS) | changes)


@functools.cache
def data_of(dataset="synthetic"):
    return grids() if dataset == "multidigits" else made_up()


def learner(method="cmacc", dataset="synthetic", *, data=None, seed=3, **changes):
    """Of `data`, or of the whole set, with a recipe of some steps."""
    return Pretrainer(tiny(method, dataset, **changes), data or data_of(dataset), seed, CPU)


def trace(fast, steps):
    """The terms of so many steps."""
    return torch.stack([fast.step() for _ in range(steps)])
