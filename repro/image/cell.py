"""One cell of the image tables: train, evaluate, and say what it cost."""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor
from tqdm.auto import tqdm

from repro import manifest
from repro.image import augment
from repro.image.augment import CentredView
from repro.image.batches import batches_of
from repro.image.data import ImageSet, load
from repro.image.model import ImageModel
from repro.image.operations import Normalisation
from repro.image.pretrain import Pretrainer
from repro.image.recipe import ImageRecipe, paper
from repro.image.views import probe_view
from repro.run import device as devices
from repro.run.cost import begin, cost
from repro.run.evaluate import dropping_rates, linear_probe, nearest_neighbour, spread
from repro.run.finished import checkpoint, folders
from repro.run.fit import fit
from repro.run.store import Cell, Run, Store, read_description

EVALUATION = 1  # raise when `evaluate` measures more, or otherwise


def data_of(recipe: ImageRecipe) -> ImageSet:
    """The data set of a recipe; read once per process while its files stay the same."""
    return _load(recipe.dataset, manifest.data_root(), recipe.subset)


def train(run: Run, progress: tqdm, *, device: torch.device) -> dict:
    """Train the run's cell to its end, from its checkpoint if there is one, and evaluate it.

    Returns:
        The content of `result.json`: that of `evaluate`, and "cost".

    Raises:
        ValueError: as `Cell.require`, and as the `Pretrainer`.
    """
    begin(device)
    recipe, seed, data = run.cell.recipe, run.cell.seed, data_of(run.cell.recipe)
    run.cell.require(data.digest)
    with devices.threads(recipe.threads), devices.full_precision():
        pretrainer = Pretrainer(recipe, data, seed, device)
        spent = fit(pretrainer, run.folder, progress)
        result = evaluate(pretrainer, seed)
    return result | {"cost": spent | cost(device) | {"precision": pretrainer.precision}}


def learners(cell: Cell, device: torch.device) -> Iterator[Pretrainer]:
    """What `fit` trains for a cell, untrained, one after the other."""
    yield Pretrainer(cell.recipe, data_of(cell.recipe), cell.seed, device)


def evaluate(pretrainer: Pretrainer, seed: int) -> dict[str, float | str]:
    """Accuracies of the frozen features and the spread of the embedding, over the whole test split.

    Returns:
        linear: linear probe, percent; at its last epoch unless the recipe selects on the test split.
        knn1: nearest neighbour by cosine, percent.
        embedding_spread: standard deviation over the test split of the unit-length embedding, root mean square over
            coordinates, times the square root of its size: 1 for a mean of zero, 0 when all embeddings are equal.
        select: how the epoch of the probe was chosen.
    """
    recipe, data = pretrainer.recipe, pretrainer.data
    train_index, test_index = (split.nonzero().flatten() for split in (data.train, data.test))
    train_labels, test_labels = (data.labels[index].to(pretrainer.device) for index in (train_index, test_index))
    train, test = (pretrainer.features(index) for index in (train_index, test_index))
    accuracies = linear_probe(
        train if recipe.probe_view == "centred" else _augmented(pretrainer, train_index, seed),
        train_labels,
        test,
        test_labels,
        classes=len(data.classes),
        batch=recipe.probe_batch,
        rates=dropping_rates(recipe.probe_epochs, recipe.probe_learning_rate),
        momentum=recipe.probe_momentum,
        seed=seed,
    )
    return {
        "linear": max(accuracies) if recipe.select == "best_on_test" else accuracies[-1],
        "knn1": nearest_neighbour(train, train_labels, test, test_labels),
        "embedding_spread": spread(pretrainer.embed(test)),
        "select": recipe.select,
    }


def resumed(cell: Cell, device: torch.device) -> Pretrainer:
    """The learner of a finished cell as training left it, on any device; its next views are those of a new one.

    Raises:
        ValueError, FileNotFoundError: as `Cell.require` and `run.finished.checkpoint`.
    """
    data = data_of(cell.recipe)
    cell.require(data.digest)
    pretrainer = Pretrainer(cell.recipe, data, cell.seed, device)
    state = checkpoint(cell.key, Store(manifest.runs_root()))
    pretrainer.load_state_dict(state | {"generator": pretrainer.generator.get_state()})
    return pretrainer


def trained_model(key: str, store: Store) -> tuple[ImageModel, ImageRecipe]:
    """The model of a finished cell, on the CPU in evaluation mode, and its recipe.

    Raises:
        ValueError: if the key is that of no finished cell, or of a cell of another paper.
        FileNotFoundError: if the cell's checkpoint is not there.
    """
    state = checkpoint(key, store)
    folder = folders(key, store)[0]
    stored = read_description(folder / "recipe.json")
    if "trunk" not in stored["recipe"]:
        raise ValueError(f"key={key!r} is a cell of {stored['table']}; weights are those of image tables")
    recipe = ImageRecipe.from_dict(stored["recipe"])
    model = ImageModel(recipe.trunk, recipe.small, recipe.head, recipe.projection)
    model.load_state_dict(state["model"])
    return model.eval(), recipe


def examples(dataset: str, *, subset: bool = False) -> dict[str, Tensor]:
    """A training image of every class, at most eight, and a weak and a strong view of each.

    Returns:
        By what they are ("image", "weak view", "strong view"): (n, 3, H, W) in [0, 1].
    """
    data = _load(dataset, manifest.data_root(), subset)
    labels = data.labels[data.train].unique()[:8]  # of a part, some classes may have no image
    places = [int((data.train & (data.labels == label)).nonzero()[0]) for label in labels]
    recipe, plain = paper(dataset, "sce"), Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    views = {"weak view": augment.weak(recipe.size, plain), "strong view": augment.strong(recipe.size, plain)}
    source = batches_of(data, [CentredView(recipe.size, plain, recipe.resize), *views.values()], torch.device("cpu"))
    (pictures, *others), = source.batches(torch.tensor(places), batch=len(places), seed=(0,))
    generator = torch.Generator().manual_seed(0)
    shown = zip(views, source.views[1:], others, strict=True)
    return {"image": source.views[0](pictures)} | {name: view(each, generator) for name, view, each in shown}


def _augmented(pretrainer: Pretrainer, index: Tensor, seed: int) -> Callable[[], Tensor]:
    """What makes features of images augmented anew each time it is called."""
    recipe, view = pretrainer.recipe, probe_view(pretrainer.recipe)
    generator = torch.Generator(pretrainer.device).manual_seed(seed)
    epoch = iter(range(recipe.probe_epochs))
    return lambda: pretrainer.features(index, view, generator=generator, seed=(seed, next(epoch)))


@manifest.read_once(maxsize=2)
def _load(name: str, root: Path, subset: bool) -> ImageSet:
    return load(name, root, subset=subset)
