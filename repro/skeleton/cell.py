"""One cell of the taxonomy's tables: train, evaluate, and say what it cost."""

import functools
from pathlib import Path

import torch
from torch import Tensor
from tqdm.auto import tqdm

from repro import manifest
from repro.run import device as devices
from repro.run.cost import commit, cost
from repro.run.evaluate import cosine_rates, linear_probe, nearest_neighbour
from repro.run.fit import fit
from repro.run.store import Run
from repro.skeleton.data import SkeletonSet, load
from repro.skeleton.pretrain import Pretrainer, SkeletonRecipe
from repro.skeleton.selection import BestOnTest


def data_of(recipe: SkeletonRecipe) -> SkeletonSet:
    """The data set of a recipe; read once per process."""
    return _load(recipe.dataset, manifest.data_root(), recipe.protocol, recipe.pipeline, recipe.subset)


def train(run: Run, progress: tqdm, *, device: torch.device) -> dict:
    """Train the run's cell to its end, from its checkpoint if there is one, and evaluate it.

    Returns:
        The content of `result.json`: that of `evaluate`, and "cost".
    """
    commit()  # remembered now: the checkout may move on while this code trains
    recipe, seed = run.cell.recipe, run.cell.seed
    data = data_of(recipe)
    with devices.threads(recipe.threads):
        pretrainer = Pretrainer(recipe, data, seed, device)
        learner = BestOnTest(pretrainer, data) if recipe.select == "best_on_test" else pretrainer
        spent = fit(learner, run.folder, progress)
        if isinstance(learner, BestOnTest):
            learner.restore()
        result = evaluate(pretrainer, data, seed)
    return result | {"cost": spent | cost(device)}


def evaluate(pretrainer: Pretrainer, data: SkeletonSet, seed: int) -> dict[str, float | str]:
    """Accuracies of the frozen readouts and the spread of the embedding, over the whole test split.

    Returns:
        linear: linear probe, percent; at the last epoch unless the recipe selects on the test split.
        knn1: nearest neighbour by cosine, percent.
        linear_unseen, knn1_unseen: the same without the test sequences that repeat a training sequence.
        embedding_spread: standard deviation over the test split of the unit-length embedding, root mean square over
            coordinates, times the square root of its size: 1 for a mean of zero, 0 when all embeddings are equal.
        select: how epoch and checkpoint were chosen.
    """
    readouts, embeddings = pretrainer.features(data)
    result = _accuracies(pretrainer.recipe, data, readouts, data.test, seed)
    unseen = _accuracies(pretrainer.recipe, data, readouts, data.test & ~data.repeated, seed)
    spread = embeddings[data.test.to(embeddings.device)].var(0, correction=0).sum().sqrt()
    result |= {f"{name}_unseen": accuracy for name, accuracy in unseen.items()}
    return result | {"embedding_spread": spread.item(), "select": pretrainer.recipe.select}


def _accuracies(
    recipe: SkeletonRecipe, data: SkeletonSet, readouts: Tensor, tested: Tensor, seed: int
) -> dict[str, float]:
    """Linear probe and nearest neighbour, trained on the training split, on the sequences `tested` (n,)."""
    labels, train, test = (each.to(readouts.device) for each in (data.labels, data.train, tested))
    split = (readouts[train], labels[train], readouts[test], labels[test])
    accuracies = linear_probe(
        *split,
        classes=len(data.actions),
        batch=recipe.probe_batch,
        rates=cosine_rates(recipe.probe_epochs, recipe.probe_learning_rate, recipe.probe_final_rate),
        momentum=recipe.probe_momentum,
        seed=seed,
    )
    linear = max(accuracies) if recipe.select == "best_on_test" else accuracies[-1]
    return {"linear": linear, "knn1": nearest_neighbour(*split)}


@functools.lru_cache(maxsize=2)
def _load(name: str, root: Path, protocol: str, pipeline: str, subset: bool) -> SkeletonSet:
    return load(name, root, protocol=protocol, pipeline=pipeline, **({"subset": True} if subset else {}))
