"""A step of CM-ACC at the paper's size, on made-up clips that live on the device."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from repro.audiovisual.clips import Clips
from repro.audiovisual.pretrain import Pretrainer
from repro.audiovisual.recipe import paper
from tests.benchmarks.stopwatch import operations, seconds

ROWS, BANDS = 10, 80             # of sound: rows per frame, and its bands
CLIPS, SIDE = 384, 256           # as many as the dictionary and some batches need, of so many pixels a side
PAPER = {"dictionary": 128}      # the paper's 3,840 would want more clips; entries cost a step next to nothing
TINY = {"window": 4, "size": 8, "width": 32, "embedding": 8, "batch": 4, "dictionary": 4, "pool": 64, "groups": 1}


def parts(device: torch.device, tiny: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name: in bfloat16 without and with selection of negatives, and the paper's recipe."""
    settings = (("xmoco", "bfloat16"), ("cmacc", "bfloat16"), ("cmacc", "float32"))
    return {f"{method}, {precision}": functools.partial(step, method, precision, device, tiny)
            for method, precision in settings}


class FilledPools(Pretrainer):
    """With keys of noise in its pools and first dictionaries: encoding them is no part of a usual step."""

    def _encoded(self, modality: str, items: Tensor) -> Tensor:
        return torch.randn(len(items), self.recipe.embedding, device=self.device)


def step(method: str, precision: str, device: torch.device, tiny: bool) -> dict[str, Any]:
    """Seconds of a step, and clips per second."""
    recipe = paper("kinetics_sound", method, precision=precision, **(TINY if tiny else PAPER))
    clips = made_up(16, 10, recipe.window, device) if tiny else made_up(CLIPS, SIDE, recipe.window, device)
    learner = FilledPools(recipe, clips, 0, device)
    taken = seconds(learner.step, device, repeats=3, warm_up=2)
    work = {"path": f"clips, {method}, {precision}", "limit": precision, "amount": operations(learner.step),
            "seconds": taken}
    return {"seconds": taken, "clips a second": recipe.batch / taken, "work": [work]}


def made_up(count: int, side: int, window: int, device: torch.device) -> Clips:
    """Noise, as long as a view; equal on all devices of a kind."""
    draws = torch.Generator(device).manual_seed(0)
    every, labels = torch.ones(count, dtype=torch.bool), torch.arange(count) % 10
    ends = torch.arange(count + 1)
    frames = torch.randint(0, 256, (window * count, side, side, 3), dtype=torch.uint8, generator=draws, device=device)
    mel = torch.randn(ROWS * window * count, BANDS, generator=draws, device=device)
    return Clips(
        name="made-up", digest="made up", classes=tuple("0123456789"), labels=labels, categories=labels,
        pretrain=every, train=every, test=~every, frames=frames, first_frame=window * ends, mel=mel,
        first_row=ROWS * window * ends, rows_per_frame=ROWS, window=window,
    )
