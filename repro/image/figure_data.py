"""What figures need of finished cells beside their results, computed once and kept in the folders of their runs."""

import torch
from pandas import DataFrame

from repro import manifest
from repro.image.cell import data_of, resumed, trained_model
from repro.image.model import TRUNKS
from repro.image.similarity import similarity_and_variance
from repro.report import sampled_keys as bound
from repro.run.finished import kept
from repro.run.store import Cell, Store

QUERIES = 32  # of `sampled_keys`


def similarities(cell: Cell, device: torch.device) -> DataFrame:
    """How alike the features of an image's augmentations are, by the model of a finished cell.

    Of 32,768 training images, or all if there are fewer, 32 strong views each; 64 and 4 of smoke runs.

    Returns:
        One row per image: model ("JCL" or "MoCo v2"), seed, d (number of features), similarity and variance, see
        `similarity.similarity_and_variance`.
    """
    images, augmentations = (64, 4) if cell.preset == "smoke" else (32768, 32)

    def compute() -> DataFrame:
        model, recipe = trained_model(cell.key, Store(manifest.runs_root()))
        data, number = data_of(recipe), {"images": images, "augmentations": augmentations, "seed": cell.seed}
        found = similarity_and_variance(model, recipe, data, device=device, **number)
        name = "MoCo v2" if recipe.method == "moco" else "JCL"
        return DataFrame({"model": name, "seed": cell.seed, "d": TRUNKS[recipe.trunk]}, index=found.index).join(found)

    return kept(cell, "similarity.csv", compute)


def sampled_keys(cell: Cell, device: torch.device) -> DataFrame:
    """JCL's bound beside losses with sampled keys, for queries, keys and dictionary of a finished cell.

    Returns:
        The table of `report.sampled_keys`, at the temperature and the strength of the cell's recipe, with these and
        its number of keys as positives.
    """

    def compute() -> DataFrame:
        query, keys, negatives = (each.cpu() for each in resumed(cell, device).positives())
        setting = {"temperature": cell.recipe.temperature, "strength": cell.recipe.strength}
        generator = torch.Generator().manual_seed(cell.seed)
        table = bound.sampled_keys(query[:QUERIES], keys[:QUERIES], negatives, **setting, generator=generator)
        return table.assign(positives=cell.recipe.keys, **setting)

    return kept(cell, "sampled_keys.csv", compute)
