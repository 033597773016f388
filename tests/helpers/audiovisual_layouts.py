"""Columns of CM-ACC's tables, and the rows that made-up results of their cells give."""

import itertools
import json

from pandas import DataFrame

from repro.audiovisual import CHARACTERS
from repro.audiovisual.study import CLIPS
from repro.papers.cmacc.tables import TABLES
from repro.run.export import COLUMNS

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
EMBEDDED = {name: TABLES[name].datasets[0] for name in LAYOUTS}
MEASURED = {"characters": "linear", "video": "categories_video", "audio": "categories_audio"}  # else by the target


def results(cells):
    """Made-up results of the cells, tidy."""
    values = itertools.count(40.0, 0.25)
    rows = []
    for cell in cells:
        names = [name for name in cell.recipe.targets.split(",") if name and name != "characters"]
        names += ["linear", "linear_held_out"] if cell.recipe.dataset in CHARACTERS else []
        names += ["categories_video", "categories_audio", "expected"] if cell.recipe.method == "cmacc" else []
        metrics = {"trained_on": 100.0 + cell.seed, **{name: next(values) for name in names}}
        row = cell.describe() | {"metrics": metrics, "cost": {"finished": "2026-01-01"}, "commit": "c"}
        encoded = {name: json.dumps(row[name]) for name in ("changes", "recipe", "metrics", "cost")}
        rows.append(row | encoded)
    return CLIPS.tidy(DataFrame(rows, columns=COLUMNS))


def laid_out(table, cells):
    """The rows of a table from made-up results."""
    return TABLES[table].laid_out(TABLES[table].select(results(cells)))
