"""Time of an NTU RGB+D epoch on one CPU core or a GPU, projected from measured steps; and what its padding would cost.

    python3 -m tests.benchmarks.ntu_epoch [--device cuda] [--precision float32] [--objectives CE,AE+CE+AD] [--layers 3]
                                          [--units 1024]

Made-up sequences of 20 to 300 frames, 84 on average: an assumption about cross-subject NTU RGB+D 60, whose 40,091
training sequences are 1,252 steps of 32. Three implementations take the same steps in turns: packed (ours on a CPU),
padded to the longest sequence of the batch (ours on a GPU, which computes in float32 and packs nothing), and padded to
300 frames. On a CPU that is CPU time, step by step; on a GPU time on the clock, of blocks of steps that it has ended.
"""

import argparse
import statistics
import time

import torch
from torch import Tensor

from repro.run import device as devices
from repro.skeleton.pretrain import Pretrainer
from repro.skeleton.recipe import SkeletonRecipe, paper
from tests.benchmarks.made_up import made_up

STEPS_OF_AN_EPOCH, LONGEST, MEAN = 40_091 // 32, 300, 84
BLOCK = {"cpu": 1, "cuda": 20}  # steps that are timed together


def lengths(count: int) -> Tensor:
    """Frames of `count` sequences, gamma-distributed above 20."""
    torch.manual_seed(0)
    spread = torch.distributions.Gamma(4.0, 4.0 / (MEAN - 20)).sample((count,))
    return (20 + spread).long().clamp(max=LONGEST)


class Padded(Pretrainer):
    """Computes the padding too."""

    def _packing(self, cpu_lengths: Tensor) -> None:
        return None


class PaddedToTheLongest(Padded):
    """Every batch as long as the longest sequence of the data set."""

    def _next_batch(self) -> tuple[Tensor, Tensor, Tensor]:
        batch, *own = super()._next_batch()
        return torch.nn.functional.pad(batch, (0, 0, 0, LONGEST - batch.shape[1])), *own


KINDS = {
    "cpu": {"packed": Pretrainer, "padded to the batch": Padded, "padded to 300": PaddedToTheLongest},
    "cuda": {"padded to the batch": Padded, "padded to 300": PaddedToTheLongest},
}


def measured(recipe: SkeletonRecipe, blocks: int, device: torch.device) -> dict[str, float]:
    """Seconds of a step, the median over blocks, by implementation; ours first."""
    steps = BLOCK[device.type]
    data = made_up(lengths(32 * steps * (blocks + 1)), 150)
    learners = {name: kind(recipe, data, 0, device) for name, kind in KINDS[device.type].items()}
    taken = {name: [] for name in learners}
    for _ in range(blocks + 1):  # the first is not counted
        for name, learner in learners.items():
            start = _now(device)
            for _ in range(steps):
                learner.step()
            taken[name].append((_now(device) - start) / steps)
    return {name: statistics.median(each[1:]) for name, each in taken.items()}


def _now(device: torch.device) -> float:
    """CPU time in seconds, or the clock's once the GPU has done what it was given."""
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Print minutes an epoch for each objective, and the ratio of each to ours."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto")
    parser.add_argument("--objectives", default="CE,AE+CE+AD,AE+CE+AD+CD")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--units", type=int, default=512)
    parser.add_argument("--steps", type=int, default=6, help="timed one by one; on a GPU, blocks of 20")
    options = parser.parse_args()
    device = devices.resolve(options.device)
    changes = {"precision": options.precision, "layers": options.layers, "units": options.units}
    recipes = [paper("ntu", objectives, **changes) for objectives in options.objectives.split(",")]
    name, precision = devices.hardware(device)["device"], devices.precision_of(recipes[0], device)
    print(f"NTU RGB+D cross-subject, {options.layers} x {options.units}, {precision}, one thread, {name}")
    with devices.threads(1), devices.full_precision():
        for recipe in recipes:
            show(recipe.objectives, measured(recipe, options.steps, device))


def show(objectives: str, seconds: dict[str, float]) -> None:
    """Print two lines, the second with the ratios to the first implementation."""
    minutes = ", ".join(f"{name} {each * STEPS_OF_AN_EPOCH / 60:.3g}" for name, each in seconds.items())
    print(f"{objectives}: minutes an epoch: {minutes}")
    ours = next(iter(seconds))
    ratios = ", ".join(f"{name} {each / seconds[ours]:.2f}" for name, each in seconds.items())
    print(f"{objectives}: ratio to {ours}: {ratios}")


if __name__ == "__main__":
    main()
