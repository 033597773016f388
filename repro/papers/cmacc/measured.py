"""What is measured of CM-ACC's finished runs beside results: pretext accuracies, selected negatives, choices post hoc;
they are computed once, from checkpoints, and kept in the folders of the runs.

Where a run is not finished, ValueError is raised, and FileNotFoundError where what its training left is not there.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch
from pandas import DataFrame
from torch import Tensor

from repro.audiovisual import FREQUENCIES, MODALITIES, augment
from repro.audiovisual.coverage import expected_categories, seeded_categories
from repro.audiovisual.data import drawn
from repro.audiovisual.pretrain import OTHER, Pretrainer
from repro.audiovisual.recipe import CLIPS
from repro.audiovisual.study import data_of
from repro.contrast.active import Embeddings, gradients, select
from repro.data.parallel import ahead
from repro.run import device as devices
from repro.run.store import Run
from repro.run.training import kept, restored

PAIRS = 100  # of a category, whose queries are asked for their positive
AGAIN = 5  # times that a dictionary's items are encoded again, each in other views
POOLED, SELECTED, BATCHES = 4096, (32, 64, 128), 8  # candidates, M, and batches of M queries, of choices post hoc
CHOICES = (  # post hoc: samplers, with the temperature of their posterior
    ("random", 1.0), ("ohem", 1.0), ("feature", 1.0), ("gradient", 1.0), ("gradient", 0.3), ("gradient", 0.07))
REFERENCES = 256  # candidates from which distances to all are measured
COMPARED = ("random", "ohem", "feature", "gradient")  # samplers that pick from one pool


def asked(runs: Sequence[Run], *methods: str) -> list[Run]:
    """The runs of some methods; by default those whose queries have a positive in the other modality.

    Raises:
        ValueError: if no run is of these methods, or one is of a data set without categories.
    """
    methods = methods or ("xmoco", "cmacc")
    of_methods = [run for run in runs if run.recipe.method in methods]
    if not of_methods:
        others = ", ".join(sorted({run.recipe.method for run in runs}))
        raise ValueError(f"of the runs, which are of {others}, one should be of {' or '.join(methods)}; choose others")
    for data in (data_of(run.recipe) for run in of_methods):
        if not data.classes:
            raise ValueError(f"{data.name} has no categories to tell apart; choose another data set")
    return of_methods


def _of_each(
    runs: Sequence[Run], name: str, compute: Callable[[Run, torch.device], DataFrame], device: str
) -> DataFrame:
    """The frames of that name, which are computed of a run and a device, of all of these runs."""
    where = devices.resolve(device)
    frames = [kept(run, f"{name}.csv", functools.partial(compute, run, where)) for run in runs]
    return pd.concat(frames, ignore_index=True)


def pretext_accuracy(runs: Sequence[Run], device: str = "auto") -> DataFrame:
    """How often the positive of a query ranks first among 1 + K keys, by category, of finished runs.

    The positive is the key of the same moment of the pair in the other modality; the other K keys are the dictionary of
    that modality as training left it, without those of the pair itself where training leaves them out. Of every
    category at most 100 random training pairs are asked; 4 of smoke runs. Encoders are in evaluation mode and see the
    middle of every clip. A key as near as the positive counts against it.

    The keys of a dictionary are of different ages, the positive is new: a query may find it by that alone. So
    `accuracy_again` is the same with the dictionary's items encoded again by the weights of the end, and otherwise as
    training encoded them: batch by batch in training mode, in random views, over several draws of these. Nothing but
    their age changes; that stored keys were normalised over batches and seen in random views, and queries and positives
    were not, stays.

    Args:
        runs: of a table; those of `asked` count, which says what is refused.
        device: "auto", "cpu" or "cuda".

    Returns:
        One row per run, kind of queries and category: query ("video" or "audio"), category, pairs (asked), accuracy
        and accuracy_again (percent), method; and of the run seed, dataset and preset.

    Source: CM-ACC, Fig. 6, on Kinetics-700.
    """
    return _of_each(asked(runs), "pretext_accuracy", _pretext_accuracy, device)


def _pretext_accuracy(run: Run, device: torch.device) -> DataFrame:
    learner = restored(run, CLIPS, device)
    index = _sampled(learner, 4 if run.preset == "smoke" else PAIRS, run.seed)
    categories = np.array(learner.data.classes)[learner.data.categories[index]]
    for encoder in (learner.towers, learner.keys):
        encoder.eval()
    embeddings = {modality: embedded(learner, modality, index) for modality in MODALITIES}
    learner.keys.train()  # for the dictionary's items
    generator, parts = torch.Generator().manual_seed(run.seed), []
    for modality, other in OTHER.items():
        query, items = learner.finished(embeddings[modality][0]), learner.entries[other].entries.flatten()
        positive = (query * embeddings[other][2]).sum(1)
        excluded = (index.to(device).unsqueeze(1) == items) & learner.recipe.own_excluded              # (n, K)
        keys = [learner.dictionaries[other].entries.float()]
        keys += [embedded(learner, other, items.cpu(), generator)[2] for _ in range(AGAIN)]
        nearest = [(query @ part.T).masked_fill(excluded, -torch.inf).amax(1) for part in keys]        # (n,) each
        first, *again = [(positive > similarity).cpu().double() for similarity in nearest]
        parts.append(DataFrame({"query": modality, "category": categories, "accuracy": first,
                                "accuracy_again": torch.stack(again).mean(0)}))
    groups = pd.concat(parts).groupby(["query", "category"], sort=False)
    shares = 100.0 * groups[["accuracy", "accuracy_again"]].mean()
    shares.insert(0, "pairs", groups.size())
    return shares.reset_index().assign(method=run.recipe.method, seed=run.seed)


def selected_negatives(runs: Sequence[Run], device: str = "auto") -> DataFrame:
    """What every sampler picks from one pool, with the size of the gradients, of finished runs of CM-ACC.

    Pools and dictionaries are those training left. The queries are one random batch of training pairs, normalised over
    the batch as in training, so that gradients have the size that the selection met. The gradient is that of the last
    layer (Eq. 5).

    Returns:
        One row per run, modality, sampler and pick: modality (of the candidates), sampler, pick (0 to M - 1, in the
        order of selection), item (index of the pair), category, gradient_norm, smaller (percent of the admissible
        candidates whose gradient is smaller), nearest (index of the pair whose query is the candidate's pseudo-label)
        and nearest_category; seed, dataset and preset.

    Source: CM-ACC, Fig. 5.
    """
    return _of_each(asked(runs, "cmacc"), "selected_negatives", _selected_negatives, device)


def _selected_negatives(run: Run, device: torch.device) -> DataFrame:
    learner, recipe, parts = restored(run, CLIPS, device), run.recipe, []
    learner.towers.train()
    batch = drawn(learner.members, recipe.batch, torch.Generator().manual_seed(run.seed))
    names = np.array(learner.data.classes)[learner.data.categories]
    posterior = {"temperature": recipe.posterior_temperature, "normalised": recipe.normalised}
    factor = 1 / recipe.posterior_temperature if recipe.normalised else 1.0  # which `gradients` leaves out
    for modality in MODALITIES:
        query, hidden, _ = embedded(learner, OTHER[modality], batch)
        pool, items = learner.pools[modality], learner.pooled[modality].cpu()
        excluded = torch.isin(items, learner.entries[modality].entries.flatten().cpu())
        # In float64, for the sum cancels: 0 may come out as 1e-6.
        squared = gradients(*(tensor.double() for tensor in (pool, query, hidden)), **posterior).norms
        norms = squared.clamp_(min=0).sqrt_().mul_(factor).to(pool.dtype).cpu()
        ranked = norms[~excluded].sort().values
        nearest = batch[(pool @ learner.finished(query).T).argmax(1).cpu()]
        candidates = DataFrame({
            "item": items, "category": names[items], "gradient_norm": norms,
            "smaller": 100 * torch.searchsorted(ranked, norms) / len(ranked),
            "nearest": nearest, "nearest_category": names[nearest],
        })
        for sampler in COMPARED:
            picks = select(
                sampler, pool, query, hidden, n_select=recipe.batch, excluded=excluded.to(pool.device),
                generator=torch.Generator(pool.device).manual_seed(run.seed), **posterior).cpu()
            parts.append(candidates.iloc[picks].assign(modality=modality, sampler=sampler, pick=range(len(picks))))
    return pd.concat(parts, ignore_index=True)[["modality", "sampler", "pick", *candidates]].assign(seed=run.seed)


def post_hoc_diversity(runs: Sequence[Run], device: str = "auto") -> DataFrame:
    """From how many categories every sampler's negatives would come, chosen with finished encoders of XMoCo on grids.

    Candidates are keys of 4,096 random training pairs, balanced and with Zipf's frequencies, in the modality of video;
    queries are eight random batches of M pairs. Both are normalised over batches as in training. Runs that differ in
    `iterations` alone are one encoder along its training.

    Returns:
        One row per run, frequency, M, choice and measure: frequency, batch (M), sampler, posterior (temperature of Eq.
        4; 1 where there is none), step (of the training), measure, value; and of the run seed, dataset and preset.
        Measures: categories (distinct, mean over batches); expected (of uniform draws, exact); rho, the mean squared
        distance of two candidates of one category over that of two of different ones, between features or gradients;
        and predicted, by `seeded_categories` with this rho. Only choices by distance have the latter two.

    Source: CM-ACC, Figs. 2 and 4.
    """
    return _of_each(asked(runs, "xmoco"), "post_hoc_diversity", _post_hoc_diversity, device)


def _post_hoc_diversity(run: Run, device: torch.device) -> DataFrame:
    parts = []
    for frequency in FREQUENCIES:
        learner = restored(run, CLIPS, device, frequency=frequency)
        parts.append(_chosen_post_hoc(learner, run.seed).assign(frequency=frequency, step=learner.taken))
    return pd.concat(parts)


@torch.no_grad()
def _chosen_post_hoc(learner: Pretrainer, seed: int) -> DataFrame:
    """Rows of `post_hoc_diversity` for one encoder and pool."""
    generator, recipe = torch.Generator().manual_seed(seed), learner.recipe
    for part in (learner.towers, learner.keys):
        part.train()
    pool = drawn(learner.members, POOLED, generator)
    keys, categories = embedded(learner, "video", pool, generator)[2], learner.data.categories[pool]
    counts = categories.bincount().numpy()
    chooser, rows = torch.Generator(keys.device).manual_seed(seed), []
    for count in SELECTED:
        batches = drawn(learner.members, BATCHES * count, generator).split(count)
        queries = [embedded(learner, "audio", batch, generator)[:2] for batch in batches]
        expected = expected_categories(counts / POOLED, count, POOLED)
        for sampler, posterior in CHOICES:
            options = {"temperature": posterior, "normalised": recipe.normalised, "generator": chooser}
            picks = [select(sampler, keys, *query, n_select=count, excluded=None, **options) for query in queries]
            distinct = [len(categories[pick.cpu()].unique()) for pick in picks]
            measures = {"categories": sum(distinct) / BATCHES, "expected": expected}
            if sampler in ("feature", "gradient"):
                judged = (keys, *queries[0], posterior, recipe.normalised)
                space = Embeddings(keys) if sampler == "feature" else gradients(*judged)
                rho = within_over_between(space, categories)
                measures |= {"rho": rho, "predicted": seeded_categories(counts, count, rho)}
            rows += [{"batch": count, "sampler": sampler, "posterior": posterior, "measure": name, "value": value}
                     for name, value in measures.items()]
    return DataFrame(rows)


def within_over_between(space: Embeddings, categories: Tensor) -> float:
    """The mean squared distance of two candidates of one category over that of two of different ones.

    Measured from the first 256 of them to all, (P,).
    """
    count = min(REFERENCES, len(categories))
    distances = torch.stack([space.to(torch.tensor([row], device=space.norms.device)).cpu() for row in range(count)])
    same = categories[:count, None] == categories
    others = ~torch.eye(count, len(categories), dtype=torch.bool)
    return float(distances[same & others].mean() / distances[~same].mean())


@torch.no_grad()
def embedded(
    learner: Pretrainer, modality: str, index: Tensor, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Of the middle of items (n,): outputs of the queries' last layer (n, d), its inputs (n, width) and keys (n, d).

    With a generator, of random views.
    """
    parts, data, size = [], learner.data, learner.recipe.size
    views = (data.view(modality, part, generator) if generator else data.centred(modality, part)[:, 0]
             for part in index.split(learner.recipe.batch))
    for view in ahead(views) if learner.data.streamed else views:
        view = view.to(learner.device, non_blocking=True)
        view = (augment.at_random(view, size, learner.recipe.greyscale, generator=generator) if generator
                else augment.centred(view, size))
        parts.append((*learner.towers(modality, view), learner.keys(modality, view)[0]))
    query, hidden, key = (torch.cat(rows).float() for rows in zip(*parts, strict=True))
    return query, hidden, learner.finished(key)


def _sampled(learner: Pretrainer, most: int, seed: int) -> Tensor:
    """Random training pairs, at most so many of each category, category by category; unlabelled ones have none."""
    members = drawn(learner.members, len(learner.members), torch.Generator().manual_seed(seed))
    categories = learner.data.categories[members]
    parts = [members[categories == category][:most] for category in categories.unique().tolist() if category >= 0]
    if not parts:
        raise ValueError(f"{learner.data.name} has no labelled pair to train with, and thus no category to tell apart")
    return torch.cat(parts)
