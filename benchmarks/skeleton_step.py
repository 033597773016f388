"""A training step of skeletons on one CPU core, and what the padding of its sequences would cost.

    python3 -m benchmarks.skeleton_step [--dataset ntu] [--precision float32] [--objectives CE,AE+CE+AD] [--layers 3]

At the paper's size on made-up sequences: as long as those of NW-UCLA after its pipeline (28 % of 50 frames, the others
of 11 to 49), or of 20 to 300 frames, 84 on average, an assumption about cross-subject NTU RGB+D 60, whose 40,091
training sequences are 1,252 steps of 32. Three implementations take the same steps in turns: packed (ours on a CPU),
padded to the longest sequence of the batch, as ours on a GPU, which `benchmarks.gpu` measures, and padded to the
longest of all. Time is CPU time.
"""

import argparse
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.stopwatch import CPU, Comparison, compare, sequences
from repro.run import device as devices
from repro.skeleton.data import SkeletonSet
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper

STEPS_OF_AN_EPOCH = 40_091 // 32  # of NTU RGB+D


def made_up(dataset: str, count: int) -> SkeletonSet:
    """Sequences about as long as those of `ucla` or `ntu`."""
    draws = torch.Generator().manual_seed(0)
    if dataset == "ucla":
        longest = torch.rand(count, generator=draws) < 0.28
        return sequences(torch.where(longest, 50, torch.randint(11, 50, (count,), generator=draws)), 60)
    torch.manual_seed(0)
    drawn = torch.distributions.Gamma(4.0, 4.0 / 64).sample((count,))
    return sequences((20 + drawn).long().clamp(max=300), 150)


class Padded(Pretrainer):
    """Computes the padding too."""

    def _packing(self, lengths: Tensor) -> None:
        return None


class PaddedToTheLongest(Padded):
    """Every batch as long as the longest sequence of the data set."""

    def prepare(self) -> None:
        super().prepare()
        self.bucket = self.longest


KINDS = {"packed": Pretrainer, "padded to the batch": Padded, "padded to the longest": PaddedToTheLongest}


def works(settings: argparse.Namespace) -> Iterator[Comparison]:
    """Steps of every objective, by every implementation."""
    data = made_up(settings.dataset, 32 * (settings.rounds + settings.warm_up))
    changes = {"precision": settings.precision, "layers": settings.layers, "units": settings.units}
    with devices.threads(settings.threads):
        for objectives in settings.objectives.split(","):
            recipe = paper(settings.dataset, objectives, **changes)
            steps = {name: kind(recipe, data, 0, CPU).step for name, kind in KINDS.items()}
            title = f"{objectives}, {settings.layers} x {settings.units}, {devices.precision_of(recipe, CPU)}"
            yield Comparison(title, steps, 1, "steps", "packed")


if __name__ == "__main__":
    compare(__doc__, works, clock=time.process_time, threads=1, rounds=6, dataset="ucla", precision="auto",
            objectives="CE,AE+CE+AD,AE+CE+AD+CD", layers=1, units=512)
