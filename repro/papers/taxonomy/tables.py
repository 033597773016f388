"""The taxonomy's tables: which recipes they compare, and the printed number of each."""

import math
from typing import Any

from pandas import DataFrame

from repro.report.printed import printed
from repro.skeleton import DATASETS
from repro.skeleton.recipe import METHODS, SKELETONS
from repro.skeleton.terms import PRINTED
from repro.table import Lazy, Table

MEASURES = ("linear", "linear_without_copies", "linear_standardised", "knn1", "embedding_spread", "readout_spread")
PRINTED_COLUMNS = {  # of the fifteen objectives, by data set, protocol, layers, units
    ("ucla", "xview", 1, 512): "UCLA",
    ("ntu", "xsub", 1, 512): "NTU_1layer",
    ("ntu", "xsub", 3, 512): "NTU_3layer",
    ("ntu", "xsub", 1, 1024): "NTU_1024units",
}


def with_terms(runs: DataFrame) -> DataFrame:
    """Runs with a column for each printed term: 1 where the objective has it, else 0."""
    terms = runs["objectives"].str.split("+")
    return runs.assign(**{term: [int(term in names) for names in terms] for term in PRINTED})


def printed_accuracy(row: Any) -> float:
    """The printed accuracy of an objective on this data set with this encoder (supplement, Table 1)."""
    column = PRINTED_COLUMNS.get((row.dataset, row.protocol, row.layers, row.units))
    if row.objectives == "random":
        return printed_by_depth(row)
    table, terms = printed("taxonomy"), row.objectives.split("+")
    if column is None or not set(terms) <= set(table):
        return math.nan
    has = [int(term in terms) for term in PRINTED]
    return float(table.loc[(table[list(PRINTED)] == has).all(axis=1), column].item())


def printed_by_depth(row: Any) -> float:
    """The printed accuracy of random initialisation or AE with an encoder of so many layers (supplement, Table 2)."""
    table = printed("taxonomy_depth_collapse").set_index("layers")
    if row.dataset != "ucla" or row.units != 512 or row.layers not in table.index:
        return math.nan
    return float(table.loc[row.layers, {"random": "random_init", "AE": "AE"}[row.objectives]])


ORDERED = tuple(dict.fromkeys(("synthetic", "ucla", *DATASETS)))  # of real ones first that of both printed tables

TABLES = {
    "taxonomy": Table(
        name="taxonomy",
        title="Fifteen objectives for 3D skeleton actions",
        place="supplement, Table 1",
        study=SKELETONS,
        rows=[{"objectives": METHODS}],
        datasets=ORDERED,
        methods=None,
        columns=("objectives", *PRINTED),
        printed=printed_accuracy,
        printed_by=("layers", "units"),
        measures=(*MEASURES, "decoded_scale", "linear_last"),  # the last where an epoch is selected on the test split
        arrange=with_terms,
        plot=Lazy("repro.papers.taxonomy.figures", "taxonomy"),
    ),
    "encoder_collapse": Table(
        name="encoder_collapse",
        title="Random initialisation against the attractive encoder, by depth",
        place="supplement, Table 2",
        study=SKELETONS,
        rows=[{"layers": (1, 2, 3, 4, 5), "objectives": ("random", "AE")}],
        datasets=ORDERED,
        columns=("layers", "objectives"),
        printed=printed_by_depth,
        measures=(*MEASURES, "linear_best"),  # the best of the probe is what is released
        plot=Lazy("repro.papers.taxonomy.figures", "ENCODER_COLLAPSE"),
    ),
}
