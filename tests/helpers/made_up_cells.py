"""Rows of cells.csv as the three modalities write them, with made-up results."""

import itertools
import json

from asked_for import changed
from pandas import DataFrame

from repro.audiovisual.recipe import CLIPS
from repro.image.recipe import IMAGES
from repro.run.export import COLUMNS
from repro.skeleton.recipe import SKELETONS

COUNT = itertools.count()
PART = "cifar10 (part.npz)"


def frame(*rows):
    return DataFrame(rows, columns=COLUMNS)


def skeleton(objectives, linear=50.0, *, dataset="ucla", preset="paper", measures=None, **changes):
    """A cell of the taxonomy; `changes` are fields of the recipe, and what `cell` takes."""
    metrics = {"linear": linear, "knn1": linear - 1, "linear_standardised": linear + 1} | (measures or {})
    return cell(SKELETONS, objectives, metrics, dataset, preset, **changes)


def image(method, linear=50.0, *, dataset=PART, preset="quick", spread=0.5, **changes):
    """A cell on images; as `skeleton`."""
    metrics = {"linear": linear, "knn1": linear, "embedding_spread": spread}
    return cell(IMAGES, method, metrics, dataset, preset, **changes)


def sounding(method, metrics, *, dataset="synthetic", preset="quick", **changes):
    """A cell on clips; as `skeleton`."""
    return cell(CLIPS, method, {"trained_on": 100.0} | metrics, dataset, preset, **changes)


FINISHED = "2024-05-01T12:00:00+00:00"


def cell(study, method, metrics, dataset, preset, *, seed=0, version=1, finished=FINISHED, **changes):
    """One row of cells.csv; a data set in brackets is a part or a copy."""
    subset = {"subset": True} if " (" in dataset else {}
    recipe = study.presets[preset](dataset.partition(" (")[0], method, **subset, **changes)
    encoded = {"changes": changed(study, recipe, preset, changes), "recipe": recipe.to_dict(), "metrics": metrics}
    encoded["cost"] = {"finished": finished, "commit": "c"}
    row = {"key": f"{next(COUNT):016x}", "study": study.name, "seed": seed, "preset": preset, "dataset": dataset}
    row |= {"digest": "d", "version": version, "commit": "c"}
    row |= {name: json.dumps(value, sort_keys=True) for name, value in encoded.items()}
    return {name: row[name] for name in COLUMNS}
