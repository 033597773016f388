"""SCE's tables: which recipes they compare, and the printed number of each."""

from pandas import DataFrame

from repro import image
from repro.data import manifest
from repro.image.recipe import IMAGES, METHODS
from repro.report.printed import of_recipe
from repro.table import Lazy, Table, by_preset

DATASETS = tuple(dict.fromkeys(("digits", "cifar10", "cifar100", "stl10", "tiny_imagenet", *image.DATASETS)))
MEASURES = ("linear", "knn1", "embedding_spread")
PRINTED_KEY_TEMPERATURES = (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
SHORT_KEY_TEMPERATURES = (0.03, 0.05, 0.07, 0.1)


def with_own_fields(runs: DataFrame) -> DataFrame:
    """Runs, with no temperature of query or target and no weight where their method uses none."""
    for field in ("temperature", "key_temperature", "strength"):
        runs[field] = runs[field].where([field in METHODS[method].fields for method in runs["method"]])
    return runs


TABLES = {
    "image_methods": Table(
        name="image_methods",
        title="MoCo v2, ReSSL, SCE and JCL in one setting, between random initialisation and supervised training",
        place="no printed table: the methods of both papers, each with its own recipe",
        study=IMAGES,
        rows=[{"method": ("random", "supervised", "moco", "ressl", "sce", "jcl")}],
        datasets=DATASETS,
        methods=tuple(METHODS),
        measures=MEASURES,
        plot=Lazy("repro.papers.sce.figures", "IMAGE_METHODS"),
    ),
    "registered": Table(
        name="registered",
        title="The recipes whose order was registered before they were trained",
        place="no printed table: docs/registered.md",
        study=IMAGES,
        rows=[
            {"method": ("random", "supervised", "moco")},
            {"method": "ressl", "temperature": 0.1, "key_temperature": (0.04, 0.1)},
            {"method": "sce", "temperature": 0.1, "key_temperature": (0.03, 0.05, 0.07, 0.1)},
            {"method": "sce", "temperature": 0.2, "key_temperature": 0.1},
            {"method": "jcl", "keys": 5, "strength": (4.0, 0.0)},
        ],
        datasets=DATASETS,
        columns=("method", "temperature", "key_temperature", "strength"),
        measures=MEASURES,
        arrange=with_own_fields,
        plot=Lazy("repro.papers.sce.figures", "REGISTERED"),
    ),
    "temperature_grid": Table(
        name="temperature_grid",
        title="Temperature of the query x temperature of the key",
        place="supplement, Table 2",
        study=IMAGES,
        rows=[
            {
                "method": "sce",
                "temperature": (0.1, 0.2),
                "key_temperature": by_preset(
                    paper=PRINTED_KEY_TEMPERATURES, quick=SHORT_KEY_TEMPERATURES, smoke=(0.05, 0.1)
                ),
            },
            {"method": "ressl", "temperature": 0.1, "key_temperature": 0.1},
        ],
        datasets=DATASETS,
        columns=("method", "temperature", "key_temperature"),
        printed=lambda row: of_recipe("temperature_grid_by_recipe", row, dataset=manifest.plain(row.dataset)),
        measures=MEASURES,
        plot=Lazy("repro.papers.sce.figures", "TEMPERATURE_GRID"),
    ),
}
