"""Memory and time of JCL's closed form beside the vanilla loss, and of a training step, by the number of keys M'.

    python3 -m benchmarks.positive_keys_cost [--threads 2] [--keys 1,2,4,8,16]

At JCL's size (batch 128, 128 features, a dictionary of 65,536 keys), forward and backward. The plain vanilla loss
repeats every query once per key and concatenates its positive and negative logits, (N M', K + 1) of them; ours shares
the sum over the dictionary among the keys of a query. A step is one of training with JCL, and with the vanilla loss,
of a ResNet-18, stock stem, at 64 pixels. Memory is that of the tensors that each makes and that live at once, at most,
counted by torch's profiler.
"""

import argparse
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.stopwatch import CPU, Comparison, compare, pictures
from repro.contrast.objectives import jcl, vanilla
from repro.image.pretrain import Pretrainer
from repro.image.recipe import paper

BATCH, FEATURES, ENTRIES, TEMPERATURE, STRENGTH = 128, 128, 65536, 0.2, 4.0


def plain_vanilla(query: Tensor, keys: Tensor, negatives: Tensor) -> Tensor:
    """InfoNCE of every query with every one of its keys, as if they were other queries."""
    queries = query.repeat_interleave(keys.shape[1], dim=0)
    positive = (queries * keys.flatten(0, 1)).sum(1, keepdim=True)
    logits = torch.cat([positive, queries @ negatives.T], dim=1) / TEMPERATURE
    return functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64))


LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "vanilla, plain": plain_vanilla,
    "vanilla, shared sum": lambda query, keys, negatives: vanilla(query, keys, negatives, TEMPERATURE),
    "closed form": lambda query, keys, negatives: jcl(query, keys, negatives, TEMPERATURE, STRENGTH),
}


def works(settings: argparse.Namespace) -> Iterator[Comparison]:
    """Losses on made-up features and steps of training, for every number of keys."""
    draws, images = torch.Generator().manual_seed(0), pictures(4 * BATCH)
    for count in map(int, settings.keys.split(",")):
        shapes = ((BATCH, FEATURES), (BATCH, count, FEATURES), (ENTRIES, FEATURES))
        features = [functional.normalize(torch.randn(shape, generator=draws), dim=-1) for shape in shapes]
        features[0].requires_grad_()
        calls = {name: lambda loss=loss, features=features: loss(*features).backward() for name, loss in LOSSES.items()}
        for method in ("jcl", "vanilla"):
            recipe = paper("cifar10", method, small=False, size=64, resize=64, keys=count, batch=BATCH, epochs=100000,
                           head="moco_v2", projection=FEATURES, dictionary=ENTRIES, precision="float32")
            calls[f"step of {method}"] = Pretrainer(recipe, images, seed=0, device=CPU).step
        yield Comparison(f"M' = {count}", calls, BATCH, "queries", "vanilla, plain", memory=True)


if __name__ == "__main__":
    compare(__doc__, works, keys="1,2,4,8,16")
