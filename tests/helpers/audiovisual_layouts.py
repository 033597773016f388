"""Columns of CM-ACC's tables, and the rows that made-up results of their cells give."""

import itertools

from asked_for import laid_out as rows_of
from made_up_measures import finished

from repro.audiovisual import CHARACTERS
from repro.papers.cmacc.tables import TABLES

TAIL = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset", "trained_on"]
LAYOUTS = {
    "cross_modal": ["approach", "target", *TAIL],
    "ohem_vs_active": ["sampler", "batch", "target", *TAIL],
    "dictionary_size": ["method", "dictionary", "target", *TAIL],
    "mutual_information": ["method", "characters", "target", *TAIL],
    "transfer": ["method", "video_trunk", "split", "target", *TAIL],
    "category_diversity": ["sampler", "batch", "target", *TAIL, "expected", "version"],
}
RECORDED = [name for name in LAYOUTS if name != "mutual_information"]
EMBEDDED = {name: TABLES[name].datasets[0] for name in LAYOUTS}
MEASURED = {  # else by the target
    "characters": "linear", "unseen": "linear_held_out", "video": "categories_video", "audio": "categories_audio",
}


def results(cells):
    """Stored rows of the cells, with made-up results."""
    values = itertools.count(40.0, 0.25)

    def measure(cell):
        names = [name for name in cell.recipe.targets.split(",") if name and name != "characters"]
        names += ["linear", "linear_held_out"] if cell.recipe.dataset in CHARACTERS else []
        names += ["categories_video", "categories_audio", "expected"] if cell.recipe.method == "cmacc" else []
        return {"trained_on": 100.0 + cell.seed, **{name: next(values) for name in names}}

    return finished(cells, measure)


def laid_out(table, cells):
    """The rows of a table from made-up results."""
    return rows_of(TABLES[table], results(cells))
