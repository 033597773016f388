"""What JCL's figures need of finished cells beside their results, computed once and kept in their folders."""

import functools

import pandas as pd
import torch
from pandas import DataFrame

from repro.data import manifest
from repro.image.model import TRUNKS
from repro.image.study import data_of, resumed, trained_model
from repro.papers.jcl import sampled_keys as bound
from repro.papers.jcl.similarity import similarity_and_variance
from repro.run import device as devices
from repro.run.finished import kept
from repro.run.store import Cell, Store

QUERIES = 32  # of `sampled_keys`


def similarities(cells: list[Cell], device: str = "auto") -> DataFrame:
    """How alike the features of an image's augmentations are (Fig. M.3).

    Of 32,768 training images, or all if there are fewer, 32 strong views each; 64 and 4 of smoke runs.

    Args:
        cells: finished ones of `similarity_variance`.
        device: "auto", "cpu" or "cuda".

    Returns:
        One row per cell and image: model ("JCL" or "MoCo v2"), seed, d (number of features), similarity and variance,
        see `repro.papers.jcl.similarity.similarity_and_variance`.
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
