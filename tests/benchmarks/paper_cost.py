"""What the printed tables of images, video and sound cost: operations of all passes through the encoders, counted.

    python3 -m tests.benchmarks.paper_cost

Torch counts a pass of one item through a trunk without computing it; a multiplication and an addition are two
operations. Pre-training takes, for every item and step, three passes of the query (one forwards, two of that size
backwards) and one of each key, of which JCL has M'. CM-ACC encodes its pool besides, once an epoch. Fine-tuning takes
three passes an item, a test one for every window. A probe that sees a new view of every image in every epoch takes a
pass for each. Left out are heads, losses, selection, probes on stored features, and what passes over all images once or
ten times: the features, the nearest neighbours that are watched. Hours follow from an assumed rate of useful operations
of one GPU; multiply them with the ratio of this rate to yours.

The time of the taxonomy's recurrent networks is not in their operations: a frame waits for the one before. Counted are
frames that wait for one another, three passes for every encoder and decoder that learns and one for those of keys, over
the longest sequence of a batch (all frames on NW-UCLA, on NTU RGB+D as `ntu_epoch` assumes lengths); assumed is the
time of one such frame in one layer. That is for cells one after another.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from repro.audiovisual import MODALITIES
from repro.audiovisual.model import Encoder
from repro.audiovisual.recipe import AudioVisualRecipe
from repro.data import manifest
from repro.image.model import trunk
from repro.image.recipe import ImageRecipe
from repro.run.device import precision_of
from repro.skeleton.recipe import SUBSETS, SkeletonRecipe
from repro.table import find

RATES = {"bfloat16": 60e12, "float32": 20e12}  # operations a second, assumed of a GPU of the H100's kind
GPU = torch.device("cuda")
FRAME = 20e-6      # seconds of a frame in one layer, assumed
QUERY, KEY = 3, 1  # passes
BANDS, FRAMES_A_SECOND, COLUMNS_A_SECOND = 80, 10, 100  # of log-mel spectrograms and video
IMAGES = {"imagenet100": 127_000}  # about; other sets as their manifests expect them
CLIPS = {"kinetics_sound": 22_000, "kinetics700": 240_000, "audioset": 1_800_000}  # CM-ACC, Table 6
SEQUENCES = {"ucla": (1_013, 50), "ntu": (40_091, 167)}  # to train, and frames of the longest of 32 on average
FINETUNED = {"ucf101": (9_537, 3_783), "hmdb51": (3_570, 1_530), "esc50": (1_600, 400)}  # recordings to train, to test


class Cost(NamedTuple):
    """What a printed table costs with one seed: its name, number of cells, operations of all, and their precision."""

    name: str
    cells: int
    operations: float
    precision: str


def operations(network: torch.nn.Module, *shape: int) -> int:
    """Operations of a forward pass of one item of this shape through a network on the device "meta"."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.eval()(torch.empty(1, *shape, device="meta"))
    return counter.get_total_flops()


def image_cell(recipe: ImageRecipe) -> float:
    """Operations of pre-training and probing a cell on images."""
    with torch.device("meta"):
        network = trunk(recipe.trunk, recipe.small)
    expected = manifest.load_manifest(recipe.dataset).splits["standard"].expect
    labelled = IMAGES.get(recipe.dataset) or expected["train"]
    images = labelled + expected.get("unlabeled", 0)
    probed = 0 if recipe.probe_view == "centred" else labelled * recipe.probe_epochs
    passes = (QUERY + KEY * recipe.keys) * images * recipe.epochs + probed
    return operations(network, 3, recipe.size, recipe.size) * passes


def cell(recipe: AudioVisualRecipe) -> float:
    """Operations of pre-training and fine-tuning a cell of CM-ACC's tables."""
    passes = {"scratch": 0, "supervised": QUERY}.get(recipe.method, QUERY + KEY)
    items = passes * CLIPS[recipe.dataset] + (recipe.pool if recipe.method == "cmacc" else 0)
    total = sum(one_window(recipe, modality, recipe.window) * items * recipe.epochs for modality in MODALITIES)
    for target in recipe.targets.split(","):
        train, test = FINETUNED[target]
        finetuning = QUERY * train * recipe.finetune_epochs + test * recipe.finetune_windows
        total += one_window(recipe, "audio" if target == "esc50" else "video", recipe.finetune_window) * finetuning
    return total


def one_window(recipe: AudioVisualRecipe, modality: str, frames: int) -> int:
    """Operations of a forward pass of as many frames, or as much sound."""
    with torch.device("meta"):
        encoder = Encoder(recipe.video_trunk if modality == "video" else recipe.audio_trunk, recipe.width)
    sound = (BANDS, frames * COLUMNS_A_SECOND // FRAMES_A_SECOND)
    return operations(encoder, *((3, frames, recipe.size, recipe.size) if modality == "video" else sound))


def image_tables() -> Iterator[Cost]:
    """Those of SCE and JCL."""
    for dataset in ("cifar10", "cifar100", "stl10", "tiny_imagenet"):
        grid = find("temperature_grid").recipes(dataset, "paper", method="sce")
        yield summed(f"SCE, temperatures, {dataset}", grid, map(image_cell, grid))
    ablations = find("positive_keys").recipes("imagenet100", "paper")
    yield summed("JCL, ablations, imagenet100", ablations, map(image_cell, ablations))
    whole = find("image_methods").recipes("imagenet", "paper", method="jcl")
    yield summed("JCL, ResNet-50, imagenet, five keys", whole, map(image_cell, whole))


def audiovisual_tables() -> Iterator[Cost]:
    """Those of CM-ACC."""
    first = find("cross_modal").recipes("kinetics_sound", "paper")
    yield summed("CM-ACC, Tables 1 and 2, kinetics_sound", first, map(cell, first))
    third = find("ohem_vs_active").recipes("kinetics700", "paper")
    yield summed("CM-ACC, Table 3, kinetics700", third, map(cell, third))
    for dataset in ("kinetics_sound", "kinetics700", "audioset"):
        recipes = find("transfer").recipes(dataset, "paper", split=1)
        yield summed(f"CM-ACC, Tables 4 to 6, {dataset}, one split", recipes, map(cell, recipes))


def summed(name: str, recipes: Sequence[Any], each: Iterable[float]) -> Cost:
    """The cost of these cells."""
    return Cost(name, len(recipes), sum(each), precision_of(recipes[0], GPU))


def taxonomy_cell(recipe: SkeletonRecipe) -> float:
    """Frames of all layers that wait for one another in pre-training a cell."""
    decoding, contrast = recipe.has("AD") or recipe.has("CD"), recipe.has("CE") or recipe.has("CD")
    passes = QUERY * (1 + decoding) + KEY * (contrast + recipe.has("CD"))
    sequences, longest = SEQUENCES[recipe.dataset]
    return passes * recipe.layers * longest * recipe.epochs * (sequences // recipe.batch)


def taxonomy_tables() -> Iterator[tuple[str, int, float]]:
    """Name, number of cells and frames that wait for one another, of the taxonomy's."""
    for dataset, changes in (("ucla", {}), ("ntu", {}), ("ntu", {"layers": 3}), ("ntu", {"units": 1024})):
        cells = find("taxonomy").recipes(dataset, "paper", objectives=SUBSETS, **changes)
        size = ", ".join(f"{value} {name}" for name, value in changes.items()) or "1 layer of 512 units"
        yield f"taxonomy, {dataset}, {size}", len(cells), sum(map(taxonomy_cell, cells))
    deep = find("encoder_collapse").recipes("ucla", "paper", objectives="AE")
    yield "taxonomy, collapse by depth, ucla, AE", len(deep), sum(map(taxonomy_cell, deep))


def main() -> None:
    """Print a line per table."""
    print(f"{'printed table, one seed':<48}{'cells':>6}{'1e9 frames':>18}{'GPU hours':>11}  at {FRAME * 1e6:.0f} us")
    for name, count, frames in taxonomy_tables():
        print(f"{name:<48}{count:>6}{frames / 1e9:>18.2f}{frames * FRAME / 3600:>11.1f}")
    print(f"{'printed table, one seed':<48}{'cells':>6}{'1e15 operations':>18}{'GPU hours':>11}  at 1e12 a second")
    for cost in (*image_tables(), *audiovisual_tables()):
        rate = RATES[cost.precision]
        petas, hours = cost.operations / 1e15, cost.operations / rate / 3600
        print(f"{cost.name:<48}{cost.cells:>6}{petas:>18,.0f}{hours:>11,.0f}  {rate / 1e12:.0f} ({cost.precision})")


if __name__ == "__main__":
    main()
