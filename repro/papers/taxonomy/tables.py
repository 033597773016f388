"""The taxonomy's tables: which recipes they compare, and the printed number of each."""

import functools

from pandas import DataFrame

from repro.report.printed import of_recipe
from repro.skeleton import DATASETS
from repro.skeleton.recipe import METHODS, SKELETONS
from repro.skeleton.terms import PRINTED
from repro.table import Lazy, Table

MEASURES = ("linear", "linear_without_copies", "linear_standardised", "knn1", "embedding_spread", "readout_spread")


def with_terms(runs: DataFrame) -> DataFrame:
    """Runs with a column for each printed term: 1 where the objective has it, else 0."""
    terms = runs["objectives"].str.split("+")
    return runs.assign(**{term: [int(term in names) for names in terms] for term in PRINTED})


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
        printed=functools.partial(of_recipe, "taxonomy_by_recipe"),
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
        printed=functools.partial(of_recipe, "encoder_collapse_by_recipe"),
        measures=(*MEASURES, "linear_best"),  # the best of the probe is what is released
        plot=Lazy("repro.papers.taxonomy.figures", "ENCODER_COLLAPSE"),
    ),
}
