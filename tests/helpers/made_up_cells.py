"""Rows of cells.csv as the tables of the three modalities write them, with made-up results."""

import itertools
import json

from pandas import DataFrame
from repro.run.table import entry_of
from repro.tables import TABLES

from repro.audiovisual.recipe import PRESETS as AUDIOVISUAL_PRESETS
from repro.image.recipe import PRESETS as IMAGE_PRESETS
from repro.run.export import COLUMNS
from repro.skeleton.recipe import PRESETS as SKELETON_PRESETS

COUNT = itertools.count()
PART = "cifar10 (part.npz)"


def frame(*rows):
    return DataFrame(rows, columns=COLUMNS)


def skeleton(objectives, linear=50.0, *, table="taxonomy", dataset="ucla", preset="paper", seed=0, measures=None,
             **changes):
    """A cell of the taxonomy or of its depths; `changes` are fields of the recipe, which the entry names."""
    make = SKELETON_PRESETS[preset]
    recipe, usual = make(dataset, objectives, **changes), make(dataset, objectives)
    metrics = {"linear": linear, "knn1": linear - 1, "linear_standardised": linear + 1} | (measures or {})
    return _row(table, entry_of(objectives, recipe, usual), recipe, dataset, preset, seed, metrics)


def image(method, linear=50.0, *, table="image_methods", dataset=PART, preset="quick", seed=0, departures=None,
          spread=0.5, **changes):
    """A cell of an image table; `changes` are what the table varies, `departures` what else its entry names."""
    plain, subset = dataset.partition(" (")[0], " (" in dataset
    usual = IMAGE_PRESETS[preset](plain, method, subset=subset)
    recipe = usual.replace(**changes, **(departures or {}))
    entry = entry_of(method, recipe, usual, TABLES[table].varied)
    metrics = {"linear": linear, "knn1": linear, "embedding_spread": spread}
    return _row(table, entry, recipe, dataset, preset, seed, metrics)


def sounding(table, method, metrics, *, dataset="synthetic", preset="quick", seed=0, departures=None, **changes):
    """A cell of a table of CM-ACC; as `image`."""
    usual = AUDIOVISUAL_PRESETS[preset](dataset.partition(" (")[0], method, **changes)
    recipe = usual.replace(**departures or {})
    return _row(table, entry_of(method, recipe, usual, TABLES[table].varied), recipe, dataset, preset, seed, metrics)


def _row(table, entry, recipe, dataset, preset, seed, metrics):
    row = {"key": f"{next(COUNT):016x}", "table": table, "entry": entry, "seed": seed, "preset": preset}
    row |= {"dataset": dataset, "digest": "d", "version": 1, "recipe": json.dumps(recipe.to_dict(), sort_keys=True)}
    row |= {"metrics": json.dumps(metrics), "cost": json.dumps({"finished": "2024-05-01T12:00:00+00:00"})}
    return row | {"commit": "c"}
