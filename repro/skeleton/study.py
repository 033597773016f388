"""How the taxonomy's recipes are trained and measured."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from repro.data import manifest
from repro.recipe import Rows
from repro.run.evaluate import cosine_rates, linear_predictions, nearest_labels, percent, spread, standardised
from repro.run.finished import checkpoint
from repro.run.store import Store
from repro.skeleton.data import SkeletonSet, load
from repro.skeleton.pretrain import OPTIMISER, VERSION, Pretrainer, split
from repro.skeleton.recipe import PRESETS, VARIANTS, SkeletonRecipe
from repro.table import Study, optimiser

EVALUATION = 2  # raise when `evaluate` measures more, or otherwise
ALONG = ("linear", "linear_best", "linear_standardised", "knn1")  # measured along training too


def data_of(recipe: SkeletonRecipe) -> SkeletonSet:
    """The data set of a recipe; read once per process while its files stay the same."""
    return _load(recipe.dataset, manifest.data_root(), recipe.protocol, recipe.pipeline, recipe.subset)


def along(learner: Pretrainer) -> dict[str, float]:
    """The accuracies of `evaluate` that are measured along training, in percent; probes draw from streams of their own.

    All but `linear_best` are of the probe's last epoch, whatever the recipe selects. At the end of a training that
    selects nothing they are what `evaluate` reports.
    """
    readouts, _ = learner.features(learner.data)
    accuracies = _accuracies(learner.recipe.replace(select="last"), learner.data, readouts, learner.seed)
    return {name: accuracies[name] for name in ALONG}


def learners(recipe: SkeletonRecipe, data: SkeletonSet, seed: int, device: torch.device) -> Iterator[Pretrainer]:
    """What `fit` trains for a recipe: one pretrainer."""
    yield Pretrainer(recipe, data, seed, device)


def check(recipe: SkeletonRecipe, device: torch.device) -> None:
    """Raise ValueError if bfloat16 is asked for elsewhere than on a CPU."""
    if recipe.precision == "bfloat16" and device.type != "cpu":
        raise ValueError(f"precision='bfloat16' is for a CPU; on {device.type} it is float32: leave it out")


def constants(recipe: SkeletonRecipe) -> Rows:
    """See `repro.table.Study`."""
    return [optimiser(OPTIMISER, "released code, UCLA_BUTD_CON.yaml")] if recipe.uses("learning_rate") else []


def restored(described: dict, store: Store, device: torch.device) -> Pretrainer:
    """The learner of a finished cell, as `Store.finished` describes it, with its last weights, to evaluate anywhere.

    Raises:
        ValueError: if it cannot be evaluated as it was trained, saying why.
        OSError: if its data or its checkpoint are not here.
    """
    if described["version"] != VERSION:
        raise ValueError(f"it was trained by version {described['version']} of the pretrainer, this one is {VERSION}")
    recipe = SkeletonRecipe.from_dict(described["recipe"])
    data = data_of(recipe)
    if data.digest != described["digest"]:
        raise ValueError(f"its data had the digest {described['digest']}, those here have {data.digest}")
    learner = Pretrainer(recipe, data, described["seed"], device)
    learner.load_weights(checkpoint(described["key"], store))
    return learner


def measure(learner: Pretrainer) -> dict[str, float | str]:
    """`evaluate` at the checkpoint that the recipe selects.

    Where that is chosen on the test split, "linear_last" is the accuracy of the same training without any choice: the
    linear probe's last epoch at the last checkpoint. So what the choice is worth is measured in pairs.
    """
    data, seed, recipe = learner.data, learner.seed, learner.recipe
    if recipe.select != "best_on_test":
        return evaluate(learner, data, seed)
    readouts, _ = learner.features(data)
    last = _reported(_probed(recipe, data, readouts, seed, recipe.probe_learning_rate), "last")
    learner.restore()
    return evaluate(learner, data, seed) | {"linear_last": last}


def evaluate(pretrainer: Pretrainer, data: SkeletonSet, seed: int) -> dict[str, float | str]:
    """Accuracies of the frozen readouts, how far readouts and embeddings spread, and what the decoder makes of them.

    All of it over the whole test split.

    Returns:
        linear: linear probe, percent; at the last epoch unless the recipe selects on the test split.
        linear_best: at the best of the probe's epochs on the test split, as the released code reports it.
        linear_standardised: the same on readouts whose every coordinate has mean 0 and deviation 1 on the training
            split, at a learning rate of its own. The other rate, 2, suits readouts of unit scale: where their spread
            is a tenth of their norm, SGD is ill-conditioned, and a low `linear` need not mean lost information.
        knn1: nearest neighbour by cosine, percent.
        linear_unseen, linear_standardised_unseen, knn1_unseen: the same without the test sequences that repeat a
            training sequence; absent if all of them do.
        embedding_spread: standard deviation over the test split of the unit-length embedding, root mean square over
            coordinates, times the square root of its size: 1 for a mean of zero, 0 when all embeddings are equal. It
            is read through the head, which AD, CD and AD+CD never train.
        readout_spread: the same of the readouts, without a head, over the root mean square of their norm.
        decoded_scale: root mean square of the coordinates decoded from the readouts, over that of the sequences; absent
            where no term trains the decoder.
        select: how epoch and checkpoint were chosen.
    """
    readouts, embeddings = pretrainer.features(data)
    recipe, test = pretrainer.recipe, data.test.to(readouts.device)
    result = _accuracies(recipe, data, readouts, seed)
    result |= {"embedding_spread": spread(embeddings[test]), "readout_spread": _relative_spread(readouts[test])}
    if recipe.trains_decoder:
        result["decoded_scale"] = pretrainer.decoded_scale(data, readouts)
    return result | {"select": recipe.select}


def _accuracies(recipe: SkeletonRecipe, data: SkeletonSet, readouts: Tensor, seed: int) -> dict[str, float]:
    """Linear probes and nearest neighbour on the test split, with and without the sequences that are repeated there."""
    scaled = standardised(readouts, readouts[data.train.to(readouts.device)])
    *known, test_labels = split(data, readouts)
    right = {
        "linear": _probed(recipe, data, readouts, seed, recipe.probe_learning_rate),
        "linear_standardised": _probed(recipe, data, scaled, seed, recipe.probe_standardised_rate),
        "knn1": (nearest_labels(*known) == test_labels)[None],
    }
    result = {name: _reported(each, recipe.select) for name, each in right.items()}
    result["linear_best"] = _reported(right["linear"], "best_on_test")
    unseen = ~data.repeated[data.test].to(readouts.device)
    if unseen.any():
        result |= {f"{name}_unseen": _reported(each[:, unseen], recipe.select) for name, each in right.items()}
    return result


def _probed(recipe: SkeletonRecipe, data: SkeletonSet, features: Tensor, seed: int, learning_rate: float) -> Tensor:
    """Whether a linear probe is right, after every epoch and for every test sequence, (epochs, m) bool."""
    *known, test_labels = split(data, features)
    predictions = linear_predictions(
        *known,
        classes=len(data.actions),
        batch=recipe.probe_batch,
        rates=cosine_rates(recipe.probe_epochs, learning_rate, recipe.probe_final_rate),
        momentum=recipe.probe_momentum,
        seed=seed,
    )
    return predictions == test_labels


def _reported(right: Tensor, select: str) -> float:
    """Accuracy in percent, of (epochs, m) bool, at the epoch that is selected."""
    accuracies = [percent(epoch) for epoch in right]
    return max(accuracies) if select == "best_on_test" else accuracies[-1]


def _relative_spread(points: Tensor) -> float:
    """`spread` over the root mean square of the norm; 0 when all are zero."""
    norm = points.square().sum(1).mean().sqrt().item()
    return spread(points) / norm if norm else 0.0


@manifest.read_once(maxsize=2)
def _load(name: str, root: Path, protocol: str, pipeline: str, subset: bool) -> SkeletonSet:
    return load(name, root, protocol=protocol, pipeline=pipeline, **({"subset": True} if subset else {}))


SKELETONS = Study(
    name="skeletons",
    recipe=SkeletonRecipe,
    presets=PRESETS,
    variants=VARIANTS,
    load=data_of,
    learners=learners,
    measure=measure,
    probe=along,
    version=VERSION,
    evaluation=EVALUATION,
    check=check,
    constants=constants,
)
