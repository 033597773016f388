"""Time of an NTU RGB+D epoch on one CPU core, projected from measured steps; and what its padding would cost.

    python3 -m benchmarks.ntu_epoch [--precision float32] [--objectives CE,AE+CE+AD] [--layers 3] [--units 1024]

Made-up sequences of 20 to 300 frames, 84 on average: an assumption about cross-subject NTU RGB+D 60, whose 40,091
training sequences are 1,252 steps of 32. Three implementations take the same steps in turns: packed (ours on a CPU),
padded to the longest sequence of the batch, as ours on a GPU, which `benchmarks.gpu` measures, and padded to 300
frames. Time is CPU time.
"""

import statistics
import time

import torch
from torch import Tensor

from benchmarks.stopwatch import CPU, options, sequences, turns
from repro.run import device as devices
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import paper

STEPS_OF_AN_EPOCH, LONGEST, MEAN = 40_091 // 32, 300, 84


def lengths(count: int) -> Tensor:
    """Frames of `count` sequences, gamma-distributed above 20."""
    torch.manual_seed(0)
    drawn = torch.distributions.Gamma(4.0, 4.0 / (MEAN - 20)).sample((count,))
    return (20 + drawn).long().clamp(max=LONGEST)


class Padded(Pretrainer):
    """Computes the padding too."""

    def _packing(self, lengths: Tensor) -> None:
        return None


class PaddedToTheLongest(Padded):
    """Every batch as long as the longest sequence of the data set."""

    def prepare(self) -> None:
        super().prepare()
        self.bucket = LONGEST


KINDS = {"packed": Pretrainer, "padded to the batch": Padded, "padded to 300": PaddedToTheLongest}


def main() -> None:
    """Print minutes an epoch for each objective, and the ratio of each to ours."""
    settings = options(__doc__, precision="auto", objectives="CE,AE+CE+AD,AE+CE+AD+CD", layers=1, units=512, steps=6)
    changes = {"precision": settings.precision, "layers": settings.layers, "units": settings.units}
    recipes = [paper("ntu", objectives, **changes) for objectives in settings.objectives.split(",")]
    name, precision = devices.hardware(CPU)["device"], devices.precision_of(recipes[0], CPU)
    print(f"NTU RGB+D cross-subject, {settings.layers} x {settings.units}, {precision}, one thread, {name}")
    data = sequences(lengths(32 * (settings.steps + 1)), 150)
    with devices.threads(1), devices.full_precision():
        for recipe in recipes:
            works = {name: kind(recipe, data, 0, CPU).step for name, kind in KINDS.items()}
            taken = turns(works, settings.steps, clock=time.process_time)
            seconds = {name: statistics.median(each) for name, each in taken.items()}
            for name, each in seconds.items():
                minutes, times = each * STEPS_OF_AN_EPOCH / 60, each / seconds["packed"]
                print(f"{recipe.objectives}, {name}: {minutes:.3g} minutes an epoch, {times:.2f} times ours")


if __name__ == "__main__":
    main()
