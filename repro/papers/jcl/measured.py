"""What is measured of JCL's finished runs beside their results, computed once and kept in their folders."""

import functools
import math
from collections.abc import Iterator, Sequence

import pandas as pd
import torch
from pandas import DataFrame
from torch import Tensor
from torch.nn.functional import softplus
from tqdm import tqdm

from repro.contrast.objectives import jcl
from repro.image import augment
from repro.image.augment import normalisation
from repro.image.batches import batches_of
from repro.image.data import ImageSet, data_of
from repro.image.model import ImageModel
from repro.image.recipe import IMAGES, ImageRecipe
from repro.image.study import trained_model
from repro.report.histograms import similarity_and_variance
from repro.run import device as devices
from repro.run.fit import taking_over
from repro.run.store import Run, Store
from repro.run.training import checkpoint, kept, restored

QUERIES = 32  # of `sampled_keys`
COUNTS, REPEATS = tuple(2**power for power in range(13)), 100  # of keys, and independent draws
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
    known = {"model": "MoCo v2" if recipe.method == "moco" else "JCL", "seed": run.seed, "d": z.shape[2]}
    return DataFrame([[*known.values(), *row] for row in rows], columns=[*known, "similarity", "variance"])


@torch.no_grad()
def features(
    model: ImageModel, recipe: ImageRecipe, data: ImageSet, images: int, augmentations: int, *, seed: int,
    device: torch.device,
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
        `sampled_losses`, at the temperature and the strength of the run's recipe, with these and its number of keys as
        positives.
    """
    most, where = max(runs, key=lambda run: run.recipe.keys), devices.resolve(device)
    return kept(most, "sampled_keys.csv", functools.partial(_sampled, most, where))


def _sampled(run: Run, device: torch.device) -> DataFrame:
    batch = restored(run, IMAGES, device).positives()
    query, keys, negatives = (tensor.cpu() for tensor in (batch.query, batch.keys, batch.negatives))
    setting = {"temperature": run.recipe.temperature, "strength": run.recipe.strength}
    generator = torch.Generator().manual_seed(run.seed)
    table = sampled_losses(query[:QUERIES], keys[:QUERIES], negatives, **setting, generator=generator)
    return table.assign(positives=run.recipe.keys, **setting)


def sampled_losses(
    query: Tensor, keys: Tensor, negatives: Tensor, temperature: float, strength: float, *,
    generator: torch.Generator, counts: Sequence[int] = COUNTS, repeats: int = REPEATS,
) -> DataFrame:
    """Two losses with M positive keys k_m drawn from N(mu, lambda Sigma), and the closed form of `objectives.jcl`.

        inside  = log[ (1/M) sum_m exp(q.k_m/t) + sum_j exp(q.n_j/t) ] - q.mu/t
        outside = (1/M) sum_m { log[ exp(q.k_m/t) + sum_j exp(q.n_j/t) ] - q.k_m/t }

    mu and Sigma are the mean and the biased covariance of the keys given; lambda, the strength, scales the covariance.
    As in Eq. M.8 `inside` subtracts the expected positive logit, not the mean of those drawn: by Jensen's inequality
    its expectation lies below the closed form, rises with M and tends to it. That of `outside`, a mean of InfoNCE
    losses, is the same for every M, namely that of `inside` with M = 1.

    A key is drawn as mu + sqrt(lambda/M') sum_l e_l (key_l - mu) with M' standard normal e_l. The losses see only its
    product with the query, so that neither a covariance matrix nor a drawn key is stored.

    Args:
        query: (N, d) projections.
        keys: (N, M', d) positive keys that fix mu and Sigma.
        negatives: (K, d) dictionary.
        temperature: t > 0, in units of the dot product.
        strength: lambda >= 0.
        generator: of the Gaussian draws, on the CPU, as all tensors.
        counts: numbers of keys M, each at least 1. Within a repeat the first M of the same keys are used.
        repeats: independent draws, at least 2.

    Returns:
        One row per count: keys (M), then in nats, averaged over the queries: inside, inside_std, outside, outside_std
        (mean and standard deviation over the repeats) and closed_form, the same in every row, as is the number of
        repeats. Computed in float64.

    Raises:
        ValueError: as `objectives.jcl`.

    Source: JCL supplement, Eq. M.8 and its derivation.
    """
    query, keys, negatives = (features.detach().double() for features in (query, keys, negatives))
    closed_form = jcl(query, keys, negatives, temperature, strength).item()

    products = (query.unsqueeze(1) * keys).sum(2) / temperature                          # (N, M')
    expected = products.mean(1)                                                          # (N,)
    deviations = math.sqrt(strength / keys.shape[1]) * (products - expected.unsqueeze(1))  # (N, M')
    repulsion = torch.logsumexp(query @ negatives.T / temperature, dim=1)                # (N,)

    inside, outside = [], []
    for _ in range(repeats):
        noise = torch.randn((max(counts), *deviations.shape), generator=generator, dtype=query.dtype)
        positive = expected.unsqueeze(1) + torch.einsum("nl,mnl->nm", deviations, noise)  # (N, M), rows in one piece
        means = torch.stack([positive[:, :count].logsumexp(1) - math.log(count) for count in counts])
        inside.append((torch.logaddexp(means, repulsion) - expected).mean(1))            # (counts,)
        losses = softplus(repulsion.unsqueeze(1) - positive).mean(0)                     # (M,)
        outside.append(torch.stack([losses[:count].mean() for count in counts]))

    table = DataFrame({"keys": counts})
    for name, values in (("inside", torch.stack(inside)), ("outside", torch.stack(outside))):
        draws = values.numpy()                                                          # (repeats, counts)
        table[name], table[f"{name}_std"] = draws.mean(0), draws.std(0, ddof=1)
    return table.assign(closed_form=closed_form, repeats=repeats)
