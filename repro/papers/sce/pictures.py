"""SCE's picture of a frame: the terms of its objective along training."""

from pandas import DataFrame

from repro.papers.sce import figures
from repro.report.plots import Picture


def of_first_cell(rows: DataFrame) -> DataFrame:
    """The first cell of SCE that was trained, in the order of the table."""
    rows = rows.dropna(subset=["InfoNCE", "ReSSL", "Ceil"])
    names = ["epoch", "InfoNCE", "ReSSL", "Ceil", "loss", "weight", "entry", "key", "seed", "dataset", "preset"]
    return rows.loc[rows["key"] == rows["key"].iloc[0], names]


PICTURES = {
    "objective_parts_cifar10": Picture(
        experiments=("temperature_grid_cifar10",), frame="epochs", fields=("weight",), rows=of_first_cell,
        plot=figures.OBJECTIVE_PARTS),
}
