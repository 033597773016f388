"""What the printed tables of images, video and sound cost: operations of all passes through the encoders, counted.

    python3 -m benchmarks.paper_cost

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

from collections.abc import Callable

import torch

from benchmarks.stopwatch import operations
from repro.audiovisual import MODALITIES
from repro.audiovisual.model import Encoder
from repro.audiovisual.recipe import AudioVisualRecipe
from repro.data import manifest
from repro.experiments import find_table
from repro.image.model import trunk
from repro.image.recipe import ImageRecipe
from repro.run.device import precision_of
from repro.skeleton.recipe import SUBSETS, SkeletonRecipe

RATES = {"bfloat16": 60e12, "float32": 20e12}  # operations a second, assumed of a GPU of the H100's kind
GPU = torch.device("cuda")
FRAME = 20e-6      # seconds of a frame in one layer, assumed
QUERY, KEY = 3, 1  # passes
BANDS, FRAMES_A_SECOND, COLUMNS_A_SECOND = 80, 10, 100  # of log-mel spectrograms and video
IMAGES = {"imagenet100": 127_000}  # about; other sets as their manifests expect them
CLIPS = {"kinetics_sound": 22_000, "kinetics700": 240_000, "audioset": 1_800_000}  # CM-ACC, Table 6
SEQUENCES = {"ucla": (1_013, 50), "ntu": (40_091, 167)}  # to train, and frames of the longest of 32 on average
FINETUNED = {"ucf101": (9_537, 3_783), "hmdb51": (3_570, 1_530), "esc50": (1_600, 400)}  # recordings to train, to test

TABLES = (  # title, table, data set, fields
    *((f"SCE, temperatures, {dataset}", "temperature_grid", dataset, {"method": "sce"})
      for dataset in ("cifar10", "cifar100", "stl10", "tiny_imagenet")),
    ("JCL, ablations, imagenet100", "positive_keys", "imagenet100", {}),
    ("JCL, ResNet-50, imagenet, five keys", "image_methods", "imagenet", {"method": "jcl"}),
    ("CM-ACC, Tables 1 and 2, kinetics_sound", "cross_modal", "kinetics_sound", {}),
    ("CM-ACC, Table 3, kinetics700", "ohem_vs_active", "kinetics700", {}),
    *((f"CM-ACC, Tables 4 to 6, {dataset}, one split", "transfer", dataset, {"split": 1}) for dataset in CLIPS),
)
RECURRENT = (
    ("taxonomy, ucla, 1 layer of 512 units", "taxonomy", "ucla", {"objectives": SUBSETS}),
    ("taxonomy, ntu, 1 layer of 512 units", "taxonomy", "ntu", {"objectives": SUBSETS}),
    ("taxonomy, ntu, 3 layers", "taxonomy", "ntu", {"objectives": SUBSETS, "layers": 3}),
    ("taxonomy, ntu, 1024 units", "taxonomy", "ntu", {"objectives": SUBSETS, "units": 1024}),
    ("taxonomy, collapse by depth, ucla, AE", "encoder_collapse", "ucla", {"objectives": "AE"}),
)


def forward(network: torch.nn.Module, *shape: int) -> int:
    """Operations of a forward pass of one item of this shape through a network on the device "meta"."""
    with torch.no_grad():
        return operations(lambda: network.eval()(torch.empty(1, *shape, device="meta")))


def image_cell(recipe: ImageRecipe) -> float:
    """Operations of pre-training and probing a cell on images."""
    with torch.device("meta"):
        network = trunk(recipe.trunk, recipe.small)
    expected = manifest.load_manifest(recipe.dataset).splits["standard"].expect
    labelled = IMAGES.get(recipe.dataset) or expected["train"]
    images = labelled + expected.get("unlabeled", 0)
    probed = 0 if recipe.probe_view == "centred" else labelled * recipe.probe_epochs
    passes = (QUERY + KEY * recipe.keys) * images * recipe.epochs + probed
    return forward(network, 3, recipe.size, recipe.size) * passes


def clips_cell(recipe: AudioVisualRecipe) -> float:
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
    return forward(encoder, *((3, frames, recipe.size, recipe.size) if modality == "video" else sound))


def skeleton_cell(recipe: SkeletonRecipe) -> float:
    """Frames of all layers that wait for one another in pre-training a cell."""
    decoding, contrast = recipe.has("AD") or recipe.has("CD"), recipe.has("CE") or recipe.has("CD")
    passes = QUERY * (1 + decoding) + KEY * (contrast + recipe.has("CD"))
    count, longest = SEQUENCES[recipe.dataset]
    return passes * recipe.layers * longest * recipe.epochs * (count // recipe.batch)


COSTS: dict[type, Callable] = {
    ImageRecipe: image_cell, AudioVisualRecipe: clips_cell, SkeletonRecipe: skeleton_cell,
}


def main() -> None:
    """Print a line per table."""
    for tables, unit in ((RECURRENT, 1e9), (TABLES, 1e15)):
        print(f"{'printed table, one seed':<48}{'cells':>6}{f'{unit:.0e}':>12}{'GPU hours':>11}  at so many a second")
        for title, table, dataset, fields in tables:
            recipes = find_table(table).recipes(dataset, "paper", **fields)
            amount = sum(COSTS[type(recipe)](recipe) for recipe in recipes)
            rate = 1 / FRAME if tables is RECURRENT else RATES[precision_of(recipes[0], GPU)]
            hours = amount / rate / 3600
            print(f"{title:<48}{len(recipes):>6}{amount / unit:>12,.2f}{hours:>11,.1f}  {rate:.0e}")


if __name__ == "__main__":
    main()
