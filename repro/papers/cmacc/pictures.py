"""CM-ACC's pictures of frames: categories along training, and what was measured of finished encoders."""

from pandas import DataFrame

from repro.experiments import frames_of
from repro.papers.cmacc import figures
from repro.report.plots import Picture

POOL = ("frequency", "sampler", "batch", "expected")


def of_pools(rows: DataFrame) -> DataFrame:
    """Reports of the selection along training; of clips, whose categories are as they come, this is the frequency."""
    rows = rows[["step", "categories_video", "categories_audio", *POOL, "key", "seed", "dataset", "preset"]]
    return rows.assign(frequency=rows["frequency"].where(rows["dataset"] == "multiomniglot", figures.UNNAMED))


def of_predictions(cells: DataFrame) -> DataFrame:
    """What is predicted of choices by distance, beside what was counted; of a frame that another picture shows."""
    rows = frames_of(["diversity_post_hoc"], "post_hoc_diversity", stored=cells)
    return figures.missed(rows) if len(rows) else rows


def of_first_entry(rows: DataFrame) -> DataFrame:
    """All seeds of the first cell that has the frame, by what it is called."""
    return rows[rows["entry"] == rows["entry"].iloc[0]].drop(columns="entry")


def of_first_cell(rows: DataFrame) -> DataFrame:
    """The first cell that has the frame, of clips that come with the package: others are not ours to publish."""
    return rows[(rows["key"] == rows["key"].iloc[0]) & (rows["dataset"] == "synthetic")].drop(columns="entry")


PICTURES = {
    "category_curves_multiomniglot": Picture(
        experiments=("diversity_balanced", "diversity_zipf"), frame="progress", fields=POOL, rows=of_pools,
        plot=figures.CURVES),
    "post_hoc_diversity_multiomniglot": Picture(
        experiments=("diversity_post_hoc",), frame="post_hoc_diversity", plot=figures.AFTERWARDS),
    "predicted_diversity_multiomniglot": Picture(
        experiments=("diversity_post_hoc",), rows=of_predictions, plot=figures.PREDICTED),
    "pretext_accuracy_synthetic": Picture(
        experiments=("cross_modal_synthetic",), frame="pretext_accuracy", fields=("method",), rows=of_first_entry,
        plot=figures.PRETEXT),
    "selected_negatives_synthetic": Picture(
        experiments=("cross_modal_synthetic",), frame="selected_negatives", rows=of_first_cell,
        plot=figures.bundled_negatives),
}
