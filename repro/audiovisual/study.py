"""How CM-ACC's recipes are trained and measured: pre-training, then fine-tuning on every target, or probes."""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from repro.audiovisual import CHARACTERS, MODALITIES, augment, finetune, pretrain
from repro.audiovisual.coverage import expected_categories
from repro.audiovisual.data import Pairs, members
from repro.audiovisual.data import load as load_set
from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.pretrain import VERSION, Pretrainer
from repro.audiovisual.recipe import PAPER, PRESETS, TARGETS, VARIANTS, AudioVisualRecipe
from repro.data import manifest
from repro.recipe import Rows, choose
from repro.run.evaluate import cosine_rates, linear_probe, standardised
from repro.table import Study, optimiser

GRIDS = ("characters", "pairs", "categories", "distinct", "frequency", "redrawn", "view", "augmented")
CLIPS_OPTIONS = ("size", "subset", "redundancy")
PROBE_EPOCHS, PROBE_BATCH, PROBE_RATE, PROBE_MOMENTUM = 50, 256, 0.1, 0.9  # of characters; assumed
EVALUATION = 1  # raise when `measure` measures more, or otherwise


@dataclasses.dataclass(frozen=True)
class Sets:
    """What a recipe is pre-trained on, and where its encoders are judged.

    Attributes:
        name: of the pairs; it says so if they, or a target, are a part of a distribution.
        digest: of all of it.
        pairs: to pre-train on.
        targets: recordings to fine-tune on, by name and split of `targets_of`.
    """

    name: str
    digest: str
    pairs: Pairs
    targets: Mapping[tuple[str, int], Pairs]


def load(recipe: AudioVisualRecipe) -> Sets:
    """All data behind a recipe.

    Raises:
        ValueError: if the data are too few for the recipe, or it could not end for another reason.
        FileNotFoundError: if a data set is not there, saying how to get it or, of a target, to do without.
    """
    pairs, targets = data_of(recipe), {}
    members(recipe, pairs)
    for name, split in targets_of(recipe):
        try:
            targets[name, split] = target_of(recipe, name, split)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error}; or choose other targets than {name}") from error
    partial = any("(subset)" in target.name for target in targets.values()) and "(subset)" not in pairs.name
    digests = dict.fromkeys(data.digest for data in (pairs, *targets.values()))
    digest = pairs.digest if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
    return Sets(f"{pairs.name} (subset)" if partial else pairs.name, digest, pairs, targets)


def data_of(recipe: AudioVisualRecipe) -> Pairs:
    """The pairs a recipe pre-trains on; read once per process while their files stay the same.

    Of a set that is a target too, only the training part of the target's split is for pre-training.

    Raises:
        ValueError: if the recipe then asks for several splits, whose training parts differ.
    """
    same = [(TARGETS[name], split) for name, split in targets_of(recipe) if TARGETS[name].dataset == recipe.dataset]
    own = [target.splits[split - 1] for target, split in same]
    if len(set(own)) > 1:
        raise ValueError(
            f"split={recipe.split} would test on recordings of {recipe.dataset} that are pre-trained on, which are "
            f"those of one split's training part; choose one target of this set, and a split from 1 to "
            f"{len(same[0][0].splits)}"
        )
    chosen = {"window": recipe.window, "split": own[0] if own else None}
    return _load(recipe.dataset, manifest.data_root(), **chosen, **_options(recipe, recipe.dataset))


def target_of(recipe: AudioVisualRecipe, target: str, split: int) -> Pairs:
    """The recordings of a target in a split, from 1, in windows for fine-tuning; read once, as `data_of`."""
    dataset, _, splits = TARGETS[target]
    chosen = {"window": recipe.finetune_window, "split": splits[split - 1]}
    return _load(dataset, manifest.data_root(), **chosen, **_options(recipe, dataset))


def targets_of(recipe: AudioVisualRecipe) -> list[tuple[str, int]]:
    """The targets that encoders of the recipe are fine-tuned on, each with an official split; none of characters.

    Raises:
        ValueError: if there is no such target, or it has not so many splits.
    """
    names = [] if recipe.dataset in CHARACTERS else filter(None, recipe.targets.split(","))
    targets = []
    for name in names:
        count = len(TARGETS[choose("targets", name, TARGETS)].splits)
        if recipe.split > count:
            raise ValueError(f"split={recipe.split} should be at most {count}, of {name}, or 0 for their mean")
        targets += [(name, split) for split in (range(1, count + 1) if recipe.split == 0 else (recipe.split,))]
    return targets


def trained_on(recipe: AudioVisualRecipe) -> str:
    """How many clips the recipe pre-trains on, in words; nothing of characters, and of encoders from scratch."""
    if recipe.dataset in CHARACTERS or recipe.method == "scratch":
        return ""
    data = data_of(recipe)
    return f"{data.name}: {recipe.method} takes {len(members(recipe, data)):,} of {int(data.pretrain.sum()):,} clips"


def learners(
    recipe: AudioVisualRecipe, data: Sets, seed: int, device: torch.device
) -> Iterator[Pretrainer | FineTuner]:
    """What `fit` trains for a recipe: the pretrainer, then, of its encoders as they are by then, every fine-tuning.

    Of a finished cell fine-tunings leave no checkpoint: one that is measured again fine-tunes again, and trains no
    encoder anew.
    """
    pretrainer = Pretrainer(recipe, data.pairs, seed, device)
    yield pretrainer
    for (name, split), recordings in data.targets.items():
        modality = TARGETS[name].modality
        trunk = pretrainer.towers.trunks[modality]
        yield FineTuner(recipe, trunk, recordings, modality, seed, device, target=name, split=split)


def measure(learner: Pretrainer | FineTuner) -> dict[str, float]:
    """What a trained learner says of the encoders.

    Returns:
        Of a fine-tuning, by the name of its target, the accuracy in percent. Of the pretrainer "trained_on", how many
        pairs, or recordings with the one modality that is needed, were pre-trained on; of CM-ACC what `coverage` says,
        and of grids of characters what `probe_characters` says.
    """
    if isinstance(learner, FineTuner):
        return {learner.target: learner.accuracy()}
    trained_on = {"trained_on": float(0 if learner.recipe.method == "scratch" else len(learner.members))}
    return trained_on | (coverage(learner) if learner.recipe.method == "cmacc" else {}) | along(learner)


def along(learner: Pretrainer) -> dict[str, float]:
    """What is measured along training too: of grids what `probe_characters` says, of clips nothing.

    Probes draw from streams of their own. At the last epoch they are what `measure` reports.
    """
    return probe_characters(learner) if learner.recipe.dataset in CHARACTERS else {}


def coverage(pretrainer: Pretrainer) -> dict[str, float]:
    """From how many categories the negatives selected in a step came.

    Returns:
        categories_video, categories_audio: distinct categories, mean over all steps; items of none do not count.
        expected: the same of the sampler "random", in closed form: of as many uniform draws from the pool, without
            replacement, see `expected_categories`. What a dictionary excludes was drawn as uniformly and changes
            nothing as long as no pair is in a pool twice; a larger pool is taken as if none of it were excluded.
    """
    pairs = len(pretrainer.members)
    frequencies = pretrainer.categories[pretrainer.members.to(pretrainer.device)].bincount()[: pretrainer.kinds]
    means = (pretrainer.counted / pretrainer.taken).tolist()
    counted = {f"categories_{modality}": mean for modality, mean in zip(MODALITIES, means, strict=True)}
    population = max(pairs, pretrainer.recipe.pool)
    expected = expected_categories(frequencies.cpu().numpy() / pairs, pretrainer.recipe.batch, population)
    return counted | {"expected": expected}


def probe_characters(pretrainer: Pretrainer) -> dict[str, float]:
    """Linear probes of every cell's character on the frozen encoder of x.

    Returns:
        linear: accuracy in percent on new pairs of the drawings trained on, the mean over cells.
        linear_held_out: the same on drawings never seen.

    Source: CM-ACC, Fig. 3a; the paper does not say how accuracy is measured.
    """
    data, measured = pretrainer.data, {}
    lots = {"train": data.train, "linear": data.test, "linear_held_out": data.held_out}
    features = {lot: _features(pretrainer, mask) for lot, mask in lots.items()}
    scaled = {lot: standardised(rows, features["train"]) for lot, rows in features.items()}
    labels = {lot: data.labels[mask].to(pretrainer.device) for lot, mask in lots.items()}
    for lot in ("linear", "linear_held_out"):
        accuracies = [
            linear_probe(
                scaled["train"],
                labels["train"][:, place],
                scaled[lot],
                labels[lot][:, place],
                classes=int(characters.max()) + 1,
                batch=PROBE_BATCH,
                rates=cosine_rates(PROBE_EPOCHS, PROBE_RATE, 0.0),
                momentum=PROBE_MOMENTUM,
                seed=pretrainer.seed,
            )[-1]
            for place, characters in enumerate(data.labels.unbind(1))
        ]
        measured[lot] = sum(accuracies) / len(accuracies)
    return measured


@torch.no_grad()
def _features(pretrainer: Pretrainer, mask: Tensor) -> Tensor:
    """Features (n, C) of the grids x of a lot of pairs."""
    trunk, parts = pretrainer.towers.trunks["video"].eval(), mask.nonzero().flatten().split(512)
    views = (augment.centred(pretrainer.data.centred("video", index)[:, 0], pretrainer.recipe.size) for index in parts)
    return torch.cat([trunk(view.to(pretrainer.device)) for view in views])


def _options(recipe: AudioVisualRecipe, dataset: str) -> dict[str, Any]:
    """How a recipe wants a data set."""
    return {name: getattr(recipe, name) for name in (GRIDS if dataset in CHARACTERS else CLIPS_OPTIONS)}


@manifest.read_once(maxsize=16)  # what is pre-trained on and eleven splits of targets, or nine sets of grids
def _load(name: str, root: Path, **options: Any) -> Pairs:
    return load_set(name, root, **options)


def constants(recipe: AudioVisualRecipe) -> Rows:
    """See `repro.table.Study`."""
    assumed = "assumed: usual for Kinetics"
    rows = [optimiser(pretrain.OPTIMISER, PAPER)] if recipe.method != "scratch" else []
    if recipe.dataset in CHARACTERS:
        return [
            *rows,
            ("affine.turn", augment.TURN, "assumed: most by which an entry of the map departs from the identity's"),
            ("affine.shift", augment.SHIFT, "assumed: largest shift of a cell, in halves of its side"),
        ]
    return [
        *rows,
        *([optimiser(finetune.OPTIMISER, "assumed: of fine-tuning")] if recipe.targets else []),
        ("flip", augment.FLIP, "assumed: probability; the paper names the augmentation alone"),
        ("normalisation.mean", augment.MEAN, assumed),
        ("normalisation.std", augment.DEVIATION, assumed),
    ]


CLIPS = Study(
    name="clips",
    recipe=AudioVisualRecipe,
    presets=PRESETS,
    variants=VARIANTS,
    load=load,
    learners=learners,
    measure=measure,
    probe=along,
    version=VERSION,
    evaluation=EVALUATION,
    notice=trained_on,
    constants=constants,
)
