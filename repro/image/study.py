"""How the image papers' recipes are trained and measured."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from repro.data import manifest
from repro.image import DATASETS, augment
from repro.image.batches import batches_of
from repro.image.data import ImageSet, load_once
from repro.image.model import ImageModel
from repro.image.operations import Normalisation
from repro.image.pretrain import OPTIMISER, Pretrainer
from repro.image.recipe import JCL, SCE, ImageRecipe, paper, trains
from repro.recipe import Rows
from repro.run import group
from repro.run.evaluate import dropping_rates, linear_probe, nearest_neighbour, spread
from repro.run.group import check_shared, shared
from repro.table import optimiser


def learners(recipe: ImageRecipe, data: ImageSet, seed: int, device: torch.device) -> Iterator[Pretrainer]:
    """What `fit` trains for a recipe: one pretrainer."""
    yield shared(Pretrainer(recipe, data, seed, device))


def check(recipe: ImageRecipe, device: torch.device) -> None:
    """Raise ValueError unless the processes of the group can share the batch, and the probe can be trained."""
    if trains(recipe):
        check_shared(recipe.batch, recipe.groups)
    if group.process()[1] > 1 and recipe.query_groups != recipe.groups:
        raise ValueError("whole_query=True normalises the queries of a batch together, which the processes that share "
                         "it do not: take one process, or --whole-query false")
    if recipe.probe_view == "shifted" and DATASETS[recipe.dataset].images.size is None:
        raise ValueError(f"probe_view='shifted' needs images of one size; for {recipe.dataset} take crop or centred")


def constants(recipe: ImageRecipe) -> Rows:
    """See `repro.table.Study`."""
    trained_by = [optimiser(OPTIMISER, JCL if DATASETS[recipe.dataset].images.size is None else SCE)]
    return (trained_by if recipe.uses("learning_rate") else []) + augment.described(recipe)


def measure(learner: Pretrainer) -> dict[str, float | str]:
    """Accuracies of the frozen features and the spread of the embedding, over the whole test split.

    Returns:
        linear: linear probe, percent; at its last epoch unless the recipe selects on the test split.
        knn1: nearest neighbour by cosine, percent.
        embedding_spread: standard deviation over the test split of the unit-length embedding, root mean square over
            coordinates, times the square root of its size: 1 for a mean of zero, 0 when all embeddings are equal.
        select: how the epoch of the probe was chosen.
    """
    (accuracies, test), select = _accuracies(learner), learner.recipe.select
    with torch.no_grad():
        embeddings = learner.model.embed(test)
    return {
        "linear": accuracies["linear_best" if select == "best_on_test" else "linear"],
        "knn1": accuracies["knn1"],
        "embedding_spread": spread(embeddings),
        "select": select,
    }


def along(learner: Pretrainer) -> dict[str, float]:
    """Accuracies of `measure` along training; `linear_best` is that of the probe's best epoch on the test split.

    What is random has streams of its own, begun anew from the learner's seed each time: training goes on as if nothing
    had been measured, and what the last probe gives is what `measure` does.
    """
    return _accuracies(learner)[0]


def trained_model(state: Mapping[str, Any], recipe: ImageRecipe) -> ImageModel:
    """The model in a state of a pretrainer of the recipe (`run.training.checkpoint`), on the CPU, evaluating."""
    model = ImageModel(recipe.trunk, recipe.small, recipe.head, recipe.projection)
    model.load_state_dict(state["model"])
    return model.eval()


def examples(dataset: str, *, subset: bool = False) -> dict[str, Tensor]:
    """A training image of every class, at most eight, and a weak and a strong view of each.

    Returns:
        By what they are ("image", "weak view", "strong view"): (n, 3, H, W) in [0, 1].
    """
    data = load_once(dataset, manifest.data_root(), subset=subset)
    labels = data.labels[data.train].unique()[:8]  # of a part, some classes may have no image
    places = [int((data.train & (data.labels == label)).nonzero()[0]) for label in labels]
    recipe, plain = paper(dataset, "sce"), Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    views = {
        "image": augment.CentredView(recipe.size, plain, recipe.resize),
        "weak view": augment.weak(recipe.size, plain),
        "strong view": augment.strong(recipe.size, plain),
    }
    source, generator = batches_of(data, list(views.values()), torch.device("cpu")), torch.Generator().manual_seed(0)
    batch, = source.batches(torch.tensor(places), batch=len(places), seed=(0,))
    shown = zip(views, source.views, batch, strict=True)
    return {name: view(images, *[generator] * (name != "image")) for name, view, images in shown}


def _accuracies(learner: Pretrainer) -> tuple[dict[str, float], Tensor]:
    """What `along` gives, and the features of the test split."""
    recipe, (train, train_labels, test, test_labels) = learner.recipe, learner.labelled()
    linear = linear_probe(
        train if recipe.probe_view == "centred" else _augmented(learner),
        train_labels,
        test,
        test_labels,
        classes=len(learner.data.classes),
        batch=recipe.probe_batch,
        rates=dropping_rates(recipe.probe_epochs, recipe.probe_learning_rate),
        momentum=recipe.probe_momentum,
        seed=learner.seed,
    )
    neighbour = nearest_neighbour(train, train_labels, test, test_labels)
    return {"linear": linear[-1], "linear_best": max(linear), "knn1": neighbour}, test


def _augmented(learner: Pretrainer) -> Callable[[], Tensor]:
    """Makes features of the training split, its images augmented anew, each time it is called."""
    index, view = learner.data.train.nonzero().flatten(), augment.probe_view(learner.recipe)
    generator = torch.Generator(learner.device).manual_seed(learner.seed)
    epoch = iter(range(learner.recipe.probe_epochs))
    return lambda: learner.features(index, view, generator=generator, seed=(learner.seed, next(epoch)))
