"""How the taxonomy's recipes are trained and measured."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from repro.recipe import Rows
from repro.run.evaluate import cosine_rates, linear_predictions, nearest_labels, spread, standardised
from repro.skeleton.data import SkeletonSet, bones_of
from repro.skeleton.model import SkeletonModel
from repro.skeleton.pretrain import OPTIMISER, Pretrainer, split
from repro.skeleton.recipe import SkeletonRecipe
from repro.table import optimiser

ALONG = ("linear", "linear_best", "linear_standardised", "knn1")  # measured along training too


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


def trained_model(state: Mapping[str, Any], recipe: SkeletonRecipe) -> SkeletonModel:
    """The model in a state of a pretrainer of the recipe (`run.training.checkpoint`), on the CPU, evaluating.

    Its weights are the last, or those that the recipe has selected.
    """
    weights = state["weights"] if state.get("best", -1) >= 0 else state["model"]
    features = len(weights["decoder.output.bias"])
    model = SkeletonModel(recipe, features, bones_of(recipe.dataset, features))
    model.load_state_dict(weights)
    return model.eval()


def measure(learner: Pretrainer) -> dict[str, float | str]:
    """Accuracies of the frozen readouts, how far readouts and embeddings spread, and what the decoder makes of them.

    Returns, over the whole test split, at the checkpoint that the recipe selects:
        linear: linear probe, percent; at the last epoch unless the recipe selects on the test split.
        linear_best: at the best of the probe's epochs on the test split, as the released code reports it.
        linear_last: where the recipe selects on the test split, the probe's last epoch at the last checkpoint.
        linear_standardised: the same on readouts whose every coordinate has mean 0 and deviation 1 on the training
            split, at a learning rate of its own: where readouts spread little, `linear` may be low for that alone.
        knn1: nearest neighbour by cosine, percent.
        linear_without_copies, linear_standardised_without_copies, knn1_without_copies: the same without the test
            sequences that repeat a training sequence; absent if all of them do.
        linear_without_originals: the linear probe trained without the training sequences that the test split repeats,
            what their copies are worth to the probe being `linear` minus this; of all test sequences too. Absent if
            there are none, or no others.
        linear_without_originals_without_copies: that probe without the test sequences that repeat a training sequence;
            absent if all of them do.
        embedding_spread: `spread` of the unit-length embeddings: 1 for a mean of zero, 0 when all are equal. They are
            read through the head, which AD, CD and AD+CD never train.
        readout_spread: the same of the readouts, without a head, over the root mean square of their norm.
        decoded_scale: root mean square of the coordinates decoded from the readouts, over that of the sequences; absent
            where no term trains the decoder.
        select: how epoch and checkpoint were chosen.
    """
    data, recipe, last = learner.data, learner.recipe, {}
    if recipe.select == "best_on_test":
        right = _probed(learner, data, learner.features(data)[0], recipe.probe_learning_rate)
        last = {"linear_last": _percent(right, "last")}
        learner.restore()
    readouts, embeddings = learner.features(data)
    test = data.test.to(readouts.device)
    norm = readouts[test].square().sum(1).mean().sqrt().item()
    result = _accuracies(learner, readouts, recipe.select) | _without_originals(learner, readouts)
    result["embedding_spread"] = spread(embeddings[test])
    result["readout_spread"] = spread(readouts[test]) / norm if norm else 0.0
    if recipe.trains_decoder:
        result["decoded_scale"] = learner.decoded_scale(readouts)
    return result | {"select": recipe.select} | last


def along(learner: Pretrainer) -> dict[str, float]:
    """The accuracies of `measure` that are measured along training, in percent; probes draw from streams of their own.

    All but `linear_best` are of the probe's last epoch, whatever the recipe selects.
    """
    readouts, _ = learner.features(learner.data)
    accuracies = _accuracies(learner, readouts, "last")
    return {name: accuracies[name] for name in ALONG}


def _accuracies(learner: Pretrainer, readouts: Tensor, select: str) -> dict[str, float]:
    """Linear probes and nearest neighbour on the test split, with and without the sequences that are repeated there."""
    data, recipe = learner.data, learner.recipe
    scaled = standardised(readouts, readouts[data.train.to(readouts.device)])
    *known, test_labels = split(data, readouts)
    right = {
        "linear": _probed(learner, data, readouts, recipe.probe_learning_rate),
        "linear_standardised": _probed(learner, data, scaled, recipe.probe_standardised_rate),
        "knn1": (nearest_labels(*known) == test_labels)[None],
    }
    result = {"linear_best": _percent(right["linear"], "best_on_test")}
    for name, epochs in right.items():
        result |= _reported(name, epochs, data, select)
    return result


def _without_originals(learner: Pretrainer, readouts: Tensor) -> dict[str, float]:
    """A linear probe trained without what the test split repeats; nothing where it repeats none or all of it."""
    data, recipe = learner.data, learner.recipe
    others = data.train & ~data.in_both
    if not data.in_both.any() or not others.any():
        return {}
    reduced = dataclasses.replace(data, train=others)
    right = _probed(learner, reduced, readouts, recipe.probe_learning_rate)
    return _reported("linear_without_originals", right, data, recipe.select)


def _probed(learner: Pretrainer, data: SkeletonSet, features: Tensor, learning_rate: float) -> Tensor:
    """Whether a linear probe is right, after every epoch and for every test sequence of the data, (epochs, m) bool."""
    recipe, (*known, test_labels) = learner.recipe, split(data, features)
    rates = cosine_rates(recipe.probe_epochs, learning_rate, recipe.probe_final_rate)
    settings = {"batch": recipe.probe_batch, "momentum": recipe.probe_momentum, "seed": learner.seed}
    return linear_predictions(*known, classes=len(data.actions), rates=rates, **settings) == test_labels


def _reported(name: str, right: Tensor, data: SkeletonSet, select: str) -> dict[str, float]:
    """An accuracy of (epochs, m) bool, and one without repeated test sequences, if there are others."""
    without_copies = ~data.in_both[data.test].to(right.device)
    without = {f"{name}_without_copies": _percent(right[:, without_copies], select)} if without_copies.any() else {}
    return {name: _percent(right, select)} | without


def _percent(right: Tensor, select: str) -> float:
    """Accuracy in percent, of (epochs, m) bool, at the epoch that is selected."""
    counts = right.sum(1).tolist()
    return 100 * (max(counts) if select == "best_on_test" else counts[-1]) / right.shape[1]
