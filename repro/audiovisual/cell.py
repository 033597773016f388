"""One cell of CM-ACC's tables: pre-train, fine-tune or probe, and say what it cost."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from tqdm.auto import tqdm

from repro import manifest
from repro.audiovisual import MODALITIES, augment
from repro.audiovisual.characters import Characters
from repro.audiovisual.coverage import expected_categories
from repro.audiovisual.data import CHARACTERS, Pairs, load
from repro.audiovisual.finetune import FineTuner
from repro.audiovisual.members import members
from repro.audiovisual.pretrain import Pretrainer
from repro.audiovisual.recipe import AudioVisualRecipe
from repro.recipe import choose
from repro.run import device as devices
from repro.run.cost import begin, cost
from repro.run.evaluate import cosine_rates, linear_probe, standardised
from repro.run.fit import fit
from repro.run.store import Cell, Run


class Target(NamedTuple):
    """Where an encoder is judged: by fine-tuning on a modality of a data set, in official splits of these names."""

    dataset: str
    modality: str
    splits: tuple[str | None, ...]


TARGETS = {
    "ucf101": Target("ucf101", "video", ("split1", "split2", "split3")),
    "hmdb51": Target("hmdb51", "video", ("split1", "split2", "split3")),
    "esc50": Target("esc50", "audio", ("fold1", "fold2", "fold3", "fold4", "fold5")),
    "esc10": Target("esc50", "audio", ("esc10_fold1", "esc10_fold2", "esc10_fold3", "esc10_fold4", "esc10_fold5")),
    "synthetic_video": Target("synthetic", "video", (None,)),
    "synthetic_audio": Target("synthetic", "audio", (None,)),
}
GRIDS = ("characters", "pairs", "categories", "distinct", "frequency", "redrawn", "view", "augmented")
CLIPS = ("size", "subset", "redundancy")
PROBE_EPOCHS, PROBE_BATCH, PROBE_RATE, PROBE_MOMENTUM = 50, 256, 0.1, 0.9  # of characters; assumed

EVALUATION = 1  # raise when `evaluate` measures more, or otherwise


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
    found = []
    for name in names:
        count = len(TARGETS[choose("targets", name, TARGETS)].splits)
        if recipe.split > count:
            raise ValueError(f"split={recipe.split} should be at most {count}, of {name}, or 0 for their mean")
        found += [(name, split) for split in (range(1, count + 1) if recipe.split == 0 else (recipe.split,))]
    return found


def identity_of(recipe: AudioVisualRecipe) -> tuple[str, str]:
    """Name and digest of all data behind a recipe: a part of a target makes the name that of a part, too.

    Raises:
        ValueError: if the data are too few for the recipe, or it could not end for another reason.
        FileNotFoundError: if a data set is not there, saying how to get it or, of a target, to do without.
    """
    targets = targets_of(recipe)
    if manifest.embedded(recipe.dataset):  # its clips take seconds to make: targets that are not here are missed before
        for name, split in targets:
            if TARGETS[name].dataset != recipe.dataset:
                _asked(recipe, name, split)
    data = data_of(recipe)
    members(recipe, data)
    judged = [_asked(recipe, name, split) for name, split in targets]
    partial = any("(subset)" in each.name for each in judged) and "(subset)" not in data.name
    digests = dict.fromkeys(each.digest for each in (data, *judged))
    digest = data.digest if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
    return f"{data.name} (subset)" if partial else data.name, digest


def trained_on(recipe: AudioVisualRecipe) -> str:
    """How many clips the recipe pre-trains on, in words; nothing of characters, and of encoders from scratch."""
    if recipe.dataset in CHARACTERS or recipe.method == "scratch":
        return ""
    data = data_of(recipe)
    return f"{data.name}: {recipe.method} takes {len(members(recipe, data)):,} of {int(data.pretrain.sum()):,} clips"


def _asked(recipe: AudioVisualRecipe, name: str, split: int) -> Pairs:
    """As `target_of`; the message says that there is a choice."""
    try:
        return target_of(recipe, name, split)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; or choose other targets than {name}") from error


def train(run: Run, progress: tqdm, *, device: torch.device) -> dict:
    """Train the run's cell to its end, from its checkpoints if there are any, and evaluate it.

    Returns:
        The content of `result.json`: that of `evaluate`; "trained_on", how many pairs, or recordings with the one
        modality that is needed, were pre-trained on; and "cost", whose seconds are those of pre-training.

    Raises:
        ValueError: as `Cell.require`, and as the `Pretrainer`.
    """
    begin(device)
    recipe, seed = run.cell.recipe, run.cell.seed
    run.cell.require(identity_of(recipe)[1])
    with devices.threads(recipe.threads), devices.full_precision():
        pretrainer = Pretrainer(recipe, data_of(recipe), seed, device)
        trained_on = 0 if recipe.method == "scratch" else len(pretrainer.members)
        spent = fit(pretrainer, run.folder, progress)
        result = evaluate(pretrainer, run.folder, progress, seed)
    for checkpoint in run.folder.glob("*/checkpoint*.pt"):  # of fine-tuning, which only resuming needed
        checkpoint.unlink()
    return result | {"trained_on": float(trained_on), "cost": spent | cost(device)}


def learners(cell: Cell, device: torch.device) -> Iterator[Pretrainer | FineTuner]:
    """What `fit` trains for a cell, untrained, one after the other: the pretrainer, then every fine-tuning."""
    pretrainer = Pretrainer(cell.recipe, data_of(cell.recipe), cell.seed, device)
    yield pretrainer
    for name, split in targets_of(cell.recipe):
        yield _finetuner(pretrainer, name, split, cell.seed)


def evaluate(pretrainer: Pretrainer, folder: Path, progress: tqdm, seed: int) -> dict[str, float]:
    """What the recipe's targets say of the encoders.

    Args:
        pretrainer: trained.
        folder: of the run; every fine-tuning has a folder of its own in it, and resumes.
        progress: a bar to count steps on.
        seed: of classifiers and probes.

    Returns:
        Of CM-ACC what `coverage` says. For grids of characters what `probe_characters` says; otherwise, by the name of
        every target, the accuracy in percent after fine-tuning, the mean over its splits in `targets_of`.
    """
    recipe = pretrainer.recipe
    result = coverage(pretrainer) if recipe.method == "cmacc" else {}
    if recipe.dataset in CHARACTERS:
        return result | probe_characters(pretrainer, seed)
    accuracies: dict[str, list[float]] = {}
    for name, split in targets_of(recipe):
        accuracies.setdefault(name, []).append(_finetuned(pretrainer, name, split, folder, progress, seed))
    return result | {name: sum(found) / len(found) for name, found in accuracies.items()}


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


def _finetuned(pretrainer: Pretrainer, name: str, split: int, folder: Path, progress: tqdm, seed: int) -> float:
    """Accuracy on a split of a target."""
    learner = _finetuner(pretrainer, name, split, seed)
    part = folder / learner.name
    part.mkdir(exist_ok=True)
    fit(learner, part, progress)
    return learner.accuracy()


def _finetuner(pretrainer: Pretrainer, name: str, split: int, seed: int) -> FineTuner:
    modality = TARGETS[name].modality
    data, trunk = target_of(pretrainer.recipe, name, split), pretrainer.towers.trunks[modality]
    return FineTuner(pretrainer.recipe, trunk, data, modality, seed, pretrainer.device, target=name, split=split)


def probe_characters(pretrainer: Pretrainer, seed: int) -> dict[str, float]:
    """Linear probes of every cell's character on the frozen encoder of x.

    Returns:
        linear: accuracy in percent on new pairs of the drawings trained on, the mean over cells.
        linear_held_out: the same on drawings never seen.

    Source: CM-ACC, Fig. 3a; the paper does not say how accuracy is measured.
    """
    data = pretrainer.data
    features = {part: _features(pretrainer, mask) for part, mask in _parts(data).items()}
    scaled = {part: standardised(rows, features["train"]) for part, rows in features.items()}
    accuracies = {"test": [], "held_out": []}
    for place in range(data.labels.shape[1]):
        labels = {part: data.labels[mask, place].to(pretrainer.device) for part, mask in _parts(data).items()}
        for part, found in accuracies.items():
            found.append(
                linear_probe(
                    scaled["train"],
                    labels["train"],
                    scaled[part],
                    labels[part],
                    classes=int(data.labels[:, place].max()) + 1,
                    batch=PROBE_BATCH,
                    rates=cosine_rates(PROBE_EPOCHS, PROBE_RATE, 0.0),
                    momentum=PROBE_MOMENTUM,
                    seed=seed,
                )[-1]
            )
    means = {part: sum(found) / len(found) for part, found in accuracies.items()}
    return {"linear": means["test"], "linear_held_out": means["held_out"]}


def _parts(data: Characters) -> dict[str, Tensor]:
    """The lots of pairs that are probed, by name."""
    return {"train": data.train, "test": data.test, "held_out": data.held_out}


@torch.no_grad()
def _features(pretrainer: Pretrainer, mask: Tensor) -> Tensor:
    """Features (n, C) of the grids x of a lot of pairs."""
    trunk, parts = pretrainer.towers.trunks["video"].eval(), mask.nonzero().flatten().split(512)
    views = (augment.channels_last(pretrainer.data.centred("video", index)[:, 0]) for index in parts)
    return torch.cat([trunk(view.to(pretrainer.device)) for view in views])


def _options(recipe: AudioVisualRecipe, dataset: str) -> dict[str, Any]:
    """How a recipe wants a data set."""
    return {name: getattr(recipe, name) for name in (GRIDS if dataset in CHARACTERS else CLIPS)}


@manifest.read_once(maxsize=16)  # what is pre-trained on and eleven splits of targets, or nine sets of grids
def _load(name: str, root: Path, **options: Any) -> Pairs:
    return load(name, root, **options)
