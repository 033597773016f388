"""What JCL's figures need of finished cells beside their results, computed once and kept in their folders."""

import functools
from collections.abc import Iterator

import pandas as pd
import torch
from pandas import DataFrame
from torch import Tensor
from tqdm.auto import tqdm

from repro.data import manifest
from repro.image import augment
from repro.image.augment import normalisation
from repro.image.batches import batches_of
from repro.image.data import ImageSet
from repro.image.model import TRUNKS, ImageModel
from repro.image.recipe import ImageRecipe
from repro.image.study import data_of, resumed, trained_model
from repro.papers.jcl import sampled_keys as bound
from repro.report import histograms
from repro.run import device as devices
from repro.run.device import autocast
from repro.run.finished import kept
from repro.run.store import Cell, Store

QUERIES = 32  # of `sampled_keys`
BATCH = 256  # views encoded at a time


def similarities(cells: list[Cell], device: str = "auto") -> DataFrame:
    """How alike the features of an image's augmentations are (Fig. M.3).

    Of 32,768 training images, or all if there are fewer, 32 strong views each; 64 and 4 of smoke runs.

    Args:
        cells: finished ones of `similarity_variance`.
        device: "auto", "cpu" or "cuda".

    Returns:
        One row per cell and image: model ("JCL" or "MoCo v2"), seed, d (number of features), similarity and variance,
        see `similarity_and_variance`.
    """
    where = devices.resolve(device)
    parts = [kept(cell, "similarity.csv", functools.partial(_similarity, cell, where)) for cell in cells]
    return pd.concat(parts, ignore_index=True)


def sampled_keys(cells: list[Cell], device: str = "auto") -> DataFrame:
    """JCL's bound beside losses with sampled keys, for queries, keys and dictionary of the cell with most keys.

    Args:
        cells: finished ones of `positive_keys`.
        device: "auto", "cpu" or "cuda".

    Returns:
        The table of `repro.papers.jcl.sampled_keys`, at the temperature and the strength of the cell's recipe, with
        these and its number of keys as positives.
    """
    most, where = max(cells, key=lambda cell: cell.recipe.keys), devices.resolve(device)
    return kept(most, "sampled_keys.csv", functools.partial(_sampled, most, where))


def _similarity(cell: Cell, device: torch.device) -> DataFrame:
    model, recipe = trained_model(cell.key, Store(manifest.runs_root()))
    images, augmentations = (64, 4) if cell.preset == "smoke" else (32768, 32)
    rows = similarity_and_variance(
        model, recipe, data_of(recipe), images=images, augmentations=augmentations, seed=cell.seed, device=device
    )
    name = "MoCo v2" if recipe.method == "moco" else "JCL"
    return DataFrame({"model": name, "seed": cell.seed, "d": TRUNKS[recipe.trunk]}, index=rows.index).join(rows)


def _sampled(cell: Cell, device: torch.device) -> DataFrame:
    query, keys, negatives = (features.cpu() for features in resumed(cell, device).positives())
    setting = {"temperature": cell.recipe.temperature, "strength": cell.recipe.strength}
    generator = torch.Generator().manual_seed(cell.seed)
    table = bound.sampled_keys(query[:QUERIES], keys[:QUERIES], negatives, **setting, generator=generator)
    return table.assign(positives=cell.recipe.keys, **setting)


def similarity_and_variance(
    model: ImageModel,
    recipe: ImageRecipe,
    data: ImageSet,
    *,
    images: int,
    augmentations: int,
    seed: int,
    device: torch.device,
) -> DataFrame:
    """Mean similarity and mean variance of pooled features over strong views of every image.

    A few images are encoded at a time, and of each two numbers are kept.

    Args:
        model: as `image.study.trained_model` returns it.
        recipe: of its training: the size of views, precision, memory format.
        data: the data set; of its images for pre-training some are drawn.
        images: how many, or fewer if there are no more.
        augmentations: views of each image, at least 1.
        seed: of the choice of images and their views.
        device: where to compute.

    Returns:
        One row per image: similarity, the mean cosine over all pairs of views, a view with itself included; variance,
        the mean over the d coordinates of the biased variance, which is (1 - similarity) / d.
    """
    count = min(images, int(data.pretrain.sum()))
    found = torch.empty(count, 2, dtype=torch.float64)  # at once, as thousands of small tensors would scatter the heap
    with tqdm(total=count, desc="images", unit="image", leave=False) as progress:
        for z in _features(model, recipe, data, images, augmentations, seed, device):
            rows = slice(progress.n, progress.n + len(z))
            found[rows] = torch.stack(histograms.similarity_and_variance(z), dim=1).cpu()
            progress.update(len(z))
    return DataFrame(found.numpy(), columns=["similarity", "variance"])


def sample(model: ImageModel, recipe: ImageRecipe, data: ImageSet, *, images: int = 8, seed: int = 0) -> Tensor:
    """Pooled features of 32 views of a few images, to check closed forms on: (images, 32, d), on the CPU.

    Args:
        model, recipe, data, seed: as for `similarity_and_variance`.
        images: how many.
    """
    return torch.cat(list(_features(model, recipe, data, images, 32, seed, torch.device("cpu"))))


@torch.no_grad()
def _features(
    model: ImageModel,
    recipe: ImageRecipe,
    data: ImageSet,
    images: int,
    augmentations: int,
    seed: int,
    device: torch.device,
) -> Iterator[Tensor]:
    """Pooled features (n, augmentations, d) of a few images at a time."""
    members = data.pretrain.nonzero().flatten()
    chosen = members[torch.randperm(len(members), generator=torch.Generator().manual_seed(seed))[:images]]
    view = augment.strong(recipe.size, normalisation(recipe.dataset))
    source = batches_of(data, [view] * augmentations, device)
    generator = torch.Generator(device).manual_seed(seed)
    memory_format = torch.channels_last if recipe.channels_last else torch.contiguous_format
    model = model.to(device, memory_format=memory_format).eval()
    for pictures in source.batches(chosen, batch=max(1, BATCH // augmentations), seed=(seed,)):
        views = torch.cat([left(each, generator) for left, each in zip(source.views, pictures, strict=True)])
        with autocast(device, recipe.precision):
            features = model.features(views.contiguous(memory_format=memory_format))
        yield features.float().unflatten(0, (augmentations, -1)).transpose(0, 1)
