"""What is measured of JCL's finished runs beside their results, computed once and kept in their folders."""

import functools
from collections.abc import Iterator

import pandas as pd
import torch
from pandas import DataFrame
from torch import Tensor
from tqdm import tqdm

from repro.image import augment
from repro.image.augment import normalisation
from repro.image.batches import batches_of
from repro.image.data import ImageSet, data_of
from repro.image.model import ImageModel
from repro.image.recipe import IMAGES, ImageRecipe
from repro.image.study import trained_model
from repro.papers.jcl import sampled_keys as bound
from repro.report.histograms import similarity_and_variance
from repro.run import device as devices
from repro.run.fit import taking_over
from repro.run.store import Run, Store
from repro.run.training import checkpoint, kept, restored

CPU = torch.device("cpu")
QUERIES = 32  # of `sampled_keys`
BATCH = 256  # views encoded at a time


def similarities(runs: list[Run], device: str = "auto") -> DataFrame:
    """How alike the features of an image's augmentations are (Fig. M.3).

    Of 32,768 training images, or all if there are fewer, 32 strong views each; 64 and 4 of smoke runs.

    Args:
        runs: finished ones of `similarity_variance`.
        device: "auto", "cpu" or "cuda".

    Returns:
        One row per run and image: model ("JCL" or "MoCo v2"), seed, d (number of features), similarity and variance,
        see `repro.report.histograms.similarity_and_variance`.
    """
    where = devices.resolve(device)
    parts = [kept(run, "similarity.csv", functools.partial(_similarity, run, where)) for run in runs]
    return pd.concat(parts, ignore_index=True)


def _similarity(run: Run, device: torch.device) -> DataFrame:
    recipe = run.recipe
    state = checkpoint(run.id)
    with taking_over(Store().trained_in(run.id)):
        model = trained_model(state, recipe)
    images, augmentations = (64, 4) if run.preset == "smoke" else (32768, 32)
    rows: list[list[float]] = []  # numbers of Python: thousands of small tensors would scatter the heap
    parts = features(model, recipe, data_of(recipe), images, augmentations, seed=run.seed, device=device)
    for z in tqdm(parts, desc="views", unit="batch", leave=False, disable=None):
        rows += torch.stack(similarity_and_variance(z), dim=1).tolist()
    name = "MoCo v2" if recipe.method == "moco" else "JCL"
    known = {"model": name, "seed": run.seed, "d": z.shape[2]}
    table = DataFrame(rows, columns=["similarity", "variance"])
    return table.assign(**known)[[*known, *table]]


@torch.no_grad()
def features(
    model: ImageModel, recipe: ImageRecipe, data: ImageSet, images: int, augmentations: int = 32, *, seed: int = 0,
    device: torch.device = CPU,
) -> Iterator[Tensor]:
    """Pooled features of strong views, of a few images at a time: (n, augmentations, d) float32.

    Args:
        model: as `image.study.trained_model` returns it.
        recipe: of its training: the size of views, precision, memory format.
        data: the data set; of its images for pre-training some are drawn.
        images: how many, or fewer if there are no more.
        augmentations: views of each image, at least 1.
        seed: of the choice of images and their views.
        device: where to compute.
    """
    members = data.pretrain.nonzero().flatten()
    drawn = members[torch.randperm(len(members), generator=torch.Generator().manual_seed(seed))[:images]]
    view = augment.strong(recipe.size, normalisation(recipe.dataset))
    source = batches_of(data, [view] * augmentations, device)
    generator = torch.Generator(device).manual_seed(seed)
    memory_format = torch.channels_last if recipe.channels_last else torch.contiguous_format
    model = model.to(device, memory_format=memory_format).eval()
    for pictures in source.batches(drawn, batch=max(1, BATCH // augmentations), seed=(seed,)):
        views = torch.cat([draw(part, generator) for draw, part in zip(source.views, pictures, strict=True)])
        with devices.autocast(device, devices.precision_of(recipe, device)):
            encoded = model.features(views.contiguous(memory_format=memory_format))
        yield encoded.float().unflatten(0, (augmentations, -1)).transpose(0, 1)


def sampled_keys(runs: list[Run], device: str = "auto") -> DataFrame:
    """JCL's bound beside losses with sampled keys, for queries, keys and dictionary of the run with most keys.

    Args:
        runs: finished ones of `positive_keys`.
        device: "auto", "cpu" or "cuda".

    Returns:
        The table of `repro.papers.jcl.sampled_keys`, at the temperature and the strength of the run's recipe, with
        these and its number of keys as positives.
    """
    most, where = max(runs, key=lambda run: run.recipe.keys), devices.resolve(device)
    return kept(most, "sampled_keys.csv", functools.partial(_sampled, most, where))


def _sampled(run: Run, device: torch.device) -> DataFrame:
    batch = restored(run, IMAGES, device).positives()
    query, keys, negatives = (tensor.cpu() for tensor in (batch.query, batch.keys, batch.negatives))
    setting = {"temperature": run.recipe.temperature, "strength": run.recipe.strength}
    generator = torch.Generator().manual_seed(run.seed)
    table = bound.sampled_keys(query[:QUERIES], keys[:QUERIES], negatives, **setting, generator=generator)
    return table.assign(positives=run.recipe.keys, **setting)
