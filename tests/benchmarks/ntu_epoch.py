"""Time of an NTU RGB+D epoch on one CPU core, projected from measured steps; and what its padding would cost.

    python3 -m tests.benchmarks.ntu_epoch [--precision bfloat16] [--objectives CE,AE+CE+AD] [--layers 3] [--units 1024]

Made-up sequences of 20 to 300 frames, 84 on average: an assumption about cross-subject NTU RGB+D 60, whose 40,091
training sequences are 1,252 steps of 32. Three implementations take the same steps in turns: packed (ours), padded to
the longest sequence of the batch (as on a GPU), and padded to 300 frames.
"""

import argparse
import statistics
import time

import torch
from torch import Tensor

from repro.skeleton.pretrain import Pretrainer, SkeletonRecipe, paper
from tests.benchmarks.made_up import made_up

STEPS_OF_AN_EPOCH, LONGEST, MEAN = 40_091 // 32, 300, 84


def lengths(count: int) -> Tensor:
    """Frames of `count` sequences, gamma-distributed above 20."""
    torch.manual_seed(0)
    spread = torch.distributions.Gamma(4.0, 4.0 / (MEAN - 20)).sample((count,))
    return (20 + spread).long().clamp(max=LONGEST)


class Padded(Pretrainer):
    """Computes the padding too."""

    def _packing(self, lengths: Tensor) -> None:
        return None


class PaddedToTheLongest(Padded):
    """Every batch as long as the longest sequence of the data set."""

    def _next_batch(self) -> tuple[Tensor, Tensor]:
        batch, own = super()._next_batch()
        return torch.nn.functional.pad(batch, (0, 0, 0, LONGEST - batch.shape[1])), own


KINDS = {"packed": Pretrainer, "padded to the batch": Padded, "padded to 300": PaddedToTheLongest}


def measured(recipe: SkeletonRecipe, steps: int) -> dict[str, float]:
    """Seconds of CPU time of a step, the median, by implementation."""
    data = made_up(lengths(32 * (steps + 1)), 150)
    learners = {name: kind(recipe, data, 0, torch.device("cpu")) for name, kind in KINDS.items()}
    taken = {name: [] for name in learners}
    for _ in range(steps + 1):  # the first is not counted
        for name, learner in learners.items():
            start = time.process_time()
            learner.step()
            taken[name].append(time.process_time() - start)
    return {name: statistics.median(each[1:]) for name, each in taken.items()}


def main() -> None:
    """Print minutes an epoch for each objective, and the ratio of each to packed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--objectives", default="CE,AE+CE+AD,AE+CE+AD+CD")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--units", type=int, default=512)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"NTU RGB+D cross-subject, {options.layers} x {options.units}, {options.precision}, one thread")
    for objectives in options.objectives.split(","):
        changes = {"precision": options.precision, "layers": options.layers, "units": options.units}
        seconds = measured(paper("ntu", objectives, **changes), options.steps)
        minutes = ", ".join(f"{name} {each * STEPS_OF_AN_EPOCH / 60:.0f}" for name, each in seconds.items())
        print(f"{objectives}: minutes an epoch: {minutes}")
        ratios = ", ".join(f"{name} {each / seconds['packed']:.2f}" for name, each in seconds.items())
        print(f"{objectives}: ratio to packed: {ratios}")


if __name__ == "__main__":
    main()
