"""How CM-ACC's recipes are trained and measured: pre-training, then fine-tuning on every target, or probes."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from repro.audiovisual import CHARACTERS, MODALITIES, augment, finetune, pretrain
from repro.audiovisual.coverage import expected_categories
from repro.audiovisual.data import Pairs, channels_of, check_crop, members
from repro.audiovisual.data import load as load_set
from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.model import TRUNKS
from repro.audiovisual.pretrain import Pretrainer
from repro.audiovisual.recipe import PAPER, TARGETS, AudioVisualRecipe
from repro.data import manifest
from repro.recipe import Rows, choose
from repro.run.evaluate import cosine_rates, linear_probe, standardised
from repro.table import optimiser

GRIDS = ("characters", "pairs", "categories", "distinct", "frequency", "redrawn", "view", "augmented")
CLIPS_OPTIONS = ("size", "subset", "redundancy")
PROBE_EPOCHS, PROBE_BATCH, PROBE_RATE, PROBE_MOMENTUM = 50, 256, 0.1, 0.9  # of characters; assumed


class Sets(NamedTuple):
    """All data behind a recipe."""

    name: str                                    # of the pairs; it says if any of the sets is a part
    digest: str                                  # of all
    pairs: Pairs                                 # to pre-train on
    targets: Mapping[tuple[str, int], Pairs]     # recordings to fine-tune on, by name and split


def load(recipe: AudioVisualRecipe) -> Sets:
    """All data behind a recipe.

    Raises:
        ValueError: if the data are too few for the recipe, or it could not end for another reason.
        FileNotFoundError: if a data set is not there, saying how to get it.
    """
    pairs = data_of(recipe)
    members(recipe, pairs)
    targets = {(name, split): target_of(recipe, name, split) for name, split in targets_of(recipe)}
    for (name, _), data in targets.items():  # before hours of pre-training
        modality = TARGETS[name].modality
        finetune.recordings(data, modality)
        if modality == "video":
            check_crop(recipe.size, data)
        taken = channels_of(pairs, modality) or TRUNKS[getattr(recipe, f"{modality}_trunk")][1]
        if taken != (shown := channels_of(data, modality)):
            raise ValueError(f"targets={recipe.targets!r}: {modality} of {data.name} has {shown} channels, and "
                             f"encoders that are pre-trained on {pairs.name} take {taken}; choose other targets")
    sets = [pairs, *targets.values()]
    digests = dict.fromkeys(data.digest for data in sets)
    digest = pairs.digest if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
    partial = "(subset)" not in pairs.name and any("(subset)" in data.name for data in sets)
    return Sets(f"{pairs.name} (subset)" if partial else pairs.name, digest, pairs, targets)


def data_of(recipe: AudioVisualRecipe) -> Pairs:
    """The pairs a recipe pre-trains on, of a target's own set the training part of its split; read once per process.

    ValueError if the recipe then asks for several splits, whose training parts differ.
    """
    own = {TARGETS[name].splits[split - 1] for name, split in targets_of(recipe)
           if TARGETS[name].dataset == recipe.dataset}
    if len(own) > 1:
        raise ValueError(f"split={recipe.split} would test on recordings of {recipe.dataset} that are pre-trained on; "
                         "choose one target of this set, and one split")
    return _data(recipe, recipe.dataset, recipe.window, next(iter(own), None))


def target_of(recipe: AudioVisualRecipe, target: str, split: int) -> Pairs:
    """The recordings of a target in a split, from 1, in windows for fine-tuning."""
    dataset, _, splits = TARGETS[target]
    return _data(recipe, dataset, recipe.finetune_window, splits[split - 1])


def _data(recipe: AudioVisualRecipe, dataset: str, window: int, split: str | None) -> Pairs:
    options = {name: getattr(recipe, name) for name in (GRIDS if dataset in CHARACTERS else CLIPS_OPTIONS)}
    return _load(dataset, manifest.data_root(), window=window, split=split, **options)


_load = manifest.read_once(load_set, maxsize=16)  # one to pre-train on and eleven splits of targets, or nine of grids


def targets_of(recipe: AudioVisualRecipe) -> list[tuple[str, int]]:
    """The targets that encoders of the recipe are fine-tuned on, each with an official split; none of characters.

    ValueError if there is no such target, or it has not so many splits.
    """
    targets = []
    for name in () if recipe.dataset in CHARACTERS else filter(None, recipe.targets.split(",")):
        count = len(TARGETS[choose("targets", name, TARGETS)].splits)
        if recipe.split > count:
            raise ValueError(f"split={recipe.split} should be at most {count}, of {name}, or 0 for their mean")
        targets += [(name, split) for split in (range(1, count + 1) if recipe.split == 0 else (recipe.split,))]
    return targets


def learners(
    recipe: AudioVisualRecipe, data: Sets, seed: int, device: torch.device
) -> Iterator[Pretrainer | FineTuner]:
    """What `fit` trains for a recipe: the pretrainer, then, of its encoders as they are by then, every fine-tuning."""
    pretrainer = Pretrainer(recipe, data.pairs, seed, device)
    yield pretrainer
    for (name, split), recordings in data.targets.items():
        modality = TARGETS[name].modality
        trunk = pretrainer.towers.trunks[modality]
        yield FineTuner(recipe, trunk, recordings, modality, seed, device, target=name, split=split)


def measure(learner: Pretrainer | FineTuner) -> dict[str, float]:
    """Of a fine-tuning, by the name of its target, the accuracy in percent.

    Of the pretrainer "trained_on", the pairs pre-trained on; of CM-ACC also `coverage`, of grids of characters `along`.
    """
    if isinstance(learner, FineTuner):
        return {learner.target: learner.accuracy()}
    trained_on = {"trained_on": float(0 if learner.recipe.method == "scratch" else len(learner.members))}
    return trained_on | (coverage(learner) if learner.recipe.method == "cmacc" else {}) | along(learner)


def coverage(pretrainer: Pretrainer) -> dict[str, float]:
    """From how many categories the negatives selected in a step came.

    That is "categories_video", "categories_audio", the mean over all steps, where items of no category do not count;
    and "expected", the same of uniform draws from the pool, see `expected_categories`.
    """
    pairs, recipe = len(pretrainer.members), pretrainer.recipe
    frequencies = pretrainer.categories[pretrainer.members.to(pretrainer.device)].bincount()[: pretrainer.kinds]
    means = (pretrainer.counted / pretrainer.taken).tolist()
    counted = {f"categories_{modality}": mean for modality, mean in zip(MODALITIES, means, strict=True)}
    return counted | {
        "expected": expected_categories(frequencies.cpu().numpy() / pairs, recipe.batch, max(pairs, recipe.pool))
    }


def along(pretrainer: Pretrainer) -> dict[str, float]:
    """What is measured along training too, of grids alone: linear probes of every cell's character on the encoder of x.

    That is "linear", accuracy in percent on new pairs of the drawings trained on, the mean over cells, and
    "linear_held_out", the same on drawings never seen.

    Source: CM-ACC, Fig. 3a; the paper does not say how accuracy is measured.
    """
    data, measured = pretrainer.data, {}
    if pretrainer.recipe.dataset not in CHARACTERS:
        return measured
    train, labels = _features(pretrainer, data.train), data.labels.to(pretrainer.device)
    for name, lot in {"linear": data.test, "linear_held_out": data.held_out}.items():
        features = standardised(train, train), standardised(_features(pretrainer, lot), train)
        accuracies = [
            linear_probe(
                features[0], characters[data.train], features[1], characters[lot], classes=int(characters.max()) + 1,
                batch=PROBE_BATCH, rates=cosine_rates(PROBE_EPOCHS, PROBE_RATE, 0.0), momentum=PROBE_MOMENTUM,
                seed=pretrainer.seed,
            )[-1]
            for characters in labels.unbind(1)
        ]
        measured[name] = sum(accuracies) / len(accuracies)
    return measured


@torch.no_grad()
def _features(pretrainer: Pretrainer, lot: Tensor) -> Tensor:
    """Features (n, C) of the grids x of a lot of pairs."""
    trunk = pretrainer.towers.trunks["video"].eval()
    views = (pretrainer.data.centred("video", index)[:, 0] for index in lot.nonzero().flatten().split(512))
    return torch.cat([trunk(augment.centred(view, pretrainer.recipe.size).to(pretrainer.device)) for view in views])


def constants(recipe: AudioVisualRecipe) -> Rows:
    """See `repro.table.Study`."""
    rows = [optimiser(pretrain.OPTIMISER, PAPER)] if recipe.method != "scratch" else []
    if recipe.dataset in CHARACTERS:
        return [
            *rows,
            ("affine.turn", augment.TURN, "assumed: most by which an entry of the map differs from the identity's"),
            ("affine.shift", augment.SHIFT, "assumed: largest shift of a cell, in halves of its side"),
        ]
    return [
        *rows, *([optimiser(finetune.OPTIMISER, "assumed: of fine-tuning")] if recipe.targets else []),
        ("flip", augment.FLIP, "assumed: probability; the paper names the augmentation alone"),
        ("normalisation.mean", augment.MEAN, "assumed: usual for Kinetics"),
        ("normalisation.std", augment.DEVIATION, "assumed: usual for Kinetics"),
    ]
