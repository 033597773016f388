"""What SCE prints for pairs of temperatures."""

import math
from typing import Any

from pandas import Series

from repro.data import manifest
from repro.report.printed import printed

PRINTED_NAMES = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "stl10": "STL10", "tiny_imagenet": "Tiny-IN"}


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
