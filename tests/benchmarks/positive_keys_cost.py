"""Memory and time of JCL's closed form beside the vanilla loss, and of a training step, by the number of keys M'.

    python3 -m tests.benchmarks.positive_keys_cost [--threads 2] [--keys 1,2,4,8,16]

At JCL's size (batch 128, 128 features, a dictionary of 65,536 keys), forward and backward. The plain vanilla loss
repeats every query once per key and concatenates its positive and negative logits, (N M', K + 1) of them; ours shares
the sum over the dictionary among the keys of a query. A step is one of training with JCL, and with the vanilla loss,
of a ResNet-18, stock stem, at 64 pixels. Memory is that of the tensors that each makes and that live at once, at most,
counted by torch's profiler.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from repro.contrast.objectives import jcl, vanilla
from repro.image.pretrain import Pretrainer
from repro.image.recipe import paper
from tests.benchmarks.image_throughput import made_up

BATCH, FEATURES, ENTRIES, TEMPERATURE, STRENGTH = 128, 128, 65536, 0.2, 4.0
REPEATS = 5


def plain_vanilla(query: Tensor, keys: Tensor, negatives: Tensor) -> Tensor:
    """InfoNCE of every query with every one of its keys, as if they were other queries."""
    queries = query.repeat_interleave(keys.shape[1], dim=0)
    positive = (queries * keys.flatten(0, 1)).sum(1, keepdim=True)
    logits = torch.cat([positive, queries @ negatives.T], dim=1) / TEMPERATURE
    return functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64))


LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "closed form": lambda query, keys, negatives: jcl(query, keys, negatives, TEMPERATURE, STRENGTH),
    "vanilla, shared sum": lambda query, keys, negatives: vanilla(query, keys, negatives, TEMPERATURE),
    "vanilla, plain": plain_vanilla,
}


def main() -> None:
    """Print a line per number of keys."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keys", default="1,2,4,8,16")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for count in map(int, options.keys.split(",")):
        found = [f"{name} {_cost(loss, count)}" for name, loss in LOSSES.items()]
        steps = [f"step of {method} {_step(method, count)}" for method in ("jcl", "vanilla")]
        print(f"M' = {count}: {'; '.join(found + steps)}")


def _cost(loss: Callable[[Tensor, Tensor, Tensor], Tensor], count: int) -> str:
    """Median time and peak memory of forward and backward."""
    draws = torch.Generator().manual_seed(0)
    shapes = ((BATCH, FEATURES), (BATCH, count, FEATURES), (ENTRIES, FEATURES))
    query, keys, negatives = (
        functional.normalize(torch.randn(shape, generator=draws), dim=-1) for shape in shapes
    )
    query.requires_grad_()

    def once() -> None:
        query.grad = None
        loss(query, keys, negatives).backward()

    return _measured(once)


def _step(method: str, count: int) -> str:
    """Median time and peak memory of a training step."""
    recipe = paper("cifar10", method, small=False, size=64, resize=64, keys=count, batch=BATCH, epochs=100000,
                   head="moco_v2", projection=FEATURES, dictionary=ENTRIES, precision="float32")
    learner = Pretrainer(recipe, made_up(4 * BATCH), seed=0, device=torch.device("cpu"))
    return _measured(learner.step)


def _measured(once: Callable[[], object]) -> str:
    return f"{_seconds(once) * 1000:.0f} ms, {_peak(once) / 2**20:.0f} MiB"


def _seconds(once: Callable[[], object]) -> float:
    once()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        once()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _peak(once: Callable[[], object]) -> int:
    """Most bytes of tensors made within a call that live at once."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        once()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    level = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        level += event.nbytes()
        peak = max(peak, level)
    return peak


if __name__ == "__main__":
    main()
