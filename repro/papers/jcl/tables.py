"""JCL's tables, of which the paper prints curves and histograms and no numbers."""

from typing import Any

from pandas import DataFrame

from repro import image
from repro.image.recipe import IMAGES
from repro.table import Lazy, Table, by_preset

BASE = {"keys": 5, "strength": 4.0, "temperature": 0.2}  # where they do not vary (supplement, Fig. M.2)
LONG_SWEEPS = {  # the paper says what it varied and not over which values
    "keys": (1, 2, 3, 5, 7, 9),
    "strength": (0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 10.0),
    "temperature": (0.07, 0.1, 0.2, 0.3, 0.5),
}
SHORT_SWEEPS = {"keys": (1, 2, 5, 9), "strength": (0.0, 4.0, 10.0), "temperature": (0.1, 0.2, 0.5)}
ENDS = {name: (sweep[0], BASE[name]) for name, sweep in SHORT_SWEEPS.items()}  # to see that it runs
FORWARDS = 3  # of the query, its backward pass counted twice; each key adds one (JCL)
DATASETS = tuple(dict.fromkeys(("digits", "imagenet100", "imagenet", *image.DATASETS)))
MEASURES = ("linear", "knn1", "embedding_spread")


def with_sweeps(runs: DataFrame) -> DataFrame:
    """A row of a run for the sweep of the first field that leaves `BASE`, else of all three; two more columns.

    Of several runs at one point of a sweep those that differ least come first.

    varied: "keys", "strength" or "temperature"; in what others leave `BASE`, runs differ.
    encoder_forwards: passes of an image through the encoder, a backward pass counted as two.
    """
    rows = []
    for run in runs.to_dict("records"):
        left = [field for field, value in BASE.items() if run[field] != value]
        known = {field: value for field, value in run["changed"].items() if field not in BASE}
        known |= {field: run[field] for field in left[1:]}
        rows += [run | {"varied": name, "changed": known, "encoder_forwards": FORWARDS + run["keys"]}
                 for name in left[:1] or BASE]

    def place(row: dict[str, Any]) -> tuple:
        varied = row["varied"]
        return [*BASE].index(varied), row[varied], len(row["changed"]), row["seed"]

    return DataFrame(sorted(rows, key=place))


TABLES = {
    "positive_keys": Table(
        name="positive_keys",
        title="JCL by the number of positive keys, the weight of their covariance, and temperature",
        place="supplement, Fig. M.2",
        study=IMAGES,
        rows=[
            {"method": "jcl"} | BASE
            | {name: by_preset(paper=LONG_SWEEPS[name], quick=SHORT_SWEEPS[name], smoke=ENDS[name])}
            for name in BASE
        ],
        datasets=DATASETS,
        columns=("varied", "method", *BASE, "encoder_forwards"),
        measures=MEASURES,
        arrange=with_sweeps,
        plot=Lazy("repro.papers.jcl.figures", "POSITIVE_KEYS"),
        after=Lazy("repro.papers.jcl.measured", "sampled_keys"),
    ),
    "similarity_variance": Table(
        name="similarity_variance",
        title="JCL with nine positive keys and MoCo v2, whose features are compared",
        place="supplement, Fig. M.3",
        study=IMAGES,
        rows=[{"method": "jcl"} | BASE | {"keys": 9}, {"method": "moco", "keys": 1}],
        datasets=DATASETS,
        columns=("method", "keys"),
        measures=MEASURES,
        after=Lazy("repro.papers.jcl.measured", "similarities"),
    ),
}
