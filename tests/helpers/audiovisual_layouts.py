"""Columns of CM-ACC's tables, and the tables that made-up results of their cells give."""

import itertools

from pandas import DataFrame

from repro.audiovisual import tables
from repro.audiovisual.data import CHARACTERS

TAIL = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset", "trained_on"]
LAYOUTS = {
    "cross_modal": ["approach", "target", *TAIL],
    "ohem_vs_active": ["sampler", "batch", "target", *TAIL],
    "dictionary_size": ["method", "dictionary", "target", *TAIL],
    "mutual_information": ["method", "characters", "target", *TAIL, "linear_held_out"],
    "transfer": ["method", "video_trunk", "split", "target", *TAIL, "printed_in"],
    "category_diversity": ["sampler", "batch", "target", *TAIL, "expected"],
}
RECORDED = [name for name in LAYOUTS if name != "mutual_information"]
EMBEDDED = {name: "multidigits" if name == "mutual_information" else "synthetic" for name in LAYOUTS}


def results(cells):
    """Made-up results of the cells, as the layouts take them."""
    values = itertools.count(40.0, 0.25)
    rows = []
    for each in cells:
        found = each.recipe.to_dict() | {"entry": each.entry, "seed": each.seed, "trained_on": 100.0 + each.seed}
        names = [name for name in each.recipe.targets.split(",") if name and name != "characters"]
        names += ["linear", "linear_held_out"] if each.recipe.dataset in CHARACTERS else []
        names += ["categories_video", "categories_audio", "expected"] if each.recipe.method == "cmacc" else []
        rows.append(found | {name: next(values) for name in names})
    return DataFrame(rows)


def laid_out(table, cells):
    return tables.TABLES[table].layout(results(cells), cells[0].preset, cells[0].dataset)
