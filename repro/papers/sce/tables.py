"""SCE's tables: which recipes they compare, and the printed number of each."""

import math
from typing import Any

from pandas import Series

from repro import image
from repro.data import manifest
from repro.image.recipe import IMAGES, METHODS
from repro.report.printed import printed
from repro.table import Lazy, Table, by_preset

PRINTED_NAMES = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "stl10": "STL10", "tiny_imagenet": "Tiny-IN"}
DATASETS = tuple(dict.fromkeys(("digits", *PRINTED_NAMES, *image.DATASETS)))
MEASURES = ("linear", "knn1", "embedding_spread")
PRINTED_KEY_TEMPERATURES = (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
SHORT_KEY_TEMPERATURES = (0.03, 0.05, 0.07, 0.1)


def printed_grid(dataset: str) -> Series:
    """The printed accuracies by (temperature, key_temperature), in percent; empty for data sets without any.

    Args:
        dataset: a label such as "cifar10" or "cifar10 (my_copy.npz)"; the copy has the numbers of the whole.

    Source: SCE supplement, Table 2.
    """
    rows = printed("sce_temperature_long")
    rows = rows[rows["dataset"] == PRINTED_NAMES.get(manifest.plain(dataset))]
    grid = rows.rename(columns={"tau": "temperature", "tau_m": "key_temperature"})
    return grid.set_index(["temperature", "key_temperature"])["top1"]


def printed_accuracy(row: Any) -> float:
    """The printed accuracy of SCE at a pair of temperatures (supplement, Table 2)."""
    if row.method != "sce":
        return math.nan
    return float(printed_grid(row.dataset).get((row.temperature, row.key_temperature), math.nan))


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
        printed=printed_accuracy,
        measures=MEASURES,
        plot=Lazy("repro.papers.sce.figures", "temperature_grid"),
    ),
}
